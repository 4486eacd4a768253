/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Application threads against the NIC: two hosts on the simulated fabric, each with a thread that posts and polls without any lock while
 * a third thread, and they themselves when their queue is empty, drive the NICs under one. Made for the thread sanitizer; the model is
 * checked in any build.
 *
 *   threadtest [OPERATIONS]      a side (20000), and half as many of a QP with lanes (threadlanes.c). Prints 'N passed, N failed'.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/sim/threadtest.h"

#define DEPTH 16
#define SIZE 3000
#define BUFFER 4096
#define WRITES (2 * DEPTH) /* buffers: sources, then receives, then where the peer writes */

struct host {
	struct world *w;
	struct ur_nic *nic;
	struct ur_pd *pd;
	struct ur_cq *cq;
	struct ur_qp *qp;
	struct ur_mr *mr;
	struct ur_net_path path;
	struct host *peer;
	uint8_t *mem;
	unsigned ops;
	/* Of the application thread alone. */
	unsigned posted, completed, recv_posted, received;
	const char *broken;
	/* Set by the NIC when an armed queue has a completion. */
	atomic_bool notified;
};

static pthread_mutex_t nic_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint running;

static uint8_t *buffer(struct host *h, unsigned number)
{
	return h->mem + (size_t)number * BUFFER;
}

static void step(struct world *w)
{
	world_step(w, w->now + 20 * UR_NS_PER_US);
}

static void notify(struct ur_cq *cq)
{
	struct host *h = ur_cq_context(cq);

	atomic_store(&h->notified, true);
}

/* --- the two hosts --- */

static bool create(struct host *h)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	struct ur_qp_init init = {.type = IBV_QPT_RC,
				  .cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1}};

	h->mem = calloc(WRITES + DEPTH, BUFFER);
	if (!h->mem || ur_pd_create(h->nic->tp, &h->pd) || ur_cq_create(h->nic->tp, 4 * DEPTH, h, notify, &h->cq) ||
	    ur_mr_reg(h->nic->tp, h->pd, h->mem, (size_t)(WRITES + DEPTH) * BUFFER, (uintptr_t)h->mem, access, &h->mr))
		return false;
	init.pd = h->pd;
	init.send_cq = init.recv_cq = h->cq;
	init.sq_sig_all = true;
	return ur_qp_create(h->nic->tp, &init, &h->qp) == 0;
}

bool connect_qp(struct ur_nic *nic, struct ur_qp *qp, struct ur_net_path *path, const struct ur_gid *dgid, uint32_t dqpn, ur_time now)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
				  .path_mtu = IBV_MTU_512,
				  .dest_qp_num = dqpn,
				  .min_rnr_timer = 1,
				  .max_dest_rd_atomic = 1,
				  .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}}};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};

	memcpy(rtr.ah_attr.grh.dgid.raw, dgid->raw, sizeof(dgid->raw));
	return !ur_nic_modify_qp(nic, qp, path, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, now) &&
	       !ur_nic_modify_qp(nic, qp, path, &rtr,
				 IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					 IBV_QP_MIN_RNR_TIMER,
				 now) &&
	       !ur_nic_modify_qp(nic, qp, path, &rts,
				 IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					 IBV_QP_MAX_QP_RD_ATOMIC,
				 now);
}

/* --- an application: every other request is a WRITE, whose bytes the SEND behind it vouches for --- */

static void post_recv(struct host *h)
{
	unsigned slot = h->recv_posted % DEPTH;
	struct ibv_sge sge = {(uintptr_t)buffer(h, DEPTH + slot), BUFFER, h->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

	if (ur_qp_post_recv(h->qp, &wr, &bad))
		h->broken = "a receive was not taken";
	h->recv_posted++;
}

static void post_send(struct host *h)
{
	unsigned slot = h->posted % DEPTH;
	bool write = h->posted % 2 == 0;
	struct ibv_sge sge = {(uintptr_t)buffer(h, slot), SIZE, h->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = h->posted, .sg_list = &sge, .num_sge = 1, .opcode = write ? IBV_WR_RDMA_WRITE : IBV_WR_SEND},
			   *bad;

	memset(buffer(h, slot), (int)(h->posted / 2), SIZE);
	wr.wr.rdma.remote_addr = (uintptr_t)buffer(h->peer, WRITES + h->posted / 2 % DEPTH);
	wr.wr.rdma.rkey = h->peer->mr->rkey;
	if (ur_qp_post_send(h->qp, &wr, &bad))
		h->broken = "a send was not taken";
	h->posted++;
	if (ur_qp_doorbell(h->qp))
		ur_nic_ring(h->nic, h->qp);
}

static bool all_bytes(const uint8_t *p, unsigned value)
{
	for (unsigned i = 0; i < SIZE; i++)
		if (p[i] != (uint8_t)value)
			return false;
	return true;
}

static void on_completion(struct host *h, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS) {
		h->broken = "a request failed";
	} else if (!(wc->opcode & IBV_WC_RECV)) {
		if (wc->wr_id != h->completed++)
			h->broken = "sends completed out of order";
	} else {
		if (wc->wr_id != h->received % DEPTH || wc->byte_len != SIZE)
			h->broken = "receives completed out of order";
		if (!all_bytes(buffer(h, DEPTH + (unsigned)wc->wr_id), h->received))
			h->broken = "a SEND brought wrong bytes";
		h->received++;
		if (h->recv_posted < h->ops / 2)
			post_recv(h);
	}
}

