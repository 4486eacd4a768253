/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/doctor: of a host without fault nothing is found; each finding comes of the one fact that it is about, and tells how to mend it. */
#include <CUnit/Basic.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "doctor_facts.h"
#include "wire/path.h"

void ur_suite_doctor(void);

/* --- faults --- */

static void no_device(struct ur_doctor_facts *f)
{
	f->dev[0] = 0;
	strcpy(f->dev_why, "interface 'eth9' does not exist");
}

static void down(struct ur_doctor_facts *f)
{
	f->up = f->carrier = false;
}

static void no_carrier(struct ur_doctor_facts *f)
{
	f->carrier = false;
}

static void no_address(struct ur_doctor_facts *f)
{
	f->addresses = 0;
}

static void no_rights(struct ur_doctor_facts *f)
{
	f->net_raw = f->net_admin = false;
	f->rmem_max = 8 << 20;
	f->uid = 1000;
	for (unsigned i = UR_DOCTOR_PACKET; i < UR_DOCTOR_PORTS; i++)
		f->ports[i] = (struct ur_doctor_port){.why = "no permission to open a raw socket"};
}

static void wrong_port(struct ur_doctor_facts *f)
{
	no_rights(f);
	strcpy(f->port_setting, "packet");
}

static void no_udp(struct ur_doctor_facts *f)
{
	f->ports[UR_DOCTOR_UDP] = (struct ur_doctor_port){.why = "UDP port 4791 belongs to another"};
}

static void no_port(struct ur_doctor_facts *f)
{
	no_rights(f);
	no_udp(f);
}

static void rxe(struct ur_doctor_facts *f)
{
	no_udp(f);
	strcpy(f->rxe, "rxe0");
	f->holders[f->holder_count++] = (struct ur_doctor_holder){.kernel = true};
}

static void held(struct ur_doctor_facts *f)
{
	no_udp(f);
	f->holders[f->holder_count++] = (struct ur_doctor_holder){.pid = 4711, .uid = 1000, .name = "socat"};
}

static void held_unseen(struct ur_doctor_facts *f)
{
	no_udp(f);
	f->holders[f->holder_count++] = (struct ur_doctor_holder){.kernel = true, .uid = 1000};
}

static void held_by_root(struct ur_doctor_facts *f)
{
	held(f);
	f->uid = 1001;
}

/* Nothing can be read. */
static void unknown(struct ur_doctor_facts *f)
{
	f->holders_known = f->processes_known = f->net_admin = false;
	f->rmem_max = 0;
}

static void mtu_tiny(struct ur_doctor_facts *f)
{
	f->mtu = 68;
}

static void mtu_1500(struct ur_doctor_facts *f)
{
	f->mtu = 1500;
}

static void mtu_600(struct ur_doctor_facts *f)
{
	f->mtu = 1103;
}

static void no_segment(struct ur_doctor_facts *f)
{
	f->udp_segment = false;
}

static void no_gro(struct ur_doctor_facts *f)
{
	f->udp_gro = false;
}

static void small_buffers(struct ur_doctor_facts *f)
{
	f->net_admin = false;
}

static void tiny_buffers(struct ur_doctor_facts *f)
{
	f->net_admin = false;
	f->rmem_max = 4096;
}

static void settings(struct ur_doctor_facts *f)
{
	strcpy(f->fault, "drop=1%");
	f->capture = true;
}

static void merging(struct ur_doctor_facts *f)
{
	strcpy(f->port_setting, "dpdk");
}

static void firewall(struct ur_doctor_facts *f, enum ur_firewall_verdict v)
{
	f->firewall = (struct ur_firewall){.verdict = v, .where = "a rule", .remedy = "nft list ruleset", .rules = 1};
}

static void drops(struct ur_doctor_facts *f)
{
	firewall(f, UR_FIREWALL_DROPS);
}

static void may_drop(struct ur_doctor_facts *f)
{
	firewall(f, UR_FIREWALL_MAY_DROP);
}

