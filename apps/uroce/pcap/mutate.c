/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce pcap mutate: one falsified copy for each kind of fault, and a list of them. The analysis confirms that each fault can be found, so
 * the copies can be used to test other analysers.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analyze/change/mutate.h"
#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/cli/outfile.h"
#include "apps/uroce/pcap/file/write.h"
#include "apps/uroce/pcap/read/read.h"

#define TRIES 8 /* packets, for a copy */
#define SEEN_MAX 100000
#define COPIES_MAX 1000

struct seen { /* findings about the recording itself */
	enum ur_rule rule;
	uint32_t frame;
};

struct job {
	const char *in, *dir;
	struct ur_recording r;
	struct ur_mutator *m;
	bool no_memory, mixed;
	struct seen seen[SEEN_MAX];
	unsigned nseen;
	/* the one that is looked at */
	unsigned fault;
	uint32_t frames[2];
	enum ur_rule named;
	uint32_t at;
	bool is_named;
	struct ur_outfile manifest;
	char path[4096]; /* its name */
	unsigned written;
};

static void keep_frame(void *ctx, const struct ur_an_frame *f)
{
	struct job *j = ctx;

	j->mixed |= j->r.n && j->r.link != f->link;
	j->no_memory |= !ur_recording_add(&j->r, f);
}

static void note_seen(void *ctx, const struct ur_finding *f)
{
	struct job *j = ctx;

	if (j->nseen < SEEN_MAX)
		j->seen[j->nseen++] = (struct seen){f->rule, f->frame};
}

static void note_finding(void *ctx, const struct ur_finding *f)
{
	struct job *j = ctx;

	for (unsigned i = 0; i < j->nseen; i++)
		if (j->seen[i].rule == f->rule && j->seen[i].frame == f->frame)
			return;
	if (j->is_named || !ur_mutation_named(j->fault, j->frames, f))
		return;
	j->is_named = true;
	j->named = f->rule;
	j->at = f->frame;
}

static void analyze(struct job *j, const struct ur_recording *r, ur_finding_fn fn)
{
	struct ur_analysis *a = ur_analysis_create(fn, j, ur_pcap_salt());

	if (!a)
		return;
	for (uint32_t i = 0; i < r->n; i++) {
		struct ur_an_frame f = ur_recording_frame(r, i);

		ur_analysis_frame(a, &f);
	}
	ur_analysis_finish(a);
	ur_analysis_destroy(a);
}

/* "PSN of an ACK, eight more" becomes "psn-of-an-ack-eight-more". */
static void file_name(const char *fault, unsigned copy, char *to, size_t room)
{
	size_t n = 0;

	for (; *fault && n + 1 < room; fault++) {
		const char c = *fault;

		if (c >= 'A' && c <= 'Z')
			to[n++] = (char)(c - 'A' + 'a');
		else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
			to[n++] = c;
		else if (n && to[n - 1] != '-')
			to[n++] = '-';
	}
	snprintf(to + n, room - n, copy ? "-%u.pcap" : ".pcap", copy + 1);
}

static bool write_copy(struct job *j, const struct ur_recording *c, const char *name)
{
	struct ur_pcap_out *o;
	char path[4096];

	if (snprintf(path, sizeof(path), "%s/%s", j->dir, name) >= (int)sizeof(path))
		return ur_cmd_fail(0, "the name %s is too long", j->dir);
	o = ur_pcap_create(path, j->in, c->link);
	if (!o)
		return false;
	for (uint32_t i = 0; i < c->n; i++) {
		struct ur_an_frame f = ur_recording_frame(c, i);

		ur_pcap_write(o, &f);
	}
	return ur_pcap_finish(o);
}

/* Falsifies packet `i`. *shown: the fault is named, and the copy is written. False when it cannot be written. */
static bool try_packet(struct job *j, uint32_t i, unsigned copy, bool *shown)
{
	struct ur_recording c = ur_recording_copy(&j->r);
	struct ur_fault f;
	char name[96];
	bool ok = true;

	j->is_named = *shown = false;
	ur_fault(j->fault, &f);
	if (ur_mutate(j->m, j->fault, i, &c, j->frames))
		analyze(j, &c, note_finding);
	if (j->is_named) {
		*shown = true;
		file_name(f.name, copy, name, sizeof(name));
		ok = write_copy(j, &c, name);
		j->written += ok;
		fprintf(j->manifest.f, "%s\t%u\t%s\t%u\t%s\t%s\n", name, j->frames[0], f.name, j->at, ur_rules[j->named].name, f.rules);
	}
	ur_recording_free(&c);
	return ok;
}

/* Packets evenly from all that fit. */
static bool one_fault(struct job *j, unsigned copies)
{
	uint32_t n = 0, at = 0, step, tries = TRIES * copies;
	unsigned copy = 0;
	bool shown;

	for (uint32_t i = 0; i < j->r.n; i++)
		n += ur_mutation_fits(j->m, j->fault, i);
	step = n > tries ? n / tries : 1;
	for (uint32_t i = 0; i < j->r.n && copy < copies && tries; i++) {
		if (!ur_mutation_fits(j->m, j->fault, i) || at++ % step != step / 2)
			continue;
		tries--;
		if (!try_packet(j, i, copy, &shown))
			return false;
		copy += shown;
	}
	return true;
}

