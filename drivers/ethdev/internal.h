/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of drivers/ethdev share. Those that touch DPDK are eal.c, port.c, io.c and dma.c; pmd.c knows its drivers by their names,
 * afpacket.c the kernel alone.
 */
#ifndef UR_ETHDEV_INTERNAL_H
#define UR_ETHDEV_INTERNAL_H

#include "drivers/ethdev/ethdev.h"
#include "drivers/os/fail.h"
#include "drivers/os/kif.h"

#define UR_EAL_PREFIX "uroce-" /* of the runtime directory; the pid follows */

/* telemetry.c: removes the sockets of processes that were killed, with their runtime directories. */
void ur_telemetry_sweep(void);

#define UR_ETH_OVERHEAD 18 /* Ethernet header and one VLAN tag */

/* eal.c */
int ur_eal_start(const struct ur_ethdev_config *cfg, char *err, size_t errlen);
const char *ur_eal_last_log(void); /* the last line that DPDK logged since ur_eal_forget_log */
bool ur_eal_has_logged(const char *words); /* since the process began, as far as it is kept */
void ur_eal_forget_log(void);
bool ur_eal_started(void);
bool ur_eal_private(void);         /* DPDK's memory is this process's alone, also after fork */
bool ur_eal_forked(void);          /* EAL was started by an ancestor: its service thread is not in this process */

/*
 * What DPDK does to the calling thread and the process, undone: CPU affinity, signal mask, signal dispositions. Between the two
 * calls the thread blocks all asynchronous signals, so that threads started meanwhile never take the program's signals.
 */
struct ur_eal_guard;
struct ur_eal_guard *ur_eal_guard_begin(void);
/*
 * Until the guard ends no realtime signal is free. A driver that looks for one to be told of packets by (net_tap) then does without; what
 * it installs would not outlive the guard, and the first packet would end the process.
 */
void ur_eal_guard_hide_signals(const struct ur_eal_guard *g);
void ur_eal_guard_end(struct ur_eal_guard *g);

/* pci.c: is there a NIC at that address that is ours to open, as far as the kernel shows? 0, or an errno and the sentence. */
int ur_ethdev_check_nic(const char *addr, char *err, size_t errlen);
/* Why DPDK has no port for it: an errno, and the sentence. */
int ur_ethdev_why_no_nic(const char *addr, char *err, size_t errlen);
/* Whether the kernel has mapped all of DPDK's memory for it; DPDK goes on without. 0, or an errno and the sentence. */
int ur_ethdev_check_memory(const char *addr, char *err, size_t errlen);

/* pmd.c: what DPDK does not tell about its drivers. */
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
	 * neighbours in memory, and else drops the frame without a word. For a real one it costs a descriptor now and then.
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
/* Does the device need memory that another process or a bus can reach? True for devices that are not known. */
bool ur_pmd_shares_memory(const struct ur_ethdev_config *cfg);
/* Completes the arguments of a virtual device (what follows its name) with the defaults of its driver. EINVAL when too long. */
int ur_pmd_args(const struct ur_pmd *pmd, const char *given, char *out, size_t outlen);
/* The MTU that a device with these arguments carries when `mtu` is asked of it. */
uint16_t ur_pmd_mtu(const struct ur_pmd *pmd, const char *args, uint16_t mtu);
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

/* afpacket.c: the packet socket behind net_af_packet, on a kernel interface. */
#define UR_AFP_FDS 32

struct ur_afp_fds {
	int fd[UR_AFP_FDS];
	unsigned n;
};

/* May we do what DPDK's driver will do to the interface? Tells whether it is promiscuous before that. */
int ur_afp_check(const struct ur_kif *k, bool *promisc, char *err, size_t errlen);
/* This process's packet sockets that are bound to the interface. */
void ur_afp_scan(const struct ur_kif *k, struct ur_afp_fds *out);
/* Takes charge of the socket that appeared since `before`: wake-up, filter, close on exec. DPDK still owns it. EIO when there is none. */
int ur_afp_adopt(const struct ur_kif *k, const struct ur_afp_fds *before, int *wake);
/* Puts back the interface flags that DPDK changed. */
void ur_afp_restore(const struct ur_kif *k, bool promisc);

#endif
