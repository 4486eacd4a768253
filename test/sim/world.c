/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/sim/world.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "wire/frame.h"

static void need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "simtest: cannot set up: %s\n", what);
	exit(2);
}

/* A slot that no NIC has yet. */
static uint8_t free_slot(const struct world *w)
{
	uint8_t slot = (uint8_t)(1 + w->nnics);

	for (unsigned i = 0; i < w->nnics; i++)
		if (w->nic[i]->cfg.tp.slot == slot) {
			slot = (uint8_t)(slot % 255 + 1);
			i = -1u;
		}
	return slot;
}

/* Not those of `raw`. */
static unsigned port_of(const struct fabric *f, unsigned nic)
{
	return nic < WORLD_HOSTS ? nic : nic + f->raw;
}

/* A further lane has those of the first one. */
static void init_address(struct world *w, unsigned i, const struct fabric *f)
{
	const unsigned host = w->host[i], no = f->one.host ? 1 : host + 1; /* no: of the host whose addresses it has */
	struct ur_net_addr addr = {.prefix_len = f->v6 ? 64 : 24};

	addr.gid = ur_gid_from_v4(htonl(0x0a000000 + no));
	if (f->v6)
		addr.gid = (struct ur_gid){.raw = {[0] = 0xfd, [15] = (uint8_t)no}};
	w->gid[host] = addr.gid;
	if (i < WORLD_HOSTS)
		need(ur_net_addr_add(w->nic[i]->net, &addr) == 0, "an address");
	else
		need(ur_net_mirror(w->nic[i]->net, w->nic[host]->net) == 0, "an address");
}

static void init_port(struct world *w, unsigned i, const struct fabric *f)
{
	const unsigned host = w->host[i], at = port_of(f, i);
	struct ur_port *port = ur_sim_port(w->sim, at);

	ur_sim_set_addr(w->sim, at, &w->gid[host]);
	if (f->port[host].bare)
		ur_sim_set_bare(w->sim, at);
	if (f->port[host].joins)
		ur_sim_set_joins(w->sim, at);
	port->queue->train_pkts = f->port[host].train_pkts;
	port->queue->train_bytes = f->port[host].train_bytes;
	port->queue->caps |= f->port[host].copies ? UR_QUEUE_COPIES : 0;
	if (f->says_mbps)
		port->speed_mbps = f->says_mbps;
	ur_nic_attach(w->nic[i], port);
}

/* The first NIC of a host, or a further lane of it. */
static void init_nic(struct world *w, unsigned host, const struct fabric *f)
{
	const unsigned i = w->nnics, at = port_of(f, i);
	const bool first = i < WORLD_HOSTS;
	struct ur_port *port = ur_sim_port(w->sim, at);
	struct ur_nic_config nc = {.seed = ur_seed_of(ur_rng_u64(&w->rng)),
				   .guid = 0x1000 + host,
				   .tp.slot = first ? (uint8_t)(1 + ur_rng_below(&w->rng, 255)) : free_slot(w),
				   .owned = !f->port[host].bare,
				   .tp.cc = f->cc,
				   .tp.bulk_least = f->bulk_least,
				   .tp.bulk_most = f->bulk_most,
				   .tp.cwnd = f->port[host].cwnd,
				   .tp.selective_repeat = f->port[host].selective,
				   .tp.reorder_bytes = f->port[host].reorder_bytes};

	*ur_sim_tx(w->sim, at) = f->tx[host];
	nc.mtu = port->mtu = f->mtu;
	w->host[i] = host;
	if (f->one.host || !first)
		ur_sim_share(w->sim, at, f->one.host ? 0 : host);
	if (f->one.host && first)
		nc.tp.slot = (uint8_t)(nc.tp.slot % 127 + 1 + 128 * i);
	if (f->one.host || f->lanes.more[host])
		mail_config(w, i, &nc);
	if (!first)
		nc.first_slot = w->nic[host]->cfg.tp.slot;
	nc.mac = port->mac;
	need(ur_nic_create(&nc, w->now, &w->nic[i]) == 0, "a NIC");
	need(first || ur_tp_join(w->nic[i]->tp, w->nic[host]->tp) == 0, "a lane");
	w->nnics++;
	init_address(w, i, f);
	init_port(w, i, f);
}

