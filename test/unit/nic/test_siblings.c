/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes from one process of a host to another: mailboxes that are full, slim packets, and the port that waits meanwhile. */
#include <string.h>

#include "base/bytes.h"
#include "fault/inject.h"
#include "nic_harness.h"
#include "transport/state/qp_priv.h"
#include "wire/hdr.h"
#include "wire/msg/icmp.h"

void ur_suite_siblings(void);

static struct nics h;
static struct nics_qp a, b;

static void open_pair(unsigned from, unsigned to, struct nics_qp *x, struct nics_qp *y)
{
	nics_qp_create(&h, from, IBV_QPT_RC, x);
	nics_qp_create(&h, to, IBV_QPT_RC, y);
	nics_qp_connect(&h, x, y);
	nics_qp_connect(&h, y, x);
}

static void close_host(void)
{
	nics_mail_close(&h);
	nics_close(&h);
}

/* However few packets a mailbox holds, none is lost and none sent again, in either direction. */
static void siblings__full_mailbox_holds_back(void)
{
	static const unsigned rooms[] = {1, 4, 33, 1000};
	const uint32_t len = 30000;

	for (unsigned r = 0; r < ur_array_size(rooms); r++) {
		nics_open_host(&h, 2);
		nics_mail_open(&h, rooms[r]);
		open_pair(0, 1, &a, &b);
		CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_RDMA_WRITE, 1, 100, len, 1, 32768), 0);
		CU_ASSERT_EQUAL(nics_post(&h, &b, IBV_WR_RDMA_WRITE, 2, 100, len, 0, 32768), 0);
		nics_run(&h, 10 * UR_NS_PER_MS);
		nics_expect(&h, 0, 1, IBV_WC_SUCCESS);
		nics_expect(&h, 1, 2, IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(memcmp(h.n[0].mem + 32768, h.n[1].mem + 100, len), 0);
		CU_ASSERT_EQUAL(memcmp(h.n[1].mem + 32768, h.n[0].mem + 100, len), 0);
		CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_RDMA_READ, 3, 0, len, 1, 0), 0);
		nics_run(&h, 10 * UR_NS_PER_MS);
		nics_expect(&h, 0, 3, IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(memcmp(h.n[0].mem, h.n[1].mem, len), 0);
		CU_ASSERT_EQUAL(nics_sum(&h, UR_C_TX_BACKLOG) > 0, rooms[r] < UR_NIC_BURST);
		CU_ASSERT_EQUAL(nics_sum(&h, UR_C_RETRANSMIT) + nics_sum(&h, UR_C_TX_DROPPED) + nics_sum(&h, UR_C_PROBE) +
					nics_sum(&h, UR_C_DROP_OUT_OF_SEQ),
				0);
		nics_qp_destroy(&h, &a);
		nics_qp_destroy(&h, &b);
		close_host();
	}
}

/* One that does not read holds up nobody else; what is for it is given up at last, and sent again when it reads on. */
static void siblings__stopped_process(void)
{
	struct nics_qp c, d;

	nics_open_host(&h, 3);
	nics_mail_open(&h, 8);
	open_pair(0, 1, &a, &b);
	open_pair(0, 2, &c, &d);
	h.stopped = 1u << 1;
	CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_RDMA_WRITE, 1, 100, 20000, 1, 32768), 0);
	nics_run(&h, UR_NS_PER_MS);
	for (unsigned i = 0; i < 5; i++) {
		CU_ASSERT_EQUAL(nics_post(&h, &c, IBV_WR_RDMA_WRITE, 2, 100, 20000, 2, 32768), 0);
		nics_run(&h, UR_NS_PER_MS);
		nics_expect(&h, 0, 2, IBV_WC_SUCCESS);
	}
	CU_ASSERT_EQUAL(nics_sum(&h, UR_C_TX_DROPPED), 0);
	CU_ASSERT_EQUAL(nics_sum(&h, UR_C_RETRANSMIT), 0);
	nics_run(&h, 250 * UR_NS_PER_MS);
	CU_ASSERT_TRUE(nics_sum(&h, UR_C_TX_DROPPED) > 0);
	nics_expect_none(&h, 0);
	h.stopped = 0;
	nics_run(&h, UR_NS_PER_S);
	nics_expect(&h, 0, 1, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(h.n[1].mem + 32768, h.n[0].mem + 100, 20000), 0);
	for (struct nics_qp **q = (struct nics_qp *[]){&a, &b, &c, &d, NULL}; *q; q++)
		nics_qp_destroy(&h, *q);
	close_host();
}

