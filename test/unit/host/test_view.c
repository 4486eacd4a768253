/* SPDX-License-Identifier: BSD-3-Clause */
/* What an onlooker sees of the device that the settings mean: its addresses, in the order of the engine's, and no trace of himself. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/device/view.h"
#include "host/processes.h"
#include "wire/frame.h"

void ur_suite_view(void);

static const char *const names[] = {"dev", "vdev", "pci", "eal", "ip", "gw", "mtu"};

/* As a process begins. */
static int plain(void)
{
	char err[256];

	for (unsigned i = 0; i < ur_array_size(names); i++)
		if (ur_config_set(names[i], strcmp(names[i], "mtu") ? "" : "0", err, sizeof(err)))
			return -1;
	return 0;
}

static void set(const char *name, const char *value)
{
	char err[256];

	CU_ASSERT_EQUAL_FATAL(ur_config_set(name, value, err, sizeof(err)), 0);
}

static void own_port(const char *ip, const char *gw)
{
	plain();
	set("vdev", "net_null0");
	set("ip", ip);
	set("gw", gw);
}

static void owned__addresses(void)
{
	struct ur_processes *p;
	struct ur_view v;
	char err[512];
	const struct ur_net_addr *a;

	own_port("fd00::1/64@4094,10.0.0.1/24,10.0.5.1@5", "10.0.0.254");
	CU_ASSERT_EQUAL_FATAL(ur_view_open(&v, 0, err, sizeof(err)), 0);
	CU_ASSERT_STRING_EQUAL(v.device.info.name, "uroce0");
	CU_ASSERT_STRING_EQUAL(v.device.info.ifname, "net_null0");
	CU_ASSERT(v.device.info.owned && !v.device.is_nic && v.device.info.mtu > 4096);
	a = ur_net_gid(v.net, 0);
	CU_ASSERT_FATAL(a != NULL);
	CU_ASSERT(a->gid.raw[12] == 10 && a->prefix_len == 24 && a->vlan == 0); /* IPv4 first, as in the GID table of programs */
	a = ur_net_gid(v.net, 1);
	CU_ASSERT_FATAL(a != NULL);
	CU_ASSERT(a->gid.raw[14] == 5 && a->prefix_len == 32 && a->vlan == 5);
	a = ur_net_gid(v.net, 2);
	CU_ASSERT_FATAL(a != NULL);
	CU_ASSERT(a->gid.raw[0] == 0xfd && a->prefix_len == 64 && a->vlan == 4094);
	CU_ASSERT_PTR_NULL(ur_net_gid(v.net, 3));
	CU_ASSERT_EQUAL_FATAL(ur_processes_list(v.device.key, &p), 0);
	CU_ASSERT_EQUAL(p->count, 0);
	free(p);
	ur_view_close(&v);
}

/* Two looks are at one device, and another address makes another one. */
static void owned__key(void)
{
	struct ur_view v;
	char err[512];
	uint64_t key;

	own_port("10.0.0.1/24", "");
	CU_ASSERT_EQUAL_FATAL(ur_view_open(&v, 0, err, sizeof(err)), 0);
	key = v.device.key;
	ur_view_close(&v);
	CU_ASSERT_EQUAL_FATAL(ur_view_open(&v, 0, err, sizeof(err)), 0);
	CU_ASSERT_EQUAL(v.device.key, key);
	ur_view_close(&v);
	set("ip", "10.0.0.2/24");
	CU_ASSERT_EQUAL_FATAL(ur_view_open(&v, 0, err, sizeof(err)), 0);
	CU_ASSERT_NOT_EQUAL(v.device.key, key);
	ur_view_close(&v);
}

