/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce between --suite: runs the cases of a suite in order, and prints the results: a line for each, or one JSON object. */
#include "apps/uroce/between/suite/suite.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "apps/uroce/between/suite/cases.h"
#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/cli/json.h"
#include "fault/rule.h"

#define ENDING ".case"
#define CASE_BYTES 16384

struct tally {
	unsigned n[UR_SUITE_FAIL + 1];
	json_t *cases;
};

/* --- one case --- */

/* 0, or the exit status after a message. */
static int parse(const char *name, const char *text, struct ur_suite_case *c)
{
	struct ur_fault_rule rule;
	unsigned line, at;
	const char *wrong = ur_suite_parse(text, c, &line);

	if (wrong)
		return ur_cmd_fail(UR_EXIT_USAGE, "case %s, line %u is not understood: %s", name, line, wrong);
	for (unsigned i = 0; i < c->nrules; i++) {
		wrong = ur_fault_rule_parse(c->rule[i], &rule, &at);
		if (wrong)
			return ur_cmd_fail(UR_EXIT_USAGE, "case %s, rule '%s' is not understood at '%s': %s", name, c->rule[i],
					   c->rule[i] + at, wrong);
	}
	return 0;
}

static bool is_chosen(const struct ur_between_suite *s, const char *name)
{
	return !s->only || strstr(name, s->only) || fnmatch(s->only, name, 0) == 0;
}

static json_t *facts_json(const struct ur_suite_facts *f)
{
	json_t *o = json_object();

	for (unsigned i = 0; i < f->n; i++)
		json_object_set_new(o, f->list[i].name,
				    f->list[i].kind == UR_SUITE_WORD ? ur_json_text(f->list[i].word) : json_real(f->list[i].number));
	return o;
}

static void add_json(struct tally *t, const char *name, const struct ur_suite_case *c, const struct ur_between_tried *tried)
{
	json_t *o = json_object();

	json_object_set_new(o, "case", ur_json_text(name));
	json_object_set_new(o, "title", ur_json_text(c->title));
	json_object_set_new(o, "clause", ur_json_text(c->clause));
	json_object_set_new(o, "verdict", json_string(ur_suite_verdict_word(tried->verdict)));
	json_object_set_new(o, "did", ur_json_text(tried->did));
	json_object_set_new(o, "why", ur_json_text(tried->why));
	json_object_set_new(o, "seconds", json_real(tried->seconds));
	json_object_set_new(o, "facts", facts_json(&tried->facts));
	json_array_append_new(t->cases, o);
}

static void print(const char *name, const struct ur_between_tried *tried)
{
	printf("%-8s  %-26s  %s\n", ur_suite_verdict_word(tried->verdict), name, tried->did);
	if (*tried->why)
		printf("%38s%s\n", "", tried->why);
	fflush(stdout);
}

static int run_case(const struct ur_between_suite *s, const struct ur_between_script *script, char **interfaces, const char *name,
		    const char *text, struct tally *t)
{
	static struct ur_between_tried tried;
	struct ur_suite_case c;
	const int rc = parse(name, text, &c);

	if (rc || !is_chosen(s, name))
		return rc;
	if (s->list) {
		t->n[UR_SUITE_PASS]++;
		printf("%-26s  %s\n", name, c.title);
		return 0;
	}
	if (!ur_between_suite_try(s, script, interfaces, &c, &tried))
		return UR_EXIT_FAIL;
	t->n[tried.verdict]++;
	if (s->json)
		add_json(t, name, &c, &tried);
	else
		print(name, &tried);
	return 0;
}

/* --- those of a directory --- */

static int is_case(const struct dirent *e)
{
	const size_t n = strlen(e->d_name);

	return n > strlen(ENDING) && strcmp(e->d_name + n - strlen(ENDING), ENDING) == 0;
}

static int run_file(const struct ur_between_suite *s, const struct ur_between_script *script, char **interfaces, const char *file,
		    struct tally *t)
{
	char path[4096], text[CASE_BYTES];
	FILE *f;
	size_t n;

