/* SPDX-License-Identifier: BSD-3-Clause */
/* What is in the way of a program that wants a NIC: no IOMMU, neighbours in its group, somebody who has it. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "drivers/os/fail.h"
#include "drivers/pci/pci.h"

/* Drivers that leave a device to programs. The kernel itself lets those of `stubs` stay in a group that vfio uses. */
static const char *const user_drivers[] = {"vfio-pci", "uio_pci_generic", "igb_uio"};
static const char *const stubs[] = {"pci-stub", "pcieport"};

static bool listed(const char *const *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i], name))
			return true;
	return false;
}

bool ur_pci_is_user_driver(const char *driver)
{
	return listed(user_drivers, sizeof(user_drivers) / sizeof(user_drivers[0]), driver);
}

bool ur_pci_is_vfio(const char *driver)
{
	return !strcmp(driver, "vfio-pci");
}

/* --- who has it --- */

static bool has_open(const struct ur_pci_roots *r, const char *pid, const char *wanted)
{
	char path[UR_PCI_PATH], target[UR_PCI_PATH];
	struct dirent *e;
	bool found = false;
	DIR *d;

	if (!ur_pci_path(path, r->proc, "/%s/fd", pid) || !(d = opendir(path)))
		return false;
	while (!found && (e = readdir(d)))
		if (ur_pci_path(path, r->proc, "/%s/fd/%s", pid, e->d_name)) {
			ssize_t n = readlink(path, target, sizeof(target) - 1);

			target[n > 0 ? n : 0] = 0;
			found = !strcmp(target, wanted);
		}
	closedir(d);
	return found;
}

int ur_pci_user(const struct ur_pci_roots *r, const struct ur_pci_nic *nic)
{
	char wanted[UR_PCI_PATH];
	struct dirent *e;
	int pid = 0;
	DIR *d;

	if (nic->group < 0 || !ur_pci_is_vfio(nic->driver) || !ur_pci_path(wanted, r->dev, "/vfio/%d", nic->group))
		return 0;
	d = opendir(r->proc);
	while (d && !pid && (e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]) && has_open(r, e->d_name, wanted))
			pid = atoi(e->d_name);
	if (d)
		closedir(d);
	return pid;
}

/* --- the group --- */

#define BRIDGE_CLASS 0x06

/* A device of the kernel's in the NIC's group, which makes vfio refuse the whole group. */
static bool foreign_member(const struct ur_pci_roots *r, const char *member, char driver[UR_PCI_DRIVER_TEXT])
{
	char path[UR_PCI_PATH], class[32] = "";

	*driver = 0;
	if (ur_pci_path(path, r->sys, "/bus/pci/devices/%s/class", member))
		ur_pci_read(path, class, sizeof(class));
	if (strtoul(class, NULL, 16) >> 16 == BRIDGE_CLASS)
		return false;
	if (ur_pci_path(path, r->sys, "/bus/pci/devices/%s/driver", member))
		ur_pci_link(path, driver, UR_PCI_DRIVER_TEXT);
	return *driver && !ur_pci_is_user_driver(driver) && !listed(stubs, sizeof(stubs) / sizeof(stubs[0]), driver);
}

static int check_group(const struct ur_pci_roots *r, const struct ur_pci_nic *nic, char *err, size_t errlen)
{
	char path[UR_PCI_PATH], driver[UR_PCI_DRIVER_TEXT], member[UR_PCI_ADDR_TEXT];
	struct dirent *e;
	int rc = 0;
	DIR *d;

	if (!ur_pci_path(path, r->sys, "/kernel/iommu_groups/%d/devices", nic->group) || !(d = opendir(path)))
		return 0;
	while (!rc && (e = readdir(d)))
		if (ur_pci_addr(e->d_name, member) && strcmp(e->d_name, nic->addr) && foreign_member(r, e->d_name, driver))
			rc = ur_port_fail(err, errlen, EBUSY,
					  "%s shares IOMMU group %d with %s, which the kernel's driver %s uses: unbind that one as well "
					  "('driverctl set-override %s vfio-pci'), or put the NIC into another slot",
					  nic->addr, nic->group, member, driver, member);
	closedir(d);
	return rc;
}

/* --- all of it --- */

int ur_pci_obstacle(const struct ur_pci_roots *r, const struct ur_pci_nic *nic, const char *driver, char *err, size_t errlen)
{
	if (!ur_pci_is_vfio(driver))
		return 0; /* the others know no IOMMU and no groups */
	if (nic->group < 0)
		return ur_port_fail(
			err, errlen, EOPNOTSUPP,
			"%s is not behind an IOMMU, which vfio-pci needs: switch VT-d or AMD-Vi on in the firmware and boot with "
			"intel_iommu=on, or as root give --driver uio_pci_generic, with which the NIC can reach all memory",
			nic->addr);
	if (nic->bypass)
		return ur_port_fail(err, errlen, EOPNOTSUPP,
				    "%s is a virtio NIC that bypasses the IOMMU: have the hypervisor give it "
				    "iommu_platform=on,disable-legacy=on, or give --driver uio_pci_generic",
				    nic->addr);
	return check_group(r, nic, err, errlen);
}
