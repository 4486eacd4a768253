/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA between two threads of one process, as a plain program of libibverbs: each thread has a CQ and a QP of its own.
 *
 *   pairbench [-g GID_INDEX] [-n ROUNDS] [-P] [MODE...]
 *
 * The modes, all of them without one; each prints one line:
 *
 *   memory  ping-pong of 8-byte WRITEs; the threads wait for their memory to change, and poll their CQ for one completion in 64
 *   both    the same; they poll the CQ whenever they look at their memory, as UCX does
 *   lat     the same; each polls for the completion of its WRITE first and waits for its memory then, as ib_write_lat does
 *   cq      ping-pong of WRITEs with immediate data: they poll their CQ alone
 *
 * -P pins each thread to a CPU. Printed is half a round trip: mean, the longest round's, and the median.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EVERY 64 /* WRITEs for each that is signaled */
#define RECVS 128

struct side {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	_Atomic uint64_t *mem; /* written by the peer */
	struct side *peer;
	unsigned outstanding, recvd;
	unsigned posted;
	uint32_t psn;
};

struct run {
	const char *mode;
	struct side *side;
	pthread_barrier_t *barrier;
	unsigned rounds;
	bool first, pin;
	uint64_t ns, max;
	uint32_t *took; /* ns of each round */
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static union ibv_gid gid;
static int gid_index;

static void die(const char *what, int err)
{
	fprintf(stderr, "pairbench: %s: %s\n", what, strerror(err));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

/* --- queues --- */

static void side_init(struct side *s)
{
	struct ibv_qp_init_attr ia = {.qp_type = IBV_QPT_RC, .cap = {512, RECVS, 1, 1, 16}};
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
	void *p = NULL;

	memset(s, 0, sizeof(*s));
	if (posix_memalign(&p, 4096, 4096))
		die("memory", ENOMEM);
	memset(p, 0, 4096);
	s->mem = p;
	s->mr = ibv_reg_mr(pd, p, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	s->cq = ibv_create_cq(ctx, 1024, NULL, NULL, 0);
	if (!s->mr || !s->cq)
		die("ibv_reg_mr, ibv_create_cq", errno);
	ia.send_cq = ia.recv_cq = s->cq;
	s->qp = ibv_create_qp(pd, &ia);
	if (!s->qp)
		die("ibv_create_qp", errno);
	if (ibv_modify_qp(s->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		die("ibv_modify_qp to INIT", errno);
}

static void side_connect(struct side *s, struct side *peer)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp->qp_num,
		.rq_psn = 0,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .sgid_index = (uint8_t)gid_index, .hop_limit = 64}}};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};

	s->peer = peer;
	if (ibv_modify_qp(s->qp, &a,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				  IBV_QP_MIN_RNR_TIMER))
		die("ibv_modify_qp to RTR", errno);
	if (ibv_modify_qp(s->qp, &rts,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		die("ibv_modify_qp to RTS", errno);
}

static void side_fini(struct side *s)
{
	ibv_destroy_qp(s->qp);
	ibv_destroy_cq(s->cq);
	ibv_dereg_mr(s->mr);
	free((void *)s->mem);
}

static void post(struct side *s, enum ibv_wr_opcode op, uint64_t value, bool signaled)
{
	struct ibv_sge sge = {(uintptr_t)&value, 8, 0};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = op, .send_flags = IBV_SEND_INLINE}, *bad;
	int rc;

	if (signaled)
		wr.send_flags |= IBV_SEND_SIGNALED;
	wr.wr.rdma.remote_addr = (uintptr_t)s->peer->mem;
	wr.wr.rdma.rkey = s->peer->mr->rkey;
	rc = ibv_post_send(s->qp, &wr, &bad);
	if (rc)
		die("ibv_post_send", rc);
	s->outstanding += signaled;
}

static void post_recv(struct side *s)
{
	struct ibv_recv_wr wr = {.num_sge = 0}, *bad;
	int rc = ibv_post_recv(s->qp, &wr, &bad);

	if (rc)
		die("ibv_post_recv", rc);
}

static void poll_once(struct side *s)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(s->cq, 16, wc);

	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			fprintf(stderr, "pairbench: completion: %s\n", ibv_wc_status_str(wc[i].status));
			exit(1);
		}
		if (wc[i].opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
			s->recvd++;
			post_recv(s);
		} else {
			s->outstanding--;
		}
	}
}

/* --- ping-pong --- */

static void ping(struct run *r, uint64_t value)
{
	struct side *s = r->side;
	bool imm = !strcmp(r->mode, "cq"), lat = !strcmp(r->mode, "lat");

	post(s, imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE, value, lat || ++s->posted % EVERY == 0);
	while ((lat || s->posted % EVERY == EVERY / 2) && s->outstanding)
		poll_once(s);
}

