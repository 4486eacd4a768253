/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The text of a case:
 *
 *   title   the last packet of a WRITE is lost
 *   clause  9.7.5.1
 *   run     ib_write_bw -s 8192 -n 10
 *   rule    drop 2to1 opcode=WRITE_LAST msg=3 iteration=1
 *   demand  loss1.told = NAK|SACK : the responder does not say that a packet is missing
 *   prefer  loss2.gap >= 1.5*$loss1.gap : the sender does not back off
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "suite/suite.h"
#include "fault/rule.h"

#define SECONDS 30
#define SECONDS_MAX 600
#define LINE 512

/* --- what a fact is compared with --- */

/* A number, or a time with its unit. */
static bool parse_number(const char *word, double *to)
{
	char *rest;
	ur_time t;

	if (ur_fault_parse_time(word, strlen(word), &t)) {
		*to = (double)t;
		return true;
	}
	if (!isdigit((unsigned char)*word))
		return false;
	*to = strtod(word, &rest);
	return !*rest;
}

static bool is_name(const char *word)
{
	if (!*word || strlen(word) >= UR_SUITE_NAME)
		return false;
	for (; *word; word++)
		if (!isalnum((unsigned char)*word) && !strchr("._-", *word))
			return false;
	return true;
}

static const char *parse_value(char *word, struct ur_suite_value *v)
{
	char *star = strchr(word, '*');

	*v = (struct ur_suite_value){.factor = 1};
	if (star) {
		*star = 0;
		if (!parse_number(word, &v->factor))
			return "what is before * is not a number";
		word = star + 1;
	}
	if (parse_number(word, &v->number))
		return NULL;
	v->is_fact = *word == '$';
	v->is_word = !v->is_fact;
	word += v->is_fact;
	if (!is_name(word) || (star && v->is_word))
		return "this is neither a number, nor a word, nor a $FACT";
	strcpy(v->name, word);
	return NULL;
}

static const char *parse_choices(char *words, struct ur_suite_expectation *e)
{
	for (char *save, *w = strtok_r(words, "|", &save); w; w = strtok_r(NULL, "|", &save)) {
		const char *wrong;

		if (e->nchoices == UR_SUITE_CHOICES)
			return "there are more than 4 values to choose from";
		wrong = parse_value(w, &e->choice[e->nchoices++]);
		if (wrong)
			return wrong;
	}
	return e->nchoices ? NULL : "a value is missing";
}

static bool parse_op(const char *word, enum ur_suite_op *op)
{
	static const char *const words[] = {[UR_SUITE_EQ] = "=",  [UR_SUITE_NE] = "!=", [UR_SUITE_LT] = "<",
					    [UR_SUITE_LE] = "<=", [UR_SUITE_GT] = ">",  [UR_SUITE_GE] = ">="};

	for (unsigned i = 0; word && i < ur_array_size(words); i++) {
		if (strcmp(word, words[i]))
			continue;
		*op = (enum ur_suite_op)i;
		return true;
	}
	return false;
}

/* FACT OP VALUE[|VALUE...] : SENTENCE */
static const char *parse_expectation(char *rest, enum ur_suite_level level, struct ur_suite_case *c)
{
	struct ur_suite_expectation *e = &c->expect[c->nexpect];
	char *text = strstr(rest, " : "), *save, *word;

	if (c->nexpect == UR_SUITE_EXPECTATIONS)
		return "there are more than 24 expectations";
	if (!text || strlen(text + 3) >= UR_SUITE_TEXT)
		return "it does not end with ' : ' and a text that says what is wrong if it does not hold, of at most 159 characters";
	*text = 0;
	*e = (struct ur_suite_expectation){.level = level};
	strcpy(e->text, text + 3 + strspn(text + 3, " "));
	word = strtok_r(rest, " ", &save);
	if (!word || !is_name(word))
		return "the name of a fact is missing";
	strcpy(e->fact, word);
	if (!parse_op(strtok_r(NULL, " ", &save), &e->op))
		return "after the fact there has to be one of = != < <= > >=";
	word = strtok_r(NULL, " ", &save);
	if (!word || strtok_r(NULL, " ", &save))
		return "give one value, without blanks";
	c->nexpect++;
	return parse_choices(word, e);
}

