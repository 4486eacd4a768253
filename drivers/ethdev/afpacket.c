/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet socket behind net_af_packet. It belongs to DPDK, but DPDK offers neither its descriptor, which is what a sleeper waits on,
 * nor a filter, without which every frame of the kernel's own traffic is copied into our ring.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "drivers/ethdev/internal.h"

int ur_afp_check(const struct ur_kif *k, bool *promisc, char *err, size_t errlen)
{
	struct ifreq ifr = {.ifr_flags = 0};
	int rc = ur_kif_ioctl(k, SIOCGIFFLAGS, &ifr);

	*promisc = ifr.ifr_flags & IFF_PROMISC;
	/* Changes nothing, but DPDK's driver will do the same and fail silently. */
	rc = rc ? rc : ur_kif_ioctl(k, SIOCSIFFLAGS, &ifr);
	if (rc == EPERM)
		return ur_port_fail(err, errlen, EPERM, "no permission to control %s: run as root or with CAP_NET_RAW and CAP_NET_ADMIN",
				    k->name);
	return 0;
}

static bool bound_here(int fd, int ifindex)
{
	struct sockaddr_ll sll = {0};
	socklen_t len = sizeof(int);
	int domain;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) || domain != AF_PACKET)
		return false;
	len = sizeof(sll);
	return getsockname(fd, (struct sockaddr *)&sll, &len) == 0 && sll.sll_ifindex == ifindex;
}

void ur_afp_scan(const struct ur_kif *k, struct ur_afp_fds *out)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;

	out->n = 0;
	while (d && (e = readdir(d)) && out->n < UR_AFP_FDS) {
		int fd = atoi(e->d_name);

		if (e->d_name[0] != '.' && bound_here(fd, k->index))
			out->fd[out->n++] = fd;
	}
	if (d)
		closedir(d);
}

int ur_afp_adopt(const struct ur_kif *k, const struct ur_afp_fds *before, int *wake)
{
	struct ur_afp_fds now;

	ur_afp_scan(k, &now);
	for (unsigned i = 0; i < now.n; i++) {
		int version = -1;
		socklen_t len = sizeof(version);
		bool old = false;

		for (unsigned j = 0; j < before->n; j++)
			old |= before->fd[j] == now.fd[i];
		if (old || getsockopt(now.fd[i], SOL_PACKET, PACKET_VERSION, &version, &len) || version != TPACKET_V2)
			continue;
		*wake = now.fd[i];
		fcntl(*wake, F_SETFD, FD_CLOEXEC);
		return ur_kif_filter(k, *wake);
	}
	return EIO;
}

void ur_afp_restore(const struct ur_kif *k, bool promisc)
{
	struct ifreq ifr = {.ifr_flags = 0};

	if (ur_kif_ioctl(k, SIOCGIFFLAGS, &ifr) || !!(ifr.ifr_flags & IFF_PROMISC) == promisc)
		return;
	ifr.ifr_flags = (short)(ifr.ifr_flags ^ IFF_PROMISC);
	ur_kif_ioctl(k, SIOCSIFFLAGS, &ifr);
}
