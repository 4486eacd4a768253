/* SPDX-License-Identifier: BSD-3-Clause */
/* How the connection of a script is made and ended: these are scripts, too. The values that the CM's messages carry are stored here. */
#include "conform/internal.h"

static const struct ur_cf_step connect_with_cm[] = {
	{.kind = UR_CF_CM, .opcode = UR_CM_REQ},
	{.kind = UR_CF_CM_EXPECT, .opcode = UR_CM_REP, .flags = UR_CF_RESEND},
	{.kind = UR_CF_CM, .opcode = UR_CM_RTU},
	{.kind = UR_CF_END},
};
static const struct ur_cf_step look_up[] = {
	{.kind = UR_CF_CM, .opcode = UR_CM_SIDR_REQ},
	{.kind = UR_CF_CM_EXPECT, .opcode = UR_CM_SIDR_REP, .flags = UR_CF_RESEND},
	{.kind = UR_CF_END},
};
static const struct ur_cf_step disconnect[] = {
	{.kind = UR_CF_CM, .opcode = UR_CM_DREQ},
	{.kind = UR_CF_CM_EXPECT, .opcode = UR_CM_DREP, .flags = UR_CF_RESEND},
	{.kind = UR_CF_END},
};
static const struct ur_cf_step nothing[] = {{.kind = UR_CF_END}};

const struct ur_cf_step *const ur_cf_connect[] = {
	[UR_CF_RC] = connect_with_cm, [UR_CF_UC] = connect_with_cm, [UR_CF_UD] = look_up, [UR_CF_BARE] = nothing};
/* A script that speaks to the CM itself may have left a connection, which its DREQ ends. */
const struct ur_cf_step *const ur_cf_leave[] = {
	[UR_CF_RC] = disconnect, [UR_CF_UC] = disconnect, [UR_CF_UD] = nothing, [UR_CF_BARE] = disconnect};

void ur_cf_conn_begin(struct ur_cf_run *r)
{
	const struct ur_cf_rule *rule = ur_cf_current(r);
	struct ur_cf_conn *c = &r->conn;

	memset(c, 0, sizeof(*c));
	c->qpn = 0x100 + ur_rng_below(&r->rng, 0xfffe00);
	c->id = ur_rng_u32(&r->rng) | 1;
	c->tid = ur_rng_u64(&r->rng);
	c->their_psn = rule->fixed_psn ? rule->their_psn : ur_rng_u32(&r->rng) & UR_PSN_MASK;
}

static void learn_offer(struct ur_cf_run *r, const struct ur_cm_msg *m)
{
	const uint8_t *from = m->pdata;

	r->met = true;
	r->offers = m->pdata_len >= UR_CF_REP_LEN && ur_get32(from) == UR_CF_MAGIC;
	if (!r->offers)
		return;
	r->modes = ur_get32(from + UR_CF_REP_MODES) | 1u << UR_CF_SERVE_READY | 1u << UR_CF_SERVE_LATE;
	for (unsigned i = 0; i < UR_CF_SRQS; i++)
		r->srqn[i] = ur_get32(from + UR_CF_REP_SRQS + 4 * i);
	for (unsigned i = 0; i < UR_CF_OFFERED; i++) {
		const uint8_t *at = from + 4 + 16 * i;

		r->place[i] = (struct ur_cf_place){.va = ur_get64(at), .rkey = ur_get32(at + 8), .len = ur_get32(at + 12)};
	}
}

void ur_cf_conn_learn(struct ur_cf_run *r, const struct ur_cm_msg *m)
{
	struct ur_cf_conn *c = &r->conn;

	if (m->attr == UR_CM_REP && m->rep.remote_comm_id == c->id) {
		c->peer_id = m->rep.local_comm_id;
		c->dqpn = m->rep.local_qpn;
		c->psn = m->rep.starting_psn;
		c->exists = true;
		learn_offer(r, m);
		if (ur_cf_current(r)->serve == UR_CF_SERVE_PSN && ur_cf_servable(r, ur_cf_current(r)))
			c->psn = ur_cf_current(r)->our_psn;
	} else if (m->attr == UR_CM_SIDR_REP && m->sidr_rep.request_id == c->id) {
		c->dqpn = m->sidr_rep.qpn;
		c->qkey = m->sidr_rep.qkey;
	} else if ((m->attr == UR_CM_DREP && m->rtu.remote_comm_id == c->id && m->rtu.local_comm_id == c->peer_id) ||
		   (m->attr == UR_CM_DREQ && m->dreq.remote_comm_id == c->id)) {
		c->ended = true;
	}
}