/* What waits for a process refers to no memory of ours: a region can go. */
static void siblings__memory_is_not_held(void)
{
	nics_open_host(&h, 2);
	nics_mail_open(&h, 2);
	open_pair(0, 1, &a, &b);
	h.stopped = 1u << 1;
	CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_RDMA_WRITE, 1, 0, 9000, 1, 0), 0);
	nics_run(&h, UR_NS_PER_MS);
	CU_ASSERT_TRUE(h.n[0].nic->out[2].n > 0);
	CU_ASSERT_EQUAL(atomic_load(&h.n[0].mr->frames.n), 0);
	nics_qp_destroy(&h, &a);
	h.stopped = 0;
	nics_run(&h, UR_NS_PER_MS);
	nics_qp_destroy(&h, &b);
	close_host();
}

/* Datagrams to one that does not read hold up those behind them until they are given up; another QP's never. */
static void siblings__datagrams(void)
{
	struct ur_gid own;
	struct ibv_ah_attr attr;
	struct nics_qp to[2];
	struct ur_ah *ah;

	nics_open_host(&h, 3);
	nics_mail_open(&h, 4);
	nics_mail[1].room = 0;
	own = nics_gid(&h, 0, false);
	attr = nics_route(&own, 0);
	CU_ASSERT_EQUAL_FATAL(ur_nic_create_ah(h.n[0].nic, h.n[0].pd, &attr, h.now, &ah), 0);
	nics_qp_create(&h, 0, IBV_QPT_UD, &a);
	nics_qp_create(&h, 0, IBV_QPT_UD, &b);
	nics_qp_connect(&h, &a, NULL);
	nics_qp_connect(&h, &b, NULL);
	for (unsigned i = 0; i < 2; i++) {
		nics_qp_create(&h, 1 + i, IBV_QPT_UD, &to[i]);
		nics_qp_connect(&h, &to[i], NULL);
		nics_recv(&h, &to[i], 7, 0, 1024);
		nics_recv(&h, &to[i], 8, 0, 1024);
	}
	h.stopped = 1u << 1;
	for (unsigned i = 0; i < 50; i++) {
		CU_ASSERT_EQUAL(nics_post_ud(&h, &a, ah, ur_qp_num(to[0].qp), i, 0, 100), 0);
		nics_run(&h, i ? 0 : UR_NS_PER_MS);
	}
	CU_ASSERT_EQUAL(h.n[0].nic->out[2].n, 1);
	CU_ASSERT_EQUAL(nics_post_ud(&h, &a, ah, ur_qp_num(to[1].qp), 50, 0, 100), 0);
	nics_run(&h, UR_NS_PER_MS);
	CU_ASSERT_EQUAL(nics_post_ud(&h, &b, ah, ur_qp_num(to[1].qp), 60, 0, 100), 0);
	nics_run(&h, UR_NS_PER_MS);
	nics_expect(&h, 2, 7, IBV_WC_SUCCESS);
	nics_expect_none(&h, 2);
	nics_run(&h, 300 * UR_NS_PER_MS);
	nics_expect(&h, 2, 8, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(h.n[0].nic->counters.v[UR_C_TX_DROPPED], 50);
	h.stopped = 0;
	nics_run(&h, UR_NS_PER_MS);
	for (unsigned i = 0; i < 2; i++)
		nics_qp_destroy(&h, &to[i]);
	nics_qp_destroy(&h, &a);
	nics_qp_destroy(&h, &b);
	ur_ah_destroy(ah);
	close_host();
}

enum { HONEST, OTHER_SLOT, BULK_TOO, SHORT, EXT_MISSING, PAD, SERVICE, TVER, QPN, LIES };

static void falsify(struct ur_pkt *p, unsigned how)
{
	uint8_t *bth = p->data + p->bth_off;

	p->slot = how == OTHER_SLOT ? 9 : p->slot;
	p->flags |= how == BULK_TOO ? UR_PKT_BULK : 0;
	p->len = how == SHORT ? p->bth_off + 11u : how == EXT_MISSING ? p->bth_off + 27u : how == PAD ? p->bth_off + 30u : p->len;
	bth[0] = how == SERVICE ? 0x2a : bth[0]; /* a UC WRITE */
	bth[1] |= how == PAD ? 0x30 : how == TVER ? 1 : 0;
	bth[7] ^= how == QPN ? 0x40 : 0;
}

/* Nobody looks: what is sent has neither headers nor an ICRC, and is checked nevertheless. */
static void siblings__slim(void)
{
	static const enum ur_counter why[LIES] = {
		[HONEST] = UR_C_COUNT,
		[OTHER_SLOT] = UR_C_DROP_SOURCE,
		[SERVICE] = UR_C_DROP_OPCODE,
		[QPN] = UR_C_DROP_QPN,
	};
	static const struct ur_fault_spec none = {.dir = UR_FAULT_TX, .seed = 7};
	struct ur_pkt *p;

	nics_open_host(&h, 2);
	nics_mail_open(&h, 100);
	nics_mail[0].queue.caps = nics_mail[1].queue.caps = UR_QUEUE_SLIM;
	open_pair(0, 1, &a, &b);
	CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_RDMA_WRITE, 1, 100, 8, 1, 32768), 0); /* now it knows that it may */
	nics_run(&h, UR_NS_PER_MS);
	nics_expect(&h, 0, 1, IBV_WC_SUCCESS);
	for (unsigned how = HONEST; how < LIES; how++) {
		enum ur_counter c = why[how] ? why[how] : UR_C_DROP_TRUNCATED;
		uint64_t before = c == UR_C_COUNT ? 0 : nics_sum(&h, c);

		memset(h.n[1].mem + 32768, 0, 1000);
		CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_RDMA_WRITE, 2, 100, 7 + how, 1, 32768), 0);
		ur_nic_poll_tx(h.n[0].nic, h.n[0].nic->now);
		p = nics_mail[1].loop.head;
		CU_ASSERT_PTR_NOT_NULL_FATAL(p);
		CU_ASSERT_TRUE(p->flags & UR_PKT_SLIM);
		CU_ASSERT_EQUAL(p->slot, 1);
		falsify(p, how);
		ur_nic_poll(h.n[1].nic, h.n[1].nic->now);
		CU_ASSERT_EQUAL(memcmp(h.n[1].mem + 32768, h.n[0].mem + 100, 7 + how) == 0, how == HONEST);
		if (c != UR_C_COUNT)
			CU_ASSERT_EQUAL(nics_sum(&h, c), before + 1);
		nics_run(&h, UR_NS_PER_S);
		nics_expect(&h, 0, 2, IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(memcmp(h.n[1].mem + 32768, h.n[0].mem + 100, 7 + how), 0);
	}
	/* Rows of messages, and messages of several packets. */
	for (unsigned i = 0; i < 20; i++)
		CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_RDMA_WRITE, i, 100 + i, i < 10 ? 9 : 5000, 1, 32768), 0);
	nics_run(&h, UR_NS_PER_MS);
	for (unsigned i = 0; i < 20; i++)
		nics_expect(&h, 0, i, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(h.n[1].mem + 32768, h.n[0].mem + 119, 5000), 0);
	CU_ASSERT_EQUAL_FATAL(ur_nic_set_faults(h.n[0].nic, &none), 0);
	CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_RDMA_WRITE, 3, 100, 8, 1, 32768), 0);
	ur_nic_poll_tx(h.n[0].nic, h.n[0].nic->now);
	p = nics_mail[1].loop.head;
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	CU_ASSERT_FALSE(p->flags & UR_PKT_SLIM);
	nics_run(&h, UR_NS_PER_MS);
	nics_expect(&h, 0, 3, IBV_WC_SUCCESS);
	nics_qp_destroy(&h, &a);
	nics_qp_destroy(&h, &b);
	close_host();
}

