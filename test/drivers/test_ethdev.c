/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drivers/ethdev on real devices: both ends of a veth pair in a network namespace of its own, and DPDK's ring device, whose
 * transmit ring is its receive ring. Needs root (exit status 77 otherwise: skipped). The namespace goes with the process.
 */
#define _GNU_SOURCE
#include <CUnit/Basic.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers/ethdev/ethdev.h"
#include "test/drivers/port_util.h"
#include "test/drivers/test_ethdev_dma.h"

#define SKIPPED 77

static struct ur_port *must_open(const struct ur_ethdev_config *cfg)
{
	struct ur_port *p = NULL;
	int rc = ur_ethdev_open(cfg, &p, err, sizeof(err));

	if (rc)
		fprintf(stderr, "open: %s\n", err);
	CU_ASSERT_EQUAL_FATAL(rc, 0);
	return p;
}

static void open_pair(unsigned chain_min)
{
	a = must_open(&(struct ur_ethdev_config){.ifname = "ta", .chain_min = chain_min});
	b = must_open(&(struct ur_ethdev_config){.ifname = "tb", .chain_min = chain_min});
}

static void open__errors(void)
{
	static const struct {
		struct ur_ethdev_config cfg;
		int rc;
		const char *says;
	} t[] = {
		{{.ifname = NULL}, EINVAL, "one device"},
		{{.ifname = "ta", .vdev = "net_null0"}, EINVAL, "one device"},
		{{.ifname = "nosuch0"}, ENODEV, "does not exist"},
		{{.ifname = "tdown"}, ENETDOWN, "ip link set tdown up"},
		{{.ifname = "ta", .mtu = 9000}, EINVAL, "at most"},
		{{.ifname = "tsmall", .mtu = 4000}, EINVAL, "ip link set tsmall mtu 4000"},
		{{.vdev = "net_nosuch0"}, EOPNOTSUPP, "first device"},
		{{.vdev = "net_null0,nosuch=1"}, EIO, "net_null0,nosuch=1"},
		{{.vdev = "net_memif0,bsize=100,socket-abstract=no,socket=/nonexistent/x"}, EIO, "memif"},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ur_port *p = NULL;

		CU_ASSERT_EQUAL(ur_ethdev_open(&t[i].cfg, &p, err, sizeof(err)), t[i].rc);
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
							: ur_ethdev_open(&(struct ur_ethdev_config){.ifname = "ta"}, &p, err, sizeof(err));

		_exit(rc == EPERM && strstr(err, "CAP_NET_RAW") ? 0 : 1);
	}
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(status, 0);
}

static void on_signal(int sig)
{
	(void)sig;
}

static void open__leaves_no_trace(void)
{
	cpu_set_t before, after;
	sigset_t mask, mask_after;
	struct sigaction act = {.sa_handler = on_signal}, now;
	char dir[64];

	sigaction(SIGUSR1, &act, NULL);
	sigaction(SIGBUS, &act, NULL);
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR2);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	sched_getaffinity(0, sizeof(before), &before);
	open_pair(0);
	sched_getaffinity(0, sizeof(after), &after);
	CU_ASSERT_TRUE(CPU_EQUAL(&before, &after));
	sigprocmask(SIG_SETMASK, NULL, &mask_after);
	CU_ASSERT_TRUE(sigismember(&mask_after, SIGUSR2));
	CU_ASSERT_FALSE(sigismember(&mask_after, SIGUSR1));
	sigaction(SIGBUS, NULL, &now);
	CU_ASSERT_PTR_EQUAL(now.sa_handler, on_signal);
	snprintf(dir, sizeof(dir), "/var/run/dpdk/uroce-%d", (int)getpid());
	CU_ASSERT_EQUAL(access(dir, F_OK), -1);
	signal(SIGBUS, SIG_DFL);
	close_pair();
}

static bool is_promisc(const char *name)
{
	struct ifreq ifr = {.ifr_flags = 0};
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	ioctl(s, SIOCGIFFLAGS, &ifr);
	close(s);
	return ifr.ifr_flags & IFF_PROMISC;
}

