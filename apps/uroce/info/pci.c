/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce info --pci: the NICs of this host that a program could own, and what prevents it. */
#include <arpa/inet.h>
#include <stdio.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/info/info.h"
#include "drivers/pci/bind.h"

#define NICS 64

static void print_kernel_addresses(const char *ifname)
{
	struct ur_pci_if nif;
	char ip[INET6_ADDRSTRLEN];

	if (ur_pci_if_save(ifname, &nif))
		return;
	for (unsigned i = 0; i < nif.naddr; i++)
		printf("%s%s/%u", i ? ", " : " ", ur_pci_ip_text(&nif.addr[i].ip, ip), nif.addr[i].len);
}

static void print_interfaces(const struct ur_pci_nic *nic)
{
	for (unsigned i = 0; i < nic->ifnames; i++) {
		printf("  interface    %s", nic->ifname[i]);
		print_kernel_addresses(nic->ifname[i]);
		if (ur_pci_if_default_route(&ur_pci_system, nic->ifname[i]))
			printf("%s", "; the default route uses it");
		putchar('\n');
	}
}

/* Of a NIC that a program can open, or could after 'uroce bind'. */
static void print_state(const struct ur_pci_nic *nic)
{
	char err[UR_PCI_SENTENCE];
	int pid = ur_pci_user(&ur_pci_system, nic);

	if (pid)
		printf("  in use       by process %d\n", pid);
	else if (ur_pci_is_user_driver(nic->driver))
		printf("  ready        uroce run --pci %s --ip ADDR/LEN -- PROGRAM\n", nic->addr);
	else if (ur_pci_obstacle(&ur_pci_system, nic, "vfio-pci", err, sizeof(err)))
		printf("  in the way   %s\n", err);
	else
		printf("  to bind it   uroce bind %s%s\n", nic->addr, nic->ifnames ? " --keep-addresses" : "");
}

int ur_info_pci(void)
{
	static struct ur_pci_nic nics[NICS];
	unsigned n = ur_pci_list(&ur_pci_system, nics, NICS);
	char name[256];

	for (unsigned i = 0; i < n; i++) {
		ur_pci_name(&ur_pci_system, &nics[i], name, sizeof(name));
		printf("%s  %s (%04x:%04x)\n", nics[i].addr, name, nics[i].vendor, nics[i].device);
		printf("  driver       %s\n", *nics[i].driver ? nics[i].driver : "none");
		print_interfaces(&nics[i]);
		if (nics[i].group >= 0)
			printf("  IOMMU group  %d\n", nics[i].group);
		print_state(&nics[i]);
	}
	if (!n)
		puts("This host has no PCI NIC.");
	return 0;
}
