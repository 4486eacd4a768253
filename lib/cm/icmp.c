/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is known of a peer that cannot be reached. What this host found out counts at once. An ICMP error is a statement that anybody can
 * send in another's name, so it has to quote what only somebody on the path has seen; those that do not are taken at a bounded rate, since
 * there are no more than 2^24 PSNs.
 */
#include <string.h>

#include "cm/internal.h"
#include "wire/hdr.h"
#include "wire/opcode.h"

#define WRONG_QUOTES 16 /* at once, and then one in this time: */
#define WRONG_QUOTE_NS UR_NS_PER_S
#define MAD_AT (UR_BTH_LEN + 8) /* after the DETH */
#define TID_AT 8                /* in a MAD; 8 bytes */
#define TID_LEN 8
#define SLOT_AT 24 /* the top byte of the sender's communication id, or of a SIDR_REQ's request id */
_Static_assert(UR_QUOTE_LEN >= MAD_AT + SLOT_AT + 4, "a quote tells whose it is");

static bool waits_for(const struct ur_cm_conn *c, const struct ur_gid *dst)
{
	return c->state == UR_CM_REQ_SENT && ur_gid_eq(&c->addr.dgid, dst);
}

static void stop_waiting(struct ur_cm_conn *c, ur_time now)
{
	c->due = now;
	c->retries_left = 0;
	ur_timer_arm(c->cm->cfg.wheel, &c->timer, now);
}

void ur_cm_unreachable(struct ur_cm *cm, const struct ur_gid *dst, ur_time now)
{
	for (struct ur_list *l = cm->conns.next; l != &cm->conns; l = l->next) {
		struct ur_cm_conn *c = ur_container_of(l, struct ur_cm_conn, link);

		if (!waits_for(c, dst))
			continue;
		ur_cm_watch_saw(&c->watch, UR_CM_SEEN_NO_NEIGHBOUR);
		stop_waiting(c, now);
	}
	ur_cm_sidr_unreachable(cm, dst, now);
}

/* Is it about a MAD? What is about a QP's packet is no guess at ours. */
static bool quotes_a_mad(const uint8_t *quote, unsigned len)
{
	struct ur_bth b;

	if (len < UR_BTH_LEN)
		return false;
	ur_bth_get(quote, &b);
	return b.opcode == (UR_UD | UR_OP_SEND_ONLY) && b.dqpn == 1;
}

bool ur_cm_quotes(const uint8_t *quote, unsigned len, uint32_t psn, const uint8_t mad[UR_MAD_LEN])
{
	struct ur_bth b;

	ur_bth_get(quote, &b);
	if (b.psn != psn)
		return false;
	return len < MAD_AT + TID_AT + TID_LEN || !memcmp(quote + MAD_AT + TID_AT, mad + TID_AT, TID_LEN);
}

uint8_t ur_cm_quoted_slot(const struct ur_undelivered *u)
{
	return quotes_a_mad(u->quote, u->len) && u->len > MAD_AT + SLOT_AT ? u->quote[MAD_AT + SLOT_AT] : 0;
}

/* How many requests end: those that are quoted, or `all` that wait for that host. */
static unsigned end_requests(struct ur_cm *cm, const struct ur_undelivered *u, bool all, ur_time now)
{
	unsigned n = 0;

	for (struct ur_list *l = cm->conns.next; l != &cm->conns; l = l->next) {
		struct ur_cm_conn *c = ur_container_of(l, struct ur_cm_conn, link);

		if (!waits_for(c, &u->dst) || !(all || ur_cm_quotes(u->quote, u->len, c->psn, c->mad)))
			continue;
		ur_cm_watch_saw_icmp(&c->watch, u);
		stop_waiting(c, now);
		n++;
	}
	return n + ur_cm_sidr_icmp_error(cm, u, all, now);
}

bool ur_cm_icmp_error(struct ur_cm *cm, const struct ur_undelivered *u, ur_time now)
{
	const struct ur_bucket before = cm->wrong_quotes;

	if (!quotes_a_mad(u->quote, u->len) || !ur_bucket_take(&cm->wrong_quotes, WRONG_QUOTES, WRONG_QUOTE_NS, now))
		return false;
	if (!end_requests(cm, u, false, now))
		return false;
	/* Hosts send few such errors, and one for a whole train: what a request has met that is quoted beyond doubt, all meet. */
	if (u->len >= MAD_AT + TID_AT + TID_LEN)
		end_requests(cm, u, true, now);
	cm->wrong_quotes = before; /* it was no guess */
	return true;
}