static void open__interface_facts(void)
{
	CU_ASSERT_EQUAL(system("ip link set tb promisc on"), 0);
	open_pair(0);
	CU_ASSERT_EQUAL(a->mtu, UR_PKT_ROOM - 18); /* the interface has 9000 */
	CU_ASSERT_STRING_EQUAL(a->name, "ta");
	CU_ASSERT_EQUAL(a->mac.b[5], 0x0a);
	CU_ASSERT_TRUE(a->ops->link_up(a));
	CU_ASSERT_FALSE(is_promisc("ta"));
	CU_ASSERT_TRUE(is_promisc("tb"));
	close_pair();
	CU_ASSERT_FALSE(is_promisc("ta"));
	CU_ASSERT_TRUE(is_promisc("tb"));
	CU_ASSERT_EQUAL(system("ip link set tb promisc off"), 0);
}

static void alloc__contract(void)
{
	struct ur_pkt *pkts[32];
	unsigned n;

	open_pair(0);
	for (unsigned round = 0; round < 4; round++) {
		n = ur_queue_alloc(a->queue, pkts, 32);
		CU_ASSERT_EQUAL(n, 32);
		for (unsigned i = 0; i < n; i++) {
			struct ur_pkt *p = pkts[i];

			CU_ASSERT_TRUE(p->room >= UR_PKT_ROOM);
			CU_ASSERT_TRUE(!p->len && !p->nseg && !p->tail_len && !p->flags && !p->kind && !p->bth_off && !p->when && !p->next);
			CU_ASSERT_TRUE(!p->bth.opcode && !p->src.raw[15] && !p->dst.raw[0]);
			memset(p->data, 0xff, UR_PKT_ROOM);
			memset(&p->nseg, 0xff, offsetof(struct ur_pkt, home) - offsetof(struct ur_pkt, nseg));
			p->nseg = 0;
		}
		ur_pkts_release(pkts, n);
	}
	close_pair();
}

static void tx__every_shape(void)
{
	static const unsigned chain_min[] = {0, 1, UINT32_MAX};
	struct ur_ethdev_stats st;

	for (unsigned c = 0; c < ur_array_size(chain_min); c++) {
		open_pair(chain_min[c]);
		ur_queue_enter(a->queue);
		for (unsigned nseg = 0; nseg <= UR_PKT_SEGS; nseg++)
			for (unsigned tail = 0; tail <= 7; tail += 7) {
				transfer(nseg, 1, tail);
				transfer(nseg, nseg == 1 ? 4096 : 1000, tail);
			}
		ur_queue_leave(a->queue);
		ur_ethdev_stats(a, &st);
		CU_ASSERT_EQUAL(st.tx, 20);
		CU_ASSERT_EQUAL(st.tx_chained + st.tx_gathered, 16);
		CU_ASSERT_EQUAL(st.tx_chained, chain_min[c] == 1 ? 16 : chain_min[c] ? 0 : 2);
		close_pair();
	}
}

static void tx__oversize_is_dropped(void)
{
	static uint8_t memory[5000];
	struct ur_ref ref = {.n = 2};
	struct ur_ethdev_stats st;
	struct ur_pkt *p[3], *r;

	open_pair(0);
	for (unsigned i = 0; i < 3; i++) {
		p[i] = new_pkt(a, &b->mac, HDR);
		p[i]->data[HDR - 1] = (uint8_t)i;
	}
	p[1]->seg[0] = p[1]->seg[1] = (struct ur_seg){memory, 3000, &ref};
	p[1]->nseg = 2;
	CU_ASSERT_EQUAL(ur_queue_tx(a->queue, p, 3), 3);
	CU_ASSERT_EQUAL(atomic_load(&ref.n), 0);
	for (unsigned i = 0; i < 3; i += 2) {
		r = receive(b);
		CU_ASSERT_PTR_NOT_NULL_FATAL(r);
		CU_ASSERT_EQUAL(r->data[HDR - 1], i);
		ur_pkts_release(&r, 1);
	}
	ur_ethdev_stats(a, &st);
	CU_ASSERT_EQUAL(st.tx_oversize, 1);
	CU_ASSERT_EQUAL(st.tx, 2);
	close_pair();
}

