/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce doctor: tests the peer with messages that every RoCE host with a CM answers. A SIDR_REQ for a service that does not exist is
 * answered by a SIDR_REP with status 1 (IBTA volume 1, 12.11): no program has to run there, neither side keeps any state, and UDP port
 * 4791 is tested in both directions. Runs in a child, a program on uroce like any other, which uses rdma_connect(3).
 */
#include <endian.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/uroce/cli/child.h"
#include "apps/uroce/doctor/doctor.h"
#include "apps/uroce/info/info.h"
#include "host/clock.h"
#include "uroce/uroce.h"
#include "wire/frame.h"

/* Of the service ids that each host gives out by itself (IBTA volume 1, annex A3): one that no host has a reason for. */
#define NOBODYS_SERVICE 0x0275726f63650000ull

#define CONTACT_TRIES 4
#define CONTACT_NS (500 * UR_NS_PER_MS)
#define RTT_ROUNDS 20 /* one after another */
#define LOSS_ROUNDS 1000
#define LOSS_WINDOW 16 /* questions in flight; a host has room for some hundred */
#define ANSWER_NS UR_NS_PER_S
#define GID_TRIES 3
#define GID_NS (400 * UR_NS_PER_MS)
#define ALL_SECONDS 40
#define LOSS_NS (20 * UR_NS_PER_S)
#define LOOK_MS 5
#define RESOLVE_MS 3000 /* more than anybody waits */

/* What the child is told, and what it tells. */
struct question {
	unsigned count;
	struct ur_gid gids[UR_DOCTOR_GIDS];
};

struct answer {
	enum ur_doctor_cm cm;
	char why[UR_DOCTOR_TEXT];
	unsigned rtt_min_us, rtt_median_us, rtt_max_us, sent, answered;
	bool asked[UR_DOCTOR_GIDS], answers[UR_DOCTOR_GIDS];
};

/* --- questions --- */

struct asker;

struct slot {
	struct asker *asker;
	struct rdma_cm_id *id; /* NULL: none is in flight */
	ur_time begun, sent;   /* sent: once the way there is known */
};

struct asker {
	struct rdma_event_channel *channel;
	struct sockaddr_ib to; /* the peer and the service: AF_IB asks for any service, with nothing of the RDMA CM's own */
	struct slot slots[LOSS_WINDOW];
	unsigned left; /* not asked yet */
	unsigned sent, answered, under_way;
	int no_way;  /* an errno: it cannot be asked */
	ur_time rtt; /* of the last answer */
};

/* The ways to the peer are found out for each question: an id asks once. */
static void ask_next(struct slot *s)
{
	struct asker *a = s->asker;

	if (!a->left || rdma_create_id(a->channel, &s->id, s, RDMA_PS_UDP)) {
		s->id = NULL;
		return;
	}
	a->left--;
	s->begun = ur_clock_now();
	if (rdma_resolve_addr(s->id, NULL, (struct sockaddr *)&a->to, RESOLVE_MS)) {
		a->no_way = errno;
		a->left = 0;
		rdma_destroy_id(s->id);
		s->id = NULL;
		return;
	}
	a->sent++;
	a->under_way++;
}

static void free_slot(struct slot *s)
{
	rdma_destroy_id(s->id);
	s->id = NULL;
	s->asker->under_way--;
	ask_next(s);
}

static void take_answer(struct slot *s)
{
	s->asker->answered++;
	s->asker->rtt = ur_clock_now() - s->sent;
	free_slot(s);
}

/* A positive status is the peer's: it has no such service (rdma_get_cm_event(3)). */
static void take_event(struct slot *s, enum rdma_cm_event_type type, int status)
{
	struct rdma_conn_param none = {.private_data_len = 0};
	bool on = false;

	switch (type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED: on = !rdma_resolve_route(s->id, RESOLVE_MS); break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		s->sent = ur_clock_now();
		on = !rdma_connect(s->id, &none);
		break;
	case RDMA_CM_EVENT_ESTABLISHED: take_answer(s); return;
	case RDMA_CM_EVENT_UNREACHABLE:
		if (status > 0) {
			take_answer(s);
			return;
		}
		break;
	default: break;
	}
	if (!on)
		free_slot(s);
}

/* Takes what has happened, and waits a little where nothing has. */
static void take_events(struct asker *a)
{
	struct pollfd p = {.fd = a->channel->fd, .events = POLLIN};

	for (int wait = LOOK_MS; a->under_way && poll(&p, 1, wait) > 0; wait = 0) {
		struct rdma_cm_event *ev;
		enum rdma_cm_event_type type;
		struct slot *s;
		int status;

		if (rdma_get_cm_event(a->channel, &ev))
			return;
		s = ev->id->context;
		type = ev->event;
		status = ev->status;
		rdma_ack_cm_event(ev);
		take_event(s, type, status);
	}
}

/* Gives up those that have waited for so long: the CM itself would ask again. */
static void sweep(struct asker *a, ur_time patience)
{
	ur_time now = ur_clock_now();

	for (unsigned i = 0; i < LOSS_WINDOW; i++)
		if (a->slots[i].id && now - a->slots[i].begun >= patience)
			free_slot(&a->slots[i]);
}

