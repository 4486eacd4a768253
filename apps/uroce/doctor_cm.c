/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce doctor: asking the peer by messages that every RoCE host with a CM answers. A SIDR_REQ for a service that nobody has comes back as
 * a SIDR_REP with status 1 (IBTA volume 1, 12.11): no program has to run there, nothing is left behind on either side, and both directions
 * have carried UDP port 4791. In a child, which is a process of uroce's like any other, with a port of its own.
 */
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "doctor.h"
#include "engine/engine.h"
#include "info.h"
#include "wire/frame.h"

/* Of the service ids that each host gives out by itself (IBTA volume 1, annex A3): one that no host has a reason for. */
#define NOBODYS_SERVICE 0x0275726f63650000ull

#define CONTACT_TRIES 4
#define CONTACT_NS (500 * UR_NS_PER_MS)
#define RTT_ROUNDS 20 /* one after another */
#define LOSS_ROUNDS 1000
#define LOSS_WINDOW 16 /* questions under way; a host has room for some hundred */
#define ANSWER_NS UR_NS_PER_S
#define GID_TRIES 3
#define GID_NS (400 * UR_NS_PER_MS)
#define ALL_SECONDS 40
#define LOSS_NS (20 * UR_NS_PER_S)
#define LOOK_NS (5 * UR_NS_PER_MS)

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
	struct ur_cm_sidr *sidr; /* NULL: none is under way */
	ur_time sent;
};

/* Under the engine's lock, but for `progress`. */
struct asker {
	struct ur_engine *engine;
	struct ur_nic *nic;
	struct ur_net_path path; /* kept while questions go that way, for the neighbour */
	struct ur_gid dst;
	struct slot slots[LOSS_WINDOW];
	unsigned left; /* not asked yet */
	unsigned sent, answered, under_way;
	ur_time rtt; /* of the last answer */
	sem_t progress;
};

static void ask_next(struct slot *s, ur_time now);

static void on_event(void *owner, struct ur_cm_sidr *sidr, const struct ur_cm_sidr_event *ev, ur_time now)
{
	struct slot *s = owner;
	struct asker *a = s->asker;

	s->sidr = NULL;
	a->under_way--;
	if (ev->type == UR_CM_SIDR_EV_REP) {
		a->answered++;
		a->rtt = now - s->sent;
	}
	ur_cm_sidr_destroy(sidr, now);
	ask_next(s, now);
	sem_post(&a->progress);
}

static void ask_next(struct slot *s, ur_time now)
{
	struct asker *a = s->asker;
	const struct ur_cm_sidr_req_param p = {.addr = {.sgid = a->path.wire.sgid, .dgid = a->dst}, .service_id = NOBODYS_SERVICE};

	if (!a->left || ur_cm_sidr_create(a->nic->cm, s, on_event, &s->sidr))
		return;
	a->left--;
	s->sent = now;
	if (ur_cm_sidr_query(s->sidr, &p, now)) {
		ur_cm_sidr_destroy(s->sidr, now);
		s->sidr = NULL;
		return;
	}
	a->sent++;
	a->under_way++;
}

/* Gives up those that have waited for so long: the CM itself would ask again. */
static void sweep(struct asker *a, ur_time patience, ur_time now)
{
	for (unsigned i = 0; i < LOSS_WINDOW; i++) {
		struct slot *s = &a->slots[i];

		if (!s->sidr || now - s->sent < patience)
			continue;
		ur_cm_sidr_destroy(s->sidr, now);
		s->sidr = NULL;
		a->under_way--;
		ask_next(s, now);
	}
}

static void wait_a_little(struct asker *a)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += (long)LOOK_NS;
	t.tv_sec += t.tv_nsec / (long)UR_NS_PER_S;
	t.tv_nsec %= (long)UR_NS_PER_S;
	sem_timedwait(&a->progress, &t);
}

/* Asks `n` times, `window` of them under way at a time, each once. Ends at the latest at `until`. */
static void ask(struct asker *a, unsigned n, unsigned window, ur_time patience, ur_time until)
{
	bool busy = true;

	ur_engine_lock(a->engine);
	a->left = n;
	a->sent = a->answered = 0;
	for (unsigned i = 0; i < window; i++)
		ask_next(&a->slots[i], ur_engine_now());
	ur_engine_unlock(a->engine);
	while (busy) {
		ur_time now;

		wait_a_little(a);
		ur_engine_lock(a->engine);
		now = ur_engine_now();
		if (now >= until)
			a->left = 0;
		sweep(a, patience, now);
		busy = a->under_way;
		ur_engine_unlock(a->engine);
	}
}

static void path_changed(struct ur_net_path *p, int err, ur_time now)
{
	(void)p;
	(void)err;
	(void)now;
}

/* False when no address of ours goes there. */
static bool turn_to(struct asker *a, const struct ur_gid *dst)
{
	const struct ur_net_path_attr attr = {.dgid = *dst};
	int err;

	memset(&a->path, 0, sizeof(a->path));
	a->path.changed = path_changed;
	a->dst = *dst;
	ur_engine_lock(a->engine);
	err = ur_net_path_open(a->nic->net, &a->path, &attr, ur_engine_now());
	ur_engine_unlock(a->engine);
	return !err;
}

static void turn_away(struct asker *a)
{
	ur_engine_lock(a->engine);
	ur_net_path_close(&a->path);
	ur_engine_unlock(a->engine);
}

static bool reached(struct asker *a, unsigned tries, ur_time patience)
{
	for (unsigned i = 0; i < tries; i++) {
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
	ask(a, LOSS_ROUNDS, LOSS_WINDOW, ANSWER_NS, ur_engine_now() + LOSS_NS);
	out->sent = a->sent;
	out->answered = a->answered;
}

static void ask_all(struct asker *a, const struct question *q, struct answer *out)
{
	for (unsigned i = 0; i < q->count; i++) {
		if (!turn_to(a, &q->gids[i])) {
			if (i == 0)
				snprintf(out->why, sizeof(out->why), "no address of the device has a route to it");
			continue;
		}
		out->asked[i] = true;
		out->answers[i] = reached(a, i ? GID_TRIES : CONTACT_TRIES, i ? GID_NS : CONTACT_NS);
		if (i == 0) {
			out->cm = out->answers[0] ? UR_DOCTOR_CM_ANSWERS : UR_DOCTOR_CM_SILENT;
			if (out->answers[0]) {
				measure_rtt(a, out);
				measure_loss(a, out);
			}
		}
		turn_away(a);
		if (out->cm != UR_DOCTOR_CM_ANSWERS)
			return;
	}
}

static void in_child(const void *arg, void *result)
{
	static struct asker a;
	struct answer *out = result;

	memset(out, 0, sizeof(*out));
	ur_doctor_plain_settings(NULL);
	if (ur_engine_open(&a.engine) || ur_engine_start(a.engine)) {
		snprintf(out->why, sizeof(out->why), "%s", ur_engine_error());
		return;
	}
	a.nic = ur_engine_lock(a.engine);
	ur_engine_unlock(a.engine);
	sem_init(&a.progress, 0, 0);
	for (unsigned i = 0; i < LOSS_WINDOW; i++)
		a.slots[i].asker = &a;
	ask_all(&a, arg, out);
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
	if (!ur_doctor_in_child(in_child, &q, &out, sizeof(out), ALL_SECONDS)) {
		memset(&out, 0, sizeof(out));
		snprintf(out.why, sizeof(out.why), "the process that asks it died or had not finished after %d seconds", ALL_SECONDS);
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