static void unknown_rules(struct ur_doctor_facts *f)
{
	firewall(f, UR_FIREWALL_UNKNOWN);
}

static void root_knows(struct ur_doctor_facts *f)
{
	firewall(f, UR_FIREWALL_UNKNOWN);
	f->firewall.remedy[0] = 0;
	f->uid = 1000;
}

static void root_knows_without_peer(struct ur_doctor_facts *f)
{
	root_knows(f);
	f->with_peer = false;
}

static void bypassed(struct ur_doctor_facts *f)
{
	drops(f);
	strcpy(f->port_setting, "packet");
}

static void silent_process(struct ur_doctor_facts *f)
{
	f->processes[f->process_count++] = (struct ur_doctor_process){.pid = 4711, .silent = true};
}

static void one_cpu(struct ur_doctor_facts *f)
{
	f->cpus = 1;
}

static void quota(struct ur_doctor_facts *f)
{
	f->quota_percent = 50;
}

static void odd_kernel(struct ur_doctor_facts *f)
{
	f->clock_ns = 900;
	f->ptrace_scope = 1;
}

static void no_copies(struct ur_doctor_facts *f)
{
	f->copy_error = EPERM;
}

static void no_name(struct ur_doctor_facts *f)
{
	f->peer.address[0] = 0;
}

static void self(struct ur_doctor_facts *f)
{
	f->peer.self = true;
	strcpy(f->peer.dev, "lo");
}

static void no_route(struct ur_doctor_facts *f)
{
	f->peer.routed = false;
}

static void other_dev(struct ur_doctor_facts *f)
{
	strcpy(f->peer.dev, "eth1");
}

static void no_ping(struct ur_doctor_facts *f)
{
	f->peer.ping = UR_DOCTOR_PING_SILENT;
	f->peer.sized = false;
	f->peer.bytes = 0;
}

static void unreachable(struct ur_doctor_facts *f)
{
	no_ping(f);
	f->peer.ping = UR_DOCTOR_PING_UNREACHABLE;
	f->peer.cm = UR_DOCTOR_CM_SILENT;
}

static void ping_denied(struct ur_doctor_facts *f)
{
	no_ping(f);
	f->peer.ping = UR_DOCTOR_PING_DENIED;
}

static void ping_unsent(struct ur_doctor_facts *f)
{
	no_ping(f);
	f->peer.ping = UR_DOCTOR_PING_UNSENT;
	f->peer.ping_error = EPERM;
}

static void narrow(struct ur_doctor_facts *f)
{
	f->peer.bytes = 1120;
}

static void refused(struct ur_doctor_facts *f)
{
	f->peer.cm = UR_DOCTOR_CM_REFUSED;
}

static void prohibited(struct ur_doctor_facts *f)
{
	f->peer.cm = UR_DOCTOR_CM_PROHIBITED;
}

static void silent(struct ur_doctor_facts *f)
{
	f->peer.cm = UR_DOCTOR_CM_SILENT;
}

static void untested(struct ur_doctor_facts *f)
{
	f->peer.cm = UR_DOCTOR_CM_UNTESTED;
	f->uid = 1000;
}

static void losses(struct ur_doctor_facts *f)
{
	f->peer.answered = 999;
}

static void silent_gid(struct ur_doctor_facts *f)
{
	f->peer.gids[f->peer.gid_count++] = (struct ur_doctor_gid){.address = "198.51.100.1"};
}

