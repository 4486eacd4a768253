/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An end that is a DPDK port, which this process opens for itself: `dpdk:` and a virtual device with its arguments, or the address of a
 * NIC. It carries frames as they are, so what the other end has not finished is finished here. No port tells when frames came: they count
 * from when they were fetched.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "apps/uroce/between/end.h"
#include "apps/uroce/cli/cmd.h"
#include "between/between.h"
#include "between/finish.h"
#include "drivers/ethdev/load.h"
#include "drivers/pci/pci.h"
#include "host/clock.h"

#define PREFIX "dpdk:"
#define PATIENCE (10 * UR_NS_PER_MS) /* a port that takes nothing for this long loses the frame, as a cable does */
#define SENTENCE 400
#define PACKETS 8192 /* buffers of a port: they fill its rings, and a frame of 64 KiB is cut into many */

struct dpdk {
	struct ur_port *port;
	struct ur_pkt *received[UR_BETWEEN_BATCH];
	unsigned nreceived;
	struct ur_pkt *sending[UR_BETWEEN_BATCH];
	unsigned nsending;
	uint8_t whole[UR_BETWEEN_HEAD + UR_BETWEEN_FRAME]; /* a frame of pieces, to be cut */
};

static bool open_port(const char *device, struct ur_port **to, char *err)
{
	static const struct ur_ethdev_module *module;
	char addr[UR_PCI_ADDR_TEXT];
	const bool is_nic = ur_pci_addr(device, addr);
	const struct ur_ethdev_config cfg = {
		.vdev = is_nic ? NULL : device, .pci = is_nic ? addr : NULL, .pci_args = "", .npkts = PACKETS, .promisc = true};

	if (!module && ur_ethdev_load(dlsym(RTLD_DEFAULT, "uroce_version"), &module, err, SENTENCE))
		return false;
	return module->open(&cfg, to, err, SENTENCE) == 0;
}

static bool open_dpdk(struct ur_between_end *e)
{
	struct dpdk *d = calloc(1, sizeof(*d));
	char err[SENTENCE];

	e->fd = -1;
	e->state = d;
	if (!d) {
		ur_cmd_fail(0, "cannot join %s: out of memory", e->name);
		return false;
	}
	if (!open_port(e->what, &d->port, err)) {
		ur_cmd_fail(0, "cannot join %s: %s", e->name, err);
		return false;
	}
	ur_queue_enter(d->port->queue); /* this is the thread that uses it */
	return true;
}

static void forget_received(struct dpdk *d)
{
	ur_pkts_release(d->received, d->nreceived);
	d->nreceived = 0;
}

static void close_dpdk(struct ur_between_end *e)
{
	struct dpdk *d = e->state;

	if (d && d->port) {
		forget_received(d);
		ur_pkts_release(d->sending, d->nsending);
		ur_queue_leave(d->port->queue);
		d->port->ops->close(d->port);
	}
	free(d);
}

static unsigned receive_dpdk(struct ur_between_end *e, struct ur_between_frame *to)
{
	struct dpdk *d = e->state;
	ur_time now;

	forget_received(d);
	d->nreceived = ur_queue_rx(d->port->queue, d->received, UR_BETWEEN_BATCH);
	now = d->nreceived ? ur_clock_now() : 0;
	for (unsigned i = 0; i < d->nreceived; i++)
		to[i] = (struct ur_between_frame){.data = d->received[i]->data, .len = d->received[i]->len, .when = now};
	return d->nreceived;
}

static void count_unsent(struct ur_between_end *e, unsigned n, int why)
{
	e->unsent += n;
	e->why = why;
}

static void flush_dpdk(struct ur_between_end *e)
{
	struct dpdk *d = e->state;
	struct ur_queue *q = d->port->queue;
	unsigned done = 0;
	ur_time began = 0;

	while (done < d->nsending) {
		const unsigned n = ur_queue_tx(q, d->sending + done, d->nsending - done);

		done += n;
		e->sent += n;
		if (n || !began)
			began = ur_clock_now();
		else if (!d->port->ops->link_up(d->port) || ur_clock_now() - began > PATIENCE)
			break;
	}
	if (done < d->nsending) {
		count_unsent(e, d->nsending - done, d->port->ops->link_up(d->port) ? ENOBUFS : ENETDOWN);
		ur_pkts_release(d->sending + done, d->nsending - done);
	}
	d->nsending = 0;
}

/* Room for one frame, or NULL. */
static struct ur_pkt *room_for(struct ur_between_end *e, uint32_t len)
{
	struct dpdk *d = e->state;
	struct ur_pkt *p;

	if (len > d->port->mtu + 18u) { /* Ethernet header and a tag */
		count_unsent(e, 1, EMSGSIZE);
		return NULL;
	}
	if (d->nsending == UR_BETWEEN_BATCH)
		flush_dpdk(e);
	if (!ur_queue_alloc(d->port->queue, &p, 1)) {
		flush_dpdk(e);
		if (!ur_queue_alloc(d->port->queue, &p, 1)) {
			count_unsent(e, 1, ENOMEM);
			return NULL;
		}
	}
	if (len <= p->room)
		return p;
	ur_pkts_release(&p, 1);
	count_unsent(e, 1, EMSGSIZE);
	return NULL;
}

static void add(struct dpdk *d, struct ur_pkt *p, uint32_t len)
{
	p->len = len;
	d->sending[d->nsending++] = p;
}

static void queue_unfinished(struct ur_between_end *e, const struct ur_between_out *o)
{
	struct dpdk *d = e->state;
	struct ur_cut cut;
	uint32_t len;

	if (o->len > UR_BETWEEN_FRAME) {
		count_unsent(e, 1, EMSGSIZE);
		return;
	}
	if (o->head_len)
		memcpy(d->whole, o->head, o->head_len);
	memcpy(d->whole + o->head_len, o->data, o->len);
	if (!ur_cut_begin(&cut, d->whole, o->head_len + o->len, &o->vnet)) {
		count_unsent(e, 1, EINVAL);
		return;
	}
	while ((len = ur_cut_next(&cut))) {
		struct ur_pkt *p = room_for(e, len);

		if (!p)
			return;
		ur_cut_put(&cut, p->data);
		add(d, p, len);
	}
}

static void queue_dpdk(struct ur_between_end *e, const struct ur_between_out *o)
{
	struct ur_pkt *p;

	if (o->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM || o->vnet.gso_type != VIRTIO_NET_HDR_GSO_NONE) {
		queue_unfinished(e, o);
		return;
	}
	p = room_for(e, o->head_len + o->len);
	if (!p)
		return;
	if (o->head_len)
		memcpy(p->data, o->head, o->head_len);
	memcpy(p->data + o->head_len, o->data, o->len);
	add(e->state, p, o->head_len + o->len);
}

const struct ur_between_kind ur_between_dpdk = {
	.prefix = PREFIX,
	.open = open_dpdk,
	.close = close_dpdk,
	.receive = receive_dpdk,
	.queue = queue_dpdk,
	.flush = flush_dpdk,
};
