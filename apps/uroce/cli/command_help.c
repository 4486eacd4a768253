/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of commands as text for a terminal, and as JSON, from which the manual pages and the completion are made. */
#include <string.h>

#include "apps/uroce/cli/command.h"
#include "apps/uroce/cli/json.h"
#include "config/config.h"

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

/* A line for each form of it. */
static void put_synopsis(const struct ur_command *c, const char *path)
{
	const char *form = c->operands, *end;

	do {
		end = form ? strstr(form, UR_COMMAND_OR) : NULL;
		printf("  %s", path);
		if (c->options || c->settings)
			fputs(" [OPTION...]", stdout);
		if (form)
			printf(" %.*s", end ? (int)(end - form) : (int)strlen(form), form);
		putchar('\n');
		form = end ? end + strlen(UR_COMMAND_OR) : NULL;
	} while (end);
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

static json_t *option_json(const struct ur_option *o, bool setting)
{
	return json_pack("{s:s, s:s?, s:s?, s:s, s:b}", "name", o->name, "arg", o->arg, "complete", o->complete, "help", o->help, "setting",
			 setting);
}

static json_t *options_json(const struct ur_command *c)
{
	json_t *list = json_array();

	for (const struct ur_option *o = c->options; o && o->name; o++)
		json_array_append_new(list, option_json(o, false));
	for (const struct ur_option *o = ur_setting_options(); o->name; o++)
		if (ur_command_takes(c, o))
			json_array_append_new(list, option_json(o, true));
	return list;
}

static json_t *command_json(const struct ur_command *c)
{
	json_t *examples = json_array(), *commands = json_array();

	for (const struct ur_example *e = c->examples; e && e->command; e++)
		json_array_append_new(examples, json_pack("{s:s, s:s}", "command", e->command, "what", e->what));
	for (const struct ur_command *const *p = c->commands; p && *p; p++)
		json_array_append_new(commands, command_json(*p));
	return json_pack("{s:s, s:s?, s:s?, s:s, s:s?, s:s, s:b, s:o, s:o, s:o}", "name", c->name, "operands", c->operands, "complete",
			 c->complete, "summary", c->summary, "text", c->text, "status", c->status ? c->status : UR_USUAL_STATUS, "program",
			 c->program, "options", options_json(c), "examples", examples, "commands", commands);
}

static bool has_option(const char *setting)
{
	for (const struct ur_option *o = ur_setting_options(); o->name; o++)
		if (strcmp(o->name, setting) == 0)
			return true;
	return false;
}

static json_t *setting_json(const struct ur_config_knob *k)
{
	json_t *o = json_pack("{s:s, s:s?, s:s}", "name", k->name, "default", k->def, "help", k->help);

	if (k->type == UR_CONFIG_UINT) {
		json_object_set_new(o, "min", ur_json_uint(k->min));
		json_object_set_new(o, "max", ur_json_uint(k->max));
	}
	json_object_set_new(o, "option", json_boolean(has_option(k->name)));
	return o;
}

void ur_command_json(const struct ur_command *c)
{
	json_t *settings = json_array();

	for (unsigned i = 0; i < ur_config_knob_count; i++)
		json_array_append_new(settings, setting_json(&ur_config_knobs[i]));
	ur_json_line(json_pack("{s:s, s:o, s:o}", "version", UR_VERSION, "command", command_json(c), "settings", settings), stdout);
}