static void burst__many_full_frames(void)
{
	static uint8_t memory[4096];
	struct ur_pkt *p[32], *r[32];
	unsigned got = 0, n;

	open_pair(0);
	for (unsigned round = 0; round < 16; round++) {
		CU_ASSERT_EQUAL_FATAL(ur_queue_alloc(a->queue, p, 32), 32);
		for (unsigned i = 0; i < 32; i++) {
			fill_header(p[i]->data, &b->mac, &a->mac, HDR + 4096 + 4, 4791);
			p[i]->len = HDR;
			p[i]->seg[0] = (struct ur_seg){memory, 4096, NULL};
			p[i]->nseg = 1;
			p[i]->tail_len = 4;
		}
		CU_ASSERT_EQUAL(ur_queue_tx(a->queue, p, 32), 32);
	}
	while ((n = ur_queue_rx(b->queue, r, 32))) {
		got += n;
		ur_pkts_release(r, n);
	}
	CU_ASSERT_EQUAL(got, 512); /* nobody fetched meanwhile: the ring held them all */
	close_pair();
}

static struct ur_pkt *ring_pkt(struct ur_port *p, uint8_t *memory, struct ur_ref *ref, uint32_t number)
{
	struct ur_pkt *pkt = new_pkt(p, &p->mac, HDR);

	ur_put32(pkt->data + HDR - 4, number);
	pkt->seg[0] = (struct ur_seg){memory, 2000, ref};
	pkt->nseg = 1;
	pkt->tail_len = 4;
	atomic_fetch_add(&ref->n, 1);
	return pkt;
}

/* Fills the ring until it refuses, empties it, and offers the refused packets again. */
static void tx__resubmission(void)
{
	static const unsigned chain_min[] = {1, UINT32_MAX};
	static uint8_t memory[2000] = {1, 2, 3};

	for (unsigned c = 0; c < 2; c++) {
		struct ur_port *p = must_open(&(struct ur_ethdev_config){.vdev = "net_ring0", .chain_min = chain_min[c], .npkts = 4096});
		uint32_t made = 0, seen = 0, refused;
		struct ur_ref ref = {0};
		struct ur_pkt *pkts[32], *r[32];
		struct ur_ethdev_stats st;
		unsigned taken, n;

		do {
			for (unsigned i = 0; i < 32; i++)
				pkts[i] = ring_pkt(p, memory, &ref, made++);
			taken = ur_queue_tx(p->queue, pkts, 32);
		} while (taken == 32 && made < 3000);
		CU_ASSERT_TRUE_FATAL(taken < 32);
		refused = 32 - taken;
		CU_ASSERT_EQUAL(ur_queue_tx(p->queue, pkts + taken, refused), 0);
		ur_ethdev_stats(p, &st);
		CU_ASSERT_EQUAL(atomic_load(&ref.n), st.tx_chained); /* when segment mbufs run out, the rest is gathered */
		CU_ASSERT_EQUAL(st.tx_chained > 0, chain_min[c] == 1);
		for (int resend = 1; (n = ur_queue_rx(p->queue, r, 32)); resend = 0) {
			for (unsigned i = 0; i < n; i++) {
				CU_ASSERT_EQUAL(ur_get32(r[i]->data + HDR - 4), seen);
				CU_ASSERT_EQUAL(r[i]->len, HDR + 2004);
				CU_ASSERT_EQUAL(memcmp(r[i]->data + HDR, memory, 2000), 0);
				seen++;
			}
			ur_pkts_release(r, n);
			if (resend) /* all but one, which is given back instead */
				CU_ASSERT_EQUAL(ur_queue_tx(p->queue, pkts + taken, refused - 1), refused - 1);
		}
		ur_pkts_release(pkts + 31, 1);
		CU_ASSERT_EQUAL(seen, made - 1);
		CU_ASSERT_EQUAL(atomic_load(&ref.n), 0);
		p->ops->close(p);
	}
}

static void free__unsent_drops_refs(void)
{
	static uint8_t memory[2000];
	struct ur_ref ref = {0};
	struct ur_pkt *p;

	open_pair(0);
	p = ring_pkt(a, memory, &ref, 0);
	ur_pkts_release(&p, 1);
	CU_ASSERT_EQUAL(atomic_load(&ref.n), 0);
	close_pair();
}

