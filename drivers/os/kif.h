/* SPDX-License-Identifier: BSD-3-Clause */
/* A network interface of the kernel, for the drivers that share it through packet sockets. */
#ifndef UR_KIF_H
#define UR_KIF_H

#include <net/if.h>

#include "base/base.h"

struct ur_kif {
	char name[IFNAMSIZ];
	int index;
	int ctl; /* a packet socket that receives nothing: ioctls and multicast memberships */
	struct ur_mac *mcast; /* the memberships of `ctl`, sorted */
	unsigned nmcast;
	struct ur_mac mac;
	uint16_t mtu;
	bool loopback;
};

/* 0, or an errno and a sentence: ENODEV, ENETDOWN, EPERM, EOPNOTSUPP when it is not Ethernet. */
int ur_kif_open(struct ur_kif *k, const char *name, char *err, size_t errlen);
/* No more than multicast memberships on an interface that somebody else uses. 0 or an errno. */
int ur_kif_open_for_mcast(struct ur_kif *k, const char *name);
void ur_kif_close(struct ur_kif *k);
bool ur_kif_running(const struct ur_kif *k);
uint32_t ur_kif_speed(const struct ur_kif *k); /* Mbit/s, 0 when unknown */
int ur_kif_set_mcast(struct ur_kif *k, const struct ur_mac *macs, unsigned n);
/* Lets a packet socket on the interface have nothing but what is for us. 0 or an errno. */
int ur_kif_filter(const struct ur_kif *k, int fd);
/* An ioctl on the interface; its name is put into the request. 0 or an errno. */
int ur_kif_ioctl(const struct ur_kif *k, unsigned long req, struct ifreq *ifr);

#endif
