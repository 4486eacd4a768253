/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs of one NIC that are connected to one another, or to themselves: nothing but neighbour discovery touches the wire. */
#include <pcap/pcap.h>
#include <stdlib.h>
#include <unistd.h>

#include "analyze/dissect.h"
#include "capture/capture.h"
#include "fault/inject.h"
#include "nic_harness.h"

void ur_suite_loopback(void);

static struct nics h;
static struct nics_qp a, b;

static uint64_t on_wire(void)
{
	return h.n[0].nic->counters.v[UR_C_TX_PACKETS];
}

static void exchange(struct nics_qp *from, struct nics_qp *to, uint64_t id, uint32_t len)
{
	nics_recv(&h, to, id + 1, 32768, 16384);
	CU_ASSERT_EQUAL(nics_post(&h, from, IBV_WR_SEND, id, 100, len, 0, 0), 0);
	nics_run(&h, UR_NS_PER_MS);
	/* An RC send completes behind the receive, a UC send before it. */
	if (from->type == IBV_QPT_UC)
		nics_expect(&h, 0, id, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(nics_expect(&h, 0, id + 1, IBV_WC_SUCCESS).byte_len, len);
	if (from->type == IBV_QPT_RC)
		nics_expect(&h, 0, id, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(h.n[0].mem + 32768, h.n[0].mem + 100, len), 0);
	memset(h.n[0].mem + 32768, 0, 16384);
	CU_ASSERT_EQUAL(nics_post(&h, from, IBV_WR_RDMA_WRITE, id + 2, 200, len, 0, 49152), 0);
	nics_run(&h, UR_NS_PER_MS);
	nics_expect(&h, 0, id + 2, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(h.n[0].mem + 49152, h.n[0].mem + 200, len), 0);
	memset(h.n[0].mem + 49152, 0, 16384);
	nics_expect_none(&h, 0);
}

static void connected__to_another_and_to_itself(void)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC};
	static const uint32_t len[] = {0, 1, 256, 257, 10000};
	uint64_t before;

	nics_open(&h, 2);
	before = on_wire();
	for (unsigned t = 0; t < ur_array_size(types); t++) {
		for (unsigned self = 0; self < 2; self++) {
			nics_qp_create(&h, 0, types[t], &a);
			nics_qp_create(&h, 0, types[t], &b);
			nics_qp_connect(&h, &a, self ? &a : &b);
			nics_qp_connect(&h, &b, self ? &b : &a);
			for (unsigned i = 0; i < ur_array_size(len); i++) {
				exchange(&a, self ? &a : &b, 10 * i, len[i]);
				exchange(&b, self ? &b : &a, 10 * i, len[i]);
			}
			nics_qp_destroy(&h, &a);
			nics_qp_destroy(&h, &b);
		}
	}
	CU_ASSERT_EQUAL(on_wire(), before);
	nics_close(&h);
}

static void connected__read_from_itself(void)
{
	nics_open(&h, 1);
	nics_qp_create(&h, 0, IBV_QPT_RC, &a);
	nics_qp_connect(&h, &a, &a);
	CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_RDMA_READ, 1, 30000, 9999, 0, 100), 0);
	nics_run(&h, UR_NS_PER_MS);
	nics_expect(&h, 0, 1, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(h.n[0].mem + 30000, h.n[0].mem + 100, 9999), 0);
	nics_qp_destroy(&h, &a);
	nics_close(&h);
}

