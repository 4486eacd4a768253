/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a file frame by frame, with or without the analysis. Frames are not kept; findings are, up to a limit, with their sentences. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "analyze/view/effect.h"
#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/pcap/file/source.h"
#include "apps/uroce/pcap/read/read.h"

#define KEEP 10000 /* findings of a rule; more are counted */

const char *ur_pcap_service(uint8_t service)
{
	switch (service) {
	case UR_RC: return "RC";
	case UR_UC: return "UC";
	case UR_XRC: return "XRC";
	}
	return "unknown service";
}

const char *ur_pcap_time(uint64_t ns, char to[24])
{
	static const struct {
		uint64_t ns;
		const char *name;
	} units[] = {{UR_NS_PER_S, "s"}, {UR_NS_PER_MS, "ms"}, {UR_NS_PER_US, "us"}, {1, "ns"}};
	unsigned u = 0;
	double v;

	while (u < 3 && ns < units[u].ns)
		u++;
	v = (double)ns / (double)units[u].ns;
	snprintf(to, 24, "%.*f %s", v < 10 && u < 3 ? 2 : v < 100 && u < 3 ? 1 : 0, v, units[u].name);
	return to;
}

const char *ur_pcap_amount(uint64_t n, const char *unit, char to[24])
{
	static const char *const prefixes[] = {"", "k", "M", "G", "T"};
	double v = (double)n;
	unsigned u = 0;

	while (v >= 1000 && u + 1 < ur_array_size(prefixes)) {
		v /= 1000;
		u++;
	}
	snprintf(to, 24, "%.*f %s%s", u && v < 100 ? 1 : 0, v, prefixes[u], unit);
	return to;
}

static void found(void *ctx, const struct ur_finding *f)
{
	struct ur_pcap_file *file = ctx;
	struct ur_an_totals t;
	char text[UR_PCAP_TEXT];

	ur_analysis_totals(file->analysis, &t);
	if (t.findings[f->rule] > KEEP) {
		file->untold[f->rule]++;
		return;
	}
	if (file->n == file->room) {
		size_t room = file->room ? 2 * file->room : 64;
		struct ur_pcap_finding *more = realloc(file->found, room * sizeof(*more));

		if (!more)
			return;
		file->found = more;
		file->room = room;
	}
	ur_finding_text(f, text, sizeof(text));
	file->found[file->n] = (struct ur_pcap_finding){f->frame, (uint32_t)file->n, f->rule, f->severity, f->when, f->qpn, strdup(text)};
	if (!file->found[file->n].text)
		return;
	file->n++;
	if (file->tell)
		file->tell(file, &file->found[file->n - 1]);
}

static int by_frame(const void *x, const void *y)
{
	const struct ur_pcap_finding *a = x, *b = y;

	if (a->frame != b->frame)
		return a->frame < b->frame ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

bool ur_pcap_each(const char *name, ur_pcap_frame_fn each, void *ctx, struct ur_pcap_end *end)
{
	struct ur_pcap_source s;
	bool roce;

	*end = (struct ur_pcap_end){0};
	if (!ur_pcap_source_open(&s, name))
		return false;
	while (ur_pcap_source_next(&s))
		each(ctx, &s.frame);
	*end = (struct ur_pcap_end){s.frame.number, s.why ? strdup(s.why) : NULL};
	roce = ur_pcap_source_has_roce(&s);
	ur_pcap_source_close(&s);
	return roce;
}

int ur_pcap_status(const char *name, const struct ur_pcap_end *end, int status)
{
	if (!end->unreadable)
		return status;
	return ur_cmd_fail(UR_EXIT_USAGE, "%s cannot be read after frame %u: %s", name, end->frames, end->unreadable);
}

bool ur_pcap_number(const char *s, uint32_t max, uint32_t *v)
{
	unsigned long n;
	char *end;

	if (*s < '0' || *s > '9')
		return false;
	errno = 0;
	n = strtoul(s, &end, 0);
	*v = (uint32_t)n;
	return !*end && !errno && n <= max;
}

uint64_t ur_pcap_salt(void)
{
	uint64_t salt;

	return getrandom(&salt, sizeof(salt), 0) == sizeof(salt) ? salt : 0;
}

static void analyze_frame(void *ctx, const struct ur_an_frame *f)
{
	ur_analysis_frame(ctx, f);
}

bool ur_pcap_each_event(const char *name, ur_an_event_fn each, void *ctx)
{
	struct ur_analysis *a = ur_analysis_create(NULL, NULL, ur_pcap_salt());
	struct ur_pcap_end end;
	bool ok;

	if (!a) {
		ur_cmd_fail(0, "cannot read %s: out of memory", name);
		return false;
	}
	ur_analysis_observe(a, each, ctx);
	ok = ur_pcap_each(name, analyze_frame, a, &end);
	ur_analysis_finish(a);
	ur_analysis_destroy(a);
	free(end.unreadable);
	return ok;
}

static bool init_file(struct ur_pcap_file *f, const char *name)
{
	memset(f, 0, sizeof(*f));
	f->name = name;
	f->analysis = ur_analysis_create(found, f, ur_pcap_salt());
	if (!f->analysis)
		ur_cmd_fail(0, "cannot read %s: out of memory", name);
	return f->analysis;
}

static bool read_all(struct ur_pcap_file *f)
{
	if (!ur_pcap_each(f->name, analyze_frame, f->analysis, &f->end))
		return false;
	ur_analysis_finish(f->analysis);
	if (f->n)
		qsort(f->found, f->n, sizeof(*f->found), by_frame);
	return true;
}

bool ur_pcap_open(struct ur_pcap_file *f, const char *name)
{
	return init_file(f, name) && read_all(f);
}

bool ur_pcap_open_telling(struct ur_pcap_file *f, const char *name,
			  void (*tell)(const struct ur_pcap_file *f, const struct ur_pcap_finding *g))
{
	if (!init_file(f, name))
		return false;
	f->tell = tell;
	return read_all(f);
}

bool ur_pcap_open_slowed(struct ur_pcap_file *f, const char *name)
{
	if (!init_file(f, name))
		return false;
	f->effects = calloc(1, sizeof(*f->effects));
	if (f->effects)
		ur_analysis_observe(f->analysis, ur_effects_observe, f->effects);
	return read_all(f);
}

const struct ur_effects *ur_pcap_effects(const struct ur_pcap_file *f, const struct ur_an_half *h)
{
	return f->effects ? ur_effects_of(h) : NULL;
}

const char *ur_pcap_sentence(const struct ur_pcap_file *f, enum ur_rule rule, uint32_t frame)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->found[i].rule == rule && f->found[i].frame == frame)
			return f->found[i].text;
	return NULL;
}

void ur_pcap_close(struct ur_pcap_file *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->found[i].text);
	free(f->found);
	free(f->end.unreadable);
	ur_analysis_destroy(f->analysis);
	if (f->effects)
		ur_effects_free(f->effects);
	free(f->effects);
}
