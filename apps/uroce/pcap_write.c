/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes frames to a file, which appears under its name when it is complete, so an incomplete file is never mistaken for a complete one. */
#include <errno.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"
#include "outfile.h"
#include "pcap.h"

#define SNAPLEN 262144 /* libpcap's most */

struct ur_pcap_out {
	struct ur_outfile file;
	pcap_t *kind;
	pcap_dumper_t *to;
};

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static void discard(struct ur_pcap_out *o)
{
	if (o->kind)
		pcap_close(o->kind);
	free(o);
}

static bool open_dump(struct ur_pcap_out *o, enum ur_an_link link)
{
	static const int kinds[] = {
		[UR_AN_ETHERNET] = DLT_EN10MB, [UR_AN_RAW_IP] = DLT_RAW, [UR_AN_SLL] = DLT_LINUX_SLL, [UR_AN_SLL2] = DLT_LINUX_SLL2};

	o->kind = pcap_open_dead_with_tstamp_precision(kinds[link], SNAPLEN, PCAP_TSTAMP_PRECISION_NANO);
	o->to = o->kind ? pcap_dump_fopen(o->kind, o->file.f) : NULL;
	return o->to;
}

struct ur_pcap_out *ur_pcap_create(const char *name, const char *in, enum ur_an_link link)
{
	struct ur_pcap_out *o;

	if (same_file(name, in)) {
		ur_cmd_fail(0, "%s is the input file: give the result another name", name);
		return NULL;
	}
	o = calloc(1, sizeof(*o));
	if (!o) {
		ur_cmd_fail(0, "cannot write %s: out of memory", name);
		return NULL;
	}
	if (ur_outfile_open(&o->file, name, true)) {
		if (open_dump(o, link))
			return o;
		ur_cmd_fail(0, "cannot write %s: %s", name, o->kind ? pcap_geterr(o->kind) : "no memory");
		ur_outfile_close(&o->file, false);
	}
	discard(o);
	return NULL;
}

void ur_pcap_write(struct ur_pcap_out *o, const struct ur_an_frame *f)
{
	struct pcap_pkthdr h = {.caplen = f->have < SNAPLEN ? f->have : SNAPLEN, .len = f->len};

	h.ts.tv_sec = (time_t)(f->when / UR_NS_PER_S);
	h.ts.tv_usec = (suseconds_t)(f->when % UR_NS_PER_S); /* nanoseconds, as the file says */
	pcap_dump((u_char *)o->to, &h, f->data);
}

/* libpcap closes what it writes to; standard output is the command's to close. */
static void close_dump(struct ur_pcap_out *o)
{
	if (o->file.f == stdout)
		return;
	pcap_dump_close(o->to);
	o->file.f = NULL;
}

bool ur_pcap_finish(struct ur_pcap_out *o)
{
	bool ok = pcap_dump_flush(o->to) == 0 && !ferror(pcap_dump_file(o->to));
	int err = errno;

	close_dump(o);
	if (!ok && o->file.f != stdout)
		ur_cmd_fail(0, "cannot write %s: %s", o->file.name, strerror(err));
	ok = ur_outfile_close(&o->file, ok) && ok;
	discard(o);
	return ok;
}

void ur_pcap_give_up(struct ur_pcap_out *o)
{
	close_dump(o);
	ur_outfile_close(&o->file, false);
	discard(o);
}
