/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bursts of separate packets through whole NICs: the middle of a message, and a row of short ones, are executed as a run, and whatever is
 * not the next packet of it is found out, counted, captured, subject to faults, or answered, as when all packets come one at a time.
 */
#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/psn.h"
#include "capture/capture.h"
#include "fault/inject.h"
#include "nic/internal.h"
#include "nic_harness.h"
#include "wire/crc/icrc.h"
#include "wire/ip.h"

void ur_suite_nic_rows(void);

#define LEN 16384 /* 64 packets */
#define MIDDLES 62
#define SEEN 0x5a /* of `kind`: the packet has not been parsed */
#define AT 20     /* the packet of the burst that is changed */

static struct nics h;
static struct nics_qp q[2];
static const struct ur_queue_ops *original;
static struct ur_queue_ops watched;
static void (*change)(struct ur_pkt *p);
static unsigned in_rows, bursts;

static unsigned watch_rx(struct ur_queue *queue, struct ur_pkt **pkts, unsigned n)
{
	unsigned got = original->rx(queue, pkts, n);

	for (unsigned i = 0; i < got; i++)
		pkts[i]->kind = SEEN;
	if (got > AT && change && !bursts++)
		change(pkts[AT]);
	return got;
}

static void watch_release(struct ur_queue *queue, struct ur_pkt **pkts, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		in_rows += pkts[i]->kind == SEEN;
	original->release(queue, pkts, n);
}

static const uint64_t *counters(unsigned nic)
{
	return h.n[nic].nic->counters.v;
}

static void begin(void (*fn)(struct ur_pkt *p))
{
	struct ur_queue *queue;

	nics_open(&h, 2);
	for (unsigned i = 0; i < 2; i++)
		nics_qp_create(&h, i, IBV_QPT_RC, &q[i]);
	for (unsigned i = 0; i < 2; i++)
		nics_qp_connect(&h, &q[i], &q[!i]);
	nics_run(&h, UR_NS_PER_MS); /* they ask for their neighbours */
	queue = ur_sim_port(h.sim, 1)->queue;
	original = queue->ops;
	watched = *original;
	watched.rx = watch_rx;
	watched.release = watch_release;
	queue->ops = &watched;
	change = fn;
	in_rows = bursts = 0;
}

static void end(void)
{
	ur_sim_port(h.sim, 1)->queue->ops = original;
	for (unsigned i = 0; i < 2; i++)
		nics_qp_destroy(&h, &q[i]);
	nics_close(&h);
}

/* LEN bytes go to NIC 1, which finds all packets waiting when it looks. */
static void transfer(enum ibv_wr_opcode op)
{
	const bool read = op == IBV_WR_RDMA_READ;
	const unsigned from = 0, to = 1;
	struct nics_qp *by = &q[read];

	for (unsigned i = 0; i < LEN; i++)
		h.n[from].mem[i] = (uint8_t)(i * 7 + i / 256);
	memset(h.n[to].mem + LEN, 0, LEN);
	if (op == IBV_WR_SEND)
		nics_recv(&h, &q[1], 77, LEN, LEN);
	CU_ASSERT_EQUAL(nics_post(&h, by, op, 5, read ? LEN : 0, LEN, !by->nic, read ? 0 : LEN), 0);
	if (read)
		nics_run(&h, 100); /* the request leaves */
	h.stopped = 1u << to;
	nics_run(&h, UR_NS_PER_MS / 10);
	h.stopped = 0;
	nics_run(&h, 2 * UR_NS_PER_S);
	nics_expect(&h, by->nic, 5, IBV_WC_SUCCESS);
	if (op == IBV_WR_SEND)
		nics_expect(&h, to, 77, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(h.n[to].mem + LEN, h.n[from].mem, LEN), 0);
}

/* What NIC 0 has sent and NIC 1 has not received. */
struct missing {
	uint64_t packets, bytes, roce;
};

static struct missing missing(void)
{
	const uint64_t *sent = counters(0), *got = counters(1);

	return (struct missing){sent[UR_C_TX_PACKETS] - got[UR_C_RX_PACKETS], sent[UR_C_TX_BYTES] - got[UR_C_RX_BYTES],
				sent[UR_C_TX_ROCE] - got[UR_C_RX_ROCE]};
}

