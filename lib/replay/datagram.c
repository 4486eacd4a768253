/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams: a transport with one UD QP stands for a QP that was recorded, or for a member of a group. It sends what that QP sent, to an
 * address handle made from the recorded headers, and receives what was sent to it: nobody answers, so what a receiver would have done is
 * compared with what arrived. Its Q_Key is that of the first datagram to it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "replay/replay.h"

struct way { /* the destination of one datagram */
	struct ur_ah ah;
	struct ur_path path;
};

static void deth_of(const struct ur_pkt *p, struct ur_deth *h)
{
	ur_deth_get(pkt_ext(p) + ur_opcode(p->bth.opcode)->off_deth, h);
}

/* --- sending --- */

static void free_way(struct ur_ah *ah)
{
	free(ur_container_of(ah, struct way, ah));
}

static void look_again(struct ur_ah *ah, ur_time now)
{
	(void)ah;
	(void)now;
}

/* Traffic class, hop limit and flow label as a program would have put them into its address handle. */
static struct way *way_of(struct side *s, const struct ur_pkt *p)
{
	const struct ur_mac mac[2] = {{{2, 0, 0, 0, 0, 1}}, {{2, 0, 0, 0, 0, 2}}};
	struct way *w = calloc(1, sizeof(*w));
	struct ip_fields f;

	if (!w)
		return NULL;
	pkt_ip(p, &f);
	ur_path_build(&w->path, &mac[0], &mac[1], 0, &p->src, &p->dst, f.tclass, f.hop_limit, f.flow_label, 0xc000);
	w->path.ready = true;
	if (ur_ah_init(&w->ah, s->pd, &w->path, look_again, free_way)) {
		free(w);
		return NULL;
	}
	return w;
}

/* A PSN further on: datagrams in between were lost before the recorder, or it has missed them. */
static void skip_missed(struct side *s, uint32_t psn)
{
	struct ur_requester *q = &s->qp->req;

	if (ur_psn_diff(psn, q->next) <= 0)
		return;
	q->una = q->next = q->max = psn;
	s->rep->permitted[PERMIT_MISSED]++;
}

static int post(struct side *s, const struct rec *r, struct way *w)
{
	const struct ur_opcode_info *op = rec_op(r);
	struct ibv_sge sge = {.addr = (uintptr_t)s->slab, .length = r->pkt.payload_len, .lkey = s->slab_mr->lkey};
	struct ibv_send_wr *bad, wr = {.opcode = op->flags & UR_OPF_IMM ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
				       .sg_list = &sge,
				       .num_sge = r->pkt.payload_len != 0};
	struct ur_deth h;

	deth_of(&r->pkt, &h);
	if (h.qkey & 0x80000000u) /* it may only have been the QP's own */
		s->qp->attr.qkey = h.qkey;
	memcpy(s->slab, pkt_payload(&r->pkt), r->pkt.payload_len);
	if (r->pkt.bth.se)
		wr.send_flags |= IBV_SEND_SOLICITED;
	if (op->flags & UR_OPF_IMM)
		memcpy(&wr.imm_data, pkt_ext(&r->pkt) + op->off_imm, 4);
	wr.wr.ud.ah = &w->ah.api;
	wr.wr.ud.remote_qpn = r->pkt.bth.dqpn;
	wr.wr.ud.remote_qkey = h.qkey;
	return ur_qp_post_send(s->qp, &wr, &bad);
}

static void own_datagram(struct side *s, const struct rec *r)
{
	struct way *w = way_of(s, &r->pkt);
	struct ibv_wc wc;
	int err;

	skip_missed(s, r->pkt.bth.psn);
	s->due = r;
	err = w ? post(s, r, w) : ENOMEM;
	if (err)
		report_num(s->rep, r->frame, "error of ibv_post_send", 0, (uint64_t)err);
	ur_qp_answer(s->qp, s->now);
	side_drain(s);
	if (w)
		ur_ah_destroy(&w->ah);
	if (s->due)
		report_text(s->rep, r->frame, "datagram", rec_op(r)->name, "nothing");
	s->due = NULL;
	while (ur_cq_poll(s->scq, 1, &wc) == 1)
		if (wc.status != IBV_WC_SUCCESS)
			report_num(s->rep, r->frame, "status of the completion", IBV_WC_SUCCESS, wc.status);
}

static void sent_datagram(struct side *s, const struct ur_pkt *p)
{
	struct ur_deth h;

	if (!s->due) {
		report_text(s->rep, 0, "datagram", "nothing", ur_opcode(p->bth.opcode)->name);
		return;
	}
	s->rep->requests++;
	deth_of(p, &h);
	if (h.sqpn != ur_qp_num(s->qp))
		report_num(s->rep, s->due->frame, "source QP", ur_qp_num(s->qp), h.sqpn);
	compare_datagram(s, s->due, p);
	s->due = NULL;
}

/* --- receiving --- */

static void compare_memory(struct side *s, const struct rec *r, const char *what, const uint8_t *want, const uint8_t *have, uint32_t n)
{
	char field[48];

	for (uint32_t i = 0; i < n; i++) {
		if (want[i] == have[i])
			continue;
		snprintf(field, sizeof(field), "%s, byte %u", what, i);
		report_num(s->rep, r->frame, field, want[i], have[i]);
		return;
	}
}

