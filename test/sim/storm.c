/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stormtest [--nics N] [--eager] [--cost US] [--room MADS] [--latency US] [--down MS]
 *
 * Every NIC connects to every other one, all from the same moment on, and then all end all connections: in virtual time, with lib/cm alone.
 * A NIC needs `cost` for each message that it receives and for each connection that it begins or ends, one after another; at most `room`
 * messages wait for it, as in the buffer of a socket, and what comes then is lost. It begins a connection when no message waits; an `eager`
 * one begins all before it looks at messages. With `down` the links carry nothing for so long from the
 * beginning. Prints when the last one was done, how long single connections took, and how many messages that cost; and fails when a
 * connection fails, or when more was said than a bound for each of them.
 */
#include <arpa/inet.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/random.h"
#include "cm/cm.h"
#include "wire/frame.h"
#include "wire/gid_set.h"

#define SERVICE 0x1234ull
#define NET 0x0a000000u
#define MESSAGES_EACH 12 /* three are needed to connect and two to end; losses come on top */

struct message {
	struct ur_timer arrival;
	struct ur_list link;
	struct nic *from, *to;
	uint8_t mad[UR_MAD_LEN];
};

/* What a NIC has with another one. */
struct side {
	struct nic *nic;
	struct ur_cm_conn *conn;
	ur_time began, took;
	bool established;
};

struct nic {
	struct storm *storm;
	struct ur_cm *cm;
	struct ur_timer work;
	struct ur_list queue; /* of messages */
	uint32_t queued, index, qpns;
	uint32_t next;     /* whom it turns to when no message waits */
	struct side *side; /* by the other one's index */
};

enum phase { CONNECTING, ENDING };

static struct storm {
	uint32_t nics, room;
	bool eager;
	ur_time cost, latency, down;
	ur_time now, began, last; /* `last`: when the last side was done */
	enum phase phase;
	struct ur_wheel *wheel;
	struct ur_counters counters;
	struct nic *nic;
	struct ur_list spare; /* messages */
	uint64_t sent, dropped, failed, done;
} storm = {.nics = 100, .room = 170, .cost = 25 * UR_NS_PER_US, .latency = 10 * UR_NS_PER_US, .spare = {&storm.spare, &storm.spare}};

static void *get(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p) {
		fprintf(stderr, "stormtest: no memory: ask for fewer NICs\n");
		exit(2);
	}
	return p;
}

/* --- messages --- */

static struct ur_gid gid_of(const struct nic *n)
{
	return ur_gid_from_v4(htonl(NET + n->index + 1));
}

static struct nic *nic_of(const struct ur_gid *gid)
{
	return &storm.nic[((uint32_t)gid->raw[13] << 16 | (uint32_t)gid->raw[14] << 8 | gid->raw[15]) - 1];
}

static void wake(struct nic *n)
{
	if (!ur_timer_armed(&n->work))
		ur_timer_arm(storm.wheel, &n->work, storm.now);
}

static void arrives(struct ur_timer *t, ur_time now)
{
	struct message *m = ur_container_of(t, struct message, arrival);
	struct nic *n = m->to;

	if (now < storm.down || n->queued >= storm.room) {
		storm.dropped++;
		ur_list_add_tail(&storm.spare, &m->link);
		return;
	}
	n->queued++;
	ur_list_add_tail(&n->queue, &m->link);
	wake(n);
}

static void send_mad(void *ctx, const struct ur_cm_addr *to, const uint8_t mad[UR_MAD_LEN], uint32_t psn)
{
	struct ur_list *l = ur_list_pop(&storm.spare);
	struct message *m = l ? ur_container_of(l, struct message, link) : get(1, sizeof(*m));

	(void)psn;
	m->from = ctx;
	m->to = nic_of(&to->dgid);
	memcpy(m->mad, mad, UR_MAD_LEN);
	ur_timer_init(&m->arrival, arrives);
	ur_timer_arm(storm.wheel, &m->arrival, storm.now + storm.cost + storm.latency);
	storm.sent++;
}

static void receive(struct nic *n)
{
	struct message *m = ur_container_of(ur_list_pop(&n->queue), struct message, link);
	struct ur_cm_addr from = {.sgid = gid_of(n), .dgid = gid_of(m->from), .hop_limit = 64};

	n->queued--;
	ur_cm_rx(n->cm, &from, m->mad, UR_MAD_LEN, storm.now);
	ur_list_add_tail(&storm.spare, &m->link);
}