/* What an unreliable connection sends goes the same way; datagrams do not, whose receivers are told where they come from. */
static void siblings__slim_uc(void)
{
	static const uint32_t len[] = {8, 5000};
	struct ur_pkt *p;

	nics_open_host(&h, 2);
	nics_mail_open(&h, 100);
	nics_mail[0].queue.caps = nics_mail[1].queue.caps = UR_QUEUE_SLIM;
	nics_qp_create(&h, 0, IBV_QPT_UC, &a);
	nics_qp_create(&h, 1, IBV_QPT_UC, &b);
	nics_qp_connect(&h, &a, &b);
	nics_qp_connect(&h, &b, &a);
	CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_RDMA_WRITE, 1, 100, 8, 1, 32768), 0);
	nics_run(&h, UR_NS_PER_MS);
	nics_expect(&h, 0, 1, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < ur_array_size(len); i++) {
		CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_RDMA_WRITE, 2, 101 + i, len[i], 1, 32768), 0);
		ur_nic_poll_tx(h.n[0].nic, h.n[0].nic->now);
		p = nics_mail[1].loop.head;
		CU_ASSERT_PTR_NOT_NULL_FATAL(p);
		CU_ASSERT_TRUE(p->flags & UR_PKT_SLIM);
		nics_run(&h, UR_NS_PER_MS);
		nics_expect(&h, 0, 2, IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(memcmp(h.n[1].mem + 32768, h.n[0].mem + 101 + i, len[i]), 0);
	}
	CU_ASSERT_EQUAL(nics_sum(&h, UR_C_RX_WRITE), 3);
	nics_qp_destroy(&h, &a);
	nics_qp_destroy(&h, &b);
	close_host();
}

