/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce between: what its words mean: rules, one by one or in a file, rates and sizes. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "between.h"
#include "cmd.h"

int ur_between_rule_add(struct ur_between_run *r, const char *text, const char *where)
{
	const char *wrong;
	unsigned at;

	if (r->nrules == UR_BETWEEN_RULES)
		return ur_cmd_fail(UR_EXIT_USAGE, "%srule '%s' is one too many: there may be %d", where, text, UR_BETWEEN_RULES);
	if (strlen(text) >= UR_BETWEEN_RULE_TEXT)
		return ur_cmd_fail(UR_EXIT_USAGE, "%sa rule is longer than %d characters", where, UR_BETWEEN_RULE_TEXT - 1);
	wrong = ur_fault_rule_parse(text, &r->rules[r->nrules], &at);
	if (wrong)
		return ur_cmd_fail(UR_EXIT_USAGE, "%srule '%s' is not understood at '%s': %s", where, text, text + at, wrong);
	strcpy(r->text[r->nrules++], text);
	return 0;
}

/* Without the comment and the blanks around it. */
static char *trim(char *line)
{
	size_t n;

	line[strcspn(line, "#\r\n")] = 0;
	for (char *c = line; *c; c++)
		if (*c == '\t')
			*c = ' ';
	line += strspn(line, " ");
	for (n = strlen(line); n && line[n - 1] == ' ';)
		line[--n] = 0;
	return line;
}

int ur_between_rules_read(struct ur_between_run *r, const char *file)
{
	char *line = NULL, where[512];
	size_t room = 0;
	FILE *f = fopen(file, "r");
	int rc = 0;

	if (!f)
		return ur_cmd_fail(UR_EXIT_USAGE, "cannot read %s: %s", file, strerror(errno));
	for (unsigned i = 1; !rc && getline(&line, &room, f) >= 0; i++) {
		const char *text = trim(line);

		snprintf(where, sizeof(where), "%.400s, line %u: ", file, i);
		if (*text)
			rc = ur_between_rule_add(r, text, where);
	}
	if (!rc && ferror(f))
		rc = ur_cmd_fail(UR_EXIT_USAGE, "cannot read %s: %s", file, strerror(errno));
	free(line);
	fclose(f);
	return rc;
}

/* --- numbers --- */

bool ur_between_parse_number(const char *value, uint64_t most, uint64_t *to, const char **rest)
{
	char *end;

	if (!isdigit((unsigned char)*value))
		return false;
	errno = 0;
	*to = strtoull(value, &end, 0);
	*rest = end;
	return !errno && *to <= most;
}

static bool parse_scaled(const char *value, const char *unit, uint64_t most, uint64_t *to)
{
	static const struct {
		const char *prefix;
		uint64_t by;
	} scales[] = {{"", 1}, {"K", 1000}, {"M", 1000000}, {"G", 1000000000}};
	const char *rest;

	if (!ur_between_parse_number(value, UINT32_MAX, to, &rest))
		return false;
	for (unsigned i = 0; i < 4; i++) {
		const size_t n = strlen(scales[i].prefix);

		if (strncmp(rest, scales[i].prefix, n) || strcmp(rest + n, unit))
			continue;
		*to *= scales[i].by;
		return *to && *to <= most;
	}
	return false;
}

bool ur_between_parse_rate(const char *value, uint64_t *to)
{
	return parse_scaled(value, "bit", 1000000000000, to);
}

bool ur_between_parse_bytes(const char *value, uint32_t *to)
{
	uint64_t n;

	if (!parse_scaled(value, "B", UR_BETWEEN_QUEUE_MAX, &n))
		return false;
	*to = (uint32_t)n;
	return true;
}
