/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce info: the device with its GIDs, its routes and the processes that use it, the settings, the counters. It starts no port, sends
 * nothing and is not counted among the processes itself.
 */
#include "apps/uroce/cli/cmd.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "apps/uroce/info/info.h"
#include "host/device/view.h"
#include "wire/frame.h"
#include "wire/path.h"

static void print_device(const struct ur_device_info *d, unsigned mtu)
{
	printf("device     %s\n", d->name);
	printf("interface  %s (%s)\n", d->ifname, d->owned ? "owned by uroce" : "shared with the kernel");
	if (d->owned)
		puts("mac        the port's own, which the program that opens it knows");
	else
		printf("mac        %02x:%02x:%02x:%02x:%02x:%02x\n", d->mac.b[0], d->mac.b[1], d->mac.b[2], d->mac.b[3], d->mac.b[4],
		       d->mac.b[5]);
	printf("guid       %016" PRIx64 "\n", d->guid);
	printf("mtu        %u (RoCE path MTU %u%s)\n", mtu, 128u << ur_max_path_mtu(d->mtu),
	       d->mtu < 256 + UR_PATH_OVERHEAD ? ", for which it is too small" : "");
	if (d->owned)
		return; /* nobody but the program that has the port can tell */
	printf("link       %s", d->link_up ? "up" : "down");
	if (d->speed_mbps)
		printf(", %u Mbit/s", d->speed_mbps);
	putchar('\n');
}

static void print_gids(const struct ur_net *net)
{
	char addr[UR_IP_TEXT], gid[UR_GID_TEXT];

	printf("\nindex  %-39s  type     address\n", "GID");
	for (unsigned i = 0; i < UR_NET_GIDS; i++) {
		const struct ur_net_addr *a = ur_net_gid(net, i);

		if (!a)
			continue;
		ur_gid_text(&a->gid, gid);
		printf("%-5u  %-39s  RoCE v2  %s/%u", i, gid, ur_gid_ip(&a->gid, addr), a->prefix_len);
		if (a->vlan)
			printf(" vlan %u", a->vlan & 0xfffu);
		putchar('\n');
	}
}

static void print_routes(const struct ur_net *net)
{
	const struct ur_net_route *r;
	char addr[UR_IP_TEXT];

	puts("\nroutes");
	for (unsigned i = 0; (r = ur_net_route_get(net, i)) != NULL; i++) {
		printf("  %s/%u", ur_gid_ip(&r->dst, addr), r->prefix_len);
		if (!ur_gid_is_zero(&r->gateway))
			printf(" via %s", ur_gid_ip(&r->gateway, addr));
		if (!ur_gid_is_zero(&r->src))
			printf(" src %s", ur_gid_ip(&r->src, addr));
		if (r->metric)
			printf(" metric %u", r->metric);
		putchar('\n');
	}
}

static int show_device(unsigned index)
{
	struct ur_view v;
	char err[512];
	int rc;

	if (ur_view_open(&v, index, err, sizeof(err)))
		return ur_cmd_fail(UR_EXIT_FAIL, "%s", err);
	print_device(&v.device.info, v.device.info.owned ? v.device.info.mtu : v.device.hostif.whole_mtu);
	if (ur_device_has_address(v.net)) {
		print_gids(v.net);
		print_routes(v.net);
	}
	rc = ur_info_processes(&v.device);
	if (!rc && ur_device_obstacle(&v.device.info, &v.device.hostif, v.net, err, sizeof(err)))
		rc = ur_cmd_fail(UR_EXIT_FAIL, "%s", err);
	ur_view_close(&v);
	return rc;
}

static int show_devices(void)
{
	const unsigned n = ur_view_count();
	int rc = 0;

	for (unsigned i = 0; i < n; i++) {
		int failed;

		if (i)
			putchar('\n');
		failed = show_device(i);
		rc = rc ? rc : failed;
	}
	return rc;
}

