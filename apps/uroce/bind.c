/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce bind and unbind: a PCI NIC from the kernel to DPDK and back. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "apps/uroce/cli/child.h"
#include "apps/uroce/cli/cmd.h"
#include "base/base.h"
#include "drivers/pci/bind.h"
#include "uroce/uroce.h"

#define STILL_S 10 /* the link is waited for, three seconds at most */

static void print_sentence(const char *sentence)
{
	puts(sentence);
}

struct opening {
	const char *addr, *eal;
};

struct opened {
	bool done;
	char why[UR_PCI_SENTENCE];
};

/* Without settings: those of the user who gives the NIC back do not apply to it. */
static void open_and_close(const void *arg, void *result)
{
	const struct opening *nic = arg;
	struct opened *o = result;
	uint16_t id[4];
	char ip[64];

	memset(o, 0, sizeof(*o));
	clearenv();
	if (getrandom(id, sizeof(id), 0) != sizeof(id))
		return;
	snprintf(ip, sizeof(ip), "fe80::%x:%x:%x:%x/64", id[0], id[1], id[2], id[3]); /* there has to be one, and nobody has this */
	uroce_config("pci", nic->addr);
	uroce_config("ip", ip);
	uroce_config("eal", nic->eal);
	o->done = !uroce_start(); /* the end of the child closes it */
	if (!o->done)
		snprintf(o->why, sizeof(o->why), "%s", uroce_error());
}

/*
 * Of a program that was killed a NIC without a reset still has the rings, or even all that its driver has set up: vmxnet3 then takes no
 * notice of what the kernel's driver sets up. Any driver stops its NIC as it closes it. Huge pages may be short, and are not needed.
 */
static bool still(const char *addr, char *why, size_t len)
{
	static const char *const memory[] = {"", "--no-huge -m 128"};
	struct opened o;

	for (unsigned i = 0; i < ur_array_size(memory); i++) {
		const struct opening nic = {.addr = addr, .eal = memory[i]};

		if (!ur_child_run(open_and_close, &nic, &o, sizeof(o), STILL_S))
			snprintf(o.why, sizeof(o.why), "the driver died or had not finished after %d seconds", STILL_S);
		else if (o.done)
			return true;
	}
	snprintf(why, len, "%s", o.why);
	return false;
}

/* The PCI address of an address in either form or of an interface. 0, or the exit status after a message. */
static int find_nic(const char *word, char addr[UR_PCI_ADDR_TEXT])
{
	if (ur_pci_addr(word, addr) || ur_pci_of_interface(&ur_pci_system, word, addr))
		return 0;
	return ur_cmd_fail(UR_EXIT_FAIL, "'%s' is neither a PCI address nor an interface on a PCI NIC: 'uroce info --pci' lists the NICs",
			   word);
}

static struct ur_pci_bind b;
static const char *nic_driver;

static int run_as_root(char **argv, int (*work)(const struct ur_pci_roots *r, const struct ur_pci_bind *b, char *err, size_t errlen))
{
	char addr[UR_PCI_ADDR_TEXT], err[UR_PCI_SENTENCE] = "";
	int rc = find_nic(argv[0], addr);

	if (rc)
		return rc;
	if (geteuid())
		return ur_cmd_fail(UR_EXIT_FAIL, "only root may give a NIC another driver: run it with sudo");
	b.addr = addr;
	b.driver = nic_driver;
	b.say = print_sentence;
	b.still = still;
	return work(&ur_pci_system, &b, err, sizeof(err)) ? ur_cmd_fail(UR_EXIT_FAIL, "%s", err) : 0;
}

#define DRY_RUN                                                                                                                            \
	{                                                                                                                                  \
		"dry-run", .set = &b.dry, .help = "only show what would be done"                                                           \
	}
#define NIC_IS                                                                                                                             \
	"NIC is a PCI address such as 0000:03:00.0 or 03:00.0, or an interface such as eth1; `uroce info --pci` lists the NICs of this "   \
	"host."

static const struct ur_option bind_options[] = {
	{"keep-addresses", .set = &b.keep,
	 .help = "give programs on the NIC the addresses, gateways and MTU that the kernel has there now"},
	{"driver", "DRIVER", "vfio-pci uio_pci_generic igb_uio", .value = &nic_driver,
	 .help = "vfio-pci, the default, or without an IOMMU uio_pci_generic or igb_uio"},
	{"default-route", .set = &b.default_route, .help = "even if the default route uses the NIC"},
	DRY_RUN,
	{0},
};

static const struct ur_option unbind_options[] = {DRY_RUN, {0}};

static const struct ur_example bind_examples[] = {
	{"uroce bind --keep-addresses eth1", "The NIC of eth1, for programs that go on with its addresses."},
	{"uroce bind --dry-run 0000:03:00.0", "Only what would be done."},
	{0},
};

static const struct ur_example unbind_examples[] = {
	{"uroce unbind 0000:03:00.0", "The NIC at this address goes back to the kernel."},
	{"uroce unbind --dry-run 0000:03:00.0", "Only what would be done."},
	{0},
};

static int run_bind(int argc, char **argv)
{
	(void)argc;
	return run_as_root(argv, ur_pci_bind);
}

static int run_unbind(int argc, char **argv)
{
	(void)argc;
	return run_as_root(argv, ur_pci_unbind);
}

const struct ur_command ur_command_bind = {
	.name = "bind",
	.operands = "NIC",
	.complete = UR_COMPLETE_INTERFACE,
	.summary = "hand a PCI NIC from the kernel's driver to DPDK",
	.text = "Binds a NIC to a driver that leaves it to programs, for `uroce run --pci`, and allocates huge pages when too few are "
		"free. The earlier state is saved in /run/uroce, and `uroce unbind` puts it back.\n\n" NIC_IS,
	.options = bind_options,
	.examples = bind_examples,
	.run = run_bind,
};

const struct ur_command ur_command_unbind = {
	.name = "unbind",
	.operands = "NIC",
	.complete = UR_COMPLETE_INTERFACE,
	.summary = "hand a PCI NIC back to the kernel's driver",
	.text = "Gives a NIC that `uroce bind` has bound its old driver back, with its addresses, routes and huge pages as they were. "
		"Before that DPDK's driver opens and closes a NIC that is bound to vfio-pci, which stops what a killed program has "
		"left running.\n\n" NIC_IS,
	.options = unbind_options,
	.examples = unbind_examples,
	.run = run_unbind,
};
