/* SPDX-License-Identifier: BSD-3-Clause */
/* The transport instance: its life, and what the NIC tells it of the port. */
#include <errno.h>
#include <stdlib.h>

#include "base/idtab.h"
#include "base/random.h"
#include "transport/pending/reorder.h"
#include "transport/packet/bulk.h"
#include "transport/state/tp_priv.h"

#define WINDOW_MAX 65536u
#define WINDOW_BYTES (2u << 20)
#define QUANTUM 16
#define SPEED_DEFAULT 100000 /* Mbit/s, of a port that does not say */
#define SPEED_MAX 4000000    /* what kbit/s in 32 bits hold */

int ur_tp_create(const struct ur_tp_config *c, struct ur_tp **out)
{
	struct ur_tp *tp;

	if (!c->alloc || !c->free || !c->wheel || !c->counters || !c->random || !c->slot || c->window > WINDOW_MAX ||
	    (c->bulk_most && (c->bulk_most < 4096 || c->bulk_most > UR_BULK_LEN)))
		return EINVAL;
	tp = calloc(1, sizeof(*tp));
	if (tp)
		tp->hidden_tokens = calloc(UR_TOKENS, sizeof(*tp->hidden_tokens));
	if (!tp || !tp->hidden_tokens) {
		free(tp);
		return ENOMEM;
	}
	tp->tokens = c->tokens ? c->tokens : tp->hidden_tokens;
	tp->c = *c;
	if ((c->selective_repeat && ur_reorder_open(&tp->reorder, c->reorder_bytes ? c->reorder_bytes : UR_REORDER_BYTES)) ||
	    ur_keys_open(tp)) {
		ur_reorder_close(tp->reorder);
		free(tp->hidden_tokens);
		free(tp);
		return ENOMEM;
	}
	tp->c.bulk_least = c->bulk_least ? c->bulk_least : UR_BULK_LEAST;
	tp->c.bulk_most = c->bulk_most ? c->bulk_most : UR_BULK_MOST;
	ur_tp_set_speed(tp, 0);
	ur_tp_set_window(tp, 0);
	ur_tp_set_train(tp, 0, 0);
	ur_shuffle_init(&tp->qpns, c->random, UR_SLOT_SHIFT);
	ur_shuffle_init(&tp->srqns, c->random, UR_SLOT_SHIFT);
	tp->port_mtu = 4096;
	ur_idtab_init(&tp->qps, UR_MAX_QP);
	ur_idtab_init(&tp->srqs, UR_MAX_SRQ);
	for (unsigned i = 0; i < UR_TXQ_COUNT; i++) {
		ur_list_init(&tp->txq[i]);
		ur_list_init(&tp->parked[i]);
	}
	ur_list_init(&tp->paused);
	ur_list_init(&tp->stalled);
	for (unsigned i = 0; i < UR_MCAST_BUCKETS; i++)
		ur_list_init(&tp->group[i]);
	*out = tp;
	return 0;
}

void ur_tp_set_train(struct ur_tp *tp, unsigned pkts, uint32_t bytes)
{
	tp->train_pkts = pkts;
	tp->train_bytes = bytes;
	tp->quantum = pkts / 2 > QUANTUM ? pkts / 2 : QUANTUM;
}

void ur_tp_set_copies(struct ur_tp *tp, bool copies)
{
	tp->copies = copies;
}

void ur_tp_set_window(struct ur_tp *tp, uint32_t bytes)
{
	tp->window_bytes = bytes && bytes < WINDOW_BYTES ? bytes : WINDOW_BYTES;
}

void ur_tp_set_speed(struct ur_tp *tp, uint32_t mbps)
{
	tp->line_kbps = ur_min_u32(mbps ? mbps : SPEED_DEFAULT, SPEED_MAX) * 1000;
}

void ur_tp_set_port_mtu(struct ur_tp *tp, uint32_t bytes)
{
	tp->port_mtu = bytes;
}

void ur_tp_destroy(struct ur_tp *tp)
{
	if (tp->nstash)
		tp->c.free(tp->c.ctx, tp->stash, tp->nstash);
	ur_reorder_close(tp->reorder);
	ur_idtab_fini(&tp->qps);
	ur_keys_leave(tp);
	ur_idtab_fini(&tp->srqs);
	free(tp->hidden_tokens);
	free(tp);
}

void ur_tp_hide_tokens(struct ur_tp *tp)
{
	tp->tokens = tp->hidden_tokens;
}