static int show_config(void)
{
	char err[512], text[UR_CONFIG_STR + 32];
	struct ur_config c;

	if (ur_config_load(&c, err, sizeof(err)))
		return ur_cmd_fail(UR_EXIT_USAGE, "%s", err);
	printf("%-10s %-24s %-13s %s\n", "setting", "value", "from", "what it is");
	for (unsigned i = 0; i < ur_config_knob_count; i++) {
		const struct ur_config_knob *k = &ur_config_knobs[i];

		printf("%-10s %-24s %-13s %s\n", k->name, ur_config_text(&c, k, text, sizeof(text)),
		       ur_setting_given(k->name) ? "command line" : ur_config_source(k), k->help);
	}
	return 0;
}

/* Without a device they are those of all processes. */
static int show_counters(bool with_zeros)
{
	const unsigned n = ur_view_count();
	struct ur_view v;
	char err[512];
	int rc = 0;

	for (unsigned i = 0; i < n && !rc; i++) {
		if (ur_view_open(&v, i, err, sizeof(err)))
			return i ? ur_cmd_fail(UR_EXIT_FAIL, "%s", err) : ur_info_counters(NULL, with_zeros);
		if (n > 1)
			printf("%s%s (%s)\n", i ? "\n" : "", v.device.info.name, v.device.info.ifname);
		rc = ur_info_counters(&v.device, with_zeros);
		ur_view_close(&v);
	}
	return rc;
}

static bool config, counters, all, pci, prometheus;
static const char *prefix;
static const struct ur_option options[] = {
	{"config", .set = &config, .help = "show each setting: its value, where the value comes from, and what it does"},
	{"counters", .set = &counters,
	 .help = "show the counters that are not zero, of the processes that use the device, with descriptions"},
	{"all", .set = &all, .help = "with `--counters`: also show those that are zero"},
	{"prometheus", .set = &prometheus,
	 .help = "print the counters of all processes of this host that the user may inspect, as metrics for Prometheus; doc/prometheus.md "
		 "(package uroce-doc) "
		 "lists them"},
	{"prefix", .arg = "NAME", .value = &prefix,
	 .help = "with `--prometheus`: the prefix of names that node_exporter also has for RDMA NICs (default `node_infiniband`)"},
	{"pci", .set = &pci, .help = "list the PCI NICs that a program could own, and what binding them needs"},
	{0},
};

static const struct ur_example examples[] = {
	{"uroce info --dev eth0", "The device on eth0 and the processes that use it."},
	{"uroce info --config", "Every setting."},
	{"sudo uroce info --prometheus", "The counters of all programs, for the textfile collector of node_exporter."},
	{"uroce info --pci", "The NICs that `uroce bind` could bind."},
	{"uroce info --dev eth0 --counters", "The counters of the programs there."},
	{0},
};

static int run_info(int argc, char **argv)
{
	int rc = 0;

	(void)argc;
	(void)argv;
	if (all && !counters)
		return ur_cmd_fail(UR_EXIT_USAGE, "--all applies to counters: use it with --counters");
	if (prefix && !prometheus)
		return ur_cmd_fail(UR_EXIT_USAGE, "--prefix applies to metrics: use it with --prometheus");
	if (prometheus)
		return ur_info_prometheus(prefix ? prefix : "node_infiniband");
	if (pci)
		return ur_info_pci();
	if (!config && !counters)
		return show_devices();
	if (config)
		rc = show_config();
	if (counters && config)
		putchar('\n');
	if (counters && !rc)
		rc = show_counters(all);
	return rc;
}

const struct ur_command ur_command_info = {
	.name = "info",
	.summary = "show the device, settings and counters",
	.text = "Shows the device with its GIDs and their indexes, its routes, and the processes that use it with the ports that they "
		"listen on. It opens no port, sends nothing, and does not appear among the processes itself.\n\n`UROCE_PCI=ADDR uroce "
		"info` shows the device on a NIC that programs own.\n\nThe counters are those of programs of the same user; root sees all. "
		"They are at most a quarter of a second old.",
	.status = "0; 1 when something is wrong with the machine, which includes an interface that is down or has no address; 2 when "
		  "something is wrong with the command line.",
	.options = options,
	.examples = examples,
	.settings = "dev vdev ip gw mtu eal",
	.run = run_info,
};
