/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of a proxy. They come in bare (drivers/udp), become frames between the two hosts, as if a cable joined these, and leave as
 * packets of an address of this machine. The identification that an IPv4 packet had is found out, because the ICRC covers it. As a router
 * does, a proxy takes a hop off each packet, so that what goes in a circle does not go for ever.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "apps/uroce/between/proxy/proxy.h"
#include "host/clock.h"

#define TURN 256    /* packets that are looked at before others have their turn */
#define SEND_MS 100 /* a socket that takes nothing for this long loses the packet, as a cable does */

/* --- receiving --- */

/* Whose packet it is: the number of the side, or 2 for a stranger's. */
static unsigned side_of(const struct ur_proxy *x, unsigned port, const struct ur_pkt *p)
{
	unsigned i = 0;

	while (i < 2 && (x->side[i].port != port || !ur_gid_eq(&p->src, &x->side[i].host) || !ur_gid_eq(&p->dst, &x->side[i].addr)))
		i++;
	return i;
}

/* The identification by which the ICRC is right; for a damaged packet the expected one, so that its ICRC stays wrong in the same way. */
static void find_id(struct ur_proxy *x, struct ur_pkt *p)
{
	const uint16_t assumed = p->place;

	p->kind = UR_PKT_ROCE;
	if (p->ip_version != 4)
		return;
	ur_frame_find_id(p);
	if (p->kind == UR_PKT_OTHER || (p->kind == UR_PKT_ROCE_GUESSED && !ur_idents_accept(&x->idents, p, x->last))) {
		p->kind = UR_PKT_ROCE;
		p->place = assumed;
	}
}

static void take_packet(struct ur_proxy *x, unsigned port, struct ur_pkt *p)
{
	const unsigned i = side_of(x, port, p);
	struct ur_proxy_side *s = &x->side[i & 1];
	struct ur_proxy_bank *b = &s->bank[s->filling];
	uint8_t *to;

	if (i > 1) {
		x->seen->strangers++;
		return;
	}
	if (p->len < UR_BTH_LEN + UR_ICRC_LEN || p->len > UR_PKT_ROOM - UR_READDRESS_HEAD) {
		x->seen->malformed++;
		return;
	}
	if (x->port[port].cur->ttl <= 1) {
		x->seen->expired++;
		return;
	}
	p->ttl = x->port[port].cur->ttl - 1;
	find_id(x, p);
	ur_bth_get(p->data, &p->bth);
	to = b->bytes[b->n];
	b->frame[b->n++] = (struct ur_between_frame){.data = to, .len = ur_readdress(&s->in, p, p->place, to), .when = ++x->last};
}

static bool is_full(const struct ur_proxy *x)
{
	return x->side[0].bank[x->side[0].filling].n == UR_BETWEEN_BATCH || x->side[1].bank[x->side[1].filling].n == UR_BETWEEN_BATCH;
}

/* Of the packet or train at hand, until there is no room: false. */
static bool look_through(struct ur_proxy *x, unsigned port, unsigned *looked)
{
	struct ur_proxy_port *p = &x->port[port];

	while (!is_full(x)) {
		if (!ur_train_view(p->cur, &p->at, &p->view)) {
			ur_pkts_release(&p->cur, 1);
			p->cur = NULL;
			return true;
		}
		take_packet(x, port, &p->view);
		++*looked;
	}
	return false;
}

/* The next packet or train, if there is one. */
static bool take_next(struct ur_proxy *x, struct ur_proxy_port *p)
{
	if (!ur_queue_rx(p->port->queue, &p->cur, 1))
		return false;
	p->view.data = NULL;
	p->at = (struct ur_train_cursor){.place = p->cur->place};
	x->seen->malformed += !p->cur->len;
	x->last = ur_max_time(x->last, ur_clock_now());
	return true;
}

static void empty_port(struct ur_proxy *x, unsigned port)
{
	struct ur_proxy_port *p = &x->port[port];
	unsigned looked = 0;

	p->more = true;
	while (p->cur || take_next(x, p))
		if (!look_through(x, port, &looked) || looked >= TURN)
			return;
	p->more = false;
	if (!looked)
		p->port->queue->ops->take_error(p->port->queue);
}