static const struct {
	enum ur_doctor_id id;
	void (*spoil)(struct ur_doctor_facts *f);
	const char *remedy; /* what its command has to name */
} rows[] = {
	{UR_DOC_DEVICE_NONE, no_device, "ip -brief"},
	{UR_DOC_DEVICE_DOWN, down, "ip link set dev eth0 up"},
	{UR_DOC_DEVICE_NO_CARRIER, no_carrier, "eth0"},
	{UR_DOC_DEVICE_NO_ADDRESS, no_address, "dev eth0"},
	{UR_DOC_PORT_REFUSED, no_rights, "sudo"},
	{UR_DOC_PORT_REFUSED, no_udp, "uroce run"},
	{UR_DOC_PORT_CHOSEN, wrong_port, "--port auto"},
	{UR_DOC_PORT_NONE, no_port, "sudo"},
	{UR_DOC_HOLDER_RXE, rxe, "rdma link delete rxe0"},
	{UR_DOC_HOLDER_OTHER, held, "kill 4711"},
	{UR_DOC_HOLDER_OTHER, held_unseen, "ss -Hulanp"},
	{UR_DOC_HOLDER_OTHER, held_by_root, "sudo kill 4711"},
	{UR_DOC_HOLDER_UNKNOWN, unknown, "ss -Hulanp"},
	{UR_DOC_MTU_1024, mtu_1500, "ip link set dev eth0 mtu 4200"},
	{UR_DOC_MTU_SMALL, mtu_600, "ip link set dev eth0 mtu 1500"},
	{UR_DOC_MTU_SMALL, mtu_tiny, "ip link set dev eth0 mtu 1500"},
	{UR_DOC_BUFFER_UNKNOWN, unknown, "sysctl net"},
	{UR_DOC_KERNEL_SEGMENT, no_segment, "linux-image"},
	{UR_DOC_KERNEL_GRO, no_gro, "linux-image"},
	{UR_DOC_BUFFER_SMALL, small_buffers, "net.core.rmem_max="},
	{UR_DOC_BUFFER_TINY, tiny_buffers, "net.core.rmem_max="},
	{UR_DOC_MERGE_ON, merging, "ethtool -K eth0"},
	{UR_DOC_FIREWALL_DROPS, drops, "nft"},
	{UR_DOC_FIREWALL_MAY_DROP, may_drop, "nft"},
	{UR_DOC_FIREWALL_UNKNOWN, unknown_rules, "nft"},
	{UR_DOC_FIREWALL_UNKNOWN, root_knows, "sudo uroce doctor --dev eth0 host"},
	{UR_DOC_FIREWALL_UNKNOWN, root_knows_without_peer, "sudo uroce doctor --dev eth0"},
	{UR_DOC_FIREWALL_BYPASSED, bypassed, "nft"},
	{UR_DOC_PROCESSES_SILENT, silent_process, "kill -CONT 4711"},
	{UR_DOC_PROCESSES_UNKNOWN, unknown, "ss"},
	{UR_DOC_CPU_FEW, one_cpu, "UROCE_SPIN_US=0"},
	{UR_DOC_CPU_QUOTA, quota, "CPUQuota"},
	{UR_DOC_CLOCK_SLOW, odd_kernel, "current_clocksource"},
	{UR_DOC_COPY_LIMITED, odd_kernel, "kernel.yama.ptrace_scope=0"},
	{UR_DOC_COPY_FORBIDDEN, no_copies, "process_vm_readv"},
	{UR_DOC_SETTINGS_FAULT, settings, "uroce info --config"},
	{UR_DOC_SETTINGS_WATCHED, settings, "uroce info --config"},
	{UR_DOC_PEER_NAME, no_name, "getent ahosts 'host'"},
	{UR_DOC_PEER_SELF, self, ""},
	{UR_DOC_PEER_ROUTE, no_route, "ip route get 192.0.2.1"},
	{UR_DOC_PEER_OTHER_DEV, other_dev, "--dev eth1 host"},
	{UR_DOC_PING_SILENT, no_ping, "ping"},
	{UR_DOC_PING_UNREACHABLE, unreachable, "ip neighbour"},
	{UR_DOC_PING_UNKNOWN, ping_denied, "ping_group_range"},
	{UR_DOC_PING_UNKNOWN, ping_unsent, "ping -c 3 192.0.2.1"},
	{UR_DOC_PEER_MTU_UNKNOWN, ping_denied, "tracepath"},
	{UR_DOC_PEER_MTU, narrow, "mtu 1500"},
	{UR_DOC_PEER_MTU_UNKNOWN, no_ping, "tracepath"},
	{UR_DOC_CM_REFUSED, refused, "rping -s"},
	{UR_DOC_CM_PROHIBITED, prohibited, "nft list ruleset"},
	{UR_DOC_CM_SILENT, silent, "tcpdump"},
	{UR_DOC_CM_UNTESTED, untested, "sudo uroce doctor --dev eth0 host"},
	{UR_DOC_LOSS, losses, "ip -s link show dev eth0"},
	{UR_DOC_GIDS_SILENT, silent_gid, "uroce info"},
};