/* Of the sockets of lanes each gets what is for its slot, or (swapped) what is for another one. Other ports get all, and ignore some. */
static void init_slots(struct world *w, const struct fabric *f, unsigned host)
{
	unsigned nics[LANES_MAX], n = 0;

	for (unsigned i = 0; i < w->nnics; i++)
		if (w->host[i] == host)
			nics[n++] = i;
	for (unsigned k = 0; k < n && n > 1 && f->port[host].bare && !f->one.host; k++) {
		const unsigned whose = nics[f->lanes.swapped ? (k + 1) % n : k];

		ur_sim_set_slot(w->sim, port_of(f, nics[k]), w->nic[whose]->cfg.tp.slot);
		ur_sim_port(w->sim, port_of(f, nics[k]))->queue->caps |= UR_QUEUE_STEERED;
	}
}

void world_init(struct world *w, uint64_t seed, const struct fabric *f)
{
	const unsigned more = f->lanes.more[0] + f->lanes.more[1];
	struct ur_sim_config sc = {.seed = seed,
				   .ports = WORLD_HOSTS + f->raw + more,
				   .npkts = f->npkts,
				   .spare = NPKTS_ENOUGH - ur_min_u32(f->npkts, NPKTS_ENOUGH)};

	memset(w, 0, offsetof(struct world, mail));
	for (unsigned i = 0; i < WORLD_NICS; i++)
		memset(&w->mail[i], 0, offsetof(struct mailbox, token)); /* mail_config clears the tokens where there are any */
	w->rng.state = seed;
	w->now = UR_NS_PER_S;
	w->rest = f->rest;
	w->one = f->one;
	w->breaks_in = f->lanes.breaks_in;
	w->mailed = f->one.host || more;
	sc.tx.mtu = f->mtu;
	w->sim = ur_sim_create(&sc);
	need(w->sim != NULL, "a fabric");
	ur_sim_advance(w->sim, w->now);
	for (unsigned i = 0; i < WORLD_HOSTS; i++)
		init_nic(w, i, f);
	for (unsigned i = 0; i < WORLD_HOSTS; i++) {
		for (unsigned k = 0; k < f->lanes.more[i]; k++)
			init_nic(w, i, f);
		init_slots(w, f, i);
	}
}

/* A round of the hosts that may have something to do: what others send comes when time goes on, so one that did nothing has nothing. */
static unsigned poll_busy(struct world *w, bool busy[WORLD_NICS])
{
	unsigned moved = 0;

	for (unsigned i = 0; i < w->nnics; i++) {
		unsigned n = busy[i] || ur_nic_next(w->nic[i]) <= w->now ? ur_nic_poll(w->nic[i], w->now) : 0;

		busy[i] = n;
		w->moved[i] += n;
		moved += n;
	}
	return moved;
}

/* False when nothing moved at all. */
static bool poll_hosts(struct world *w)
{
	bool busy[WORLD_NICS];
	unsigned rounds = 0;

	for (unsigned i = 0; i < w->nnics; i++)
		busy[i] = true;
	while (w->mailed ? mail_poll(w, true) : poll_busy(w, busy))
		rounds++;
	return rounds != 0;
}

/* Processes that nap have rounds of their own; when no time is to pass, both have one. */
static bool step_naps(struct world *w, ur_time until)
{
	ur_time next = ur_sim_next(w->sim);
	const bool all = until <= w->now;
	bool calls;

	for (unsigned i = 0; i < w->nnics; i++)
		next = ur_min_time(next, mail_due(w, i));
	if (next == UR_TIME_NEVER && until == UR_TIME_NEVER)
		return false;
	calls = ur_sim_next(w->sim) <= next;
	for (unsigned i = 0; i < w->nnics && calls; i++)
		w->mail[i].called = true;
	next = ur_min_time(next, until);
	if (next > w->now)
		w->now = next;
	ur_sim_advance(w->sim, w->now);
	mail_poll(w, all);
	return true;
}

bool world_step(struct world *w, ur_time until)
{
	ur_time next = ur_sim_next(w->sim);
	bool same;

	if (w->one.nap)
		return step_naps(w, until);
	/* A host that has work but found no packet buffer waits until the fabric gives some back. */
	for (unsigned i = 0; i < w->nnics && !w->stuck; i++)
		next = ur_min_time(next, ur_nic_next(w->nic[i]));
	if (next == UR_TIME_NEVER && until == UR_TIME_NEVER)
		return false;
	if (next < w->now + w->rest)
		next = w->now + w->rest;
	next = ur_min_time(next, until);
	same = next <= w->now;
	if (!same)
		w->now = next;
	ur_sim_advance(w->sim, w->now);
	w->stuck = !poll_hosts(w) && same;
	return true;
}

unsigned world_fini(struct world *w)
{
	unsigned left;

	mail_close(w);
	for (unsigned i = w->nnics; i-- > 0;) /* the first of a device last */
		ur_nic_destroy(w->nic[i]);
	left = ur_sim_outstanding(w->sim);
	ur_sim_destroy(w->sim);
	return left;
}