/* The IP header stands in front: that of IPv4 in the last 20 of the 40 bytes (annex A17.4.5.2). */
static void compare_received(struct side *s, const struct rec *r, const struct ibv_wc *wc)
{
	const uint32_t ip = r->want->ip_version == 4 ? 20 : UR_GRH_LEN, len = UR_GRH_LEN + r->want->payload_len;
	const bool with_imm = rec_op(r)->flags & UR_OPF_IMM;
	struct ur_deth h;
	uint32_t imm = 0;

	deth_of(r->want, &h);
	if (with_imm)
		memcpy(&imm, pkt_ext(r->want) + rec_op(r)->off_imm, sizeof(imm));
	s->rep->messages++;
	if (wc->status != IBV_WC_SUCCESS || wc->opcode != IBV_WC_RECV)
		report_num(s->rep, r->frame, "status of the receive", IBV_WC_SUCCESS, wc->status);
	if (wc->byte_len != len)
		report_num(s->rep, r->frame, "length received", len, wc->byte_len);
	if (wc->src_qp != h.sqpn)
		report_num(s->rep, r->frame, "source QP received", h.sqpn, wc->src_qp);
	if (!(wc->wc_flags & IBV_WC_WITH_IMM) != !with_imm || (with_imm && wc->imm_data != imm))
		report_num(s->rep, r->frame, "immediate received", imm, with_imm ? wc->imm_data : 0);
	compare_memory(s, r, "IP header received", r->want->data + r->want->l3_off, s->slab + UR_GRH_LEN - ip, ip);
	compare_memory(s, r, "data received", pkt_payload(r->want), s->slab + UR_GRH_LEN, r->want->payload_len);
}

/* It has a receive for what comes; the recording cannot tell whether the QP had. */
static void peer_datagram(struct side *s, const struct rec *r)
{
	const uint32_t len = UR_GRH_LEN + r->pkt.payload_len;
	struct ibv_sge sge = {.addr = (uintptr_t)s->slab, .length = len, .lkey = s->slab_mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
	struct ur_deth h;
	struct ibv_wc wc;

	memset(s->slab, 0x5a, len);
	if (s->given == s->received && ur_qp_post_recv(s->qp, &wr, &bad) == 0)
		s->given++;
	side_feed(s, r);
	side_drain(s);
	if (ur_cq_poll(s->rcq, 1, &wc) == 1) {
		s->received++;
		compare_received(s, r, &wc);
		return;
	}
	deth_of(&r->pkt, &h);
	if (h.qkey != s->qp->attr.qkey)
		report_num(s->rep, r->frame, "Q_Key of a datagram that is dropped", h.qkey, s->qp->attr.qkey);
	else
		report_text(s->rep, r->frame, "datagram", "a valid one", "dropped it");
}

/* --- all of it --- */

static uint32_t qkey_of(const struct conn *c)
{
	struct ur_deth h = {0};

	for (unsigned i = c->n; i-- > 0;)
		if (c->from[i]) /* the first to it */
			deth_of(&c->rec[i]->pkt, &h);
	return h.qkey;
}

static int connect_ud(struct side *s)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = qkey_of(s->conn), .sq_psn = s->conn->end[0].psn};
	int err = ur_qp_modify(s->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, NULL, s->now);

	a.qp_state = IBV_QPS_RTR;
	if (!err)
		err = ur_qp_modify(s->qp, &a, IBV_QP_STATE, NULL, s->now);
	a.qp_state = IBV_QPS_RTS;
	if (!err)
		err = ur_qp_modify(s->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN, NULL, s->now);
	if (!err && s->conn->end[0].qpn == UR_QPN_MCAST)
		err = ur_mcast_attach(s->qp, &s->conn->end[0].gid);
	return err;
}

static void datagram_run(struct side *s)
{
	const struct conn *c = s->conn;

	for (unsigned i = 0; i < c->n; i++) {
		s->frame = c->rec[i]->frame;
		s->now = c->rec[i]->when;
		if (c->from[i])
			peer_datagram(s, c->rec[i]);
		else
			own_datagram(s, c->rec[i]);
	}
	if (c->end[0].qpn == UR_QPN_MCAST)
		ur_mcast_detach(s->qp, &c->end[0].gid);
}

enum side_state datagram_open(struct side *s, const char **why)
{
	uint32_t room = 1;
	int err = side_make_tp(s);

	for (unsigned i = 0; i < s->conn->n; i++)
		if (s->conn->rec[i]->pkt.payload_len > room)
			room = s->conn->rec[i]->pkt.payload_len;
	s->sent = sent_datagram;
	s->run = datagram_run;
	s->slab = malloc(UR_GRH_LEN + room);
	*why = "the transport could not be set up as recorded";
	if (!err)
		err = s->slab ? side_make_qp(s, IBV_QPT_UD) : ENOMEM;
	if (!err)
		err = ur_mr_reg(s->tp, s->pd, s->slab, UR_GRH_LEN + room, (uintptr_t)s->slab, IBV_ACCESS_LOCAL_WRITE, &s->slab_mr);
	return err || connect_ud(s) ? SIDE_BROKEN : SIDE_OK;
}
