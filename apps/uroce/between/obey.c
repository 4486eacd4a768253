/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <string.h>

#include "apps/uroce/between/control.h"
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
	wrong = ur_fault_rule_parse_cable(text, &rule, &at);
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

	if (ur_between_parse_number(o->rest, UINT32_MAX, &n, &rest) && !*rest &&
	    ur_between_delete(o->run->cable, ur_clock_now(), (unsigned)n))
		fprintf(o->answer, "ok: rule %u is deleted\n", (unsigned)n);
	else
		fprintf(o->answer, "error: there is no rule '%s'\n", o->rest);
}

static void clear(const struct order *o)
{
	const struct ur_between_rule *rule;
	const ur_time now = ur_clock_now();
	unsigned n = 0;

	for (unsigned i = 0; (rule = ur_between_rule(o->run->cable, i)); i++)
		n += ur_between_delete(o->run->cable, now, rule->number);
	fprintf(o->answer, "ok: %u rule%s deleted\n", n, n == 1 ? " is" : "s are");
}

/* Lets frames go that rules hold. */
static void release(const struct order *o)
{
	const char *rest = o->rest;
	uint64_t number = 0;
	unsigned n;

	if (*rest && (!ur_between_parse_number(rest, UINT32_MAX, &number, &rest) || *rest || !number)) {
		fprintf(o->answer, "error: there is no rule '%s'\n", o->rest);
		return;
	}
	n = ur_between_release(o->run->cable, ur_clock_now(), (unsigned)number);
	fprintf(o->answer, "ok: %u frame%s released\n", n, n == 1 ? " is" : "s are");
}

/* --- the bottleneck --- */

/* "10Gbit queue=200KB mark-at=50KB pause-at=80KB", in any order after the rate; or "none". */
static bool parse_limit(char *text, struct ur_between_limit *l)
{
	static const struct {
		const char *key;
		bool (*parse)(const char *value, struct ur_between_limit *l);
	} keys[] = {{"queue=", ur_between_parse_queue},
		    {"mark-at=", ur_between_parse_mark_at},
		    {"pause-at=", ur_between_parse_pause_at},
		    {"pause=", ur_between_parse_pause},
		    {"obey-pause=", ur_between_parse_obey}};
	char *save, *word = strtok_r(text, " ", &save);
	bool ok = word && (strcmp(word, "none") == 0 || ur_between_parse_rate(word, l));

	while (ok && (word = strtok_r(NULL, " ", &save))) {
		ok = false;
		for (unsigned i = 0; i < ur_array_size(keys); i++)
			if (strncmp(word, keys[i].key, strlen(keys[i].key)) == 0)
				ok = l->rate && keys[i].parse(word + strlen(keys[i].key), l);
	}
	return ok;
}

static void rate(const struct order *o)
{
	struct ur_between_limit l = *ur_between_limit(o->run->cable);
	char text[UR_BETWEEN_TOLD + 1];

	l.rate = 0;
	snprintf(text, sizeof(text), "%s", o->rest);
	if (!parse_limit(text, &l))
		fputs("error: the rate is not understood: give one such as 10Gbit, at most 1000Gbit, or none; after a rate there may be "
		      "queue=200KB, mark-at=50KB or 50KB:150KB or none, pause-at=80KB or 80KB:40KB or none, pause=3 or pause=link, and "
		      "obey-pause=yes or no\n",
		      o->answer);
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

static void stop_run(const struct order *o)
{
	o->run->stop = o->run->asked = true;
	fputs("ok: it ends\n", o->answer);
}

/* --- words --- */

static const struct {
	const char *word;
	enum { ALONE, MORE, EITHER } follows; /* something does */
	void (*obey)(const struct order *o);
} words[] = {
	{"add", MORE, add},       {"delete", MORE, delete},     {"clear", ALONE, clear},   {"partition", MORE, partition},
	{"rate", MORE, rate},     {"release", EITHER, release}, {"status", ALONE, status}, {"json", ALONE, json},
	{"end", ALONE, stop_run},
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
		if (strlen(words[i].word) != n || memcmp(words[i].word, line, n) != 0 ||
		    (words[i].follows != EITHER && (words[i].follows == MORE) != (*o.rest != 0)))
			continue;
		words[i].obey(&o);
		return;
	}
	fputs("error: the request is not understood: give one of add RULE, delete NUMBER, clear, partition for=TIME, rate RATE, release "
	      "[NUMBER], status, end\n",
	      answer);
}
