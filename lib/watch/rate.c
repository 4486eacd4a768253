/* SPDX-License-Identifier: BSD-3-Clause */
/* What changed between two samples, per second. */
#include <stdlib.h>
#include <string.h>

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

int ur_watch_process_compare(const void *a, const void *b)
{
	const struct ur_watch_process *x = *(struct ur_watch_process *const *)a, *y = *(struct ur_watch_process *const *)b;

	return x->pid != y->pid ? (x->pid < y->pid ? -1 : 1) : strcmp(x->status.interface, y->status.interface);
}

static int by_number(const void *key, const void *element)
{
	uint32_t qpn = *(const uint32_t *)key, other = ((const struct ur_status_qp *)element)->qpn;

	return qpn < other ? -1 : qpn > other;
}

unsigned ur_watch_process_count(const struct ur_watch_sample *sample, bool all)
{
	unsigned n = 0;
	int last = 0;

	for (unsigned i = 0; i < sample->count; i++) {
		const struct ur_watch_process *p = sample->process[i];

		if ((all || !p->unreadable) && p->pid != last) {
			last = p->pid;
			n++;
		}
	}
	return n;
}

struct key {
	int pid;
	const char *interface; /* no longer than what is published */
};

static int by_key(const void *key, const void *element)
{
	const struct ur_watch_process *p = *(struct ur_watch_process *const *)element;
	const struct key *k = key;

	return k->pid != p->pid ? (k->pid < p->pid ? -1 : 1) : strncmp(k->interface, p->status.interface, UR_STATUS_TEXT - 1);
}

const struct ur_watch_process *ur_watch_process_find(const struct ur_watch_sample *sample, int pid, const char *interface)
{
	struct ur_watch_process *const *found = NULL;

	if (sample)
		found = bsearch(&(struct key){pid, interface}, sample->process, sample->count, sizeof(sample->process[0]), by_key);
	return found && !(*found)->unreadable ? *found : NULL;
}

/* What was known of the same process before; NULL when nothing was. */
static const struct ur_watch_process *same_process(const struct ur_watch_sample *before, const struct ur_watch_process *p)
{
	const struct ur_watch_process *found = ur_watch_process_find(before, p->pid, p->status.interface);

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
