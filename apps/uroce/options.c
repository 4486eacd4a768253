/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The options that run and info share. Each stands for one knob of engine/config.h and becomes its UROCE_* variable, so the preloaded
 * library reads the same settings in every process that the program starts. Conflicts and slips are reported here, before the program runs.
 */
#include "cmd.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <getopt.h>
#include <libgen.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/config.h"
#include "engine/fault.h"

enum need { NEED_NONE, NEED_SHARED, NEED_OWNED };

static int check_dev(const char *v);
static int check_ip(const char *v);
static int check_gw(const char *v);
static int check_file(const char *v);
static int check_fault(const char *v);

static const struct knob_option {
	const char *name; /* of the option and the knob */
	bool list;        /* may be given several times: values are joined by commas */
	enum need need;   /* which kind of port it belongs to */
	int (*check)(const char *value);
	const char *help;
} options[] = {
	{"dev", false, NEED_SHARED, check_dev, "--dev IFACE       share a kernel interface, with its addresses and routes"},
	{"port", false, NEED_SHARED, NULL, "--port KIND       how to use it: auto, udp (no privilege), packet (packet sockets), dpdk"},
	{"vdev", false, NEED_OWNED, NULL, "--vdev ARGS       own a DPDK virtual device, such as net_memif0,role=client,..."},
	{"ip", true, NEED_OWNED, check_ip, "--ip ADDR/LEN     address of the owned port; may be repeated"},
	{"gw", true, NEED_OWNED, check_gw, "--gw ADDR         default gateway of the owned port; once for IPv4, once for IPv6"},
	{"mtu", false, NEED_OWNED, NULL, "--mtu BYTES       IP MTU of the owned port"},
	{"eal", false, NEED_NONE, NULL, "--eal ARGS        more arguments for DPDK's EAL, in one word"},
	{"capture", false, NEED_NONE, check_file, "--capture FILE    write every frame to a pcapng file"},
	{"trace", false, NEED_NONE, check_file, "--trace FILE      write what the engine does, an event a line in JSON"},
	{"fault", false, NEED_NONE, check_fault, "--fault SPEC      inject faults: drop=1%,dup=1%,reorder=1%,corrupt=1%,dir=both,seed=7"},
	{"counters", false, NEED_NONE, check_file, "--counters FILE   write the counters at exit, also when stopped; - is stderr"},
};

#define OPTIONS (sizeof(options) / sizeof(options[0]))
#define FLAGS_MAX 8

static const char *given[OPTIONS]; /* values; NULL when not given */

static unsigned option_index(const char *name)
{
	unsigned i = 0;

	while (strcmp(options[i].name, name) != 0)
		i++;
	return i;
}

bool ur_cmd_option_given(const char *knob)
{
	for (unsigned i = 0; i < OPTIONS; i++)
		if (strcmp(options[i].name, knob) == 0)
			return given[i] != NULL;
	return false;
}

void ur_cmd_options_help(void)
{
	for (unsigned i = 0; i < OPTIONS; i++)
		printf("  %s\n", options[i].help);
}

static int check_dev(const char *v)
{
	if (if_nametoindex(v))
		return 0;
	return ur_cmd_fail(UR_EXIT_FAIL, "there is no network interface '%s' here: 'ip link' lists those that there are", v);
}

static bool parse_addr(const char *text, unsigned *bits)
{
	unsigned char raw[16];

	if (inet_pton(AF_INET, text, raw) == 1)
		*bits = 32;
	else if (inet_pton(AF_INET6, text, raw) == 1)
		*bits = 128;
	else
		return false;
	return true;
}

static int check_ip(const char *v)
{
	const char *slash = strchr(v, '/');
	char addr[64], *end;
	unsigned bits = 0;

	if (slash && (size_t)(slash - v) < sizeof(addr)) {
		memcpy(addr, v, (size_t)(slash - v));
		addr[slash - v] = 0;
		if (parse_addr(addr, &bits) && isdigit((unsigned char)slash[1]) && strtoul(slash + 1, &end, 10) <= bits && *end == 0)
			return 0;
	}
	return ur_cmd_fail(UR_EXIT_USAGE, "--ip '%s' is not an address with a prefix length: write it as 10.0.0.1/24 or fd00::1/64", v);
}

static int check_gw(const char *v)
{
	unsigned bits;

	if (parse_addr(v, &bits))
		return 0;
	return ur_cmd_fail(UR_EXIT_USAGE, "--gw '%s' is not an IP address: write it as 10.0.0.254 or fd00::fe, without a prefix length", v);
}

static int check_file(const char *v)
{
	char copy[4096];

	if (strcmp(v, "-") == 0 || access(v, W_OK) == 0)
		return 0;
	snprintf(copy, sizeof(copy), "%s", v);
	if (access(v, F_OK) != 0 && access(dirname(copy), W_OK) == 0)
		return 0;
	return ur_cmd_fail(UR_EXIT_FAIL, "the file '%s' cannot be written: choose one in a directory that you may write to", v);
}

