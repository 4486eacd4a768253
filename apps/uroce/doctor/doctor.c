/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce doctor: what is wrong with this host, or with the path to a peer, on one screen. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/doctor/doctor.h"
#include "config/config.h"
#include "host/device/view.h"

static bool json;
static const char *dev;

static const struct ur_option options[] = {
	{"dev", .arg = "IFACE", .complete = UR_COMPLETE_INTERFACE, .value = &dev, .help = "the interface to look at, as for `uroce run`"},
	{"json", .set = &json, .help = "print one JSON object instead of text; doc/doctor.md (package uroce-doc) describes it"},
	{0},
};

static const struct ur_example examples[] = {
	{"uroce doctor", "What may be wrong here."},
	{"uroce doctor --dev eth0 192.0.2.1", "The same, and the path to a peer: does it speak RoCE, how fast, and what is lost."},
	{"sudo uroce doctor --json | jq '.findings[] | select(.severity == \"error\")'", "For scripts, with everything that root may see."},
	{0},
};

/* A shared interface: settings of a port of our own say nothing of this host. */
static void put_settings(void)
{
	static const char *const owned[] = {"UROCE_VDEV", "UROCE_IP", "UROCE_GW", "UROCE_MTU", "UROCE_EAL"};

	if (!dev)
		return;
	setenv("UROCE_DEV", dev, 1);
	for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); i++)
		unsetenv(owned[i]);
}

static void look_at_peer(struct ur_doctor_facts *f, const char *name)
{
	struct ur_doctor_targets targets = {.count = 0};

	f->with_peer = true;
	snprintf(f->peer.name, sizeof(f->peer.name), "%s", name);
	ur_doctor_read_route(f, &targets);
	if (!f->peer.routed)
		return;
	ur_doctor_ping(f, &targets);
	ur_doctor_read_neighbours(&targets);
	ur_doctor_ask_cm(f, &targets);
	if (f->peer.ping != UR_DOCTOR_PING_UNREACHABLE)
		ur_doctor_read_refusal(f, &targets);
}

/* Of a port of our own there is nothing that the kernel could be asked. */
static int check_settings(void)
{
	struct ur_config c;
	char err[512];

	if (ur_config_load(&c, err, sizeof(err)))
		return ur_cmd_fail(UR_EXIT_USAGE, "%s", err);
	if (ur_view_count() > 1)
		return ur_cmd_fail(UR_EXIT_USAGE, "doctor looks at one interface at a time: name one with --dev, not %s", c.dev);
	if (!c.dev[0] && (c.vdev[0] || c.eal[0]))
		return ur_cmd_fail(UR_EXIT_USAGE,
				   "doctor looks at interfaces that are shared with the kernel, and the settings name a port "
				   "of our own: name an interface with --dev");
	return 0;
}

static int run_doctor(int argc, char **argv)
{
	static struct ur_doctor_facts facts;
	static struct ur_doctor_report report;

	put_settings();
	if (check_settings())
		return UR_EXIT_USAGE;
	ur_doctor_read_host(&facts);
	ur_doctor_read_device(&facts);
	if (argc)
		look_at_peer(&facts, argv[0]);
	ur_doctor_try_ports(&facts); /* after the peer: with DPDK's the kernel forgets its neighbours */
	ur_doctor_read_firewall(&facts);
	ur_doctor_clean(&facts);
	ur_doctor_judge(&facts, &report);
	if (json)
		ur_doctor_print_json(&facts, &report);
	else
		ur_doctor_print(&facts, &report);
	return ur_doctor_wrong(&report) ? UR_EXIT_FAIL : 0;
}

const struct ur_command ur_command_doctor = {
	.name = "doctor",
	.operands = "[PEER]",
	.summary = "find what is wrong with this host, or with the path to a peer",
	.text = "Looks at what uroce depends on: the interface and its MTU, which kinds of port are available (each is opened as a program "
		"opens it) and why not, who has UDP port 4791, what the kernel can do for UDP sockets, buffers, GRO and LRO, rules of "
		"nftables that drop UDP port 4791, other programs on uroce, limits, CPUs, the clock, "
		"and settings that inject faults or write captures.\n\nWith a peer, an address or a "
		"name, it checks the path to the peer as well: route, ping, path MTU, whether UDP port 4791 passes, whether the peer "
		"speaks the RDMA CM, the round-trip time, how many of a thousand requests or their answers are lost, and the GIDs that "
		"answer. It asks for a datagram service that does not exist, which every RoCE host with a CM refuses: the peer needs no "
		"running program, unless it uses uroce itself.\n\nA line begins with `ok`, `note` (it works, and could be better), "
		"`unknown` (it cannot be determined; root may see more), `warning` or `error`. The command that fixes it follows. Nothing "
		"is changed.",
	.status = "0 when nothing is wrong, 1 when there is a warning or an error, 2 when the command line is wrong.",
	.options = options,
	.examples = examples,
	.run = run_doctor,
};
