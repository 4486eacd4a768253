/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/stray.h"

#include <ctype.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"

#define PREFIX "UROCE_"
#define NAME_MAX_LEN 24 /* longer names are similar to no setting */

extern char **environ;

/* Variables that are no settings: the file of settings, what `uroce run` and `uroce between` tell the programs that they start, and those
 * of this source's tests and tools. A name that ends with an underscore stands for all that begin with it. */
static const char *const others[] = {"CONF", "RUN_PID", "ADDR", "PEER", "CACHE", "MIRROR", "PCAPS", "TEST_"};

static bool is_other(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		size_t n = strlen(others[i]);

		if (!strncmp(name, others[i], n) && (n == len || others[i][n - 1] == '_'))
			return true;
	}
	return false;
}

static bool same_in_capitals(const char *knob, const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (toupper((unsigned char)knob[i]) != name[i])
			return false;
	return !knob[len];
}

static bool is_setting(const char *name, size_t len)
{
	for (unsigned i = 0; i < ur_config_knob_count; i++)
		if (len <= strlen(ur_config_knobs[i].name) && same_in_capitals(ur_config_knobs[i].name, name, len))
			return true;
	return false;
}

/* How many letters have to be put in, left out or replaced to make one of the other (Levenshtein's distance), whatever their case. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[NAME_MAX_LEN + 1];
	size_t len = strlen(b);

	for (size_t i = 0; i <= len; i++)
		row[i] = (unsigned)i;
	for (unsigned i = 1; *a; a++, i++) {
		unsigned diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= len; j++) {
			/* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.ArraySubscript): both strings end */
			unsigned replaced = diagonal + (tolower((unsigned char)*a) != tolower((unsigned char)b[j - 1]));
			unsigned least = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;

			diagonal = row[j];
			row[j] = replaced < least ? replaced : least;
		}
	}
	return row[len];
}

const char *ur_nearest_knob(const char *name)
{
	const char *nearest = NULL;
	unsigned least = 3; /* two letters may be wrong, of a short name one */

	if (strlen(name) > NAME_MAX_LEN)
		return NULL;
	for (unsigned i = 0; i < ur_config_knob_count; i++) {
		const char *knob = ur_config_knobs[i].name;
		unsigned d = distance(knob, name);

		if (d < least && (d < 2 || strlen(knob) > 4)) {
			least = d;
			nearest = knob;
		}
	}
	return nearest;
}

/* What a terminal can show of a name. */
static void copy_name(char *to, size_t room, const char *name, size_t len)
{
	size_t n = len < room - 1 ? len : room - 1;

	for (size_t i = 0; i < n; i++)
		to[i] = (char)(name[i] > ' ' && name[i] <= '~' ? name[i] : '?');
	to[n] = 0;
}

static void describe(const char *name, size_t len, char *sentence, size_t room)
{
	char text[64], meant[64] = "";
	const char *knob;

	copy_name(text, sizeof(text), name, len);
	knob = ur_nearest_knob(text);
	if (knob)
		snprintf(meant, sizeof(meant), "; did you mean %s%s", PREFIX, knob);
	for (char *s = meant + (knob ? strlen("; did you mean ") : 0); *s; s++)
		*s = (char)toupper((unsigned char)*s);
	snprintf(sentence, room, "the variable %s%s is no setting and is ignored%s: 'uroce info --config' lists the settings", PREFIX, text,
		 meant);
}

const char *const *ur_config_stray(const char *const *last, char *sentence, size_t len)
{
	for (char **v = last ? (char **)last + 1 : environ; v && *v; v++) {
		const char *name = *v + strlen(PREFIX);
		size_t n;

		if (strncmp(*v, PREFIX, strlen(PREFIX)))
			continue;
		n = strcspn(name, "=");
		if (is_setting(name, n) || is_other(name, n))
			continue;
		describe(name, n, sentence, len);
		return (const char *const *)v;
	}
	return NULL;
}

void ur_config_warn(void)
{
	static atomic_flag warned = ATOMIC_FLAG_INIT;
	const char *const *v = NULL;
	char sentence[256];

	if (atomic_flag_test_and_set(&warned))
		return;
	while ((v = ur_config_stray(v, sentence, sizeof(sentence))))
		fprintf(stderr, "uroce: %s\n", sentence);
}
