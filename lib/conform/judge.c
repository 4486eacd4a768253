/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a packet is the one that a step of a script waits for. */
#include "conform/internal.h"
#include "wire/sack.h"

#define HELLO_WITHIN 64     /* request packets of a connection */
#define HELLO_AGAIN 512     /* of one that had to go back */
#define MANUFACTURERS 0xc0u /* their opcodes begin here */

static bool waits_for_answer(const struct ur_cf_step *s)
{
	return s->kind == UR_CF_QUIET ? !s->opcode || ur_cf_is_answer(s->opcode) : ur_cf_is_answer(s->opcode);
}

/* A CNP may come at any time, and only who waits for one takes notice. */
static bool same_kind(const struct ur_cf_step *s, uint8_t opcode)
{
	if (opcode == UR_OP_CNP || s->opcode == UR_OP_CNP)
		return opcode == s->opcode;
	return ur_cf_is_answer(opcode) == waits_for_answer(s);
}

/* Credits of an ACK and the timer of an RNR NAK are the peer's own affair. */
static bool same_syndrome(uint8_t want, uint8_t got)
{
	enum ur_aeth_type t = ur_syndrome_type(want);

	if (got & 0x80 || ur_syndrome_type(got) != t)
		return false;
	return t == UR_AETH_ACK || t == UR_AETH_RNR || want == got;
}

static bool is_ack(const struct ur_pkt *p, struct ur_aeth *h)
{
	const struct ur_opcode_info *op = ur_opcode(p->bth.opcode);

	if (!(op->flags & UR_OPF_AETH))
		return false;
	ur_aeth_get(ur_bth_ext(p) + op->off_aeth, h);
	return ur_syndrome_type(h->syndrome) == UR_AETH_ACK;
}

/* A plain ACK of what came before: the peer need not coalesce. */
static bool is_early(const struct ur_cf_run *r, const struct ur_cf_step *s, const struct ur_pkt *p)
{
	struct ur_aeth h;
	int32_t from_first = ur_psn_diff(p->bth.psn, r->conn.psn);

	return (p->bth.opcode & UR_OP_MASK) == UR_OP_ACK && is_ack(p, &h) && from_first >= 0 && from_first < s->psn;
}

/* A request that the peer has sent before: it may repeat what it has no answer to yet. */
static bool is_repeat(const struct ur_cf_run *r, const struct ur_cf_step *s, const struct ur_pkt *p)
{
	int32_t from_first = ur_psn_diff(p->bth.psn, r->conn.their_psn);

	return s->flags & UR_CF_OR_REPEAT && from_first >= 0 && from_first < s->psn;
}

/* How many messages the packet's PSN says were kept beyond a gap. */
static uint32_t kept(const struct ur_cf_run *r, const struct ur_cf_step *s, const struct ur_pkt *p)
{
	return p->bth.psn == ur_psn_add(ur_cf_psn(r, s), s->kept) ? s->kept : 0;
}

/* It kept messages beyond a gap, has executed those before this one, and lacks a receive for it. */
static bool lacks_receive(const struct ur_cf_run *r, const struct ur_cf_step *s, const struct ur_pkt *p, const struct ur_opcode_info *op)
{
	const uint32_t n = (p->bth.psn - ur_cf_psn(r, s)) & UR_PSN_MASK;
	struct ur_aeth h;

	if (!(op->flags & UR_OPF_AETH) || ur_syndrome_type(s->code) != UR_AETH_ACK || !n || n > s->kept)
		return false;
	ur_aeth_get(ur_bth_ext(p) + op->off_aeth, &h);
	return ur_syndrome_type(h.syndrome) == UR_AETH_RNR && h.msn == ur_psn_add(ur_cf_msn(r, s), n - 1);
}

