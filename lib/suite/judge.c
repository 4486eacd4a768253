/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares what is expected of a case with its result. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "suite/suite.h"

enum outcome { HOLDS, BROKEN, UNKNOWN };

struct verdict {
	enum ur_suite_verdict v;
	char *why;
	size_t room, n;
};

const char *ur_suite_verdict_word(enum ur_suite_verdict v)
{
	static const char *const words[] = {
		[UR_SUITE_PASS] = "pass", [UR_SUITE_NOTE] = "note", [UR_SUITE_UNTESTED] = "untested", [UR_SUITE_FAIL] = "fail"};

	return words[v];
}

/* As far as there is room. */
__attribute__((format(printf, 3, 4))) static void add_verdict(struct verdict *to, enum ur_suite_verdict v, const char *fmt, ...)
{
	char sentence[2 * UR_SUITE_TEXT];
	va_list ap;

	if (v > to->v)
		to->v = v;
	va_start(ap, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, ap);
	va_end(ap);
	to->n += (size_t)snprintf(to->why + to->n, to->room - to->n, "%s%s", to->n ? "; " : "", sentence);
	if (to->n >= to->room)
		to->n = to->room - 1;
}

static bool compare(double a, enum ur_suite_op op, double b)
{
	switch (op) {
	case UR_SUITE_EQ: return a >= b && a <= b;
	case UR_SUITE_NE: return a < b || a > b;
	case UR_SUITE_LT: return a < b;
	case UR_SUITE_LE: return a <= b;
	case UR_SUITE_GT: return a > b;
	default: return a >= b;
	}
}

/* A word can only be equal or different; a number is different from every word. */
static enum outcome choice(const struct ur_suite_fact *fact, enum ur_suite_op op, const struct ur_suite_value *v,
			   const struct ur_suite_facts *f)
{
	const struct ur_suite_fact *other = v->is_fact ? ur_suite_fact(f, v->name) : NULL;
	const bool wants_word = v->is_word || (other && other->kind == UR_SUITE_WORD);

	if (v->is_fact && !other)
		return UNKNOWN;
	if ((fact->kind == UR_SUITE_WORD) != wants_word)
		return op == UR_SUITE_NE ? HOLDS : BROKEN;
	if (wants_word) {
		const bool same = strcmp(fact->word, other ? other->word : v->name) == 0;

		return (op == UR_SUITE_EQ && same) || (op == UR_SUITE_NE && !same) ? HOLDS : BROKEN;
	}
	return compare(fact->number, op, v->factor * (other ? other->number : v->number)) ? HOLDS : BROKEN;
}

/* One choice is enough; of those that must not be, each has to be different. */
static enum outcome holds(const struct ur_suite_expectation *e, const struct ur_suite_facts *f)
{
	const struct ur_suite_fact *fact = ur_suite_fact(f, e->fact);
	const bool all = e->op == UR_SUITE_NE;
	enum outcome result = all ? HOLDS : BROKEN;

	if (!fact)
		return UNKNOWN;
	for (unsigned i = 0; i < e->nchoices; i++) {
		const enum outcome o = choice(fact, e->op, &e->choice[i], f);

		if (o == UNKNOWN || o != result)
			result = o;
		if (o == UNKNOWN || (o == HOLDS) != all)
			break;
	}
	return result;
}

/* What every case needs. */
static void judge_run(struct verdict *to, const struct ur_suite_case *c, const struct ur_suite_facts *f)
{
	static const char *const ends[] = {"server", "client"};
	const double unused = ur_suite_number(f, "rules_unused"), lost = ur_suite_number(f, "kernel_lost");
	char name[UR_SUITE_NAME];

	if (unused > 0 && !c->may_unused)
		add_verdict(to, UR_SUITE_UNTESTED, "%.0f of the case's rules %s never applied", unused, unused > 1 ? "were" : "was");
	if (lost > 0)
		add_verdict(to, UR_SUITE_UNTESTED, "%.0f frame%s by the kernel before the cable received %s", lost,
			    lost > 1 ? "s were lost" : " was lost", lost > 1 ? "them" : "it");
	for (unsigned i = 0; !c->may_fail && i < 2; i++) {
		const enum ur_suite_verdict v = unused > 0 ? UR_SUITE_UNTESTED : UR_SUITE_FAIL;
		const struct ur_suite_fact *status;

		snprintf(name, sizeof(name), "%s.status", ends[i]);
		status = ur_suite_fact(f, name);
		if (!status)
			add_verdict(to, v, "the %s's program did not end", ends[i]);
		else if (status->number > 0)
			add_verdict(to, v, "the %s's program ended with status %.0f", ends[i], status->number);
	}
}

enum ur_suite_verdict ur_suite_judge(const struct ur_suite_case *c, const struct ur_suite_facts *f, char *why, size_t room)
{
	static const enum ur_suite_verdict broken[] = {
		[UR_SUITE_NEED] = UR_SUITE_UNTESTED, [UR_SUITE_DEMAND] = UR_SUITE_FAIL, [UR_SUITE_PREFER] = UR_SUITE_NOTE};
	struct verdict to = {.why = why, .room = room};
	unsigned known = 0, unknown = 0;

	*why = 0;
	judge_run(&to, c, f);
	for (unsigned i = 0; i < c->nexpect && to.v != UR_SUITE_UNTESTED; i++) {
		const struct ur_suite_expectation *e = &c->expect[i];
		const enum outcome o = holds(e, f);

		if (o == BROKEN || (o == UNKNOWN && e->level == UR_SUITE_NEED))
			add_verdict(&to, broken[e->level], "%s", e->text);
		if (e->level != UR_SUITE_NEED) {
			known += o != UNKNOWN;
			unknown += o == UNKNOWN;
		}
	}
	if (to.v < UR_SUITE_UNTESTED && unknown && !known)
		add_verdict(&to, UR_SUITE_UNTESTED, "no fact of the expectations is known, such as %s", c->expect[c->nexpect - 1].fact);
	return to.v;
}