/* --- ICMP errors that the kernel has told the wrong process of --- */

#define HOP 300 /* IP bytes: too few for path MTU 256 */

/* NIC 0's port says so of a packet to NIC 3, and everybody has read it. */
static void told(const struct ur_bth *bth, uint32_t comm_id, unsigned len, uint16_t hop_mtu)
{
	struct ur_port *port = h.n[0].nic->port;
	uint8_t quote[200] = {0};

	ur_bth_put(quote, bth);
	ur_put32(quote + UR_BTH_LEN + 8 + 24, comm_id);
	for (unsigned i = 0; i < 3; i++) {
		nics_mail[i].sent = 0;
		h.n[i].nic->counters.v[UR_C_DROP_ICMP_QUOTE] = h.n[i].nic->counters.v[UR_C_RX_OTHER_SLOT] = 0;
	}
	port->undelivered(port, &(struct ur_undelivered){.dst = nics_gid(&h, 3, false), .hop_mtu = hop_mtu, .quote = quote, .len = len});
	for (unsigned i = 0; i < 3; i++)
		ur_nic_poll(h.n[i].nic, h.now);
}

static uint64_t count_of(unsigned nic, enum ur_counter c)
{
	return h.n[nic].nic->counters.v[c];
}

/* What it is not told to, no process tells another. */
static void expect_mail(unsigned to0, unsigned to1, unsigned to2)
{
	CU_ASSERT_EQUAL(nics_mail[0].sent, to0);
	CU_ASSERT_EQUAL(nics_mail[1].sent, to1);
	CU_ASSERT_EQUAL(nics_mail[2].sent, to2);
}

