/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pause frames (IEEE 802.3, annex 31B) and those of priority flow control (31D): a station that runs out of buffers stops its neighbour,
 * all of it or some priorities. They are addressed to the next station, so a recording has those of its own link only.
 */
#include "analyze/signal/pause.h"

#include "analyze/state/report.h"
#include "wire/frame.h"

#define ETHERTYPE_MAC_CONTROL 0x8808
#define PAUSE 0x0001
#define PFC 0x0101
#define LEN (UR_ETH_LEN + 4) /* up to the time, or the vector of priorities */
#define PRIORITIES 8

static struct an_pauser *pauser_of(struct ur_analysis *a, const uint8_t *mac, uint32_t frame)
{
	const uint64_t addr = an_mac(mac);

	for (unsigned i = 0; i < AN_PAUSERS; i++) {
		struct an_pauser *s = &a->pausers[i];

		if (!s->first_frame)
			*s = (struct an_pauser){.mac = addr, .first_frame = frame};
		if (s->mac == addr)
			return s;
	}
	return NULL;
}

/* The priorities that may not send any more; `AN_PAUSE_ALL`: nothing may. */
static uint32_t stopped(const uint8_t *at, uint32_t have)
{
	uint32_t which = 0;

	if (ur_get16(at) == PAUSE)
		return ur_get16(at + 2) ? AN_PAUSE_ALL : 0;
	for (unsigned i = 0; i < PRIORITIES && 4 + 2 * (i + 1) <= have; i++)
		if (at[3] >> i & 1 && ur_get16(at + 4 + 2 * i))
			which |= 1u << i;
	return which;
}

bool an_pause_read(const struct an_pkt *p, const struct ur_an_frame *f, uint32_t *which)
{
	const uint8_t *eth = p->eth;
	const uint32_t have = an_eth_have(f, p);

	if (have < LEN || ur_get16(eth + 12) != ETHERTYPE_MAC_CONTROL || (ur_get16(eth + 14) != PAUSE && ur_get16(eth + 14) != PFC))
		return false;
	*which = stopped(eth + 14, have - UR_ETH_LEN);
	return true;
}

void an_pause(struct ur_analysis *a, const struct an_pkt *p, const struct ur_an_frame *f)
{
	struct an_pauser *s;
	uint32_t which;

	if (!an_pause_read(p, f, &which))
		return;
	a->total.pauses++;
	if (which) {
		if (!a->paused || an_since(f->when, a->paused) >= UR_EFFECT_NS)
			a->pause_began = f->when;
		a->paused = f->when;
	}
	s = pauser_of(a, p->eth + 6, f->number);
	if (!s)
		return;
	s->priorities |= which & (AN_PAUSE_ALL - 1);
	s->all |= which == AN_PAUSE_ALL;
	s->n++;
	s->ends += !which;
	s->last_frame = f->number;
	if (s->n == 1)
		s->first = f->when;
	s->last = f->when;
}

void an_pause_finish(struct ur_analysis *a)
{
	for (unsigned i = 0; i < AN_PAUSERS && a->pausers[i].n; i++) {
		const struct an_pauser *s = &a->pausers[i];

		an_report(a, &(struct ur_finding){.rule = UR_RULE_PAUSE,
						  .frame = s->first_frame,
						  .seen = {s->last_frame},
						  .when = s->first,
						  .v = {s->n, s->mac, s->priorities, an_since(s->last, s->first)},
						  .s = {s->all          ? "{0} pause frame{p0} (802.3x)"
							: s->priorities ? "{0} priority pause frame{p0} (PFC) of priority {b2}"
							: s->n == 1     ? "1 frame that ends a pause"
									: "{0} frames that end a pause"}});
	}
}
