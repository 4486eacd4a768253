/* SPDX-License-Identifier: BSD-3-Clause */
/* Setting a connection up: the handshake, what it negotiates, losses, repetitions, retries and patience. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <string.h>

#include "cm_harness.h"

void ur_suite_cm_connect(void);

#define REQ_INTERVAL (4608 * HX_MS)
#define REP_INTERVAL (4096 * HX_MS)
#define EARLY 3 /* resends before the first retry */
#define EARLY_RESEND (500 * HX_MS)

static void connect__handshake(void)
{
	struct ur_cm_conn_info ci, si;
	struct hx_pair p;
	struct hx h;

	hx_init(&h, 1);
	p = hx_established(&h);
	CU_ASSERT_EQUAL(p.client->got[UR_CM_EV_REP], 1);
	CU_ASSERT_EQUAL(p.server->got[UR_CM_EV_REQ], 1);
	CU_ASSERT_EQUAL(p.server->got[UR_CM_EV_RTU], 1);
	CU_ASSERT_EQUAL(memcmp(p.client->pdata, "welcome", 8), 0);
	CU_ASSERT_EQUAL(memcmp(p.server->pdata, "ready", 6), 0);
	ur_cm_conn_info(p.client->conn, &ci);
	ur_cm_conn_info(p.server->conn, &si);
	CU_ASSERT_EQUAL(ci.remote_qpn, p.server->qpn);
	CU_ASSERT_EQUAL(si.remote_qpn, p.client->qpn);
	CU_ASSERT_EQUAL(ci.send_psn, si.recv_psn);
	CU_ASSERT_EQUAL(si.send_psn, ci.recv_psn);
	CU_ASSERT_EQUAL(ci.recv_psn, 0x111111); /* what we ask for is what we receive */
	CU_ASSERT_EQUAL(si.recv_psn, 0x222222);
	CU_ASSERT_EQUAL(ci.rnr_retry_count, 5);
	CU_ASSERT_EQUAL(si.rnr_retry_count, 7);
	CU_ASSERT_EQUAL(si.retry_count, 6);
	CU_ASSERT_EQUAL(ci.responder_resources, 2);
	CU_ASSERT_EQUAL(ci.initiator_depth, 3);
	CU_ASSERT_EQUAL(ci.ack_timeout, 17);
	CU_ASSERT_EQUAL(si.ack_timeout, 17);
	CU_ASSERT(ci.remote_srq && !si.remote_srq);
	CU_ASSERT(ur_gid_eq(&si.addr.dgid, &ci.addr.sgid));
	CU_ASSERT_EQUAL(HX_SENT(&h, 0, REQ) + HX_SENT(&h, 1, REP) + HX_SENT(&h, 0, RTU), 3);
	hx_fini(&h);
}

static void connect__request_as_the_listener_sees_it(void)
{
	struct ur_cm_conn_info i;
	struct hx_ep *l, *s;
	struct hx h;

	hx_init(&h, 2);
	l = hx_listen(&h, 1, HX_SERVICE);
	l->accept = false;
	hx_connect(&h, 0, HX_SERVICE);
	hx_run(&h, h.now + 10 * HX_MS);
	s = l->child;
	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	CU_ASSERT(s->last.pdata.has_hdr);
	CU_ASSERT_EQUAL(s->last.pdata.hdr.sport, 0xb0b5);
	CU_ASSERT(ur_gid_eq(&s->last.pdata.hdr.src, &h.side[0].gid));
	CU_ASSERT_EQUAL(s->last.pdata.len, 56);
	CU_ASSERT_EQUAL(memcmp(s->pdata, "hello", 6), 0);
	ur_cm_conn_info(s->conn, &i);
	CU_ASSERT_EQUAL(i.responder_resources, 8);
	CU_ASSERT_EQUAL(i.initiator_depth, 4);
	CU_ASSERT_EQUAL(i.path_mtu, 3);
	CU_ASSERT_EQUAL(hx_state(s), UR_CM_REQ_RCVD);
	hx_fini(&h);
}

