/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XRC (annex A14): who asks has an XRC_SEND QP, who answers an XRC_RECV QP and, for each SRQ number in the peer's requests, an SRQ of ours.
 * Connections of the connection manager begin with the one that asks; of others the packets tell.
 */
#include <errno.h>
#include <stdlib.h>

#include "replay/replay.h"

struct lender { /* a shared receive queue */
	uint32_t recorded;
	struct ur_srq *srq;
};

static uint32_t named_by(const struct ur_pkt *p)
{
	return ur_xrceth_get(pkt_ext(p)); /* before all other extended headers */
}

static struct lender *find_lender(const struct side *s, uint32_t recorded)
{
	for (unsigned i = 0; i < s->nlender; i++)
		if (s->lender[i].recorded == recorded)
			return &s->lender[i];
	return NULL;
}

struct ur_srq *xrc_srq(const struct side *s, const struct ur_pkt *p)
{
	const struct lender *l = find_lender(s, named_by(p));

	return l ? l->srq : NULL;
}

static int lend(struct side *s, uint32_t recorded)
{
	struct ur_srq_init init = {.pd = s->pd, .xrcd = s->xrcd, .cq = s->rcq, .attr = {.max_wr = RECV_WRS, .max_sge = 1}};
	struct lender *more;
	int err;

	if (find_lender(s, recorded))
		return 0;
	more = s->nlender < XRC_SRQS_MAX ? realloc(s->lender, (s->nlender + 1) * sizeof(*more)) : NULL;
	if (!more)
		return ENOMEM;
	s->lender = more;
	more[s->nlender] = (struct lender){.recorded = recorded};
	err = ur_srq_create(s->tp, &init, &more[s->nlender].srq);
	s->nlender += !err;
	return err;
}

int xrc_lend(struct side *s)
{
	const struct conn *c = s->conn;
	int err = ur_xrcd_create(s->tp, &s->xrcd);

	for (unsigned i = 0; i < c->n && !err; i++)
		if (c->from[i] != s->me && rec_op(c->rec[i])->flags & UR_OPF_XRCETH)
			err = lend(s, named_by(&c->rec[i]->pkt));
	return err;
}

void xrc_rename(const struct side *s, struct ur_pkt *p)
{
	const struct ur_srq *srq = ur_opcode(p->bth.opcode)->flags & UR_OPF_XRCETH ? xrc_srq(s, p) : NULL;

	if (srq)
		ur_xrceth_put(p->data + p->bth_off + UR_BTH_LEN, ur_srq_num(srq));
}

/* The QP has gone; the CQs and the PD have not. */
void xrc_close(struct side *s)
{
	for (unsigned i = 0; i < s->nlender; i++)
		if (ur_srq_destroy(s->lender[i].srq))
			report_text(s->rep, 0, "shared receive queue", "free at the end", "still in use");
	if (s->xrcd && ur_xrcd_destroy(s->xrcd))
		report_text(s->rep, 0, "XRC domain", "free at the end", "still in use");
	free(s->lender);
}
