/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drivers/pci on a tree of its own below a temporary directory, with a thread in the place of the kernel: it moves the NIC when somebody
 * writes to `unbind` and `drivers_probe`. The NIC's interface is the lo of a network namespace of the scene's own.
 */
#define _GNU_SOURCE
#include <CUnit/CUnit.h>
#include <errno.h>
#include <ftw.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "drivers/pci/bind.h"

void ur_suite_pci(void);

#define NIC "0000:03:00.0"

static char top[] = "/tmp/uroce-pci-XXXXXX";
static char sys[64], dev[64], proc[64], share[64], run[64];
static const struct ur_pci_roots roots = {.sys = sys, .dev = dev, .proc = proc, .share = share, .run = run};

/* --- the tree --- */

static const char *in_tree(const char *fmt, ...)
{
	static _Thread_local char path[4][256];
	static _Thread_local unsigned turn;
	char *p = path[turn++ % 4];
	size_t n = (size_t)snprintf(p, 256, "%s", top);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p + n, 256 - n, fmt, ap);
	va_end(ap);
	return p;
}

static void make_dirs(const char *path)
{
	char copy[256];

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *p = copy + 1; (p = strchr(p, '/')); *p++ = '/') {
		*p = 0;
		mkdir(copy, 0755);
	}
	mkdir(copy, 0755);
}

static void put(const char *path, const char *text)
{
	char copy[256];
	FILE *f;

	snprintf(copy, sizeof(copy), "%s", path);
	*strrchr(copy, '/') = 0;
	make_dirs(copy);
	f = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs(text, f);
	fclose(f);
}

