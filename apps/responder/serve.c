/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions, receives, and the responder's answers. */
#include "apps/responder/responder.h"

#include <arpa/inet.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

enum work { RECV, READ, WRITE, SAY, BIND }; /* in a work request's id, with the connection and the number of the buffer */

static uint64_t work_id(const struct shared *s, const struct conn *c, enum work what, unsigned k)
{
	for (unsigned i = 0; i < CONNS; i++)
		if (s->conn[i] == c)
			return (uint64_t)i << 16 | (uint64_t)what << 8 | k;
	abort();
}

static struct shared *owner; /* there is one */

/* --- regions --- */

static const int rights[UR_CF_REGIONS] = {
	[UR_CF_RW] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
	[UR_CF_RO] = IBV_ACCESS_REMOTE_READ,
	[UR_CF_WO] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
	[UR_CF_LOCAL] = IBV_ACCESS_LOCAL_WRITE,
	[UR_CF_GONE] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
};

/* As the kernel's <rdma/ib_user_verbs.h> has them; verbs.h from rdma-core 45 on. */
#define DEVICE_FLUSH_GLOBAL (1ull << 38)
#define DEVICE_ATOMIC_WRITE (1ull << 40)

static void ask_device(struct shared *s)
{
	struct ibv_device_attr_ex a = {.device_cap_flags_ex = 0};

	if (ibv_query_device_ex(s->verbs, NULL, &a))
		return;
	s->flush = a.device_cap_flags_ex & DEVICE_FLUSH_GLOBAL;
	s->atomic_write = a.device_cap_flags_ex & DEVICE_ATOMIC_WRITE;
}

/* A device may have windows in its list of abilities and none of type 2 for programs, so one is tried. */
static bool has_windows(const struct shared *s)
{
	struct ibv_mw *mw = ibv_alloc_mw(s->pd, IBV_MW_TYPE_2);

	return mw && !ibv_dealloc_mw(mw);
}

void share_device(struct shared *s, struct ibv_context *verbs)
{
	owner = s;
	s->verbs = verbs;
	s->pd = ibv_alloc_pd(verbs);
	s->channel = ibv_create_comp_channel(verbs);
	need(s->pd && s->channel, "a protection domain");
	s->cq = ibv_create_cq(verbs, 4096, NULL, s->channel, 0);
	need(s->cq && !ibv_req_notify_cq(s->cq, 0), "a completion queue");
	ask_device(s);
	s->windows = has_windows(s);
	share_xrc(s);
	for (unsigned i = 0; i < UR_CF_REGIONS; i++) {
		int access = rights[i];

		if (i == UR_CF_RW)
			access |= (s->windows ? IBV_ACCESS_MW_BIND : 0) | (s->flush ? ACCESS_FLUSH_GLOBAL : 0);

		/* Room before and after it, so that what is written there by mistake hits nobody. */
		need(!posix_memalign((void **)&s->memory[i], 4096, 3 * UR_CF_REGION_LEN), "memory");
		memset(s->memory[i], 0, 3 * UR_CF_REGION_LEN);
		for (uint32_t k = 0; i == UR_CF_RO && k < UR_CF_REGION_LEN; k++)
			s->memory[i][UR_CF_REGION_LEN + k] = ur_cf_pattern(0, k);
		s->region[i] = ibv_reg_mr(s->pd, s->memory[i] + UR_CF_REGION_LEN, UR_CF_REGION_LEN, access);
		need(s->region[i] != NULL, "a memory region");
	}
	s->gone_rkey = s->region[UR_CF_GONE]->rkey;
	s->gone_va = (uintptr_t)s->region[UR_CF_GONE]->addr;
	need(!ibv_dereg_mr(s->region[UR_CF_GONE]), "ibv_dereg_mr");
	s->region[UR_CF_GONE] = NULL;
}

static void put_bytes(uint8_t **to, const void *from, size_t len)
{
	memcpy(*to, from, len);
	*to += len;
}

static void put_place(uint8_t **to, uint64_t va, uint32_t rkey, uint32_t len)
{
	va = htobe64(va);
	rkey = htonl(rkey);
	len = htonl(len);
	put_bytes(to, &va, 8);
	put_bytes(to, &rkey, 4);
	put_bytes(to, &len, 4);
}

