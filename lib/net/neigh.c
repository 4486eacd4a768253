/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The neighbour cache: the states of RFC 4861, 7.3, for ARP and neighbour discovery alike. An entry that paths use is asked again before it
 * goes stale, while its packets flow on; when it does not answer, everyone on the link is asked before it is given up.
 */
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "net/internal.h"

static struct ur_list *bucket_of(const struct ur_net *net, const struct ur_gid *ip, uint16_t vlan)
{
	uint64_t a, b;

	memcpy(&a, ip->raw, 8);
	memcpy(&b, ip->raw + 8, 8);
	return (struct ur_list *)&net->bucket[ur_table_hash(vlan, a, b) % UR_NEIGH_BUCKETS];
}

struct ur_neigh *ur_neigh_find(const struct ur_net *net, const struct ur_gid *ip, uint16_t vlan)
{
	const struct ur_list *head = bucket_of(net, ip, vlan);

	for (struct ur_list *l = head->next; l != head; l = l->next) {
		struct ur_neigh *n = ur_container_of(l, struct ur_neigh, hash);

		if (n->vlan == vlan && ur_gid_eq(&n->ip, ip))
			return n;
	}
	return NULL;
}

/* --- packets that wait --- */

static struct ur_pkt *dequeue(struct ur_neigh *n)
{
	struct ur_pkt *p = n->queue;

	if (!p)
		return NULL;
	n->queue = p->next;
	if (!n->queue)
		n->queue_tail = &n->queue;
	p->next = NULL;
	n->nqueue--;
	n->net->nqueued--;
	return p;
}

static void drop_pkt(struct ur_net *net, struct ur_pkt *p)
{
	ur_net_count(net, UR_C_DROP_NEIGH);
	ur_net_free_pkt(net, p);
}

void ur_neigh_enqueue(struct ur_neigh *n, struct ur_pkt *p)
{
	struct ur_net *net = n->net;

	if (n->nqueue >= UR_NEIGH_QUEUE || (net->nqueued >= UR_NET_QUEUE && n->nqueue))
		drop_pkt(net, dequeue(n));
	if (net->nqueued >= UR_NET_QUEUE) {
		drop_pkt(net, p);
		return;
	}
	p->next = NULL;
	*n->queue_tail = p;
	n->queue_tail = &p->next;
	n->nqueue++;
	net->nqueued++;
}

static void drop_queue(struct ur_neigh *n)
{
	struct ur_pkt *p;

	while ((p = dequeue(n)))
		drop_pkt(n->net, p);
}

/* The MAC addresses are all that the queued frames lack, ours too when it has changed meanwhile; the ICRC does not cover them. */
static void flush_queue(struct ur_neigh *n)
{
	struct ur_pkt *p;

	while (ur_neigh_usable(n) && (p = dequeue(n))) {
		memcpy(p->data, n->mac.b, 6);
		memcpy(p->data + 6, n->net->mac.b, 6);
		n->net->cfg.output(n->net->cfg.ctx, p);
	}
}

/* --- states --- */

static bool is_needed(const struct ur_neigh *n)
{
	return n->nqueue || !ur_list_empty(&n->paths);
}

static void arm(struct ur_neigh *n, ur_time when)
{
	ur_timer_arm(n->net->cfg.wheel, &n->timer, when);
}

/* The state first: an answer may arrive before ur_neigh_ask returns. */
static void ask_first(struct ur_neigh *n, enum ur_neigh_state state, ur_time now)
{
	n->state = (uint8_t)state;
	n->probes = 1;
	ur_timer_cancel(n->net->cfg.wheel, &n->timer);
	arm(n, now + UR_NEIGH_RETRANS_TIME);
	ur_neigh_ask(n, state == UR_NEIGH_PROBE);
}

static void become_reachable(struct ur_neigh *n, ur_time now)
{
	n->state = UR_NEIGH_REACHABLE;
	ur_timer_cancel(n->net->cfg.wheel, &n->timer);
	arm(n, now + UR_NEIGH_REACHABLE_TIME);
}

static void become_stale(struct ur_neigh *n, ur_time now)
{
	ur_timer_cancel(n->net->cfg.wheel, &n->timer);
	n->state = UR_NEIGH_STALE;
	if (is_needed(n))
		ask_first(n, UR_NEIGH_PROBE, now);
}

static void fail_neighbour(struct ur_neigh *n, ur_time now)
{
	n->state = UR_NEIGH_FAILED;
	drop_queue(n);
	ur_net_paths_changed(n, now);
}