/* --- lines --- */

static const char *copy(char *to, size_t room, const char *from)
{
	if (*to)
		return "it was given before";
	if (!*from || strlen(from) >= room)
		return "what follows it is missing or too long";
	strcpy(to, from);
	return NULL;
}

static const char *add_rule(struct ur_suite_case *c, const char *text)
{
	if (c->nrules == UR_SUITE_RULES)
		return "there are more than 8 rules";
	return copy(c->rule[c->nrules++], UR_SUITE_TEXT, text);
}

static const char *parse_seconds(struct ur_suite_case *c, const char *text)
{
	double n;

	if (!parse_number(text, &n) || n < 1 || n > SECONDS_MAX)
		return "give a number of seconds, at most 600";
	c->seconds = (unsigned)n;
	return NULL;
}

/* `may fail`: the programs; `may unused`: the rules */
static const char *parse_may(struct ur_suite_case *c, const char *text)
{
	if (strcmp(text, "fail") == 0)
		c->may_fail = true;
	else if (strcmp(text, "unused") == 0)
		c->may_unused = true;
	else
		return "give 'may fail', for programs, or 'may unused', for rules";
	return NULL;
}

static const char *parse_line(const char *key, char *rest, struct ur_suite_case *c)
{
	const struct {
		const char *key;
		char *to;
		size_t room;
	} texts[] = {{"title", c->title, sizeof(c->title)},   {"clause", c->clause, sizeof(c->clause)},
		     {"run", c->program, sizeof(c->program)}, {"rate", c->rate, sizeof(c->rate)},
		     {"queue", c->queue, sizeof(c->queue)},   {"mark-at", c->mark_at, sizeof(c->mark_at)}};
	static const char *const levels[] = {[UR_SUITE_NEED] = "need", [UR_SUITE_DEMAND] = "demand", [UR_SUITE_PREFER] = "prefer"};

	for (unsigned i = 0; i < ur_array_size(texts); i++)
		if (strcmp(key, texts[i].key) == 0)
			return copy(texts[i].to, texts[i].room, rest);
	for (unsigned i = 0; i < ur_array_size(levels); i++)
		if (strcmp(key, levels[i]) == 0)
			return parse_expectation(rest, (enum ur_suite_level)i, c);
	if (strcmp(key, "rule") == 0)
		return add_rule(c, rest);
	if (strcmp(key, "seconds") == 0)
		return parse_seconds(c, rest);
	if (strcmp(key, "may") == 0)
		return parse_may(c, rest);
	return "its first word is not one of title, clause, run, rule, rate, queue, mark-at, seconds, may, need, demand and prefer";
}

/* Without its comment and the blanks around it; blanks are spaces. */
static char *trim(char *line)
{
	size_t n;

	line[strcspn(line, "#\r")] = 0;
	for (char *p = line; *p; p++)
		if (*p == '\t')
			*p = ' ';
	line += strspn(line, " ");
	for (n = strlen(line); n && line[n - 1] == ' ';)
		line[--n] = 0;
	return line;
}

const char *ur_suite_parse(const char *text, struct ur_suite_case *c, unsigned *line)
{
	char buffer[LINE];

	*c = (struct ur_suite_case){.seconds = SECONDS};
	for (*line = 1; *text; ++*line) {
		const size_t n = strcspn(text, "\n");
		const char *wrong = NULL;
		char *key, *rest;

		if (n >= sizeof(buffer))
			return "it is longer than 511 characters";
		memcpy(buffer, text, n);
		buffer[n] = 0;
		text += n + (text[n] == '\n');
		key = trim(buffer);
		rest = key + strcspn(key, " ");
		if (*rest)
			*rest++ = 0;
		if (*key)
			wrong = parse_line(key, rest + strspn(rest, " "), c);
		if (wrong)
			return wrong;
	}
	if (!*c->title || !*c->program)
		return "the case has no 'title' or no 'run'";
	return NULL;
}
