/* SPDX-License-Identifier: BSD-3-Clause */
/* What the report of a cable says, as a list of facts, and in words. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "suite/suite.h"

#define LOSSES 16   /* of which each has facts of its own */
#define DESCRIBED 3 /* and words */

/* --- the list --- */

static struct ur_suite_fact *find_or_add(struct ur_suite_facts *f, const char *name)
{
	struct ur_suite_fact *to = NULL;

	for (unsigned i = 0; i < f->n && !to; i++)
		if (strcmp(f->list[i].name, name) == 0)
			to = &f->list[i];
	if (!to && f->n < UR_SUITE_FACTS)
		to = &f->list[f->n++];
	if (!to) {
		f->lost++;
		return NULL;
	}
	*to = (struct ur_suite_fact){.kind = UR_SUITE_NUMBER};
	snprintf(to->name, sizeof(to->name), "%s", name);
	return to;
}

void ur_suite_set(struct ur_suite_facts *f, const char *name, enum ur_suite_kind kind, double number)
{
	struct ur_suite_fact *to = find_or_add(f, name);

	if (!to)
		return;
	to->kind = kind;
	to->number = number;
}

void ur_suite_set_word(struct ur_suite_facts *f, const char *name, const char *word)
{
	struct ur_suite_fact *to = find_or_add(f, name);

	if (!to)
		return;
	to->kind = UR_SUITE_WORD;
	snprintf(to->word, sizeof(to->word), "%s", word);
	for (char *c = to->word; *c; c++) /* a word of a case has no blanks */
		if (*c == ' ')
			*c = '-';
}

const struct ur_suite_fact *ur_suite_fact(const struct ur_suite_facts *f, const char *name)
{
	for (unsigned i = 0; i < f->n; i++)
		if (strcmp(f->list[i].name, name) == 0)
			return &f->list[i];
	return NULL;
}

double ur_suite_number(const struct ur_suite_facts *f, const char *name)
{
	const struct ur_suite_fact *fact = ur_suite_fact(f, name);

	return fact ? fact->number : 0;
}

static void add(struct ur_suite_facts *f, const char *name, double number)
{
	ur_suite_set(f, name, UR_SUITE_NUMBER, ur_suite_number(f, name) + number);
}

/* --- from the report --- */

