/* SPDX-License-Identifier: BSD-3-Clause */
/* The judge's packets: a UDP socket (drivers/udp), whose packets begin with the BTH, a clock, and a capture. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/cli/near.h"
#include "apps/uroce/conform/conform.h"
#include "capture/capture.h"
#include "capture/output.h"
#include "drivers/udp/udp.h"
#include "host/clock.h"
#include "host/device/hostif.h"
#include "wire/train.h"

#define BURST 32

struct wire {
	struct ur_conform *c;
	struct ur_port *port;
	struct ur_capture *capture;
	struct ur_counters counters;
	struct ur_cf_config cfg;
};

/* --- where the peer is --- */

/* The interface that --dev means, which may be a network or a pattern; any one where it is not given. */
static int find_device(struct ur_conform *c)
{
	struct ur_hostif h;
	char err[400];

	if (!c->dev || !*c->dev)
		return 0;
	if (ur_hostif_find(c->dev, &h, err, sizeof(err)))
		return ur_cmd_fail(UR_EXIT_FAIL, "%s", err);
	strcpy(c->ifname, h.name);
	return 0;
}

static int find_peer(struct wire *w)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM};
	struct ur_conform *c = w->c;
	struct sockaddr_storage local = {0};
	struct addrinfo *a;
	int e = getaddrinfo(c->peer, "4791", &hints, &a);
	bool found;

	if (e)
		return ur_cmd_fail(UR_EXIT_USAGE, "'%s' is neither an address nor the name of a host: %s", c->peer, gai_strerror(e));
	found = ur_near_local(a->ai_addr, a->ai_addrlen, c->ifname, &local);
	if (found) {
		w->cfg.peer = ur_near_gid(a->ai_addr);
		w->cfg.local = ur_near_gid((struct sockaddr *)&local);
		found = ur_near_text(a->ai_addr, a->ai_addrlen, c->peer_text, sizeof(c->peer_text)) &&
			ur_near_text((struct sockaddr *)&local, a->ai_addrlen, c->local_text, sizeof(c->local_text));
	}
	freeaddrinfo(a);
	if (!found)
		return ur_cmd_fail(UR_EXIT_FAIL, "there is no route to %s: check addresses and routes with 'ip route get %s'", c->peer,
				   c->peer);
	if (ur_gid_eq(&w->cfg.peer, &w->cfg.local))
		return ur_cmd_fail(UR_EXIT_USAGE, "%s is this host: judge from another one, or from another network namespace", c->peer);
	if (!ur_near_interface(&w->cfg.local, c->ifname, sizeof(c->ifname)))
		return ur_cmd_fail(UR_EXIT_FAIL, "no interface has the address %s, which leads to %s: give one with --dev", c->local_text,
				   c->peer);
	return 0;
}

static int open_wire(struct wire *w)
{
	struct ur_udp_config uc = {.ifname = w->c->ifname};
	struct ur_hostif h;
	char err[400];
	int e;

	if (ur_hostif_find(w->c->ifname, &h, err, sizeof(err)))
		return ur_cmd_fail(UR_EXIT_FAIL, "%s", err);
	uc.mac = h.mac;
	uc.mtu = h.mtu;
	if (ur_udp_open(&uc, &w->port, err, sizeof(err)))
		return ur_cmd_fail(UR_EXIT_FAIL, "%s", err);
	e = ur_capture_open(w->c->capture, w->c->ifname, ur_clock_now(), &w->capture);
	if (e) {
		w->port->ops->close(w->port);
		return ur_cmd_fail(UR_EXIT_FAIL, "the capture %s cannot be written (%s): name another file with --capture", w->c->capture,
				   ur_output_reason(e));
	}
	return 0;
}

/* --- packets --- */

static bool chosen(void *ctx, const struct ur_cf_rule *r)
{
	const struct ur_conform *c = ctx;

	return (!c->pattern || strstr(r->name, c->pattern)) && (c->lengthy || !r->lengthy);
}

static void capture_frame(struct wire *w, struct ur_pkt *p, ur_time now, enum ur_capture_dir dir)
{
	if (!ur_cf_keeps(w->c->run))
		return;
	w->c->frames++;
	ur_capture_frame(w->capture, p, now, dir);
}

/* What goes out in one call, in this order; the last may be a train that more packets find room in. */
struct burst {
	struct ur_pkt *out[BURST];
	unsigned n;
	struct ur_pkt *train;
};

/* Millions of packets, which nobody looks at one by one, go as trains: then `p` is free again. */
static bool add_to_train(struct ur_queue *q, struct burst *b, struct ur_pkt *p)
{
	if (q->train_pkts < 2 || !q->ops->alloc_train)
		return false;
	if (!b->train || !ur_train_append(b->train, p, q->train_pkts, q->train_bytes)) {
		b->train = q->ops->alloc_train(q);
		if (!b->train)
			return false;
		b->out[b->n++] = b->train;
		ur_train_append(b->train, p, q->train_pkts, q->train_bytes);
	}
	ur_pkt_reset(p);
	return true;
}

