/* SPDX-License-Identifier: BSD-3-Clause */
/* Who looks at the packets of a received train before it is executed: fault rules, traces and captures. It stays one thing. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/trace.h"
#include "capture/capture.h"
#include "fault/inject.h"
#include "nic_harness.h"
#include "wire/train.h"

void ur_suite_nic_watched(void);

#define LEN 16384 /* 64 packets */

static struct nics h;
static struct nics_qp q[2];

#define REMEMBERED 64

static struct ur_queue_ops looking;
static const struct ur_queue_ops *unseen;
static struct {
	struct ur_pkt *p;
	uint8_t bytes[8192];
} remembered[REMEMBERED];
static unsigned in_one_go, apart;

/* The bytes of a train that nobody writes to who does not look at its packets: headers are laid over the end of the packet before. */
static uint32_t inner(const struct ur_pkt *p)
{
	return p->len - p->bth_off - 2 * p->stride;
}

static unsigned remember_trains(struct ur_queue *queue, struct ur_pkt **pkts, unsigned n)
{
	const unsigned got = unseen->rx(queue, pkts, n);

	for (unsigned i = 0; i < got; i++)
		for (unsigned k = 0; k < REMEMBERED && pkts[i]->stride && ur_train_count(pkts[i]) > 3; k++) {
			if (remembered[k].p)
				continue;
			CU_ASSERT_FATAL(inner(pkts[i]) <= sizeof(remembered[k].bytes));
			remembered[k].p = pkts[i];
			memcpy(remembered[k].bytes, pkts[i]->data + pkts[i]->bth_off, inner(pkts[i]));
			break;
		}
	return got;
}

static void compare_trains(struct ur_queue *queue, struct ur_pkt **pkts, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < REMEMBERED; k++) {
			if (remembered[k].p != pkts[i])
				continue;
			if (memcmp(remembered[k].bytes, pkts[i]->data + pkts[i]->bth_off, inner(pkts[i])) == 0)
				in_one_go++;
			else
				apart++;
			remembered[k].p = NULL;
		}
	unseen->release(queue, pkts, n);
}

static unsigned rx_events;
static uint32_t rx_hash;

static void note_event(struct ur_trace *t, enum ur_trace_id id, const uint64_t v[UR_TRACE_FIELDS])
{
	(void)t;
	if (id != UR_TRACE_RX)
		return;
	rx_events++;
	for (unsigned i = 0; i < UR_TRACE_N_RX; i++)
		rx_hash = (rx_hash ^ (uint32_t)v[i]) * 16777619u;
}

/* A WRITE of LEN bytes. */
static void transfer(void)
{
	memset(h.n[1].mem + LEN, 0, LEN);
	CU_ASSERT_EQUAL(nics_post(&h, &q[0], IBV_WR_RDMA_WRITE, 1, 0, LEN, 1, LEN), 0);
	nics_run(&h, 2 * UR_NS_PER_S);
	nics_expect(&h, 0, 1, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(h.n[1].mem + LEN, h.n[0].mem, LEN), 0);
}

/* WRITEs while NIC 1 has a look at what comes; `cut`: in packets instead of trains. */
static void watch(const char *faults, struct ur_trace *trace, struct ur_capture *capture, bool cut)
{
	struct ur_fault_spec spec;
	struct ur_queue *queue;
	char err[512];

	nics_open_bare(&h, 2, 0);
	nics_qp_create(&h, 0, IBV_QPT_RC, &q[0]);
	nics_qp_create(&h, 1, IBV_QPT_RC, &q[1]);
	nics_qp_connect(&h, &q[0], &q[1]);
	nics_qp_connect(&h, &q[1], &q[0]);
	nics_run(&h, UR_NS_PER_MS); /* they ask for their neighbours */
	if (cut)
		ur_sim_port(h.sim, 0)->queue->train_pkts = 1;
	CU_ASSERT_EQUAL_FATAL(ur_fault_parse(faults, &spec, err, sizeof(err)), 0);
	CU_ASSERT_EQUAL_FATAL(ur_nic_set_faults(h.n[1].nic, *faults ? &spec : NULL), 0);
	ur_nic_set_trace(h.n[1].nic, trace);
	ur_nic_set_capture(h.n[1].nic, capture);
	queue = ur_sim_port(h.sim, 1)->queue;
	unseen = queue->ops;
	looking = *unseen;
	looking.rx = remember_trains;
	looking.release = compare_trains;
	queue->ops = &looking;
	in_one_go = apart = rx_events = rx_hash = 0;
	for (unsigned i = 0; i < 10; i++)
		transfer();
	queue->ops = unseen;
	ur_nic_set_capture(h.n[1].nic, NULL);
	ur_nic_set_trace(h.n[1].nic, NULL);
	nics_qp_destroy(&h, &q[0]);
	nics_qp_destroy(&h, &q[1]);
	nics_close(&h);
}

/* Who looks at the packets of a train before it is executed does not keep it from being executed in one go. */
static void watched__in_one_go(void)
{
	static struct ur_trace trace = {.event = note_event};
	char path[] = "/tmp/uroce-test-trains-XXXXXX";
	const int fd = mkstemp(path);
	struct ur_capture *capture;
	unsigned usual;
	uint64_t lost;

	CU_ASSERT_FATAL(fd >= 0);
	close(fd);
	watch("", NULL, NULL, false);
	usual = in_one_go;
	CU_ASSERT_TRUE(usual > 20 && apart == 0);
	watch("drop psn=0x7fffff", NULL, NULL, false);
	CU_ASSERT_TRUE(in_one_go == usual && apart == 0);
	watch("", &trace, NULL, false);
	CU_ASSERT_TRUE(in_one_go == usual && apart == 0);
	CU_ASSERT_EQUAL_FATAL(ur_capture_open(path, "eth0", 0, &capture), 0);
	watch("", NULL, capture, false);
	CU_ASSERT_EQUAL(ur_capture_close(capture, &lost), 0);
	CU_ASSERT_TRUE(in_one_go == usual && apart == 0);
	CU_ASSERT_EQUAL(lost, 0);
	unlink(path);
}

/* The same packets are told of, whether they come in trains or not. */
static void trace__packets_of_trains(void)
{
	static struct ur_trace trace = {.event = note_event};
	unsigned events, hash;

	watch("", &trace, NULL, true);
	events = rx_events;
	hash = rx_hash;
	CU_ASSERT_TRUE(in_one_go == 0 && events >= 10 * LEN / 256);
	watch("", &trace, NULL, false);
	CU_ASSERT_TRUE(in_one_go > 20 && rx_events == events && rx_hash == hash);
}

void ur_suite_nic_watched(void)
{
	CU_pSuite s = CU_add_suite("nic_watched", NULL, NULL);

	CU_ADD_TEST(s, watched__in_one_go);
	CU_ADD_TEST(s, trace__packets_of_trains);
}
