/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The attacker sends one frame while nothing else happens. What it changed in the victim is held against its judgement: memory,
 * completions, counters, and what the victim sent.
 */
#include "nic.h"
#include "wire/ip.h"
#include "wire/msg/arp.h"

/* What is counted for every packet, and not for what becomes of it. */
static bool is_traffic(unsigned c)
{
	return c == UR_C_RX_PACKETS || c == UR_C_RX_BYTES || c == UR_C_RX_ROCE;
}

/* What says why a frame was dropped. */
static bool is_drop(unsigned c)
{
	if (c == UR_C_ICRC || c == UR_C_RX_OTHER_HOST || c == UR_C_RX_OTHER_SLOT)
		return true;
	return !strncmp(ur_counter_name((enum ur_counter)c), "drop_", 5);
}

/* How many messages may be sent for one of connection management when this counter was raised; one otherwise. */
static const struct {
	enum ur_counter counter;
	unsigned messages;
	const char *why;
} answers[] = {
	{UR_C_CM_STALE, 2, "a REQ that names the QP of another connection is refused, and that one is ended"},
};

/* 1 for what says why a frame was dropped, 0 for what does not count here, 2 for what must not be. */
static unsigned weight(unsigned c)
{
	if (is_traffic(c) || c == UR_C_CE_MARKED) /* of the port: NICs count a mark on whatever it comes */
		return 0;
	return is_drop(c) ? 1 : 2;
}

static void check_counters(struct fuzz *f, const struct ur_counters *was, const char *why)
{
	const struct ur_counters *is = &f->side[VICTIM].nic->counters;
	unsigned sum = 0, last = 0;

	for (unsigned c = 0; c < UR_C_COUNT; c++) {
		if (is->v[c] == was->v[c] || !weight(c))
			continue;
		sum += is->v[c] - was->v[c] == 1 ? weight(c) : 2;
		last = c;
	}
	if (sum != (is->v[UR_C_RX_PACKETS] != was->v[UR_C_RX_PACKETS]))
		broke(f, "a frame should be dropped because %s: instead of the one counter it raised %s%s", why,
		      sum > 1 ? "others, such as " : "", sum ? ur_counter_name((enum ur_counter)last) : "none");
}

struct before {
	struct ur_counters counters;
	uint64_t bytes, frames;
	unsigned completions;
	enum ibv_qp_state state[LANES];
};

/* What an earlier frame is answered with may still wait for more. */
static void look(struct fuzz *f, struct before *b)
{
	ur_nic_flush_mads(f->side[VICTIM].nic);
	b->counters = f->side[VICTIM].nic->counters;
	b->bytes = f->victim_bytes;
	b->frames = f->victim_frames;
	b->completions = f->completions;
	for (unsigned i = 0; i < LANES; i++)
		b->state[i] = f->lane[i].qp ? ur_qp_state(f->lane[i].qp) : IBV_QPS_RESET;
}

/* An ARP reply, or a neighbour advertisement, is what requests wait for: then they are sent, and may fail. */
static bool may_resolve(const struct fuzz *f, const struct judgement *j)
{
	return j->is == J_OTHER && ur_get16(f->out.b + 12) != UR_ETHERTYPE_IP4;
}

/* No QP but the one that it concerns has another state. */
static void check_states(struct fuzz *f, const struct before *b, const struct judgement *j)
{
	for (unsigned i = 0; i < LANES; i++)
		if (f->lane[i].qp && &f->lane[i] != j->lane && ur_qp_state(f->lane[i].qp) != b->state[i])
			broke(f, "a frame that %s changed the state of lane %u", j->lane ? "concerns another QP" : "concerns none", i);
}

static unsigned messages_allowed(struct fuzz *f, const struct before *b)
{
	for (unsigned i = 0; i < ur_array_size(answers); i++)
		if (f->side[VICTIM].nic->counters.v[answers[i].counter] != b->counters.v[answers[i].counter])
			return answers[i].messages;
	return 1;
}

static void check_answers(struct fuzz *f, const struct before *b, const struct judgement *j, uint32_t len)
{
	bool unauthenticated = (j->is == J_OTHER && !may_resolve(f, j)) || j->is == J_MAD || (j->lane && j->lane->type == IBV_QPT_UD);

	if (j->is == J_INERT && f->victim_frames != b->frames)
		broke(f, "a frame should be dropped because %s: it was answered", j->why);
	if (unauthenticated && f->victim_bytes - b->bytes > (uint64_t)len * messages_allowed(f, b))
		broke(f, "%u bytes from anybody were answered with %u", len, (unsigned)(f->victim_bytes - b->bytes));
}