static void connect__refuses_bad_parameters(void)
{
	struct hx_ep *e;
	struct hx h;

	hx_init(&h, 3);
	e = hx_ep(&h, 0);
	CU_ASSERT_EQUAL(ur_cm_conn_create(h.side[0].cm, e, hx_event, &e->conn), 0);
	for (int i = 0; i < 6; i++) {
		struct ur_rdma_cm_hdr hdr = hx_hdr(&h, 0);
		struct ur_cm_req_param p = hx_req(e, &hdr);

		p.pdata_len = i == 0 ? 57 : 5;
		p.qp_type = i == 1 ? 4 : 2;
		p.path_mtu = i == 2 ? 6 : i == 3 ? 0 : 3;
		p.ack_timeout = i == 4 ? 32 : 0;
		p.retry_count = i == 5 ? 8 : 7;
		CU_ASSERT_EQUAL(ur_cm_connect(e->conn, &p, h.now), EINVAL);
	}
	CU_ASSERT_EQUAL(ur_cm_send_rtu(e->conn, NULL, 0, h.now), EINVAL);
	CU_ASSERT_EQUAL(hx_accept(e), EINVAL);
	CU_ASSERT_EQUAL(ur_cm_notify_established(e->conn, h.now), EINVAL);
	CU_ASSERT_EQUAL(ur_cm_disconnect(e->conn, NULL, 0, h.now), EINVAL);
	CU_ASSERT_EQUAL(ur_cm_reject(e->conn, 28, NULL, 0, NULL, 0, h.now), EINVAL);
	CU_ASSERT_EQUAL(h.side[0].sent[0], 0);
	hx_fini(&h);
}

/* A request as another implementation may send it: the packet's own headers say nothing of the path that it asks for. */
static struct ur_cm_conn_info info_of_request(struct hx *h, const struct ur_cm_path_rec *path)
{
	struct ur_cm_msg m = {.attr = UR_CM_REQ};
	struct ur_cm_conn_info i;
	struct hx_ep *l;

	l = hx_listen(h, 1, HX_PLAIN_SERVICE);
	l->accept = false;
	m.req.local_comm_id = 0x07000001;
	m.req.service_id = HX_PLAIN_SERVICE;
	m.req.path_mtu = 3;
	m.req.primary = *path;
	hx_inject_msg(h, 1, &m);
	CU_ASSERT_PTR_NOT_NULL_FATAL(l->child);
	ur_cm_conn_info(l->child->conn, &i);
	return i;
}

static void req__says_how_the_peer_wants_to_be_sent_to(void)
{
	static const struct {
		uint8_t asked, got;
	} t[] = {{0x00, 0x00}, {0x68, 0x68}, {0x6a, 0x68}, {0x69, 0x68}, {0x6b, 0x68}, {0xff, 0xfc}};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ur_cm_path_rec path = {.traffic_class = t[i].asked, .flow_label = 0xabcde, .ack_timeout = 14};
		struct ur_cm_conn_info info;
		struct hx h;

		hx_init(&h, 13);
		info = info_of_request(&h, &path);
		CU_ASSERT_EQUAL(info.addr.tclass, t[i].got);
		CU_ASSERT_EQUAL(info.addr.flow_label, 0xabcde);
		CU_ASSERT_EQUAL(info.addr.hop_limit, 64);
		CU_ASSERT_EQUAL(info.ack_timeout, 14);
		hx_fini(&h);
	}
}

static void req__ack_timeout_of_zero_is_the_default(void)
{
	struct ur_cm_path_rec path = {.ack_timeout = 0};
	struct hx h;

	hx_init(&h, 14);
	CU_ASSERT_EQUAL(info_of_request(&h, &path).ack_timeout, 17);
	hx_fini(&h);
}

/* Loses (arg[2] = 0) or repeats (3 copies) the first message of side arg[0] and attribute arg[1]. */
static unsigned one_victim(struct hx *h, int side, unsigned attr, unsigned nth)
{
	return (unsigned)side == h->arg[0] && attr == h->arg[1] && nth == 1 ? h->arg[2] : 1;
}

