/* SPDX-License-Identifier: BSD-3-Clause */
/* Which settings are options of a command. */
#include <string.h>

#include "apps/uroce/cli/command.h"

static bool is_word_of(const char *words, const char *word)
{
	const size_t len = strlen(word);

	for (const char *w = words; *w; w += strspn(w, " ")) {
		size_t n = strcspn(w, " ");

		if (n == len && memcmp(w, word, n) == 0)
			return true;
		w += n;
	}
	return false;
}

/* An option of its own hides a setting's of the same name. */
bool ur_command_takes(const struct ur_command *c, const struct ur_option *setting)
{
	for (const struct ur_option *o = c->options; o && o->name; o++)
		if (strcmp(o->name, setting->name) == 0)
			return false;
	return c->settings && (strcmp(c->settings, UR_ALL_SETTINGS) == 0 || is_word_of(c->settings, setting->name));
}
