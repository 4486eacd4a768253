/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handing a NIC to DPDK and back, as driverctl does it: the file driver_override of the device names the driver that the kernel should
 * bind. What was there before is kept in a file, which unbinding reads.
 */
#ifndef UR_PCI_BIND_H
#define UR_PCI_BIND_H

#include "drivers/pci/pci.h"

#define UR_PCI_IF_ADDRS 16
#define UR_PCI_IF_ROUTES 16

struct ur_pci_ip {
	int family; /* AF_INET or AF_INET6; 0: none */
	uint8_t raw[16];
};

/* What the kernel knows of an interface, and loses when the interface disappears. */
struct ur_pci_if {
	char name[IF_NAMESIZE]; /* empty: there was none */
	uint8_t mac[6];
	unsigned mtu;
	bool up;
	unsigned naddr, nroute;
	struct {
		struct ur_pci_ip ip;
		unsigned len;
	} addr[UR_PCI_IF_ADDRS];
	struct {
		struct ur_pci_ip dst, gateway, src;
		unsigned len, metric;
	} route[UR_PCI_IF_ROUTES];
};

/* Of a NIC that is bound, what there was before. */
struct ur_pci_state {
	char driver[UR_PCI_DRIVER_TEXT]; /* empty: none */
	unsigned huge_pages;             /* that we have added */
	bool keep;                       /* programs on the NIC should have the addresses that the kernel had */
	struct ur_pci_if nif;
};

/* --- ifnet.c: over netlink --- */

/* 0 or an errno. */
int ur_pci_if_save(const char *ifname, struct ur_pci_if *nif);
/* Gives an interface what `nif` says; what it has already stays. 0 or an errno, the first. */
int ur_pci_if_restore(const char *ifname, const struct ur_pci_if *nif);
/* Of an interface that is down. 0 or an errno. */
int ur_pci_if_rename(const char *ifname, const char *name);
/* Does the interface carry a default route, or one above it, such as a bridge or a bond? */
bool ur_pci_if_default_route(const struct ur_pci_roots *r, const char *ifname);
/* "10.0.0.1", in `out` of INET6_ADDRSTRLEN characters. */
const char *ur_pci_ip_text(const struct ur_pci_ip *ip, char *out);

/* --- state.c --- */

/* Opens the directory of the states, made when it is missing, and locks it. A descriptor, or -1 and a sentence. */
int ur_pci_state_lock(const struct ur_pci_roots *r, char *err, size_t errlen);
/* 0; ENOENT: there is none; EPERM: it is not a file that only we can have written; EINVAL: it is damaged. */
int ur_pci_state_read(int dir, const char *addr, struct ur_pci_state *s);
int ur_pci_state_write(int dir, const char *addr, const struct ur_pci_state *s);
void ur_pci_state_remove(int dir, const char *addr);
/* The state of a NIC, for who only looks. As ur_pci_state_read. */
int ur_pci_state_view(const struct ur_pci_roots *r, const char *addr, struct ur_pci_state *s);

/* --- bind.c --- */

struct ur_pci_bind {
	const char *addr;
	const char *driver; /* to bind to; NULL: vfio-pci */
	bool keep;          /* as in the state */
	bool default_route; /* take the interface although a default route leads through it */
	bool dry;           /* only show what would be done */
	void (*say)(const char *sentence);
	/*
	 * Stops what a killed program has left running, before the kernel has the NIC; or NULL. False when it could not, and the reason.
	 */
	bool (*still)(const char *addr, char *why, size_t len);
};

/* 0, or an errno and one sentence in err; all is then as before. */
int ur_pci_bind(const struct ur_pci_roots *r, const struct ur_pci_bind *b, char *err, size_t errlen);
/* The same for the way back. What cannot be put back is said, and the rest is. */
int ur_pci_unbind(const struct ur_pci_roots *r, const struct ur_pci_bind *b, char *err, size_t errlen);

#endif
