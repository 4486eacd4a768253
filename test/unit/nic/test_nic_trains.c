/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trains through whole NICs: what is counted and captured of them, faults that hit single packets, trains for another process of the
 * device, and trains that a port does not take.
 */
#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyze/frame/dissect.h"
#include "base/bytes.h"
#include "capture/capture.h"
#include "fault/inject.h"
#include "nic/internal.h"
#include "nic_harness.h"
#include "wire/ip.h"
#include "wire/train.h"

void ur_suite_nic_trains(void);

#define LEN 16384 /* 64 packets */
#define HEADERS4 (14 + 20 + 8)

static struct nics h;
static struct nics_qp q[2];

static void connect_qps(unsigned a, unsigned b)
{
	nics_qp_create(&h, a, IBV_QPT_RC, &q[0]);
	nics_qp_create(&h, b, IBV_QPT_RC, &q[1]);
	nics_qp_connect(&h, &q[0], &q[1]);
	nics_qp_connect(&h, &q[1], &q[0]);
	nics_run(&h, UR_NS_PER_MS); /* they ask for their neighbours */
}

static void end(void)
{
	nics_qp_destroy(&h, &q[0]);
	nics_qp_destroy(&h, &q[1]);
	nics_close(&h);
}

static const uint64_t *counters(unsigned nic)
{
	return h.n[nic].nic->counters.v;
}

/* A WRITE, a SEND and a READ of LEN bytes by q[0], with the memory behind what they read from; all of them arrive. */
static void exchange(void)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ};
	const unsigned a = q[0].nic, b = q[1].nic;

	for (unsigned i = 0; i < ur_array_size(ops); i++) {
		const bool read = ops[i] == IBV_WR_RDMA_READ;
		const unsigned from = read ? b : a, to = read ? a : b;

		memset(h.n[to].mem + LEN, 0, LEN);
		if (ops[i] == IBV_WR_SEND)
			nics_recv(&h, &q[1], 77, LEN, LEN);
		CU_ASSERT_EQUAL(nics_post(&h, &q[0], ops[i], i, read ? LEN : 0, LEN, b, read ? 0 : LEN), 0);
		nics_run(&h, 2 * UR_NS_PER_S);
		nics_expect(&h, a, i, IBV_WC_SUCCESS);
		if (ops[i] == IBV_WR_SEND)
			nics_expect(&h, b, 77, IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(memcmp(h.n[to].mem + LEN, h.n[from].mem, LEN), 0);
	}
}

/* --- counters --- */

struct totals {
	uint64_t tx_packets, tx_bytes, tx_roce, rx_packets, rx_bytes, rx_roce;
};

static struct totals totals(unsigned nic)
{
	const uint64_t *c = counters(nic);

	return (struct totals){c[UR_C_TX_PACKETS], c[UR_C_TX_BYTES], c[UR_C_TX_ROCE],
			       c[UR_C_RX_PACKETS], c[UR_C_RX_BYTES], c[UR_C_RX_ROCE]};
}

/* A train counts as its packets do: the numbers of both ends agree with one another and with the wire's. */
static void counters__of_packets(void)
{
	for (unsigned bare = 0; bare <= 2; bare += 2) {
		struct totals t[2];
		uint64_t sent;

		nics_open_bare(&h, 2, bare);
		connect_qps(0, 1);
		sent = ur_sim_stats(h.sim)->sent;
		for (unsigned i = 0; i < 2; i++)
			t[i] = totals(i);
		exchange();
		for (unsigned i = 0; i < 2; i++) {
			struct totals now = totals(i);

			t[i] = (struct totals){now.tx_packets - t[i].tx_packets, now.tx_bytes - t[i].tx_bytes, now.tx_roce - t[i].tx_roce,
					       now.rx_packets - t[i].rx_packets, now.rx_bytes - t[i].rx_bytes, now.rx_roce - t[i].rx_roce};
		}
		CU_ASSERT_TRUE(ur_sim_stats(h.sim)->trains > 12);
		CU_ASSERT_TRUE(bare || ur_sim_stats(h.sim)->joined >= 8);
		for (unsigned i = 0; i < 2; i++) {
			CU_ASSERT_EQUAL(t[i].rx_packets, t[!i].tx_packets);
			CU_ASSERT_EQUAL(t[i].rx_bytes + (bare ? HEADERS4 * t[i].rx_packets : 0), t[!i].tx_bytes);
			CU_ASSERT_EQUAL(t[i].rx_roce, t[!i].tx_roce);
		}
		CU_ASSERT_EQUAL(ur_sim_stats(h.sim)->sent - sent, t[0].tx_packets + t[1].tx_packets);
		CU_ASSERT_TRUE(t[0].tx_roce >= 2 * 64 && t[1].tx_roce >= 64);
		for (unsigned i = 0; i < 2; i++)
			CU_ASSERT_TRUE(!counters(i)[UR_C_ICRC] && !counters(i)[UR_C_RETRANSMIT] && !counters(i)[UR_C_TX_DROPPED]);
		end();
	}
}

