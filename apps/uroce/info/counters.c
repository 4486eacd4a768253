/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce info --counters: the counters and their meaning, one column for each process of the device, as it publishes them
 * (observe/status.h). Without a device, for each process of this host.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/cli/watch_find.h"
#include "apps/uroce/info/info.h"
#include "host/processes.h"

#define COLUMN 12

static bool all_zero(const struct ur_watch_sample *l, unsigned counter)
{
	for (unsigned k = 0; k < l->count; k++)
		if (l->process[k]->status.counter[counter])
			return false;
	return true;
}

static void print_table(const struct ur_watch_sample *l, bool all)
{
	if (l->count) {
		printf("%-30s", "process");
		for (unsigned k = 0; k < l->count; k++)
			printf(" %*d", COLUMN, l->process[k]->pid);
		putchar('\n');
	}
	for (unsigned i = 0; i < UR_C_COUNT; i++) {
		if (!all && all_zero(l, i))
			continue;
		printf("%-30s", ur_counter_name((enum ur_counter)i));
		for (unsigned k = 0; k < l->count; k++)
			if (l->process[k]->status.has[i])
				printf(" %*" PRIu64, COLUMN, l->process[k]->status.counter[i]);
			else
				printf(" %*s", COLUMN, "-");
		printf("%s%s\n", l->count ? "  " : " ", ur_counter_help((enum ur_counter)i));
	}
}

static bool uses_device(const struct ur_processes *v, const char *interface, const struct ur_watch_process *p)
{
	for (unsigned i = 0; v && i < v->count; i++)
		if (v->processes[i].pid == p->pid && !strncmp(interface, p->status.interface, UR_STATUS_TEXT - 1))
			return true;
	return !v;
}

/* Leaves those that can be read and use the device, `v`; NULL is any. */
static void choose(struct ur_watch_sample *l, const struct ur_processes *v, const char *interface)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < l->count; i++) {
		struct ur_watch_process *p = l->process[i];

		if (!p->unreadable && uses_device(v, interface, p))
			l->process[kept++] = p;
		else
			free(p);
	}
	l->count = kept;
}

int ur_info_counters(const struct ur_device *d, bool all)
{
	struct ur_watch_sample *sample = ur_watch_find();
	struct ur_processes *v = NULL;

	if (!sample)
		return ur_cmd_fail(UR_EXIT_FAIL, "cannot list the processes of this host: %s", strerror(errno));
	if (d && ur_processes_list(d->key, &v))
		v = NULL;
	choose(sample, v, d ? d->info.ifname : NULL);
	if (sample->count || all)
		print_table(sample, all);
	if (!sample->count)
		printf("%sNo process whose counters are readable %s now%s\n", all ? "\n" : "", v ? "uses the device" : "runs on uroce",
		       all ? "." : ". Add --all to see all counters.");
	else if (!all)
		puts("\nCounters that are zero are left out: --all shows them.");
	if (v && sample->count < v->count)
		printf("\nThe counters of %u other process%s of the device are readable only for root.\n", v->count - sample->count,
		       v->count - sample->count == 1 ? "" : "es");
	ur_watch_free(sample);
	free(v);
	return 0;
}