/* Whoever posts gets it done in one round that only sends: memory, acknowledgement, completion. */
static void connected__within_the_round_that_sends(void)
{
	struct ur_nic *nic;

	nics_open(&h, 2);
	nic = h.n[0].nic;
	nics_qp_create(&h, 0, IBV_QPT_RC, &a);
	nics_qp_create(&h, 0, IBV_QPT_RC, &b);
	nics_qp_connect(&h, &a, &b);
	nics_qp_connect(&h, &b, &a);
	CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_RDMA_WRITE, 7, 100, 8, 0, 49152), 0);
	ur_nic_poll_tx(nic, nic->now);
	CU_ASSERT_EQUAL(memcmp(h.n[0].mem + 49152, h.n[0].mem + 100, 8), 0);
	nics_expect(&h, 0, 7, IBV_WC_SUCCESS);
	CU_ASSERT(ur_nic_next(nic) > nic->now); /* nothing is left for others to do */
	nics_qp_destroy(&h, &a);
	nics_qp_destroy(&h, &b);
	nics_close(&h);
}

static void datagrams__to_another_and_to_itself(void)
{
	struct ur_gid own;
	uint64_t before;
	struct ur_ah *ah;

	nics_open(&h, 2);
	nics_qp_create(&h, 0, IBV_QPT_UD, &a);
	nics_qp_create(&h, 0, IBV_QPT_UD, &b);
	nics_qp_connect(&h, &a, NULL);
	nics_qp_connect(&h, &b, NULL);
	before = on_wire();
	for (unsigned v6 = 0; v6 < 2; v6++) {
		struct ibv_ah_attr attr;

		own = nics_gid(&h, 0, v6);
		attr = nics_route(&own, (uint8_t)v6);
		CU_ASSERT_EQUAL_FATAL(ur_nic_create_ah(h.n[0].nic, h.n[0].pd, &attr, h.now, &ah), 0);
		for (unsigned i = 0; i < 4; i++) {
			struct nics_qp *to = i & 1 ? &a : &b;
			struct ibv_wc wc;

			nics_recv(&h, to, 100 + i, 32768, 2048);
			CU_ASSERT_EQUAL(nics_post_ud(&h, &a, ah, ur_qp_num(to->qp), i, i, 1 + i * 200), 0);
			nics_run(&h, UR_NS_PER_MS);
			nics_expect(&h, 0, i, IBV_WC_SUCCESS);
			wc = nics_expect(&h, 0, 100 + i, IBV_WC_SUCCESS);
			CU_ASSERT_EQUAL(wc.qp_num, ur_qp_num(to->qp));
			CU_ASSERT_EQUAL(wc.src_qp, ur_qp_num(a.qp));
			CU_ASSERT_EQUAL(memcmp(h.n[0].mem + 32768 + UR_GRH_LEN, h.n[0].mem + i, 1 + i * 200), 0);
		}
		ur_ah_destroy(ah);
	}
	CU_ASSERT_EQUAL(on_wire(), before);
	nics_qp_destroy(&h, &a);
	nics_qp_destroy(&h, &b);
	nics_close(&h);
}