/* --- captures --- */

/* Every packet of the file is whole and right; returns how many went in that direction. */
static unsigned look_into(const char *path, unsigned *data)
{
	char err[PCAP_ERRBUF_SIZE];
	pcap_t *file = pcap_open_offline(path, err);
	struct pcap_pkthdr *header;
	const unsigned char *bytes;
	unsigned n = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	while (pcap_next_ex(file, &header, &bytes) == 1) {
		struct ur_an_frame f = {.data = bytes, .have = header->caplen, .len = header->len, .link = UR_AN_ETHERNET, .number = 1};
		struct an_pkt p;

		n++;
		if (ur_get16(bytes + 12) == UR_ETHERTYPE_ARP)
			continue;
		CU_ASSERT_TRUE(an_dissect(&f, &p));
		CU_ASSERT_PTR_NULL(p.wrong);
		CU_ASSERT_EQUAL(p.icrc, AN_ICRC_OK);
		*data += header->len > 256;
	}
	pcap_close(file);
	unlink(path);
	return n;
}

/* Each packet of a train stands in the recording by itself, at both ends. */
static void capture__packets_of_trains(void)
{
	for (unsigned bare = 0; bare <= 2; bare += 2) {
		char path[2][64];
		uint64_t packets[2];

		nics_open_bare(&h, 2, bare);
		connect_qps(0, 1);
		for (unsigned i = 0; i < 2; i++) {
			struct ur_capture *capture;
			int fd;

			strcpy(path[i], "/tmp/uroce-test-trains-XXXXXX");
			fd = mkstemp(path[i]);
			CU_ASSERT_FATAL(fd >= 0);
			close(fd);
			packets[i] = counters(i)[UR_C_TX_PACKETS] + counters(i)[UR_C_RX_PACKETS];
			CU_ASSERT_EQUAL_FATAL(ur_capture_open(path[i], "eth0", h.now, &capture), 0);
			ur_nic_set_capture(h.n[i].nic, capture);
		}
		exchange();
		CU_ASSERT_TRUE(ur_sim_stats(h.sim)->trains > 12);
		for (unsigned i = 0; i < 2; i++) {
			unsigned data = 0;
			uint64_t lost;

			CU_ASSERT_EQUAL(ur_capture_close(h.n[i].nic->capture, &lost), 0);
			CU_ASSERT_EQUAL(lost, 0);
			ur_nic_set_capture(h.n[i].nic, NULL);
			packets[i] = counters(i)[UR_C_TX_PACKETS] + counters(i)[UR_C_RX_PACKETS] - packets[i];
			CU_ASSERT_EQUAL(look_into(path[i], &data), packets[i]);
			CU_ASSERT_EQUAL(data, 3 * LEN / 256);
		}
		end();
	}
}

/* --- faults --- */

/* Only the receiver has faults: trains come, of which single packets are lost, doubled, delayed and damaged. */
static void faults__hit_packets_of_received_trains(void)
{
	static const struct ur_fault_spec spec = {
		.drop = 30000, .dup = 30000, .reorder = 30000, .corrupt = 30000, .dir = UR_FAULT_RX, .seed = 5};

	for (unsigned bare = 0; bare <= 2; bare += 2) {
		nics_open_bare(&h, 2, bare);
		connect_qps(0, 1);
		CU_ASSERT_EQUAL_FATAL(ur_nic_set_faults(h.n[1].nic, &spec), 0);
		for (unsigned i = 0; i < 20; i++)
			exchange();
		CU_ASSERT_TRUE(ur_sim_stats(h.sim)->trains > 100);
		CU_ASSERT_TRUE(bare || ur_sim_stats(h.sim)->joined > 50);
		CU_ASSERT_TRUE(counters(1)[UR_C_ICRC] > 10);
		CU_ASSERT_TRUE(counters(0)[UR_C_RETRANSMIT] > 10);
		CU_ASSERT_EQUAL(counters(0)[UR_C_ICRC], 0);
		end();
	}
}