static void check_life(unsigned side, unsigned attr, unsigned copies)
{
	struct hx_ep *l, *c;
	struct hx h;

	hx_init(&h, side * 100 + attr);
	h.fate = one_victim;
	h.arg[0] = side;
	h.arg[1] = attr;
	h.arg[2] = copies;
	l = hx_listen(&h, 1, HX_SERVICE);
	c = hx_connect(&h, 0, HX_SERVICE);
	hx_run(&h, h.now + 7000 * HX_MS);
	CU_ASSERT_EQUAL(hx_state(c), UR_CM_ESTABLISHED);
	CU_ASSERT_EQUAL(l->nchildren, 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(l->child);
	CU_ASSERT_EQUAL(hx_state(l->child), UR_CM_ESTABLISHED);
	CU_ASSERT_EQUAL(ur_cm_disconnect(c->conn, "end", 3, h.now), 0);
	CU_ASSERT(hx_settle(&h, h.now + 60 * UR_NS_PER_S));
	CU_ASSERT_EQUAL(c->got[UR_CM_EV_REP], 1);
	CU_ASSERT_EQUAL(c->got[UR_CM_EV_DISCONNECTED], 1);
	CU_ASSERT_EQUAL(c->got[UR_CM_EV_TIMEWAIT_EXIT], 1);
	CU_ASSERT_EQUAL(l->child->got[UR_CM_EV_RTU], 1);
	CU_ASSERT_EQUAL(l->child->got[UR_CM_EV_DREQ], 1);
	CU_ASSERT_EQUAL(l->child->got[UR_CM_EV_TIMEWAIT_EXIT], 1);
	hx_drop(c);
	hx_drop(l->child);
	CU_ASSERT_EQUAL(hx_conns(&h, 0) + hx_conns(&h, 1), 0);
	hx_fini(&h);
}

static void life__each_message_lost_or_repeated(void)
{
	static const struct {
		unsigned side, attr;
	} victims[] = {{0, UR_CM_REQ}, {1, UR_CM_REP}, {0, UR_CM_RTU}, {0, UR_CM_DREQ}, {1, UR_CM_DREP}};

	for (unsigned i = 0; i < ur_array_size(victims); i++)
		for (unsigned copies = 0; copies <= 4; copies++)
			check_life(victims[i].side, victims[i].attr, copies);
}

static unsigned lose_attr(struct hx *h, int side, unsigned attr, unsigned nth)
{
	(void)nth;
	return !((unsigned)side == h->arg[0] && attr == h->arg[1]);
}

static void connect__unreachable_after_sixteen_requests(void)
{
	ur_time start;
	struct hx_ep *c;
	struct hx h;

	hx_init(&h, 4);
	h.fate = lose_attr;
	h.arg[1] = UR_CM_REQ;
	start = h.now;
	c = hx_connect(&h, 0, HX_SERVICE);
	hx_run(&h, start + REQ_INTERVAL - HX_MS);
	CU_ASSERT_EQUAL(HX_SENT(&h, 0, REQ), 1 + EARLY);
	hx_run(&h, start + REQ_INTERVAL + HX_MS);
	CU_ASSERT_EQUAL(HX_SENT(&h, 0, REQ), 2 + EARLY);
	hx_run(&h, start + 16 * REQ_INTERVAL - HX_MS);
	CU_ASSERT_EQUAL(c->got[UR_CM_EV_UNREACHABLE], 0);
	CU_ASSERT_EQUAL(hx_state(c), UR_CM_REQ_SENT);
	CU_ASSERT(hx_settle(&h, start + 16 * REQ_INTERVAL + HX_MS));
	CU_ASSERT_EQUAL(HX_SENT(&h, 0, REQ), 16 + EARLY);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 0, CM_RETRIES), 15);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 0, CM_EARLY), EARLY);
	CU_ASSERT_EQUAL(c->got[UR_CM_EV_UNREACHABLE], 1);
	CU_ASSERT_EQUAL(hx_state(c), UR_CM_IDLE);
	hx_fini(&h);
}