static void neigh_timer(struct ur_timer *t, ur_time now)
{
	struct ur_neigh *n = ur_container_of(t, struct ur_neigh, timer);
	unsigned limit = n->state == UR_NEIGH_PROBE ? 2 * UR_NEIGH_PROBES : UR_NEIGH_PROBES;

	if (n->state == UR_NEIGH_REACHABLE) {
		become_stale(n, now);
		return;
	}
	if (n->probes >= limit) {
		fail_neighbour(n, now);
		return;
	}
	n->probes++;
	arm(n, now + UR_NEIGH_RETRANS_TIME);
	ur_neigh_ask(n, n->state == UR_NEIGH_PROBE && n->probes <= UR_NEIGH_PROBES);
}

bool ur_neigh_use(struct ur_neigh *n, const struct ur_gid *src, ur_time now)
{
	n->src = *src;
	if (n->learned) {
		n->learned = false;
		n->net->nlearned--;
	}
	if (n->state == UR_NEIGH_FAILED)
		ask_first(n, UR_NEIGH_INCOMPLETE, now);
	else if (n->state == UR_NEIGH_STALE)
		ask_first(n, UR_NEIGH_PROBE, now);
	return ur_neigh_usable(n);
}

/* RFC 4861, 7.2.5, and the merge of RFC 826. Confirmation counts only while we have asked. */
void ur_neigh_advertised(struct ur_neigh *n, const struct ur_mac *mac, bool solicited, bool override, ur_time now)
{
	bool usable = ur_neigh_usable(n), same = usable && ur_mac_eq(&n->mac, mac);
	bool confirms = solicited && (n->state == UR_NEIGH_INCOMPLETE || n->state == UR_NEIGH_PROBE);

	if (usable && !same && !override) {
		if (n->state == UR_NEIGH_REACHABLE)
			become_stale(n, now);
		return;
	}
	if (same && !confirms)
		return;
	n->mac = *mac;
	n->hold++;
	if (confirms)
		become_reachable(n, now);
	else
		become_stale(n, now);
	ur_net_paths_changed(n, now);
	flush_queue(n);
	n->hold--;
}

/* --- the table --- */

static void neigh_free(struct ur_neigh *n)
{
	struct ur_net *net = n->net;

	ur_timer_cancel(net->cfg.wheel, &n->timer);
	drop_queue(n);
	ur_list_del(&n->lru);
	ur_list_del(&n->hash);
	net->nneighs--;
	if (n->learned)
		net->nlearned--;
	free(n);
}

static bool evict(struct ur_net *net, bool learned)
{
	for (struct ur_list *l = net->neighs.next; l != &net->neighs; l = l->next) {
		struct ur_neigh *n = ur_container_of(l, struct ur_neigh, lru);

		if (!n->hold && !is_needed(n) && (!learned || n->learned)) {
			neigh_free(n);
			return true;
		}
	}
	return false;
}

static struct ur_neigh *neigh_new(struct ur_net *net, const struct ur_gid *ip, uint16_t vlan)
{
	struct ur_neigh *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->net = net;
	n->ip = *ip;
	n->vlan = vlan;
	n->state = UR_NEIGH_FAILED;
	n->queue_tail = &n->queue;
	ur_timer_init(&n->timer, neigh_timer);
	ur_list_init(&n->paths);
	ur_list_add_tail(&net->neighs, &n->lru);
	ur_list_add_tail(bucket_of(net, ip, vlan), &n->hash);
	net->nneighs++;
	return n;
}

struct ur_neigh *ur_neigh_get(struct ur_net *net, const struct ur_gid *ip, uint16_t vlan)
{
	struct ur_neigh *n = ur_neigh_find(net, ip, vlan);

	if (n) {
		ur_list_del(&n->lru);
		ur_list_add_tail(&net->neighs, &n->lru);
		return n;
	}
	if (net->nneighs >= UR_NEIGH_MAX && !evict(net, false))
		return NULL;
	return neigh_new(net, ip, vlan);
}

struct ur_neigh *ur_neigh_learn(struct ur_net *net, const struct ur_gid *ip, uint16_t vlan)
{
	struct ur_neigh *n;

	if ((net->nlearned >= UR_NEIGH_LEARNED_MAX || net->nneighs >= UR_NEIGH_MAX) && !evict(net, true))
		return NULL;
	n = neigh_new(net, ip, vlan);
	if (!n)
		return NULL;
	n->learned = true;
	net->nlearned++;
	return n;
}

/* Questions that could not be asked before. */
void ur_neigh_mac_known(struct ur_net *net)
{
	struct ur_list *l, *tmp;

	ur_list_for_each_safe(l, tmp, &net->neighs) {
		struct ur_neigh *n = ur_container_of(l, struct ur_neigh, lru);

		if (n->state == UR_NEIGH_INCOMPLETE) {
			n->probes = 1;
			ur_neigh_ask(n, false);
		}
	}
}

void ur_neigh_free_all(struct ur_net *net)
{
	while (!ur_list_empty(&net->neighs)) {
		struct ur_neigh *n = ur_container_of(net->neighs.next, struct ur_neigh, lru);

		ur_net_paths_forget(&n->paths);
		neigh_free(n);
	}
}