static void wake_fd__sleeps_and_wakes(void)
{
	struct pollfd pfd = {.events = POLLIN};
	struct ur_pkt *p, *r;

	open_pair(0);
	pfd.fd = ur_queue_wake_fd(b->queue);
	CU_ASSERT_TRUE_FATAL(pfd.fd >= 0);
	while ((r = receive(b))) /* whatever the kernel multicast at first */
		ur_pkts_release(&r, 1);
	CU_ASSERT_EQUAL(poll(&pfd, 1, 50), 0);
	p = new_pkt(a, &b->mac, HDR);
	CU_ASSERT_EQUAL(ur_queue_tx(a->queue, &p, 1), 1);
	CU_ASSERT_EQUAL(poll(&pfd, 1, 1000), 1);
	CU_ASSERT_TRUE(pfd.revents & POLLIN);
	r = receive(b);
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	ur_pkts_release(&r, 1);
	CU_ASSERT_EQUAL(poll(&pfd, 1, 50), 0);
	close_pair();
}

static void set_mcast__replaces(void)
{
	static const struct ur_mac g1 = {{1, 0, 0x5e, 0x11, 0x22, 0x33}}, g2 = {{1, 0, 0x5e, 0x44, 0x55, 0x66}};

	open_pair(0);
	CU_ASSERT_EQUAL(a->ops->set_mcast(a, &g1, 1), 0);
	CU_ASSERT_TRUE(member_of("ta", "01005e112233"));
	CU_ASSERT_EQUAL(a->ops->set_mcast(a, &g2, 1), 0);
	CU_ASSERT_FALSE(member_of("ta", "01005e112233"));
	CU_ASSERT_TRUE(member_of("ta", "01005e445566"));
	close_pair();
	CU_ASSERT_FALSE(member_of("ta", "01005e445566"));
}

static void filter__what_reaches_the_ring(void)
{
	static const struct ur_mac group = {{1, 0, 0x5e, 0, 0, 9}};
	enum { WIRE, OWN };
	const struct {
		int side;          /* from the wire, or sent by this host */
		int dst;           /* 0: the port's MAC, 1: the peer's, 2: a group */
		uint16_t udp_port; /* 0: RoCEv1 */
		bool passes;
	} t[] = {
		{WIRE, 0, 4791, true}, {WIRE, 0, 53, false}, {WIRE, 2, 4791, true}, {OWN, 0, 4791, true},
		{OWN, 1, 4791, false}, {OWN, 2, 4791, true}, {OWN, 0, 53, false},
		{WIRE, 0, 0, true},    {OWN, 0, 0, false},
	};

	open_pair(0);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		const struct ur_mac *dst = t[i].dst == 0 ? &a->mac : t[i].dst == 1 ? &b->mac : &group;
		const struct ur_mac *src = t[i].side == WIRE ? &b->mac : &a->mac;
		uint8_t frame[HDR], mark[HDR];
		struct ur_pkt *r;

		fill_header(frame, dst, src, HDR, t[i].udp_port);
		if (!t[i].udp_port)
			ur_put16(frame + 12, ROCE_V1);
		frame[HDR - 1] = 1;
		send_raw(t[i].side == WIRE ? "tb" : "ta", frame, HDR);
		fill_header(mark, &a->mac, &b->mac, HDR, 4791);
		mark[HDR - 1] = 2;
		send_raw("tb", mark, HDR);
		r = receive(a);
		CU_ASSERT_PTR_NOT_NULL_FATAL(r);
		CU_ASSERT_EQUAL(r->data[HDR - 1], t[i].passes ? 1 : 2);
		ur_pkts_release(&r, 1);
		if (t[i].passes && (r = receive(a)))
			ur_pkts_release(&r, 1);
	}
	close_pair();
}

/* In the child: gives up what it inherited, opens the same interface, receives one frame. */
static int child_main(int ready)
{
	struct ur_port *mine;
	struct ur_pkt *r;

	a->ops->close(a);
	b->ops->close(b);
	if (ur_ethdev_open(&(struct ur_ethdev_config){.ifname = "tb"}, &mine, err, sizeof(err)))
		return 1;
	if (ur_ethdev_open(&(struct ur_ethdev_config){.vdev = "net_memif0"}, &a, err, sizeof(err)) != EOPNOTSUPP)
		return 2;
	if (write(ready, "", 1) != 1)
		return 3;
	r = receive(mine);
	if (!r || r->len != HDR || r->data[HDR - 1] != 77)
		return 4;
	ur_pkts_release(&r, 1);
	mine->ops->close(mine);
	return 0;
}