/* What never comes to the port is counted, and recorded once, whole as on the wire. */
static void local__is_counted_and_captured(void)
{
	char path[] = "/tmp/uroce-test-loopback-XXXXXX", err[PCAP_ERRBUF_SIZE];
	int fd = mkstemp(path);
	struct pcap_pkthdr *header;
	const unsigned char *data;
	uint64_t packets = 0, bytes = 0, wire, lost;
	struct ur_capture *capture;
	struct ur_counters *c;
	pcap_t *file;

	CU_ASSERT_FATAL(fd >= 0);
	close(fd);
	nics_open(&h, 2);
	c = &h.n[0].nic->counters;
	CU_ASSERT_EQUAL_FATAL(ur_capture_open(path, "eth0", h.n[0].nic->now, &capture), 0);
	ur_nic_set_capture(h.n[0].nic, capture);
	nics_qp_create(&h, 0, IBV_QPT_RC, &a);
	nics_qp_create(&h, 0, IBV_QPT_RC, &b);
	nics_qp_connect(&h, &a, &b);
	nics_qp_connect(&h, &b, &a);
	wire = on_wire();
	CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_RDMA_WRITE, 1, 200, 10000, 0, 49152), 0);
	nics_run(&h, UR_NS_PER_MS);
	nics_expect(&h, 0, 1, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(ur_capture_close(h.n[0].nic->capture, &lost), 0);
	CU_ASSERT_EQUAL(lost, 0);
	ur_nic_set_capture(h.n[0].nic, NULL);
	file = pcap_open_offline(path, err);
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	while (pcap_next_ex(file, &header, &data) == 1) {
		struct ur_an_frame f = {.data = data, .have = header->caplen, .len = header->len, .link = UR_AN_ETHERNET, .number = 1};
		struct an_pkt p;

		packets++;
		bytes += header->len;
		CU_ASSERT_TRUE(an_dissect(&f, &p));
		CU_ASSERT_PTR_NULL(p.wrong); /* headers, lengths and the ICRC */
		CU_ASSERT_EQUAL(p.icrc, AN_ICRC_OK);
	}
	pcap_close(file);
	unlink(path);
	CU_ASSERT_TRUE(packets >= 4); /* of the WRITE, and the acknowledgement */
	CU_ASSERT_EQUAL(packets, c->v[UR_C_TX_LOCAL_PACKETS]);
	CU_ASSERT_EQUAL(bytes, c->v[UR_C_TX_LOCAL_BYTES]);
	CU_ASSERT_EQUAL(c->v[UR_C_RX_LOCAL_PACKETS], 0); /* from other processes */
	CU_ASSERT_EQUAL(on_wire(), wire);
	nics_qp_destroy(&h, &a);
	nics_qp_destroy(&h, &b);
	nics_close(&h);
}

/* Injected faults befall what never comes to the port as well, each frame once. */
static void faults__on_the_way_to_ourselves(void)
{
	static const struct ur_fault_spec spec = {
		.drop = 100000, .dup = 50000, .reorder = 50000, .corrupt = 50000, .dir = UR_FAULT_TX | UR_FAULT_RX, .seed = 7};
	const uint64_t *c;

	nics_open(&h, 2);
	c = h.n[0].nic->counters.v;
	CU_ASSERT_EQUAL_FATAL(ur_nic_set_faults(h.n[0].nic, &spec), 0);
	nics_qp_create(&h, 0, IBV_QPT_RC, &a);
	nics_qp_create(&h, 0, IBV_QPT_RC, &b);
	nics_qp_connect(&h, &a, &b);
	nics_qp_connect(&h, &b, &a);
	for (unsigned i = 0; i < 20; i++) {
		CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_RDMA_WRITE, i, 200, 10000, 0, 49152), 0);
		nics_run(&h, UR_NS_PER_S);
		nics_expect(&h, 0, i, IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(memcmp(h.n[0].mem + 49152, h.n[0].mem + 200, 10000), 0);
		memset(h.n[0].mem + 49152, 0, 10000);
	}
	CU_ASSERT_TRUE(c[UR_C_FAULT_DROP] > 0 && c[UR_C_FAULT_DUP] > 0 && c[UR_C_FAULT_REORDER] > 0 && c[UR_C_FAULT_CORRUPT] > 0);
	CU_ASSERT_EQUAL(c[UR_C_ICRC] + c[UR_C_DROP_BAD_IP] + c[UR_C_DROP_BAD_UDP] + c[UR_C_RX_OTHER_HOST] + c[UR_C_DROP_TRUNCATED] > 0,
			true);
	nics_qp_destroy(&h, &a);
	nics_qp_destroy(&h, &b);
	nics_close(&h);
}

/* --- other processes of the host --- */