/* Whose packet it is a BTH does not say: all are asked. */
static void icmp__finds_the_process_that_sent_it(void)
{
	struct ur_bth bth = {.opcode = UR_RC | UR_OP_WRITE_FIRST};

	nics_open_bare_host(&h, 4, 3);
	nics_mail_open(&h, 100);
	h.n[0].nic->port->queue->caps |= UR_QUEUE_STEERED;
	open_pair(1, 3, &a, &b);
	h.stopped = 1u << 3;
	CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_RDMA_WRITE, 1, 0, 1024, 3, 0), 0);
	nics_run(&h, UR_NS_PER_MS);
	bth.dqpn = ur_qp_num(b.qp);
	bth.psn = a.qp->req.una;
	told(&bth, 0, UR_BTH_LEN, HOP);
	expect_mail(0, 1, 1);
	CU_ASSERT_EQUAL(count_of(1, UR_C_NARROW_HOP), 1);
	CU_ASSERT_EQUAL(nics_sum(&h, UR_C_NARROW_HOP), 1);
	CU_ASSERT_EQUAL(nics_sum(&h, UR_C_DROP_ICMP_QUOTE), 2);
	bth.psn = (bth.psn + 100) & 0xffffff; /* nobody's */
	told(&bth, 0, 200, HOP);
	expect_mail(0, 1, 1);
	CU_ASSERT_EQUAL(nics_sum(&h, UR_C_DROP_ICMP_QUOTE), 3);
	told(&bth, 0, UR_BTH_LEN - 1, HOP);                           /* nothing to judge by */
	h.n[0].nic->port->queue->caps &= ~(unsigned)UR_QUEUE_STEERED; /* and what every process is told of */
	told(&bth, 0, UR_BTH_LEN, HOP);
	expect_mail(0, 0, 0);
	h.stopped = 0;
	nics_run(&h, UR_NS_PER_S);
	nics_expect(&h, 1, 1, IBV_WC_SUCCESS);
	nics_qp_destroy(&h, &a);
	nics_qp_destroy(&h, &b);
	close_host();
}

/* A message of the CM says whose it is, unless it is cut. */
static void icmp__goes_by_the_communication_id(void)
{
	const struct ur_bth bth = {.opcode = UR_UD | UR_OP_SEND_ONLY, .dqpn = 1, .psn = 77};

	nics_open_bare_host(&h, 4, 3);
	nics_mail_open(&h, 100);
	h.n[0].nic->port->queue->caps |= UR_QUEUE_STEERED;
	told(&bth, 0x02123456, UR_QUOTE_LEN, 0);
	expect_mail(0, 1, 0);
	CU_ASSERT_EQUAL(count_of(0, UR_C_RX_OTHER_SLOT), 1);
	CU_ASSERT_EQUAL(count_of(1, UR_C_DROP_ICMP_QUOTE), 1);
	CU_ASSERT_EQUAL(nics_sum(&h, UR_C_DROP_ICMP_QUOTE), 1);
	told(&bth, 0x01123456, UR_QUOTE_LEN, 0); /* ours, and not waiting */
	expect_mail(0, 0, 0);
	CU_ASSERT_EQUAL(count_of(0, UR_C_DROP_ICMP_QUOTE), 1);
	told(&bth, 0x02123456, UR_BTH_LEN + 8 + 24, 0);
	expect_mail(0, 1, 1);
	told(&bth, 0xee123456, 200, 0); /* nobody has that slot */
	expect_mail(0, 0, 0);
	CU_ASSERT_EQUAL(nics_sum(&h, UR_C_DROP_ICMP_QUOTE), 0);
	close_host();
}

/* What another process says is judged as what the wire says. */
static void icmp__messages_are_judged(void)
{
	static const struct {
		unsigned len;
		uint8_t why;
		uint16_t hop_mtu;
		enum ur_counter counter;
	} lies[] = {
		{0, 0, 0, UR_C_DROP_ICMP_QUOTE},     {UR_BTH_LEN - 1, 0, HOP, UR_C_DROP_ICMP_QUOTE},
		{UR_BTH_LEN, 3, 0, UR_C_DROP_ICMP},  {UR_BTH_LEN, 255, 0, UR_C_DROP_ICMP},
		{UR_BTH_LEN, 0, 67, UR_C_DROP_ICMP}, {4000, 2, 68, UR_C_DROP_ICMP_QUOTE},
	};
	uint64_t before;
	struct ur_pkt *p;

	nics_open_bare_host(&h, 2, 2);
	nics_mail_open(&h, 100);
	for (unsigned i = 0; i < ur_array_size(lies); i++) {
		before = count_of(1, lies[i].counter);
		CU_ASSERT_EQUAL_FATAL(ur_queue_alloc(h.n[0].nic->port->queue, &p, 1), 1);
		memset(p->data, 0x11, lies[i].len);
		p->len = lies[i].len;
		p->flags = UR_PKT_TOLD;
		p->ttl = lies[i].why;
		p->place = lies[i].hop_mtu;
		p->dst = nics_gid(&h, 1, false);
		CU_ASSERT_EQUAL_FATAL(ur_queue_tx(&nics_mail[1].queue, &p, 1), 1);
		ur_nic_poll(h.n[1].nic, h.now);
		CU_ASSERT_EQUAL(count_of(1, lies[i].counter), before + 1);
	}
	CU_ASSERT_EQUAL(nics_mail[0].sent, 0);
	close_host();
}

