/* SPDX-License-Identifier: BSD-3-Clause */
/* The keeper itself: what it sends, and that no page harms it. Each test has a network of its own, and keepers are its children. */
#include <CUnit/CUnit.h>
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "drivers/udp/udp.h"
#include "host/clock.h"
#include "host/device/names.h"
#include "keeper/farewell_page.h"
#include "siblings/keeper_start.h"
#include "siblings/registry.h"
#include "wire/frame.h"
#include "wire/msg/cm_msg.h"
#include "wire/opcode.h"

void ur_suite_keeper(void);

#define ROUNDS 4
#define PATIENCE_S 60
#define WANT(x)                                                                                                                            \
	do {                                                                                                                               \
		if (!(x))                                                                                                                  \
			_exit(__LINE__ % 250 + 1);                                                                                         \
	} while (0)

static struct ur_farewell_page *page;
static int page_fd;

static void lo_up(void)
{
	struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING | IFF_LOOPBACK};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	WANT(ioctl(fd, SIOCSIFFLAGS, &ifr) == 0);
	close(fd);
}

static void make_page(size_t size)
{
	page_fd = memfd_create("farewells", MFD_CLOEXEC);
	WANT(page_fd >= 0 && ftruncate(page_fd, (off_t)size) == 0);
	if (size < sizeof(*page))
		return;
	page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, page_fd, 0);
	WANT(page != MAP_FAILED);
	strcpy(page->ifname, "lo");
	page->ifindex = (int32_t)if_nametoindex("lo");
}

/* Starts a keeper for a process that ends at once. */
static void keeper_of_the_dead(void)
{
	sigset_t all, old;
	int alive;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	WANT(ur_keeper_start(page_fd, "lo", &alive) == 0);
	sigprocmask(SIG_SETMASK, &old, NULL);
	close(alive);
}

/* It ends by itself, with status 0. */
static void keeper_ends(void)
{
	int status;

	WANT(wait(&status) > 0 && status == 0);
	WANT(wait(&status) < 0);
}

/* True without the right to have a network of one's own. */
static void run(void (*test)(void))
{
	pid_t child = fork();
	int status;

	if (!child) {
		if (unshare(CLONE_NEWNET))
			_exit(0);
		alarm(PATIENCE_S);
		prctl(PR_SET_CHILD_SUBREAPER, 1);
		lo_up();
		test();
		_exit(0);
	}
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT_EQUAL(status, 0);
}

/* --- what it says --- */

static struct ur_farewell_mad mad_to(bool v4)
{
	struct ur_farewell_mad m = {.kind = 1, .ends = {.tclass = 0x20}};

	m.ends.src = m.ends.dst = v4 ? ur_gid_from_v4(htonl(INADDR_LOOPBACK)) : (struct ur_gid){.raw = {[15] = 1}};
	for (unsigned i = 0; i < UR_FAREWELL_MAD_LEN; i++)
		m.mad[i] = (uint8_t)(i * 3 + v4);
	return m;
}

/* A UD packet from QP 1 to QP 1 whose ICRC is right, and the message in it. */
static void check(struct ur_pkt *p)
{
	struct ur_counters c = {0};
	bool v4 = ur_gid_is_v4(&p->dst);
	struct ur_farewell_mad m = mad_to(v4);
	struct ur_deth deth;

	WANT(ur_frame_parse(p, &c) && p->kind == UR_PKT_ROCE);
	WANT(p->bth.opcode == (UR_UD | UR_OP_SEND_ONLY) && p->bth.dqpn == 1 && p->bth.pkey == UR_PKEY_DEFAULT);
	ur_deth_get(p->data + p->bth_off + UR_BTH_LEN, &deth);
	WANT(deth.qkey == UR_GSI_QKEY && deth.sqpn == 1);
	WANT(p->payload_len == UR_FAREWELL_MAD_LEN && !memcmp(p->data + p->payload_off, m.mad, UR_FAREWELL_MAD_LEN));
	WANT(ur_gid_eq(&p->src, &m.ends.src) && (p->tos & 0xfc) == 0x20);
}

