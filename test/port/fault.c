/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes wrong with a frame: by chance, from the seeded generator, and by rules that name it. */
#include "test/port/internal.h"

#define ETH_LEN 14

bool ur_sim_bth(const uint8_t *f, uint32_t len, uint8_t *opcode, uint32_t *psn)
{
	struct ur_fault_frame frame;

	if (!ur_fault_find_frame(f, len, &frame))
		return false;
	*opcode = frame.bth.opcode;
	*psn = frame.bth.psn;
	return true;
}

bool ur_sim_happens(struct ur_sim *sim, uint32_t ppm)
{
	return ppm && ur_rng_below(&sim->rng, UR_SIM_PPM) < ppm;
}

/* Of the two states of Gilbert and Elliott, which only a link that has them draws for. */
static bool lost_in_bad_state(struct ur_sim *sim, struct ur_sim_wire *w)
{
	if (!w->link.bad_enter) {
		w->bad = false;
		return false;
	}
	if (ur_sim_happens(sim, w->bad ? w->link.bad_leave : w->link.bad_enter))
		w->bad = !w->bad;
	return w->bad && ur_sim_happens(sim, w->link.bad_loss);
}

static bool lost(struct ur_sim *sim, struct ur_sim_wire *w)
{
	if (lost_in_bad_state(sim, w))
		return true;
	if (w->burst_left) {
		w->burst_left--;
		return true;
	}
	if (!ur_sim_happens(sim, w->link.loss))
		return false;
	w->burst_left = w->link.burst > 1 ? ur_rng_below(&sim->rng, w->link.burst) : 0;
	return true;
}

struct ur_sim_fate ur_sim_chance(struct ur_sim *sim, struct ur_sim_wire *w, bool train)
{
	const struct ur_sim_link *l = &w->link;

	/* a probability that is set draws once per unit, whatever the others gave */
	return (struct ur_sim_fate){
		.drop = lost(sim, w),
		.duplicate = ur_sim_happens(sim, l->duplicate),
		.reorder = ur_sim_happens(sim, l->reorder),
		.corrupt = ur_sim_happens(sim, l->corrupt),
		.mark = ur_sim_happens(sim, l->mark),
		.thin = train && ur_sim_happens(sim, l->thin),
		.split = train && ur_sim_happens(sim, l->split),
		.merge = ur_sim_happens(sim, l->merge),
	};
}

static void rule_act(const struct ur_fault_rule *r, struct ur_sim_fate *f)
{
	switch (r->action) {
	case UR_FAULT_DROP:
		f->drop = true;
		break;
	case UR_FAULT_DUPLICATE:
		f->duplicate = true;
		f->twin_delay = r->delay;
		break;
	case UR_FAULT_DELAY:
		f->delay += r->delay;
		break;
	case UR_FAULT_REORDER: /* by the link's time, not by packets: a fabric orders what it carries by time alone */
		f->reorder = true;
		break;
	case UR_FAULT_CORRUPT:
		f->corrupt = true;
		break;
	case UR_FAULT_MARK:
		f->mark = f->mark_any = true;
		break;
	case UR_FAULT_TRIM: /* refused by ur_sim_fault_add */
	case UR_FAULT_HOLD:
	case UR_FAULT_ACTIONS: break;
	}
}

static void describe(struct ur_sim *sim, const struct ur_sim_buf *b, struct ur_fault_frame *frame, struct ur_fault_pkt *seen)
{
	const bool roce = ur_fault_find_frame(b->pkt.data, b->pkt.len, frame);

	*seen = (struct ur_fault_pkt){.dir = UR_FAULT_TX,
				      .bth = roce ? &frame->bth : NULL,
				      .frame = roce ? frame : NULL,
				      .since = ur_fault_since(&sim->origin, sim->now)};
	if (roce && sim->flows)
		ur_fault_flows_see(sim->flows, seen->dir, seen->bth, &frame->dst, &seen->place);
}

void ur_sim_apply_rules(struct ur_sim *sim, unsigned port, const struct ur_sim_buf *b, struct ur_sim_fate *f)
{
	struct ur_fault_frame frame;
	struct ur_fault_pkt seen;

	if (!sim->nrules)
		return;
	describe(sim, b, &frame, &seen);
	for (unsigned i = 0; i < sim->nrules; i++) {
		struct ur_sim_rule_state *s = &sim->rules[i];

		if ((s->port < 0 || (unsigned)s->port == port) && ur_fault_row_acts(&s->row, &seen, &sim->rng))
			rule_act(&s->row.rule, f);
	}
}

int ur_sim_fault_add(struct ur_sim *sim, int port, const struct ur_fault_rule *rule)
{
	struct ur_sim_rule_state *s;

	if (sim->nrules == UR_SIM_RULES || rule->action == UR_FAULT_HOLD || ur_fault_rule_of_cables(rule))
		return -1;
	if (ur_fault_rule_needs_place(rule) && !sim->flows && !(sim->flows = ur_fault_flows_create()))
		return -1;
	s = &sim->rules[sim->nrules];
	*s = (struct ur_sim_rule_state){.row.rule = *rule, .port = port};
	s->row.rule.on.dir = 0;
	return (int)sim->nrules++;
}

int ur_sim_rule_add(struct ur_sim *sim, const struct ur_sim_rule *rule)
{
	const struct ur_fault_rule r = {.action = (enum ur_fault_action)rule->action,
					.on = {.opcode = rule->opcode, .psn = rule->psn},
					.nth = rule->nth,
					.times = rule->times,
					.delay = rule->delay};

	return ur_sim_fault_add(sim, rule->port, &r);
}

void ur_sim_rules_clear(struct ur_sim *sim)
{
	sim->nrules = 0;
}

static void heal(struct ur_sim_wire *w)
{
	const struct ur_sim_link l = w->link;

	w->link = (struct ur_sim_link){
		.delay = l.delay, .jitter = l.jitter, .rate_mbps = l.rate_mbps, .mark_bytes = l.mark_bytes, .mtu = l.mtu};
	w->burst_left = 0;
	w->bad = false;
}

void ur_sim_heal(struct ur_sim *sim)
{
	for (unsigned i = 0; i < sim->nports; i++) {
		heal(&sim->ports[i].tx);
		heal(&sim->ports[i].rx);
	}
	ur_sim_rules_clear(sim);
	sim->free.end += sim->spare * sizeof(*sim->bufs);
	sim->npkts += sim->spare;
	sim->spare = 0;
}

unsigned ur_sim_rule_hits(const struct ur_sim *sim, int rule)
{
	return rule >= 0 && (unsigned)rule < sim->nrules ? sim->rules[rule].row.hits : 0;
}

/* One to three different bits after the Ethernet header: the same bit twice would undo the fault. */
void ur_sim_flip_bits(struct ur_sim *sim, struct ur_sim_buf *b)
{
	unsigned n = 1 + ur_rng_below(&sim->rng, 3), done = 0;
	uint32_t bits = b->pkt.len > ETH_LEN ? (b->pkt.len - ETH_LEN) * 8 : 0, at[3];

	b->damaged = true;
	while (done < n && bits > n) {
		uint32_t bit = ur_rng_below(&sim->rng, bits);
		bool used = false;

		for (unsigned i = 0; i < done; i++)
			used |= at[i] == bit;
		if (used)
			continue;
		at[done++] = bit;
		b->pkt.data[ETH_LEN + bit / 8] ^= (uint8_t)(1u << (bit % 8));
	}
}

bool ur_sim_set_ce(struct ur_sim_buf *b, bool any)
{
	return ur_fault_set_ce(b->pkt.data, b->pkt.len, any);
}
