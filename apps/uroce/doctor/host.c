/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce doctor: facts about this process and this host that do not concern an interface. */
#include <errno.h>
#include <linux/capability.h>
#include <netinet/udp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "apps/uroce/doctor/doctor.h"
#include "config/config.h"
#include "host/clock.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define CLOCK_ROUNDS 20
#define CLOCK_READS 200

/* The first line of a file; false, and "", when it cannot be read. */
static bool read_line(const char *path, char *line, size_t len)
{
	FILE *in = fopen(path, "re");
	bool ok = in && fgets(line, (int)len, in);

	if (in)
		fclose(in);
	if (!ok)
		line[0] = 0;
	line[strcspn(line, "\n")] = 0;
	return ok;
}

/* By the system call: /proc may be missing. */
static void read_capabilities(struct ur_doctor_facts *f)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};

	syscall(SYS_capget, &header, data);
	f->net_raw = data[0].effective >> CAP_NET_RAW & 1;
	f->net_admin = data[0].effective >> CAP_NET_ADMIN & 1;
	f->uid = geteuid();
}

static bool has_option(int option)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), zero = 0;
	bool ok = fd >= 0 && setsockopt(fd, IPPROTO_UDP, option, &zero, sizeof(zero)) == 0;

	if (fd >= 0)
		close(fd);
	return ok;
}

static void read_kernel(struct ur_doctor_facts *f)
{
	struct utsname u;
	char line[64];

	if (uname(&u) == 0)
		snprintf(f->release, sizeof(f->release), "%.63s", u.release);
	f->udp_segment = has_option(UDP_SEGMENT);
	f->udp_gro = has_option(UDP_GRO);
	if (read_line("/proc/sys/net/core/rmem_max", line, sizeof(line)))
		f->rmem_max = strtoull(line, NULL, 10);
}

/* 0, or why not even this process's own memory can be copied, which no other is nearer to. */
static int copy_error(void)
{
	char from = 1, to = 0;
	struct iovec local = {&to, 1}, remote = {&from, 1};

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1 ? 0 : errno;
}

/* --- CPUs --- */

/* The quota that one file cpu.max grants, in percent of a CPU; 0 for none. */
static unsigned quota_of(const char *path)
{
	char line[64];
	double quota, period;

	if (!read_line(path, line, sizeof(line)) || sscanf(line, "%lf %lf", &quota, &period) != 2 || period <= 0 || quota / period > 1e4)
		return 0;
	return quota / period < 0.01 ? 1 : (unsigned)(100 * quota / period);
}

/* The tightest quota of our control group (version 2) and those above it. */
static unsigned read_quota(void)
{
	char line[512], path[600], *group;
	unsigned tightest = 0;

	if (!read_line("/proc/self/cgroup", line, sizeof(line)) || strncmp(line, "0::", 3))
		return 0;
	for (group = line + 3; *group;) {
		unsigned q;

		snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cpu.max", group);
		q = quota_of(path);
		if (q && (!tightest || q < tightest))
			tightest = q;
		*strrchr(group, '/') = 0;
	}
	return tightest;
}

static void read_cpus(struct ur_doctor_facts *f)
{
	cpu_set_t set;

	f->cpus = sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
	f->quota_percent = read_quota();
}

/* --- the clock --- */

/* The best round: another process may have had the CPU in the rest. */
static void read_clock(struct ur_doctor_facts *f)
{
	ur_time best = UR_TIME_NEVER;

	for (int round = 0; round < CLOCK_ROUNDS; round++) {
		ur_time begin = ur_clock_now(), took;

		for (int i = 1; i < CLOCK_READS; i++)
			ur_clock_now();
		took = ur_clock_now() - begin;
		best = took < best ? took : best;
	}
	f->clock_ns = (unsigned)ur_min_u32((uint32_t)(best / CLOCK_READS), 1u << 30);
	if (!read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", f->clock, sizeof(f->clock)))
		strcpy(f->clock, "(not readable)");
}

void ur_doctor_read_host(struct ur_doctor_facts *f)
{
	struct ur_config c;
	struct rlimit lim;
	char err[512], scope[16];

	read_capabilities(f);
	read_kernel(f);
	read_cpus(f);
	read_clock(f);
	if (read_line("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof(scope)))
		f->ptrace_scope = (unsigned)atoi(scope);
	f->copy_error = copy_error();
	f->memlock = getrlimit(RLIMIT_MEMLOCK, &lim) || lim.rlim_cur == RLIM_INFINITY ? UINT64_MAX : lim.rlim_cur;
	strcpy(f->port_setting, "auto");
	f->settings_unknown = ur_config_load(&c, err, sizeof(err)) != 0;
	if (f->settings_unknown)
		return;
	f->spin_us = c.spin_us;
	snprintf(f->port_setting, sizeof(f->port_setting), "%.15s", c.port);
	snprintf(f->fault, sizeof(f->fault), "%.*s", (int)sizeof(f->fault) - 1, c.fault);
	f->capture = c.capture[0];
	f->trace = c.trace[0];
}