static void expect_none_missing(const struct missing *before)
{
	const struct missing now = missing();

	CU_ASSERT_EQUAL(now.packets, before->packets);
	CU_ASSERT_EQUAL(now.bytes, before->bytes);
	CU_ASSERT_EQUAL(now.roce, before->roce);
}

static void row__middle_of_a_message(void)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ};

	for (unsigned i = 0; i < ur_array_size(ops); i++) {
		struct missing before;

		begin(NULL);
		before = missing();
		transfer(ops[i]);
		CU_ASSERT_EQUAL(in_rows, MIDDLES);
		expect_none_missing(&before);
		CU_ASSERT_EQUAL(counters(0)[UR_C_RETRANSMIT], 0);
		end();
	}
}

#define SHORT 128 /* bytes of a message of one packet */
#define MESSAGES 32

/* The same with messages of one packet each. */
static void transfer_short(enum ibv_wr_opcode op)
{
	for (unsigned i = 0; i < MESSAGES * SHORT; i++)
		h.n[0].mem[i] = (uint8_t)(i * 7 + i / 256);
	memset(h.n[1].mem + LEN, 0, LEN);
	for (unsigned i = 0; i < MESSAGES; i++) {
		const uint32_t off = i * SHORT;

		if (op == IBV_WR_SEND)
			nics_recv(&h, &q[1], 100 + i, LEN + off, SHORT);
		CU_ASSERT_EQUAL(nics_post(&h, &q[0], op, i, off, SHORT, 1, LEN + off), 0);
	}
	h.stopped = 2;
	nics_run(&h, UR_NS_PER_MS / 10);
	h.stopped = 0;
	nics_run(&h, 2 * UR_NS_PER_S);
	for (unsigned i = 0; i < MESSAGES; i++) {
		nics_expect(&h, 0, i, IBV_WC_SUCCESS);
		if (op == IBV_WR_SEND)
			CU_ASSERT_EQUAL(nics_expect(&h, 1, 100 + i, IBV_WC_SUCCESS).byte_len, SHORT);
	}
	CU_ASSERT_EQUAL(memcmp(h.n[1].mem + LEN, h.n[0].mem, MESSAGES * SHORT), 0);
}

static void row__short_messages(void)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_SEND};

	for (unsigned i = 0; i < ur_array_size(ops); i++) {
		struct missing before;

		begin(NULL);
		before = missing();
		transfer_short(ops[i]);
		CU_ASSERT_EQUAL(in_rows, MESSAGES - 1);
		expect_none_missing(&before);
		CU_ASSERT_EQUAL(counters(1)[i ? UR_C_RX_SEND : UR_C_RX_WRITE], MESSAGES);
		CU_ASSERT_EQUAL(counters(0)[UR_C_RETRANSMIT], 0);
		end();
	}
}

/* --- packets that do not belong in it --- */

static void fix_icrc(struct ur_pkt *p)
{
	uint32_t off = 14, len = p->len - 4 - off;

	ur_icrc_end(ur_icrc_begin(p->data + off, 4, len), p->data + off + len);
}

static void mac(struct ur_pkt *p)
{
	p->data[3] ^= 1;
}
static void ip_sum(struct ur_pkt *p)
{
	p->data[14 + 10] ^= 1;
}
static void ip_length(struct ur_pkt *p)
{
	ur_ip4_finish(p->data + 14, p->len - 14 - 1);
}
static void udp_length(struct ur_pkt *p)
{
	p->data[14 + 20 + 5] ^= 1;
}
static void cut(struct ur_pkt *p)
{
	p->len -= 8;
}
static void icrc(struct ur_pkt *p)
{
	p->data[p->len - 1] ^= 0x80;
}
static void payload(struct ur_pkt *p)
{
	p->data[100] ^= 4;
}

static void vlan(struct ur_pkt *p)
{
	memmove(p->data + 16, p->data + 12, p->len - 12);
	ur_put16(p->data + 12, UR_ETHERTYPE_VLAN);
	ur_put16(p->data + 14, 5);
	p->len += 4;
}

static void source(struct ur_pkt *p)
{
	p->data[14 + 15] ^= 8;
	ur_ip4_finish_again(p->data + 14);
	fix_icrc(p);
}

