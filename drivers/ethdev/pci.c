/* SPDX-License-Identifier: BSD-3-Clause */
/* Why DPDK has no port for a NIC. What it logs names the call that failed; what is wrong stands in sysfs more often than there. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "drivers/ethdev/internal.h"
#include "drivers/pci/pci.h"

/* What EAL has logged, and what it means. The sentences have room for the address and the IOMMU group. */
static const struct {
	const char *words;
	int code;
	const char *sentence;
} meanings[] = {
	{"Device or resource busy", EBUSY, "another program has %s (IOMMU group %d) open: end it first"},
	{"Permission denied", EPERM, "no permission to open %s: run as root, or give the file /dev/vfio/%d to this user"},
	{"not viable", EBUSY, "other devices that the kernel uses share the IOMMU group of %s (%d): 'uroce bind' says which"},
	{"failed to select IOMMU type", EPERM,
	 "vfio cannot attach %s (IOMMU group %d), usually because interrupts are not remapped: switch interrupt remapping on in the "
	 "firmware, or load vfio_iommu_type1 with allow_unsafe_interrupts=1"},
	{"error 12 (Cannot allocate memory)", ENOMEM,
	 "memory for %s (IOMMU group %d) cannot be locked: raise 'ulimit -l', or the limit of the service that starts the program, to "
	 "32768 KiB, and with --no-huge by the amount of -m and of the memory that the program registers"},
	{"Expecting 'PA' IOVA mode", EOPNOTSUPP,
	 "%s (IOMMU group %d) needs physical addresses: give --eal --iova-mode=pa, as root and with huge pages"},
	{"Expecting 'VA' IOVA mode", EOPNOTSUPP, "%s (IOMMU group %d) needs virtual addresses: remove --iova-mode from --eal"},
};

static int from_log(const struct ur_pci_nic *nic, char *err, size_t errlen)
{
	for (unsigned i = 0; i < ur_array_size(meanings); i++)
		if (ur_eal_has_logged(meanings[i].words)) {
			if (errlen)
				snprintf(err, errlen, meanings[i].sentence, nic->addr, nic->group);
			return meanings[i].code;
		}
	return 0;
}

/* Another process that has the NIC's group open. The kernel gives it to one alone. */
static int other_user(const struct ur_pci_nic *nic)
{
	char path[UR_PCI_PATH];
	int fd, pid;

	if (nic->group < 0 || !ur_pci_path(path, ur_pci_system.dev, "/vfio/%d", nic->group))
		return 0;
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	if (fd >= 0 || errno != EBUSY)
		return 0;
	pid = ur_pci_user(&ur_pci_system, nic);
	return pid == getpid() ? 0 : pid;
}

int ur_ethdev_check_nic(const char *addr, char *err, size_t errlen)
{
	struct ur_pci_nic nic;
	int rc = ur_pci_read_nic(&ur_pci_system, addr, &nic), pid;

	if (rc)
		return ur_port_fail(err, errlen, ENODEV, "%s %s: 'uroce info --pci' lists the NICs", addr,
				    rc == ENOENT ? "is not there" : "is not a network device");
	if (!ur_pci_is_user_driver(nic.driver))
		return ur_port_fail(err, errlen, ENODEV, "%s has %s%s: 'uroce bind %s' hands it over", addr,
				    *nic.driver ? "the kernel's driver " : "no driver", nic.driver, addr);
	pid = other_user(&nic);
	return pid ? ur_port_fail(err, errlen, EBUSY, "process %d has %s: end it first", pid, addr) : 0;
}

int ur_ethdev_why_no_nic(const char *addr, char *err, size_t errlen)
{
	struct ur_pci_nic nic;
	int rc = ur_ethdev_check_nic(addr, err, errlen);

	if (rc || ur_pci_read_nic(&ur_pci_system, addr, &nic))
		return rc ? rc : ENODEV;
	rc = from_log(&nic, err, errlen);
	if (rc)
		return rc;
	if (!ur_eal_has_logged("Probe PCI driver"))
		return ur_port_fail(
			err, errlen, EOPNOTSUPP,
			"none of DPDK's drivers in this uroce knows %s (%04x:%04x): build it with -Dpmds= and its driver's name", addr,
			nic.vendor, nic.device);
	return ur_port_fail(err, errlen, EIO, "DPDK cannot open %s (%s)%s", addr, ur_eal_last_log(), ur_eal_more_log());
}

int ur_ethdev_check_memory(const char *addr, char *err, size_t errlen)
{
	struct ur_pci_nic nic;
	int rc;

	if (!ur_eal_has_logged("Cannot set up DMA remapping") || ur_pci_read_nic(&ur_pci_system, addr, &nic))
		return 0;
	rc = from_log(&nic, err, errlen);
	return rc ? rc : ur_port_fail(err, errlen, EIO, "the kernel maps no memory for %s: UROCE_LOG=debug shows why", addr);
}