static const char *odd_aeth(const struct ur_cf_run *r, const struct ur_cf_step *s, const struct ur_pkt *p, const struct ur_opcode_info *op)
{
	struct ur_aeth h;

	ur_aeth_get(ur_bth_ext(p) + op->off_aeth, &h);
	if (s->code2 != UR_CF_ANY && !same_syndrome(s->code, h.syndrome) && !(s->code2 && same_syndrome(s->code2, h.syndrome)))
		return "its syndrome is wrong";
	if (!(s->flags & UR_CF_ANY_MSN) && h.msn != ur_psn_add(ur_cf_msn(r, s), kept(r, s, p)))
		return "its MSN is wrong";
	return NULL;
}

static const char *odd_request(const struct ur_cf_step *s, const struct ur_pkt *p, const struct ur_opcode_info *op)
{
	struct ur_reth h;

	if (!(op->flags & UR_OPF_RETH))
		return NULL;
	ur_reth_get(ur_bth_ext(p) + op->off_reth, &h);
	if (h.va != UR_CF_OUR_VA + s->off || h.rkey != UR_CF_OUR_RKEY || (h.len != s->dma_len && !(s->flags & UR_CF_LONE_ADDRESS)))
		return "its address, key or length is not the one that was advertised";
	return NULL;
}

static const char *odd_echo(const struct ur_cf_step *s, const struct ur_pkt *p)
{
	const uint8_t *from = p->data + p->payload_off;

	if (p->payload_len != UR_CF_ADVERT_LEN)
		return "its length is wrong";
	if (ur_get64(from) != s->x)
		return "the peer has accepted a different number of messages";
	return ur_get32(from + 8) == s->y ? NULL : "the peer has accepted a different number of bytes";
}

static const char *odd_payload(const struct ur_cf_step *s, const struct ur_pkt *p, const struct ur_opcode_info *op)
{
	if (op->flags & UR_OPF_ATOMICACKETH)
		return ur_get64(ur_bth_ext(p) + op->off_atomicacketh) == s->x ? NULL : "the value that it returns is wrong";
	if (!(op->flags & UR_OPF_PAYLOAD) || s->flags & UR_CF_ANY_LEN)
		return NULL;
	if (s->flags & UR_CF_ECHO)
		return odd_echo(s, p);
	if (p->payload_len != s->len)
		return "its length is wrong";
	for (unsigned i = 0; s->flags & UR_CF_PAYLOAD && i < s->len; i++)
		if (p->data[p->payload_off + i] != ur_cf_pattern(s->fill, s->at + i))
			return "its data is wrong";
	return NULL;
}

static const char *find_odd(const struct ur_cf_run *r, const struct ur_cf_step *s, const struct ur_pkt *p, ur_time now)
{
	const struct ur_opcode_info *op = ur_opcode(p->bth.opcode);
	const char *odd;

	if (p->bth.opcode != s->opcode)
		return "its opcode is wrong";
	if (lacks_receive(r, s, p, op))
		return NULL;
	if (op->flags & UR_OPF_AETH && (odd = odd_aeth(r, s, p, op)))
		return odd;
	if (s->opcode != UR_OP_CNP && !(s->flags & UR_CF_ANY_PSN) && p->bth.psn != ur_psn_add(ur_cf_psn(r, s), kept(r, s, p)))
		return "its PSN is wrong";
	if (s->opcode == UR_OP_CNP && !p->bth.becn)
		return "BECN is not set";
	if (!ur_cf_is_answer(s->opcode) && (odd = odd_request(s, p, op)))
		return odd;
	odd = odd_payload(s, p, op);
	if (!odd && s->ms && now < r->sent_at + s->ms * UR_NS_PER_MS)
		odd = "it came too early";
	return odd;
}

enum ur_cf_match ur_cf_judge(const struct ur_cf_run *r, const struct ur_cf_step *s, const struct ur_pkt *p, ur_time now, const char **odd)
{
	*odd = NULL;
	if (s->kind == UR_CF_PAUSE || !same_kind(s, p->bth.opcode))
		return UR_CF_PASSED_OVER;
	if (s->kind == UR_CF_QUIET)
		return waits_for_answer(s) || s->opcode == p->bth.opcode ? UR_CF_WRONG : UR_CF_PASSED_OVER;
	if (s->kind != UR_CF_EXPECT || is_early(r, s, p) || (!waits_for_answer(s) && is_repeat(r, s, p)))
		return UR_CF_PASSED_OVER;
	*odd = find_odd(r, s, p, now);
	return *odd ? UR_CF_WRONG : UR_CF_RIGHT;
}