static void shared__loopback(void)
{
	const struct ur_gid address = {{[10] = 0xff, 0xff, 10, 9, 8, 7}};
	bool found = false;
	struct ur_view v;
	char err[512];

	plain();
	set("dev", "lo");
	CU_ASSERT_EQUAL_FATAL(system("ip address add 10.9.8.7/24 dev lo && ip link set lo up"), 0);
	CU_ASSERT_EQUAL_FATAL(ur_view_open(&v, 0, err, sizeof(err)), 0);
	CU_ASSERT_STRING_EQUAL(v.device.info.ifname, "lo");
	CU_ASSERT(!v.device.info.owned && v.device.hostif.ifindex > 0);
	CU_ASSERT_EQUAL(v.device.hostif.whole_mtu, 65536); /* what is shown; what is used is less */
	CU_ASSERT_EQUAL(v.device.info.mtu, 9600);
	for (unsigned i = 0; ur_net_gid(v.net, i); i++)
		found |= ur_gid_eq(&ur_net_gid(v.net, i)->gid, &address);
	CU_ASSERT_TRUE(found);
	ur_view_close(&v);
}

/* A list of interfaces: each is a device, and each of them one. */
static void shared__several(void)
{
	struct ur_view v;
	char err[512];

	plain();
	set("dev", "lo, two0");
	CU_ASSERT_EQUAL_FATAL(
		system("ip link add two0 type veth peer name other0 && ip addr add 10.9.9.1/24 dev two0 && ip link set two0 up"), 0);
	CU_ASSERT_EQUAL(ur_view_count(), 2);
	CU_ASSERT_EQUAL_FATAL(ur_view_open(&v, 0, err, sizeof(err)), 0);
	CU_ASSERT(!strcmp(v.device.info.name, "uroce0") && !strcmp(v.device.info.ifname, "lo"));
	ur_view_close(&v);
	CU_ASSERT_EQUAL_FATAL(ur_view_open(&v, 1, err, sizeof(err)), 0);
	CU_ASSERT(!strcmp(v.device.info.name, "uroce1") && !strcmp(v.device.info.ifname, "two0"));
	ur_view_close(&v);
	set("dev", "lo,two0,two?");
	CU_ASSERT_EQUAL(ur_view_open(&v, 2, err, sizeof(err)), EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "names interface 'two0' twice"));
	set("dev", "");
	CU_ASSERT_EQUAL(ur_view_count(), 1);
	CU_ASSERT_EQUAL(system("ip link del two0"), 0);
}

/* The interfaces of all devices, separated by commas. */
static const char *devices(const char *dev)
{
	static char text[512], err[512];
	struct ur_view v;

	set("dev", dev);
	*text = 0;
	for (unsigned i = 0; i < ur_view_count(); i++) {
		if (ur_view_open(&v, i, err, sizeof(err)))
			return err;
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? "," : "", v.device.info.ifname);
		ur_view_close(&v);
	}
	return text;
}

/* A pattern or a network is all interfaces that fit, in the order of their names, but for those that stand before it. */
static void shared__all_that_fit(void)
{
	plain();
	CU_ASSERT_EQUAL_FATAL(system("ip link add fit10 type veth peer name fit2 && ip addr add 10.9.9.10/24 dev fit10 && "
				     "ip addr add 10.9.9.2/24 dev fit2 && ip link set fit10 up && ip link set fit2 up"),
			      0);
	CU_ASSERT_STRING_EQUAL(devices("fit*"), "fit2,fit10");
	CU_ASSERT_STRING_EQUAL(devices("10.9.9.0/24"), "fit2,fit10");
	CU_ASSERT_STRING_EQUAL(devices("fit10,10.9.9.0/25"), "fit10,fit2");
	CU_ASSERT_STRING_EQUAL(devices("fit1*, 10.9.9.2"), "fit10,fit2");
	CU_ASSERT_PTR_NOT_NULL(strstr(devices("fit*,10.9.9.2"), "names interface 'fit2' twice"));
	CU_ASSERT_PTR_NOT_NULL(strstr(devices("fit10,nofit*"), "no network interface that is up"));
	CU_ASSERT_EQUAL(system("ip addr add 10.9.9.2/32 dev fit10"), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(devices("10.9.9.2"), "matches fit2 and fit10: choose one"));
	set("dev", "");
	CU_ASSERT_EQUAL(system("ip link del fit2"), 0);
}