/* --- connections --- */

static void established(struct side *s)
{
	s->established = true;
	s->took = storm.now - s->began;
	storm.last = storm.now;
	storm.done++;
}

static void event(void *owner, struct ur_cm_conn *conn, const struct ur_cm_event *ev, ur_time now)
{
	struct side *s = owner;

	switch (ev->type) {
	case UR_CM_EV_REP:
		ur_cm_send_rtu(conn, NULL, 0, now);
		established(s);
		break;
	case UR_CM_EV_RTU: established(s); break;
	case UR_CM_EV_REJ:
	case UR_CM_EV_UNREACHABLE: storm.failed++; break;
	default: /* the end, which each side brings about itself */ break;
	}
}

static void request(void *owner, struct ur_cm_conn *conn, const struct ur_cm_event *ev, ur_time now)
{
	struct nic *n = owner;
	struct side *s = &n->side[nic_of(&ev->addr->dgid)->index];
	struct ur_cm_rep_param p = {.qpn = ++n->qpns, .rnr_retry_count = 7, .responder_resources = 1, .initiator_depth = 1};

	s->conn = conn;
	s->began = now;
	ur_cm_conn_set_owner(conn, s, event);
	if (ur_cm_accept(conn, &p, now))
		storm.failed++;
}

/* Of two NICs one asks, and each asks half of the others. */
static bool asks(const struct nic *n, uint32_t other)
{
	return (n->index + other) % 2 ? n->index < other : n->index > other;
}

static void begin(struct nic *n, uint32_t other)
{
	struct side *s = &n->side[other];
	struct ur_cm_req_param p = {.addr = {.sgid = gid_of(n), .dgid = gid_of(&storm.nic[other])},
				    .service_id = SERVICE,
				    .qpn = ++n->qpns,
				    .qp_type = 2,
				    .path_mtu = 3,
				    .retry_count = 7,
				    .rnr_retry_count = 7};

	s->began = storm.now;
	if (ur_cm_conn_create(n->cm, s, event, &s->conn) || ur_cm_connect(s->conn, &p, storm.now))
		storm.failed++;
}

static void end(struct side *s)
{
	ur_cm_conn_destroy(s->conn, storm.now);
	s->conn = NULL;
	storm.last = storm.now;
	storm.done++;
}

/* The next of the others with whom there is something to do. False when there is none. */
static bool turn(struct nic *n)
{
	while (n->next < storm.nics) {
		uint32_t other = (n->index + ++n->next) % storm.nics; /* not all turn to the same one first */

		if (storm.phase == CONNECTING && other != n->index && asks(n, other)) {
			begin(n, other);
			return true;
		}
		if (storm.phase == ENDING && n->side[other].conn) {
			end(&n->side[other]);
			return true;
		}
	}
	return false;
}

static void work(struct ur_timer *t, ur_time now)
{
	struct nic *n = ur_container_of(t, struct nic, work);
	bool turned;

	storm.now = now;
	turned = (storm.eager || !n->queued) && turn(n);
	if (!turned && n->queued)
		receive(n);
	else if (!turned)
		return;
	ur_timer_arm(storm.wheel, &n->work, now + storm.cost);
}

/* --- phases --- */

static int compare(const void *a, const void *b)
{
	ur_time x = *(const ur_time *)a, y = *(const ur_time *)b;

	return (x > y) - (x < y);
}

static double ms(ur_time t)
{
	return (double)t / UR_NS_PER_MS;
}

static void show_times(void)
{
	uint64_t n = 0;
	ur_time *took = get((size_t)storm.nics * storm.nics, sizeof(*took));

	for (uint32_t i = 0; i < storm.nics; i++)
		for (uint32_t k = 0; k < storm.nics; k++)
			if (storm.nic[i].side[k].established && asks(&storm.nic[i], k))
				took[n++] = storm.nic[i].side[k].took;
	qsort(took, n, sizeof(*took), compare);
	if (n)
		printf("  one connection: median %.1f ms, 99 of 100 within %.1f ms, worst %.1f ms\n", ms(took[n / 2]),
		       ms(took[n * 99 / 100]), ms(took[n - 1]));
	free(took);
}

