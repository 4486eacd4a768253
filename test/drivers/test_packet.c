/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drivers/packet on both ends of a veth pair in a network namespace of its own. Needs root (exit status 77 otherwise: skipped). The
 * namespace goes with the process.
 */
#define _GNU_SOURCE
#include <CUnit/Basic.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/drivers/packet_util.h"

#define SKIPPED 77
#define SLOTS 2240 /* of the ring at this MTU */

/* --- opening --- */

static void open__errors(void)
{
	static const struct {
		struct ur_packet_config cfg;
		int rc;
		const char *says;
	} t[] = {
		{{.ifname = "nosuch0"}, ENODEV, "does not exist"},
		{{.ifname = "tdown"}, ENETDOWN, "ip link set tdown up"},
		{{.ifname = "ttun"}, EOPNOTSUPP, "not Ethernet"},
		{{.ifname = "ta", .mtu = 9000}, EINVAL, "at most"},
		{{.ifname = "tsmall", .mtu = 4000}, EINVAL, "ip link set tsmall mtu 4000"},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ur_port *p = NULL;

		CU_ASSERT_EQUAL(ur_packet_open(&t[i].cfg, &p, err, sizeof(err)), t[i].rc);
		CU_ASSERT_PTR_NULL(p);
		CU_ASSERT_PTR_NOT_NULL(strstr(err, t[i].says));
	}
}

static void open__without_permission(void)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		struct ur_port *p;
		int rc = setresuid(65534, 65534, 65534) ? 0
							: ur_packet_open(&(struct ur_packet_config){.ifname = "ta"}, &p, err, sizeof(err));

		_exit(rc == EPERM && strstr(err, "needs CAP_NET_RAW") ? 0 : 1);
	}
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(status, 0);
}

static void open__interface_facts(void)
{
	open_pair(false, true);
	CU_ASSERT_EQUAL(a->mtu, UR_PKT_ROOM - 18); /* the interface has 9000 */
	CU_ASSERT_STRING_EQUAL(a->name, "ta");
	CU_ASSERT_EQUAL(a->mac.b[5], 0x0a);
	CU_ASSERT_TRUE(a->ops->link_up(a));
	CU_ASSERT_EQUAL(a->queue->caps, 0);
	CU_ASSERT_TRUE(a->queue->train_pkts >= 64);
	CU_ASSERT_EQUAL(b->queue->train_pkts, 1);
	CU_ASSERT_EQUAL(system("ip link set tb down"), 0);
	CU_ASSERT_FALSE(b->ops->link_up(b));
	CU_ASSERT_EQUAL(system("ip link set tb up"), 0);
	close_pair();
}

static void alloc__contract(void)
{
	struct ur_pkt *pkts[32];
	unsigned n;

	open_pair(false, false);
	for (unsigned round = 0; round < 4; round++) {
		n = ur_queue_alloc(a->queue, pkts, 32);
		CU_ASSERT_EQUAL(n, 32);
		for (unsigned i = 0; i < n; i++) {
			struct ur_pkt *p = pkts[i];

			CU_ASSERT_TRUE(p->room >= UR_PKT_ROOM);
			CU_ASSERT_TRUE(!p->len && !p->nseg && !p->tail_len && !p->flags && !p->kind && !p->bth_off && !p->when && !p->next);
			CU_ASSERT_TRUE(!p->bth.opcode && !p->src.raw[15] && !p->dst.raw[0] && !p->place);
			memset(p->data, 0xff, UR_PKT_ROOM);
			memset(&p->nseg, 0xff, offsetof(struct ur_pkt, home) - offsetof(struct ur_pkt, nseg));
			p->nseg = 0;
		}
		ur_pkts_release(pkts, n);
	}
	close_pair();
}

static void alloc_train__contract(void)
{
	static struct ur_pkt *t[1024];
	struct ur_queue *q;
	unsigned n, before = 0;

	open_pair(false, false);
	q = a->queue;
	for (unsigned round = 0; round < 3; round++) {
		for (n = 0; n < ur_array_size(t) && (t[n] = q->ops->alloc_train(q)); n++) {
			struct ur_pkt *p = t[n];

			CU_ASSERT_TRUE(p->room >= 14 + 4 + 40 + 8 + q->train_bytes);
			CU_ASSERT_TRUE(!p->len && !p->nseg && !p->tail_len && !p->flags && !p->kind && !p->bth_off && !p->when && !p->next);
			CU_ASSERT_TRUE(!p->stride && !p->place && p->home == q);
			memset(&p->nseg, 0xff, offsetof(struct ur_pkt, home) - offsetof(struct ur_pkt, nseg));
			p->nseg = 0;
			p->data[0] = p->data[p->room - 1] = 1;
		}
		CU_ASSERT_TRUE(n >= 64 && n < ur_array_size(t) && (!round || n == before));
		before = n;
		ur_pkts_release(t, n);
	}
	close_pair();
}

