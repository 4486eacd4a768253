/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The options that become settings. Each stands for one setting of config/config.h and becomes its UROCE_* variable, so the preloaded
 * library reads the same settings in every process that the program starts. Conflicts and mistakes are reported here, before the program
 * runs.
 */
#include "apps/uroce/cli/cmd.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <libgen.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "drivers/pci/bind.h"
#include "fault/spec.h"
#include "host/device/device.h"
#include "wire/pkt.h"

enum need { NEED_NONE, NEED_SHARED, NEED_OWNED };

static int check_pci(const char *v);
static int check_ip(const char *v);
static int check_gw(const char *v);
static int check_file(const char *v);
static int check_fault(const char *v);

/* What they mean says the knob's own table. */
static const struct knob_option {
	const char *name; /* of the option and the knob */
	const char *arg, *complete;
	bool list;      /* may be given several times: values are joined by commas */
	enum need need; /* which kind of port it belongs to */
	int (*check)(const char *value);
} options[] = {
	{"dev", "IFACE", UR_COMPLETE_INTERFACE, true, NEED_SHARED, NULL},
	{"port", "KIND", NULL, false, NEED_SHARED, NULL},
	{"vdev", "ARGS", NULL, false, NEED_OWNED, NULL},
	{"pci", "ADDR", NULL, false, NEED_OWNED, check_pci},
	{"ip", "ADDR/LEN[@VLAN]", NULL, true, NEED_OWNED, check_ip},
	{"gw", "ADDR", NULL, true, NEED_OWNED, check_gw},
	{"mtu", "BYTES", NULL, false, NEED_OWNED, NULL},
	{"eal", "ARGS", NULL, false, NEED_NONE, NULL},
	{"capture", "FILE", UR_COMPLETE_FILE, false, NEED_NONE, check_file},
	{"trace", "FILE", UR_COMPLETE_FILE, false, NEED_NONE, check_file},
	{"fault", "SPEC", NULL, false, NEED_NONE, check_fault},
	{"counters", "FILE", UR_COMPLETE_FILE, false, NEED_NONE, check_file},
};

#define ETHERNET_AND_TAG 18
#define OPTIONS (sizeof(options) / sizeof(options[0]))

static const char *given[OPTIONS]; /* values; NULL when not given */

static unsigned option_index(const char *name)
{
	unsigned i = 0;

	while (strcmp(options[i].name, name) != 0)
		i++;
	return i;
}

static const struct ur_config_knob *knob_of(const char *name)
{
	const struct ur_config_knob *k = ur_config_knobs;

	while (strcmp(k->name, name) != 0)
		k++;
	return k;
}

bool ur_setting_given(const char *name)
{
	for (unsigned i = 0; i < OPTIONS; i++)
		if (strcmp(options[i].name, name) == 0)
			return given[i] != NULL;
	return false;
}

/* What follows a comma is for the driver. */
static int check_pci(const char *v)
{
	char addr[UR_PCI_ADDR_TEXT], text[64];
	struct ur_pci_nic nic;
	int rc;

	snprintf(text, sizeof(text), "%.*s", (int)strcspn(v, ","), v);
	if (!ur_pci_addr(text, addr))
		return ur_cmd_fail(UR_EXIT_USAGE, "--pci '%s' is not a PCI address: write it as 0000:03:00.0 or 03:00.0", v);
	rc = ur_pci_read_nic(&ur_pci_system, addr, &nic);
	if (rc)
		return ur_cmd_fail(UR_EXIT_FAIL, "%s %s: 'uroce info --pci' lists the NICs", addr,
				   rc == ENOENT ? "is not there" : "is not a network device");
	return 0;
}

static int check_ip(const char *v)
{
	struct ur_net_addr a;
	char err[256];

	if (!strchr(v, '/'))
		return ur_cmd_fail(UR_EXIT_USAGE, "--ip '%s' is not an address with a prefix length: write it as 10.0.0.1/24 or fd00::1/64",
				   v);
	return ur_device_parse_ip(v, &a, err, sizeof(err)) ? ur_cmd_fail(UR_EXIT_USAGE, "%s", err) : 0;
}

