/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of the CM: those that scripts send, and answers to the peer's that no script waits for. */
#include "conform/internal.h"

/* The upper part of service ids (annex A11): the port space. */
#define SPACE_TCP 0x01060000u
#define SPACE_UDP 0x01110000u
#define SPACE_IB 0x013f0000u

#define RESPONSE_TIMEOUT 16 /* 268 ms: when the peer repeats what it has no answer to */
#define CA_GUID 0x0200c0ffee000001ull
#define UNKNOWN_PORT 0xfff1
#define SPORT 0x8765

enum { TYPE_RC = 0, TYPE_UC = 1, TYPE_RD = 2 };

static uint64_t service_id(const struct ur_cf_run *r, const struct ur_cf_step *s)
{
	uint32_t port = s->flags & UR_CF_NO_SERVICE ? UNKNOWN_PORT : r->cfg.port;
	uint8_t setup = ur_cf_current(r)->setup;

	if (s->opcode == UR_CM_SIDR_REQ)
		return SPACE_UDP | port;
	return (setup == UR_CF_UC ? SPACE_IB : SPACE_TCP) | port;
}

/* Private data of a REQ or SIDR_REQ: the header of IP port spaces, and who asks. */
static unsigned put_private(const struct ur_cf_run *r, uint8_t *to)
{
	struct ur_rdma_cm_hdr h = {
		.ip_version = ur_gid_is_v4(&r->cfg.peer) ? 4 : 6, .sport = SPORT, .src = r->cfg.local, .dst = r->cfg.peer};

	ur_rdma_cm_hdr_put(to, &h);
	ur_put32(to + UR_RDMA_CM_HDR_LEN, UR_CF_MAGIC);
	to[UR_RDMA_CM_HDR_LEN + 4] = ur_cf_current(r)->serve;
	ur_put32(to + UR_RDMA_CM_HDR_LEN + 5, ur_cf_current(r)->our_psn);
	return UR_RDMA_CM_HDR_LEN + UR_CF_REQ_LEN;
}

static void fill_req(const struct ur_cf_run *r, const struct ur_cf_step *s, struct ur_cm_req *q)
{
	const struct ur_cf_rule *rule = ur_cf_current(r);

	q->local_comm_id = r->conn.id;
	q->service_id = service_id(r, s);
	q->local_ca_guid = CA_GUID;
	q->local_qpn = r->conn.qpn;
	q->responder_resources = q->initiator_depth = UR_CF_DEPTH;
	q->remote_response_timeout = q->local_response_timeout = RESPONSE_TIMEOUT;
	q->transport_type = rule->setup == UR_CF_UC ? TYPE_UC : TYPE_RC;
	if (s->flags & UR_CF_NO_TRANSPORT)
		q->transport_type = TYPE_RD;
	q->starting_psn = r->conn.their_psn;
	q->retry_count = 7;
	q->rnr_retry_count = 7;
	q->pkey = UR_PKEY_DEFAULT;
	q->path_mtu = UR_CF_MTU_CODE;
	q->max_cm_retries = 4;
	q->primary = (struct ur_cm_path_rec){.local_lid = 0xffff,
					     .remote_lid = 0xffff,
					     .local_gid = r->cfg.local,
					     .remote_gid = r->cfg.peer,
					     .hop_limit = 64,
					     .ack_timeout = rule->ack_timeout ? rule->ack_timeout : UR_CF_ACK_TIMEOUT};
}

void ur_cf_build_answer(const struct ur_cf_run *r, enum ur_cm_attr attr, const struct ur_cm_msg *to, uint8_t *mad)
{
	struct ur_cm_msg m = {.attr = attr, .mad.tid = to->mad.tid};

	/* RTU and DREP have one form, and what they answer the ids in the same places. */
	m.rtu.local_comm_id = r->conn.id;
	m.rtu.remote_comm_id = to->dreq.local_comm_id;
	ur_cm_msg_build(mad, &m);
}

void ur_cf_build_cm(struct ur_cf_run *r, const struct ur_cf_step *s)
{
	struct ur_cm_msg m = {.attr = s->opcode, .mad.tid = r->conn.tid};
	const uint32_t peer_id = s->flags & UR_CF_BAD_ID ? r->conn.peer_id ^ 0x5a5a : r->conn.peer_id;
	uint8_t private[UR_CM_PDATA_MAX];

	if (s->flags & UR_CF_AGAIN)
		return;
	if (s->flags & UR_CF_FRESH_ID) {
		r->conn.old_id = r->conn.id;
		r->conn.id = ur_rng_u32(&r->rng) | 1;
		m.mad.tid = r->conn.tid = ur_rng_u64(&r->rng);
	}
	switch (s->opcode) {
	case UR_CM_REQ:
		fill_req(r, s, &m.req);
		m.pdata_len = put_private(r, private);
		m.pdata = private;
		break;
	case UR_CM_SIDR_REQ:
		m.sidr_req = (struct ur_cm_sidr_req){.request_id = r->conn.id, .pkey = UR_PKEY_DEFAULT, .service_id = service_id(r, s)};
		m.pdata_len = put_private(r, private);
		m.pdata = private;
		break;
	case UR_CM_DREQ:
		m.dreq = (struct ur_cm_dreq){r->conn.id, peer_id, s->flags & UR_CF_BAD_QPN ? r->conn.dqpn ^ 0x5a5 : r->conn.dqpn};
		m.mad.tid = r->conn.tid ^ 0xd00d;
		break;
	case UR_CM_REJ:
		m.rej = (struct ur_cm_rej){.local_comm_id = r->conn.id, .remote_comm_id = peer_id, .message = 1, .reason = s->code};
		break;
	case UR_CM_MRA:
		m.mra = (struct ur_cm_mra){
			.local_comm_id = r->conn.id, .remote_comm_id = peer_id, .message = 1, .service_timeout = s->code};
		break;
	default: m.rtu = (struct ur_cm_rtu){r->conn.id, peer_id}; break;
	}
	ur_cm_msg_build(r->mad, &m);
	if (s->flags & UR_CF_BAD_CLASS)
		r->mad[2] = 99; /* the class version */
}