void put_offer(const struct shared *s, const struct conn *c, uint8_t *to)
{
	uint32_t magic = htonl(UR_CF_MAGIC), modes = 0;

	put_bytes(&to, &magic, 4);
	for (unsigned i = 0; i < UR_CF_REGIONS; i++) {
		const struct ibv_mr *mr = s->region[i];

		put_place(&to, mr ? (uintptr_t)mr->addr : s->gone_va, mr ? mr->rkey : s->gone_rkey, UR_CF_REGION_LEN);
	}
	for (unsigned i = 0; i < 2; i++)
		put_place(&to, c->bound ? (uintptr_t)s->region[UR_CF_RW]->addr + UR_CF_WINDOW_OFF : 0, c->window_rkey[i],
			  c->bound ? UR_CF_WINDOW_LEN : 0);
	for (enum ur_cf_serve m = 0; m < UR_CF_SERVES; m++)
		modes |= can_serve(s, m) ? htonl(1u << m) : 0;
	put_bytes(&to, &modes, 4);
	put_bytes(&to, (uint32_t[UR_CF_SRQS]){srq_number(c->srq), srq_number(s->foreign_srq)}, 4 * UR_CF_SRQS);
}

/* --- connections --- */

struct conn *conn_new(struct shared *s)
{
	unsigned i = 1;
	struct conn *c;

	while (i < CONNS && s->conn[i])
		i++;
	if (i == CONNS)
		return NULL;
	c = calloc(1, sizeof(*c));
	need(c != NULL, "memory");
	c->mr = ibv_reg_mr(s->pd, c, sizeof(*c), IBV_ACCESS_LOCAL_WRITE);
	need(c->mr != NULL, "a memory region");
	s->conn[i] = c;
	return c;
}

void conn_free(struct shared *s, struct conn *c)
{
	for (unsigned i = 1; i < CONNS; i++)
		if (s->conn[i] == c)
			s->conn[i] = NULL;
	free_windows(c);
	if (c->own_qp && c->qp)
		ibv_destroy_qp(c->qp);
	if (c->srq)
		ibv_destroy_srq(c->srq);
	ibv_dereg_mr(c->mr);
	free(c);
}

struct ibv_qp_init_attr conn_attributes(const struct shared *s, enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr){
		.qp_type = type,
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = 16, .max_recv_wr = RECVS, .max_send_sge = 1, .max_recv_sge = 1},
	};
}

static void post_receive(struct conn *c, unsigned k)
{
	struct ibv_sge sge = {.addr = (uintptr_t)c->recv[k], .length = UR_CF_RECV_LEN, .lkey = c->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = work_id(owner, c, RECV, k), .sg_list = &sge, .num_sge = 1};

	if (c->srq)
		ibv_post_srq_recv(c->srq, &wr, &bad);
	else
		ibv_post_recv(c->qp, &wr, &bad); /* fails where the QP has ended, and then nothing comes */
}

void post_receives(struct conn *c)
{
	c->late_until = 0;
	for (unsigned k = 0; k < RECVS; k++)
		post_receive(c, k);
}

