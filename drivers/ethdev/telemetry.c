/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands on DPDK's telemetry socket. They run on a thread of DPDK; the caller that registers them does the locking. */
#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_telemetry.h>

#include "drivers/ethdev/internal.h"

#define COMMANDS_MAX 8

static struct {
	const char *name;
	ur_ethdev_command fn;
	void *ctx;
} commands[COMMANDS_MAX];
static unsigned ncommands;

static int on_command(const char *name, const char *params, struct rte_tel_data *d)
{
	struct ur_ethdev_value v[UR_ETHDEV_VALUES];
	unsigned i = 0, n;

	while (i < ncommands && strcmp(commands[i].name, name) != 0)
		i++;
	if (i == ncommands)
		return -ENOENT;
	n = commands[i].fn(commands[i].ctx, params, v, UR_ETHDEV_VALUES);
	if (!n)
		return -EINVAL;
	rte_tel_data_start_dict(d);
	for (i = 0; i < n; i++)
		rte_tel_data_add_dict_u64(d, v[i].name, v[i].value);
	return 0;
}

int ur_ethdev_telemetry(const char *name, const char *help, ur_ethdev_command fn, void *ctx)
{
	unsigned i = 0;
	int rc = 0;

	while (i < ncommands && strcmp(commands[i].name, name) != 0)
		i++;
	if (i == COMMANDS_MAX)
		return ENOSPC;
	commands[i].fn = fn;
	commands[i].ctx = ctx;
	if (i < ncommands)
		return 0; /* the device was opened before: DPDK knows the command */
	commands[i].name = name;
	ncommands++;
	rc = rte_telemetry_register_cmd(name, on_command, help);
	return rc < 0 ? -rc : 0;
}

int ur_ethdev_telemetry_start(const char *eal_args, char *err, size_t errlen)
{
	const struct ur_ethdev_config none = {.ifname = "", .eal_args = eal_args, .telemetry = true};

	return ur_eal_start(&none, err, errlen);
}

/* --- what dead processes left --- */

/* True when nobody listens on the socket any more, which only a process that was killed leaves behind. */
static bool abandoned(const struct sockaddr_un *sa)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	bool dead;

	if (fd < 0)
		return false;
	dead = connect(fd, (const struct sockaddr *)sa, sizeof(*sa)) < 0 && errno == ECONNREFUSED;
	close(fd);
	return dead;
}

/* EAL makes its directory before we remove it: a process that is killed in between leaves it empty. */
static bool owner_is_dead(const char *name)
{
	long pid = strtol(name + strlen(UR_EAL_PREFIX), NULL, 10);

	return pid > 0 && kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

void ur_telemetry_sweep(void)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	char own[256], dir[300];
	struct dirent *e;
	const char *base;
	DIR *d;

	snprintf(own, sizeof(own), "%s", rte_eal_get_runtime_dir());
	base = dirname(own);
	d = opendir(base);
	while (d && (e = readdir(d))) {
		if (strncmp(e->d_name, UR_EAL_PREFIX, strlen(UR_EAL_PREFIX)) != 0 ||
		    snprintf(dir, sizeof(dir), "%s/%.32s", base, e->d_name) >= (int)sizeof(dir) ||
		    snprintf(sa.sun_path, sizeof(sa.sun_path), "%.80s/dpdk_telemetry.v2", dir) >= (int)sizeof(sa.sun_path))
			continue;
		if (abandoned(&sa) && unlink(sa.sun_path) == 0)
			rmdir(dir);
		else if (owner_is_dead(e->d_name))
			rmdir(dir); /* stays when it is not empty */
	}
	if (d)
		closedir(d);
}
