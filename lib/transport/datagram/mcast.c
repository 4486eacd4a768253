/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups and the UD QPs that are attached to them (IBTA volume 1, 10.5): a table by GID, and a copy of each datagram for each. */
#include <errno.h>
#include <stdlib.h>

#include "transport/datagram/mcast.h"
#include "transport/datagram/ud.h"
#include "transport/failure/qp_end.h"
#include "transport/state/admit.h"
#include "transport/state/qp_priv.h"
#include "transport/state/tp_priv.h"
#include "wire/frame.h"
#include "wire/hdr.h"
#include "wire/opcode.h"

struct group {
	struct ur_list link; /* of its bucket */
	struct ur_gid gid;
	unsigned n, room;
	struct ur_qp **qp;
};

static struct ur_list *bucket_of(const struct ur_tp *tp, const struct ur_gid *gid)
{
	unsigned h = 0;

	for (unsigned i = 0; i < sizeof(gid->raw); i++)
		h = h * 31 + gid->raw[i];
	return (struct ur_list *)&tp->group[h & (UR_MCAST_BUCKETS - 1)];
}

static struct group *find_group(const struct ur_tp *tp, const struct ur_gid *gid)
{
	const struct ur_list *b = bucket_of(tp, gid);

	for (struct ur_list *l = b->next; l != b; l = l->next)
		if (ur_gid_eq(&ur_container_of(l, struct group, link)->gid, gid))
			return ur_container_of(l, struct group, link);
	return NULL;
}

static unsigned index_of(const struct group *g, const struct ur_qp *qp)
{
	unsigned i = 0;

	while (i < g->n && g->qp[i] != qp)
		i++;
	return i;
}

/* --- attaching --- */

static struct group *make(struct ur_tp *tp, const struct ur_gid *gid)
{
	struct group *g = tp->ngroups < UR_MAX_MCAST_GROUPS ? calloc(1, sizeof(*g)) : NULL;

	if (!g)
		return NULL;
	g->gid = *gid;
	ur_list_add_tail(bucket_of(tp, gid), &g->link);
	tp->ngroups++;
	return g;
}

static void drop_if_empty(struct ur_tp *tp, struct group *g)
{
	if (g->n)
		return;
	ur_list_del(&g->link);
	tp->ngroups--;
	free(g->qp);
	free(g);
}

static int add_member(struct group *g, struct ur_qp *qp)
{
	if (g->n == UR_MAX_MCAST_QPS)
		return ENOMEM;
	if (g->n == g->room) {
		unsigned room = g->room ? 2 * g->room : 4;
		struct ur_qp **grown = realloc(g->qp, room * sizeof(struct ur_qp *));

		if (!grown)
			return ENOMEM;
		g->qp = grown;
		g->room = room;
	}
	g->qp[g->n++] = qp;
	qp->ngroups++;
	return 0;
}

int ur_mcast_attach(struct ur_qp *qp, const struct ur_gid *gid)
{
	struct group *g;
	int err = 0;

	if (qp->type != IBV_QPT_UD || !ur_gid_is_mcast(gid))
		return EINVAL;
	g = find_group(qp->tp, gid);
	if (!g)
		g = make(qp->tp, gid);
	if (!g)
		return ENOMEM;
	if (index_of(g, qp) == g->n)
		err = add_member(g, qp);
	drop_if_empty(qp->tp, g);
	return err;
}

int ur_mcast_detach(struct ur_qp *qp, const struct ur_gid *gid)
{
	struct group *g = find_group(qp->tp, gid);
	unsigned i = g ? index_of(g, qp) : 0;

	if (!g || i == g->n)
		return EINVAL;
	g->n--;
	memmove(&g->qp[i], &g->qp[i + 1], (g->n - i) * sizeof(struct ur_qp *));
	qp->ngroups--;
	drop_if_empty(qp->tp, g);
	return 0;
}

bool ur_qp_is_attached(const struct ur_qp *qp)
{
	return qp->ngroups != 0;
}

void ur_qp_block_mcast_loopback(struct ur_qp *qp)
{
	qp->no_mcast_loopback = true;
}

unsigned ur_mcast_list(const struct ur_tp *tp, struct ur_gid *out, unsigned max)
{
	unsigned n = 0;

	for (unsigned b = 0; b < UR_MCAST_BUCKETS; b++)
		for (struct ur_list *l = tp->group[b].next; l != &tp->group[b] && n < max; l = l->next)
			out[n++] = ur_container_of(l, struct group, link)->gid;
	return tp->ngroups;
}

/* --- receiving --- */

static void deliver(struct ur_qp *qp, struct ur_pkt *p, const struct ur_opcode_info *op)
{
	const enum ur_counter why = ur_qp_admits(qp, p, UR_RX_REQUESTS, UR_RX_FROM_ANYBODY);

	if (why != UR_ADMITTED) {
		ur_qp_count(qp, why);
		return;
	}
	ur_ud_rx(qp, p, op);
	if (ur_unlikely(qp->broken))
		ur_qp_to_err(qp);
}

/* A group that nobody here is attached to is somebody else's. */
void ur_mcast_rx(struct ur_tp *tp, struct ur_pkt *p, const struct ur_opcode_info *op)
{
	struct group *g = find_group(tp, &p->dst);

	if (!ur_gid_is_mcast(&p->dst))
		ur_count(tp->c.counters, UR_C_DROP_QPN);
	else if (!op->name || (p->bth.opcode & UR_SERVICE_MASK) != UR_UD)
		ur_count(tp->c.counters, UR_C_DROP_OPCODE);
	else if (!g)
		ur_count(tp->c.counters, UR_C_RX_OTHER_HOST);
	else
		for (unsigned i = 0; i < g->n; i++)
			deliver(g->qp[i], p, op);
}