static void put_device(const char *addr, const char *class, const char *driver, int group)
{
	put(in_tree("/sys/bus/pci/devices/%s/class", addr), class);
	put(in_tree("/sys/bus/pci/devices/%s/vendor", addr), "0x8086\n");
	put(in_tree("/sys/bus/pci/devices/%s/device", addr), "0x1572\n");
	put(in_tree("/sys/bus/pci/devices/%s/driver_override", addr), "(null)\n");
	if (*driver) {
		put(in_tree("/sys/bus/pci/drivers/%s/unbind", driver), "");
		CU_ASSERT_EQUAL(symlink(in_tree("/sys/bus/pci/drivers/%s", driver), in_tree("/sys/bus/pci/devices/%s/driver", addr)), 0);
	}
	if (group >= 0) {
		make_dirs(in_tree("/sys/kernel/iommu_groups/%d/devices/%s", group, addr));
		CU_ASSERT_EQUAL(
			symlink(in_tree("/sys/kernel/iommu_groups/%d", group), in_tree("/sys/bus/pci/devices/%s/iommu_group", addr)), 0);
	}
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void remove_tree(void)
{
	nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void make_tree(void)
{
	strcpy(top, "/tmp/uroce-pci-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(top));
	snprintf(sys, sizeof(sys), "%s/sys", top);
	snprintf(dev, sizeof(dev), "%s/dev", top);
	snprintf(proc, sizeof(proc), "%s/proc", top);
	snprintf(share, sizeof(share), "%s/share", top);
	snprintf(run, sizeof(run), "%s/run", top);
	make_dirs(in_tree("/proc"));
	put_device(NIC, "0x020000\n", "i40e", 7);
	put(in_tree("/sys/bus/pci/drivers/vfio-pci/unbind"), "");
	put(in_tree("/sys/bus/pci/drivers_probe"), "");
	put(in_tree("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"), "3\n");
	put(in_tree("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages"), "2\n");
}

static unsigned number_in(const char *path)
{
	char text[32];

	return ur_pci_read(path, text, sizeof(text)) ? (unsigned)atoi(text) : 0;
}

static const char *driver_now(void)
{
	static char name[UR_PCI_DRIVER_TEXT];

	ur_pci_link(in_tree("/sys/bus/pci/devices/" NIC "/driver"), name, sizeof(name));
	return name;
}

/* --- the kernel --- */

static atomic_bool kernel_stop;
static atomic_uint kernel_wrong; /* CUnit's own counters are for one thread */
static const char *kernel_refuses;

#define KERNEL_LIKES "i40e" /* the driver that it binds without an override */

static void kernel_must(bool good)
{
	if (!good)
		atomic_fetch_add(&kernel_wrong, 1);
}

static bool taken(const char *path)
{
	char text[64];

	if (!ur_pci_read(path, text, sizeof(text)))
		return false;
	kernel_must(!strcmp(text, NIC));
	kernel_must(truncate(path, 0) == 0);
	return true;
}

static void kernel_bind(const char *link)
{
	char want[64];

	if (!ur_pci_read(in_tree("/sys/bus/pci/devices/" NIC "/driver_override"), want, sizeof(want)) || !*want || !strcmp(want, "(null)"))
		snprintf(want, sizeof(want), KERNEL_LIKES);
	if (kernel_refuses && !strcmp(want, kernel_refuses))
		return;
	kernel_must(symlink(in_tree("/sys/bus/pci/drivers/%s", want), link) == 0);
	if (!strcmp(want, KERNEL_LIKES))
		make_dirs(in_tree("/sys/bus/pci/devices/" NIC "/net/lo"));
}

static void *kernel_main(void *arg)
{
	char link[256], path[300];

	(void)arg;
	snprintf(link, sizeof(link), "%s", in_tree("/sys/bus/pci/devices/" NIC "/driver"));
	while (!atomic_load(&kernel_stop)) {
		snprintf(path, sizeof(path), "%s/unbind", link);
		if (taken(path)) {
			rmdir(in_tree("/sys/bus/pci/devices/" NIC "/net/lo"));
			kernel_must(unlink(link) == 0);
		}
		if (access(link, F_OK) && taken(in_tree("/sys/bus/pci/drivers_probe")))
			kernel_bind(link);
		usleep(500);
	}
	return NULL;
}

/*
 * Runs the scene with a kernel, in a network namespace of its own whose lo has an address and a route. Only root may. The kernel that
 * refuses the driver `refuses` (or none, NULL) is a thread; the process is the module's own, and nothing is forked.
 */
static void with_kernel(void (*scene)(void), const char *refuses)
{
	pthread_t thread;

	if (geteuid())
		return;
	CU_ASSERT_EQUAL_FATAL(unshare(CLONE_NEWNET), 0);
	CU_ASSERT_EQUAL_FATAL(system("ip link set lo up mtu 4000 && ip addr add 10.1.2.3/24 dev lo && "
				     "ip route add 10.7.0.0/16 via 10.1.2.9 metric 5"),
			      0);
	make_tree();
	make_dirs(in_tree("/sys/bus/pci/devices/" NIC "/net/lo"));
	kernel_refuses = refuses;
	atomic_store(&kernel_stop, false);
	atomic_store(&kernel_wrong, 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, kernel_main, NULL), 0);
	scene();
	atomic_store(&kernel_stop, true);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(atomic_load(&kernel_wrong), 0);
	remove_tree();
}

static char err[UR_PCI_SENTENCE];
static char said[2048];

static void note(const char *sentence)
{
	snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s\n", sentence);
}

static int bind_it(struct ur_pci_bind b)
{
	b.addr = NIC;
	b.say = note;
	*said = *err = 0;
	return ur_pci_bind(&roots, &b, err, sizeof(err));
}

static unsigned stilled; /* how often the NIC was brought to a standstill, while it still had vfio-pci */

static bool still_fails;

static bool still(const char *addr, char *why, size_t len)
{
	stilled += !strcmp(addr, NIC) && !strcmp(driver_now(), "vfio-pci");
	snprintf(why, len, "no memory is free");
	return !still_fails;
}

static int unbind_it(void)
{
	const struct ur_pci_bind b = {.addr = NIC, .say = note, .still = still};

	*said = *err = 0;
	return ur_pci_unbind(&roots, &b, err, sizeof(err));
}

static int lose_addresses(void)
{
	return system("ip addr del 10.1.2.3/24 dev lo; ip link set lo mtu 1500 down");
}

static int has(const char *command, const char *words)
{
	char text[256] = "";
	FILE *f = popen(command, "r");
	bool found = false;

	while (f && fgets(text, sizeof(text), f))
		found |= strstr(text, words) != NULL;
	if (f)
		pclose(f);
	return found;
}

static void scene_there_and_back(void)
{
	struct ur_pci_state s;
	struct stat st;

	CU_ASSERT_TRUE(bind_it((struct ur_pci_bind){.keep = true}) == 0);
	CU_ASSERT_TRUE(!strcmp(driver_now(), "vfio-pci"));
	CU_ASSERT_TRUE(strstr(said, "10.1.2.3/24") && strstr(said, "huge pages"));
	CU_ASSERT_TRUE(number_in(in_tree("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")) == 49);
	CU_ASSERT_TRUE(stat(in_tree("/run/pci-" NIC), &st) == 0 && (st.st_mode & 0777) == 0600);
	CU_ASSERT_TRUE(ur_pci_state_view(&roots, NIC, &s) == 0 && s.keep && s.nif.mtu == 4000 && s.huge_pages == 46);
	CU_ASSERT_TRUE(bind_it((struct ur_pci_bind){.keep = true}) == 0 && strstr(said, "already"));
	CU_ASSERT_TRUE(lose_addresses() == 0);
	stilled = 0;
	CU_ASSERT_TRUE(unbind_it() == 0 && stilled == 1);
	CU_ASSERT_TRUE(!strcmp(driver_now(), "i40e"));
	CU_ASSERT_TRUE(has("ip addr show lo", "10.1.2.3/24") && has("ip link show lo", "mtu 4000"));
	CU_ASSERT_TRUE(has("ip route", "10.7.0.0/16 via 10.1.2.9 dev lo metric 5"));
	CU_ASSERT_TRUE(number_in(in_tree("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")) == 3);
	CU_ASSERT_TRUE(access(in_tree("/run/pci-" NIC), F_OK) && unbind_it() == 0 && strstr(said, "nothing to do") && stilled == 1);
}

static void scene_not_still(void)
{
	CU_ASSERT_TRUE(bind_it((struct ur_pci_bind){.keep = true}) == 0);
	still_fails = true;
	CU_ASSERT_TRUE(unbind_it() == 0 && strstr(said, "could not do that (no memory is free)"));
	still_fails = false;
	CU_ASSERT_TRUE(!strcmp(driver_now(), "i40e"));
}

static void bind__there_and_back(void)
{
	with_kernel(scene_there_and_back, NULL);
	with_kernel(scene_not_still, NULL);
}

static void scene_default_route(void)
{
	CU_ASSERT_TRUE(system("ip route add default via 10.1.2.8") == 0);
	CU_ASSERT_TRUE(bind_it((struct ur_pci_bind){.keep = false}) == EBUSY && strstr(err, "default route uses lo"));
	CU_ASSERT_TRUE(!strcmp(driver_now(), "i40e") && access(in_tree("/run/pci-" NIC), F_OK));
	CU_ASSERT_TRUE(bind_it((struct ur_pci_bind){.default_route = true, .dry = true}) == 0 && strstr(said, "binds " NIC));
	CU_ASSERT_TRUE(!strcmp(driver_now(), "i40e") && access(in_tree("/run/pci-" NIC), F_OK));
	CU_ASSERT_TRUE(bind_it((struct ur_pci_bind){.default_route = true}) == 0 && !strcmp(driver_now(), "vfio-pci"));
}

static void bind__default_route(void)
{
	with_kernel(scene_default_route, NULL);
}

static void scene_refused_by_kernel(void)
{
	CU_ASSERT_TRUE(bind_it((struct ur_pci_bind){.keep = true}) == ETIMEDOUT && strstr(err, "old driver"));
	CU_ASSERT_TRUE(!strcmp(driver_now(), "i40e"));
	CU_ASSERT_TRUE(number_in(in_tree("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")) == 3);
	CU_ASSERT_TRUE(access(in_tree("/run/pci-" NIC), F_OK));
}

static void bind__kernel_refuses(void)
{
	with_kernel(scene_refused_by_kernel, "vfio-pci");
}

static void scene_in_use(void)
{
	CU_ASSERT_TRUE(bind_it((struct ur_pci_bind){.keep = false}) == 0);
	make_dirs(in_tree("/proc/4711/fd"));
	CU_ASSERT_TRUE(symlink(in_tree("/dev/vfio/7"), in_tree("/proc/4711/fd/5")) == 0);
	CU_ASSERT_TRUE(unbind_it() == EBUSY && strstr(err, "process 4711 uses " NIC));
	CU_ASSERT_TRUE(!strcmp(driver_now(), "vfio-pci"));
}

static void unbind__in_use(void)
{
	with_kernel(scene_in_use, NULL);
}

static void scene_hostile_files(void)
{
	mkdir(run, 0700);
	/* A link where the file belongs is not followed, and what a file says is believed only when root alone can have written it. */
	put(in_tree("/elsewhere"), "uroce-pci 1\ndriver i40e\n");
	CU_ASSERT_TRUE(symlink(in_tree("/elsewhere"), in_tree("/run/pci-" NIC)) == 0);
	CU_ASSERT_TRUE(bind_it((struct ur_pci_bind){.keep = false}) == EPERM && !strcmp(driver_now(), "i40e"));
	unlink(in_tree("/run/pci-" NIC));
	put(in_tree("/run/pci-" NIC), "uroce-pci 1\ndriver i40e\n");
	CU_ASSERT_TRUE(chmod(in_tree("/run/pci-" NIC), 0644) == 0 && unbind_it() == EPERM);
	CU_ASSERT_TRUE(chmod(in_tree("/run/pci-" NIC), 0600) == 0);
	put(in_tree("/run/pci-" NIC), "uroce-pci 1\naddress 10.1.2.3\n");
	CU_ASSERT_TRUE(unbind_it() == EINVAL);
	unlink(in_tree("/run/pci-" NIC));
	/* Nor is a directory that others may write to, or a link in its place. */
	CU_ASSERT_TRUE(chmod(run, 0777) == 0 && bind_it((struct ur_pci_bind){.keep = false}) == EPERM);
	CU_ASSERT_TRUE(rmdir(run) == 0 && symlink(in_tree("/dev"), run) == 0 && bind_it((struct ur_pci_bind){.keep = false}) == EPERM);
}

static void state__hostile_files(void)
{
	with_kernel(scene_hostile_files, NULL);
}

/* --- an interface that changes while it is read --- */

#define READS 300

/* Gives lo another address again and again, with pauses in which several lists could be read. */
static void *change_lo(void *stop)
{
	struct ifreq ifr = {.ifr_name = "lo:1"};
	struct sockaddr_in *sin = (struct sockaddr_in *)(void *)&ifr.ifr_addr;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	sin->sin_family = AF_INET;
	for (uint32_t i = 0; !atomic_load((atomic_bool *)stop); i++) {
		sin->sin_addr.s_addr = htonl(0x0a090001 + (i & 1));
		kernel_must(ioctl(fd, SIOCSIFADDR, &ifr) == 0);
		usleep(2000);
	}
	close(fd);
	return NULL;
}

/* With enough addresses that the kernel lists them in several parts. */
static void save__while_it_changes(void)
{
	atomic_bool stop = false;
	struct ur_pci_if nif;
	pthread_t thread;
	unsigned good = 0;

	if (geteuid())
		return;
	CU_ASSERT_EQUAL_FATAL(unshare(CLONE_NEWNET), 0);
	CU_ASSERT_EQUAL_FATAL(system("ip link set lo up && seq 800 | "
				     "awk '{ print \"addr add 10.20.\" int($1 / 200) \".\" $1 % 200 \"/32 dev lo\" }' | ip -batch -"),
			      0);
	atomic_store(&kernel_wrong, 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, change_lo, &stop), 0);
	for (unsigned i = 0; i < READS; i++)
		good += ur_pci_if_save("lo", &nif) == 0 && nif.naddr == UR_PCI_IF_ADDRS;
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(atomic_load(&kernel_wrong), 0);
	CU_ASSERT_EQUAL(good, READS);
}

/* --- without a kernel --- */

static void addr__forms(void)
{
	static const struct {
		const char *text, *addr;
	} t[] = {
		{"0000:03:00.0", NIC},
		{"03:00.0", NIC},
		{"3:0.0", NIC},
		{"10000:e1:1F.7", "10000:e1:1f.7"},
		{"ABCD:0a:00.1", "abcd:0a:00.1"},
		{"", NULL},
		{"03:00", NULL},
		{"03:00.8", NULL},
		{"03:20.0", NULL},
		{"103:00.0", NULL},
		{"123456789:03:00.0", NULL},
		{"0000:03:00.0 ", NULL},
		{"0000:03:00.0,x=1", NULL},
		{":03:00.0", NULL},
		{"../../03:00.0", NULL},
		{"0:0:0:0.0", NULL},
	};
	char addr[UR_PCI_ADDR_TEXT];

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		CU_ASSERT_EQUAL(ur_pci_addr(t[i].text, addr), t[i].addr != NULL);
		if (t[i].addr)
			CU_ASSERT_STRING_EQUAL(addr, t[i].addr);
	}
}