/* A lost message costs half a second, and a second one a second more: both come before the first retry. */
static void connect__early_resends(void)
{
	static const unsigned after_ms[] = {500, 1500, 3500, 4608};
	ur_time start;
	struct hx h;

	hx_init(&h, 41);
	h.fate = lose_attr;
	h.arg[1] = UR_CM_REQ;
	start = h.now;
	hx_connect(&h, 0, HX_SERVICE);
	for (unsigned i = 0; i < 4; i++) {
		hx_run(&h, start + after_ms[i] * HX_MS - HX_MS);
		CU_ASSERT_EQUAL(HX_SENT(&h, 0, REQ), 1 + i);
		hx_run(&h, start + after_ms[i] * HX_MS + HX_MS);
		CU_ASSERT_EQUAL(HX_SENT(&h, 0, REQ), 2 + i);
	}
	hx_fini(&h);
}

static void connect__ack_timeout_sets_the_interval(void)
{
	struct ur_rdma_cm_hdr hdr;
	struct ur_cm_req_param p;
	struct ur_cm_msg m;
	ur_time start;
	struct hx_ep *c;
	struct hx h;

	hx_init(&h, 5);
	h.fate = lose_attr;
	h.arg[1] = UR_CM_REQ;
	c = hx_ep(&h, 0);
	hdr = hx_hdr(&h, 0);
	p = hx_req(c, &hdr);
	p.ack_timeout = 15;
	start = h.now;
	CU_ASSERT_EQUAL(ur_cm_conn_create(h.side[0].cm, c, hx_event, &c->conn), 0);
	CU_ASSERT_EQUAL(ur_cm_connect(c->conn, &p, h.now), 0);
	CU_ASSERT(ur_cm_msg_parse(HX_LAST(&h, 0, REQ), &m));
	CU_ASSERT_EQUAL(m.req.primary.ack_timeout, 15);
	hx_run(&h, start + 10 * UR_NS_PER_S - 1);
	CU_ASSERT_EQUAL(HX_SENT(&h, 0, REQ), 3 + EARLY);
	CU_ASSERT_EQUAL((h.side[0].sent_at[0] - start) / HX_MS, 2 * (4096 + 2 * 64));
	hx_fini(&h);
}

static void accept__unreachable_after_sixteen_replies(void)
{
	struct hx_ep *l, *c;
	ur_time start;
	struct hx h;

	hx_init(&h, 6);
	h.fate = lose_attr;
	h.arg[0] = 1;
	h.arg[1] = UR_CM_REP;
	l = hx_listen(&h, 1, HX_SERVICE);
	c = hx_connect(&h, 0, HX_SERVICE);
	start = h.now + HX_MS;
	hx_run(&h, start + 16 * REP_INTERVAL - HX_MS);
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, REP), 16 + EARLY);
	CU_ASSERT_EQUAL(l->child->got[UR_CM_EV_UNREACHABLE], 0);
	hx_run(&h, start + 16 * REP_INTERVAL + HX_MS);
	CU_ASSERT_EQUAL(l->child->got[UR_CM_EV_UNREACHABLE], 1);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 1, CM_RETRIES), 15);
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, MRA), 0);
	CU_ASSERT_EQUAL(hx_state(c), UR_CM_REQ_SENT);
	hx_fini(&h);
}

/* A REQ says how long its sender may take to answer and how often it wants to be asked: not for longer than Linux asks. */
static void rep__repeats_are_not_the_peers_to_choose(void)
{
	static const struct {
		uint8_t timeout, retries;
		ur_time least, most;
	} t[] = {
		{31, 15, 60 * UR_NS_PER_S, 70 * UR_NS_PER_S},
		{24, 15, 60 * UR_NS_PER_S, 70 * UR_NS_PER_S},
		{20, 15, 60 * UR_NS_PER_S, 70 * UR_NS_PER_S},
		{20, 3, 16 * UR_NS_PER_S, 17 * UR_NS_PER_S},
		{31, 0, 4 * UR_NS_PER_S, 5 * UR_NS_PER_S},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ur_cm_msg m = {.attr = UR_CM_REQ};
		struct hx_ep *l;
		ur_time begin;
		struct hx h;

		hx_init(&h, 12);
		h.fate = lose_attr;
		h.arg[0] = 1;
		h.arg[1] = UR_CM_REP;
		l = hx_listen(&h, 1, HX_PLAIN_SERVICE);
		m.req.local_comm_id = 0x07000001;
		m.req.service_id = HX_PLAIN_SERVICE;
		m.req.local_qpn = 0x70001;
		m.req.path_mtu = 3;
		m.req.local_response_timeout = t[i].timeout;
		m.req.max_cm_retries = t[i].retries;
		begin = h.now;
		hx_inject_msg(&h, 1, &m);
		CU_ASSERT_PTR_NOT_NULL_FATAL(l->child);
		hx_run(&h, begin + t[i].least);
		CU_ASSERT_EQUAL(l->child->got[UR_CM_EV_UNREACHABLE], 0);
		hx_run(&h, begin + t[i].most);
		CU_ASSERT_EQUAL(l->child->got[UR_CM_EV_UNREACHABLE], 1);
		hx_fini(&h);
	}
}