	if (snprintf(path, sizeof(path), "%s/%s", s->name, file) >= (int)sizeof(path))
		return ur_cmd_fail(UR_EXIT_USAGE, "the path of case %s is too long: move the suite to a shorter one", file);
	f = fopen(path, "re");
	if (!f)
		return ur_cmd_fail(UR_EXIT_USAGE, "cannot read %s: %s", path, strerror(errno));
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = 0;
	if (n == sizeof(text) - 1 || ferror(f) || strlen(text) != n) {
		fclose(f);
		return ur_cmd_fail(UR_EXIT_USAGE, "%s is not a case: it has more than %d bytes, has zero bytes or cannot be read", path,
				   CASE_BYTES - 2);
	}
	fclose(f);
	snprintf(path, sizeof(path), "%.*s", (int)(strlen(file) - strlen(ENDING)), file);
	return run_case(s, script, interfaces, path, text, t);
}

static int run_directory(const struct ur_between_suite *s, const struct ur_between_script *script, char **interfaces, struct tally *t)
{
	struct dirent **list;
	const int n = scandir(s->name, &list, is_case, alphasort);
	int rc = 0;

	if (n < 0)
		return ur_cmd_fail(UR_EXIT_USAGE, "'%s' is neither a suite nor a directory that can be read: %s", s->name, strerror(errno));
	for (int i = 0; i < n; i++) {
		if (!rc)
			rc = run_file(s, script, interfaces, list[i]->d_name, t);
		free(list[i]);
	}
	free(list);
	return rc;
}

/* --- a whole suite --- */

static int run_all(const struct ur_between_suite *s, const struct ur_between_script *script, char **interfaces, struct tally *t)
{
	bool found = false;
	int rc = 0;

	for (unsigned i = 0; !rc && i < ur_array_size(embedded); i++) {
		if (strcmp(embedded[i].suite, s->name))
			continue;
		found = true;
		rc = run_case(s, script, interfaces, embedded[i].name, embedded[i].text, t);
	}
	return found ? rc : run_directory(s, script, interfaces, t);
}

static unsigned total(const struct tally *t)
{
	return t->n[UR_SUITE_PASS] + t->n[UR_SUITE_NOTE] + t->n[UR_SUITE_UNTESTED] + t->n[UR_SUITE_FAIL];
}

static void print_tally(const struct ur_between_suite *s, const struct tally *t)
{
	json_t *o;

	if (!s->json) {
		printf("\n%u passed, %u with a note, %u failed, %u untested\n", t->n[UR_SUITE_PASS], t->n[UR_SUITE_NOTE],
		       t->n[UR_SUITE_FAIL], t->n[UR_SUITE_UNTESTED]);
		return;
	}
	o = json_object();
	json_object_set_new(o, "version", json_integer(1));
	json_object_set_new(o, "suite", ur_json_text(s->name));
	for (unsigned v = 0; v <= UR_SUITE_FAIL; v++)
		json_object_set_new(o, ur_suite_verdict_word((enum ur_suite_verdict)v), json_integer(t->n[v]));
	json_object_set(o, "cases", t->cases);
	ur_json_line(o, stdout);
}

int ur_between_suite_run(const struct ur_between_suite *s, const struct ur_between_script *script, int n, char **words)
{
	struct tally t = {.cases = json_array()};
	int rc;

	if (n != (script->run[0] ? 2 : 0))
		return ur_cmd_fail(UR_EXIT_USAGE, script->run[0]
							  ? "give the two interfaces that lead to the hosts of --run1 and --run2"
							  : "--suite makes its own hosts; for others give --run1, --run2 and --address1");
	rc = run_all(s, script, words, &t);
	if (!rc && !total(&t))
		rc = ur_cmd_fail(UR_EXIT_USAGE, "no case of %s has a name that matches '%s': --list shows the names", s->name,
				 s->only ? s->only : "*" ENDING);
	if (!s->list && total(&t))
		print_tally(s, &t);
	json_decref(t.cases);
	if (ur_between_suite_stopped()) {
		fflush(stdout);
		return ur_cmd_fail(128 + ur_between_suite_stopped(), "ended by a signal before all cases had been tried: %s",
				   strsignal(ur_between_suite_stopped()));
	}
	return !rc && (t.n[UR_SUITE_FAIL] || t.n[UR_SUITE_UNTESTED]) ? UR_EXIT_FAIL : rc;
}