/* Until nothing is on its way and no timer runs but those of TIMEWAIT. */
static void run(enum phase phase, uint64_t sides)
{
	struct ur_counters *c = &storm.counters;
	ur_time at;

	storm.phase = phase;
	storm.began = storm.last = storm.now;
	storm.sent = storm.dropped = storm.done = 0;
	memset(c, 0, sizeof(*c));
	for (uint32_t i = 0; i < storm.nics; i++) {
		storm.nic[i].next = 0;
		wake(&storm.nic[i]);
	}
	while ((phase == ENDING || storm.done < sides) && !storm.failed && (at = ur_wheel_next(storm.wheel)) != UR_TIME_NEVER) {
		storm.now = at > storm.now ? at : storm.now;
		ur_wheel_advance(storm.wheel, storm.now);
	}
	printf("%s: the last after %.1f ms\n", phase == CONNECTING ? "connect" : "end", ms(storm.last - storm.began));
	printf("  %llu messages, %llu lost; %llu sent again early and %llu late, %llu came twice, %llu were stale\n",
	       (unsigned long long)storm.sent, (unsigned long long)storm.dropped, (unsigned long long)c->v[UR_C_CM_EARLY],
	       (unsigned long long)c->v[UR_C_CM_RETRIES], (unsigned long long)c->v[UR_C_CM_DUPLICATE],
	       (unsigned long long)c->v[UR_C_CM_STALE]);
}

static void open_nics(void)
{
	static struct ur_random random;
	const struct ur_seed seed = ur_seed_of(1);

	ur_random_init(&random, &seed);
	storm.wheel = ur_wheel_create(0);
	storm.nic = get(storm.nics, sizeof(*storm.nic));
	for (uint32_t i = 0; i < storm.nics; i++) {
		struct nic *n = &storm.nic[i];
		struct ur_cm_config cfg = {.ctx = n,
					   .send = send_mad,
					   .wheel = storm.wheel,
					   .counters = &storm.counters,
					   .random = &random,
					   .ca_guid = i + 1,
					   .slot = 1};
		struct ur_cm_listener *l;

		n->index = i;
		n->side = get(storm.nics, sizeof(*n->side));
		ur_list_init(&n->queue);
		ur_timer_init(&n->work, work);
		if (ur_cm_create(&cfg, &n->cm) || ur_cm_listen(n->cm, SERVICE, &ur_gid_all, n, request, &l))
			exit(2);
	}
}

static bool read_options(int argc, char **argv)
{
	static const struct option options[] = {{"nics", 1, 0, 'n'},
						{"eager", 0, 0, 'e'},
						{"cost", 1, 0, 'c'},
						{"room", 1, 0, 'r'},
						{"latency", 1, 0, 'l'},
						{"down", 1, 0, 'd'},
						{0}};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		uint64_t v = optarg ? strtoull(optarg, NULL, 10) : 0;

		switch (c) {
		case 'n': storm.nics = (uint32_t)v; break;
		case 'e': storm.eager = true; break;
		case 'c': storm.cost = v * UR_NS_PER_US; break;
		case 'r': storm.room = (uint32_t)v; break;
		case 'l': storm.latency = v * UR_NS_PER_US; break;
		case 'd': storm.down = v * UR_NS_PER_MS; break;
		default: return false;
		}
	}
	return optind == argc && storm.nics >= 2 && storm.nics <= 4096 && storm.room && storm.cost;
}

static unsigned passed, failed;

static void expect(bool ok, const char *what)
{
	printf("%s - %s\n", ok ? "ok" : "not ok", what);
	passed += ok;
	failed += !ok;
}

int main(int argc, char **argv)
{
	uint64_t connections;
	struct rusage ru;

	if (!read_options(argc, argv)) {
		fprintf(stderr, "usage: stormtest [--nics 2..4096] [--eager] [--cost US] [--room MADS] [--latency US] [--down MS]\n");
		return 2;
	}
	connections = (uint64_t)storm.nics * (storm.nics - 1) / 2;
	open_nics();
	printf("%u NICs, %llu connections\n", storm.nics, (unsigned long long)connections);
	run(CONNECTING, 2 * connections);
	show_times();
	expect(!storm.failed && storm.done == 2 * connections, "all are connected");
	expect(storm.sent <= MESSAGES_EACH * connections, "few messages connect them");
	run(ENDING, 2 * connections);
	expect(!storm.failed && storm.done == 2 * connections, "all are ended");
	expect(storm.sent <= MESSAGES_EACH * connections, "few messages end them");
	for (uint32_t i = 0; i < storm.nics; i++)
		ur_cm_destroy(storm.nic[i].cm);
	if (!getrusage(RUSAGE_SELF, &ru))
		printf("%ld MB\n", ru.ru_maxrss / 1024);
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
