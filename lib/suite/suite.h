/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cases of a suite for `uroce between --suite`: what is done to which packets while two programs run, and what is expected of the hosts. A
 * case is text (parse.c). Its result is a list of named facts, which facts.c takes from the cable's report; judge.c compares the two.
 */
#ifndef UR_SUITE_H
#define UR_SUITE_H

#include <jansson.h>

#include "base/base.h"

#define UR_SUITE_NAME 48
#define UR_SUITE_TEXT 160
#define UR_SUITE_RULES 8
#define UR_SUITE_EXPECTATIONS 24
#define UR_SUITE_CHOICES 4
#define UR_SUITE_FACTS 640

/* --- facts --- */

enum ur_suite_kind { UR_SUITE_NUMBER, UR_SUITE_TIME, UR_SUITE_WORD }; /* a time is a number of nanoseconds */

struct ur_suite_fact {
	char name[UR_SUITE_NAME];
	enum ur_suite_kind kind;
	double number;
	char word[24];
};

struct ur_suite_facts {
	struct ur_suite_fact list[UR_SUITE_FACTS];
	unsigned n;
	unsigned lost; /* facts for which there was no room */
};

void ur_suite_set(struct ur_suite_facts *f, const char *name, enum ur_suite_kind kind, double number);
void ur_suite_set_word(struct ur_suite_facts *f, const char *name, const char *word);
const struct ur_suite_fact *ur_suite_fact(const struct ur_suite_facts *f, const char *name); /* NULL: there is none */
double ur_suite_number(const struct ur_suite_facts *f, const char *name);                    /* 0: there is none */

/*
 * The facts of a report of `uroce between --script --json`. False when it is not one. Facts that could not be found out are missing.
 */
bool ur_suite_facts_read(struct ur_suite_facts *f, const json_t *report);
/* What the hosts did, in words. */
void ur_suite_describe(const struct ur_suite_facts *f, char *to, size_t room);

/* --- cases --- */

enum ur_suite_level {
	UR_SUITE_NEED,   /* else the case has tested nothing */
	UR_SUITE_DEMAND, /* else a peer is wrong */
	UR_SUITE_PREFER, /* else it does what is permitted, but weak */
};

enum ur_suite_op { UR_SUITE_EQ, UR_SUITE_NE, UR_SUITE_LT, UR_SUITE_LE, UR_SUITE_GT, UR_SUITE_GE };

/* What a fact is compared with: a number, a word, or another fact, times `factor`. */
struct ur_suite_value {
	double factor, number;
	bool is_fact, is_word;
	char name[UR_SUITE_NAME];
};

struct ur_suite_expectation {
	enum ur_suite_level level;
	char fact[UR_SUITE_NAME];
	enum ur_suite_op op;
	struct ur_suite_value choice[UR_SUITE_CHOICES]; /* of which one is enough */
	unsigned nchoices;
	char text[UR_SUITE_TEXT]; /* what is wrong when it does not hold */
};

struct ur_suite_case {
	char title[UR_SUITE_TEXT], clause[UR_SUITE_TEXT];
	char program[UR_SUITE_TEXT]; /* of both ends */
	char rule[UR_SUITE_RULES][UR_SUITE_TEXT];
	unsigned nrules;
	char rate[24], queue[24], mark_at[24]; /* of a bottleneck; empty: as the command has them */
	unsigned seconds;
	bool may_fail;   /* the programs need not end with 0 */
	bool may_unused; /* nor need each rule be applied */
	struct ur_suite_expectation expect[UR_SUITE_EXPECTATIONS];
	unsigned nexpect;
};

/*
 * The text of a case, a line for each word that parse.c knows. NULL, or what is wrong in line *line. Rules are not checked.
 */
const char *ur_suite_parse(const char *text, struct ur_suite_case *c, unsigned *line);

/* --- verdicts, from the best to the worst --- */

enum ur_suite_verdict { UR_SUITE_PASS, UR_SUITE_NOTE, UR_SUITE_UNTESTED, UR_SUITE_FAIL };

const char *ur_suite_verdict_word(enum ur_suite_verdict v);
/* `why` says what is wrong; empty when nothing is. */
enum ur_suite_verdict ur_suite_judge(const struct ur_suite_case *c, const struct ur_suite_facts *f, char *why, size_t room);

#endif