/* --- single frames --- */

static void tx__every_shape(void)
{
	for (unsigned plain = 0; plain < 2; plain++) {
		open_pair(plain, plain);
		for (unsigned nseg = 0; nseg <= UR_PKT_SEGS; nseg++)
			for (unsigned tail = 0; tail <= 7; tail += 7) {
				transfer(nseg, 1, tail);
				transfer(nseg, nseg == 1 ? 4096 : 1000, tail);
			}
		close_pair();
	}
}

static void tx__too_long_is_refused(void)
{
	static uint8_t bytes[5000];
	struct ur_ref ref = {.n = 2};
	struct ur_pkt *p[3], *r;

	open_pair(false, false);
	for (unsigned i = 0; i < 3; i++) {
		p[i] = new_pkt(a, &b->mac, HDR);
		p[i]->data[HDR - 1] = (uint8_t)i;
	}
	p[1]->seg[0] = p[1]->seg[1] = (struct ur_seg){bytes, 3000, &ref};
	p[1]->nseg = 2;
	CU_ASSERT_EQUAL(ur_queue_tx(a->queue, p, 3), 3);
	CU_ASSERT_EQUAL(atomic_load(&ref.n), 0);
	for (unsigned i = 0; i < 3; i += 2) {
		r = receive(b);
		CU_ASSERT_PTR_NOT_NULL_FATAL(r);
		CU_ASSERT_EQUAL(r->data[HDR - 1], i);
		ur_pkts_release(&r, 1);
	}
	CU_ASSERT_EQUAL(a->queue->tx_refused, 1);
	close_pair();
}

/* What stands after the MAC addresses arrives as it was sent: ARP, RoCEv1, and a VLAN tag, which the kernel takes out and we put back. */
static void rx__frames_of_every_kind(void)
{
	static const struct {
		const char *type;
		unsigned len;
	} t[] = {
		{"\x08\x06\0\1", 60},         {"\x08\x06\0\1", 1000},        {"\x89\x15\0\0", 60},
		{"\x81\x00\x20\x05\x08\x06", 64}, {"\x81\x00\x20\x05\x08\x06", 2000},
	};

	open_pair(false, false);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		uint8_t frame[2048];
		struct ur_pkt *r;

		memset(frame, (int)(i + 1), sizeof(frame));
		memcpy(frame, b->mac.b, 6);
		memcpy(frame + 6, a->mac.b, 6);
		memcpy(frame + 12, t[i].type, t[i].type[0] == '\x81' ? 6 : 4);
		send_raw("ta", frame, t[i].len);
		r = receive_any();
		CU_ASSERT_PTR_NOT_NULL_FATAL(r);
		CU_ASSERT_EQUAL(r->len, t[i].len);
		CU_ASSERT_EQUAL(memcmp(r->data, frame, t[i].len), 0);
		CU_ASSERT_TRUE(r->room >= r->len);
		ur_pkts_release(&r, 1);
	}
	close_pair();
}

/* --- more than fits, and longer than expected --- */

static void rx__thousands_of_small_frames(void)
{
	uint32_t psn = 0;

	open_pair(true, false);
	make_path(false, 0);
	while (psn < SLOTS)
		send_train(&psn, 32, 64, 64);
	receive_train(0, SLOTS, 0);
	CU_ASSERT_EQUAL(b->queue->rx_missed, 0);
	close_pair();
}

static void rx__counts_what_was_missed(void)
{
	uint32_t psn = 0;
	unsigned got;

	open_pair(true, false);
	make_path(false, 0);
	while (psn < SLOTS + 640)
		send_train(&psn, 32, 64, 64);
	got = drain();
	CU_ASSERT_EQUAL(got, SLOTS);
	CU_ASSERT_EQUAL(b->queue->rx_missed, 640);
	send_train(&psn, 32, 64, 64); /* and it goes on */
	CU_ASSERT_EQUAL(drain(), 32);
	close_pair();
}

