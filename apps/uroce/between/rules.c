/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce between: what its words mean: rules, one by one or in a file, rates and sizes. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "apps/uroce/between/between.h"
#include "apps/uroce/cli/cmd.h"

int ur_between_rule_add(struct ur_between_run *r, const char *text, const char *where)
{
	const char *wrong;
	unsigned at;

	if (r->nrules == UR_BETWEEN_RULES)
		return ur_cmd_fail(UR_EXIT_USAGE, "%srule '%s' is one too many: there may be %d", where, text, UR_BETWEEN_RULES);
	if (strlen(text) >= UR_BETWEEN_RULE_TEXT)
		return ur_cmd_fail(UR_EXIT_USAGE, "%sa rule is longer than %d characters", where, UR_BETWEEN_RULE_TEXT - 1);
	wrong = ur_fault_rule_parse_cable(text, &r->rules[r->nrules], &at);
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

/* All of the `len` characters. */
static bool parse_scaled(const char *value, size_t len, const char *unit, uint64_t most, uint64_t *to)
{
	static const struct {
		const char *prefix;
		uint64_t by;
	} scales[] = {{"", 1}, {"K", 1000}, {"M", 1000000}, {"G", 1000000000}};
	const char *rest;

	if (!ur_between_parse_number(value, UINT32_MAX, to, &rest) || rest > value + len)
		return false;
	for (unsigned i = 0; i < 4; i++) {
		const size_t n = strlen(scales[i].prefix), left = (size_t)(value + len - rest);

		if (left != n + strlen(unit) || strncmp(rest, scales[i].prefix, n) || strncmp(rest + n, unit, left - n))
			continue;
		*to *= scales[i].by;
		return *to && *to <= most;
	}
	return false;
}

static bool parse_size(const char *value, size_t len, uint32_t *to)
{
	uint64_t n;

	if (!parse_scaled(value, len, "B", UR_BETWEEN_QUEUE_MAX, &n))
		return false;
	*to = (uint32_t)n;
	return true;
}

/* --- the bottleneck --- */

bool ur_between_parse_rate(const char *value, struct ur_between_limit *l)
{
	return parse_scaled(value, strlen(value), "bit", 1000000000000, &l->rate);
}

bool ur_between_parse_queue(const char *value, struct ur_between_limit *l)
{
	return parse_size(value, strlen(value), &l->queue);
}

bool ur_between_parse_mark_at(const char *value, struct ur_between_limit *l)
{
	const size_t at = strcspn(value, ":"), full = value[at] ? strcspn(value + at + 1, ":") : 0;
	const char *share = value[at] && value[at + 1 + full] ? value + at + full + 2 : NULL;

	l->mark_full = l->mark_at = 0;
	l->mark_most = UR_FAULT_PPM;
	if (strcmp(value, "none") == 0)
		return true;
	if (!parse_size(value, at, &l->mark_at))
		return false;
	if (!value[at])
		return true;
	return parse_size(value + at + 1, full, &l->mark_full) && l->mark_full > l->mark_at &&
	       (!share || ur_fault_parse_chance(share, strlen(share), &l->mark_most));
}

bool ur_between_parse_pause_at(const char *value, struct ur_between_limit *l)
{
	const size_t at = strcspn(value, ":");

	l->pause_at = 0;
	if (strcmp(value, "none") == 0)
		return true;
	if (!parse_size(value, at, &l->pause_at))
		return false;
	l->pause_until = l->pause_at / 2;
	return !value[at] || (parse_size(value + at + 1, strlen(value + at + 1), &l->pause_until) && l->pause_until < l->pause_at);
}

bool ur_between_parse_pause(const char *value, struct ur_between_limit *l)
{
	const bool number = *value >= '0' && *value <= '7' && !value[1];

	l->pause_class = number ? (uint8_t)(*value - '0') : UR_BETWEEN_PAUSE_LINK;
	return number || strcmp(value, "link") == 0;
}

bool ur_between_parse_obey(const char *value, struct ur_between_limit *l)
{
	l->obey = strcmp(value, "yes") == 0;
	return l->obey || strcmp(value, "no") == 0;
}