/* All that is due, at most a burst; returns how many packets. */
static unsigned send_burst(struct wire *w)
{
	struct ur_queue *q = w->port->queue;
	struct ur_pkt *pkts[BURST];
	struct burst b = {.n = 0};
	unsigned room = ur_queue_alloc(q, pkts, BURST), n = 0, used = 0, sent;
	ur_time now = ur_clock_now();

	for (; n < room && ur_cf_tx(w->c->run, pkts[used], w->c->frames + 1, now); n++) {
		capture_frame(w, pkts[used], now, UR_CAPTURE_OUT);
		if (!ur_cf_keeps(w->c->run) && add_to_train(q, &b, pkts[used]))
			continue;
		b.out[b.n++] = pkts[used++];
		b.train = NULL;
	}
	sent = b.n ? ur_queue_tx(q, b.out, b.n) : 0;
	ur_pkts_release(b.out + sent, b.n - sent); /* what finds no room at present is as good as lost */
	ur_pkts_release(pkts + used, room - used);
	return n;
}

static void send_all(struct wire *w)
{
	while (send_burst(w) == BURST)
		continue;
}

static void take_packet(struct wire *w, struct ur_pkt *p)
{
	struct ur_conform *c = w->c;
	ur_time now = ur_clock_now();
	bool good = ur_frame_parse(p, &w->counters);

	if (good && (p->kind == UR_PKT_ROCE || p->kind == UR_PKT_ROCE_GUESSED))
		ur_cf_rx(c->run, p, c->frames + 1, now);
	else if (ur_gid_eq(&p->src, &w->cfg.peer))
		ur_cf_rx_bad(c->run, c->frames + 1);
	capture_frame(w, p, now, UR_CAPTURE_IN);
	send_all(w);
}

static void take_arrival(struct wire *w, struct ur_pkt *p)
{
	struct ur_train_cursor at = {.place = p->place};
	struct ur_pkt view;

	view.data = NULL;
	if (!p->stride)
		take_packet(w, p);
	while (p->stride && ur_train_view(p, &at, &view))
		take_packet(w, &view);
}

static void receive_all(struct wire *w)
{
	struct ur_pkt *pkts[BURST];
	unsigned n;

	while ((n = ur_queue_rx(w->port->queue, pkts, BURST)) > 0) {
		for (unsigned i = 0; i < n; i++)
			take_arrival(w, pkts[i]);
		ur_pkts_release(pkts, n);
	}
}

static void wait_for(struct wire *w)
{
	struct pollfd fd = {.fd = ur_queue_wake_fd(w->port->queue), .events = POLLIN};
	ur_time next = ur_cf_next(w->c->run), now = ur_clock_now();
	struct timespec t = {0};

	if (next > now) {
		t.tv_sec = (time_t)((next - now) / UR_NS_PER_S);
		t.tv_nsec = (long)((next - now) % UR_NS_PER_S);
	}
	if (ppoll(&fd, 1, &t, NULL) > 0 && fd.revents & POLLERR && w->port->queue->ops->take_error)
		w->port->queue->ops->take_error(w->port->queue);
}

/* What is in flight, for a user who watches. */
static void show_progress(const struct ur_conform *c, unsigned *shown)
{
	const struct ur_cf_result *x;
	unsigned n;

	x = ur_cf_results(c->run, &n);
	if (n == *shown || !isatty(STDERR_FILENO))
		return;
	*shown = n;
	fprintf(stderr, "\r%3u %-40s", n, ur_cf_done(c->run) ? "" : x[n - 1].rule->name);
	if (ur_cf_done(c->run))
		fputc('\r', stderr);
}

static void play(struct wire *w)
{
	unsigned shown = 0;

	ur_queue_enter(w->port->queue);
	send_all(w);
	while (!ur_cf_done(w->c->run)) {
		wait_for(w);
		receive_all(w);
		send_all(w);
		show_progress(w->c, &shown);
	}
	ur_queue_leave(w->port->queue);
}

int ur_conform_play(struct ur_conform *c)
{
	struct wire w = {
		.c = c,
		.cfg = {.port = c->port, .sport = UR_ROCE_PORT /* the socket's */, .quiet_ms = c->quiet_ms, .chosen = chosen, .ctx = c}};
	int rc = find_device(c), e;
	uint64_t lost;

	if (!rc)
		rc = find_peer(&w);
	if (!rc && getrandom(&w.cfg.seed, sizeof(w.cfg.seed), 0) != sizeof(w.cfg.seed))
		rc = ur_cmd_fail(UR_EXIT_FAIL, "the kernel provides no random numbers: %s", strerror(errno));
	if (!rc)
		rc = open_wire(&w);
	if (rc)
		return rc;
	c->run = ur_cf_create(&w.cfg);
	if (c->run)
		play(&w);
	e = ur_capture_close(w.capture, &lost);
	w.port->ops->close(w.port);
	if (!c->run)
		return ur_cmd_fail(UR_EXIT_FAIL, "out of memory: no rule can be played");
	if (e) {
		ur_cf_destroy(c->run);
		return ur_cmd_fail(UR_EXIT_FAIL, "the capture %s cannot be written: %s", c->capture, ur_output_reason(e));
	}
	return 0;
}