static void shared__too_many_fit(void)
{
	char name[32], words[256];

	plain();
	for (int i = 0; i <= UR_DEVICES / 2; i++) {
		snprintf(name, sizeof(name), "many%d", i);
		snprintf(words, sizeof(words),
			 "n=%s; ip link add $n type veth peer name ${n}p && for j in $n ${n}p; do "
			 "ip addr add 10.9.9.%d/32 dev $j && ip link set $j up; done",
			 name, i);
		CU_ASSERT_EQUAL(system(words), 0);
	}
	CU_ASSERT_PTR_NOT_NULL(strstr(devices("many*"), "--dev many* names more than 16 interfaces"));
	CU_ASSERT_STRING_EQUAL(devices("many?,many0p"), "many0,many1,many2,many3,many4,many5,many6,many7,many8,many0p");
	CU_ASSERT_PTR_NOT_NULL(strstr(devices("many?,many?p"), "names more than 16 interfaces"));
	set("dev", "");
	for (int i = 0; i <= UR_DEVICES / 2; i++) {
		snprintf(words, sizeof(words), "ip link del many%d", i);
		CU_ASSERT_EQUAL(system(words), 0);
	}
}

static void settings__refused(void)
{
	static const struct {
		const char *dev, *vdev, *pci, *ip, *gw;
		int err;
		const char *says;
	} t[] = {
		{"", "net_null0", "", "", "", EINVAL, "has no address"},
		{"", "net_null0", "", "10.0.0.1.1/24", "", EINVAL, "'10.0.0.1.1' is not an address"},
		{"", "net_null0", "", "10.0.0.1/33", "", EINVAL, "'33' is not a prefix length"},
		{"", "net_null0", "", "10.0.0.1/", "", EINVAL, "is not a prefix length"},
		{"", "net_null0", "", "10.0.0.1/24@", "", EINVAL, "'' is not a VLAN"},
		{"", "net_null0", "", "10.0.0.1/24@0", "", EINVAL, "'0' is not a VLAN"},
		{"", "net_null0", "", "10.0.0.1/24@4095", "", EINVAL, "'4095' is not a VLAN"},
		{"", "net_null0", "", "10.0.0.1@5/24", "", EINVAL, "'5/24' is not a VLAN"},
		{"", "net_null0", "", "10.0.0.1/-1", "", EINVAL, "'-1' is not a prefix length"},
		{"", "net_null0", "", "224.0.0.1/24", "", EINVAL, "is not an address"},
		{"", "net_null0", "", "10.0.0.1/24,10.0.0.1/24", "", EEXIST, "it is given twice"},
		{"", "net_null0", "", "10.0.0.1/24", "10.0.0", EINVAL, "is not the address of a gateway"},
		{"lo", "net_null0", "", "", "", EINVAL, "has its own addresses"},
		{"", "net_null0", "0000:03:00.0", "10.0.0.1/24", "", EINVAL, "name two devices"},
		{"no-such-if", "", "", "", "", ENODEV, "does not exist"},
		{"a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", "", "", "", "", EINVAL, "names more than 16 interfaces"},
		{",lo", "", "", "", "", EINVAL, "empty item"},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		char err[512] = "";
		struct ur_view v;

		own_port(t[i].ip, t[i].gw);
		set("dev", t[i].dev);
		set("vdev", t[i].vdev);
		set("pci", t[i].pci);
		CU_ASSERT_EQUAL(ur_view_open(&v, 0, err, sizeof(err)), t[i].err);
		CU_ASSERT(strstr(err, t[i].says) != NULL);
	}
}

void ur_suite_view(void)
{
	CU_pSuite s = CU_add_suite("view", plain, plain);

	CU_add_test(s, "owned__addresses", owned__addresses);
	CU_add_test(s, "owned__key", owned__key);
	CU_add_test(s, "shared__loopback", shared__loopback);
	CU_add_test(s, "shared__several", shared__several);
	CU_add_test(s, "shared__all_that_fit", shared__all_that_fit);
	CU_add_test(s, "shared__too_many_fit", shared__too_many_fit);
	CU_add_test(s, "settings__refused", settings__refused);
}
