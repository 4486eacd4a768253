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

static void init_host(struct world *w, unsigned i, const struct fabric *f)
{
	struct ur_port *port = ur_sim_port(w->sim, i);
	struct ur_nic_config nc = {.seed = ur_seed_of(ur_rng_u64(&w->rng)),
				   .guid = 0x1000 + i,
				   .tp.slot = (uint8_t)(1 + ur_rng_below(&w->rng, 255)),
				   .owned = !f->port[i].bare,
				   .tp.cc = f->cc,
				   .tp.bulk_least = f->bulk_least,
				   .tp.bulk_most = f->bulk_most,
				   .tp.cwnd = f->port[i].cwnd,
				   .tp.selective_repeat = f->port[i].selective,
				   .tp.reorder_bytes = f->port[i].reorder_bytes,
				   .mtu = port->mtu};
	struct ur_net_addr addr = {.prefix_len = f->v6 ? 64 : 24};
	unsigned no = f->one.host ? 1 : i + 1; /* of the host whose addresses it has */

	if (f->one.host) {
		ur_sim_share(w->sim, i, 0);
		nc.tp.slot = (uint8_t)(nc.tp.slot % 127 + 1 + 128 * i);
		mail_config(w, i, &nc);
	}
	nc.mac = port->mac;
	need(ur_nic_create(&nc, w->now, &w->nic[i]) == 0, "a NIC");
	addr.gid = ur_gid_from_v4(htonl(0x0a000000 + no));
	if (f->v6)
		addr.gid = (struct ur_gid){.raw = {[0] = 0xfd, [15] = (uint8_t)no}};
	need(ur_net_addr_add(w->nic[i]->net, &addr) == 0, "an address");
	w->gid[i] = addr.gid;
	ur_sim_set_addr(w->sim, i, &addr.gid);
	if (f->port[i].bare)
		ur_sim_set_bare(w->sim, i);
	if (f->port[i].joins)
		ur_sim_set_joins(w->sim, i);
	port->queue->train_pkts = f->port[i].train_pkts;
	port->queue->train_bytes = f->port[i].train_bytes;
	port->queue->caps |= f->port[i].copies ? UR_QUEUE_COPIES : 0;
	if (f->says_mbps)
		port->speed_mbps = f->says_mbps;
	ur_nic_attach(w->nic[i], port);
}

void world_init(struct world *w, uint64_t seed, const struct fabric *f)
{
	struct ur_sim_config sc = {
		.seed = seed, .ports = WORLD_HOSTS + f->raw, .npkts = f->npkts, .spare = NPKTS_ENOUGH - ur_min_u32(f->npkts, NPKTS_ENOUGH)};

	memset(w, 0, offsetof(struct world, mail));
	for (unsigned i = 0; i < WORLD_HOSTS; i++)
		memset(&w->mail[i], 0, offsetof(struct mailbox, token)); /* mail_config clears the tokens where there are any */
	w->rng.state = seed;
	w->now = UR_NS_PER_S;
	w->rest = f->rest;
	w->one = f->one;
	sc.tx.mtu = f->mtu;
	w->sim = ur_sim_create(&sc);
	need(w->sim != NULL, "a fabric");
	ur_sim_advance(w->sim, w->now);
	for (unsigned i = 0; i < WORLD_HOSTS; i++) {
		*ur_sim_tx(w->sim, i) = f->tx[i];
		ur_sim_port(w->sim, i)->mtu = f->mtu;
		init_host(w, i, f);
	}
}

/* A round of the hosts that may have something to do: what others send comes when time goes on, so one that did nothing has nothing. */
static unsigned poll_busy(struct world *w, bool busy[WORLD_HOSTS])
{
	unsigned moved = 0;

	for (unsigned i = 0; i < WORLD_HOSTS; i++) {
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
	bool busy[WORLD_HOSTS] = {true, true};
	unsigned rounds = 0;

	while (w->one.host ? mail_poll(w, true) : poll_busy(w, busy))
		rounds++;
	return rounds != 0;
}

/* Processes that nap have rounds of their own; when no time is to pass, both have one. */
static bool step_naps(struct world *w, ur_time until)
{
	ur_time next = ur_sim_next(w->sim);
	const bool all = until <= w->now;
	bool calls;

	for (unsigned i = 0; i < WORLD_HOSTS; i++)
		next = ur_min_time(next, mail_due(w, i));
	if (next == UR_TIME_NEVER && until == UR_TIME_NEVER)
		return false;
	calls = ur_sim_next(w->sim) <= next;
	for (unsigned i = 0; i < WORLD_HOSTS && calls; i++)
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
	for (unsigned i = 0; i < WORLD_HOSTS && !w->stuck; i++)
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
	for (unsigned i = 0; i < WORLD_HOSTS; i++)
		ur_nic_destroy(w->nic[i]);
	left = ur_sim_outstanding(w->sim);
	ur_sim_destroy(w->sim);
	return left;
}
