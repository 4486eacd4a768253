/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drivers/pmd: what there is to know of DPDK's poll-mode drivers without DPDK, by their names: which memory they copy from, what they need,
 * and defaults that carry RoCE's 4096.
 */
#ifndef UR_PMD_H
#define UR_PMD_H

#include "wire/pkt.h"

#define UR_ETH_OVERHEAD 18 /* Ethernet header and one VLAN tag */

enum ur_pmd_flag {
	UR_PMD_COPIES = 1,     /* copies frames out of any memory, chained or not, before tx_burst returns or never looks at them */
	UR_PMD_ALL_FRAMES = 2, /* delivers whatever the other side sends: no address filter to set */
	UR_PMD_SERVICE = 4,    /* needs EAL's service thread */
	UR_PMD_SHARED_MEM = 8, /* hands EAL's memory to another process */
	UR_PMD_SIGNALS = 16,   /* wants a realtime signal, and can do without */
	UR_PMD_KERNEL_IF = 32, /* on the kernel interface that the argument `iface` names, whose multicast filter it cannot set */
	UR_PMD_MEETS = 64,     /* role=client does not start before the other side, role=server */
	/*
	 * A NIC that qemu emulates with code of its own (hw/net/net_tx_pkt.c): a buffer that spans pages it reads only as far as these are
	 * neighbours in memory, and else drops the frame silently. For a real one it costs a descriptor now and then.
	 */
	UR_PMD_PAGES = 128,
	UR_PMD_WAKES = 256, /* its receive interrupt has been tried; with net_virtio and net_vmxnet3 qemu 7.2 crashed */
};

struct ur_pmd {
	const char *name;  /* of the driver, and how the names of its devices start */
	unsigned flags;    /* enum ur_pmd_flag */
	uint16_t mtu;      /* IP MTU when nobody asks for another; 0: ask DPDK */
	const char *args;  /* arguments added when not given: key=value,... or NULL */
	const char *limit; /* the argument that bounds a frame, or NULL */
};

const struct ur_pmd *ur_pmd_find(const char *driver_or_device);
/* Does a virtual device ("net_memif0,zero-copy=yes") need memory that another process can reach? True for devices that are not known. */
bool ur_pmd_shares_memory(const char *vdev);
/* Completes the arguments of a virtual device (what follows its name) with the defaults of its driver. EINVAL when too long. */
int ur_pmd_args(const struct ur_pmd *pmd, const char *given, char *out, size_t outlen);
/* The MTU that a device with these arguments carries when `mtu` is asked of it. */
uint16_t ur_pmd_mtu(const struct ur_pmd *pmd, const char *args, uint16_t mtu);
/* The MTU that a virtual device will have once it is open, where `mtu` is asked for or 0; 0 when only the device can tell. */
uint16_t ur_pmd_vdev_mtu(const char *vdev, uint16_t mtu);
/* Does it look for a server, which may not be there yet? */
bool ur_pmd_is_client(const struct ur_pmd *pmd, const char *args);
/* The number after key= in args, or `none`. */
unsigned long ur_pmd_arg_num(const char *args, const char *key, unsigned long none);
/* Copies the value of key= in args, cut to fit; false when there is none. */
bool ur_pmd_arg_text(const char *args, const char *key, char *out, size_t len);
/* Is key=value among the arguments? */
bool ur_pmd_arg_is(const char *args, const char *key, const char *value);
/* Removes the socket file that a dead memif server left behind. */
void ur_pmd_unlink_stale(const char *args);

#endif