static struct ur_farewell_ack ack_to(bool v4, uint64_t at)
{
	struct ur_farewell_ack a = {.kind = 1, .ends = mad_to(v4).ends, .at = at};
	const struct ur_bth bth = {.opcode = UR_OP_ACK, .migreq = true, .pkey = UR_PKEY_DEFAULT, .dqpn = 0x123456, .psn = 0xabcdef};
	const struct ur_aeth aeth = {.syndrome = 0x1f, .msn = 77};

	ur_bth_put(a.headers, &bth);
	ur_aeth_put(a.headers + UR_BTH_LEN, &aeth);
	return a;
}

/* An RC ACK whose ICRC is right. */
static void check_ack(struct ur_pkt *p)
{
	struct ur_counters c = {0};
	struct ur_aeth aeth;

	WANT(ur_frame_parse(p, &c) && p->kind == UR_PKT_ROCE);
	WANT(p->bth.opcode == UR_OP_ACK && p->bth.dqpn == 0x123456 && p->bth.psn == 0xabcdef && p->bth.pkey == UR_PKEY_DEFAULT);
	ur_aeth_get(p->data + p->bth_off + UR_BTH_LEN, &aeth);
	WANT(aeth.syndrome == 0x1f && aeth.msn == 77 && (p->tos & 0xfc) == 0x20);
}

static struct ur_port *listen_on_lo(void)
{
	const struct ur_udp_config cfg = {.ifname = "lo", .mtu = 1500};
	struct ur_port *port;
	char err[400];

	WANT(ur_udp_open(&cfg, &port, err, sizeof(err)) == 0);
	return port;
}

/* The DREQ to the QP that these are for, as far as the keeper looks at it. */
static struct ur_farewell_mad dreq_to(bool v4)
{
	struct ur_farewell_mad m = {.kind = 1, .ends = mad_to(v4).ends};
	static const uint8_t attr[] = {0, 0x15}, qpn[] = {0x12, 0x34, 0x56};

	memcpy(m.mad + 16, attr, sizeof(attr));
	memcpy(m.mad + 32, qpn, sizeof(qpn));
	return m;
}

/* Those of QPs that went lately, as often as messages, where a connection has not ended; another QP's, or another message, says nothing of
 * it. */
static void says_acks(void)
{
	const uint64_t now = ur_clock_now();
	unsigned got[2] = {0, 0}, mads = 0;
	struct ur_bth other;
	struct ur_port *port;
	struct ur_pkt *p;

	make_page(sizeof(*page));
	page->nacks = 5;
	page->ack[0] = ack_to(true, now);
	page->ack[1] = ack_to(true, now - UR_FAREWELL_ACK_NS); /* it ends after now */
	page->ack[3] = ack_to(false, now);
	page->ack[4] = ack_to(true, now);
	page->ack[4].kind = 0;
	page->ack[5] = ack_to(true, now);
	page->nacks = 6;
	ur_bth_get(page->ack[5].headers, &other);
	other.dqpn++; /* its connection has ended in order */
	ur_bth_put(page->ack[5].headers, &other);
	page->ack[6] = ack_to(true, now);
	page->nmads = 3;
	page->mad[0] = dreq_to(true);
	page->mad[1] = dreq_to(false);
	page->mad[2] = dreq_to(true);
	page->mad[2].mad[17] = 0x16; /* a DREP */
	page->mad[2].mad[34]++;
	port = listen_on_lo();
	keeper_of_the_dead();
	while (got[0] < ROUNDS || got[1] < ROUNDS || mads < 3 * ROUNDS) {
		if (!ur_queue_rx(port->queue, &p, 1)) {
			usleep(1000);
			continue;
		}
		if (p->data[p->bth_off] == (UR_UD | UR_OP_SEND_ONLY)) {
			mads++;
			ur_pkts_release(&p, 1);
			continue;
		}
		got[ur_gid_is_v4(&p->dst)]++;
		check_ack(p);
		ur_pkts_release(&p, 1);
	}
	keeper_ends();
	WANT(!ur_queue_rx(port->queue, &p, 1));
	port->ops->close(port);
}

static void keeper__says_acks(void)
{
	run(says_acks);
}