static void look__cases(void)
{
	struct ur_pci_nic nic, list[4];
	char name[64];

	make_tree();
	put_device("0000:01:00.0", "0x010802\n", "nvme", 1);
	put_device("0000:04:00.0", "0x020000\n", "", -1);
	put(in_tree("/share/misc/pci.ids"),
	    "# ids\n8086  Intel Corporation\n\t1571  Another\n\t1572  Ethernet X710\n\t\t1572 0000  Not this\n8087  Other\n");
	make_dirs(in_tree("/sys/bus/pci/devices/" NIC "/net/eth7"));
	CU_ASSERT_EQUAL(ur_pci_read_nic(&roots, "0000:01:00.0", &nic), ENODEV);
	CU_ASSERT_EQUAL(ur_pci_read_nic(&roots, "0000:09:00.0", &nic), ENOENT);
	CU_ASSERT_EQUAL(ur_pci_list(&roots, list, 4), 2);
	CU_ASSERT_STRING_EQUAL(list[0].addr, NIC);
	CU_ASSERT_STRING_EQUAL(list[0].driver, "i40e");
	CU_ASSERT_STRING_EQUAL(list[0].ifname[0], "eth7");
	CU_ASSERT_EQUAL(list[0].group, 7);
	CU_ASSERT_EQUAL(list[1].group, -1);
	CU_ASSERT_EQUAL(list[1].ifnames, 0);
	ur_pci_name(&roots, &list[0], name, sizeof(name));
	CU_ASSERT_STRING_EQUAL(name, "Intel Corporation Ethernet X710");
	list[0].device = 0x9999;
	ur_pci_name(&roots, &list[0], name, sizeof(name));
	CU_ASSERT_STRING_EQUAL(name, "Intel Corporation 9999");
	remove_tree();
}