/* Of the port of this host alone: however much the other one sends, it does not keep this one waiting, unless they share a port. */
unsigned ur_proxy_receive(struct ur_between_end *e, struct ur_between_frame *to)
{
	struct ur_proxy_side *s = e->state;
	struct ur_proxy *x = s->proxy;
	struct ur_proxy_bank *b = &s->bank[s->filling];
	bool more = false;
	uint64_t count;

	empty_port(x, s->port);
	for (unsigned i = 0; i < x->nports; i++)
		more |= x->port[i].more;
	memcpy(to, b->frame, b->n * sizeof(*to));
	s->filling ^= 1;
	s->bank[s->filling].n = 0;
	more |= x->side[0].bank[x->side[0].filling].n || x->side[1].bank[x->side[1].filling].n;
	if (more)
		(void)!write(x->more, &(uint64_t){1}, sizeof(count));
	else
		(void)!read(x->more, &count, sizeof(count));
	return b->n;
}

/* --- sending --- */

static void drop_unsent(struct ur_between_end *e, struct ur_pkt **pkts, unsigned n, int why)
{
	for (unsigned i = 0; i < n; i++)
		e->unsent += ur_train_count(pkts[i]);
	e->why = n ? why : e->why;
	ur_pkts_release(pkts, n);
}

void ur_proxy_flush(struct ur_between_end *e)
{
	struct ur_proxy_side *s = e->state;
	struct ur_proxy *x = s->proxy;
	struct ur_queue *q = x->port[s->port].port->queue;
	const uint64_t refused = q->tx_refused;
	unsigned done = 0;

	while (done < s->nburst) {
		struct pollfd room = {.fd = ur_queue_wake_fd(q), .events = POLLOUT};
		const unsigned sent = ur_queue_tx(q, s->burst + done, s->nburst - done);

		done += sent;
		if (!sent && poll(&room, 1, SEND_MS) == 0)
			break;
	}
	e->sent += done;
	e->unsent += q->tx_refused - refused;
	drop_unsent(e, s->burst + done, s->nburst - done, EAGAIN);
	s->nburst = 0;
}

/* May it join the train before it? The kernel writes one header for all of them. */
static bool goes_with(const struct ur_proxy_side *s, const struct ur_pkt *p)
{
	return s->nburst && s->tos == p->tos && s->ttl == p->ttl && s->flow_label == p->flow_label;
}

/* The packet as it goes out, as number `id` of its train. */
static void readdress(struct ur_proxy *x, struct ur_proxy_side *s, const struct ur_pkt *p, uint16_t id, struct ur_pkt *to)
{
	const uint32_t head = UR_ETH_LEN + UR_UDP_LEN + (ur_gid_is_v4(&s->host) ? UR_IP4_LEN : UR_IP6_LEN);

	*to = (struct ur_pkt){.data = x->scratch,
			      .room = sizeof(x->scratch),
			      .len = ur_readdress(&s->out, p, id, x->scratch),
			      .ip_version = ur_gid_is_v4(&s->host) ? 4 : 6,
			      .l3_off = UR_ETH_LEN,
			      .l4_off = (uint16_t)(head - UR_UDP_LEN),
			      .bth_off = (uint16_t)head,
			      .place = id,
			      .bth = p->bth};
}

static bool append(struct ur_proxy *x, struct ur_proxy_side *s, const struct ur_pkt *p)
{
	const struct ur_queue *q = x->port[s->port].port->queue;
	struct ur_pkt *train = s->burst[s->nburst - 1], out;

	readdress(x, s, p, (uint16_t)(train->len ? ur_train_count(train) : 0), &out);
	return ur_train_append(train, &out, q->train_pkts ? q->train_pkts : 1, q->train_bytes ? q->train_bytes : UR_PKT_ROOM);
}

void ur_proxy_queue(struct ur_between_end *e, const struct ur_between_out *o)
{
	struct ur_proxy_side *s = e->state;
	struct ur_proxy *x = s->proxy;
	struct ur_queue *q = x->port[s->port].port->queue;
	struct ur_pkt p;

	if (o->len > UR_PKT_ROOM || !ur_readdress_view((uint8_t *)(uintptr_t)o->data, o->len, &x->side[!s->number].as, &s->as, &p)) {
		x->seen->damaged++;
		return;
	}
	if (!goes_with(s, &p) || !append(x, s, &p)) {
		if (s->nburst == UR_PROXY_BURST)
			ur_proxy_flush(e);
		s->burst[s->nburst] = q->ops->alloc_train(q);
		if (!s->burst[s->nburst]) {
			e->unsent++;
			e->why = ENOBUFS;
			return;
		}
		s->nburst++;
		append(x, s, &p);
	}
	s->tos = p.tos;
	s->ttl = p.ttl;
	s->flow_label = p.flow_label;
}