/* --- a port that takes a system call to look at --- */

static const struct ur_queue_ops *port_ops;
static unsigned looks;

static unsigned look(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	looks++;
	return port_ops->rx(q, pkts, n);
}

static unsigned looks_at(struct ur_nic *nic, ur_time now)
{
	looks = 0;
	ur_nic_poll(nic, now);
	return looks;
}

/* It is left alone for a few microseconds at a time, while packets of this host come, and not otherwise. */
static void port__waits_for_packets_of_this_host(void)
{
	static const struct {
		unsigned caps, us, looks;
	} t[] = {
		{UR_QUEUE_CALLS, 1, 0},  {UR_QUEUE_CALLS, 4, 0},  {UR_QUEUE_CALLS, 5, 1},
		{UR_QUEUE_CALLS, 14, 0}, {UR_QUEUE_CALLS, 15, 1}, {UR_QUEUE_CALLS, 19, 0},
		{UR_QUEUE_CALLS, 20, 1}, {UR_QUEUE_CALLS, 21, 1}, {0, 22, 1},
	};
	struct ur_queue_ops counted;
	struct ur_queue *q;
	struct ur_nic *nic;
	ur_time begin;

	nics_open_host(&h, 2);
	nics_mail_open(&h, 100);
	open_pair(0, 1, &a, &b);
	nic = h.n[1].nic;
	q = nic->port->queue;
	port_ops = q->ops;
	counted = *port_ops;
	counted.rx = look;
	q->ops = &counted;
	q->caps |= UR_QUEUE_CALLS;
	begin = nic->now + UR_NS_PER_MS;
	CU_ASSERT_EQUAL(looks_at(nic, begin - 2), 1);
	CU_ASSERT_EQUAL(looks_at(nic, begin - 1), 1); /* nothing has come from this host for long */
	CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_RDMA_WRITE, 1, 100, 8, 1, 32768), 0);
	ur_nic_poll_tx(h.n[0].nic, begin);
	CU_ASSERT_EQUAL(looks_at(nic, begin), 1);
	CU_ASSERT_EQUAL(memcmp(h.n[1].mem + 32768, h.n[0].mem + 100, 8), 0);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		q->caps = (q->caps & ~(unsigned)UR_QUEUE_CALLS) | t[i].caps;
		CU_ASSERT_EQUAL(looks_at(nic, begin + t[i].us * UR_NS_PER_US), t[i].looks);
	}
	q->ops = port_ops;
	nics_run(&h, 2 * UR_NS_PER_MS);
	nics_expect(&h, 0, 1, IBV_WC_SUCCESS);
	nics_qp_destroy(&h, &a);
	nics_qp_destroy(&h, &b);
	close_host();
}

void ur_suite_siblings(void)
{
	CU_pSuite s = CU_add_suite("siblings", NULL, NULL);

	CU_ADD_TEST(s, siblings__full_mailbox_holds_back);
	CU_ADD_TEST(s, siblings__stopped_process);
	CU_ADD_TEST(s, siblings__memory_is_not_held);
	CU_ADD_TEST(s, siblings__datagrams);
	CU_ADD_TEST(s, siblings__slim);
	CU_ADD_TEST(s, siblings__slim_uc);
	CU_ADD_TEST(s, icmp__finds_the_process_that_sent_it);
	CU_ADD_TEST(s, icmp__goes_by_the_communication_id);
	CU_ADD_TEST(s, icmp__messages_are_judged);
	CU_ADD_TEST(s, port__waits_for_packets_of_this_host);
}