static void destination(struct ur_pkt *p)
{
	p->data[14 + 19] ^= 8;
	ur_ip4_finish_again(p->data + 14);
	fix_icrc(p);
}

static void martian(struct ur_pkt *p)
{
	memcpy(p->data + 14 + 12, p->data + 14 + 16, 4);
	ur_ip4_finish_again(p->data + 14);
	fix_icrc(p);
}

static void mark(struct ur_pkt *p)
{
	p->data[14 + 1] |= UR_ECN_CE;
	ur_ip4_finish_again(p->data + 14);
}

static void fragment(struct ur_pkt *p)
{
	p->data[14 + 6] |= 0x20;
	ur_ip4_finish_again(p->data + 14);
	fix_icrc(p);
}

static void slot(struct ur_pkt *p)
{
	p->data[42 + 5] ^= 0x40;
	fix_icrc(p);
}

static void no_qp(struct ur_pkt *p)
{
	p->data[42 + 6] ^= 0x40;
	fix_icrc(p);
}

static void version(struct ur_pkt *p)
{
	p->data[42 + 1] |= 1;
	fix_icrc(p);
}

static const struct intruder {
	const char *what;
	void (*change)(struct ur_pkt *p);
	enum ur_counter counter; /* that it raises by one */
	bool lost;
} intruders[] = {
	{"MAC", mac, UR_C_RX_OTHER_HOST, true},
	{"VLAN", vlan, UR_C_DROP_VLAN, true},
	{"IPv4 checksum", ip_sum, UR_C_DROP_BAD_IP, true},
	{"IPv4 length", ip_length, UR_C_DROP_BAD_UDP, true},
	{"fragment", fragment, UR_C_DROP_BAD_IP, true},
	{"UDP length", udp_length, UR_C_DROP_BAD_UDP, true},
	{"cut", cut, UR_C_DROP_TRUNCATED, true},
	{"ICRC", icrc, UR_C_ICRC, true},
	{"payload", payload, UR_C_ICRC, true},
	{"source", source, UR_C_DROP_SOURCE, true},
	{"destination", destination, UR_C_RX_OTHER_HOST, true},
	{"martian", martian, UR_C_DROP_MARTIAN, true},
	{"mark", mark, UR_C_CE_MARKED, false},
	{"slot", slot, UR_C_RX_OTHER_SLOT, true},
	{"QP", no_qp, UR_C_DROP_QPN, true},
	{"version", version, UR_C_DROP_TVER, true},
};

static void intruder__is_found_out(void)
{
	for (unsigned i = 0; i < 3 * ur_array_size(intruders); i++) {
		const struct intruder *in = &intruders[i / 3];
		uint64_t before;

		begin(in->change);
		before = counters(1)[in->counter];
		if (i % 3)
			transfer_short(i % 3 == 1 ? IBV_WR_RDMA_WRITE : IBV_WR_SEND);
		else
			transfer(IBV_WR_RDMA_WRITE);
		if (counters(1)[in->counter] != before + 1 || !counters(0)[UR_C_RETRANSMIT] == in->lost)
			CU_FAIL(in->what);
		CU_ASSERT_TRUE(bursts && in_rows >= AT - 2);
		end();
	}
}

/* Two QPs send in turn: neither loses anything. */
static void intruder__another_qp(void)
{
	struct nics_qp other[2];

	begin(NULL);
	for (unsigned i = 0; i < 2; i++)
		nics_qp_create(&h, i, IBV_QPT_RC, &other[i]);
	for (unsigned i = 0; i < 2; i++)
		nics_qp_connect(&h, &other[i], &other[!i]);
	for (unsigned i = 0; i < LEN; i++)
		h.n[0].mem[i] = (uint8_t)(i * 5 + i / 256);
	h.stopped = 2;
	CU_ASSERT_EQUAL(nics_post(&h, &q[0], IBV_WR_RDMA_WRITE, 1, 0, LEN, 1, LEN), 0);
	CU_ASSERT_EQUAL(nics_post(&h, &other[0], IBV_WR_RDMA_WRITE, 2, 0, LEN, 1, 2 * LEN), 0);
	nics_run(&h, UR_NS_PER_MS / 10);
	h.stopped = 0;
	nics_run(&h, UR_NS_PER_S);
	nics_expect(&h, 0, 1, IBV_WC_SUCCESS);
	nics_expect(&h, 0, 2, IBV_WC_SUCCESS);
	for (unsigned i = 1; i <= 2; i++)
		CU_ASSERT_EQUAL(memcmp(h.n[1].mem + i * LEN, h.n[0].mem, LEN), 0);
	CU_ASSERT_EQUAL(counters(0)[UR_C_RETRANSMIT], 0);
	CU_ASSERT_TRUE(in_rows > MIDDLES);
	for (unsigned i = 0; i < 2; i++)
		nics_qp_destroy(&h, &other[i]);
	end();
}