/* A rule names one packet of a train; the others arrive. */
static void faults__rule_takes_one_packet(void)
{
	static struct ur_fault_spec spec = {.dir = UR_FAULT_RX, .seed = 5};
	struct ur_fault_rule r;
	unsigned at;

	CU_ASSERT_PTR_NULL_FATAL(ur_fault_rule_parse("drop rx opcode=WRITE_MIDDLE nth=20", &r, &at));
	spec.rules[0] = r;
	spec.nrules = 1;
	for (unsigned bare = 0; bare <= 2; bare += 2) {
		nics_open_bare(&h, 2, bare);
		connect_qps(0, 1);
		CU_ASSERT_EQUAL_FATAL(ur_nic_set_faults(h.n[1].nic, &spec), 0);
		exchange();
		CU_ASSERT_TRUE(ur_sim_stats(h.sim)->trains > 4);
		CU_ASSERT_TRUE(counters(0)[UR_C_RETRANSMIT] > 0);
		CU_ASSERT_EQUAL(counters(1)[UR_C_FAULT_RULE1], 1);
		end();
	}
}

static struct ur_queue_ops counting;
static const struct ur_queue_ops *uncounted;
static unsigned copies;

static unsigned count_alloc(struct ur_queue *queue, struct ur_pkt **pkts, unsigned n)
{
	copies += n;
	return uncounted->alloc(queue, pkts, n);
}

struct cost {
	unsigned long trains; /* sent */
	unsigned copies;      /* buffers that the receiver has taken */
	uint64_t packets;     /* sent by both */
};

/* What 20 WRITEs of LEN bytes take while both have the faults of this text. */
static struct cost cost_with(unsigned bare, const char *text)
{
	struct ur_fault_spec spec;
	struct ur_queue *queue;
	char err[512];
	struct cost c;

	nics_open_bare(&h, 2, bare);
	connect_qps(0, 1);
	CU_ASSERT_EQUAL_FATAL(ur_fault_parse(text, &spec, err, sizeof(err)), 0);
	for (unsigned i = 0; i < 2; i++)
		CU_ASSERT_EQUAL_FATAL(ur_nic_set_faults(h.n[i].nic, *text ? &spec : NULL), 0);
	queue = ur_sim_port(h.sim, 1)->queue;
	uncounted = queue->ops;
	counting = *uncounted;
	counting.alloc = count_alloc;
	queue->ops = &counting;
	c = (struct cost){.trains = ur_sim_stats(h.sim)->trains, .packets = counters(0)[UR_C_TX_PACKETS] + counters(1)[UR_C_TX_PACKETS]};
	copies = 0;
	for (unsigned i = 0; i < 20; i++) {
		CU_ASSERT_EQUAL(nics_post(&h, &q[0], IBV_WR_RDMA_WRITE, i, 0, LEN, 1, LEN), 0);
		nics_run(&h, 2 * UR_NS_PER_S);
		nics_expect(&h, 0, i, IBV_WC_SUCCESS);
	}
	CU_ASSERT_EQUAL(memcmp(h.n[1].mem + LEN, h.n[0].mem, LEN), 0);
	queue->ops = uncounted;
	c.trains = ur_sim_stats(h.sim)->trains - c.trains;
	c.copies = copies;
	c.packets = counters(0)[UR_C_TX_PACKETS] + counters(1)[UR_C_TX_PACKETS] - c.packets;
	end();
	return c;
}

/* Faults that hit nothing cost neither trains nor copies, at either end. */
static void faults__leave_trains_whole(void)
{
	static const char *const texts[] = {"drop psn=0x7fffff", "drop tx psn=+500000,dup rx msg=4000",
					    "drop=0.0001%,corrupt=0.0001%,seed=5",
					    "delay opcode=CNP delay=1ms,hold opcode=UD_SEND_ONLY until opcode=CNP"};

	for (unsigned bare = 0; bare <= 2; bare += 2) {
		const struct cost none = cost_with(bare, "");

		CU_ASSERT_TRUE(none.trains >= 80);
		for (unsigned i = 0; i < ur_array_size(texts); i++) {
			const struct cost c = cost_with(bare, texts[i]);

			if (c.trains != none.trains || c.copies != none.copies || c.packets != none.packets)
				printf("%s: %lu trains and %u copies, without faults %lu and %u\n", texts[i], c.trains, c.copies,
				       none.trains, none.copies);
			CU_ASSERT_EQUAL(c.trains, none.trains);
			CU_ASSERT_EQUAL(c.copies, none.copies);
			CU_ASSERT_EQUAL(c.packets, none.packets);
		}
	}
}

