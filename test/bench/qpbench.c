/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a message costs with few QPs and with many, as a plain program of libibverbs:
 *
 *   qpbench [-d DEPTH] [-n MESSAGES] [QPS...]          prints for each: qps=10 ns=512 times=1.00
 *
 * WRITEs of 8 bytes by one thread over QPs (10 100 1000 10000) that are connected to themselves, so that no port and no other process takes
 * part: each next message is another QP's, which then rests until all the others have had theirs; DEPTH (64) are outstanding. Printed is
 * the CPU time of the process for a message, and its ratio to that of the first number.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define QPS_MAX 16384
#define DEPTH_MAX 4096
#define SENDS 16 /* that each QP takes */

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static union ibv_gid gid;
static uint64_t memory[64];
static struct ibv_qp *qp[QPS_MAX];
static unsigned depth = 64;

static void die(const char *what, int err)
{
	fprintf(stderr, "qpbench: %s: %s\n", what, strerror(err));
	exit(1);
}

static double cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void modify(struct ibv_qp *q, struct ibv_qp_attr *a, int mask)
{
	int err = ibv_modify_qp(q, a, mask | IBV_QP_STATE);

	if (err)
		die("ibv_modify_qp", err);
}

static struct ibv_qp *new_qp(void)
{
	struct ibv_qp_init_attr ia = {.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .cap = {SENDS, 1, 1, 1, 0}};
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
				  .path_mtu = IBV_MTU_1024,
				  .max_dest_rd_atomic = 1,
				  .min_rnr_timer = 12,
				  .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .hop_limit = 64}}};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
	struct ibv_qp *q;

	q = ibv_create_qp(pd, &ia);
	if (!q)
		die("ibv_create_qp", errno);
	rtr.dest_qp_num = q->qp_num;
	modify(q, &init, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	modify(q, &rtr, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	modify(q, &rts, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	return q;
}

static void post(struct ibv_qp *q)
{
	struct ibv_sge sge = {(uintptr_t)memory, 8, mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED}, *bad;
	int err;

	wr.wr.rdma.remote_addr = (uintptr_t)(memory + 1);
	wr.wr.rdma.rkey = mr->rkey;
	err = ibv_post_send(q, &wr, &bad);
	if (err)
		die("ibv_post_send", err);
}

static unsigned poll_once(void)
{
	struct ibv_wc wc[64];
	int n = ibv_poll_cq(cq, 64, wc);

	for (int i = 0; i < n; i++)
		if (wc[i].status != IBV_WC_SUCCESS) {
			fprintf(stderr, "qpbench: completion: %s\n", ibv_wc_status_str(wc[i].status));
			exit(1);
		}
	return n > 0 ? (unsigned)n : 0;
}

/* The CPU time of one of them. */
static double send_messages(unsigned messages, unsigned qps)
{
	unsigned posted = 0, done = 0, next = 0;
	double before = cpu_ns();

	while (done < messages) {
		for (; posted < messages && posted - done < depth; posted++) {
			post(qp[next]);
			next = next + 1 == qps ? 0 : next + 1;
		}
		done += poll_once();
	}
	return (cpu_ns() - before) / messages;
}

static void open_all(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
	if (!ctx || ibv_query_gid(ctx, 1, 0, &gid))
		die("ibv_open_device, ibv_query_gid", errno);
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 2 * DEPTH_MAX, NULL, NULL, 0);
	mr = pd ? ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE) : NULL;
	if (!cq || !mr)
		die("ibv_create_cq, ibv_reg_mr", errno);
	ibv_free_device_list(list);
}

static int usage(void)
{
	fprintf(stderr, "usage: qpbench [-d DEPTH] [-n MESSAGES] [QPS...]\n");
	return 2;
}

int main(int argc, char **argv)
{
	static char *usual[] = {"10", "100", "1000", "10000", NULL};
	unsigned messages = 1000000, made = 0;
	double first = 0;
	char **counts;

	for (int c; (c = getopt(argc, argv, "d:n:")) != -1;)
		switch (c) {
		case 'd': depth = (unsigned)strtoul(optarg, NULL, 0); break;
		case 'n': messages = (unsigned)strtoul(optarg, NULL, 0); break;
		default: return usage();
		}
	if (!depth || depth > DEPTH_MAX || !messages)
		return usage();
	open_all();
	for (counts = argv[optind] ? argv + optind : usual; *counts; counts++) {
		unsigned qps = (unsigned)strtoul(*counts, NULL, 0);
		double ns;

		if (!qps || qps > QPS_MAX || depth > qps * SENDS)
			return usage();
		while (made < qps)
			qp[made++] = new_qp();
		send_messages(2 * qps, qps); /* so that the first message of each is not counted */
		ns = send_messages(messages, qps);
		first = first > 0 ? first : ns;
		printf("qps=%u ns=%.0f times=%.2f\n", qps, ns, ns / first);
		fflush(stdout);
	}
	while (made)
		ibv_destroy_qp(qp[--made]);
	ibv_dereg_mr(mr);
	ibv_destroy_cq(cq);
	ibv_dealloc_pd(pd);
	return ibv_close_device(ctx);
}
