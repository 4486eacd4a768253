/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/uroce/pcap/read/effects.h"

#include <inttypes.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/pcap/read/read.h"

void ur_pcap_say_effects(const struct ur_effects *e, const char *when, const char *who, FILE *to)
{
	char before[24], after[24];

	for (unsigned k = 0; e && k < UR_EFFECT_COUNT; k++) {
		const struct ur_effect *f = &e->of[k];

		if (f->series)
			fprintf(to, "%s %s came, %s sent %s in the millisecond before and %s in the one after (%" PRIu64 " time%s).\n",
				when, ur_effect_names[k], who, ur_pcap_amount(ur_effect_before(f), "bit/s", before),
				ur_pcap_amount(ur_effect_after(f), "bit/s", after), f->series, ur_plural(f->series));
	}
}

json_t *ur_pcap_effects_json(const struct ur_effects *e)
{
	json_t *rows = json_array();

	for (unsigned k = 0; e && k < UR_EFFECT_COUNT; k++) {
		const struct ur_effect *f = &e->of[k];

		if (f->series)
			json_array_append_new(rows, json_pack("{s:s, s:o, s:o, s:o}", "by", ur_effect_names[k], "times",
							      ur_json_uint(f->series), "before_bits", ur_json_uint(ur_effect_before(f)),
							      "after_bits", ur_json_uint(ur_effect_after(f))));
	}
	return rows;
}
