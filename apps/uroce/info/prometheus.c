/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce info --prometheus: counters in the text format that Prometheus reads, for the textfile collector of node_exporter. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/cli/watch_find.h"
#include "apps/uroce/info/info.h"
#include "watch/watch.h"

#define PREFIX_MAX 64

/* https://prometheus.io/docs/concepts/data_model/: of a metric's name; colons are for rules. */
static bool is_name(const char *s)
{
	if (!*s || isdigit((unsigned char)*s) || strlen(s) > PREFIX_MAX)
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && *s != '_')
			return false;
	return true;
}

int ur_info_prometheus(const char *prefix)
{
	struct ur_watch_sample *look;
	char *text;

	if (!is_name(prefix))
		return ur_cmd_fail(UR_EXIT_USAGE, "'%s' cannot be the prefix of metric names: use letters, digits and underscores", prefix);
	look = ur_watch_find();
	if (!look)
		return ur_cmd_fail(UR_EXIT_FAIL, "cannot list the processes of this host: %s", strerror(errno));
	text = ur_watch_prometheus(look, prefix);
	ur_watch_free(look);
	if (!text)
		return ur_cmd_fail(UR_EXIT_FAIL, "out of memory: free some and try again");
	fputs(text, stdout);
	free(text);
	return 0;
}
