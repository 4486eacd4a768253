/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drivers/pci: the PCI NICs of this host as sysfs shows them, and handing one from the kernel's driver to DPDK and back. It knows neither
 * DPDK nor the engine. What it reads and writes lies below the directories of a struct ur_pci_roots, so that tests have trees of their own.
 */
#ifndef UR_PCI_H
#define UR_PCI_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UR_PCI_ADDR_TEXT 20 /* "0000:03:00.0"; domains of up to 8 digits occur */
#define UR_PCI_DRIVER_TEXT 32
#define UR_PCI_IFS 4
#define UR_PCI_PATH 512
#define UR_PCI_SENTENCE 400
#define UR_PCI_HUGE_PAGES 48 /* of 2 MB: what 'uroce bind' sees free: for a program, and what children of killed ones keep */

struct ur_pci_roots {
	const char *sys, *dev, *proc, *share; /* of the kernel, and /usr/share */
	const char *run;                      /* the directory of what has to be put back, whose parent exists */
};

extern const struct ur_pci_roots ur_pci_system;

struct ur_pci_nic {
	char addr[UR_PCI_ADDR_TEXT];
	uint16_t vendor, device;
	char driver[UR_PCI_DRIVER_TEXT]; /* empty: none */
	int group;                       /* of the IOMMU; -1: none */
	bool bypass;                     /* a virtio NIC that does not go through the IOMMU, as long as its own driver has it */
	char ifname[UR_PCI_IFS][IF_NAMESIZE];
	unsigned ifnames;
};

/* Writes the long form of "0000:03:00.0" or "03:00.0" to `out`; false when the text is neither. */
bool ur_pci_addr(const char *text, char out[UR_PCI_ADDR_TEXT]);
/* 0; ENOENT: there is no such device; ENODEV: it is not a network device. */
int ur_pci_read_nic(const struct ur_pci_roots *r, const char *addr, struct ur_pci_nic *nic);
/* The first `max` NICs in the order of their addresses. */
unsigned ur_pci_list(const struct ur_pci_roots *r, struct ur_pci_nic *nics, unsigned max);
/* The PCI address of a kernel interface; false when it is on no PCI device. */
bool ur_pci_of_interface(const struct ur_pci_roots *r, const char *ifname, char addr[UR_PCI_ADDR_TEXT]);
/* What it is called in pci.ids, or its numbers. */
void ur_pci_name(const struct ur_pci_roots *r, const struct ur_pci_nic *nic, char *out, size_t len);

/* Is it a driver that leaves the device to programs? */
bool ur_pci_is_user_driver(const char *driver);
/* The one that needs an IOMMU? */
bool ur_pci_is_vfio(const char *driver);
/* A process that has the device's IOMMU group open; 0: none that we may see. */
int ur_pci_user(const struct ur_pci_roots *r, const struct ur_pci_nic *nic);
/* 0 when nothing is in the way of `driver`; else an errno and one sentence that says what is and what to do. */
int ur_pci_obstacle(const struct ur_pci_roots *r, const struct ur_pci_nic *nic, const char *driver, char *err, size_t errlen);

/* --- small files, for the files of this folder --- */

/* Joins root and the formatted rest. False when it is too long. */
bool ur_pci_path(char out[UR_PCI_PATH], const char *root, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The first line; false when there is none. */
bool ur_pci_read(const char *path, char *out, size_t len);
/* 0 or an errno. */
int ur_pci_write(const char *path, const char *text);
/* The last part of what a symbolic link points to; empty when there is no link. */
void ur_pci_link(const char *path, char *out, size_t len);

#endif
