/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Event channels (rdma_create_event_channel(3), rdma_get_cm_event(3)). Who finds no event passes through read(2) on the channel's eventfd,
 * so O_NONBLOCK, signals and poll(2) work as on any descriptor. The descriptor is kept readable exactly while the queue holds events. Each
 * event adds one to its counter, so that EPOLLET tells of each; otherwise it is touched only when the queue becomes empty. `told` is what
 * the counter holds, and what readers have taken from it and not yet accounted for.
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rdmacm/internal.h"

#define READER_TRIES 20
#define READER_WAIT_US 500
#define SPARES 64 /* events that are kept for the next ones: one thread makes them and another frees them, which costs malloc its locks */

/* It is held for less than a sleep and a wake-up take: who finds it taken spins a little. */
static void init_lock(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct ur_channel *ch = calloc(1, sizeof(*ch));

	if (!ch) {
		errno = ENOMEM;
		return NULL;
	}
	ch->ch.fd = eventfd(0, EFD_CLOEXEC);
	if (ch->ch.fd < 0) {
		free(ch);
		return NULL;
	}
	init_lock(&ch->lock);
	pthread_cond_init(&ch->acked, NULL);
	ur_list_init(&ch->queue);
	ur_list_init(&ch->spare);
	atomic_init(&ch->holds, 1);
	return &ch->ch;
}

void ur_channel_hold(struct ur_channel *ch)
{
	atomic_fetch_add_explicit(&ch->holds, 1, memory_order_relaxed);
}

void ur_channel_release(struct ur_channel *ch)
{
	if (atomic_fetch_sub_explicit(&ch->holds, 1, memory_order_acq_rel) != 1)
		return;
	for (struct ur_list *n; (n = ur_list_pop(&ch->spare));)
		free(ur_container_of(n, struct ur_event, link));
	pthread_cond_destroy(&ch->acked);
	pthread_mutex_destroy(&ch->lock);
	free(ch);
}

/*
 * Programs such as rping destroy a channel while the thread that reads its events is on its way back to wait for the next one. The system
 * calls of a kernel's CM give that thread the time to arrive, and closing a descriptor leaves a thread that sleeps in read(2) asleep; so it
 * gets a moment here too.
 */
static void wait_for_reader(struct ur_channel *ch)
{
	bool other;

	pthread_mutex_lock(&ch->lock);
	other = ch->was_read && !pthread_equal(ch->reader, pthread_self());
	pthread_mutex_unlock(&ch->lock);
	for (unsigned i = 0; other && i < READER_TRIES && !atomic_load(&ch->waiting); i++)
		usleep(READER_WAIT_US);
	if (other)
		usleep(READER_WAIT_US); /* from counting itself to sleeping */
}

void ur_channel_close(struct ur_channel *ch)
{
	pthread_mutex_lock(&ch->lock);
	close(ch->ch.fd);
	ch->ch.fd = -1;
	pthread_mutex_unlock(&ch->lock);
	ur_channel_release(ch);
}

/* Ids should be gone by now. What is there yet keeps its events, which nobody can read any more, until it is destroyed itself. */
void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	struct ur_channel *ch = (struct ur_channel *)channel;

	if (!ch)
		return;
	wait_for_reader(ch);
	ur_channel_close(ch);
}

/*
 * Clearing must not block even when another reader got there first, whatever the descriptor's flags: RWF_NOWAIT (Linux 5.8). Without it a
 * reader may wake for nothing. Both calls are cancellation points, and a thread that is cancelled here would keep the mutex.
 */
static void change_fd(struct ur_channel *ch)
{
	uint64_t v = 1;
	struct iovec iov = {.iov_base = &v, .iov_len = sizeof(v)};
	int saved = errno, state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (ur_list_empty(&ch->queue)) {
		if (preadv2(ch->ch.fd, &iov, 1, -1, RWF_NOWAIT) > 0)
			ch->told -= v;
	} else if (write(ch->ch.fd, &v, sizeof(v)) > 0) {
		ch->told++;
	}
	pthread_setcancelstate(state, NULL);
	errno = saved;
}

/* Makes the descriptor tell the truth about the queue; called with the mutex after every change but a new event. */
static void sync_fd(struct ur_channel *ch)
{
	if (ur_list_empty(&ch->queue) != !ch->told)
		change_fd(ch);
}

static struct ur_event *take_spare(struct ur_channel *ch)
{
	struct ur_list *n;