static uint64_t sum(enum ur_counter c)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < h.nics; i++)
		n += h.n[i].nic->counters.v[c];
	return n;
}

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
		CU_ASSERT_EQUAL(sum(UR_C_TX_BACKLOG) > 0, rooms[r] < UR_NIC_BURST);
		CU_ASSERT_EQUAL(sum(UR_C_RETRANSMIT) + sum(UR_C_TX_DROPPED) + sum(UR_C_PROBE) + sum(UR_C_DROP_OUT_OF_SEQ), 0);
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
	CU_ASSERT_EQUAL(sum(UR_C_TX_DROPPED), 0);
	CU_ASSERT_EQUAL(sum(UR_C_RETRANSMIT), 0);
	nics_run(&h, 250 * UR_NS_PER_MS);
	CU_ASSERT_TRUE(sum(UR_C_TX_DROPPED) > 0);
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
		uint64_t before = c == UR_C_COUNT ? 0 : sum(c);

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
			CU_ASSERT_EQUAL(sum(c), before + 1);
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
	CU_ASSERT_EQUAL(sum(UR_C_RX_WRITE), 3);
	nics_qp_destroy(&h, &a);
	nics_qp_destroy(&h, &b);
	close_host();
}

/* --- a wire that takes nothing --- */

static unsigned take_nothing(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	(void)q, (void)pkts, (void)n;
	return 0;
}

static void wire__patience(void)
{
	static const struct {
		ur_time patience, stands_still;
		bool dropped;
	} t[] = {
		{0, UR_NS_PER_MS, false},
		{0, 5 * UR_NS_PER_MS, true},
		{200 * UR_NS_PER_MS, 150 * UR_NS_PER_MS, false},
		{200 * UR_NS_PER_MS, 250 * UR_NS_PER_MS, true},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ur_queue_ops stopped;
		const struct ur_queue_ops *ops;
		struct ur_queue *q;

		nics_open(&h, 2);
		open_pair(0, 1, &a, &b);
		q = h.n[0].nic->port->queue;
		q->patience_ns = t[i].patience;
		ops = q->ops;
		stopped = *ops;
		stopped.tx = take_nothing;
		q->ops = &stopped;
		CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_RDMA_WRITE, 1, 100, 20000, 1, 32768), 0);
		nics_run(&h, t[i].stands_still);
		CU_ASSERT_EQUAL(h.n[0].nic->counters.v[UR_C_TX_DROPPED] > 0, t[i].dropped);
		nics_expect_none(&h, 0);
		q->ops = ops;
		nics_run(&h, UR_NS_PER_S);
		nics_expect(&h, 0, 1, IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(memcmp(h.n[1].mem + 32768, h.n[0].mem + 100, 20000), 0);
		nics_qp_destroy(&h, &a);
		nics_qp_destroy(&h, &b);
		nics_close(&h);
	}
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
		{UR_QUEUE_CALLS, 1, 0},  {UR_QUEUE_CALLS, 4, 0},  {UR_QUEUE_CALLS, 5, 1},  {UR_QUEUE_CALLS, 14, 0}, {UR_QUEUE_CALLS, 15, 1},
		{UR_QUEUE_CALLS, 19, 0}, {UR_QUEUE_CALLS, 20, 1}, {UR_QUEUE_CALLS, 21, 1}, {0, 22, 1},
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

void ur_suite_loopback(void)
{
	CU_pSuite s = CU_add_suite("loopback", NULL, NULL);

	CU_ADD_TEST(s, connected__to_another_and_to_itself);
	CU_ADD_TEST(s, connected__read_from_itself);
	CU_ADD_TEST(s, connected__within_the_round_that_sends);
	CU_ADD_TEST(s, datagrams__to_another_and_to_itself);
	CU_ADD_TEST(s, local__is_counted_and_captured);
	CU_ADD_TEST(s, faults__on_the_way_to_ourselves);
	CU_ADD_TEST(s, siblings__full_mailbox_holds_back);
	CU_ADD_TEST(s, siblings__stopped_process);
	CU_ADD_TEST(s, siblings__memory_is_not_held);
	CU_ADD_TEST(s, siblings__datagrams);
	CU_ADD_TEST(s, siblings__slim);
	CU_ADD_TEST(s, siblings__slim_uc);
	CU_ADD_TEST(s, wire__patience);
	CU_ADD_TEST(s, port__waits_for_packets_of_this_host);
}