static void req__repeated_while_the_user_thinks(void)
{
	struct hx_ep *l, *c;
	ur_time start;
	struct hx h;

	hx_init(&h, 7);
	l = hx_listen(&h, 1, HX_SERVICE);
	l->accept = false;
	start = h.now;
	c = hx_connect(&h, 0, HX_SERVICE);
	hx_run(&h, start + EARLY_RESEND - HX_MS);
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, MRA), 0);
	hx_run(&h, start + EARLY_RESEND + 10 * HX_MS);
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, MRA), 1);
	CU_ASSERT_EQUAL(hx_state(l->child), UR_CM_MRA_REQ_SENT);
	CU_ASSERT_EQUAL(hx_state(c), UR_CM_MRA_REQ_RCVD);
	/* The MRA asked for 2^(24-8) ms; the next REQ comes after that and its own interval. */
	hx_run(&h, start + EARLY_RESEND + 65536 * HX_MS + REQ_INTERVAL - HX_MS);
	CU_ASSERT_EQUAL(HX_SENT(&h, 0, REQ), 2);
	hx_run(&h, start + EARLY_RESEND + 65536 * HX_MS + REQ_INTERVAL + 10 * HX_MS);
	CU_ASSERT_EQUAL(HX_SENT(&h, 0, REQ), 3);
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, MRA), 2);
	CU_ASSERT_EQUAL(l->nchildren, 1);
	CU_ASSERT_EQUAL(hx_accept(l->child), 0);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_EQUAL(hx_state(c), UR_CM_ESTABLISHED);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 1, CM_DUPLICATE), 2);
	hx_fini(&h);
}

static void inject_mra(struct hx *h, int to, const struct hx_ep *ep, uint32_t peer_id, uint8_t about, uint8_t service_timeout)
{
	struct ur_cm_msg m = {.attr = UR_CM_MRA};

	m.mra.local_comm_id = peer_id;
	m.mra.remote_comm_id = ep->conn->local_id;
	m.mra.message = about;
	m.mra.service_timeout = service_timeout;
	hx_inject_msg(h, to, &m);
}

/* Every MRA counts from its own arrival, and a shorter one takes nothing back. */
static void mra__again_extends_the_wait(void)
{
	struct hx_ep *c;
	ur_time start;
	struct hx h;

	hx_init(&h, 15);
	h.fate = lose_attr;
	h.arg[1] = UR_CM_REQ;
	c = hx_connect(&h, 0, HX_SERVICE);
	inject_mra(&h, 0, c, 1, UR_CM_ABOUT_REQ, 20);
	CU_ASSERT_EQUAL(hx_state(c), UR_CM_MRA_REQ_RCVD);
	hx_run(&h, h.now + UR_NS_PER_S);
	start = h.now;
	inject_mra(&h, 0, c, 1, UR_CM_ABOUT_REQ, 22);
	inject_mra(&h, 0, c, 1, UR_CM_ABOUT_REQ, 14);
	hx_run(&h, start + 16384 * HX_MS + REQ_INTERVAL - HX_MS);
	CU_ASSERT_EQUAL(HX_SENT(&h, 0, REQ), 1);
	hx_run(&h, start + 16384 * HX_MS + REQ_INTERVAL + HX_MS);
	CU_ASSERT_EQUAL(HX_SENT(&h, 0, REQ), 2);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 0, DROP_MAD) + HX_COUNTER(&h, 0, CM_DUPLICATE), 0);
	hx_fini(&h);
}

