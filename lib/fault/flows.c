/* SPDX-License-Identifier: BSD-3-Clause */
#include "fault/flows.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/psn.h"
#include "wire/opcode.h"

/* A PSN that lies further back is not a repetition: the number of the QP has come into use again. */
#define FURTHEST_BACK (1 << 16)
#define ARRIVED 0x80000000u

struct slot {
	uint32_t psn;   /* shifted by 8; in the low byte how often it was seen, 0: nothing is here */
	uint32_t about; /* the number of its message, and ARRIVED */
};

struct flow {
	uint64_t key; /* 0: free */
	uint64_t used;
	uint32_t first, highest, messages;
	struct slot slots[UR_FAULT_PSNS];
};

struct ur_fault_flows {
	uint64_t clock; /* packets seen */
	unsigned last;  /* flow, which the next packet most likely belongs to */
	struct flow flows[UR_FAULT_FLOWS];
};

struct ur_fault_flows *ur_fault_flows_create(void)
{
	return calloc(1, sizeof(struct ur_fault_flows));
}

void ur_fault_flows_destroy(struct ur_fault_flows *f)
{
	free(f);
}

/* --- flows --- */

static uint64_t key_of(enum ur_fault_dir dir, const struct ur_bth *bth, const struct ur_gid *dst, bool response)
{
	const uint64_t hash = ur_hash_bytes(UR_HASH_BEGIN, dst->raw, sizeof(dst->raw));

	return (hash >> 32 ^ (hash & UINT32_MAX)) << 32 | (uint64_t)bth->dqpn << 8 | (unsigned)dir << 1 | response;
}

static void init_flow(struct flow *w, uint64_t key, uint32_t psn)
{
	memset(w, 0, sizeof(*w));
	w->key = key;
	w->first = w->highest = psn;
}

/* The flow of this key, or the one to be given to it. */
static struct flow *flow_of(struct ur_fault_flows *f, uint64_t key)
{
	struct flow *quiet = f->flows;

	if (f->flows[f->last].key == key)
		return &f->flows[f->last];
	for (unsigned i = 0; i < UR_FAULT_FLOWS; i++) {
		if (f->flows[i].key == key)
			return &f->flows[i];
		if (f->flows[i].used < quiet->used)
			quiet = &f->flows[i];
	}
	return quiet;
}

/* --- PSNs --- */

static struct slot *slot_of(struct flow *w, uint32_t psn)
{
	return &w->slots[psn & (UR_FAULT_PSNS - 1)];
}

static unsigned times_seen(const struct slot *s, uint32_t psn)
{
	return s->psn >> 8 == psn ? s->psn & 0xff : 0;
}

static uint32_t message_of(struct flow *w, uint32_t psn, bool begins, bool newest)
{
	const struct slot *before = slot_of(w, ur_psn_add(psn, UR_PSN_MASK));

	if (begins)
		return newest ? (w->messages = (w->messages + 1) & ~ARRIVED) : 0;
	return times_seen(before, ur_psn_add(psn, UR_PSN_MASK)) ? before->about & ~ARRIVED : newest ? w->messages : 0;
}

/* Datagrams of several QPs come in one flow, each with PSNs of its own sender, and are never sent again: equal PSNs are no repetition. */
static bool is_datagram(const struct ur_bth *bth)
{
	return (bth->opcode & 0xe0) == UR_UD;
}

static void count_datagram(struct flow *w, uint32_t psn, struct ur_fault_place *at)
{
	at->offset = ur_psn_add(psn, UR_PSN_MASK + 1 - w->first);
	at->iteration = 1;
	at->msg = w->messages = (w->messages + 1) & ~ARRIVED;
}

static void count(struct flow *w, uint32_t psn, bool request, bool begins, struct ur_fault_place *at)
{
	struct slot *s = slot_of(w, psn);
	const int32_t ahead = ur_psn_diff(psn, w->highest);
	const unsigned before = times_seen(s, psn);

	at->offset = ur_psn_add(psn, UR_PSN_MASK + 1 - w->first);
	if (before) {
		at->arrived = s->about & ARRIVED;
		at->msg = s->about & ~ARRIVED;
		at->iteration = ur_min_u32(before + 1, UR_FAULT_ITERATIONS);
		s->psn = psn << 8 | at->iteration;
		return;
	}
	if (ahead <= -UR_FAULT_PSNS) { /* what was known of it has gone */
		at->iteration = 2;
		return;
	}
	at->iteration = 1;
	at->msg = request ? message_of(w, psn, begins, ahead > 0 || at->fresh) : 0;
	*s = (struct slot){.psn = psn << 8 | 1, .about = at->msg};
	if (ahead > 0)
		w->highest = psn;
}

void ur_fault_flows_see(struct ur_fault_flows *f, enum ur_fault_dir dir, const struct ur_bth *bth, const struct ur_gid *dst,
			struct ur_fault_place *at)
{
	const struct ur_opcode_info *info = ur_opcode(bth->opcode);
	const bool response = info->flags & UR_OPF_RESPONSE;
	const uint64_t key = key_of(dir, bth, dst, response);
	struct flow *w;

	*at = (struct ur_fault_place){.known = info->name && bth->opcode != UR_OP_CNP};
	if (!at->known)
		return;
	w = flow_of(f, key);
	at->flow = f->last = (unsigned)(w - f->flows);
	at->fresh = w->key != key || (!is_datagram(bth) && ur_psn_diff(bth->psn, w->highest) < -FURTHEST_BACK);
	if (at->fresh)
		init_flow(w, key, bth->psn);
	w->used = ++f->clock;
	if (is_datagram(bth))
		count_datagram(w, bth->psn, at);
	else
		count(w, bth->psn, !response, info->flags & UR_OPF_FIRST, at);
}

void ur_fault_flows_arrived(struct ur_fault_flows *f, const struct ur_fault_place *at, uint32_t psn)
{
	struct slot *s;

	if (!at->known)
		return;
	s = slot_of(&f->flows[at->flow], psn);
	if (times_seen(s, psn))
		s->about |= ARRIVED;
}

bool ur_fault_flows_beyond(const struct ur_fault_flows *f, const struct ur_fault_place *at, uint32_t psn, uint32_t last)
{
	const struct flow *w = &f->flows[at->flow];

	for (unsigned i = 0; i < UR_FAULT_PSNS && ur_psn_diff(psn, last) < 0; i++) {
		const struct slot *s;

		psn = ur_psn_add(psn, 1);
		s = &w->slots[psn & (UR_FAULT_PSNS - 1)];
		if (times_seen(s, psn) && s->about & ARRIVED)
			return true;
	}
	return false;
}
