/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames between two processes of a device: what a child sends comes out of its parent's mailbox. */
#include <CUnit/CUnit.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "engine/local.h"
#include "fake_port.h"
#include "proc_harness.h"

void ur_suite_local(void);

#define MAILBOX 512

static struct fake_port port;
static struct ur_registry *registry;
static struct ur_local *local;
static struct proc *sender;

/* --- the sender --- */

struct request {
	uint8_t slot; /* 0: all others */
	uint32_t first, n, len;
};

static void fill(uint8_t *b, uint32_t len, uint32_t number)
{
	for (uint32_t i = 0; i < len; i++)
		b[i] = (uint8_t)(number * 13 + i * 5 + i / 256);
	if (len >= 4)
		memcpy(b, &number, 4);
}

static int child(int fd, uint64_t key)
{
	static uint8_t b[UR_PKT_ROOM + 64];
	struct ur_registry *r;
	struct ur_local *l;
	struct request q;

	if (ur_registry_open(key, &r) || ur_local_open(r, &l))
		return 1;
	ur_local_announce(l);
	while (recv(fd, &q, sizeof(q), 0) == (ssize_t)sizeof(q)) {
		uint8_t slot = ur_registry_slot(r);

		for (uint32_t i = 0; i < q.n; i++) {
			struct ur_pkt p = {.data = b, .len = q.len, .room = sizeof(b)};

			fill(b, q.len, q.first + i);
			ur_local_send(l, q.slot, &p);
		}
		if (send(fd, &slot, 1, MSG_NOSIGNAL) != 1)
			return 2;
	}
	return 3;
}

/* Returns the sender's slot, after it has sent everything. */
static uint8_t send_frames(uint8_t slot, uint32_t first, uint32_t n, uint32_t len)
{
	struct request q = {.slot = slot, .first = first, .n = n, .len = len};
	uint8_t theirs = 0;

	proc_ask(sender, &q, sizeof(q), &theirs, 1);
	return theirs;
}

/* --- the receiver --- */

static void setup(void)
{
	fake_port_init(&port, 10000);
	local = NULL;
	registry = NULL;
}

static void begin(void)
{
	uint64_t key = proc_random_key();

	sender = proc_start(child, key);
	CU_ASSERT_EQUAL_FATAL(ur_registry_open(key, &registry), 0);
	CU_ASSERT_EQUAL_FATAL(ur_local_open(registry, &local), 0);
}

static void teardown(void)
{
	procs_end(); /* first: the last one out removes the file */
	if (local)
		ur_local_close(local);
	if (registry)
		ur_registry_close(registry);
}

static uint8_t us(void)
{
	return ur_registry_slot(registry);
}

static void begin_announced(void)
{
	begin();
	ur_local_announce(local);
}

/* Takes everything that waits, and checks that it is `n` frames from number `first` on. */
static void expect(uint32_t first, uint32_t n, uint32_t len)
{
	static uint8_t want[UR_PKT_ROOM];
	struct ur_pkt *pkts[UR_NIC_BURST];
	unsigned got;
	uint32_t at = 0;

	while ((got = ur_local_recv(local, &port.port, pkts, UR_NIC_BURST))) {
		CU_ASSERT_TRUE(got <= UR_NIC_BURST);
		for (unsigned i = 0; i < got; i++, at++) {
			fill(want, len, first + at);
			CU_ASSERT_EQUAL(pkts[i]->len, len);
			CU_ASSERT_TRUE(pkts[i]->len == len && !memcmp(pkts[i]->data, want, len));
		}
		ur_pkts_release(pkts, got);
	}
	CU_ASSERT_EQUAL(at, n);
	CU_ASSERT_EQUAL(port.allocated, port.freed);
}

static bool readable(int timeout_ms)
{
	struct pollfd p = {.fd = ur_local_fd(local), .events = POLLIN};

	return poll(&p, 1, timeout_ms) == 1 && (p.revents & POLLIN);
}

static void local_send__to_a_slot(void)
{
	begin_announced();
	CU_ASSERT_NOT_EQUAL(send_frames(us(), 0, 1, 64), us());
	expect(0, 1, 64);
	send_frames(us(), 1, 100, 1500);
	expect(1, 100, 1500);
	send_frames(us(), 200, 5, UR_PKT_ROOM);
	expect(200, 5, UR_PKT_ROOM);
	send_frames(us(), 300, 1, UR_PKT_ROOM + 1); /* longer than any packet */
	expect(300, 0, 0);
}