/* --- who wants to see every packet: they are executed in rows all the same --- */

/* How many packets stand in the file: WRITEs in the order of their PSNs, and others. */
static uint64_t count_captured(const char *path)
{
	struct pcap_pkthdr *header;
	const unsigned char *bytes;
	char err[PCAP_ERRBUF_SIZE];
	pcap_t *file = pcap_open_offline(path, err);
	uint32_t psn = 0;
	uint64_t n = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	for (; pcap_next_ex(file, &header, &bytes) == 1; n++) {
		if (header->len <= 256)
			continue;
		CU_ASSERT_TRUE(!psn || ur_get24(bytes + 42 + 9) == ((psn + 1) & UR_PSN_MASK));
		psn = ur_get24(bytes + 42 + 9);
	}
	pcap_close(file);
	return n;
}

static void watched__by_a_capture(void)
{
	char path[] = "/tmp/uroce-test-rows-XXXXXX";
	const int fd = mkstemp(path);
	struct ur_capture *capture;
	uint64_t lost, before;

	CU_ASSERT_FATAL(fd >= 0);
	close(fd);
	begin(NULL);
	CU_ASSERT_EQUAL_FATAL(ur_capture_open(path, "eth0", h.now, &capture), 0);
	ur_nic_set_capture(h.n[1].nic, capture);
	before = counters(1)[UR_C_RX_PACKETS] + counters(1)[UR_C_TX_PACKETS];
	transfer(IBV_WR_RDMA_WRITE);
	CU_ASSERT_TRUE(in_rows >= MIDDLES - 2);
	before = counters(1)[UR_C_RX_PACKETS] + counters(1)[UR_C_TX_PACKETS] - before;
	CU_ASSERT_TRUE(before >= MIDDLES + 2);
	CU_ASSERT_EQUAL(ur_capture_close(h.n[1].nic->capture, &lost), 0);
	CU_ASSERT_EQUAL(lost, 0);
	CU_ASSERT_EQUAL(count_captured(path), before);
	unlink(path);
	ur_nic_set_capture(h.n[1].nic, NULL);
	end();
}

static void watched__by_faults(void)
{
	static struct ur_fault_spec spec = {.dir = UR_FAULT_RX, .seed = 5, .nrules = 1};
	unsigned at;

	CU_ASSERT_PTR_NULL_FATAL(ur_fault_rule_parse("drop rx opcode=WRITE_MIDDLE nth=20", &spec.rules[0], &at));
	begin(NULL);
	CU_ASSERT_EQUAL_FATAL(ur_nic_set_faults(h.n[1].nic, &spec), 0);
	transfer(IBV_WR_RDMA_WRITE);
	CU_ASSERT_EQUAL(counters(1)[UR_C_FAULT_RULE1], 1);
	CU_ASSERT_TRUE(counters(0)[UR_C_RETRANSMIT] > 0);
	CU_ASSERT_TRUE(in_rows > MIDDLES / 2);
	CU_ASSERT_EQUAL_FATAL(ur_nic_set_faults(h.n[1].nic, NULL), 0);
	end();
}

void ur_suite_nic_rows(void)
{
	CU_pSuite s = CU_add_suite("nic_rows", NULL, NULL);

	CU_ADD_TEST(s, row__middle_of_a_message);
	CU_ADD_TEST(s, row__short_messages);
	CU_ADD_TEST(s, intruder__is_found_out);
	CU_ADD_TEST(s, intruder__another_qp);
	CU_ADD_TEST(s, watched__by_a_capture);
	CU_ADD_TEST(s, watched__by_faults);
}