static const struct ur_doctor_finding *find(const struct ur_doctor_report *r, enum ur_doctor_id id)
{
	for (unsigned i = 0; i < r->count; i++)
		if (r->findings[i].id == id)
			return &r->findings[i];
	return NULL;
}

static bool is_ok(enum ur_doctor_id id)
{
	return ur_doctor_kinds[id].severity == UR_DOCTOR_OK;
}

static void doctor__healthy(void)
{
	static struct ur_doctor_facts f;
	static struct ur_doctor_report r;

	healthy(&f);
	ur_doctor_judge(&f, &r);
	CU_ASSERT_EQUAL(ur_doctor_wrong(&r), 0);
	for (unsigned id = 0; id < UR_DOC_COUNT; id++)
		CU_ASSERT_EQUAL(find(&r, id) != NULL, is_ok(id));
	f.with_peer = false;
	ur_doctor_judge(&f, &r);
	CU_ASSERT_PTR_NULL(find(&r, UR_DOC_CM_OK));
	CU_ASSERT_PTR_NOT_NULL(find(&r, UR_DOC_CLOCK_OK));
}

static void doctor__each(void)
{
	static struct ur_doctor_facts f;
	static struct ur_doctor_report r;
	bool seen[UR_DOC_COUNT] = {false};

	for (unsigned i = 0; i < ur_array_size(rows); i++) {
		const struct ur_doctor_finding *x;

		healthy(&f);
		rows[i].spoil(&f);
		ur_doctor_judge(&f, &r);
		x = find(&r, rows[i].id);
		if (!x || !strstr(x->remedy, rows[i].remedy))
			printf("# %s: '%s'\n", ur_doctor_kinds[rows[i].id].name, x ? x->remedy : "not found");
		CU_ASSERT_PTR_NOT_NULL_FATAL(x);
		CU_ASSERT_PTR_NOT_NULL(strstr(x->remedy, rows[i].remedy));
		CU_ASSERT_EQUAL(ur_doctor_wrong(&r) > 0 || ur_doctor_kinds[x->id].severity < UR_DOCTOR_WARNING, true);
		seen[x->id] = true;
	}
	for (unsigned id = 0; id < UR_DOC_COUNT; id++)
		CU_ASSERT_TRUE(seen[id] || is_ok(id));
}

/* One fault at a time brings no second finding that is wrong, except for those that follow from it. */
static void doctor__alone(void)
{
	static struct ur_doctor_facts f;
	static struct ur_doctor_report r;

	for (unsigned i = 0; i < ur_array_size(rows); i++) {
		healthy(&f);
		rows[i].spoil(&f);
		ur_doctor_judge(&f, &r);
		if (ur_doctor_wrong(&r) > 1)
			printf("# %s: %u\n", ur_doctor_kinds[rows[i].id].name, ur_doctor_wrong(&r));
		CU_ASSERT_TRUE(ur_doctor_wrong(&r) <= 1);
	}
}

