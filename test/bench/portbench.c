/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Raw frames through drivers/ethdev between two processes: what the port costs before any protocol is involved.
 *
 *   portbench server (--dev IF | --vdev V)
 *   portbench client (--dev IF | --vdev V) [--size BYTES] [--seconds S] [--segments] [--chain-min BYTES]
 *
 * The client finds the server by broadcast, measures the round trip of 64-byte frames, then sends frames of the given size as
 * fast as the port takes them and asks the server what arrived. --segments leaves the payload outside the packet, as a registered
 * memory region is; --chain-min 4294967295 then gathers it always, 1 never. One line is printed:
 *   size=4200 sent_mpps=0.31 mpps=0.30 gbps=10.1 loss=3.2% rtt_us=4.1 rss_mb=31
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/bytes.h"
#include "drivers/ethdev/ethdev.h"

#define HDR 42 /* Ethernet, IPv4, UDP */
#define BODY 24
#define MIN_FRAME (HDR + BODY)
#define BURST 32
#define PINGS 20000
#define ALIGNED_AREA (16u << 20)

enum { PING = 'P', PONG = 'p', DATA = 'D', QUERY = 'Q', ANSWER = 'q', QUIT = 'X' };

struct bench {
	struct ur_port *port;
	struct ur_mac peer;
	uint8_t *area; /* segments walk through it, as through a large buffer */
	size_t area_at;
	unsigned size;
	double seconds;
	bool segments;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * UR_NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "portbench: %s\n", what);
	exit(1);
}

/* An IPv4 datagram to the RoCEv2 port, so that filters which pass RoCE pass it; the addresses are for documentation (RFC 5737). */
static void put_headers(const struct bench *b, uint8_t *p, const struct ur_mac *dst, unsigned size, uint8_t type)
{
	static const uint8_t addrs[8] = {192, 0, 2, 1, 192, 0, 2, 2};

	memset(p, 0, MIN_FRAME);
	memcpy(p, dst->b, 6);
	memcpy(p + 6, b->port->mac.b, 6);
	ur_put16(p + 12, 0x0800);
	p[14] = 0x45;
	ur_put16(p + 16, (uint16_t)(size - 14));
	p[22] = 64;
	p[23] = 17;
	memcpy(p + 26, addrs, 8);
	ur_put16(p + 34, 4791);
	ur_put16(p + 36, 4791);
	ur_put16(p + 38, (uint16_t)(size - 34));
	p[HDR] = type;
}

static void send_one(struct bench *b, const struct ur_mac *dst, uint8_t type, const uint64_t *words, unsigned nwords)
{
	struct ur_pkt *p;

	if (ur_queue_alloc(b->port->queue, &p, 1) != 1)
		die("no packet buffer");
	put_headers(b, p->data, dst, MIN_FRAME, type);
	memcpy(p->data + HDR + 4, words, nwords * sizeof(*words));
	p->len = MIN_FRAME;
	if (ur_queue_tx(b->port->queue, &p, 1) != 1)
		ur_pkts_release(&p, 1);
}

/* Waits for one frame of `type`; others are dropped. */
static bool await(struct bench *b, uint8_t type, uint64_t timeout_ns, uint64_t words[2])
{
	uint64_t end = now_ns() + timeout_ns;
	struct ur_pkt *pkts[BURST];
	bool found = false;

	while (!found && now_ns() < end) {
		unsigned n = ur_queue_rx(b->port->queue, pkts, BURST);

		for (unsigned i = 0; i < n; i++) {
			const uint8_t *d = pkts[i]->data;

			if (pkts[i]->len < MIN_FRAME || d[HDR] != type || ur_get16(d + 36) != 4791)
				continue;
			found = true;
			memcpy(b->peer.b, d + 6, 6);
			memcpy(words, d + HDR + 4, 16);
		}
		ur_pkts_release(pkts, n);
	}
	return found;
}

struct tally {
	uint64_t frames, bytes, first, last;
};