static void says_it(void)
{
	unsigned got[2] = {0, 0};
	struct ur_port *port;
	struct ur_pkt *p;

	make_page(sizeof(*page));
	page->nmads = 4;
	page->mad[0] = mad_to(true);
	page->mad[2] = mad_to(false); /* the two between and after are not in use */
	port = listen_on_lo();
	keeper_of_the_dead();
	while (got[0] < ROUNDS || got[1] < ROUNDS) {
		if (!ur_queue_rx(port->queue, &p, 1)) {
			usleep(1000);
			continue;
		}
		got[ur_gid_is_v4(&p->dst)]++;
		check(p);
		ur_pkts_release(&p, 1);
	}
	keeper_ends();
	WANT(!ur_queue_rx(port->queue, &p, 1));
	port->ops->close(port);
}

static void keeper__says_it(void)
{
	run(says_it);
}

/* --- what it does not --- */

static void nothing_to_say(void)
{
	make_page(sizeof(*page));
	keeper_of_the_dead();
	keeper_ends();
}

static void short_memory(void)
{
	make_page(sizeof(*page) - 1);
	keeper_of_the_dead();
	keeper_ends();
}

static void nonsense(void)
{
	struct ur_rng r = {.state = 4711};

	make_page(sizeof(*page));
	for (size_t i = 0; i < sizeof(*page) / 4; i++)
		((uint32_t *)(void *)page)[i] = ur_rng_u32(&r);
	for (unsigned i = 0; i < UR_FAREWELL_MADS; i++)
		page->mad[i].kind = 1;
	for (unsigned i = 0; i < UR_FAREWELL_ACKS; i++)
		page->ack[i].kind = 1;
	for (unsigned i = 0; i < UR_FAREWELL_GROUPS; i += 2)
		page->group[i].raw[0] = 0xff;
	keeper_of_the_dead();
	keeper_ends();
}

static void keeper__no_will_harms_it(void)
{
	run(nothing_to_say);
	run(short_memory);
	run(nonsense);
}

/* --- while it starts --- */

static atomic_bool enough;

static void *keepers(void *arg)
{
	while (!atomic_load(&enough))
		keeper_of_the_dead();
	return arg;
}

/*
 * A keeper that starts has copies of our descriptors, and so of a name that was ours. Who wants that name is not made to wait, because the
 * lock is held, but asked to come again.
 */
static void names_meanwhile(void)
{
	static const struct ur_gid gid = {{[10] = 0xff, 0xff, 10, 0, 0, 1}};
	const uint64_t key = 4711;
	char name[UR_NAME_MAX];
	unsigned again = 0, in_use = 0;
	struct ur_registry *r;
	uint16_t port = 7000;
	pthread_t t;
	int held;

	make_page(sizeof(*page));
	snprintf(name, sizeof(name), "uroce-%016llx-106-7000-00000000000000000000ffff0a000001", (unsigned long long)key);
	WANT((held = ur_name_hold(name)) >= 0);
	WANT(ur_registry_open(key, &r) == 0 && ur_registry_bind(r, 0x106, &gid, false, &port) == 0);
	WANT(pthread_create(&t, NULL, keepers, NULL) == 0);
	while (!again) { /* until the alarm */
		int err = ur_registry_listen(r, 0x106, &gid, port, true);

		WANT(err == EAGAIN || err == EADDRINUSE);
		again += err == EAGAIN;
	}
	atomic_store(&enough, true);
	WANT(pthread_join(t, NULL) == 0);
	in_use = ur_registry_listen(r, 0x106, &gid, port, true) == EADDRINUSE;
	close(held);
	WANT(in_use && ur_registry_listen(r, 0x106, &gid, port, true) == 0);
	ur_registry_close(r);
}

static void keeper__names_while_it_starts(void)
{
	run(names_meanwhile);
}

void ur_suite_keeper(void)
{
	CU_pSuite s = CU_add_suite("keeper", NULL, NULL);

	CU_ADD_TEST(s, keeper__says_it);
	CU_ADD_TEST(s, keeper__says_acks);
	CU_ADD_TEST(s, keeper__no_will_harms_it);
	CU_ADD_TEST(s, keeper__names_while_it_starts);
}
