/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The attacker sends one frame while nothing else happens. What it changed in the victim is held against its judgement: memory,
 * completions, counters, and what the victim sent.
 */
#include "nic.h"

/* What is counted for every packet, and not for what becomes of it. */
static bool is_traffic(unsigned c)
{
	return c == UR_C_RX_PACKETS || c == UR_C_RX_BYTES || c == UR_C_RX_ROCE;
}

/*
 * Known, and on their way to be mended elsewhere. A row says which counters a dropped frame may raise besides the one that says why.
 */
static const struct {
	enum ur_counter counter;
	const char *why;
} known[] = {
	{UR_C_CE_MARKED, "a congestion mark is counted before the packet is looked at"},
};

static bool is_known(unsigned c)
{
	for (unsigned i = 0; i < ur_array_size(known); i++)
		if (known[i].counter == c)
			return true;
	return false;
}

static void check_counters(struct fuzz *f, const struct ur_counters *was, const char *why)
{
	const struct ur_counters *is = &f->side[VICTIM].nic->counters;
	unsigned raised = 0, last = 0;

	for (unsigned c = 0; c < UR_C_COUNT; c++) {
		if (is->v[c] == was->v[c] || is_traffic(c) || is_known(c))
			continue;
		raised += (unsigned)(is->v[c] - was->v[c]);
		last = c;
	}
	if (is->v[UR_C_RX_PACKETS] == was->v[UR_C_RX_PACKETS] ? raised : raised != 1)
		broke(f, "a frame is to be dropped since %s: it raised %u counters, the last of them %s", why, raised,
		      raised ? ur_counter_name((enum ur_counter)last) : "none");
}

struct before {
	struct ur_counters counters;
	uint64_t bytes, frames;
	unsigned completions;
	enum ibv_qp_state state[LANES];
};

static void look(struct fuzz *f, struct before *b)
{
	b->counters = f->side[VICTIM].nic->counters;
	b->bytes = f->victim_bytes;
	b->frames = f->victim_frames;
	b->completions = f->completions;
	for (unsigned i = 0; i < LANES; i++)
		b->state[i] = f->lane[i].qp ? ur_qp_state(f->lane[i].qp) : IBV_QPS_RESET;
}

/* No QP but the one that it concerns has another state. */
static void check_states(struct fuzz *f, const struct before *b, const struct judgement *j)
{
	for (unsigned i = 0; i < LANES; i++)
		if (f->lane[i].qp && &f->lane[i] != j->lane && ur_qp_state(f->lane[i].qp) != b->state[i])
			broke(f, "a frame that %s changed the state of lane %u", j->lane ? "concerns another QP" : "concerns none", i);
}

static void check_answers(struct fuzz *f, const struct before *b, const struct judgement *j, uint32_t len)
{
	bool unauthenticated = j->is == J_MAD || (j->lane && j->lane->type == IBV_QPT_UD);

	if (j->is == J_INERT && f->victim_frames != b->frames)
		broke(f, "a frame is to be dropped since %s: it was answered", j->why);
	if (unauthenticated && f->victim_bytes - b->bytes > len)
		broke(f, "%u bytes from anybody were answered with %u", len, (unsigned)(f->victim_bytes - b->bytes));
}

/* Everything that the frame is to do has been done. */
static void check(struct fuzz *f, const struct before *b, const struct judgement *j, uint32_t len)
{
	uint32_t bad;

	if (j->is == J_INERT)
		check_counters(f, &b->counters, j->why);
	if (!arena_check(&f->side[VICTIM].arena, &j->may, &bad))
		broke(f, "a frame (%s) changed byte %u of the victim, %s", j->why ? j->why : "well formed", bad, place_name(bad));
	check_states(f, b, j);
	check_answers(f, b, j, len);
	work_reap(f, VICTIM);
	if (!j->lane && f->completions != b->completions)
		broke(f, "a frame that is for no QP (%s) completed something", j->why ? j->why : "well formed");
}

static void put_on_wire(struct fuzz *f)
{
	struct ur_queue *q = ur_sim_port(f->w.sim, ATTACKER)->queue;
	struct ur_pkt *p;

	if (ur_queue_alloc(q, &p, 1) != 1)
		return;
	memcpy(p->data, f->out.b, f->out.len);
	p->len = f->out.len;
	ur_queue_tx(q, &p, 1);
}

/* The spared pair's frames are repeated at most, as a network may do it; who speaks for a host in ARP and the like is another matter. */
static bool is_allowed(struct fuzz *f, const struct judgement *j, bool verbatim)
{
	uint16_t type = f->out.len < UR_ETH_LEN ? 0 : ur_get16(f->out.b + 12);

	if (j->spared)
		return verbatim;
	return type != UR_ETHERTYPE_ARP && !(j->is == J_OTHER && type == UR_ETHERTYPE_IP6 && !verbatim);
}

void inject(struct fuzz *f, bool verbatim)
{
	struct judgement j;
	struct before b;

	if (f->out.len < 14 || ur_sim_in_flight(f->w.sim) > 256)
		return;
	stage_settle(f);
	judge(f, f->out.b, f->out.len, &j);
	if (!is_allowed(f, &j, verbatim))
		return;
	trace(f, "frame of %u bytes, opcode %#x: %s%s%s", f->out.len, f->out.len > 42 ? f->out.b[f->fab.v6 ? 62 : 42] : 0,
	      j.why ? j.why : j.is == J_AUTHENTIC ? "authentic" : j.is == J_MAD ? "a MAD" : "something else", j.lane ? ", lane of " : "",
	      j.lane ? pair_of(j.lane)->name : "");
	look(f, &b);
	put_on_wire(f);
	ur_sim_advance(f->w.sim, f->w.now);
	while (ur_nic_poll(f->side[VICTIM].nic, f->w.now))
		;
	check(f, &b, &j, f->out.len);
}