static int check_gw(const char *v)
{
	struct ur_net_route r;
	char err[256];

	return ur_device_parse_gw(v, &r, err, sizeof(err)) ? ur_cmd_fail(UR_EXIT_USAGE, "%s", err) : 0;
}

static int check_file(const char *v)
{
	char copy[4096];

	if (strcmp(v, "-") == 0 || access(v, W_OK) == 0)
		return 0;
	snprintf(copy, sizeof(copy), "%s", v);
	if (access(v, F_OK) != 0 && access(dirname(copy), W_OK) == 0)
		return 0;
	return ur_cmd_fail(UR_EXIT_FAIL, "cannot write the file '%s': choose one in a directory that you may write to", v);
}

static int check_fault(const char *v)
{
	struct ur_fault_spec spec;
	char err[512];

	return ur_fault_parse(v, &spec, err, sizeof(err)) ? ur_cmd_fail(UR_EXIT_USAGE, "%s", err) : 0;
}

/* Where the setting has a few words, there are no others. */
static int check_word(const char *name, const char *value)
{
	const char *words = knob_of(name)->words;
	const size_t len = strlen(value);

	for (const char *w = words; w && *w; w += strspn(w, " ")) {
		size_t n = strcspn(w, " ");

		if (n == len && strncmp(w, value, n) == 0)
			return 0;
		w += n;
	}
	return words ? ur_cmd_fail(UR_EXIT_USAGE, "--%s cannot be '%s': it is one of the words %s", name, value, words) : 0;
}

