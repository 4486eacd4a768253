/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs of one NIC that are connected to one another, or to themselves: nothing but neighbour discovery touches the wire. */
#include <pcap/pcap.h>
#include <stdlib.h>
#include <unistd.h>

#include "analyze/frame/dissect.h"
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
		nics_qp_create(&h, 0, IBV_QPT_RC, &a);
		nics_qp_create(&h, 1, IBV_QPT_RC, &b);
		nics_qp_connect(&h, &a, &b);
		nics_qp_connect(&h, &b, &a);
		q = h.n[0].nic->port->queue;
		q->patience_ns = t[i].patience;
		ops = q->ops;
		stopped = *ops;
		stopped.tx = take_nothing;
		q->ops = &stopped;
		CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_RDMA_WRITE, 1, 100, 20000, 1, 32768), 0);
		h.step = 10 * UR_NS_PER_US;
		nics_run(&h, t[i].stands_still);
		h.step = 0;
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

void ur_suite_loopback(void)
{
	CU_pSuite s = CU_add_suite("loopback", NULL, NULL);

	CU_ADD_TEST(s, connected__to_another_and_to_itself);
	CU_ADD_TEST(s, connected__read_from_itself);
	CU_ADD_TEST(s, connected__within_the_round_that_sends);
	CU_ADD_TEST(s, datagrams__to_another_and_to_itself);
	CU_ADD_TEST(s, local__is_counted_and_captured);
	CU_ADD_TEST(s, faults__on_the_way_to_ourselves);
	CU_ADD_TEST(s, wire__patience);
}
