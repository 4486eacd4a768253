/* SPDX-License-Identifier: BSD-3-Clause */
/* Verbs that change what there is: states of QPs, a memory region that comes and goes, memory windows. The spared pair is spared them. */
#include "nic.h"

#define DEREG_TRIES 64

/* --- queue pairs --- */

void call_state(struct fuzz *f, unsigned lane, unsigned what)
{
	static const enum ibv_qp_state to[] = {IBV_QPS_ERR, IBV_QPS_SQD, IBV_QPS_RTS};
	struct lane *l = lane_get(f, lane);

	if (!l || pair_of(l)->spared)
		return;
	trace(f, "lane %u: %s", lane % LANES, what % 4 == 3 ? "both sides destroyed" : "another state");
	if (what % 4 == 3) {
		lane_close(f, l->pair);
		return;
	}
	/* Requests that were posted in SQE complete before those that are posted in RTS. */
	stage_settle(f);
	if (ur_qp_state(l->qp) != IBV_QPS_ERR && !lane_to(l, to[what % 4]) && to[what % 4] == IBV_QPS_RTS)
		l->sq.failed = false;
	stage_settle(f);
}

/* --- the volatile region --- */

static void go(struct fuzz *f, unsigned host, struct key *k)
{
	k->live = false;
	k->stale = k->rkey;
	trace(f, "host %u: the volatile region goes", host);
	for (unsigned i = 0; ur_mr_dereg(k->mr); i++) {
		if (i == DEREG_TRIES)
			broke(f, "host %u: frames refer to a memory region for ever", host);
		stage_run(f, 10 * UR_NS_PER_US);
	}
	k->mr = NULL;
	arena_mark(&f->side[host].arena, k->at, k->len);
}

void call_volatile(struct fuzz *f, unsigned host)
{
	struct key *k = &f->side[host].key[R_VOLATILE];

	if (k->live) {
		go(f, host, k);
		return;
	}
	arena_fill(&f->side[host].arena, k->at, k->len, R_VOLATILE);
	if (!key_make(f, host, R_VOLATILE))
		broke(f, "host %u cannot register memory again", host);
}

void call_rereg(struct fuzz *f, unsigned host)
{
	static const int fewer = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
	struct key *k = &f->side[host].key[R_VOLATILE];
	struct ur_mr as, *old = k->mr;

	if (!k->live)
		return;
	as = *old;
	as.access = old->access == fewer ? regions[R_VOLATILE].access : fewer;
	trace(f, "host %u: the volatile region gets access %#x", host, (unsigned)as.access);
	if (ur_mr_rereg(old, &as, &k->mr))
		broke(f, "host %u cannot register memory anew", host);
	if (k->mr->rkey != k->rkey)
		broke(f, "host %u: a region that is registered anew has another key", host);
	k->access = as.access;
	for (unsigned i = 0; ur_mr_dereg(old); i++) {
		if (i == DEREG_TRIES)
			broke(f, "host %u: frames refer to a memory region for ever", host);
		stage_run(f, 10 * UR_NS_PER_US);
	}
}

/* --- windows --- */

static struct key *window_of(struct fuzz *f, unsigned host, uint32_t rkey)
{
	for (unsigned i = K_WINDOW; i < KEYS; i++) {
		struct key *k = &f->side[host].key[i];

		if (k->rkey == rkey || (k->pending && k->wanted_rkey == rkey))
			return k;
	}
	return NULL;
}

void call_bind(struct fuzz *f, unsigned lane, unsigned window, unsigned what)
{
	static const int accesses[] = {IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
				       IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};
	struct lane *l = lane_get(f, lane);
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_mw api;
	struct ibv_mr mr;
	struct key *k;

	if (!l || l->host != VICTIM || pair_of(l)->spared || l->type == IBV_QPT_UD || l->type == IBV_QPT_XRC_RECV)
		return;
	k = &f->side[VICTIM].key[K_WINDOW + window % WINDOWS];
	if (k->pending)
		return;
	k->wanted = (struct span){(what >> 2 & 7) * 16, 32 + (what >> 5 & 7) * 16};
	k->wanted_access = accesses[what % 4];
	k->wanted_lane = (int)(l - f->lane);
	k->wanted_rkey = (k->rkey & ~0xffu) | ((k->rkey + 1) & 0xff);
	api = (struct ibv_mw){.rkey = k->rkey};
	mr = (struct ibv_mr){.lkey = f->side[VICTIM].key[R_WINDOW].mr->lkey};
	wr.bind_mw.mw = &api;
	wr.bind_mw.rkey = k->wanted_rkey;
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){.mr = &mr,
							 .addr = f->side[VICTIM].key[R_WINDOW].iova + k->wanted.at,
							 .length = k->wanted.len,
							 .mw_access_flags = (unsigned)k->wanted_access};
	k->pending = work_post_local(f, l, &wr, k->wanted_rkey);
}

void call_invalidate(struct fuzz *f, unsigned lane, unsigned window)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED};
	const struct key *k = &f->side[VICTIM].key[K_WINDOW + window % WINDOWS];
	struct lane *l;

	if (k->live && k->lane >= 0 && !(window & 4))
		lane = (unsigned)k->lane; /* nobody else may */
	f->focus_pair = lane / 2;
	l = lane_get(f, lane);
	if (!l || l->host != VICTIM || pair_of(l)->spared || l->type == IBV_QPT_UD || l->type == IBV_QPT_XRC_RECV)
		return;
	wr.invalidate_rkey = k->rkey;
	work_post_local(f, l, &wr, wr.invalidate_rkey);
}

void window_bound(struct fuzz *f, unsigned host, uint32_t rkey, bool ok)
{
	struct key *k = window_of(f, host, rkey);

	if (!k || !k->pending || k->wanted_rkey != rkey)
		return;
	k->pending = false;
	if (!ok)
		return;
	k->stale = k->rkey;
	k->rkey = rkey;
	k->at = regions[R_WINDOW].at + k->wanted.at;
	k->len = k->wanted.len;
	k->iova = f->side[host].key[R_WINDOW].iova + k->wanted.at;
	k->access = k->wanted_access;
	k->lane = k == &f->side[host].key[K_WINDOW + 1] ? k->wanted_lane : -1;
	k->live = true;
	k->unsure = false;
}

void window_unsure(struct fuzz *f, unsigned host, uint32_t rkey)
{
	struct key *k = window_of(f, host, rkey);

	if (!k || !k->pending)
		return;
	k->pending = false;
	k->unsure = true;
}

void window_gone(struct fuzz *f, unsigned host, uint32_t rkey)
{
	struct key *k = window_of(f, host, rkey);

	if (k)
		k->live = false;
}

void windows_lose(struct fuzz *f, unsigned lane)
{
	for (unsigned i = K_WINDOW; i < KEYS; i++) {
		struct key *k = &f->side[VICTIM].key[i];

		if (k->lane == (int)lane)
			k->live = false;
	}
}
