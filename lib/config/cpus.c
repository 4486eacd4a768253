/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/cpus.h"

#include <ctype.h>
#include <stdlib.h>

/* The number at *text, behind which *text stands afterwards. */
static bool take_number(const char **text, unsigned long *n)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	*n = strtoul(*text, &end, 10);
	*text = end;
	return *n < CPU_SETSIZE;
}

bool ur_cpus_parse(const char *text, cpu_set_t *set)
{
	unsigned long first, last;

	CPU_ZERO(set);
	while (*text) {
		if (!take_number(&text, &first))
			return false;
		last = first;
		if (*text == '-' && (text++, !take_number(&text, &last) || last < first))
			return false;
		for (unsigned long cpu = first; cpu <= last; cpu++)
			CPU_SET(cpu, set);
		if (*text == ',' && text[1])
			text++;
		else if (*text)
			return false;
	}
	return true;
}
