/* SPDX-License-Identifier: BSD-3-Clause */
#include "fault/spec.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool parse_dir(const char *v, unsigned *dir)
{
	if (!strcmp(v, "tx"))
		*dir = UR_FAULT_TX;
	else if (!strcmp(v, "rx"))
		*dir = UR_FAULT_RX;
	else if (!strcmp(v, "both"))
		*dir = UR_FAULT_TX | UR_FAULT_RX;
	else
		return false;
	return true;
}

static bool parse_item(struct ur_fault_spec *s, const char *key, const char *v)
{
	const struct {
		const char *key;
		uint32_t *ppm;
	} rates[] = {{"drop", &s->drop}, {"dup", &s->dup}, {"reorder", &s->reorder}, {"corrupt", &s->corrupt}};
	char *end;

	for (unsigned i = 0; i < ur_array_size(rates); i++)
		if (!strcmp(key, rates[i].key))
			return ur_fault_parse_chance(v, strlen(v), rates[i].ppm);
	if (!strcmp(key, "dir"))
		return parse_dir(v, &s->dir);
	if (strcmp(key, "seed") || !isdigit((unsigned char)*v))
		return false;
	errno = 0;
	s->seed = strtoull(v, &end, 0);
	return !*end && !errno;
}

/* Of at least two words. */
static bool is_rule(const char *item)
{
	return strchr(item + strspn(item, " "), ' ');
}

static int parse_rule(struct ur_fault_spec *s, const char *item, char *err, size_t errlen)
{
	const char *wrong;
	unsigned at;

	if (s->nrules == UR_FAULT_RULES) {
		snprintf(err, errlen, "fault rule '%s' is one too many: there may be %d", item, UR_FAULT_RULES);
		return EINVAL;
	}
	wrong = ur_fault_rule_parse(item, &s->rules[s->nrules], &at);
	if (wrong) {
		snprintf(err, errlen, "fault rule '%s' is not understood at '%s': %s", item, item + at, wrong);
		return EINVAL;
	}
	wrong = ur_fault_rule_of_cables(&s->rules[s->nrules]);
	if (!wrong) {
		s->nrules++;
		return 0;
	}
	snprintf(err, errlen, "fault rule '%s' is not for a device: %s", item, wrong);
	return EINVAL;
}

int ur_fault_parse(const char *text, struct ur_fault_spec *s, char *err, size_t errlen)
{
	char copy[UR_FAULT_TEXT], *save, *item;

	*s = (struct ur_fault_spec){.dir = UR_FAULT_TX | UR_FAULT_RX, .seed = 1};
	if ((size_t)snprintf(copy, sizeof(copy), "%s", text) >= sizeof(copy)) {
		snprintf(err, errlen, "the fault specification is longer than %zu characters", sizeof(copy) - 1);
		return EINVAL;
	}
	for (item = strtok_r(copy, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
		char *eq = strchr(item, '=');

		if (is_rule(item)) {
			int r = parse_rule(s, item, err, errlen);

			if (r)
				return r;
			continue;
		}
		if (eq)
			*eq = 0;
		if (!eq || !parse_item(s, item, eq + 1)) {
			snprintf(err, errlen,
				 "fault '%s%s%s' is not understood: give drop=, dup=, reorder= or corrupt= with a probability such as 1%%, "
				 "dir=tx|rx|both, seed=N, or a rule such as 'drop tx opcode=ACK nth=3'",
				 item, eq ? "=" : "", eq ? eq + 1 : "");
			return EINVAL;
		}
	}
	return 0;
}
