/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames between two processes of a device: what a child sends comes out of its parent's mailbox. */
#include <CUnit/CUnit.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "proc_harness.h"
#include "siblings/local.h"
#include "siblings/mailring.h"
#include "slots_harness.h"

void ur_suite_local(void);

#define BURST 32

static uint64_t key;
static struct ur_registry *registry;
static struct ur_local *local;
static struct proc *sender;

/* --- the sender --- */

struct request {
	uint8_t slot;
	uint32_t first, n, len;
};

struct answer {
	uint8_t slot; /* the sender's own */
	bool unread;
	uint32_t sent; /* before one was not taken */
};

static void ignore(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	(void)q;
	(void)pkts;
	(void)n;
}

static const struct ur_queue_ops nobody_ops = {.release = ignore};
static struct ur_queue nobody = {.ops = &nobody_ops};

static void fill(uint8_t *b, uint32_t len, uint32_t number)
{
	for (uint32_t i = 0; i < len; i++)
		b[i] = (uint8_t)(number * 13 + i * 5 + i / 256);
	if (len >= 4)
		memcpy(b, &number, 4);
}

static int child(int fd, uint64_t k)
{
	static uint8_t b[UR_PKT_ROOM + 64];
	struct ur_registry *r;
	struct ur_local *l;
	struct request q;

	if (ur_registry_open(k, &r) || ur_registry_join(r) || ur_local_open(r, &l))
		return 1;
	ur_local_announce(l);
	while (recv(fd, &q, sizeof(q), 0) == (ssize_t)sizeof(q)) {
		struct answer a = {.slot = ur_registry_slot(r)};

		for (uint32_t i = 0; i < q.n; i++) {
			struct ur_queue *to = ur_local_to(l, q.slot);
			struct ur_pkt p = {.data = b, .len = q.len, .room = sizeof(b), .home = &nobody, .flags = UR_PKT_LOCAL};
			struct ur_pkt *pkts[] = {&p};

			fill(b, q.len, q.first + i);
			if (to && !ur_queue_tx(to, pkts, 1))
				break;
			a.sent++;
		}
		a.unread = ur_local_to(l, q.slot) && ur_local_to(l, q.slot)->ops->unread(ur_local_to(l, q.slot));
		if (send(fd, &a, sizeof(a), MSG_NOSIGNAL) != (ssize_t)sizeof(a))
			return 2;
	}
	return 3;
}

/* What the sender says after it has sent everything, or found no room. */
static struct answer send_frames(uint8_t slot, uint32_t first, uint32_t n, uint32_t len)
{
	struct request q = {.slot = slot, .first = first, .n = n, .len = len};
	struct answer a = {0};

	proc_ask(sender, &q, sizeof(q), &a, sizeof(a));
	return a;
}

/* --- the receiver --- */

static void setup(void)
{
	local = NULL;
	registry = NULL;
}

static void begin(void)
{
	key = proc_random_key();
	sender = proc_start(child, key);
	CU_ASSERT_EQUAL_FATAL(ur_registry_open(key, &registry), 0);
	send_frames(0, 0, 0, 0); /* it has joined */
	CU_ASSERT_EQUAL_FATAL(ur_registry_join(registry), 0);
	CU_ASSERT_EQUAL_FATAL(ur_local_open(registry, &local), 0);
}

