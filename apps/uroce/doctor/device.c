/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce doctor: facts about the interface, its other users, and the owner of UDP port 4791. */
#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apps/uroce/doctor/doctor.h"
#include "apps/uroce/info/info.h"
#include "host/device/view.h"
#include "host/processes.h"
#include "wire/frame.h"

/* --- the interface --- */

static bool ethtool_get(int fd, const char *dev, uint32_t command, uint32_t *data)
{
	struct ethtool_value v = {.cmd = command};
	struct ifreq ifr = {.ifr_data = (char *)&v};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%.15s", dev);
	if (ioctl(fd, SIOCETHTOOL, &ifr))
		return false;
	*data = v.data;
	return true;
}

static void read_offloads(struct ur_doctor_facts *f)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint32_t v;

	if (fd < 0)
		return;
	f->gro = ethtool_get(fd, f->dev, ETHTOOL_GGRO, &v) && v;
	f->lro = ethtool_get(fd, f->dev, ETHTOOL_GFLAGS, &v) && (v & ETH_FLAG_LRO);
	close(fd);
}

static void read_addresses(struct ur_doctor_facts *f, const struct ur_net *net)
{
	for (unsigned i = 0; i < UR_NET_GIDS; i++) {
		const struct ur_net_addr *a = ur_net_gid(net, i);

		if (!a)
			continue;
		if (!f->addresses++)
			ur_gid_ip(&a->gid, f->address);
		if (ur_gid_is_v4(&a->gid))
			f->v4 = true;
		else
			f->v6 = true;
	}
}

/* --- other processes of uroce --- */

static void read_processes(struct ur_doctor_facts *f, const struct ur_device *d)
{
	struct ur_processes *v;

	if (ur_processes_list(d->key, &v))
		return;
	f->processes_known = true;
	for (unsigned i = 0; i < v->count; i++) {
		const struct ur_process *p = &v->processes[i];

		if (f->process_count < UR_DOCTOR_PROCESSES)
			f->processes[f->process_count] = (struct ur_doctor_process){
				.pid = p->pid, .uid = p->uid, .silent = !p->known && (p->uid == f->uid || f->uid == 0)};
		f->process_count++;
	}
	free(v);
}

/* --- sockets on UDP port 4791 --- */

/* The inode of each holder's socket goes into `inodes`. */
static bool read_sockets(struct ur_doctor_facts *f, const char *path, uint64_t *inodes)
{
	FILE *in = fopen(path, "re");
	char line[512];

	while (in && fgets(line, sizeof(line), in) && f->holder_count < UR_DOCTOR_HOLDERS) {
		unsigned port, uid;
		uint64_t number;

		if (sscanf(line, " %*u: %*[0-9A-Fa-f]:%x %*s %*s %*s %*s %*s %u %*u %" SCNu64, &port, &uid, &number) != 3 || port != 4791)
			continue;
		f->holders[f->holder_count] = (struct ur_doctor_holder){.uid = uid, .kernel = true};
		inodes[f->holder_count++] = number;
	}
	if (in)
		fclose(in);
	return in != NULL;
}

static void name_of(pid_t pid, char *name, size_t len)
{
	char path[64];
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	in = fopen(path, "re");
	if (!in || !fgets(name, (int)len, in))
		snprintf(name, len, "?");
	if (in)
		fclose(in);
	name[strcspn(name, "\n")] = 0;
}

static bool is_uroce(const struct ur_doctor_facts *f, pid_t pid)
{
	for (unsigned i = 0; i < ur_min_u32(f->process_count, UR_DOCTOR_PROCESSES); i++)
		if (f->processes[i].pid == pid)
			return true;
	return false;
}

/* The first process that has the socket: its children may have it, too. */
static void take_socket(struct ur_doctor_facts *f, pid_t pid, uint64_t number, const uint64_t *inodes)
{
	for (unsigned i = 0; i < f->holder_count; i++) {
		struct ur_doctor_holder *h = &f->holders[i];

		if (inodes[i] != number || h->pid)
			continue;
		h->pid = pid;
		h->kernel = false;
		h->uroce = is_uroce(f, pid);
		name_of(pid, h->name, sizeof(h->name));
	}
}

static void look_at_process(struct ur_doctor_facts *f, pid_t pid, const uint64_t *inodes)
{
	char path[64], link[64];
	struct dirent *d;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && (d = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), d->d_name, link, sizeof(link) - 1);
		uint64_t number;

		if (n <= 0)
			continue;
		link[n] = 0;
		if (sscanf(link, "socket:[%" SCNu64 "]", &number) == 1)
			take_socket(f, pid, number, inodes);
	}
	if (dir)
		closedir(dir);
}

static void read_holders(struct ur_doctor_facts *f)
{
	uint64_t inodes[UR_DOCTOR_HOLDERS] = {0};
	struct dirent *d;
	DIR *proc;

	f->holders_known = read_sockets(f, "/proc/net/udp", inodes);
	read_sockets(f, "/proc/net/udp6", inodes); /* absent without IPv6 */
	proc = f->holder_count ? opendir("/proc") : NULL;
	while (proc && (d = readdir(proc)))
		if (isdigit((unsigned char)d->d_name[0]))
			look_at_process(f, (pid_t)atoi(d->d_name), inodes);
	if (proc)
		closedir(proc);
}

/* rdma_rxe's devices are those that name their interface in `parent`. */
static void read_rxe(struct ur_doctor_facts *f)
{
	DIR *dir = opendir("/sys/class/infiniband");
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		char path[300], parent[64] = "";
		FILE *in;

		snprintf(path, sizeof(path), "/sys/class/infiniband/%.200s/parent", d->d_name);
		in = d->d_name[0] == '.' ? NULL : fopen(path, "re");
		if (in && fgets(parent, sizeof(parent), in))
			parent[strcspn(parent, "\n")] = 0;
		if (!strcmp(parent, f->dev))
			snprintf(f->rxe, sizeof(f->rxe), "%.63s", d->d_name);
		if (in)
			fclose(in);
	}
	if (dir)
		closedir(dir);
}

void ur_doctor_read_device(struct ur_doctor_facts *f)
{
	struct ur_view v;

	if (ur_view_open(&v, 0, f->dev_why, sizeof(f->dev_why)))
		return;
	snprintf(f->dev, sizeof(f->dev), "%s", v.device.info.ifname);
	f->mtu = v.device.info.owned ? v.device.info.mtu : v.device.hostif.whole_mtu;
	f->up = v.device.hostif.enabled;
	f->carrier = v.device.hostif.up;
	read_offloads(f);
	read_addresses(f, v.net);
	read_processes(f, &v.device);
	ur_view_close(&v);
	read_holders(f);
	read_rxe(f);
}
