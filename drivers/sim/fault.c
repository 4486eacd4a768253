/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes wrong with a frame: by chance, from the seeded generator, and by rules that name it. */
#include "base/bytes.h"
#include "drivers/sim/internal.h"

#define ETH_LEN 14
#define ROCE_PORT 4791

/* Offset of the IP header and its version, past one VLAN tag; false when the frame is not IP. */
static bool find_ip(const uint8_t *f, uint32_t len, uint32_t *l3, unsigned *version)
{
	uint32_t off = ETH_LEN;

	if (len < off)
		return false;
	if (ur_get16(f + 12) == 0x8100)
		off += 4;
	if (len < off + 20)
		return false;
	*l3 = off;
	*version = f[off] >> 4;
	return (ur_get16(f + off - 2) == 0x0800 && *version == 4) ||
	       (ur_get16(f + off - 2) == 0x86dd && *version == 6 && len >= off + 40);
}

bool ur_sim_bth(const uint8_t *f, uint32_t len, uint8_t *opcode, uint32_t *psn)
{
	unsigned version;
	uint32_t off;

	if (!find_ip(f, len, &off, &version) || f[off + (version == 4 ? 9 : 6)] != 17)
		return false;
	off += version == 4 ? (f[off] & 15u) * 4 : 40;
	if (len < off + 8 + 12 || ur_get16(f + off + 2) != ROCE_PORT)
		return false;
	*opcode = f[off + 8];
	*psn = ur_get24(f + off + 8 + 9);
	return true;
}

bool ur_sim_happens(struct ur_sim *sim, uint32_t ppm)
{
	return ppm && ur_rng_below(&sim->rng, UR_SIM_PPM) < ppm;
}

static bool lost(struct ur_sim *sim, struct ur_sim_wire *w)
{
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

static bool rule_matches(const struct ur_sim_rule *r, unsigned port, bool roce, uint8_t opcode, uint32_t psn)
{
	if (r->port >= 0 && (unsigned)r->port != port)
		return false;
	if (r->opcode >= 0 && (!roce || opcode != r->opcode))
		return false;
	return r->psn < 0 || (roce && psn == r->psn);
}

static void rule_act(const struct ur_sim_rule *r, struct ur_sim_fate *f)
{
	switch (r->action) {
	case UR_SIM_DROP:
		f->drop = true;
		break;
	case UR_SIM_DUPLICATE:
		f->duplicate = true;
		break;
	case UR_SIM_DELAY:
		f->delay += r->delay;
		break;
	case UR_SIM_CORRUPT:
		f->corrupt = true;
		break;
	case UR_SIM_MARK:
		f->mark = f->mark_any = true;
		break;
	}
}

void ur_sim_apply_rules(struct ur_sim *sim, unsigned port, const struct ur_sim_buf *b, struct ur_sim_fate *f)
{
	uint8_t opcode = 0;
	uint32_t psn = 0;
	bool roce;

	if (!sim->nrules)
		return;
	roce = ur_sim_bth(b->pkt.data, b->pkt.len, &opcode, &psn);
	for (unsigned i = 0; i < sim->nrules; i++) {
		struct ur_sim_rule_state *s = &sim->rules[i];

		if (!rule_matches(&s->rule, port, roce, opcode, psn))
			continue;
		s->seen++;
		if (s->seen < s->rule.nth || (s->rule.times && s->seen - s->rule.nth >= s->rule.times))
			continue;
		s->hits++;
		rule_act(&s->rule, f);
	}
}

int ur_sim_rule_add(struct ur_sim *sim, const struct ur_sim_rule *rule)
{
	struct ur_sim_rule_state *s;

	if (sim->nrules == UR_SIM_RULES)
		return -1;
	s = &sim->rules[sim->nrules];
	*s = (struct ur_sim_rule_state){.rule = *rule};
	if (!s->rule.nth)
		s->rule.nth = 1;
	return (int)sim->nrules++;
}

void ur_sim_rules_clear(struct ur_sim *sim)
{
	sim->nrules = 0;
}

unsigned ur_sim_rule_hits(const struct ur_sim *sim, int rule)
{
	return rule >= 0 && (unsigned)rule < sim->nrules ? sim->rules[rule].hits : 0;
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

/* RFC 3168: 11 is CE, 00 is not ECN-capable. The IPv4 checksum follows (RFC 1624, equation 3). */
bool ur_sim_set_ce(struct ur_sim_buf *b, bool any)
{
	uint8_t *ip = b->pkt.data, tos;
	unsigned version;
	uint32_t off, sum;

	if (!find_ip(ip, b->pkt.len, &off, &version))
		return false;
	ip += off;
	tos = version == 4 ? ip[1] : (uint8_t)(ip[0] << 4 | ip[1] >> 4);
	if (!(tos & 3) && !any)
		return false;
	if (version == 6) {
		ip[1] |= 0x30;
		return true;
	}
	sum = (uint16_t)~ur_get16(ip + 10) + (uint32_t)(uint16_t)~ur_get16(ip);
	ip[1] |= 3;
	sum += ur_get16(ip);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	ur_put16(ip + 10, (uint16_t)~sum);
	return true;
}