static void obstacle__cases(void)
{
	struct ur_pci_nic nic;
	char text[128];

	make_tree();
	put_device("0000:04:00.0", "0x020000\n", "", -1);
	CU_ASSERT_EQUAL(ur_pci_read_nic(&roots, NIC, &nic), 0);
	CU_ASSERT_EQUAL(ur_pci_obstacle(&roots, &nic, "vfio-pci", err, sizeof(err)), 0);
	/* A bridge in the group does not matter, nor what a program has; a device of the kernel's does. */
	put_device("0000:00:01.0", "0x060400\n", "pcieport", 7);
	put_device("0000:03:00.1", "0x020000\n", "vfio-pci", 7);
	CU_ASSERT_EQUAL(ur_pci_obstacle(&roots, &nic, "vfio-pci", err, sizeof(err)), 0);
	put_device("0000:03:00.2", "0x010700\n", "mpt3sas", 7);
	CU_ASSERT_EQUAL(ur_pci_obstacle(&roots, &nic, "vfio-pci", err, sizeof(err)), EBUSY);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "0000:03:00.2"));
	CU_ASSERT_EQUAL(ur_pci_obstacle(&roots, &nic, "uio_pci_generic", err, sizeof(err)), 0);
	CU_ASSERT_EQUAL(ur_pci_read_nic(&roots, "0000:04:00.0", &nic), 0);
	CU_ASSERT_EQUAL(ur_pci_obstacle(&roots, &nic, "vfio-pci", err, sizeof(err)), EOPNOTSUPP);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "not behind an IOMMU"));
	/* Bit 33 of a virtio device's features: without it the device goes past the IOMMU. */
	memset(text, '1', 64);
	text[33] = '0';
	text[64] = 0;
	put(in_tree("/sys/bus/pci/devices/" NIC "/virtio3/features"), text);
	CU_ASSERT_EQUAL(ur_pci_read_nic(&roots, NIC, &nic), 0);
	CU_ASSERT_TRUE(nic.bypass);
	text[33] = '1';
	put(in_tree("/sys/bus/pci/devices/" NIC "/virtio3/features"), text);
	CU_ASSERT_EQUAL(ur_pci_read_nic(&roots, NIC, &nic), 0);
	CU_ASSERT_FALSE(nic.bypass);
	remove_tree();
}