/* Of a train for which the socket has no room there is at least the beginning. */
static void rx__counts_trains_that_were_missed(void)
{
	uint32_t psn = 0;
	unsigned got;

	open_pair(false, false);
	make_path(false, 0);
	for (unsigned i = 0; i < 600; i++)
		send_train(&psn, TRAIN, 4096, 4096);
	got = drain();
	CU_ASSERT_TRUE(got > 100 * TRAIN && got < 600 * TRAIN);
	CU_ASSERT_EQUAL(got + b->queue->rx_missed, 600 * TRAIN);
	send_train(&psn, TRAIN, 4096, 4096);
	CU_ASSERT_EQUAL(drain(), TRAIN);
	close_pair();
}

/* Long frames lie in the ring until they are released: meanwhile it goes round, and nothing is written over them or read twice. */
static void rx__held_packets_keep_their_bytes(void)
{
	struct ur_pkt *held[8];
	uint32_t psn = 0;

	open_pair(true, false);
	make_path(false, 0);
	send_train(&psn, 8, 1024, 1024);
	for (unsigned i = 0; i < 8; i++)
		CU_ASSERT_EQUAL_FATAL(ur_queue_rx(b->queue, &held[i], 1), 1);
	while (psn < SLOTS)
		send_train(&psn, 8, 1024, 1024);
	CU_ASSERT_EQUAL(drain(), SLOTS - 8);
	send_train(&psn, 8, 1024, 1024);
	CU_ASSERT_EQUAL(drain(), 0); /* the next slots are held */
	CU_ASSERT_EQUAL(b->queue->rx_missed, 0);
	for (unsigned i = 0; i < 8; i++)
		CU_ASSERT_EQUAL(check_data(held[i]), i);
	ur_pkts_release(held, 8);
	send_train(&psn, 8, 1024, 1024);
	receive_train(SLOTS + 8, SLOTS + 16, 0);
	close_pair();
}

/* Who has all packet buffers out loses nothing: what comes stays with the kernel. */
static void rx__without_buffers(void)
{
	static struct ur_pkt *all[8192];
	uint32_t psn = 0;
	unsigned n, trains;

	open_pair(false, false);
	make_path(false, 0);
	n = ur_queue_alloc(b->queue, all, 8192);
	for (trains = 0; n + trains < 8192 && (all[n + trains] = b->queue->ops->alloc_train(b->queue));)
		trains++;
	CU_ASSERT_TRUE_FATAL(trains && n + trains < 8192);
	send_train(&psn, TRAIN, 4096, 4096);
	send_train(&psn, 1, 8, 8);
	send_train(&psn, TRAIN, 4096, 4096);
	CU_ASSERT_EQUAL(drain(), 0);
	ur_pkts_release(all + n, trains);
	receive_train(0, TRAIN, ANY);
	CU_ASSERT_EQUAL(drain(), 0);
	ur_pkts_release(all, n);
	receive_train(TRAIN, psn, ANY);
	close_pair();
}

/* --- the rest of a port --- */

static void wake_fd__sleeps_and_wakes(void)
{
	struct pollfd pfd = {.events = POLLIN};
	uint32_t psn = 0;

	open_pair(false, false);
	make_path(false, 0);
	pfd.fd = ur_queue_wake_fd(b->queue);
	drain(); /* whatever the kernel multicast at first */
	for (unsigned n = 1; n <= TRAIN; n += TRAIN - 1) {
		CU_ASSERT_EQUAL(poll(&pfd, 1, 50), 0);
		send_train(&psn, n, 4096, 4096);
		CU_ASSERT_EQUAL(poll(&pfd, 1, 1000), 1);
		CU_ASSERT_TRUE(pfd.revents & POLLIN);
		CU_ASSERT_EQUAL(drain(), n);
	}
	CU_ASSERT_EQUAL(poll(&pfd, 1, 50), 0);
	close_pair();
}

static void set_mcast__replaces(void)
{
	static const struct ur_mac g1 = {{1, 0, 0x5e, 0x11, 0x22, 0x33}}, g2 = {{1, 0, 0x5e, 0x44, 0x55, 0x66}};

	open_pair(false, false);
	CU_ASSERT_EQUAL(a->ops->set_mcast(a, &g1, 1), 0);
	CU_ASSERT_TRUE(member_of("ta", "01005e112233"));
	CU_ASSERT_EQUAL(a->ops->set_mcast(a, &g2, 1), 0);
	CU_ASSERT_FALSE(member_of("ta", "01005e112233"));
	CU_ASSERT_TRUE(member_of("ta", "01005e445566"));
	close_pair();
	CU_ASSERT_FALSE(member_of("ta", "01005e445566"));
}