/* Has this request come for the first time? */
static bool is_new_request(struct ur_cf_conn *c, const struct ur_pkt *p)
{
	if (c->asked && ur_psn_diff(p->bth.psn, c->top) < 0) {
		c->went_back = true;
		return false;
	}
	c->asked++;
	c->top = ur_psn_add(p->bth.psn, 1);
	return true;
}

const char *ur_cf_judge_foreign(struct ur_cf_run *r, const struct ur_pkt *p)
{
	const uint8_t *bth = p->data + p->bth_off;
	const uint8_t service = p->bth.opcode & UR_SERVICE_MASK;
	bool may_greet;

	if (p->bth.opcode >= MANUFACTURERS)
		return "its opcode is one of a manufacturer's, and we have not said that we know any";
	may_greet = !ur_cf_is_answer(p->bth.opcode) && (service == UR_RC || service == UR_XRC) && is_new_request(&r->conn, p) &&
		    r->conn.asked <= (r->conn.went_back ? HELLO_AGAIN : HELLO_WITHIN);
	if (!(bth[UR_HELLO_AT] & UR_HELLO_MASK) || (may_greet && ur_hello_is(bth)))
		return NULL;
	return "reserved bits beside AckReq are set";
}

/* --- the CM --- */

static bool is_ours(const struct ur_cf_run *r, const struct ur_cm_msg *m)
{
	switch (m->attr) {
	case UR_CM_REP: return m->rep.remote_comm_id == r->conn.id;
	case UR_CM_REJ: return m->rej.remote_comm_id == r->conn.id || !m->rej.remote_comm_id;
	case UR_CM_DREQ: return m->dreq.remote_comm_id == r->conn.id;
	case UR_CM_DREP: return m->rtu.remote_comm_id == r->conn.id;
	case UR_CM_SIDR_REP: return m->sidr_rep.request_id == r->conn.id;
	default: return false;
	}
}

enum ur_cf_match ur_cf_judge_cm(const struct ur_cf_run *r, const struct ur_cf_step *s, const struct ur_cm_msg *m, const char **odd)
{
	*odd = NULL;
	/* The peer's own end of the connection is no answer, unless it is waited for. */
	if (!is_ours(r, m) || (m->attr == UR_CM_DREQ && s->opcode != UR_CM_DREQ))
		return UR_CF_PASSED_OVER;
	if (s->kind == UR_CF_CM_QUIET)
		return m->attr == s->opcode || !s->opcode ? UR_CF_WRONG : UR_CF_PASSED_OVER;
	if (s->kind != UR_CF_CM_EXPECT)
		return UR_CF_PASSED_OVER;
	if (m->attr == UR_CM_REP && (s->opcode == UR_CM_DREP || s->opcode == UR_CM_DREQ))
		return UR_CF_PASSED_OVER; /* our RTU was lost */
	if (m->attr != s->opcode)
		*odd = "a different message was expected";
	else if (m->attr == UR_CM_REP && s->flags & UR_CF_SAME_ID && m->rep.local_comm_id != r->conn.peer_id)
		*odd = "its communication id is different";
	else if (m->attr == UR_CM_REJ && m->rej.reason != s->code && !(s->code2 && (m->rej.reason == s->code2 || s->code2 == UR_CF_ANY)))
		*odd = "its reason is wrong";
	else if (m->attr == UR_CM_SIDR_REP && m->sidr_rep.status != s->code && !(s->code2 && m->sidr_rep.status == s->code2))
		*odd = "its status is wrong";
	return *odd ? UR_CF_WRONG : UR_CF_RIGHT;
}