/* The sender has faults: of the trains that are hit the other packets arrive, as right as they were. */
static void faults__hit_packets_of_sent_trains(void)
{
	static const char *const texts[] = {"drop=3%,dup=3%,reorder=3%,corrupt=3%,dir=tx,seed=5", "drop chance=10%,seed=6",
					    "reorder chance=10% by=3"};

	for (unsigned i = 0; i < 2 * ur_array_size(texts); i++) {
		const bool bare = i & 1, damages = i / 2 == 0;
		struct ur_fault_spec spec;
		char err[512];

		nics_open_bare(&h, 2, bare ? 2 : 0);
		connect_qps(0, 1);
		CU_ASSERT_EQUAL_FATAL(ur_fault_parse(texts[i / 2], &spec, err, sizeof(err)), 0);
		CU_ASSERT_EQUAL_FATAL(ur_nic_set_faults(h.n[0].nic, &spec), 0);
		for (unsigned k = 0; k < 20; k++)
			exchange();
		CU_ASSERT_TRUE(ur_sim_stats(h.sim)->trains > 100);
		CU_ASSERT_EQUAL(ur_sim_stats(h.sim)->bad_train, 0);
		CU_ASSERT_TRUE(counters(0)[UR_C_FAULT_DROP] + counters(0)[UR_C_FAULT_REORDER] > 50);
		CU_ASSERT_TRUE(damages || counters(1)[UR_C_ICRC] == 0);
		CU_ASSERT_TRUE(counters(0)[UR_C_TX_DROPPED] == 0 && counters(0)[UR_C_ICRC] == 0);
		end();
	}
}

/* --- headers of a train --- */

static struct ur_queue_ops altered;
static const struct ur_queue_ops *original;
static void (*alter)(uint8_t *frame);

static void for_another_mac(uint8_t *frame)
{
	frame[5] ^= 0x40;
}

static void for_another_address(uint8_t *frame)
{
	frame[14 + 19] = 77;
}

static void from_ourselves(uint8_t *frame)
{
	memcpy(frame + 14 + 12, frame + 14 + 16, 4);
}

static void marked(uint8_t *frame)
{
	frame[15] |= UR_ECN_CE;
}

/* Trains whose one set of headers is another than was sent. */
static unsigned receive_altered(struct ur_queue *queue, struct ur_pkt **pkts, unsigned n)
{
	unsigned got = original->rx(queue, pkts, n);
	struct ur_counters c = {.v = {0}};

	for (unsigned i = 0; i < got; i++) {
		if (!pkts[i]->stride)
			continue;
		alter(pkts[i]->data);
		ur_ip4_finish_again(pkts[i]->data + 14);
		CU_ASSERT_TRUE(ur_frame_parse(pkts[i], &c));
	}
	return got;
}

