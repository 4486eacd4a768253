/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of commands as text for a terminal, and as JSON for what makes manual pages and completion of them. */
#include <string.h>

#include "command.h"
#include "config/config.h"
#include "escape.h"

#define WIDTH 96
#define COLUMN 22 /* where the meanings of options begin */

/* --- text --- */

/* Prints a word, of which `literals` stand in quotes; returns its width. */
static unsigned put_word(const char *word, size_t n)
{
	for (size_t i = 0; i < n; i++)
		putchar(word[i] == '`' ? '\'' : word[i]);
	return (unsigned)n;
}

/* One paragraph from column `at`, its further lines indented. Returns what follows it. */
static const char *put_paragraph(const char *text, unsigned at, unsigned indent)
{
	bool first = true;

	while (*text && *text != '\n') {
		size_t n = strcspn(text, " \n");

		if (!first && at + 1 + n > WIDTH) {
			printf("\n%*s", (int)indent, "");
			at = indent;
		} else if (!first) {
			putchar(' ');
			at++;
		}
		at += put_word(text, n);
		first = false;
		text += n;
		text += *text == ' ';
	}
	putchar('\n');
	return text + strspn(text, "\n");
}

static void put_text(const char *text)
{
	while (*text) {
		putchar('\n');
		text = put_paragraph(text, 0, 0);
	}
}

static void put_item(const char *what, const char *meaning)
{
	int n = printf("  %-*s", COLUMN - 3, what);

	if (n >= COLUMN) {
		putchar('\n');
		n = 0;
	}
	printf("%*s", COLUMN - n, "");
	put_paragraph(meaning, COLUMN, COLUMN);
}

static void put_option(const struct ur_option *o)
{
	char what[64];

	snprintf(what, sizeof(what), "--%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
	put_item(what, o->help);
}

static void put_options(const struct ur_command *c)
{
	if (!c->options && !c->settings)
		return;
	puts("\nOptions:");
	for (const struct ur_option *o = c->options; o && o->name; o++)
		put_option(o);
	for (const struct ur_option *o = ur_setting_options(); o->name; o++)
		if (ur_command_takes(c, o))
			put_option(o);
}

static void put_synopsis(const struct ur_command *c, const char *path)
{
	printf("  %s", path);
	if (c->options || c->settings)
		fputs(" [OPTION...]", stdout);
	if (c->operands)
		printf(" %s", c->operands);
	putchar('\n');
}

void ur_command_print(const struct ur_command *c, const char *path)
{
	char below[256];

	printf("%s: %s\n\n", path, c->summary);
	if (c->operands || !c->commands)
		put_synopsis(c, path);
	for (const struct ur_command *const *p = c->commands; p && *p; p++) {
		snprintf(below, sizeof(below), "%s %s", path, (*p)->name);
		put_synopsis(*p, below);
	}
	if (c->text)
		put_text(c->text);
	if (c->commands)
		puts("\nCommands:");
	for (const struct ur_command *const *p = c->commands; p && *p; p++)
		put_item((*p)->name, (*p)->summary);
	put_options(c);
	fputs("\nExit status: ", stdout);
	put_paragraph(c->status ? c->status : UR_USUAL_STATUS, 13, 0);
	if (c->examples)
		puts("\nExamples:");
	for (const struct ur_example *e = c->examples; e && e->command; e++)
		printf("  %s\n", e->command);
	if (c->commands)
		printf("\n'%s COMMAND --help' explains a command and its options.\n", path);
}

/* --- JSON --- */

static void member(const char *separator, const char *name, const char *value)
{
	printf("%s\"%s\":", separator, name);
	if (value)
		ur_json_string(stdout, value);
	else
		fputs("null", stdout);
}

static void json_option(const struct ur_option *o, bool setting, const char *separator)
{
	fputs(separator, stdout);
	fputs("\n{", stdout);
	member("", "name", o->name);
	member(",", "arg", o->arg);
	member(",", "complete", o->complete);
	member(",", "help", o->help);
	printf(",\"setting\":%s}", setting ? "true" : "false");
}

static void json_options(const struct ur_command *c)
{
	const char *separator = "";

	fputs(",\"options\":[", stdout);
	for (const struct ur_option *o = c->options; o && o->name; o++, separator = ",")
		json_option(o, false, separator);
	for (const struct ur_option *o = ur_setting_options(); o->name; o++) {
		if (!ur_command_takes(c, o))
			continue;
		json_option(o, true, separator);
		separator = ",";
	}
	putchar(']');
}

static void json_command(const struct ur_command *c)
{
	const char *separator = "";

	fputs("\n{", stdout);
	member("", "name", c->name);
	member(",", "operands", c->operands);
	member(",", "complete", c->complete);
	member(",", "summary", c->summary);
	member(",", "text", c->text);
	member(",", "status", c->status ? c->status : UR_USUAL_STATUS);
	printf(",\"program\":%s", c->program ? "true" : "false");
	json_options(c);
	fputs(",\"examples\":[", stdout);
	for (const struct ur_example *e = c->examples; e && e->command; e++, separator = ",") {
		printf("%s\n{", separator);
		member("", "command", e->command);
		member(",", "what", e->what);
		putchar('}');
	}
	fputs("],\"commands\":[", stdout);
	separator = "";
	for (const struct ur_command *const *p = c->commands; p && *p; p++, separator = ",") {
		fputs(separator, stdout);
		json_command(*p);
	}
	fputs("]}", stdout);
}

static bool has_option(const char *setting)
{
	for (const struct ur_option *o = ur_setting_options(); o->name; o++)
		if (strcmp(o->name, setting) == 0)
			return true;
	return false;
}

static void json_setting(const struct ur_config_knob *k)
{
	fputs("\n{", stdout);
	member("", "name", k->name);
	member(",", "default", k->def);
	member(",", "help", k->help);
	if (k->type == UR_CONFIG_UINT)
		printf(",\"min\":%llu,\"max\":%llu", (unsigned long long)k->min, (unsigned long long)k->max);
	printf(",\"option\":%s}", has_option(k->name) ? "true" : "false");
}

void ur_command_json(const struct ur_command *c)
{
	fputs("{", stdout);
	member("", "version", UROCE_VERSION);
	fputs(",\"command\":", stdout);
	json_command(c);
	fputs(",\"settings\":[", stdout);
	for (unsigned i = 0; i < ur_config_knob_count; i++) {
		if (i)
			putchar(',');
		json_setting(&ur_config_knobs[i]);
	}
	puts("]}");
}
