/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes frames to a file, which appears under its name when it is complete, so an incomplete file is never mistaken for a complete one. */
#include <stdlib.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/cli/outfile.h"
#include "apps/uroce/pcap/file/write.h"

#define SNAPLEN 262144 /* the most that libpcap reads */

struct ur_pcap_out {
	struct ur_outfile file;
};

static void write_header(FILE *to, enum ur_an_link link)
{
	static const uint16_t types[UR_AN_LINKS] = {
		[UR_AN_ETHERNET] = 1,   [UR_AN_RAW_IP] = 101, [UR_AN_SLL] = 113,      [UR_AN_SLL2] = 276,
		[UR_AN_LOOPBACK] = 108, [UR_AN_ERF] = 197,    [UR_AN_NATIVE_IB] = 247};
	const struct {
		uint32_t magic;
		uint16_t major, minor;
		uint32_t zone, accuracy, snap, link;
	} head = {0xa1b23c4d, 2, 4, 0, 0, SNAPLEN, types[link]};

	fwrite(&head, sizeof(head), 1, to);
}

struct ur_pcap_out *ur_pcap_create(const char *name, const char *in, enum ur_an_link link)
{
	struct ur_pcap_out *o;

	if (ur_outfile_is(name, in)) {
		ur_cmd_fail(0, "%s is the input file: give the result another name", name);
		return NULL;
	}
	o = calloc(1, sizeof(*o));
	if (!o) {
		ur_cmd_fail(0, "cannot write %s: out of memory", name);
		return NULL;
	}
	if (ur_outfile_open(&o->file, name, true)) {
		write_header(o->file.f, link);
		return o;
	}
	free(o);
	return NULL;
}

void ur_pcap_write(struct ur_pcap_out *o, const struct ur_an_frame *f)
{
	const uint32_t have = f->have < SNAPLEN ? f->have : SNAPLEN;
	const uint32_t head[4] = {(uint32_t)(f->when / UR_NS_PER_S), (uint32_t)(f->when % UR_NS_PER_S), have, f->len};

	fwrite(head, sizeof(head), 1, o->file.f);
	fwrite(f->data, 1, have, o->file.f);
}

bool ur_pcap_finish(struct ur_pcap_out *o)
{
	bool ok = ur_outfile_close(&o->file, true) && ur_outfile_flush();

	free(o);
	return ok;
}

void ur_pcap_give_up(struct ur_pcap_out *o)
{
	ur_outfile_close(&o->file, false);
	free(o);
}