/* Nothing of the kernel's own traffic reaches the ring, not even what came before the filter. */
static void filter__from_the_first_frame_on(void)
{
	uint8_t frame[HDR];

	for (unsigned i = 0; i < 20; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			uint64_t end = now_ms() + 60;

			fill_header(frame, &(struct ur_mac){{2, 0, 0, 0, 0, 0x0b}}, &(struct ur_mac){{2, 0, 0, 0, 0, 0x0a}}, HDR, 53);
			while (now_ms() < end)
				send_raw("ta", frame, HDR);
			_exit(0);
		}
		usleep(5000);
		open_pair(false, false);
		CU_ASSERT_EQUAL(drain(), 0);
		close_pair();
		waitpid(pid, NULL, 0);
	}
}

/* In the child: gives up what it inherited, opens the same interface, receives one train. */
static int child_main(int ready)
{
	unsigned got = 0;
	uint64_t end;

	a->ops->close(a);
	b->ops->close(b);
	if (ur_packet_open(&(struct ur_packet_config){.ifname = "tb"}, &b, err, sizeof(err)))
		return 1;
	if (write(ready, "", 1) != 1)
		return 2;
	for (end = now_ms() + 1000; got < TRAIN && now_ms() < end;)
		got += drain();
	b->ops->close(b);
	return got == TRAIN ? 0 : 3;
}

/* Parent and child have a port on the same interface at the same time: both get the train. */
static void fork__child_opens_its_own(void)
{
	int fd[2], status = -1;
	uint32_t psn = 0;
	pid_t pid;
	char c;

	open_pair(false, false);
	make_path(false, 0);
	CU_ASSERT_EQUAL_FATAL(pipe(fd), 0);
	pid = fork();
	if (pid == 0) {
		alarm(20);
		_exit(child_main(fd[1]));
	}
	close(fd[1]);
	CU_ASSERT_EQUAL(read(fd[0], &c, 1), 1);
	send_train(&psn, TRAIN, 4096, 4096);
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(status, 0);
	receive_train(0, psn, UR_PKT_CUT);
	close(fd[0]);
	close_pair();
}

static void close__reopen_many_times(void)
{
	int before = open("/dev/null", 0), after;

	close(before);
	for (unsigned i = 0; i < 20; i++) {
		open_pair(false, false);
		transfer(1, 100, 4);
		close_pair();
	}
	after = open("/dev/null", 0);
	close(after);
	CU_ASSERT_EQUAL(before, after); /* no descriptor is left behind */
}

static bool prepare(void)
{
	static const char *const cmds[] = {
		"ip link add ta address 02:00:00:00:00:0a mtu 9000 type veth peer name tb address 02:00:00:00:00:0b mtu 9000",
		"ip link add tsmall type veth peer name tsmallp",
		"ip link add tdown type veth peer name tdownp",
		"ip tuntap add ttun mode tun",
		"sysctl -qw net.ipv6.conf.all.disable_ipv6=1",
		"ip link set ta up && ip link set tb up && ip link set tsmall up && ip link set tsmallp up && ip link set ttun up",
	};

	if (geteuid() != 0 || unshare(CLONE_NEWNET))
		return false;
	for (unsigned i = 0; i < ur_array_size(cmds); i++)
		if (system(cmds[i]) != 0)
			return false;
	return true;
}

#define TEST(name) {#name, name}

int main(void)
{
	static const struct {
		const char *name;
		CU_TestFunc fn;
	} t[] = {
		TEST(open__errors),
		TEST(open__without_permission),
		TEST(open__interface_facts),
		TEST(alloc__contract),
		TEST(alloc_train__contract),
		TEST(tx__every_shape),
		TEST(tx__too_long_is_refused),
		TEST(rx__frames_of_every_kind),
		TEST(rx__thousands_of_small_frames),
		TEST(rx__counts_what_was_missed),
		TEST(rx__counts_trains_that_were_missed),
		TEST(rx__held_packets_keep_their_bytes),
		TEST(rx__without_buffers),
		TEST(wake_fd__sleeps_and_wakes),
		TEST(set_mcast__replaces),
		TEST(filter__from_the_first_frame_on),
		TEST(fork__child_opens_its_own),
		TEST(close__reopen_many_times),
	};
	unsigned failed;

	alarm(120);
	if (!prepare()) {
		fprintf(stderr, "test_packet: skipped: needs root, network namespaces and iproute2\n");
		return SKIPPED;
	}
	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	CU_pSuite s = CU_add_suite("packet", NULL, NULL);
	for (unsigned i = 0; i < ur_array_size(t); i++)
		CU_add_test(s, t[i].name, t[i].fn);
	add_train_tests(s);
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	failed = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failed != 0;
}
