/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze/view/plot.h"

#include <string.h>

const char *const ur_plot_mark_names[UR_PLOT_MARK_COUNT] = {
#define NAME(id, name) name,
	UR_PLOT_MARK_KINDS(NAME)
#undef NAME
};

static void each_curve(struct ur_plot *p, void (*call)(struct ur_curve *c, void *ctx), void *ctx)
{
	struct ur_curve *const all[] = {&p->sent, &p->again, &p->responses, &p->acked, &p->has, &p->window, &p->flight, &p->rtt};

	for (unsigned i = 0; i < ur_array_size(all); i++)
		call(all[i], ctx);
}

static void init(struct ur_curve *c, void *ctx)
{
	(void)ctx;
	ur_curve_init(c, UR_PLOT_POINTS);
}

static void fini(struct ur_curve *c, void *ctx)
{
	(void)ctx;
	ur_curve_fini(c);
}

static void add_lost(struct ur_curve *c, void *ctx)
{
	*(uint64_t *)ctx += c->lost;
}

void ur_plot_init(struct ur_plot *p)
{
	memset(p, 0, sizeof(*p));
	each_curve(p, init, NULL);
	ur_bins_init(&p->bins, UR_PLOT_BINS, UR_PLOT_SUMS);
	for (unsigned i = 0; i < UR_PLOT_MARK_COUNT; i++)
		ur_curve_init(&p->marks[i], UR_PLOT_MARKS);
}

void ur_plot_fini(struct ur_plot *p)
{
	each_curve(p, fini, NULL);
	ur_bins_fini(&p->bins);
	for (unsigned i = 0; i < UR_PLOT_MARK_COUNT; i++)
		ur_curve_fini(&p->marks[i]);
}

uint64_t ur_plot_lost(const struct ur_plot *p)
{
	uint64_t n = !p->bins.at;

	each_curve((struct ur_plot *)p, add_lost, &n);
	for (unsigned i = 0; i < UR_PLOT_MARK_COUNT; i++)
		n += p->marks[i].lost;
	return n;
}

/* --- one event --- */

/* What others say of PSNs may be far from all that was sent, and is cut off where it is. */
static void reach(struct ur_plot *p, const struct ur_an_event *e)
{
	const bool sent = e->kind == UR_AN_EV_REQUEST || e->kind == UR_AN_EV_AGAIN || e->kind == UR_AN_EV_RESPONSE;
	const uint64_t to = e->psn + e->n;

	p->begin = !p->begun || e->when < p->begin ? e->when : p->begin;
	p->end = !p->begun || e->when > p->end ? e->when : p->end;
	p->begun = true;
	if (!sent)
		return;
	p->first = !p->sent_any || e->psn < p->first ? e->psn : p->first;
	p->last = !p->sent_any || to > p->last ? to : p->last;
	p->sent_any = true;
}

static void put_flight(struct ur_plot *p, const struct ur_an_event *e)
{
	const uint64_t n = e->next > e->acked && e->service != UR_UC ? e->next - e->acked : 0;

	p->most = n > p->most ? n : p->most;
	ur_curve_add(&p->flight, e->when, n, n);
	if (e->service != UR_UC)
		ur_curve_add(&p->window, e->when, e->acked + p->most, e->acked + p->most);
}

static void put_mark(struct ur_plot *p, const struct ur_an_event *e, enum ur_plot_mark kind)
{
	ur_curve_add(&p->marks[kind], e->when, e->psn, e->psn + (e->n ? e->n : 1));
	p->counts[kind]++;
}

static void put_repair(struct ur_plot *p, const struct ur_an_event *e)
{
	static const enum ur_plot_mark kinds[UR_AN_CAUSES] = {[UR_AN_SEQ_NAK] = UR_PLOT_LOSS,
							      [UR_AN_SACK] = UR_PLOT_LOSS,
							      [UR_AN_IMPLIED] = UR_PLOT_LOSS,
							      [UR_AN_TIMEOUT] = UR_PLOT_TIMEOUT,
							      [UR_AN_SPURIOUS] = UR_PLOT_NEEDLESS};

	if (e->cause != UR_AN_RNR)
		put_mark(p, e, kinds[e->cause]);
}

static void put_request(struct ur_plot *p, const struct ur_an_event *e)
{
	const bool again = e->kind == UR_AN_EV_AGAIN, read = ur_opcode(e->opcode)->flags & UR_OPF_READ;

	ur_curve_add(again ? &p->again : &p->sent, e->when, e->psn, e->psn + e->n);
	ur_bins_add(&p->bins, e->when, again ? UR_PLOT_BYTES_AGAIN : UR_PLOT_BYTES, read ? 0 : e->len);
	put_flight(p, e);
}

/* Frames that stop a station are no events of a connection; the next event of it tells of them. */
static void put_pause(struct ur_plot *p, const struct ur_an_event *e)
{
	const struct ur_an_event at = {.when = e->paused, .psn = e->next};

	if (e->paused <= p->paused || e->paused < (p->begun ? p->begin : e->when))
		return;
	p->paused = e->paused;
	put_mark(p, &at, UR_PLOT_PAUSE);
}

void ur_plot_event(struct ur_plot *p, const struct ur_an_event *e)
{
	put_pause(p, e);
	switch (e->kind) {
	case UR_AN_EV_REQUEST:
	case UR_AN_EV_AGAIN: put_request(p, e); break;
	case UR_AN_EV_REPAIR: put_repair(p, e); break;
	case UR_AN_EV_RESPONSE:
		ur_curve_add(&p->responses, e->when, e->psn, e->psn + e->n);
		ur_bins_add(&p->bins, e->when, UR_PLOT_BYTES, e->len);
		break;
	case UR_AN_EV_ACKED:
		ur_curve_add(&p->acked, e->when, e->acked, e->acked);
		put_flight(p, e);
		break;
	case UR_AN_EV_HAS: ur_curve_add(&p->has, e->when, e->psn, e->psn + e->n); break;
	case UR_AN_EV_NAK: put_mark(p, e, UR_PLOT_NAK); break;
	case UR_AN_EV_RNR: put_mark(p, e, UR_PLOT_RNR); break;
	case UR_AN_EV_FATAL: put_mark(p, e, UR_PLOT_FATAL); break;
	case UR_AN_EV_MARKED: put_mark(p, e, UR_PLOT_MARKED); break;
	case UR_AN_EV_CNP: put_mark(p, e, UR_PLOT_CNP); break;
	case UR_AN_EV_ICMP: put_mark(p, e, UR_PLOT_ICMP); break;
	case UR_AN_EV_RTT: ur_curve_add(&p->rtt, e->when, e->wait, e->wait); break;
	case UR_AN_EV_COUNT: return;
	}
	reach(p, e);
}
