/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apps/uroce/between/script/script.h"
#include "host/device/view.h"
#include "host/processes.h"
#include "uroce/uroce.h"

#define LOOK_MS 10
#define LISTENING 0x0a /* TCP_LISTEN, as /proc/net/tcp has it */

/* "  0: 00000000:4853 00000000:0000 0A ..." */
static bool has_listener(const char *file)
{
	FILE *f = fopen(file, "re");
	char line[256];
	unsigned state;
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, " %*u: %*[0-9A-Fa-f:] %*[0-9A-Fa-f:] %x", &state) == 1 && state == LISTENING;
	if (f)
		fclose(f);
	return found;
}

/* By the RDMA CM, under uroce. */
static bool uroce_listens(uint64_t key)
{
	struct ur_processes *v;
	bool found = false;

	if (ur_processes_list(key, &v))
		return false;
	for (unsigned i = 0; i < v->count; i++)
		for (unsigned k = 0; k < v->processes[i].port_count; k++)
			found |= v->processes[i].ports[k].listening;
	free(v);
	return found;
}

void ur_between_await_listener(void)
{
	const struct timespec wait = {.tv_nsec = LOOK_MS * (long)UR_NS_PER_MS};
	struct ur_view view;
	char err[512];
	bool known;

	uroce_config("dev", UR_BETWEEN_HOST_IF);
	known = ur_view_open(&view, 0, err, sizeof(err)) == 0;
	while (!has_listener("/proc/net/tcp") && !has_listener("/proc/net/tcp6") && !(known && uroce_listens(view.device.key)))
		nanosleep(&wait, NULL);
	if (known)
		ur_view_close(&view);
}