static int write_all(struct job *j, unsigned copies)
{
	unsigned faults = 0, without = 0;
	struct ur_fault f;

	fputs("# file\tframe\tfault\tnamed at\tby\tany of these names it\n", j->manifest.f);
	for (j->fault = 0; ur_fault(j->fault, &f); j->fault++) {
		unsigned before = j->written;

		faults++;
		if (!one_fault(j, copies))
			return UR_EXIT_FAIL;
		if (j->written == before) {
			fprintf(j->manifest.f, "# no packet of %s can show this: %s\n", j->in, f.name);
			without++;
		}
	}
	printf("%s: %u file%s in %s, for %u of %u faults; MANIFEST there says what is wrong in which frame\n", j->in, j->written,
	       ur_plural(j->written), j->dir, faults - without, faults);
	return j->written ? 0 : ur_cmd_fail(UR_EXIT_USAGE, "%s contains no packet that could be falsified", j->in);
}

static uint32_t copies = 1;
static bool force;

/* Copies of another recording among those of this one would contradict the list. */
static bool has_files(const char *dir)
{
	DIR *d = opendir(dir);
	const struct dirent *e;
	bool any = false;

	while (d && !any && (e = readdir(d)))
		any = strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	if (d)
		closedir(d);
	return any;
}

static int open_list(struct job *j)
{
	if (mkdir(j->dir, 0777) && errno != EEXIST)
		return ur_cmd_fail(UR_EXIT_FAIL, "cannot make the folder %s: %s", j->dir, strerror(errno));
	if (snprintf(j->path, sizeof(j->path), "%s/MANIFEST", j->dir) >= (int)sizeof(j->path))
		return ur_cmd_fail(UR_EXIT_USAGE, "the name %s is too long", j->dir);
	return ur_outfile_open(&j->manifest, j->path, false) ? 0 : UR_EXIT_FAIL;
}

static int write_mutations(struct job *j)
{
	int rc;

	if (j->mixed)
		return ur_cmd_fail(UR_EXIT_USAGE, "%s has frames of several kinds, or IP fragments: 'uroce pcap rewrite' makes them alike",
				   j->in);
	j->m = j->no_memory ? NULL : ur_mutator_create(&j->r);
	if (!j->m)
		return ur_cmd_fail(UR_EXIT_FAIL, "%s does not fit into memory: use a part of it", j->in);
	analyze(j, &j->r, note_seen);
	rc = open_list(j);
	if (rc)
		return rc;
	rc = write_all(j, copies);
	if (!ur_outfile_close(&j->manifest, true) && !rc)
		rc = UR_EXIT_FAIL;
	return rc;
}

/* The copies are of what could be read. */
static int mutate(struct job *j)
{
	struct ur_pcap_end end;
	int rc = UR_EXIT_USAGE;

	if (!force && has_files(j->dir))
		return ur_cmd_fail(rc, "the folder %s is not empty: name a new one, or replace its files with --force", j->dir);
	if (ur_pcap_each(j->in, keep_frame, j, &end))
		rc = ur_pcap_status(j->in, &end, write_mutations(j));
	free(end.unreadable);
	return rc;
}

static bool parse_each(const char *s)
{
	return ur_pcap_number(s, COPIES_MAX, &copies) && copies;
}

static const struct ur_option options[] = {
	{"each", "N", .parse = parse_each, .help = "number of copies for each fault, up to 1000 (default 1)"},
	{"force", .set = &force, .help = "write into DIR even if it is not empty, and replace the files of the same names"},
	{0},
};

static const struct ur_example examples[] = {
	{"uroce pcap mutate ping.pcapng wrong", "One copy for each kind of fault, in the new folder `wrong`."},
	{"uroce pcap mutate --each 10 ping.pcapng wrong", "Ten copies of each."},
	{0},
};

static int run_pcap_mutate(int argc, char **argv)
{
	struct job *j = calloc(1, sizeof(*j));
	int rc;

	(void)argc;
	if (!j)
		return ur_cmd_fail(UR_EXIT_FAIL, "no memory");
	j->in = argv[0];
	j->dir = argv[1];
	rc = mutate(j);
	ur_mutator_destroy(j->m);
	ur_recording_free(&j->r);
	free(j);
	return rc;
}

const struct ur_command ur_pcap_mutate = {
	.name = "mutate",
	.operands = "IN DIR",
	.complete = UR_COMPLETE_FILE,
	.summary = "write falsified copies, one for each kind of fault, to test programs that check captures",
	.text = "Packets are dropped, duplicated, moved, or changed in one field, and have a right ICRC again unless that is what is "
		"wrong. The file `MANIFEST` in DIR says what is wrong in which frame. DIR is made; one that exists has to be empty, unless "
		"`--force` is given. Packets are chosen so "
		"that `uroce pcap check` can name the fault. The capture has to fit into memory.",
	.status = "0; 1 when a file cannot be written, 2 when IN cannot be read to its end or holds nothing that could be falsified, or "
		  "when DIR is not empty.",
	.options = options,
	.examples = examples,
	.run = run_pcap_mutate,
};
