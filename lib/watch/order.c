/* SPDX-License-Identifier: BSD-3-Clause */
/* Which rows are shown, and in which order. */
#include <stdlib.h>
#include <string.h>

#include "watch/watch.h"

static const char *const names[UR_WATCH_KEY_COUNT] = {
	[UR_WATCH_TRAFFIC] = "traffic",
	[UR_WATCH_PID] = "pid",
	[UR_WATCH_PROGRAM] = "program",
	[UR_WATCH_QP] = "qp",
	[UR_WATCH_TYPE] = "type",
	[UR_WATCH_STATE] = "state",
	[UR_WATCH_PEER] = "peer",
	[UR_WATCH_TX] = "tx",
	[UR_WATCH_RX] = "rx",
	[UR_WATCH_PACKETS] = "packets",
	[UR_WATCH_RETRANSMITS] = "retransmits",
	[UR_WATCH_RTT] = "rtt",
	[UR_WATCH_WINDOW] = "window",
	[UR_WATCH_LIMIT] = "limit",
};

const char *ur_watch_key_name(unsigned key)
{
	return key < UR_WATCH_KEY_COUNT ? names[key] : NULL;
}

bool ur_watch_key_find(const char *name, enum ur_watch_key *key)
{
	for (unsigned i = 0; i < UR_WATCH_KEY_COUNT; i++)
		if (strcmp(names[i], name) == 0) {
			*key = (enum ur_watch_key)i;
			return true;
		}
	return false;
}

/* --- sorting --- */

static double value_of_key(const struct ur_watch_row *r, enum ur_watch_key key)
{
	switch (key) {
	case UR_WATCH_TRAFFIC: return r->rates.tx_bits + r->rates.rx_bits;
	case UR_WATCH_PID: return -(double)r->process->pid; /* names, so to speak, and not amounts: upwards */
	case UR_WATCH_QP: return -(double)r->qp->qpn;
	case UR_WATCH_TYPE: return -(double)r->qp->type;
	case UR_WATCH_STATE: return (double)r->qp->state; /* ERR is the last one, and what one looks for */
	case UR_WATCH_TX: return r->rates.tx_bits;
	case UR_WATCH_RX: return r->rates.rx_bits;
	case UR_WATCH_PACKETS: return r->rates.tx_packets + r->rates.rx_packets;
	case UR_WATCH_RETRANSMITS: return r->rates.retransmits;
	case UR_WATCH_RTT: return (double)r->qp->srtt;
	case UR_WATCH_WINDOW: return (double)r->qp->in_flight;
	case UR_WATCH_LIMIT: return r->qp->rate_kbps ? -(double)r->qp->rate_kbps : -1e12; /* the most limited first */
	default: return 0;
	}
}

/* How it sorts below or above the next, by words where the key is one. */
static int compare(const struct ur_watch_row *a, const struct ur_watch_row *b, enum ur_watch_key key)
{
	double x = value_of_key(a, key), y = value_of_key(b, key);

	if (key == UR_WATCH_PROGRAM)
		return strcmp(a->process->program, b->process->program);
	if (key == UR_WATCH_PEER)
		return memcmp(&a->qp->peer, &b->qp->peer, sizeof(a->qp->peer));
	return x > y ? -1 : x < y;
}

struct order {
	enum ur_watch_key key;
	int sign;
};

static int by_order(const void *a, const void *b, void *order)
{
	const struct order *o = order;
	int c = o->sign * compare(a, b, o->key);

	if (!c)
		c = compare(a, b, UR_WATCH_PID);
	if (!c)
		c = compare(a, b, UR_WATCH_QP);
	return c ? c
		 : strcmp(((const struct ur_watch_row *)a)->process->status.interface,
			  ((const struct ur_watch_row *)b)->process->status.interface);
}

void ur_watch_sort(struct ur_watch_row *rows, unsigned n, enum ur_watch_key key, bool reverse)
{
	struct order o = {key, reverse ? -1 : 1};

	if (n)
		qsort_r(rows, n, sizeof(rows[0]), by_order, &o);
}

/* --- choosing --- */

bool ur_watch_wants(const struct ur_watch_filter *f, const struct ur_watch_process *p)
{
	return (!f->pid || p->pid == f->pid) && (!f->program || strstr(p->program, f->program));
}

static bool chosen(const struct ur_watch_row *r, const struct ur_watch_filter *f)
{
	if (!ur_watch_wants(f, r->process))
		return false;
	if (f->has_peer && (!r->qp->connected || memcmp(&r->qp->peer, &f->peer, sizeof(f->peer)) != 0))
		return false;
	return !f->active || r->rates.tx_packets > 0 || r->rates.rx_packets > 0;
}

unsigned ur_watch_select(struct ur_watch_row *rows, unsigned n, const struct ur_watch_filter *f)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < n; i++)
		if (chosen(&rows[i], f))
			rows[kept++] = rows[i];
	return kept;
}