	pthread_mutex_lock(&ch->lock);
	n = ur_list_pop(&ch->spare);
	ch->spares -= n != NULL;
	pthread_mutex_unlock(&ch->lock);
	return n ? ur_container_of(n, struct ur_event, link) : NULL;
}

struct ur_event *ur_event_new(enum rdma_cm_event_type type, struct ur_id *id, struct ur_id *owner)
{
	struct ur_event *e = take_spare((struct ur_channel *)owner->id.channel);

	if (!e)
		e = malloc(sizeof(*e));
	if (!e)
		return NULL;
	memset(e, 0, offsetof(struct ur_event, pdata));
	e->ev.event = type;
	e->ev.id = &id->id;
	e->ev.listen_id = owner != id ? &owner->id : NULL;
	e->owner = owner;
	ur_list_init(&e->link);
	ur_list_init(&e->mine);
	return e;
}

void ur_event_pdata(struct ur_event *e, const uint8_t *data, unsigned len)
{
	if (!data || !len)
		return;
	len = ur_min_u32(len, sizeof(e->pdata));
	memcpy(e->pdata, data, len);
	e->ev.param.conn.private_data = e->pdata;
	e->ev.param.conn.private_data_len = (uint8_t)len;
}

void ur_event_push(struct ur_event *e)
{
	struct ur_channel *ch = (struct ur_channel *)e->owner->id.channel;

	if (e->ev.id != &e->owner->id)
		ur_id_handed_out((struct ur_id *)e->ev.id);
	pthread_mutex_lock(&ch->lock);
	e->channel = ch;
	ur_list_add_tail(&ch->queue, &e->link);
	ur_list_add_tail(&e->owner->events, &e->mine);
	if (e->ev.event == RDMA_CM_EVENT_CONNECT_REQUEST)
		e->owner->unread_requests++;
	change_fd(ch);
	pthread_mutex_unlock(&ch->lock);
}

void ur_event_send(struct ur_id *u, enum rdma_cm_event_type type, int status)
{
	struct ur_event *e = ur_event_new(type, u, u);

	if (!e)
		return;
	e->ev.status = status;
	ur_event_push(e);
}

/* A thread that has read `taken` from the descriptor. */
static struct ur_event *pop(struct ur_channel *ch, uint64_t taken)
{
	struct ur_event *e = NULL;
	struct ur_list *n;

	pthread_mutex_lock(&ch->lock);
	ch->told -= taken;
	n = ur_list_pop(&ch->queue);
	if (n) {
		e = ur_container_of(n, struct ur_event, link);
		ur_list_del(&e->mine);
		e->owner->unacked++;
		if (e->mc)
			e->mc->unacked++;
		ch->reader = pthread_self();
		ch->was_read = true;
		if (e->ev.event == RDMA_CM_EVENT_CONNECT_REQUEST)
			e->owner->unread_requests--;
	}
	sync_fd(ch);
	pthread_mutex_unlock(&ch->lock);
	return e;
}

static void announce_wait(void)
{
	for (struct ur_engine *e = ur_engine_current(); e; e = ur_engine_next(e))
		if (ur_engine_started(e))
			ur_engine_will_block(e);
}

static void stop_waiting(struct ur_channel *ch)
{
	atomic_fetch_sub(&ch->waiting, 1);
	ur_channel_release(ch);
}

struct reader {
	struct ur_channel *ch;
	uint64_t taken; /* by read(2), and not yet accounted for */
};

/* The C library cancels a thread even when its read(2) has just taken the count, so the others are told again. */
static void cancelled(void *reader)
{
	const struct reader *r = reader;

	pthread_mutex_lock(&r->ch->lock);
	r->ch->told -= r->taken;
	sync_fd(r->ch);
	pthread_mutex_unlock(&r->ch->lock);
	stop_waiting(r->ch);
}

static int pop_or_wait(struct reader *r, struct ur_event **out)
{
	pthread_testcancel(); /* as read(2) does, which an event that is there makes needless */
	while (!(*out = pop(r->ch, r->taken))) {
		r->taken = 0;
		announce_wait();
		if (read(r->ch->ch.fd, &r->taken, sizeof(r->taken)) < 0)
			return errno;
	}
	return 0;
}

int ur_channel_get(struct ur_channel *ch, struct ur_event **out)
{
	struct reader r = {.ch = ch};
	int err;

	ur_channel_hold(ch);
	atomic_fetch_add(&ch->waiting, 1);
	pthread_cleanup_push(cancelled, &r);
	err = pop_or_wait(&r, out);
	pthread_cleanup_pop(0);
	stop_waiting(ch);
	return err;
}