static double get_number(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

static const char *word(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static void read_totals(struct ur_suite_facts *f, const json_t *report)
{
	static const char *const did[] = {"dropped", "duplicated",    "delayed",      "reordered", "corrupted",
					  "marked",  "queue_dropped", "queue_marked", "no_room"};
	const json_t *done = json_object_get(report, "done"), *one;
	char name[UR_SUITE_NAME];
	size_t i;

	for (i = 0; i < ur_array_size(did); i++)
		ur_suite_set(f, did[i], UR_SUITE_NUMBER, get_number(done, did[i]));
	ur_suite_set(f, "kernel_lost", UR_SUITE_NUMBER, 0);
	json_array_foreach(json_object_get(report, "ends"), i, one) add(f, "kernel_lost", get_number(one, "kernel_lost"));
	ur_suite_set(f, "rules_unused", UR_SUITE_NUMBER, 0);
	json_array_foreach(json_object_get(report, "rules"), i, one)
	{
		snprintf(name, sizeof(name), "rule%zu.hits", i + 1);
		ur_suite_set(f, name, UR_SUITE_NUMBER, get_number(one, "hits"));
		add(f, "rules_unused", get_number(one, "hits") < 1);
	}
}

/* How it went with congestion, of a flow of requests; of several the shortest time, and the last rate. */
static void read_congestion(struct ur_suite_facts *f, const json_t *congestion)
{
	static const struct {
		const char *in, *key, *fact;
		enum ur_suite_kind kind;
	} rows[] = {
		{NULL, "cnp_gap_min_ns", "cnp_gap_min", UR_SUITE_TIME},
		{"mark_to_cnp", "median_ns", "cnp_delay", UR_SUITE_TIME},
		{"around_cnp", "before_bps", "rate_before_cnp", UR_SUITE_NUMBER},
		{"around_cnp", "after_bps", "rate_after_cnp", UR_SUITE_NUMBER},
	};

	for (unsigned i = 0; i < ur_array_size(rows); i++) {
		const json_t *v = json_object_get(rows[i].in ? json_object_get(congestion, rows[i].in) : congestion, rows[i].key);
		const struct ur_suite_fact *known = ur_suite_fact(f, rows[i].fact);

		if (v && (!known || rows[i].kind != UR_SUITE_TIME || json_number_value(v) < known->number))
			ur_suite_set(f, rows[i].fact, rows[i].kind, json_number_value(v));
	}
}

static void read_flows(struct ur_suite_facts *f, const json_t *flows)
{
	static const struct {
		const char *key, *name[2]; /* its names for requests and for responses; NULL: it is not a fact */
	} sums[] = {
		{"packets", {"packets", "responses"}},
		{"repeats", {"repeats", "response_repeats"}},
		{"needless", {"needless", "response_needless"}},
		{"timeouts", {"timeouts", NULL}},
		{"naks", {NULL, "naks"}},
		{"cnps", {NULL, "cnps"}},
		{"probes", {"probes", NULL}},
		{"timers", {"timers", NULL}},
	};
	const json_t *flow;
	size_t i;

	for (unsigned k = 0; k < ur_array_size(sums); k++)
		for (unsigned r = 0; r < 2; r++)
			if (sums[k].name[r])
				ur_suite_set(f, sums[k].name[r], UR_SUITE_NUMBER, 0);
	json_array_foreach(flows, i, flow)
	{
		const bool responses = json_is_true(json_object_get(flow, "responses"));

		for (unsigned k = 0; k < ur_array_size(sums); k++)
			if (sums[k].name[responses])
				add(f, sums[k].name[responses], get_number(flow, sums[k].key));
		if (!responses)
			read_congestion(f, json_object_get(flow, "congestion"));
	}
}

static const char *name_of_loss(char to[UR_SUITE_NAME], unsigned n, const char *what)
{
	snprintf(to, UR_SUITE_NAME, "loss%u.%s", n, what);
	return to;
}

static void set_word_of_loss(struct ur_suite_facts *f, unsigned n, const char *what, const char *said)
{
	char name[UR_SUITE_NAME];

	ur_suite_set_word(f, name_of_loss(name, n, what), said ? said : "");
}

static void set_time_of_loss(struct ur_suite_facts *f, unsigned n, const char *what, double ns)
{
	char name[UR_SUITE_NAME];

	ur_suite_set(f, name_of_loss(name, n, what), UR_SUITE_TIME, ns);
}

/* The words without the service: all cases are about one. */
static const char *opcode_of(const json_t *event)
{
	const char *name = word(event, "opcode");

	return strncmp(name, "RC_", 3) == 0 ? name + 3 : name;
}

static void read_loss(struct ur_suite_facts *f, unsigned n, const json_t *e, double before)
{
	const json_t *told = json_object_get(e, "told_ns"), *again = json_object_get(e, "again_ns");
	const char *by = word(e, "told_by"), *how = word(e, "recovery");

	set_word_of_loss(f, n, "opcode", opcode_of(e));
	set_word_of_loss(f, n, "done", json_string_value(json_array_get(json_object_get(e, "done"), 0)));
	set_word_of_loss(f, n, "told", strcmp(by, "repeated READ request") == 0 ? "READ" : by);
	set_word_of_loss(f, n, "recovery", strcmp(how, "nothing followed it") == 0 ? "alone" : how);
	if (told)
		set_time_of_loss(f, n, "told_after", json_number_value(told));
	if (again)
		set_time_of_loss(f, n, "again_after", json_number_value(again));
	if (told && again)
		set_time_of_loss(f, n, "reaction", json_number_value(again) - json_number_value(told));
	if (n > 1)
		set_time_of_loss(f, n, "gap", get_number(e, "time_ns") - before);
}

static void read_events(struct ur_suite_facts *f, const json_t *events)
{
	double first = 0, last = 0;
	unsigned n = 0;
	const json_t *e;
	size_t i;

	ur_suite_set(f, "untold", UR_SUITE_NUMBER, 0);
	json_array_foreach(events, i, e)
	{
		if (!json_object_get(e, "told_by"))
			continue;
		first = n ? first : get_number(e, "time_ns");
		if (++n <= LOSSES)
			read_loss(f, n, e, last);
		last = get_number(e, "time_ns");
		add(f, "untold", strcmp(word(e, "told_by"), "none") == 0);
	}
	ur_suite_set(f, "losses", UR_SUITE_NUMBER, n);
	ur_suite_set(f, "span", UR_SUITE_TIME, last - first);
}

static void read_programs(struct ur_suite_facts *f, const json_t *programs)
{
	static const char *const ends[] = {"server", "client"};
	char name[UR_SUITE_NAME];
	const json_t *p;
	size_t i;

	json_array_foreach(programs, i, p)
	{
		const json_t *status = json_object_get(p, "status"), *by_signal = json_object_get(p, "signal");

		if (i == ur_array_size(ends))
			break;
		snprintf(name, sizeof(name), "%s.status", ends[i]);
		if (status || by_signal)
			ur_suite_set(f, name, UR_SUITE_NUMBER, status ? json_number_value(status) : 128 + json_number_value(by_signal));
		snprintf(name, sizeof(name), "%s.seconds", ends[i]);
		if (json_object_get(p, "seconds"))
			ur_suite_set(f, name, UR_SUITE_TIME, get_number(p, "seconds") * UR_NS_PER_S);
	}
}

bool ur_suite_facts_read(struct ur_suite_facts *f, const json_t *report)
{
	*f = (struct ur_suite_facts){.n = 0};
	if (!json_is_object(json_object_get(report, "done")) || !json_is_array(json_object_get(report, "events")))
		return false;
	read_totals(f, report);
	read_flows(f, json_object_get(report, "flows"));
	read_events(f, json_object_get(report, "events"));
	read_programs(f, json_object_get(report, "programs"));
	return true;
}

/* --- in words --- */

struct words {
	char *to;
	size_t room, n;
};

__attribute__((format(printf, 2, 3))) static void append_text(struct words *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	w->n += (size_t)vsnprintf(w->to + w->n, w->room - w->n, fmt, ap);
	va_end(ap);
	if (w->n >= w->room)
		w->n = w->room - 1;
}

static const struct ur_suite_fact *of_loss(const struct ur_suite_facts *f, unsigned n, const char *what)
{
	char name[UR_SUITE_NAME];

	return ur_suite_fact(f, name_of_loss(name, n, what));
}

static void say_time(struct words *w, double ns)
{
	if (ns < UR_NS_PER_MS)
		append_text(w, "%.0f us", ns / UR_NS_PER_US);
	else if (ns < UR_NS_PER_S)
		append_text(w, "%.1f ms", ns / UR_NS_PER_MS);
	else
		append_text(w, "%.2f s", ns / UR_NS_PER_S);
}

/* Empty when it is not known. */
static const char *word_of_loss(const struct ur_suite_facts *f, unsigned n, const char *what)
{
	const struct ur_suite_fact *fact = of_loss(f, n, what);

	return fact ? fact->word : "";
}

static void say_recovery(struct words *w, const struct ur_suite_facts *f, unsigned n)
{
	static const char *const said[] = {"go-back-N", "selective", "lost-again"};
	const struct ur_suite_fact *again = of_loss(f, n, "again_after"), *reaction = of_loss(f, n, "reaction");
	const bool after_told = reaction && reaction->number >= 0;
	const char *how = word_of_loss(f, n, "recovery");

	if (!again) {
		append_text(w, ", not repeated");
		return;
	}
	append_text(w, ", %s %s", strcmp(how, "a-later-acknowledgement") == 0 ? "another acknowledgement" : "repeated",
		    after_told ? "" : "after ");
	say_time(w, after_told ? reaction->number : again->number);
	append_text(w, "%s", after_told ? " later" : "");
	for (unsigned i = 0; i < ur_array_size(said); i++)
		if (strcmp(how, said[i]) == 0)
			append_text(w, " (%s)", how);
}

static void say_loss(struct words *w, const struct ur_suite_facts *f, unsigned n)
{
	const struct ur_suite_fact *after = of_loss(f, n, "told_after");
	const char *told = word_of_loss(f, n, "told");

	append_text(w, "%s%s %s: ", w->n ? "; " : "", word_of_loss(f, n, "opcode"), word_of_loss(f, n, "done"));
	append_text(w, "%s", !after ? "no NAK" : strcmp(told, "READ") == 0 ? "READ again after " : told);
	if (after) {
		append_text(w, "%s", strcmp(told, "READ") == 0 ? "" : " after ");
		say_time(w, after->number);
	}
	say_recovery(w, f, n);
}

/* "3 packets repeated", if there are any. */
static void say_count(struct words *w, const struct ur_suite_facts *f, const char *name, const char *what)
{
	const double n = ur_suite_number(f, name);

	if (n > 0)
		append_text(w, "%s%.0f %s%s", w->n ? "; " : "", n, what, n > 1 ? "s" : "");
}

static void say_repeats(struct words *w, const struct ur_suite_facts *f, const char *name, const char *needless, const char *what)
{
	const double n = ur_suite_number(f, name), of_these = ur_suite_number(f, needless);

	if (n > 0)
		append_text(w, "%s%.0f %s%s repeated", w->n ? "; " : "", n, what, n > 1 ? "s" : "");
	if (of_these > 0)
		append_text(w, ", %.0f needlessly", of_these);
}

static void say_marks(struct words *w, const struct ur_suite_facts *f)
{
	const double marks = ur_suite_number(f, "marked") + ur_suite_number(f, "queue_marked");

	if (marks < 1)
		return;
	if (ur_suite_number(f, "cnps") < 1)
		append_text(w, "%sno CNP", w->n ? "; " : "");
	append_text(w, " for %.0f mark%s", marks, marks > 1 ? "s" : "");
	if (!ur_suite_fact(f, "cnp_gap_min"))
		return;
	append_text(w, ", at least ");
	say_time(w, ur_suite_number(f, "cnp_gap_min"));
	append_text(w, " apart");
}

void ur_suite_describe(const struct ur_suite_facts *f, char *to, size_t room)
{
	struct words w = {.to = to, .room = room};
	const double losses = ur_suite_number(f, "losses");

	*to = 0;
	for (unsigned i = 1; i <= DESCRIBED && i <= losses; i++)
		say_loss(&w, f, i);
	if (losses > DESCRIBED) {
		append_text(&w, "; %.0f losses in all, over ", losses);
		say_time(&w, ur_suite_number(f, "span"));
	}
	say_repeats(&w, f, "repeats", "needless", "request");
	say_repeats(&w, f, "response_repeats", "response_needless", "response");
	if (losses < 1)
		say_count(&w, f, "naks", "NAK");
	say_count(&w, f, "cnps", "CNP");
	say_marks(&w, f);
	if (!w.n)
		append_text(&w, "nothing was repeated");
}
