/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce pcap merge: the frames of several files in one, in the order of their times: files of a rotation, or of recorders at several
 * points. Each file has an interface for each type of link in it, which bears the name of the file.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd.h"
#include "outfile.h"
#include "pcap.h"
#include "pcap_ng.h"

#define FILES_MAX 1024
#define LINKS_MAX 16 /* of a file */

struct input {
	struct ur_pcap_source s;
	bool open, more;
	uint64_t frames;
	struct {
		uint16_t type;
		uint32_t number; /* of the interface */
	} links[LINKS_MAX];
	unsigned nlinks;
};

struct merge {
	struct input *in;
	unsigned n;
	FILE *out;
	uint32_t interfaces;
};

/* The interface of the newest frame of a file; UINT32_MAX when it has too many kinds. */
static uint32_t interface_of(struct merge *m, struct input *i)
{
	const uint16_t type = ur_pcap_source_link(&i->s);

	for (unsigned k = 0; k < i->nlinks; k++)
		if (i->links[k].type == type)
			return i->links[k].number;
	if (i->nlinks == LINKS_MAX)
		return UINT32_MAX;
	ur_ng_put_interface(m->out, type, 0, i->s.name);
	i->links[i->nlinks].type = type;
	i->links[i->nlinks++].number = m->interfaces;
	return m->interfaces++;
}

static bool put_frame(struct merge *m, struct input *i)
{
	const uint32_t which = interface_of(m, i);

	if (which == UINT32_MAX) {
		ur_cmd_fail(0, "%s has frames of more than %u types of link", i->s.name, LINKS_MAX);
		return false;
	}
	ur_ng_put_frame(m->out, which, &i->s.frame, "");
	i->frames++;
	return true;
}

/* The file whose next frame is the oldest; NULL when there are no more. */
static struct input *oldest(const struct merge *m)
{
	struct input *first = NULL;

	for (unsigned i = 0; i < m->n; i++)
		if (m->in[i].more && (!first || m->in[i].s.frame.when < first->s.frame.when))
			first = &m->in[i];
	return first;
}

static bool open_all(struct merge *m, char **names)
{
	for (unsigned i = 0; i < m->n; i++) {
		if (!ur_pcap_source_open(&m->in[i].s, names[i]))
			return false;
		m->in[i].open = true;
		m->in[i].s.keep_parts = true;
		m->in[i].more = ur_pcap_source_next(&m->in[i].s);
	}
	return true;
}

static bool copy(struct merge *m)
{
	struct input *i;

	ur_ng_put_section(m->out);
	while ((i = oldest(m))) {
		if (!put_frame(m, i))
			return false;
		i->more = ur_pcap_source_next(&i->s);
	}
	return true;
}

/* Of all files together. */
static bool has_roce(const struct merge *m)
{
	for (unsigned i = 0; i < m->n; i++)
		if (m->in[i].s.roce)
			return true;
	return ur_pcap_source_has_roce(&m->in[0].s);
}

static int finish(struct merge *m, int rc)
{
	for (unsigned i = 0; i < m->n; i++) {
		const struct ur_pcap_source *s = &m->in[i].s;

		if (s->why)
			rc = ur_cmd_fail(UR_EXIT_USAGE, "%s cannot be read after frame %u: %s", s->name, s->frame.number, s->why);
		else if (!rc)
			fprintf(stderr, "%s: %" PRIu64 " frame%s\n", s->name, m->in[i].frames, ur_plural(m->in[i].frames));
	}
	return rc;
}

static bool among(const char *out, char **names, unsigned n)
{
	struct stat a, b;

	for (unsigned i = 0; i < n; i++)
		if (stat(out, &a) == 0 && stat(names[i], &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
			return true;
	return false;
}

static int merge(const char *name, char **names, unsigned n)
{
	struct merge m = {.n = n, .in = calloc(n, sizeof(*m.in))};
	struct ur_outfile out;
	int rc = UR_EXIT_USAGE;
	bool ok;

	if (!m.in)
		return ur_cmd_fail(UR_EXIT_FAIL, "out of memory");
	if (open_all(&m, names)) {
		if (!ur_outfile_open(&out, name, true)) {
			rc = UR_EXIT_FAIL;
		} else {
			m.out = out.f;
			ok = copy(&m) && has_roce(&m);
			rc = finish(&m, ok ? 0 : UR_EXIT_USAGE);
			if (!ur_outfile_close(&out, ok) && ok)
				rc = UR_EXIT_FAIL;
		}
	}
	for (unsigned i = 0; i < n && m.in[i].open; i++)
		ur_pcap_source_close(&m.in[i].s);
	free(m.in);
	return rc;
}

static const struct ur_example examples[] = {
	{"uroce pcap merge all.pcapng trouble.pcap0 trouble.pcap1 trouble.pcap2", "The files of `tcpdump -C`, as one."},
	{"uroce pcap merge - client.pcap server.pcap | uroce pcap -", "What both ends recorded, by clocks that agree."},
	{0},
};

static int run_pcap_merge(int argc, char **argv)
{
	if (argc < 2 || argc - 1 > FILES_MAX)
		return ur_cmd_fail(UR_EXIT_USAGE, "there may be 1 to %u files", FILES_MAX);
	if (among(argv[0], argv + 1, (unsigned)argc - 1))
		return ur_cmd_fail(UR_EXIT_USAGE, "%s is one of the files to be merged: give the result another name", argv[0]);
	return merge(argv[0], argv + 1, (unsigned)argc - 1);
}

const struct ur_command ur_pcap_merge = {
	.name = "merge",
	.operands = "OUT IN...",
	.complete = UR_COMPLETE_FILE,
	.summary = "put several files together in the order of their times",
	.text = "The other subcommands read one recording; this makes one of the files of a rotation, or of what several recorders saw. "
		"The files "
		"may be of any format and type of link, and compressed; OUT is a pcapng file, or `-` for standard output. Packets that are "
		"in "
		"two of them are recognised as copies later on if the clocks of the recorders agree to within 100 ms and have one of the "
		"two "
		"first everywhere; `uroce pcap compare` needs no such clocks.",
	.status = "0; 1 when OUT cannot be written, " UR_PCAP_STATUS_UNREADABLE,
	.examples = examples,
	.run = run_pcap_merge,
};