/* Parent and child have a port on the same interface at the same time: both get the frame. */
static void fork__child_starts_its_own(void)
{
	int fd[2], status = -1;
	struct ur_pkt *p, *r;
	pid_t pid;
	char c;

	open_pair(0);
	CU_ASSERT_EQUAL_FATAL(pipe(fd), 0);
	pid = fork();
	if (pid == 0) {
		alarm(20);
		_exit(child_main(fd[1]));
	}
	close(fd[1]);
	CU_ASSERT_EQUAL(read(fd[0], &c, 1), 1);
	p = new_pkt(a, &b->mac, HDR);
	p->data[HDR - 1] = 77;
	CU_ASSERT_EQUAL(ur_queue_tx(a->queue, &p, 1), 1);
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(status, 0);
	r = receive(b);
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	CU_ASSERT_EQUAL(r->data[HDR - 1], 77);
	ur_pkts_release(&r, 1);
	close(fd[0]);
	transfer(1, 4096, 4);
	close_pair();
}

static void close__reopen_many_times(void)
{
	int before = open("/dev/null", 0), after;

	close(before);
	for (unsigned i = 0; i < 10; i++) {
		open_pair(0);
		transfer(1, 100, 4);
		close_pair();
	}
	after = open("/dev/null", 0);
	close(after);
	CU_ASSERT_EQUAL(before, after); /* no descriptor is left behind */
}

static void memory__stays_small(void)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	printf("(peak resident memory %ld MB) ", ru.ru_maxrss / 1024);
	CU_ASSERT_TRUE(ru.ru_maxrss < 100 * 1024);
}

static bool prepare(void)
{
	static const char *const cmds[] = {
		"ip link add ta address 02:00:00:00:00:0a mtu 9000 type veth peer name tb address 02:00:00:00:00:0b mtu 9000",
		"ip link add tsmall type veth peer name tsmallp",
		"ip link add tdown type veth peer name tdownp",
		"sysctl -qw net.ipv6.conf.all.disable_ipv6=1",
		"ip link set ta up && ip link set tb up && ip link set tsmall up && ip link set tsmallp up",
	};

	if (geteuid() != 0 || unshare(CLONE_NEWNET))
		return false;
	for (unsigned i = 0; i < ur_array_size(cmds); i++)
		if (system(cmds[i]) != 0)
			return false;
	return true;
}

int main(void)
{
	static const struct {
		const char *name;
		CU_TestFunc fn;
	} t[] = {
		{"open__without_permission", open__without_permission}, /* before this process starts DPDK */
		{"open__leaves_no_trace", open__leaves_no_trace},
		{"open__errors", open__errors},
		{"open__interface_facts", open__interface_facts},
		{"alloc__contract", alloc__contract},
		{"tx__every_shape", tx__every_shape},
		{"tx__oversize_is_dropped", tx__oversize_is_dropped},
		{"tx__resubmission", tx__resubmission},
		{"dma__chains_what_is_mapped", dma__chains_what_is_mapped},
		{"dma__reclaim_pushes", dma__reclaim_pushes},
		{"free__unsent_drops_refs", free__unsent_drops_refs},
		{"burst__many_full_frames", burst__many_full_frames},
		{"wake_fd__sleeps_and_wakes", wake_fd__sleeps_and_wakes},
		{"set_mcast__replaces", set_mcast__replaces},
		{"filter__what_reaches_the_ring", filter__what_reaches_the_ring},
		{"fork__child_starts_its_own", fork__child_starts_its_own},
		{"close__reopen_many_times", close__reopen_many_times},
		{"memory__stays_small", memory__stays_small},
	};
	unsigned failed;

	alarm(120);
	if (!prepare()) {
		fprintf(stderr, "test_ethdev: skipped: needs root, network namespaces and iproute2\n");
		return SKIPPED;
	}
	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	CU_pSuite s = CU_add_suite("ethdev", NULL, NULL);
	for (unsigned i = 0; i < ur_array_size(t); i++)
		CU_add_test(s, t[i].name, t[i].fn);
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	failed = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failed != 0;
}