/* One QP for all lookups, in the partition and with the Q_Key that the RDMA CM names. */
void make_datagrams(struct shared *s, uint8_t port)
{
	struct ibv_qp_init_attr init = conn_attributes(s, IBV_QPT_UD);
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = port, .qkey = RDMA_UDP_QKEY};
	struct conn *c = calloc(1, sizeof(*c));

	need(c != NULL, "memory");
	s->conn[0] = c;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): need() ends the program */
	c->port = port;
	c->mr = ibv_reg_mr(s->pd, c, sizeof(*c), IBV_ACCESS_LOCAL_WRITE);
	c->qp = ibv_create_qp(s->pd, &init);
	need(c->mr && c->qp, "a QP for datagrams");
	need(!ibv_modify_qp(c->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), "INIT of the QP for datagrams");
	post_receives(c);
	a.qp_state = IBV_QPS_RTR;
	need(!ibv_modify_qp(c->qp, &a, IBV_QP_STATE), "RTR of the QP for datagrams");
	a.qp_state = IBV_QPS_RTS;
	need(!ibv_modify_qp(c->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS of the QP for datagrams");
}

/* --- answers --- */

static void post(struct conn *c, enum work what, enum ibv_wr_opcode opcode, void *data, uint32_t len, uint64_t va, uint32_t rkey)
{
	struct ibv_sge sge = {.addr = (uintptr_t)data, .length = len, .lkey = c->mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = work_id(owner, c, what, 0), .opcode = opcode, .sg_list = &sge, .num_sge = len ? 1 : 0};

	wr.wr.rdma.remote_addr = va;
	wr.wr.rdma.rkey = rkey;
	ibv_post_send(c->qp, &wr, &bad);
}

void post_bind(struct conn *c, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	struct ibv_send_wr *bad, wr = {.wr_id = work_id(owner, c, BIND, 0), .opcode = IBV_WR_BIND_MW};

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = rkey;
	wr.bind_mw.bind_info = *info;
	ibv_post_send(c->qp, &wr, &bad);
}

/* Not before its request has completed: the device may read it until then. */
static void forget_ah(struct conn *c, unsigned k)
{
	if (c->ah[k])
		ibv_destroy_ah(c->ah[k]);
	c->ah[k] = NULL;
}

static void send_echo(struct conn *c, const struct ibv_wc *wc, uint32_t len)
{
	const unsigned k = c->taken % ECHOES;
	uint8_t *to = c->echo[k];
	struct ibv_sge sge = {.addr = (uintptr_t)to, .length = UR_CF_ADVERT_LEN, .lkey = c->mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = work_id(owner, c, SAY, k), .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1};
	uint64_t taken = htobe64(c->taken);
	uint32_t n = htonl(len);

	if (c->ah[k])
		return; /* more echoes in flight than there is room for */
	put_bytes(&to, &taken, 8);
	put_bytes(&to, &n, 4);
	if (c == owner->conn[0]) {
		wr.wr.ud.ah = ibv_create_ah_from_wc(owner->pd, (struct ibv_wc *)wc, (struct ibv_grh *)c->recv[wc->wr_id & 0xff], c->port);
		wr.wr.ud.remote_qpn = wc->src_qp;
		wr.wr.ud.remote_qkey = RDMA_UDP_QKEY;
		if (!wr.wr.ud.ah)
			return;
		c->ah[k] = wr.wr.ud.ah;
	}
	if (ibv_post_send(c->qp, &wr, &bad))
		forget_ah(c, k);
}

/* What rping's server does with an advertisement. */
static void take_advert(struct conn *c, const uint8_t *msg)
{
	uint32_t rkey, len;
	uint64_t va;

	memcpy(&va, msg, 8);
	memcpy(&rkey, msg + 8, 4);
	memcpy(&len, msg + 12, 4);
	len = ntohl(len);
	if (!len || len > UR_CF_REGION_LEN)
		return;
	if (c->adverts++ % 2)
		post(c, WRITE, IBV_WR_RDMA_WRITE, c->data, len, be64toh(va), ntohl(rkey));
	else
		post(c, READ, IBV_WR_RDMA_READ, c->data, len, be64toh(va), ntohl(rkey));
}

static void took_message(struct conn *c, const struct ibv_wc *wc)
{
	unsigned k = wc->wr_id & 0xff;
	bool datagram = c == owner->conn[0];

	if (datagram && wc->src_qp != c->source) {
		c->source = wc->src_qp;
		c->taken = 0;
	}
	c->taken++;
	if (datagram)
		send_echo(c, wc, wc->byte_len - sizeof(struct ibv_grh));
	else if (c->qp->qp_type == IBV_QPT_UC)
		send_echo(c, wc, wc->byte_len);
	else if (!c->srq && wc->opcode == IBV_WC_RECV && wc->byte_len == UR_CF_ADVERT_LEN)
		take_advert(c, c->recv[k]);
	post_receive(c, k);
}

static void take_completion(struct shared *s, const struct ibv_wc *wc)
{
	struct conn *c = s->conn[wc->wr_id >> 16 & (CONNS - 1)];
	enum work what = wc->wr_id >> 8 & 0xff;

	if (!c || !c->qp || c->qp->qp_num != wc->qp_num)
		return; /* its connection has ended */
	if (what == SAY)
		forget_ah(c, wc->wr_id & 0xff);
	if (wc->status) {
		if (c->id)
			rdma_disconnect(c->id);
	} else if (what == RECV) {
		took_message(c, wc);
	} else if (what == BIND) {
		c->bound++;
	} else if (what != SAY) {
		post(c, SAY, IBV_WR_SEND, c->echo[0], UR_CF_ADVERT_LEN, 0, 0);
	}
}

void take_completions(struct shared *s)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *ctx;

	if (ibv_get_cq_event(s->channel, &cq, &ctx))
		return;
	ibv_ack_cq_events(cq, 1);
	need(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
	while (ibv_poll_cq(cq, 1, &wc) == 1)
		take_completion(s, &wc);
}