static void mra__again_extends_the_wait_for_the_rtu(void)
{
	struct hx_ep *l, *c;
	ur_time start;
	struct hx h;

	hx_init(&h, 16);
	l = hx_listen(&h, 1, HX_SERVICE);
	c = hx_connect(&h, 0, HX_SERVICE);
	c->rtu = false;
	hx_run(&h, h.now + 10 * HX_MS);
	inject_mra(&h, 1, l->child, c->conn->local_id, UR_CM_ABOUT_REP, 20);
	CU_ASSERT_EQUAL(hx_state(l->child), UR_CM_MRA_REP_RCVD);
	hx_run(&h, h.now + UR_NS_PER_S);
	start = h.now;
	inject_mra(&h, 1, l->child, c->conn->local_id, UR_CM_ABOUT_REP, 22);
	hx_run(&h, start + 16384 * HX_MS + REP_INTERVAL - HX_MS);
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, REP), 1);
	hx_run(&h, start + 16384 * HX_MS + REP_INTERVAL + HX_MS);
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, REP), 2);
	hx_fini(&h);
}

static void rep__repeated_while_the_user_thinks(void)
{
	struct hx_ep *l, *c;
	struct hx h;

	hx_init(&h, 8);
	l = hx_listen(&h, 1, HX_SERVICE);
	c = hx_connect(&h, 0, HX_SERVICE);
	c->rtu = false;
	hx_run(&h, h.now + REP_INTERVAL + 10 * HX_MS);
	CU_ASSERT_EQUAL(hx_state(c), UR_CM_MRA_REP_SENT);
	CU_ASSERT_EQUAL(hx_state(l->child), UR_CM_MRA_REP_RCVD);
	CU_ASSERT_EQUAL(HX_SENT(&h, 0, MRA), 1);
	hx_run(&h, h.now + 65536 * HX_MS);
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, REP), 2);
	CU_ASSERT_EQUAL(ur_cm_send_rtu(c->conn, NULL, 0, h.now), 0);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_EQUAL(hx_state(l->child), UR_CM_ESTABLISHED);
	hx_fini(&h);
}

static void rep__repeated_gets_the_same_rtu(void)
{
	uint8_t first[UR_MAD_LEN];
	struct hx_pair p;
	struct hx h;

	hx_init(&h, 9);
	p = hx_established(&h);
	memcpy(first, HX_LAST(&h, 0, RTU), UR_MAD_LEN);
	hx_inject(&h, 0, HX_LAST(&h, 1, REP));
	CU_ASSERT_EQUAL(HX_SENT(&h, 0, RTU), 2);
	CU_ASSERT_EQUAL(memcmp(first, HX_LAST(&h, 0, RTU), UR_MAD_LEN), 0);
	CU_ASSERT_EQUAL(p.client->got[UR_CM_EV_REP], 1);
	CU_ASSERT_EQUAL(HX_COUNTER(&h, 0, CM_DUPLICATE), 1);
	hx_fini(&h);
}

static void notify_established__replaces_the_rtu(void)
{
	struct hx_ep *l;
	struct hx h;

	hx_init(&h, 10);
	h.fate = lose_attr;
	h.arg[1] = UR_CM_RTU;
	l = hx_listen(&h, 1, HX_SERVICE);
	hx_connect(&h, 0, HX_SERVICE);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_EQUAL(hx_state(l->child), UR_CM_REP_SENT);
	CU_ASSERT_EQUAL(ur_cm_notify_established(l->child->conn, h.now), 0);
	CU_ASSERT_EQUAL(l->child->got[UR_CM_EV_RTU], 1);
	CU_ASSERT_EQUAL(hx_state(l->child), UR_CM_ESTABLISHED);
	hx_inject(&h, 1, HX_LAST(&h, 0, RTU));
	CU_ASSERT_EQUAL(l->child->got[UR_CM_EV_RTU], 1);
	CU_ASSERT(hx_settle(&h, h.now + UR_NS_PER_S));
	CU_ASSERT_EQUAL(HX_SENT(&h, 1, REP), 1);
	hx_fini(&h);
}