/* Asks `n` times, `window` of them in flight at a time, each once. Ends at the latest at `until`. */
static void ask(struct asker *a, unsigned n, unsigned window, ur_time patience, ur_time until)
{
	a->left = n;
	a->sent = a->answered = 0;
	for (unsigned i = 0; i < window; i++)
		ask_next(&a->slots[i]);
	while (a->under_way) {
		take_events(a);
		if (ur_clock_now() >= until)
			a->left = 0;
		sweep(a, patience);
	}
}

static void turn_to(struct asker *a, const struct ur_gid *dst)
{
	a->to = (struct sockaddr_ib){.sib_family = AF_IB, .sib_sid = htobe64(NOBODYS_SERVICE), .sib_sid_mask = UINT64_MAX};
	memcpy(&a->to.sib_addr, dst->raw, sizeof(dst->raw));
	a->no_way = 0;
}

static bool reached(struct asker *a, unsigned tries, ur_time patience)
{
	for (unsigned i = 0; i < tries && !a->no_way; i++) {
		ask(a, 1, 1, patience, UR_TIME_NEVER);
		if (a->answered)
			return true;
	}
	return false;
}

/* --- measuring --- */

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void measure_rtt(struct asker *a, struct answer *out)
{
	uint32_t us[RTT_ROUNDS];
	unsigned n = 0;

	for (unsigned i = 0; i < RTT_ROUNDS; i++) {
		ask(a, 1, 1, ANSWER_NS, UR_TIME_NEVER);
		if (a->answered)
			us[n++] = (uint32_t)(a->rtt / UR_NS_PER_US);
		else if (!n && i >= 4)
			return;
	}
	qsort(us, n, sizeof(us[0]), compare_u32);
	out->rtt_min_us = n ? us[0] : 0;
	out->rtt_median_us = n ? us[n / 2] : 0;
	out->rtt_max_us = n ? us[n - 1] : 0;
}

static void measure_loss(struct asker *a, struct answer *out)
{
	ask(a, LOSS_ROUNDS, LOSS_WINDOW, ANSWER_NS, ur_clock_now() + LOSS_NS);
	out->sent = a->sent;
	out->answered = a->answered;
}

static void ask_all(struct asker *a, const struct question *q, struct answer *out)
{
	for (unsigned i = 0; i < q->count; i++) {
		turn_to(a, &q->gids[i]);
		out->answers[i] = reached(a, i ? GID_TRIES : CONTACT_TRIES, i ? GID_NS : CONTACT_NS);
		out->asked[i] = !a->no_way;
		if (i == 0 && a->no_way) {
			snprintf(out->why, sizeof(out->why), "%s",
				 a->no_way == ENETUNREACH || a->no_way == EHOSTUNREACH ? "no address of the device has a route to it"
										       : strerror(a->no_way));
		} else if (i == 0) {
			out->cm = out->answers[0] ? UR_DOCTOR_CM_ANSWERS : UR_DOCTOR_CM_SILENT;
			if (out->answers[0]) {
				measure_rtt(a, out);
				measure_loss(a, out);
			}
		}
		if (out->cm != UR_DOCTOR_CM_ANSWERS && out->asked[i])
			return;
	}
}

static void in_child(const void *arg, void *result)
{
	static struct asker a;
	struct answer *out = result;

	memset(out, 0, sizeof(*out));
	ur_child_plain_settings(NULL);
	if (uroce_start()) {
		snprintf(out->why, sizeof(out->why), "%s", uroce_error());
		return;
	}
	a.channel = rdma_create_event_channel();
	if (!a.channel) {
		snprintf(out->why, sizeof(out->why), "cannot open a descriptor for its answers: %s", strerror(errno));
		return;
	}
	for (unsigned i = 0; i < LOSS_WINDOW; i++)
		a.slots[i].asker = &a;
	ask_all(&a, arg, out);
	rdma_destroy_event_channel(a.channel);
}

/* --- facts --- */

/* What was only guessed is worth no word unless it answers. */
static void take_gids(struct ur_doctor_peer *p, const struct ur_doctor_targets *t, const struct question *q, const struct answer *out)
{
	for (unsigned i = 0; i < q->count; i++) {
		struct ur_doctor_gid *g = &p->gids[p->gid_count];

		if (!out->asked[i] || (t->at[i].guessed && !out->answers[i]))
			continue;
		ur_gid_text(&q->gids[i], g->text);
		ur_gid_ip(&q->gids[i], g->address);
		g->answers = out->answers[i];
		p->gid_count++;
	}
}

void ur_doctor_ask_cm(struct ur_doctor_facts *f, const struct ur_doctor_targets *t)
{
	struct question q = {.count = t->count};
	struct answer out = {0};

	for (unsigned i = 0; i < t->count; i++)
		memcpy(q.gids[i].raw, t->at[i].addr.sin6_addr.s6_addr, 16);
	if (!ur_child_run(in_child, &q, &out, sizeof(out), ALL_SECONDS)) {
		memset(&out, 0, sizeof(out));
		snprintf(out.why, sizeof(out.why), "the process that queries it died or had not finished after %d seconds", ALL_SECONDS);
	}
	f->peer.cm = out.cm;
	snprintf(f->peer.cm_why, sizeof(f->peer.cm_why), "%s", out.why);
	f->peer.rtt_min_us = out.rtt_min_us;
	f->peer.rtt_median_us = out.rtt_median_us;
	f->peer.rtt_max_us = out.rtt_max_us;
	f->peer.sent = out.sent;
	f->peer.answered = out.answered;
	take_gids(&f->peer, t, &q, &out);
}