static void bind__wrong_words(void)
{
	struct ur_pci_bind b = {.addr = NIC, .driver = "i40e"};

	make_tree();
	CU_ASSERT_EQUAL(ur_pci_bind(&roots, &b, err, sizeof(err)), EINVAL);
	b.driver = "../../../evil";
	CU_ASSERT_EQUAL(ur_pci_bind(&roots, &b, err, sizeof(err)), EINVAL);
	b.addr = "0000:09:00.0";
	CU_ASSERT_EQUAL(ur_pci_bind(&roots, &b, err, sizeof(err)), ENOENT);
	CU_ASSERT_STRING_EQUAL(driver_now(), "i40e");
	remove_tree();
}

void ur_suite_pci(void)
{
	CU_pSuite s = CU_add_suite("pci", NULL, NULL);

	CU_ADD_TEST(s, addr__forms);
	CU_ADD_TEST(s, look__cases);
	CU_ADD_TEST(s, obstacle__cases);
	CU_ADD_TEST(s, bind__wrong_words);
	CU_ADD_TEST(s, bind__there_and_back);
	CU_ADD_TEST(s, bind__default_route);
	CU_ADD_TEST(s, bind__kernel_refuses);
	CU_ADD_TEST(s, unbind__in_use);
	CU_ADD_TEST(s, state__hostile_files);
	CU_ADD_TEST(s, save__while_it_changes);
}
