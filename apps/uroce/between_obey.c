/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <string.h>

#include "between_control.h"
#include "host/clock.h"

struct order {
	struct ur_between_run *run;
	const char *rest; /* of the line, behind the word */
	FILE *answer;
};

/* --- rules --- */

static void add_text(const struct order *o, const char *text)
{
	struct ur_fault_rule rule;
	unsigned at, number;
	const char *wrong;

	if (strlen(text) >= UR_BETWEEN_RULE_TEXT) {
		fprintf(o->answer, "error: a rule has at most %d characters\n", UR_BETWEEN_RULE_TEXT - 1);
		return;
	}
	wrong = ur_fault_rule_parse(text, &rule, &at);
	if (wrong) {
		fprintf(o->answer, "error: rule '%s' is not understood at '%s': %s\n", text, text + at, wrong);
		return;
	}
	number = ur_between_add(o->run->cable, ur_clock_now(), &rule, text);
	if (number)
		fprintf(o->answer, "ok: rule %u: %s\n", number, text);
	else
		fprintf(o->answer, "error: there are %d rules, or there is no memory: delete some\n", UR_BETWEEN_RULES);
}

static void add(const struct order *o)
{
	add_text(o, o->rest);
}

/* Nothing passes for a while. */
static void partition(const struct order *o)
{
	char text[UR_BETWEEN_TOLD + 8];

	snprintf(text, sizeof(text), "drop %s", o->rest);
	if (strstr(o->rest, "for="))
		add_text(o, text);
	else
		fputs("error: a partition needs its length, such as partition for=3s\n", o->answer);
}

static void delete (const struct order *o)
{
	const char *rest;
	uint64_t n;

	if (ur_between_parse_number(o->rest, UINT32_MAX, &n, &rest) && !*rest && ur_between_delete(o->run->cable, (unsigned)n))
		fprintf(o->answer, "ok: rule %u is deleted\n", (unsigned)n);
	else
		fprintf(o->answer, "error: there is no rule '%s'\n", o->rest);
}

static void clear(const struct order *o)
{
	const struct ur_between_rule *rule;
	unsigned n = 0;

	for (unsigned i = 0; (rule = ur_between_rule(o->run->cable, i)); i++)
		n += ur_between_delete(o->run->cable, rule->number);
	fprintf(o->answer, "ok: %u rule%s deleted\n", n, n == 1 ? " is" : "s are");
}

/* --- the bottleneck --- */

/* "10Gbit queue=200KB mark-at=50KB", in any order behind the rate; or "none". */
static bool parse_limit(char *text, struct ur_between_limit *l)
{
	char *save, *word = strtok_r(text, " ", &save);
	bool ok = word && (strcmp(word, "none") == 0 || ur_between_parse_rate(word, &l->rate));

	while (ok && (word = strtok_r(NULL, " ", &save))) {
		if (strncmp(word, "queue=", 6) == 0)
			ok = l->rate && ur_between_parse_bytes(word + 6, &l->queue);
		else if (strncmp(word, "mark-at=", 8) == 0)
			ok = l->rate && ur_between_parse_bytes(word + 8, &l->mark_at);
		else
			ok = false;
	}
	return ok;
}

static void rate(const struct order *o)
{
	const struct ur_between_limit *now = ur_between_limit(o->run->cable);
	struct ur_between_limit l = {.queue = now->queue, .mark_at = now->mark_at};
	char text[UR_BETWEEN_TOLD + 1];

	snprintf(text, sizeof(text), "%s", o->rest);
	if (!parse_limit(text, &l))
		fputs("error: a rate is such as 10Gbit, at most 1000Gbit, or none; behind it queue=200KB and mark-at=50KB\n", o->answer);
	else if (ur_between_set_limit(o->run->cable, ur_clock_now(), &l))
		fputs("error: out of memory\n", o->answer);
	else
		fprintf(o->answer, "ok: rate %s\n", o->rest);
}

/* --- what there is --- */

static void status(const struct order *o)
{
	ur_between_report_now(o->run);
	ur_between_report_line(o->run, o->answer);
}

static void json(const struct order *o)
{
	ur_between_report_now(o->run);
	ur_between_report_json(o->run, o->answer);
}

static void metrics(const struct order *o)
{
	ur_between_metrics(o->run, o->answer);
}

static void end(const struct order *o)
{
	o->run->stop = o->run->asked = true;
	fputs("ok: it ends\n", o->answer);
}

/* --- words --- */

static const struct {
	const char *word;
	bool more; /* something follows it */
	void (*obey)(const struct order *o);
} words[] = {
	{"add", true, add},   {"delete", true, delete},  {"clear", false, clear}, {"partition", true, partition},
	{"rate", true, rate}, {"status", false, status}, {"json", false, json},   {"metrics", false, metrics},
	{"end", false, end},
};

/* It is shown to people, and becomes the text of a rule. */
static bool is_plain(const char *line)
{
	for (; *line; line++)
		if (*line < ' ' || *line > '~')
			return false;
	return true;
}

void ur_between_obey(struct ur_between_run *r, const char *line, FILE *answer)
{
	const size_t n = strcspn(line, " ");
	const struct order o = {.run = r, .rest = line + n + strspn(line + n, " "), .answer = answer};

	for (unsigned i = 0; is_plain(line) && i < ur_array_size(words); i++) {
		if (strlen(words[i].word) != n || memcmp(words[i].word, line, n) != 0 || words[i].more != (*o.rest != 0))
			continue;
		words[i].obey(&o);
		return;
	}
	fputs("error: it is one of: add RULE, delete NUMBER, clear, partition for=TIME, rate RATE, status, metrics, end\n", answer);
}