static void teardown(void)
{
	procs_end();
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

static unsigned receive(struct ur_pkt **pkts, unsigned n)
{
	return ur_queue_rx(ur_local_inbox(local), pkts, n);
}

/* One call looks for one slot's process. */
static void look_around(void)
{
	struct ur_pkt *pkts[1];

	for (unsigned i = 0; i < 256; i++)
		CU_ASSERT_EQUAL(receive(pkts, 0), 0);
}

/* Takes everything that waits, and checks that it is `n` frames from number `first` on. */
static void expect(uint32_t first, uint32_t n, uint32_t len)
{
	static uint8_t want[UR_PKT_ROOM];
	struct ur_pkt *pkts[BURST];
	unsigned got;
	uint32_t at = 0;

	look_around();
	while ((got = receive(pkts, BURST))) {
		CU_ASSERT_TRUE(got <= BURST);
		for (unsigned i = 0; i < got; i++, at++) {
			fill(want, len, first + at);
			CU_ASSERT_EQUAL(pkts[i]->len, len);
			CU_ASSERT_EQUAL(pkts[i]->flags, UR_PKT_LOCAL);
			CU_ASSERT_TRUE(pkts[i]->len == len && !memcmp(pkts[i]->data, want, len));
		}
		ur_pkts_release(pkts, got);
	}
	CU_ASSERT_EQUAL(at, n);
}

static bool readable(int timeout_ms)
{
	struct pollfd p = {.fd = ur_local_fd(local), .events = POLLIN};

	return poll(&p, 1, timeout_ms) == 1 && (p.revents & POLLIN);
}

static void local_send__to_a_slot(void)
{
	begin_announced();
	CU_ASSERT_NOT_EQUAL(send_frames(us(), 0, 1, 64).slot, us());
	expect(0, 1, 64);
	send_frames(us(), 1, 100, 1500);
	expect(1, 100, 1500);
	send_frames(us(), 200, 5, UR_PKT_ROOM);
	expect(200, 5, UR_PKT_ROOM);
	send_frames(us(), 300, 1, UR_PKT_ROOM + 1); /* longer than any packet */
	expect(300, 0, 0);
}

static void local_send__to_nobody(void)
{
	uint8_t theirs;

	begin_announced();
	theirs = send_frames(us(), 0, 0, 64).slot;
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
	expect(0, 0, 64);
	ur_local_announce(local);
	send_frames(us(), 8, 4, 64);
	expect(8, 4, 64);
}

/* What finds no room stays with its sender, who sees when we have read; nothing gets lost however often the ring comes round. */
static void local_send__full_mailbox_takes_no_more(void)
{
	static const uint32_t len[] = {1, 60, 100, 1024, 4000, UR_PKT_ROOM};

	begin_announced();
	for (unsigned i = 0; i < ur_array_size(len); i++) {
		struct answer a = send_frames(us(), 0, 1000000, len[i]);

		CU_ASSERT_TRUE(a.sent * (len[i] + 64) >= UR_MAILRING_BYTES / 4);
		CU_ASSERT_TRUE(a.unread);
		CU_ASSERT_EQUAL(send_frames(us(), 0, 5, len[i]).sent, 0);
		expect(0, a.sent, len[i]);
		CU_ASSERT_FALSE(send_frames(us(), 0, 0, 64).unread);
		for (uint32_t k = 0; k < 20; k++) {
			CU_ASSERT_EQUAL(send_frames(us(), k * 40, 40, len[i]).sent, 40);
			expect(k * 40, 40, len[i]);
		}
	}
}

/* What finds no packet waits. */
static void local_recv__short_of_packets(void)
{
	static struct ur_pkt *held[4096];
	unsigned n = 0, more;

	begin_announced();
	send_frames(us(), 0, 1000, 64);
	look_around();
	while ((more = receive(held + n, BURST)))
		n += more;
	CU_ASSERT_TRUE(n >= 96 && n < 1000); /* a burst, and what fault injection may hold */
	ur_pkts_release(held, n);
	expect(n, 1000 - n, 64);
}

static void local_sleep__wakes(void)
{
	begin_announced();
	CU_ASSERT_TRUE(ur_local_sleep(local, false));
	send_frames(us(), 0, 3, 64);
	CU_ASSERT_FALSE(readable(0));                 /* we never said that we sleep */
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
	send_frames(us(), 5, 1, 64);
	CU_ASSERT_FALSE(readable(0));
	expect(5, 1, 64);
	CU_ASSERT_TRUE(ur_local_sleep(local, true));
	send_frames(us(), 6, 1, 64);
	CU_ASSERT_TRUE(readable(5000));
	CU_ASSERT_TRUE(ur_local_sleep(local, false));
	expect(6, 1, 64);
}

/* What it sent stays when we knew of it, and sending to a dead process does no harm. */
static void local_recv__sender_was_killed(void)
{
	uint8_t b[64], theirs;
	struct ur_pkt p = {.data = b, .len = sizeof(b), .room = sizeof(b), .home = &nobody}, *pkts[] = {&p};
	struct ur_queue *to;

	begin_announced();
	theirs = send_frames(us(), 0, 10, 64).slot;
	to = ur_local_to(local, theirs);
	CU_ASSERT_PTR_NOT_NULL_FATAL(to);
	CU_ASSERT_EQUAL(ur_queue_tx(to, pkts, 1), 1);
	proc_kill(sender);
	CU_ASSERT_EQUAL(ur_queue_tx(to, pkts, 1), 1);
	expect(0, 10, 64);
	CU_ASSERT_TRUE(ur_local_sleep(local, true)); /* finds it dead, and its memory goes */
	CU_ASSERT_TRUE(ur_local_sleep(local, false));
	CU_ASSERT_PTR_NULL(ur_local_to(local, theirs));
	CU_ASSERT_EQUAL(ur_queue_tx(to, pkts, 1), 1); /* into nothing */
	expect(0, 0, 64);
}

/* Its slot is somebody else's now: nothing of the old ring is taken for the new one's. */
static void local_recv__sender_was_replaced(void)
{
	uint8_t slots[2];

	for (unsigned i = 0; i < 2; i++) {
		if (!i)
			begin_announced();
		else
			sender = proc_start(child, key);
		slots[i] = send_frames(us(), 0, 3 + i, 64).slot;
		expect(0, 3 + i, 64);
		send_frames(us(), 7, 200, 1000);
		proc_kill(sender);
		expect(7, 200, 1000);
		if (!i)
			take_slots(key, slots[0]);
	}
	CU_ASSERT_EQUAL(slots[0], slots[1]);
	give_slots();
}

/* A program that locks its memory locks the rings to those that are there, and not 255 of them. As root: others may lock little. */
static void local_memory__of_rings_to_nobody(void)
{
	const struct ur_own_page *own;
	struct stat st;

	begin_announced();
	look_around();
	own = ur_registry_page(registry);
	syscall(SYS_mlock, own->page, ur_page_bytes(own->ring_bytes)); /* sanitizers do nothing in mlock(2) */
	CU_ASSERT_EQUAL_FATAL(fstat(own->memfd, &st), 0);
	CU_ASSERT_TRUE((uint64_t)st.st_blocks * 512 <= UR_PAGE_SHOWN + UR_MAILRING_BYTES);
	syscall(SYS_munlock, own->page, ur_page_bytes(own->ring_bytes));
}

void ur_suite_local(void)
{
	CU_pSuite s = CU_add_suite_with_setup_and_teardown("local", NULL, NULL, setup, teardown);

	CU_ADD_TEST(s, local_memory__of_rings_to_nobody);
	CU_ADD_TEST(s, local_send__to_a_slot);
	CU_ADD_TEST(s, local_send__to_nobody);
	CU_ADD_TEST(s, local_announce__opens_the_mailbox);
	CU_ADD_TEST(s, local_send__full_mailbox_takes_no_more);
	CU_ADD_TEST(s, local_recv__short_of_packets);
	CU_ADD_TEST(s, local_sleep__wakes);
	CU_ADD_TEST(s, local_recv__sender_was_killed);
	CU_ADD_TEST(s, local_recv__sender_was_replaced);
}
