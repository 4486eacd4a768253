/* SPDX-License-Identifier: BSD-3-Clause */
/* See path_model.h. */
#include <stdlib.h>
#include <string.h>

#include "path_model.h"

#define BITS ((4096 + 82) * 8u) /* of a packet on the wire */
#define EVENTS 131072u
#define CNP_INTERVAL (50 * UR_NS_PER_US)

enum what { ARRIVE, ACK, LOSS, WAKE };

struct pm_event {
	ur_time at, sent;
	uint8_t what, flow;
	bool timed, marked;
};

static void push(struct pm *m, const struct pm_event *e)
{
	uint32_t i = m->events++;

	if (m->events > EVENTS)
		abort();
	for (; i && m->heap[(i - 1) / 2].at > e->at; i = (i - 1) / 2)
		m->heap[i] = m->heap[(i - 1) / 2];
	m->heap[i] = *e;
}

static struct pm_event pop(struct pm *m)
{
	const struct pm_event first = m->heap[0], last = m->heap[--m->events];
	uint32_t i = 0;

	for (uint32_t k = 1; k < m->events; i = k, k = 2 * k + 1) {
		k += k + 1 < m->events && m->heap[k + 1].at < m->heap[k].at;
		if (m->heap[k].at >= last.at)
			break;
		m->heap[i] = m->heap[k];
	}
	m->heap[i] = last;
	return first;
}

void pm_open(struct pm *m, unsigned n, uint32_t max, unsigned gbps, ur_time rtt, uint32_t buffer)
{
	memset(m, 0, sizeof(*m));
	m->rng.state = 7;
	m->n = n;
	m->packet = m->own = BITS / gbps;
	m->buffer = buffer;
	m->heap = malloc(EVENTS * sizeof(*m->heap));
	m->now = UR_NS_PER_S;
	for (unsigned i = 0; i < n; i++) {
		ur_cwnd_open(&m->f[i].w, 64, max);
		m->f[i].rtt = rtt;
		m->f[i].sent = 64; /* the first packet is timed */
	}
}

void pm_close(struct pm *m)
{
	free(m->heap);
}

/* A packet comes to the queue: when it will have been acknowledged, or be known to be lost. */
static void arrive(struct pm *m, struct pm_event *e)
{
	const ur_time half = m->f[e->flow].rtt / 2, wait = m->busy > m->now ? m->busy - m->now : 0;

	e->at = m->now + wait + m->packet + half;
	e->what = ACK;
	if (wait > m->buffer * m->packet || ur_rng_below(&m->rng, 1000000) < m->loss) {
		e->what = LOSS;
		m->drops++;
	} else {
		m->busy = m->now + wait + m->packet;
		m->wait += wait;
		m->wait_max = ur_max_time(m->wait_max, wait);
		m->waits++;
		e->marked = m->mark && wait > m->mark * m->packet;
		if (m->noise)
			e->at += ur_rng_below(&m->rng, (uint32_t)m->noise);
	}
	if (e->at >= m->asleep_from && e->at < m->asleep_from + m->asleep_for)
		e->at = m->asleep_from + m->asleep_for + (e->at - m->asleep_from) / 64; /* in their order, and soon */
	push(m, e);
}

/* Clocks of hosts are not in step. */
static ur_time jitter(struct pm *m)
{
	return ur_rng_below(&m->rng, (uint32_t)(2 * m->packet));
}

static void send_more(struct pm *m, unsigned i)
{
	struct pm_flow *f = &m->f[i];

	while (f->flight < ur_cwnd_packets(&f->w)) {
		const ur_time interval = ur_cwnd_interval(&f->w);
		const bool asks = ++f->sent >= ur_cwnd_packets(&f->w) / 4;
		struct pm_event e = {.what = WAKE, .flow = (uint8_t)i, .at = f->next};

		if (m->now < f->next) {
			push(m, &e);
			break;
		}
		f->free = ur_max_time(f->free, m->now) + m->own;
		e = (struct pm_event){
			.at = f->free + f->rtt / 2 + jitter(m), .sent = m->now, .flow = (uint8_t)i, .timed = asks && !f->timed};
		push(m, &e);
		f->timed |= asks;
		f->sent = asks ? 0 : f->sent;
		f->flight++;
		f->next = interval ? m->now + interval : 0;
	}
}

static void happen(struct pm *m, struct pm_event *e)
{
	struct pm_flow *f = &m->f[e->flow];

	m->now = e->at;
	if (e->what == ARRIVE) {
		arrive(m, e);
		return;
	}
	m->marks += e->marked;
	if (e->what == ACK) {
		f->delivered++;
		ur_cwnd_acked(&f->w, 1, f->flight--);
		if (e->marked && m->now - f->cnp >= CNP_INTERVAL) {
			ur_cwnd_marked(&f->w);
			f->cnp = m->now;
		}
		if (e->timed)
			ur_cwnd_sample(&f->w, m->now - e->sent, m->now);
	} else if (e->what == LOSS) {
		f->lost++;
		f->flight--;
		ur_cwnd_lost(&f->w, 1, m->now);
	}
	f->timed &= !e->timed;
	if (m->now >= f->from)
		send_more(m, e->flow);
}

void pm_run(struct pm *m, ur_time span)
{
	const ur_time end = m->now + span;

	m->drops = m->marks = m->waits = m->wait = m->wait_max = 0;
	for (unsigned i = 0; i < m->n; i++) {
		struct pm_flow *f = &m->f[i];
		struct pm_event wake = {.what = WAKE, .flow = (uint8_t)i, .at = ur_max_time(m->now, f->from)};

		f->delivered = f->lost = 0;
		push(m, &wake);
	}
	while (m->events && m->heap[0].at < end) {
		struct pm_event e = pop(m);

		happen(m, &e);
	}
	m->now = end;
}

unsigned pm_share(const struct pm *m, ur_time span)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < m->n; i++)
		n += m->f[i].delivered;
	return (unsigned)(n * m->packet * 100 / span);
}

unsigned pm_fairness(const struct pm *m, unsigned from, unsigned to)
{
	double sum = 0, squares = 0;

	for (unsigned i = from; i < to; i++) {
		const double x = (double)m->f[i].delivered;

		sum += x;
		squares += x * x;
	}
	return squares > 0 ? (unsigned)(sum * sum * 100 / squares / (to - from)) : 0;
}

ur_time pm_wait(const struct pm *m)
{
	return m->waits ? m->wait / m->waits : 0;
}