void ur_event_ack(struct ur_event *e)
{
	struct ur_channel *ch = e->channel;

	pthread_mutex_lock(&ch->lock);
	e->owner->unacked--;
	if (e->mc)
		e->mc->unacked--;
	pthread_cond_broadcast(&ch->acked);
	if (ch->spares < SPARES) {
		ch->spares++;
		ur_list_add_tail(&ch->spare, &e->link);
		e = NULL;
	}
	pthread_mutex_unlock(&ch->lock);
	free(e);
}

/* With the channel's mutex. */
static void take_locked(struct ur_id *u, struct ur_list *out)
{
	struct ur_list *n;

	while ((n = ur_list_pop(&u->events)) != NULL) {
		struct ur_event *e = ur_container_of(n, struct ur_event, mine);

		ur_list_del(&e->link);
		ur_list_add_tail(out, &e->link);
	}
}

void ur_channel_take(struct ur_id *u, struct ur_list *out)
{
	struct ur_channel *ch = (struct ur_channel *)u->id.channel;

	pthread_mutex_lock(&ch->lock);
	take_locked(u, out);
	u->unread_requests = 0;
	sync_fd(ch);
	pthread_mutex_unlock(&ch->lock);
}

void ur_channel_wait_acked(struct ur_id *u)
{
	struct ur_channel *ch = (struct ur_channel *)u->id.channel;

	pthread_mutex_lock(&ch->lock);
	while (u->unacked)
		pthread_cond_wait(&ch->acked, &ch->lock);
	pthread_mutex_unlock(&ch->lock);
}

void ur_channel_forget_mc(struct ur_id *u, struct ur_mc *mc)
{
	struct ur_channel *ch = (struct ur_channel *)u->id.channel;
	struct ur_list *n, *tmp;

	pthread_mutex_lock(&ch->lock);
	ur_list_for_each_safe (n, tmp, &u->events) {
		struct ur_event *e = ur_container_of(n, struct ur_event, mine);

		if (e->mc != mc)
			continue;
		ur_list_del(n);
		ur_list_del(&e->link);
		free(e);
	}
	sync_fd(ch);
	pthread_mutex_unlock(&ch->lock);
}

void ur_channel_wait_mc(struct ur_id *u, struct ur_mc *mc)
{
	struct ur_channel *ch = (struct ur_channel *)u->id.channel;

	pthread_mutex_lock(&ch->lock);
	while (mc->unacked)
		pthread_cond_wait(&ch->acked, &ch->lock);
	pthread_mutex_unlock(&ch->lock);
}

static void change_channel(struct ur_id *u, struct ur_channel *to)
{
	if (u->live.handle) {
		ur_channel_hold(to);
		ur_channel_release((struct ur_channel *)u->id.channel);
	}
	u->id.channel = &to->ch;
}

/* An unread request takes its new id along, which has no events of its own until it is accepted. */
static void move_events(struct ur_id *u, struct ur_list *moved, struct ur_channel *to)
{
	struct ur_list *n;

	while ((n = ur_list_pop(moved)) != NULL) {
		struct ur_event *e = ur_container_of(n, struct ur_event, link);

		if (e->ev.id != &u->id)
			change_channel((struct ur_id *)e->ev.id, to);
		e->channel = to;
		ur_list_add_tail(&to->queue, &e->link);
		ur_list_add_tail(&u->events, &e->mine);
	}
}

bool ur_channel_move(struct ur_id *u, struct ur_channel *to)
{
	struct ur_channel *from = (struct ur_channel *)u->id.channel;
	struct ur_list moved;
	bool busy;

	if (from == to)
		return true;
	ur_list_init(&moved);
	pthread_mutex_lock(&from->lock);
	busy = u->unacked != 0;
	if (!busy)
		take_locked(u, &moved);
	sync_fd(from);
	pthread_mutex_unlock(&from->lock);
	if (busy)
		return false;

	pthread_mutex_lock(&to->lock);
	change_channel(u, to);
	move_events(u, &moved, to);
	change_fd(to);
	pthread_mutex_unlock(&to->lock);
	return true;
}

bool ur_channel_has(struct ur_id *u, enum rdma_cm_event_type type)
{
	struct ur_channel *ch = (struct ur_channel *)u->id.channel;
	struct ur_list *n, *tmp;
	bool found = false;

	pthread_mutex_lock(&ch->lock);
	ur_list_for_each_safe (n, tmp, &u->events)
		found |= ur_container_of(n, struct ur_event, mine)->ev.event == type;
	pthread_mutex_unlock(&ch->lock);
	return found;
}