static void pong(struct run *r, uint64_t value)
{
	struct side *s = r->side;

	if (!strcmp(r->mode, "cq")) {
		while (s->recvd < value)
			poll_once(s);
	} else if (!strcmp(r->mode, "both")) {
		while (atomic_load_explicit(s->mem, memory_order_acquire) < value)
			poll_once(s);
	} else {
		while (atomic_load_explicit(s->mem, memory_order_acquire) < value)
			continue;
	}
}

static int by_value(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void play(struct run *r)
{
	uint64_t begin = now_ns(), before = begin, now;

	for (unsigned i = 1; i <= r->rounds; i++) {
		if (r->first)
			ping(r, i);
		pong(r, i);
		if (!r->first)
			ping(r, i);
		now = now_ns();
		r->max = now - before > r->max ? now - before : r->max;
		r->took[i - 1] = now - before < UINT32_MAX ? (uint32_t)(now - before) : UINT32_MAX;
		before = now;
	}
	r->ns = now_ns() - begin;
	while (r->side->outstanding)
		poll_once(r->side);
}

/* --- threads --- */

static uint32_t *room_for(unsigned rounds)
{
	uint32_t *p = calloc(rounds, sizeof(*p));

	if (!p)
		die("memory", ENOMEM);
	return p;
}

static void *run_main(void *arg)
{
	struct run *r = arg;

	if (r->pin) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(r->first ? 0 : 1, &set);
		sched_setaffinity(0, sizeof(set), &set);
	}
	pthread_barrier_wait(r->barrier);
	play(r);
	pthread_barrier_wait(r->barrier); /* nobody's queues vanish below the other's WRITEs */
	return NULL;
}

static void mode_run(const char *mode, unsigned rounds, bool pin)
{
	struct side sides[2];
	pthread_barrier_t barrier;
	pthread_t tid[2];
	struct run runs[2];
	uint64_t ns;

	pthread_barrier_init(&barrier, NULL, 2);
	for (unsigned i = 0; i < 2; i++)
		side_init(&sides[i]);
	for (unsigned i = 0; i < 2; i++) {
		side_connect(&sides[i], &sides[i ^ 1]);
		for (unsigned k = 0; k < RECVS; k++)
			post_recv(&sides[i]);
	}
	for (unsigned i = 0; i < 2; i++) {
		runs[i] = (struct run){mode, &sides[i], &barrier, rounds, i == 0, pin, 0, 0, room_for(rounds)};
		if (pthread_create(&tid[i], NULL, run_main, &runs[i]))
			die("pthread_create", EAGAIN);
	}
	for (unsigned i = 0; i < 2; i++)
		pthread_join(tid[i], NULL);
	ns = runs[0].ns > runs[1].ns ? runs[0].ns : runs[1].ns;
	qsort(runs[0].took, rounds, sizeof(*runs[0].took), by_value);
	printf("%s us=%.2f max_us=%.0f median_us=%.2f\n", mode, (double)ns / rounds / 2e3, (double)runs[0].max / 2e3,
	       runs[0].took[rounds / 2] / 2e3);
	fflush(stdout);
	for (unsigned i = 0; i < 2; i++) {
		free(runs[i].took);
		side_fini(&sides[i]);
	}
	pthread_barrier_destroy(&barrier);
}

static void device_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list || !list[0])
		die("no RDMA device", ENODEV);
	ctx = ibv_open_device(list[0]);
	if (!ctx)
		die("ibv_open_device", errno);
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(ctx);
	if (!pd || ibv_query_gid(ctx, 1, gid_index, &gid))
		die("ibv_alloc_pd, ibv_query_gid", errno);
}

int main(int argc, char **argv)
{
	static const char *const all[] = {"memory", "both", "lat", "cq"};
	unsigned rounds = 10000;
	bool pin = false;
	int c;

	while ((c = getopt(argc, argv, "g:n:P")) != -1) {
		if (c == 'g')
			gid_index = atoi(optarg);
		else if (c == 'n')
			rounds = (unsigned)atoi(optarg);
		else if (c == 'P')
			pin = true;
		else
			return 2;
	}
	if (!rounds)
		die("-n", EINVAL);
	alarm(120); /* a message that is lost must not hang the caller */
	device_open();
	if (optind == argc)
		for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++)
			mode_run(all[i], rounds, pin);
	for (; optind < argc; optind++)
		mode_run(argv[optind], rounds, pin);
	ibv_dealloc_pd(pd);
	ibv_close_device(ctx);
	return 0;
}