/* What works in spite of a fact is not wrong. */
static void doctor__in_spite(void)
{
	static struct ur_doctor_facts f;
	static struct ur_doctor_report r;

	healthy(&f); /* a uroce of our own has the port with us */
	f.holders[f.holder_count++] = (struct ur_doctor_holder){.pid = 4711, .uroce = true};
	ur_doctor_judge(&f, &r);
	CU_ASSERT_PTR_NULL(find(&r, UR_DOC_HOLDER_OTHER));
	healthy(&f); /* GRO does not matter to the port that is taken */
	f.lro = true;
	ur_doctor_judge(&f, &r);
	CU_ASSERT_PTR_NULL(find(&r, UR_DOC_MERGE_ON));
	healthy(&f); /* a host that says no ping but speaks the CM is there */
	f.peer.ping = UR_DOCTOR_PING_UNREACHABLE;
	ur_doctor_judge(&f, &r);
	CU_ASSERT_EQUAL(ur_doctor_wrong(&r), 0);
	healthy(&f);
	f.peer.bytes = f.mtu = 1500; /* what both have is no narrow place */
	ur_doctor_judge(&f, &r);
	CU_ASSERT_PTR_NULL(find(&r, UR_DOC_PEER_MTU));
}

static void doctor__path_mtu(void)
{
	static const struct {
		unsigned bytes, mtu;
	} sizes[] = {{0, 0},       {68, 0},      {351, 0},     {352, 256},   {607, 256},    {608, 512},   {1119, 512},
		     {1120, 1024}, {1500, 1024}, {4191, 2048}, {4192, 4096}, {65535, 4096}, {65536, 4096}};

	for (unsigned i = 0; i < ur_array_size(sizes); i++)
		CU_ASSERT_EQUAL(ur_doctor_path_mtu(sizes[i].bytes), sizes[i].mtu);
	/* What `uroce info` and ibv_query_port(3) say. */
	for (unsigned i = 352; i <= 9600; i++)
		CU_ASSERT_EQUAL(ur_doctor_path_mtu(i), 128u << ur_max_path_mtu((uint16_t)i));
}

static const char *says(void (*spoil)(struct ur_doctor_facts *f), enum ur_doctor_id id, const char *sentence)
{
	static struct ur_doctor_facts f;
	static struct ur_doctor_report r;

	healthy(&f);
	spoil(&f);
	ur_doctor_judge(&f, &r);
	CU_ASSERT_PTR_NOT_NULL_FATAL(find(&r, id));
	CU_ASSERT_PTR_NOT_NULL(strstr(find(&r, id)->sentence, sentence));
	return find(&r, id)->sentence;
}

/* A process that a PID namespace hides. */
static void hidden_process(struct ur_doctor_facts *f)
{
	f->processes[f->process_count++] = (struct ur_doctor_process){.pid = 0};
}

static void doctor__sentences(void)
{
	says(mtu_600, UR_DOC_MTU_SMALL, "path MTU 512, which takes 2 packets where 1024 takes one");
	says(mtu_tiny, UR_DOC_MTU_SMALL, "MTU 68 is too small for RoCE, whose smallest path MTU needs 352");
	CU_ASSERT_STRING_EQUAL(says(hidden_process, UR_DOC_PROCESSES_OK, "1 other"), "1 other process uses uroce on eth0");
	says(unknown, UR_DOC_BUFFER_UNKNOWN, "cannot determine");
	says(unknown, UR_DOC_HOLDER_UNKNOWN, "cannot determine");
}

/* Commands that need root have sudo in front, for all but root, and only those. */
static void doctor__sudo(void)
{
	static struct ur_doctor_facts f;
	static struct ur_doctor_report r;

	for (unsigned i = 0; i < ur_array_size(rows); i++)
		for (unsigned uid = 0; uid <= 1001; uid += 1001) {
			const struct ur_doctor_finding *x;

			healthy(&f);
			rows[i].spoil(&f);
			f.uid = uid;
			ur_doctor_judge(&f, &r);
			x = find(&r, rows[i].id);
			CU_ASSERT_PTR_NOT_NULL_FATAL(x);
			CU_ASSERT_FALSE(!uid && strstr(x->remedy, "sudo"));
			CU_ASSERT_FALSE(uid && !strncmp(x->remedy, "ip link set", 11));
			CU_ASSERT_FALSE(uid && !strncmp(x->remedy, "nft ", 4));
			CU_ASSERT_PTR_NULL(strstr(x->remedy, "sudo sudo"));
			CU_ASSERT_PTR_NULL(strstr(x->remedy, "reboot"));
		}
}

