/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze/forget.h"

#include "analyze/cm/cm.h"
#include "analyze/flow/finish.h"
#include "analyze/flow/flow.h"
#include "analyze/request/chain.h"
#include "analyze/state/cm_facts.h"

static bool is_over(const struct an_flow *f, ur_time idle, ur_time closed)
{
	const ur_time newest = f->peer && f->peer->newest > f->newest ? f->peer->newest : f->newest;

	return newest < idle || (newest < closed && f->cm && an_cm_ending(f->cm) != UR_AN_OPEN);
}

static void forget(struct ur_analysis *a, struct an_flow *f, ur_forget_fn gone, void *ctx)
{
	struct an_flow *peer = f->peer;
	struct ur_an_conn c;

	an_flow_finish(a, f);
	if (peer)
		an_flow_finish(a, peer);
	if (ur_analysis_conn(a, f->id, &c))
		gone(ctx, &c);
	an_chain_forget(a, f);
	an_cm_leave(f);
	if (peer) {
		an_chain_forget(a, peer);
		an_cm_leave(peer);
	}
	an_flow_forget(a, f);
}

uint32_t ur_analysis_forget(struct ur_analysis *a, ur_time idle, ur_time closed, ur_forget_fn gone, void *ctx)
{
	uint32_t kept = 0, n = 0;

	ur_analysis_settle(a);
	for (uint32_t i = 0; i < a->nconn; i++) {
		struct an_flow *f = a->conn[i];

		if (!f)
			continue;
		if (is_over(f, idle, closed)) {
			forget(a, f, gone, ctx);
			a->conn[i] = NULL;
			n++;
			continue;
		}
		a->conn[i] = NULL;
		a->conn[kept] = f;
		f->id = kept++;
	}
	a->nconn = kept;
	an_cms_forget(a, idle);
	an_hosts_forget(a);
	a->total.forgotten += n;
	return n;
}