static void serve(struct bench *b)
{
	struct ur_pkt *pkts[BURST];
	struct tally t = {0};
	bool quit = false;

	while (!quit) {
		unsigned n = ur_queue_rx(b->port->queue, pkts, BURST);
		uint64_t now = n ? now_ns() : 0;

		for (unsigned i = 0; i < n; i++) {
			const uint8_t *d = pkts[i]->data;
			uint64_t words[2] = {0, 0};

			if (pkts[i]->len < MIN_FRAME || ur_get16(d + 36) != 4791)
				continue;
			memcpy(b->peer.b, d + 6, 6);
			if (d[HDR] == DATA) {
				t.first = t.frames++ ? t.first : now;
				t.bytes += pkts[i]->len;
				t.last = now;
			} else if (d[HDR] == PING) {
				send_one(b, &b->peer, PONG, words, 2);
			} else if (d[HDR] == QUERY) {
				words[0] = t.frames;
				words[1] = t.last - t.first;
				send_one(b, &b->peer, ANSWER, words, 2);
				t = (struct tally){0};
			} else if (d[HDR] == QUIT) {
				quit = true;
			}
		}
		ur_pkts_release(pkts, n);
	}
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median_rtt_us(struct bench *b)
{
	static uint64_t rtt[PINGS];
	uint64_t words[2] = {0, 0};
	unsigned n = 0;

	for (unsigned i = 0; i < PINGS; i++) {
		uint64_t start = now_ns();

		send_one(b, &b->peer, PING, words, 2);
		if (await(b, PONG, 10 * UR_NS_PER_MS, words))
			rtt[n++] = now_ns() - start;
	}
	if (!n)
		die("no answer to any ping");
	qsort(rtt, n, sizeof(rtt[0]), by_value);
	return (double)rtt[n / 2] / 1000;
}

static unsigned build_burst(struct bench *b, struct ur_pkt **pkts, unsigned n)
{
	unsigned body = b->size - MIN_FRAME - 4;

	n = ur_queue_alloc(b->port->queue, pkts, n);
	for (unsigned i = 0; i < n; i++) {
		put_headers(b, pkts[i]->data, &b->peer, b->size, DATA);
		pkts[i]->len = MIN_FRAME;
		if (b->segments && b->size > MIN_FRAME + 4) {
			if (b->area_at + body > ALIGNED_AREA)
				b->area_at = 0;
			pkts[i]->seg[0] = (struct ur_seg){.data = b->area + b->area_at, .len = body};
			b->area_at += body;
			pkts[i]->nseg = 1;
			pkts[i]->tail_len = 4;
		} else {
			pkts[i]->len = b->size;
		}
	}
	return n;
}

static uint64_t blast(struct bench *b)
{
	uint64_t end = now_ns() + (uint64_t)(b->seconds * 1e9), sent = 0;
	struct ur_pkt *pkts[BURST];
	unsigned n = 0, done = 0;

	do {
		if (done == n) {
			n = build_burst(b, pkts, BURST);
			done = 0;
		}
		done += ur_queue_tx(b->port->queue, pkts + done, n - done);
		if (done == n)
			sent += n;
	} while (now_ns() < end);
	ur_pkts_release(pkts + done, n - done);
	return sent;
}

static void run_client(struct bench *b)
{
	const struct ur_mac all = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
	uint64_t words[2] = {0, 0}, sent, start, took;
	struct ur_ethdev_stats st;
	struct rusage ru;
	unsigned tries = 0;
	double rtt;

	do {
		if (++tries > 100)
			die("the server does not answer");
		send_one(b, &all, PING, words, 2);
	} while (!await(b, PONG, 100 * UR_NS_PER_MS, words));
	rtt = median_rtt_us(b);
	send_one(b, &b->peer, QUERY, words, 2);
	await(b, ANSWER, UR_NS_PER_S, words);
	start = now_ns();
	sent = blast(b);
	took = now_ns() - start;
	for (tries = 0; tries < 10; tries++) {
		await(b, ANSWER, 50 * UR_NS_PER_MS, words); /* what is queued must arrive first */
		send_one(b, &b->peer, QUERY, words, 2);
		if (await(b, ANSWER, 200 * UR_NS_PER_MS, words))
			break;
	}
	for (tries = 0; tries < 3; tries++)
		send_one(b, &b->peer, QUIT, words, 2);
	nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL); /* a memif server must not lose its peer while it polls */
	if (!words[1])
		die("the server received nothing");
	getrusage(RUSAGE_SELF, &ru);
	ur_ethdev_stats(b->port, &st);
	printf("size=%u sent_mpps=%.3f mpps=%.3f gbps=%.2f loss=%.1f%% rtt_us=%.2f rss_mb=%ld chained=%llu gathered=%llu\n", b->size,
	       (double)sent * 1e3 / (double)took, (double)words[0] * 1e3 / (double)words[1],
	       (double)words[0] * b->size * 8 / (double)words[1], sent ? 100.0 * (1 - (double)words[0] / (double)sent) : 0.0, rtt,
	       ru.ru_maxrss / 1024, (unsigned long long)st.tx_chained, (unsigned long long)st.tx_gathered);
}

static void usage(void)
{
	fprintf(stderr, "usage: portbench server|client (--dev IF | --vdev V) [--eal ARGS]\n"
			"       client: [--size BYTES] [--seconds S] [--segments] [--chain-min BYTES]\n");
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {
		{"dev", required_argument, NULL, 'd'},  {"vdev", required_argument, NULL, 'v'},
		{"size", required_argument, NULL, 's'}, {"seconds", required_argument, NULL, 't'},
		{"segments", no_argument, NULL, 'g'},   {"chain-min", required_argument, NULL, 'c'},
		{"eal", required_argument, NULL, 'e'},  {NULL, 0, NULL, 0},
	};
	struct bench b = {.size = 4200, .seconds = 1};
	struct ur_ethdev_config cfg = {.ifname = NULL};
	char err[512];

	for (int c; (c = getopt_long(argc, argv, "", opts, NULL)) != -1;)
		switch (c) {
		case 'd': cfg.ifname = optarg; break;
		case 'v': cfg.vdev = optarg; break;
		case 'e': cfg.eal_args = optarg; break;
		case 's': b.size = (unsigned)strtoul(optarg, NULL, 0); break;
		case 't': b.seconds = strtod(optarg, NULL); break;
		case 'g': b.segments = true; break;
		case 'c': cfg.chain_min = (unsigned)strtoul(optarg, NULL, 0); break;
		default: usage();
		}
	if (optind + 1 != argc || b.size < MIN_FRAME || b.size > UR_PKT_ROOM)
		usage();
	if (ur_ethdev_open(&cfg, &b.port, err, sizeof(err)))
		die(err);
	b.area = calloc(1, ALIGNED_AREA);
	if (!b.area)
		die("out of memory");
	memset(b.area, 0x5a, ALIGNED_AREA);
	ur_queue_enter(b.port->queue);
	if (strcmp(argv[optind], "server") == 0)
		serve(&b);
	else
		run_client(&b);
	ur_queue_leave(b.port->queue);
	b.port->ops->close(b.port);
	free(b.area);
	return 0;
}