/* What a NIC asks of the headers of a packet, it asks of those of a train: each of its packets counts, and none is executed. */
static void headers__hold_for_all_packets(void)
{
	static const struct {
		void (*alter)(uint8_t *frame);
		enum ur_counter why;
		bool arrives;
	} t[] = {
		{for_another_mac, UR_C_RX_OTHER_HOST, false},
		{for_another_address, UR_C_ICRC, false}, /* which covers addresses */
		{from_ourselves, UR_C_ICRC, false},
		{marked, UR_C_CE_MARKED, true},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ur_queue *queue;
		uint64_t before;

		nics_open_bare(&h, 2, 0);
		connect_qps(0, 1);
		queue = ur_sim_port(h.sim, 1)->queue;
		original = queue->ops;
		altered = *original;
		altered.rx = receive_altered;
		alter = t[i].alter;
		before = counters(1)[t[i].why];
		queue->ops = &altered;
		memset(h.n[1].mem + LEN, 0, LEN);
		CU_ASSERT_EQUAL(nics_post(&h, &q[0], IBV_WR_RDMA_WRITE, 1, 0, LEN, 1, LEN), 0);
		nics_run(&h, 20 * UR_NS_PER_US);
		CU_ASSERT_TRUE(ur_sim_stats(h.sim)->joined >= 4);
		CU_ASSERT_TRUE(counters(1)[t[i].why] - before >= 64);
		CU_ASSERT_EQUAL(memcmp(h.n[1].mem + LEN, h.n[0].mem, LEN) == 0, t[i].arrives);
		queue->ops = original;
		nics_run(&h, 2 * UR_NS_PER_S);
		nics_expect(&h, 0, 1, IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(memcmp(h.n[1].mem + LEN, h.n[0].mem, LEN), 0);
		end();
	}
}

/* --- another process --- */

static struct ur_queue_ops deaf;

static unsigned receive_nothing(struct ur_queue *queue, struct ur_pkt **pkts, unsigned n)
{
	unsigned got = original->rx(queue, pkts, n);

	ur_pkts_release(pkts, got);
	return 0;
}

/* The kernel gives a socket what is for another process: each packet reaches that, and the trains for the socket's own stay with it. */
static void slots__train_for_another_process(void)
{
	nics_open_bare_host(&h, 3, 2);
	nics_mail_open(&h, 1024);
	for (unsigned i = 0; i < 2; i++)
		ur_sim_port(h.sim, i)->queue->caps |= UR_QUEUE_STEERED;
	original = ur_sim_port(h.sim, 1)->queue->ops;
	deaf = *original;
	deaf.rx = receive_nothing;
	ur_sim_port(h.sim, 1)->queue->ops = &deaf;
	connect_qps(2, 1);
	exchange();
	CU_ASSERT_TRUE(ur_sim_stats(h.sim)->trains > 8);
	CU_ASSERT_TRUE(nics_mail[1].sent >= 2 * 64);
	CU_ASSERT_EQUAL(counters(0)[UR_C_RX_OTHER_SLOT], nics_mail[1].sent);
	CU_ASSERT_EQUAL(counters(1)[UR_C_RX_ROCE], nics_mail[1].sent);
	CU_ASSERT_EQUAL(counters(1)[UR_C_ICRC] + counters(2)[UR_C_ICRC] + counters(2)[UR_C_RETRANSMIT], 0);
	nics_qp_destroy(&h, &q[0]);
	nics_qp_destroy(&h, &q[1]);
	connect_qps(2, 0);
	nics_mail[1].sent = 0;
	exchange();
	CU_ASSERT_EQUAL(nics_mail[1].sent, 0);
	CU_ASSERT_EQUAL(counters(0)[UR_C_ICRC] + counters(2)[UR_C_RETRANSMIT], 0);
	nics_mail_close(&h);
	end();
}

/* --- a port that takes nothing --- */

static unsigned take_nothing(struct ur_queue *queue, struct ur_pkt **pkts, unsigned n)
{
	(void)queue, (void)pkts, (void)n;
	return 0;
}

/* What is given up counts in packets, too; and everything goes on once the port takes something again. */
static void backlog__counts_packets(void)
{
	static struct ur_queue_ops stuck;
	struct ur_queue *queue;
	uint64_t sent;

	nics_open_bare(&h, 2, 2);
	connect_qps(0, 1);
	queue = ur_sim_port(h.sim, 0)->queue;
	original = queue->ops;
	stuck = *original;
	stuck.tx = take_nothing;
	queue->ops = &stuck;
	sent = counters(0)[UR_C_TX_PACKETS];
	CU_ASSERT_EQUAL(nics_post(&h, &q[0], IBV_WR_RDMA_WRITE, 1, 0, LEN, 1, LEN), 0);
	nics_run(&h, 5 * UR_NS_PER_MS);
	CU_ASSERT_TRUE(counters(0)[UR_C_TX_PACKETS] - sent >= 64);
	CU_ASSERT_EQUAL(counters(0)[UR_C_TX_DROPPED], counters(0)[UR_C_TX_PACKETS] - sent);
	queue->ops = original;
	nics_run(&h, 2 * UR_NS_PER_S);
	nics_expect(&h, 0, 1, IBV_WC_SUCCESS);
	exchange();
	end();
}

void ur_suite_nic_trains(void)
{
	CU_pSuite s = CU_add_suite("nic_trains", NULL, NULL);

	CU_ADD_TEST(s, counters__of_packets);
	CU_ADD_TEST(s, capture__packets_of_trains);
	CU_ADD_TEST(s, faults__hit_packets_of_received_trains);
	CU_ADD_TEST(s, faults__rule_takes_one_packet);
	CU_ADD_TEST(s, faults__leave_trains_whole);
	CU_ADD_TEST(s, faults__hit_packets_of_sent_trains);
	CU_ADD_TEST(s, headers__hold_for_all_packets);
	CU_ADD_TEST(s, slots__train_for_another_process);
	CU_ADD_TEST(s, backlog__counts_packets);
}
