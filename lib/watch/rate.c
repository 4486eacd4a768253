/* SPDX-License-Identifier: BSD-3-Clause */
/* What changed between two samples, per second. */
#include <stdlib.h>

#include "watch/watch.h"

static double grown(uint64_t was, uint64_t is)
{
	return (double)(is >= was ? is - was : is);
}

struct ur_watch_rates ur_watch_rates(const struct ur_status_qp *was, const struct ur_status_qp *qp)
{
	struct ur_watch_rates r = {.known = true};
	double s = qp->at > was->at ? (double)(qp->at - was->at) / (double)UR_NS_PER_S : 0;

	if (s <= 0)
		return r; /* the process sleeps, and has nothing to say */
	r.tx_bits = 8 * grown(was->n.tx_bytes, qp->n.tx_bytes) / s;
	r.rx_bits = 8 * grown(was->n.rx_bytes, qp->n.rx_bytes) / s;
	r.tx_packets = grown(was->n.tx_packets, qp->n.tx_packets) / s;
	r.rx_packets = grown(was->n.rx_packets, qp->n.rx_packets) / s;
	r.retransmits = grown(was->n.retransmits, qp->n.retransmits) / s;
	r.cnps = grown(was->n.cnp_handled, qp->n.cnp_handled) / s;
	return r;
}

static int by_pid(const void *key, const void *element)
{
	int pid = *(const int *)key, other = (*(struct ur_watch_process *const *)element)->pid;

	return pid < other ? -1 : pid > other;
}

static int by_number(const void *key, const void *element)
{
	uint32_t qpn = *(const uint32_t *)key, other = ((const struct ur_status_qp *)element)->qpn;

	return qpn < other ? -1 : qpn > other;
}

const struct ur_watch_process *ur_watch_process_find(const struct ur_watch_sample *sample, int pid)
{
	struct ur_watch_process *const *found =
		sample ? bsearch(&pid, sample->process, sample->count, sizeof(sample->process[0]), by_pid) : NULL;

	return found && !(*found)->unreadable ? *found : NULL;
}

/* What was known of the same process before; NULL when nothing was. */
static const struct ur_watch_process *same_process(const struct ur_watch_sample *before, const struct ur_watch_process *p)
{
	const struct ur_watch_process *found = ur_watch_process_find(before, p->pid);

	return found && found->born == p->born && found->status.started == p->status.started ? found : NULL;
}

static struct ur_watch_rates rates_of(const struct ur_watch_process *was, const struct ur_status_qp *qp)
{
	const struct ur_status_qp *old =
		was ? bsearch(&qp->qpn, was->status.qp, was->status.count, sizeof(was->status.qp[0]), by_number) : NULL;

	return old ? ur_watch_rates(old, qp) : (struct ur_watch_rates){.known = false};
}

unsigned ur_watch_row_count(const struct ur_watch_sample *now)
{
	unsigned n = 0;

	for (unsigned i = 0; i < now->count; i++)
		n += now->process[i]->unreadable ? 0 : now->process[i]->status.count;
	return n;
}

unsigned ur_watch_rows(const struct ur_watch_sample *before, const struct ur_watch_sample *now, struct ur_watch_row *rows)
{
	unsigned n = 0;

	for (unsigned i = 0; i < now->count; i++) {
		const struct ur_watch_process *p = now->process[i], *was = same_process(before, p);

		for (unsigned k = 0; k < p->status.count && !p->unreadable; k++)
			rows[n++] = (struct ur_watch_row){.process = p, .qp = &p->status.qp[k], .rates = rates_of(was, &p->status.qp[k])};
	}
	return n;
}