/* More holders and processes than a report has room for are cut off, and not beyond its end. */
static void doctor__full(void)
{
	static struct ur_doctor_facts f;
	static struct ur_doctor_report r;

	healthy(&f);
	no_port(&f);
	for (unsigned i = 0; i < UR_DOCTOR_HOLDERS; i++)
		held(&f);
	for (unsigned i = 0; i < UR_DOCTOR_PROCESSES; i++)
		silent_process(&f);
	f.process_count = 200;
	memset(f.dev_why, 'x', sizeof(f.dev_why) - 1);
	for (unsigned i = 0; i < UR_DOCTOR_PORTS; i++)
		memset(f.ports[i].why, 'y', sizeof(f.ports[i].why) - 1);
	ur_doctor_judge(&f, &r);
	CU_ASSERT_TRUE(r.count <= UR_DOCTOR_MAX);
	CU_ASSERT_PTR_NOT_NULL(find(&r, UR_DOC_PROCESSES_SILENT));
}

/* What goes to a terminal or into a command has no control characters, and names no quotes; the rest stays. */
static void doctor__clean(void)
{
	static struct ur_doctor_facts f;

	healthy(&f);
	ur_doctor_clean(&f);
	CU_ASSERT_STRING_EQUAL(f.peer.name, "host");
	CU_ASSERT_STRING_EQUAL(f.dev, "eth0");
	strcpy(f.peer.name, "a';reboot\xff");
	strcpy(f.dev_why, "it's \033[2J here\n");
	strcpy(f.holders[f.holder_count++].name, "\x9b");
	ur_doctor_clean(&f);
	CU_ASSERT_STRING_EQUAL(f.peer.name, "a??reboot?");
	CU_ASSERT_STRING_EQUAL(f.dev_why, "it's ?[2J here?");
	CU_ASSERT_STRING_EQUAL(f.holders[0].name, "?");
}

/* Whoever reads about a finding looks for its name. */
static void doctor__names(void)
{
	static char doc[65536];
	FILE *in = fopen(UROCE_SOURCE_ROOT "/doc/doctor.md", "r");

	CU_ASSERT_PTR_NOT_NULL_FATAL(in);
	doc[fread(doc, 1, sizeof(doc) - 1, in)] = 0;
	fclose(in);
	for (unsigned id = 0; id < UR_DOC_COUNT; id++) {
		char cell[80];

		for (unsigned k = 0; k < id; k++)
			CU_ASSERT_STRING_NOT_EQUAL(ur_doctor_kinds[id].name, ur_doctor_kinds[k].name);
		snprintf(cell, sizeof(cell), "| `%s` | %s |", ur_doctor_kinds[id].name,
			 ur_doctor_severity_name(ur_doctor_kinds[id].severity));
		if (!is_ok(id) && !strstr(doc, cell))
			printf("# doc/doctor.md has no row %s\n", cell);
		CU_ASSERT_TRUE(is_ok(id) || strstr(doc, cell));
	}
}

void ur_suite_doctor(void)
{
	CU_pSuite s = CU_add_suite("doctor", NULL, NULL);

	CU_add_test(s, "nothing is found where nothing is wrong", doctor__healthy);
	CU_add_test(s, "each finding comes of its fact, with a command", doctor__each);
	CU_add_test(s, "one fault is one finding", doctor__alone);
	CU_add_test(s, "what works in spite of a fact is not wrong", doctor__in_spite);
	CU_add_test(s, "path MTU and IP bytes", doctor__path_mtu);
	CU_add_test(s, "sentences say what is so", doctor__sentences);
	CU_add_test(s, "sudo stands where root is needed", doctor__sudo);
	CU_add_test(s, "more than there is room for", doctor__full);
	CU_add_test(s, "texts from outside are cleaned", doctor__clean);
	CU_add_test(s, "names are in the documentation", doctor__names);
}