static int take_setting(const struct ur_option *o, const char *value)
{
	static char joined[OPTIONS][UR_CONFIG_STR];
	unsigned i = option_index(o->name);
	int n, rc = options[i].check ? options[i].check(value) : 0;

	if (!rc)
		rc = check_word(o->name, value);
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

/* The options that name a device: of one kind of port or the other. */
static const char *const devices[] = {"dev", "vdev", "pci"};

static const char *given_value(const char *name)
{
	return given[option_index(name)];
}

static int check_conflicts(void)
{
	const char *first = NULL;

	for (unsigned i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
		if (first && given_value(devices[i]))
			return ur_cmd_fail(UR_EXIT_USAGE,
					   "--%s and --%s exclude one another: --dev shares an interface, --vdev and --pci own a port",
					   first, devices[i]);
		first = given_value(devices[i]) ? devices[i] : first;
	}
	for (unsigned i = 0; i < OPTIONS; i++)
		if (given_value("dev") && given[i] && options[i].need == NEED_OWNED)
			return ur_cmd_fail(UR_EXIT_USAGE,
					   "--%s cannot be used with --dev, whose addresses, routes and MTU are the kernel's: leave it out",
					   options[i].name);
	return 0;
}

/* The command line names one kind of port: what the environment says of the other kind, or of another device, no longer holds. */
static void put_environment(void)
{
	bool dev = given_value("dev"), owned = given_value("vdev") || given_value("pci");

	for (unsigned i = 0; i < OPTIONS; i++) {
		if ((dev && options[i].need == NEED_OWNED) || (owned && options[i].need == NEED_SHARED))
			unsetenv(variable(options[i].name));
		if (given[i])
			setenv(variable(options[i].name), given[i], 1);
	}
	if (given_value("vdev"))
		unsetenv(variable("pci"));
	if (given_value("pci"))
		unsetenv(variable("vdev"));
}

static void put_list(const char *knob, const char *list)
{
	if (*list && !secure_getenv(variable(knob)))
		setenv(variable(knob), list, 1);
}

static unsigned family_bit(int family)
{
	return family == AF_INET ? 1 : 2;
}

/* Without --ip a NIC has the addresses that the kernel had there, if 'uroce bind --keep-addresses' has noted them. */
static void take_kept_addresses(const char *pci)
{
	char addr[UR_PCI_ADDR_TEXT], text[64], ip[INET6_ADDRSTRLEN], ips[UR_CONFIG_STR] = "", gws[UR_CONFIG_STR] = "", mtu[16];
	struct ur_pci_state s;
	unsigned families = 0; /* one gateway of each */
	size_t n = 0, g = 0;

	snprintf(text, sizeof(text), "%.*s", (int)strcspn(pci, ","), pci);
	if (!ur_pci_addr(text, addr) || ur_pci_state_view(&ur_pci_system, addr, &s) || !s.keep)
		return;
	for (unsigned i = 0; i < s.nif.naddr && n < sizeof(ips) - INET6_ADDRSTRLEN - 8; i++)
		n += (size_t)snprintf(ips + n, sizeof(ips) - n, "%s%s/%u", n ? "," : "", ur_pci_ip_text(&s.nif.addr[i].ip, ip),
				      s.nif.addr[i].len);
	for (unsigned i = 0; i < s.nif.nroute; i++)
		if (!s.nif.route[i].len && s.nif.route[i].gateway.family && !(families & family_bit(s.nif.route[i].gateway.family))) {
			families |= family_bit(s.nif.route[i].gateway.family);
			g += (size_t)snprintf(gws + g, sizeof(gws) - g, "%s%s", g ? "," : "", ur_pci_ip_text(&s.nif.route[i].gateway, ip));
		}
	snprintf(mtu, sizeof(mtu), "%u", s.nif.mtu < UR_PKT_ROOM - ETHERNET_AND_TAG ? s.nif.mtu : UR_PKT_ROOM - ETHERNET_AND_TAG);
	put_list("ip", ips);
	put_list("gw", gws);
	put_list("mtu", s.nif.mtu ? mtu : "");
}

static int check_address(void)
{
	const char *pci = given_value("pci") ? given_value("pci") : secure_getenv("UROCE_PCI");
	const char *owned = given_value("vdev") ? "--vdev" : given_value("pci") ? "--pci" : NULL;

	if (secure_getenv("UROCE_IP"))
		return 0;
	if (pci && *pci && !given_value("dev") && !given_value("vdev"))
		take_kept_addresses(pci);
	if (owned && !secure_getenv("UROCE_IP"))
		return ur_cmd_fail(UR_EXIT_USAGE, "%s needs an address: add --ip ADDR/LEN", owned);
	return 0;
}

static int check_devices(struct ur_config *c)
{
	struct ur_device d;
	char err[512];
	int r = ur_device_expand(c, err, sizeof(err));

	for (unsigned i = 0; !r && i < ur_device_count(c); i++)
		r = ur_device_find(c, i, &d, err, sizeof(err));
	return r ? ur_cmd_fail(r == EINVAL ? UR_EXIT_USAGE : UR_EXIT_FAIL, "%s", err) : 0;
}

static int check_config(void)
{
	struct ur_config c;
	char err[512];

	if (ur_config_load(&c, err, sizeof(err)))
		return ur_cmd_fail(UR_EXIT_USAGE, "%s", err);
	return given_value("dev") ? check_devices(&c) : 0;
}

const struct ur_option *ur_setting_options(void)
{
	static struct ur_option table[OPTIONS + 1];

	for (unsigned i = 0; i < OPTIONS; i++)
		table[i] = (struct ur_option){
			.name = options[i].name,
			.arg = options[i].arg,
			.complete = options[i].complete ? options[i].complete : knob_of(options[i].name)->words,
			.help = knob_of(options[i].name)->help,
			.take = take_setting,
		};
	return table;
}

int ur_setting_options_end(void)
{
	int rc = check_conflicts();

	if (rc)
		return rc;
	put_environment();
	rc = check_address();
	return rc ? rc : check_config();
}
