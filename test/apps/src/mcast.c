/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plain libibverbs program: multicasts that are answered one by one.
 *
 *   mcast recv INDEX GROUP COUNT          attaches a QP, says "ready", and answers each of COUNT multicasts to its sender
 *   mcast send INDEX GROUP COUNT ANSWERS  sends COUNT multicasts and waits for that many answers to each
 *
 * INDEX is the GID to send from. A multicast carries its number: a receiver fails when one comes twice or not at all. The sender is
 * attached as well, and must have its own copy.
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define QKEY 0x4321
#define GRH 40
#define SLOTS 16
#define SLOT 256
#define PATIENCE 10 /* seconds */

struct msg {
	uint32_t answer, number;
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qp;
static uint8_t mem[(SLOTS + 1) * SLOT]; /* the last slot is for sending */

static void need(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static void give_receive(uint64_t slot)
{
	struct ibv_sge sge = {(uintptr_t)mem + slot * SLOT, SLOT, mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

	need(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

static void start(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
	struct ibv_qp_init_attr ia = {.qp_type = IBV_QPT_UD, .cap = {SLOTS, SLOTS, 1, 1, 0}};

	need(list && list[0] && (ctx = ibv_open_device(list[0])), "device");
	need((pd = ibv_alloc_pd(ctx)) && (cq = ibv_create_cq(ctx, 4 * SLOTS, NULL, NULL, 0)), "PD and CQ");
	need((mr = ibv_reg_mr(pd, mem, sizeof(mem), IBV_ACCESS_LOCAL_WRITE)) != NULL, "ibv_reg_mr");
	ia.send_cq = ia.recv_cq = cq;
	need((qp = ibv_create_qp(pd, &ia)) != NULL, "ibv_create_qp");
	need(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), "to INIT");
	for (unsigned i = 0; i < SLOTS; i++)
		give_receive(i);
	a.qp_state = IBV_QPS_RTR;
	need(!ibv_modify_qp(qp, &a, IBV_QP_STATE), "to RTR");
	a.qp_state = IBV_QPS_RTS;
	need(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), "to RTS");
}

static void send_msg(struct ibv_ah *ah, uint32_t qpn, struct msg m)
{
	uint8_t *at = mem + SLOTS * SLOT;
	struct ibv_sge sge = {(uintptr_t)at, sizeof(m), mr->lkey};
	struct ibv_send_wr wr = {.wr_id = SLOTS, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	memcpy(at, &m, sizeof(m));
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = QKEY;
	need(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

/* The next completion; for a receive the message too. False when none comes in time. */
static int wait_wc(struct ibv_wc *wc, struct msg *m)
{
	time_t end = time(NULL) + PATIENCE;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, wc)) && time(NULL) < end)
		continue;
	if (n != 1 || wc->status != IBV_WC_SUCCESS) {
		fprintf(stderr, "mcast: %s\n", n == 1 ? ibv_wc_status_str(wc->status) : "nothing comes");
		return 0;
	}
	if (wc->opcode == IBV_WC_RECV)
		memcpy(m, mem + wc->wr_id * SLOT + GRH, sizeof(*m));
	return 1;
}

static int receive_all(uint32_t count)
{
	for (uint32_t i = 0; i < count;) {
		struct ibv_wc wc;
		struct ibv_ah *ah;
		struct msg m;

		if (!wait_wc(&wc, &m))
			return 1;
		if (wc.opcode != IBV_WC_RECV)
			continue;
		if (m.answer || m.number != i) {
			fprintf(stderr, "mcast: number %u came instead of %u\n", m.number, i);
			return 1;
		}
		ah = ibv_create_ah_from_wc(pd, &wc, (struct ibv_grh *)(mem + wc.wr_id * SLOT), 1);
		need(ah != NULL, "ibv_create_ah_from_wc");
		send_msg(ah, wc.src_qp, (struct msg){1, m.number});
		need(!ibv_destroy_ah(ah), "ibv_destroy_ah");
		give_receive(wc.wr_id);
		i++;
	}
	return 0;
}

static int send_all(struct ibv_ah_attr *to, uint32_t count, uint32_t answers)
{
	struct ibv_ah *ah = ibv_create_ah(pd, to);

	need(ah != NULL, "ibv_create_ah");
	for (uint32_t i = 0; i < count; i++) {
		send_msg(ah, 0xffffff, (struct msg){0, i});
		/* The answers, our own copy and the completion of the send. */
		for (uint32_t left = answers + 2; left; left--) {
			struct ibv_wc wc;
			struct msg m;

			if (!wait_wc(&wc, &m))
				return 1;
			if (wc.opcode != IBV_WC_RECV)
				continue;
			if (m.number != i || !m.answer != (wc.src_qp == qp->qp_num)) {
				fprintf(stderr, "mcast: a wrong message about %u while at %u\n", m.number, i);
				return 1;
			}
			give_receive(wc.wr_id);
		}
	}
	return ibv_destroy_ah(ah);
}

static void parse_gid(const char *text, union ibv_gid *g)
{
	memset(g, 0, sizeof(*g));
	g->raw[10] = g->raw[11] = 0xff;
	if (inet_pton(AF_INET, text, g->raw + 12) != 1)
		need(inet_pton(AF_INET6, text, g->raw) == 1, text);
}

int main(int argc, char **argv)
{
	struct ibv_ah_attr to = {.is_global = 1, .port_num = 1};
	struct ibv_wc wc;
	int rc;

	if (argc < 5)
		return 2;
	to.grh.sgid_index = (uint8_t)atoi(argv[2]);
	parse_gid(argv[3], &to.grh.dgid);
	start();
	need(!ibv_attach_mcast(qp, &to.grh.dgid, 0), "ibv_attach_mcast");
	puts("ready");
	fflush(stdout);
	rc = argc > 5 ? send_all(&to, (uint32_t)atoi(argv[4]), (uint32_t)atoi(argv[5])) : receive_all((uint32_t)atoi(argv[4]));
	while (!rc && argc <= 5 && ibv_poll_cq(cq, 1, &wc) == 1)
		if (wc.opcode == IBV_WC_RECV)
			rc = 1; /* more than was sent */
	need(!ibv_detach_mcast(qp, &to.grh.dgid, 0), "ibv_detach_mcast");
	need(!ibv_destroy_qp(qp) && !ibv_dereg_mr(mr) && !ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd) && !ibv_close_device(ctx), "the end");
	return rc;
}
