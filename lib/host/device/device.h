/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/host: what this host shows: the device that the settings select, its addresses and routes, its files, and the processes that use it.
 * Nothing here sends a packet, and threads are started only for callers of spool.h and hang_up.h. The engine takes its slot with names.h,
 * page.h and handshake.h; observers, such as the command, need only device.h, view.h and processes.h, and take none.
 */
#ifndef UR_DEVICE_H
#define UR_DEVICE_H

#include "config/config.h"
#include "drivers/pci/pci.h"
#include "host/device/hostif.h"
#include "host/device/info.h"

struct ur_device {
	struct ur_device_info info;
	struct ur_hostif hostif; /* of one that is shared with the kernel */
	bool is_nic;             /* a PCI NIC of our own */
	unsigned twins;          /* earlier devices of the process with the same MAC address */
	uint64_t key;            /* names it among all of its network namespace (processes.h) */
};

/*
 * Puts into `dev` the names of the interfaces that it stands for, each once, so that it means the same ones from then on: a network or a
 * pattern becomes all that fit, in the order of their names. 0, or an errno and one sentence in err: EINVAL for an empty item, an interface
 * that is named twice, or more than UR_DEVICES; ENODEV where nothing fits.
 */
int ur_device_expand(struct ur_config *c, char *err, size_t errlen);
/* How many devices the settings name: the interfaces that `dev` lists, or one. */
unsigned ur_device_count(const struct ur_config *c);
/*
 * One of the devices that the settings mean: uroce0 is that of index 0. 0, or an errno and one sentence in err; ENODEV when they name none
 * and none can be chosen.
 */
int ur_device_find(const struct ur_config *c, unsigned index, struct ur_device *d, char *err, size_t errlen);
/* Makes the addresses and routes of `net` the device's. 0, or an errno and one sentence in err. */
int ur_device_addresses(const struct ur_config *c, const struct ur_device *d, struct ur_net *net, char *err, size_t errlen);
bool ur_device_has_address(const struct ur_net *net);
/*
 * What keeps a shared interface from carrying packets at present, as one sentence: it is down, has no carrier, or `net` (see above) has no
 * address of it. False when nothing does.
 */
bool ur_device_obstacle(const struct ur_device_info *info, const struct ur_hostif *h, const struct ur_net *net, char *text, size_t len);
/* An address of a port of our own: ADDRESS[/LENGTH][@VLAN]. 0, or EINVAL and one sentence in err. */
int ur_device_parse_ip(const char *text, struct ur_net_addr *a, char *err, size_t errlen);
/* Its gateway: ADDRESS. 0, or EINVAL and one sentence in err. */
int ur_device_parse_gw(const char *text, struct ur_net_route *r, char *err, size_t errlen);
/* The address of the PCI NIC that the settings name; false when they name none. */
bool ur_device_pci(const struct ur_config *c, char pci[UR_PCI_ADDR_TEXT]);

#endif