/* Everything that the frame is to do has been done. */
static void check(struct fuzz *f, const struct before *b, const struct judgement *j, uint32_t len)
{
	uint32_t bad;

	ur_nic_flush_mads(f->side[VICTIM].nic);
	if (j->is == J_INERT)
		check_counters(f, &b->counters, j->why);
	if (!arena_check(&f->side[VICTIM].arena, &j->may, &bad))
		broke(f, "a frame (%s) changed byte %u of the victim, %s", j->why ? j->why : "well formed", bad, place_name(bad));
	if (!may_resolve(f, j))
		check_states(f, b, j);
	check_answers(f, b, j, len);
	if (f->read_seen)
		broke(f, "a READ that no key allows was answered with data");
	work_reap(f, VICTIM);
	if (!j->lane && !may_resolve(f, j) && f->completions != b->completions)
		broke(f, "a frame that is for no QP (%s) completed something", j->why ? j->why : "well formed");
}

void put_on_wire(struct fuzz *f)
{
	struct ur_queue *q = ur_sim_port(f->w.sim, ATTACKER)->queue;
	struct ur_pkt *p;

	if (ur_queue_alloc(q, &p, 1) != 1)
		return;
	memcpy(p->data, f->out.b, f->out.len);
	p->len = f->out.len;
	ur_queue_tx(q, &p, 1);
}

/* Does an ARP message tell the address of the victim or its peer? */
static bool speaks_for_others(struct fuzz *f, const uint8_t *arp, uint32_t len)
{
	const uint8_t *ip = arp + 14;

	return len < UR_ARP_LEN || !memcmp(ip, f->gid[PEER].raw + 12, 4) || !memcmp(ip, f->gid[VICTIM].raw + 12, 4);
}

static bool is_icmp6_error(const uint8_t *ip, uint32_t len)
{
	return len > UR_IP6_LEN && ip[6] == UR_PROTO_ICMP6 && ip[UR_IP6_LEN] < 128;
}

/*
 * The spared pair's frames are repeated at most, as a network may do it. Who says in ARP or neighbour discovery that he is another host
 * takes over its traffic, and Ethernet has nothing against it.
 */
static bool is_allowed(struct fuzz *f, const struct judgement *j, bool verbatim)
{
	uint16_t type = ur_get16(f->out.b + 12), at = UR_ETH_LEN;

	if (j->spared)
		return verbatim;
	if (type == UR_ETHERTYPE_VLAN) {
		type = ur_get16(f->out.b + 16);
		at += UR_VLAN_LEN;
	}
	if (type == UR_ETHERTYPE_ARP)
		return !speaks_for_others(f, f->out.b + at, f->out.len - at);
	return type != UR_ETHERTYPE_IP6 || j->is != J_OTHER || verbatim || is_icmp6_error(f->out.b + at, f->out.len - at);
}

void inject(struct fuzz *f, bool verbatim)
{
	struct judgement j;
	struct before b;

	if (f->out.len < UR_ETH_LEN + UR_VLAN_LEN || ur_sim_in_flight(f->w.sim) > 256)
		return;
	stage_settle(f);
	judge(f, f->out.b, f->out.len, &j);
	if (!is_allowed(f, &j, verbatim))
		return;
	trace(f, "frame of %u bytes, opcode %#x: %s%s%s", f->out.len, f->out.len > 42 ? f->out.b[f->fab.v6 ? 62 : 42] : 0,
	      j.why ? j.why : j.is == J_AUTHENTIC ? "authentic" : j.is == J_MAD ? "a MAD" : "something else", j.lane ? ", lane of " : "",
	      j.lane ? pair_of(j.lane)->name : "");
	look(f, &b);
	f->read_seen = false;
	f->read_qpn = j.no_read ? j.lane->dqpn : 0;
	f->read_psn = j.psn;
	if (j.lane)
		j.lane->touched = true;
	put_on_wire(f);
	ur_sim_advance(f->w.sim, f->w.now);
	while (ur_nic_poll(f->side[VICTIM].nic, f->w.now))
		;
	check(f, &b, &j, f->out.len);
}