/* Sleeps as an application on a completion channel does: arm, look once more, wait for the NIC to call. */
static int wait_for_event(struct host *h, struct ibv_wc *wc)
{
	int n;

	atomic_store(&h->notified, false);
	ur_cq_arm(h->cq, false);
	n = ur_cq_poll(h->cq, 8, wc);
	while (n == 0 && !atomic_load(&h->notified))
		sched_yield();
	return n;
}

static void *application(void *arg)
{
	struct host *h = arg;
	struct ibv_wc wc[8];

	for (unsigned round = 0; !h->broken && (h->completed < h->ops || h->received < h->ops / 2); round++) {
		int n;

		while (!h->broken && h->posted < h->ops && h->posted - h->completed < DEPTH)
			post_send(h);
		n = ur_cq_poll(h->cq, 8, wc);
		if (n == 0 && round % 8 == 0) {
			n = wait_for_event(h, wc);
		} else if (n == 0 && pthread_mutex_trylock(&nic_lock) == 0) {
			step(h->w);
			pthread_mutex_unlock(&nic_lock);
		}
		if (n < 0)
			h->broken = "the completion queue overran";
		for (int i = 0; i < n; i++)
			on_completion(h, &wc[i]);
	}
	atomic_fetch_sub(&running, 1);
	return NULL;
}

static void *progress(void *arg)
{
	struct world *w = arg;

	while (atomic_load(&running)) {
		pthread_mutex_lock(&nic_lock);
		step(w);
		pthread_mutex_unlock(&nic_lock);
		sched_yield();
	}
	return NULL;
}

static const char *destroy(struct host *h)
{
	int err = ur_nic_destroy_qp(h->nic, h->qp, &h->path);

	for (unsigned i = 0; i < 1000 && (err = ur_mr_dereg(h->mr)) != 0; i++)
		step(h->w);
	err |= ur_cq_destroy(h->cq) | ur_pd_destroy(h->pd);
	free(h->mem);
	return err ? "an object could not be destroyed" : NULL;
}

static const char *run(struct world *w, struct host *h)
{
	pthread_t thread[3];
	const char *broken = NULL;

	for (unsigned i = 0; i < 2; i++)
		if (!create(&h[i]))
			return "the objects could not be created";
	for (unsigned i = 0; i < 2; i++) {
		if (!connect_qp(h[i].nic, h[i].qp, &h[i].path, &w->gid[!i], ur_qp_num(h[!i].qp), w->now))
			return "the QPs could not be connected";
		while (h[i].recv_posted < DEPTH && h[i].recv_posted < h[i].ops / 2)
			post_recv(&h[i]);
	}
	atomic_store(&running, 2);
	if (pthread_create(&thread[0], NULL, application, &h[0]) || pthread_create(&thread[1], NULL, application, &h[1]) ||
	    pthread_create(&thread[2], NULL, progress, w))
		return "no thread could be started";
	for (unsigned i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	for (unsigned i = 0; i < 2 && !broken; i++)
		broken = h[i].broken;
	for (unsigned i = 0; i < 2; i++) {
		const char *left = destroy(&h[i]);

		broken = broken ? broken : left;
	}
	return broken;
}

static const char *run_one_lock(unsigned ops)
{
	static struct world w;
	struct host h[2] = {{.ops = ops}, {.ops = ops}};
	const char *broken;

	world_init(&w, 1, &fabric_plain);
	for (unsigned i = 0; i < 2; i++) {
		h[i].w = &w;
		h[i].nic = w.nic[i];
		h[i].peer = &h[!i];
	}
	broken = run(&w, h);
	return !broken && world_fini(&w) ? "packet buffers leaked" : broken;
}

int main(int argc, char **argv)
{
	unsigned ops = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 20000, failed = 0;
	const char *broken[2];

	if (ops < 2 || ops % 2) {
		fprintf(stderr, "usage: threadtest [OPERATIONS], an even number\n");
		return 2;
	}
	broken[0] = run_one_lock(ops);
	broken[1] = run_lanes(ops / 2);
	for (unsigned i = 0; i < 2; i++) {
		if (broken[i])
			printf("threadtest: %s\n", broken[i]);
		failed += broken[i] != NULL;
	}
	printf("%u passed, %u failed\n", 2 - failed, failed);
	return failed != 0;
}