static void connect__uc(void)
{
	struct ur_cm_conn_info i;
	struct ur_cm_req_param p;
	struct hx_ep *l, *c;
	struct hx h;

	hx_init(&h, 11);
	l = hx_listen(&h, 1, HX_PLAIN_SERVICE);
	c = hx_ep(&h, 0);
	c->rtu = true;
	p = hx_req(c, NULL);
	p.service_id = HX_PLAIN_SERVICE;
	p.qp_type = UR_CM_QPT_UC;
	CU_ASSERT_EQUAL(ur_cm_conn_create(h.side[0].cm, c, hx_event, &c->conn), 0);
	CU_ASSERT_EQUAL(ur_cm_connect(c->conn, &p, h.now), 0);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_PTR_NOT_NULL_FATAL(l->child);
	CU_ASSERT_EQUAL(hx_state(l->child), UR_CM_ESTABLISHED);
	ur_cm_conn_info(l->child->conn, &i);
	CU_ASSERT_EQUAL(i.qp_type, UR_CM_QPT_UC);
	hx_fini(&h);
}

static void connect__again_after_the_end(void)
{
	struct ur_rdma_cm_hdr hdr;
	struct ur_cm_req_param q;
	struct hx_pair p;
	uint32_t id;
	struct hx h;

	hx_init(&h, 12);
	p = hx_established(&h);
	id = p.client->conn->local_id;
	CU_ASSERT_EQUAL(ur_cm_disconnect(p.client->conn, NULL, 0, h.now), 0);
	CU_ASSERT(hx_settle(&h, h.now + 10 * UR_NS_PER_S));
	CU_ASSERT_EQUAL(hx_state(p.client), UR_CM_IDLE);
	CU_ASSERT_NOT_EQUAL(p.client->conn->local_id, id);
	hdr = hx_hdr(&h, 0);
	q = hx_req(p.client, &hdr);
	CU_ASSERT_EQUAL(ur_cm_connect(p.client->conn, &q, h.now), 0);
	hx_run(&h, h.now + 10 * HX_MS);
	CU_ASSERT_EQUAL(hx_state(p.client), UR_CM_ESTABLISHED);
	CU_ASSERT_EQUAL(p.listener->nchildren, 2);
	hx_fini(&h);
}

void ur_suite_cm_connect(void)
{
	CU_pSuite s = CU_add_suite("cm_connect", NULL, NULL);

	CU_ADD_TEST(s, connect__handshake);
	CU_ADD_TEST(s, connect__request_as_the_listener_sees_it);
	CU_ADD_TEST(s, connect__refuses_bad_parameters);
	CU_ADD_TEST(s, req__says_how_the_peer_wants_to_be_sent_to);
	CU_ADD_TEST(s, req__ack_timeout_of_zero_is_the_default);
	CU_ADD_TEST(s, life__each_message_lost_or_repeated);
	CU_ADD_TEST(s, connect__unreachable_after_sixteen_requests);
	CU_ADD_TEST(s, connect__early_resends);
	CU_ADD_TEST(s, connect__ack_timeout_sets_the_interval);
	CU_ADD_TEST(s, accept__unreachable_after_sixteen_replies);
	CU_ADD_TEST(s, rep__repeats_are_not_the_peers_to_choose);
	CU_ADD_TEST(s, req__repeated_while_the_user_thinks);
	CU_ADD_TEST(s, mra__again_extends_the_wait);
	CU_ADD_TEST(s, mra__again_extends_the_wait_for_the_rtu);
	CU_ADD_TEST(s, rep__repeated_while_the_user_thinks);
	CU_ADD_TEST(s, rep__repeated_gets_the_same_rtu);
	CU_ADD_TEST(s, notify_established__replaces_the_rtu);
	CU_ADD_TEST(s, connect__uc);
	CU_ADD_TEST(s, connect__again_after_the_end);
}