static int check_fault(const char *v)
{
	struct ur_fault_spec spec;
	char err[256];

	return ur_fault_parse(v, &spec, err, sizeof(err)) ? ur_cmd_fail(UR_EXIT_USAGE, "%s", err) : 0;
}

static int take(unsigned i, const char *value)
{
	static char joined[OPTIONS][UR_CONFIG_STR];
	int n, rc = options[i].check ? options[i].check(value) : 0;

	if (rc)
		return rc;
	if (!*value)
		return ur_cmd_fail(UR_EXIT_USAGE, "--%s has an empty value: give one or leave the option out", options[i].name);
	if (given[i] && !options[i].list)
		return ur_cmd_fail(UR_EXIT_USAGE, "--%s is given twice: give it once", options[i].name);
	if (given[i]) {
		size_t used = strlen(joined[i]);

		n = snprintf(joined[i] + used, UR_CONFIG_STR - used, ",%s", value);
		n += (int)used;
	} else {
		n = snprintf(joined[i], UR_CONFIG_STR, "%s", value);
	}
	if (n >= UR_CONFIG_STR)
		return ur_cmd_fail(UR_EXIT_USAGE, "the value of --%s is longer than %d characters: shorten it", options[i].name,
				   UR_CONFIG_STR - 1);
	given[i] = joined[i];
	return 0;
}

static const char *variable(const char *knob)
{
	static char name[64];
	int n = snprintf(name, sizeof(name), "UROCE_%s", knob);

	for (int i = 0; i < n; i++)
		name[i] = (char)toupper((unsigned char)name[i]);
	return name;
}

static int check_conflicts(void)
{
	bool dev = given[option_index("dev")], vdev = given[option_index("vdev")];

	if (dev && vdev)
		return ur_cmd_fail(UR_EXIT_USAGE,
				   "--dev and --vdev exclude one another: the first shares a kernel interface, the second owns a port");
	for (unsigned i = 0; i < OPTIONS; i++)
		if (dev && given[i] && options[i].need == NEED_OWNED)
			return ur_cmd_fail(UR_EXIT_USAGE,
					   "--%s cannot be used with --dev, whose addresses, routes and MTU are the kernel's: leave it out",
					   options[i].name);
	if (vdev && !given[option_index("ip")] && !getenv("UROCE_IP"))
		return ur_cmd_fail(UR_EXIT_USAGE, "--vdev needs an address: add --ip ADDR/LEN");
	return 0;
}

/* The command line names one kind of port: what the environment says of the other kind no longer holds. */
static void put_environment(void)
{
	bool dev = given[option_index("dev")], vdev = given[option_index("vdev")];

	for (unsigned i = 0; i < OPTIONS; i++) {
		if ((dev && options[i].need == NEED_OWNED) || (vdev && options[i].need == NEED_SHARED))
			unsetenv(variable(options[i].name));
		if (given[i])
			setenv(variable(options[i].name), given[i], 1);
	}
}

static int check_config(void)
{
	struct ur_config c;
	char err[512];

	if (ur_config_load(&c, err, sizeof(err)))
		return ur_cmd_fail(UR_EXIT_USAGE, "%s", err);
	return 0;
}

static bool is_flag(const char *name, const struct ur_cmd_flag *flags)
{
	for (; flags->name; flags++)
		if (strcmp(flags->name, name) == 0)
			return true;
	return false;
}

/* The values of getopt_long: 256 and up for options, 512 and up for flags. A flag hides the option of its name. */
static void fill(struct option *opts, const struct ur_cmd_flag *flags)
{
	for (unsigned i = 0; i < OPTIONS; i++)
		if (!is_flag(options[i].name, flags))
			*opts++ = (struct option){options[i].name, required_argument, NULL, (int)i + 256};
	for (unsigned i = 0; i < FLAGS_MAX && flags[i].name; i++)
		*opts++ = (struct option){flags[i].name, no_argument, NULL, (int)i + 512};
	*opts = (struct option){NULL, 0, NULL, 0};
}

int ur_cmd_options(int argc, char **argv, const struct ur_cmd_flag *flags, int *next)
{
	struct option opts[OPTIONS + FLAGS_MAX + 1];
	int c, rc = 0;

	fill(opts, flags);
	opterr = 0;
	while (!rc && (c = getopt_long(argc, argv, "+:", opts, NULL)) != -1) {
		if (c == ':')
			rc = ur_cmd_fail(UR_EXIT_USAGE, "the option '%s' needs a value: 'uroce --help' lists the options",
					 argv[optind - 1]);
		else if (c == '?')
			rc = ur_cmd_fail(UR_EXIT_USAGE,
					 "unknown option '%s': 'uroce --help' lists the options; those of the program stand after --",
					 argv[optind - 1]);
		else if (c < 512)
			rc = take((unsigned)c - 256, optarg);
		else
			*flags[c - 512].set = true;
	}
	*next = optind;
	if (!rc)
		rc = check_conflicts();
	if (!rc) {
		put_environment();
		rc = check_config();
	}
	return rc;
}
