/* SPDX-License-Identifier: BSD-3-Clause */
#include "fault/rule.h"

#include "fault/change.h"
#include "wire/frame.h"
#include "wire/opcode.h"

static bool in_time(const struct ur_fault_rule *r, ur_time since)
{
	return since >= r->after && (!r->lasts || since - r->after < r->lasts);
}

static bool at_place(const struct ur_fault_match *m, const struct ur_fault_place *at)
{
	if (!ur_fault_match_needs_place(m))
		return true;
	return at->known && (!m->relative || at->offset == (uint32_t)m->psn) && (!m->msg || at->msg == m->msg) &&
	       (!m->iteration || at->iteration == m->iteration);
}

static bool about_frame(const struct ur_fault_match *m)
{
	return m->answer || m->has_src || m->has_dst || m->port || m->service;
}

/* The low 16 bits of a service id of the RDMA CM are its port (IBTA volume 1, annex A11). */
static bool is_service(uint64_t service, uint64_t wanted)
{
	return service == wanted || (service >> 24 == 1 && (service & 0xffff) == wanted);
}

static bool answers(int16_t syndrome, uint8_t wanted)
{
	return syndrome >= 0 && (syndrome >> 5 & 3) == (wanted == UR_FAULT_NAK ? 3 : 1);
}

static bool by_frame(const struct ur_fault_match *m, const struct ur_fault_frame *f)
{
	if (!about_frame(m))
		return true;
	return f && (!m->answer || answers(f->syndrome, m->answer)) && (!m->has_src || ur_gid_eq(&m->src, &f->src)) &&
	       (!m->has_dst || ur_gid_eq(&m->dst, &f->dst)) && (!m->port || m->port == f->sport) &&
	       (!m->service || is_service(f->service, m->service));
}

bool ur_fault_matches(const struct ur_fault_match *m, const struct ur_fault_pkt *p)
{
	const struct ur_bth *bth = p->bth;
	uint8_t differs;

	if (m->dir && !(m->dir & p->dir))
		return false;
	if (!bth)
		return m->opcode < 0 && m->psn < 0 && !m->qpn && !ur_fault_match_needs_place(m) && !about_frame(m);
	differs = (uint8_t)(bth->opcode ^ (unsigned)m->opcode);
	if (m->opcode >= 0 && differs & (m->any_service ? UR_OP_MASK : 0xff))
		return false;
	if (!m->relative && m->psn >= 0 && bth->psn != m->psn)
		return false;
	return (!m->qpn || bth->dqpn == m->qpn) && at_place(m, &p->place) && by_frame(m, p->frame);
}

/* Does the packet have what the action would change? */
static bool can_be_changed(const struct ur_fault_rule *r, const struct ur_fault_pkt *p)
{
	if (r->action == UR_FAULT_TRIM)
		return p->frame && p->frame->payload > r->keep;
	return r->action != UR_FAULT_CORRUPT || !r->part || (p->frame && ur_fault_has_part(p->frame, r->part));
}

/* The two states of Gilbert and Elliott, each as long as its chance of an end makes it. */
static bool in_burst(struct ur_fault_row *row, struct ur_rng *rng)
{
	if (!row->rule.enter)
		return true;
	if (ur_rng_below(rng, UR_FAULT_PPM) < (row->bursting ? row->rule.leave : row->rule.enter))
		row->bursting = !row->bursting;
	return row->bursting;
}

bool ur_fault_row_acts(struct ur_fault_row *row, const struct ur_fault_pkt *p, struct ur_rng *rng)
{
	const struct ur_fault_rule *r = &row->rule;
	unsigned nth = r->nth ? r->nth : 1;

	if (!ur_fault_matches(&r->on, p) || !in_time(r, p->since) || !can_be_changed(r, p) || !in_burst(row, rng) ||
	    (r->chance && ur_rng_below(rng, UR_FAULT_PPM) >= r->chance))
		return false;
	row->seen++;
	if (row->seen < nth || (r->times && row->seen - nth >= r->times))
		return false;
	row->hits++;
	return true;
}
