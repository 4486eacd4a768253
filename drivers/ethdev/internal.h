/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of drivers/ethdev share. Those that touch DPDK are eal.c, port.c, close.c, io.c and dma.c;
 * afpacket.c knows the kernel alone.
 */
#ifndef UR_ETHDEV_INTERNAL_H
#define UR_ETHDEV_INTERNAL_H

#include "drivers/ethdev/ethdev.h"
#include "drivers/os/fail.h"
#include "drivers/os/kif.h"
#include "drivers/pmd/pmd.h"

/* eal.c */
int ur_eal_start(const struct ur_ethdev_config *cfg, char *err, size_t errlen);
const char *ur_eal_more_log(void); /* the end of a sentence: how to see all that DPDK logs; "" when that is shown already */
const char *ur_eal_last_log(void); /* the last line that DPDK logged since ur_eal_forget_log */
bool ur_eal_has_logged(const char *words); /* since the process began, as far as it is kept */
void ur_eal_forget_log(void);
bool ur_eal_started(void);
bool ur_eal_private(void);         /* DPDK's memory is this process's alone, also after fork */
bool ur_eal_forked(void);          /* EAL was started by an ancestor: its service thread is not in this process */
/* Calls fn(arg) in EAL's service thread, between two of its own errands, and waits; in this thread where there is no such thread. */
void ur_eal_in_service(void (*fn)(void *), void *arg);

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

/* Does the device need memory that another process or a bus can reach? */
static inline bool ur_ethdev_shares_memory(const struct ur_ethdev_config *cfg)
{
	return !cfg->ifname && (!cfg->vdev || ur_pmd_shares_memory(cfg->vdev));
}

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
