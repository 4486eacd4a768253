/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze/cm/stranger.h"

#include <stdlib.h>

#include "analyze/frame/hash.h"
#include "analyze/state/cm_facts.h"
#include "analyze/state/report.h"

static uint64_t stranger_key(const struct ur_analysis *a, const struct an_flow *f, uint64_t psn)
{
	return an_key(a->salt, &f->src, &f->dst, psn & UR_PSN_MASK);
}

static int by_key(const void *x, const void *y)
{
	const struct an_stranger *a = x, *b = y;

	return a->key != b->key ? (a->key > b->key) - (a->key < b->key) : (a->conn > b->conn) - (a->conn < b->conn);
}

struct an_stranger *an_strangers_of(const struct ur_analysis *a, uint32_t *n)
{
	struct an_stranger *s = malloc(((size_t)a->nconn + 1) * sizeof(*s));

	*n = 0;
	for (uint32_t k = 0; s && k < a->nconn; k++)
		if (a->conn[k] && !a->conn[k]->cm && a->conn[k]->s.begun)
			s[(*n)++] = (struct an_stranger){.key = stranger_key(a, a->conn[k], a->conn[k]->s.first), .conn = k};
	if (s)
		qsort(s, *n, sizeof(*s), by_key);
	return s;
}

void an_stranger_tell(struct ur_analysis *a, const struct an_cm *c, unsigned i, struct an_stranger *s, uint32_t n)
{
	const struct an_flow *f = c->flow[i];
	const struct an_cm_message *m = an_cm_message(c, !i, i ? UR_CM_REQ : UR_CM_REP);
	uint32_t low = 0, high = n;
	uint64_t key;

	if (!f || f->packets)
		return;
	key = stranger_key(a, f, f->start);
	while (low < high) {
		const uint32_t middle = (low + high) / 2;

		if (s[middle].key < key)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == n || s[low].key != key || s[low].told)
		return;
	s[low].told = true;
	for (; low < n && s[low].key == key; low++) {
		struct an_flow *other = a->conn[s[low].conn];

		an_report_on(a, other,
			     (struct ur_finding){
				     .rule = UR_RULE_CM_QPN, .frame = other->first_frame, .seen = {m->frame}, .v = {other->dqpn, f->dqpn}});
	}
}