/* The connection of a synchronous listener is synchronous as well, on a channel of its own. */
static int adopt_request(struct ur_event *e)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): lists are circular */
	struct rdma_cm_id *child = e->ev.id;
	int err;

	if (e->ev.event != RDMA_CM_EVENT_CONNECT_REQUEST || !e->owner->sync)
		return 0;
	err = ur_id_migrate((struct ur_id *)child, NULL);
	if (err) {
		ur_event_ack(e);
		rdma_destroy_id(child);
	}
	return err;
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct ur_event *e;
	int err;

	if (!channel || !event)
		return ur_fail(EINVAL);
	err = ur_channel_get((struct ur_channel *)channel, &e);
	if (!err)
		err = adopt_request(e);
	if (err)
		return ur_fail(err);
	ur_mc_event_read(e);
	*event = &e->ev;
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	if (!event)
		return ur_fail(EINVAL);
	ur_event_ack((struct ur_event *)event);
	return 0;
}

void ur_id_drop_event(struct ur_id *u)
{
	struct rdma_cm_event *ev = u->id.event;

	u->id.event = NULL;
	if (ev)
		rdma_ack_cm_event(ev);
}

static int event_errno(const struct rdma_cm_event *ev)
{
	if (!ev->status)
		return 0;
	if (ev->event == RDMA_CM_EVENT_REJECTED)
		return ECONNREFUSED;
	return ev->status < 0 ? -ev->status : EIO;
}

int ur_id_complete(struct ur_id *u)
{
	struct rdma_cm_event *ev;

	if (!u->sync)
		return 0;
	ur_id_drop_event(u);
	for (;;) {
		if (rdma_get_cm_event(u->id.channel, &ev))
			return -1;
		if (ev->event != RDMA_CM_EVENT_TIMEWAIT_EXIT)
			break;
		rdma_ack_cm_event(ev); /* no call waits for it */
	}
	u->id.event = ev;
	return ur_result(event_errno(ev));
}

int ur_id_unlock_and_wait(struct ur_id *u, int err)
{
	bool sync = u->sync;

	ur_id_unlock(u);
	return err ? ur_fail(err) : sync ? ur_id_complete(u) : 0;
}

static const char *const event_names[] = {
	[RDMA_CM_EVENT_ADDR_RESOLVED] = "RDMA_CM_EVENT_ADDR_RESOLVED",
	[RDMA_CM_EVENT_ADDR_ERROR] = "RDMA_CM_EVENT_ADDR_ERROR",
	[RDMA_CM_EVENT_ROUTE_RESOLVED] = "RDMA_CM_EVENT_ROUTE_RESOLVED",
	[RDMA_CM_EVENT_ROUTE_ERROR] = "RDMA_CM_EVENT_ROUTE_ERROR",
	[RDMA_CM_EVENT_CONNECT_REQUEST] = "RDMA_CM_EVENT_CONNECT_REQUEST",
	[RDMA_CM_EVENT_CONNECT_RESPONSE] = "RDMA_CM_EVENT_CONNECT_RESPONSE",
	[RDMA_CM_EVENT_CONNECT_ERROR] = "RDMA_CM_EVENT_CONNECT_ERROR",
	[RDMA_CM_EVENT_UNREACHABLE] = "RDMA_CM_EVENT_UNREACHABLE",
	[RDMA_CM_EVENT_REJECTED] = "RDMA_CM_EVENT_REJECTED",
	[RDMA_CM_EVENT_ESTABLISHED] = "RDMA_CM_EVENT_ESTABLISHED",
	[RDMA_CM_EVENT_DISCONNECTED] = "RDMA_CM_EVENT_DISCONNECTED",
	[RDMA_CM_EVENT_DEVICE_REMOVAL] = "RDMA_CM_EVENT_DEVICE_REMOVAL",
	[RDMA_CM_EVENT_MULTICAST_JOIN] = "RDMA_CM_EVENT_MULTICAST_JOIN",
	[RDMA_CM_EVENT_MULTICAST_ERROR] = "RDMA_CM_EVENT_MULTICAST_ERROR",
	[RDMA_CM_EVENT_ADDR_CHANGE] = "RDMA_CM_EVENT_ADDR_CHANGE",
	[RDMA_CM_EVENT_TIMEWAIT_EXIT] = "RDMA_CM_EVENT_TIMEWAIT_EXIT",
};

const char *rdma_event_str(enum rdma_cm_event_type event)
{
	return (unsigned)event < ur_array_size(event_names) ? event_names[event] : "UNKNOWN EVENT";
}