static void local_send__to_all(void)
{
	begin_announced();
	send_frames(0, 7, 3, 90);
	expect(7, 3, 90);
}

static void local_send__to_nobody(void)
{
	uint8_t theirs;

	begin_announced();
	theirs = send_frames(us(), 0, 0, 64);
	for (unsigned s = 1; s < 256; s++)
		if (s != theirs && s != us())
			send_frames((uint8_t)s, 0, 1, 64);
	expect(0, 0, 64);
}

/* Before it is announced nobody empties a mailbox, so nothing goes in. */
static void local_announce__opens_the_mailbox(void)
{
	begin();
	send_frames(us(), 0, 4, 64);
	send_frames(0, 4, 4, 64);
	expect(0, 0, 64);
	ur_local_announce(local);
	send_frames(us(), 8, 4, 64);
	expect(8, 4, 64);
}

static void local_send__full_mailbox_drops(void)
{
	begin_announced();
	send_frames(us(), 0, MAILBOX + 88, 100);
	expect(0, MAILBOX, 100);
	send_frames(us(), 1000, 3, 100);
	expect(1000, 3, 100);
	for (uint32_t i = 0; i < 20; i++) { /* many times round */
		send_frames(us(), i * 100, 100, 80);
		expect(i * 100, 100, 80);
	}
}

/* What finds no packet waits. */
static void local_recv__short_of_packets(void)
{
	struct ur_pkt *pkts[UR_NIC_BURST];
	uint32_t number;

	begin_announced();
	send_frames(us(), 50, 5, 64);
	port.limit = 2;
	CU_ASSERT_EQUAL_FATAL(ur_local_recv(local, &port.port, pkts, UR_NIC_BURST), 2);
	memcpy(&number, pkts[1]->data, 4);
	CU_ASSERT_EQUAL(number, 51);
	CU_ASSERT_EQUAL(ur_local_recv(local, &port.port, pkts + 2, UR_NIC_BURST - 2), 0);
	ur_pkts_release(pkts, 2);
	port.limit = 10;
	expect(52, 3, 64);
}

static void local_sleep__wakes(void)
{
	begin_announced();
	CU_ASSERT_TRUE(ur_local_sleep(local, false));
	send_frames(us(), 0, 3, 64);
	CU_ASSERT_FALSE(readable(0)); /* we never said that we sleep */
	CU_ASSERT_FALSE(ur_local_sleep(local, true)); /* frames wait already */
	CU_ASSERT_TRUE(ur_local_sleep(local, false));
	expect(0, 3, 64);
	CU_ASSERT_TRUE(ur_local_sleep(local, true));
	CU_ASSERT_FALSE(readable(0));
	send_frames(us(), 3, 2, 64);
	CU_ASSERT_TRUE(readable(5000));
	CU_ASSERT_TRUE(ur_local_sleep(local, false));
	CU_ASSERT_FALSE(readable(0)); /* drained */
	expect(3, 2, 64);
	send_frames(0, 5, 1, 64);
	CU_ASSERT_FALSE(readable(0));
	expect(5, 1, 64);
	CU_ASSERT_TRUE(ur_local_sleep(local, true));
	send_frames(0, 6, 1, 64);
	CU_ASSERT_TRUE(readable(5000));
	CU_ASSERT_TRUE(ur_local_sleep(local, false));
	expect(6, 1, 64);
}

/* Its frames stay, and sending to a dead process does no harm. */
static void local_recv__sender_was_killed(void)
{
	uint8_t b[64], theirs;
	struct ur_pkt p = {.data = b, .len = sizeof(b), .room = sizeof(b)};

	begin_announced();
	theirs = send_frames(us(), 0, 10, 64);
	fill(b, sizeof(b), 0);
	ur_local_send(local, theirs, &p);
	proc_kill(sender);
	ur_local_send(local, theirs, &p);
	ur_local_send(local, 0, &p);
	expect(0, 10, 64);
}

void ur_suite_local(void)
{
	CU_pSuite s = CU_add_suite_with_setup_and_teardown("local", NULL, NULL, setup, teardown);

	CU_ADD_TEST(s, local_send__to_a_slot);
	CU_ADD_TEST(s, local_send__to_all);
	CU_ADD_TEST(s, local_send__to_nobody);
	CU_ADD_TEST(s, local_announce__opens_the_mailbox);
	CU_ADD_TEST(s, local_send__full_mailbox_drops);
	CU_ADD_TEST(s, local_recv__short_of_packets);
	CU_ADD_TEST(s, local_sleep__wakes);
	CU_ADD_TEST(s, local_recv__sender_was_killed);
}
