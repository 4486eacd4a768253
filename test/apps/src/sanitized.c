/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program of verbs with one mistake, for a sanitizer to find while our threads and handlers are there.
 *
 *   sanitized MISTAKE
 *
 * An RC QP that is connected to itself writes 4096 bytes to a registered buffer first. MISTAKE is none, overflow (a write beyond a buffer
 * of the heap), null (a write to address 0), leak (of memory), or freed (the second RDMA WRITE goes to a buffer that has been freed).
 */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEN 4096

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *from, *to;

static void need(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(99);
}

static struct ibv_mr *a_buffer(void)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, calloc(1, LEN), LEN, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

	need(mr != NULL, "ibv_reg_mr");
	return mr;
}

static void connect_to_itself(void)
{
	struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
	union ibv_gid gid;

	qp = ibv_create_qp(pd, &init);
	need(qp && !ibv_query_gid(ctx, 1, 0, &gid), "ibv_create_qp");
	need(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = IBV_MTU_1024;
	a.dest_qp_num = qp->qp_num;
	a.min_rnr_timer = 12;
	a.ah_attr.is_global = 1;
	a.ah_attr.grh.dgid = gid;
	a.ah_attr.grh.hop_limit = 64;
	a.ah_attr.port_num = 1;
	need(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER),
	     "RTR");
	a.qp_state = IBV_QPS_RTS;
	a.timeout = 14;
	a.retry_cnt = a.rnr_retry = 7;
	need(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
	     "RTS");
}

static void rdma_write(void)
{
	struct ibv_sge sge = {.addr = (uintptr_t)from->addr, .length = LEN, .lkey = from->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED}, *bad;
	struct ibv_wc wc;
	int n;

	wr.wr.rdma.remote_addr = (uintptr_t)to->addr;
	wr.wr.rdma.rkey = to->rkey;
	need(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		continue;
	need(n == 1 && wc.status == IBV_WC_SUCCESS, "the completion");
}

static void err_by(const char *mistake)
{
	char *volatile p = malloc(10);

	if (!strcmp(mistake, "overflow"))
		p[10] = 1;
	if (!strcmp(mistake, "leak"))
		p = NULL;
	free(p);
	if (!strcmp(mistake, "null"))
		*(volatile char *)(p = NULL) = 1;
	if (!strcmp(mistake, "freed")) {
		free(to->addr);
		rdma_write();
	}
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	void *buffers[2];

	need(argc == 2 && list && list[0] && (ctx = ibv_open_device(list[0])), "ibv_open_device");
	ibv_free_device_list(list);
	need((pd = ibv_alloc_pd(ctx)) && (cq = ibv_create_cq(ctx, 1, NULL, NULL, 0)), "ibv_create_cq");
	from = a_buffer();
	to = a_buffer();
	connect_to_itself();
	memset(from->addr, 7, LEN);
	rdma_write();
	need(memcmp(from->addr, to->addr, LEN) == 0, "what was written");
	err_by(argv[1]);
	buffers[0] = from->addr;
	buffers[1] = to->addr;
	need(!ibv_destroy_qp(qp) && !ibv_dereg_mr(from) && !ibv_dereg_mr(to) && !ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd) &&
		     !ibv_close_device(ctx),
	     "the end");
	free(buffers[0]);
	free(buffers[1]);
	puts("done");
	return 0;
}
