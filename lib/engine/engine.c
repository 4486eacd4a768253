/* SPDX-License-Identifier: BSD-3-Clause */
/* An engine's lock, and the ways in for application threads. */
#include "engine/engine.h"

#include <sched.h>
#include <stdio.h>

#include "engine/catch.h"
#include "engine/internal.h"
#include "host/clock.h"
#include "host/limits.h"
#include "observe/status.h"

/* Backlog of a control call's poll, so that a call cannot be kept busy by arriving packets. */
#define CONTROL_ROUNDS 4

#define YIELD_AFTER 256 /* looks at a taken NIC, a few microseconds */

ur_time ur_engine_now(void)
{
	return ur_clock_now();
}

void ur_engine_info(struct ur_engine *e, struct ur_device_info *info)
{
	pthread_mutex_lock(&e->info_lock);
	*info = e->info;
	pthread_mutex_unlock(&e->info_lock);
}

bool ur_engine_foreign(const struct ur_engine *e)
{
	return atomic_load_explicit(&e->foreign, memory_order_relaxed);
}

/* --- starting --- */

/* Waiting is a cancellation point, and a thread cancelled in it would take the lock with it. */
static int start_or_wait(struct ur_engine *e)
{
	int state, err;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&e->start_lock);
	if (e->state == UR_ENGINE_COLD) {
		__atomic_store_n(&e->state, UR_ENGINE_STARTING, __ATOMIC_RELEASE);
		err = ur_progress_start(e);
		if (err) {
			e->state = UR_ENGINE_FAILED;
			e->start_err = err;
			snprintf(e->start_text, sizeof(e->start_text), "cannot start a thread: %s", ur_limit_reason(err));
			fprintf(stderr, "uroce: %s\n", e->start_text);
		}
	}
	while (e->state == UR_ENGINE_STARTING)
		pthread_cond_wait(&e->start_cond, &e->start_lock);
	err = e->state == UR_ENGINE_RUNNING ? 0 : e->state == UR_ENGINE_STOPPED ? ESHUTDOWN : e->start_err;
	if (err)
		ur_engine_set_error("%s", err == ESHUTDOWN ? "the process is ending" : e->start_text);
	pthread_mutex_unlock(&e->start_lock);
	pthread_setcancelstate(state, NULL);
	return err;
}

int ur_engine_start(struct ur_engine *e)
{
	if (ur_likely(ur_engine_started(e)))
		return 0;
	if (ur_engine_foreign(e)) {
		ur_engine_set_error("this device was opened before a fork, or the process is ending: open it again");
		return EIO;
	}
	return start_or_wait(e);
}

bool ur_engine_started(const struct ur_engine *e)
{
	return __atomic_load_n(&e->state, __ATOMIC_ACQUIRE) == UR_ENGINE_RUNNING;
}

/* --- the lock, and the round before it is given up --- */

/* The port's system calls are cancellation points, and a thread cancelled in one would take the lock with it. */
static void nic_enter(struct ur_engine *e)
{
	struct ur_port *port = e->nic->port;

	atomic_store_explicit(&e->taken, true, memory_order_relaxed);
	if (ur_unlikely(atomic_load_explicit(&e->misses, memory_order_relaxed)))
		e->nic->counters.v[UR_C_LOCK_WAITS] += atomic_exchange_explicit(&e->misses, 0, memory_order_relaxed);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &e->cancel_state);
	ur_catch_admit();
	if (port)
		ur_queue_enter(port->queue);
}

static void missed(struct ur_engine *e)
{
	atomic_fetch_add_explicit(&e->misses, 1, memory_order_relaxed);
}

static bool nic_try(struct ur_engine *e)
{
	if (pthread_mutex_trylock(&e->nic_lock)) {
		missed(e);
		return false;
	}
	nic_enter(e);
	return true;
}

/* Somebody who waits for a CPU holds us up: another process of this host, or the thread that writes the capture. Under the lock. */
static bool must_give_way(struct ur_engine *e)
{
	if (ur_unlikely(e->nic->capture != NULL) && ur_capture_gives_way(e->nic->capture))
		return true;
	return e->local && ur_unlikely(ur_local_gives_way(e->local));
}

/* True when somebody rang meanwhile and found it taken. */
static inline bool give_up(struct ur_engine *e, ur_time next)
{
	int cancel_state = e->cancel_state;
	ur_time wake_at;
	bool rang;

	if (e->nic->port)
		ur_queue_leave(e->nic->port->queue);
	rang = ur_engine_give_up(e);
	pthread_setcancelstate(cancel_state, NULL);
	wake_at = atomic_load_explicit(&e->wake_at, memory_order_acquire); /* announced after `aside` */
	if (ur_unlikely(ur_poller_must_wake(next, wake_at, atomic_load_explicit(&e->aside, memory_order_relaxed))))
		ur_progress_wake(e);
	return rang;
}

/* Sends what was left while we held it, until nothing is or somebody else has the NIC. True when somebody waits for a CPU, or `yields`. */
__attribute__((noinline)) static bool answer_rings(struct ur_engine *e, bool yields)
{
	bool rang = true;

	while (rang && nic_try(e)) {
		ur_nic_poll_tx(e->nic, ur_engine_now());
		yields |= must_give_way(e);
		rang = give_up(e, ur_nic_next(e->nic));
	}
	return yields;
}

/*
 * Gives up the NIC. A thread that rang while we held it found it taken and went away, so what it left is sent before we go, and nobody is
 * woken for it; and a timer that is now due before the progress thread meant to wake must wake it.
 */
static inline void nic_release(struct ur_engine *e, ur_time next)
{
	bool yields = must_give_way(e);

	if (ur_unlikely(give_up(e, next)))
		yields = answer_rings(e, yields);
	if (ur_unlikely(yields))
		sched_yield();
}

/* Posts that wait for a poll, or answers. */
static bool has_left_work(const struct ur_engine *e)
{
	return atomic_load_explicit(&e->owes, memory_order_relaxed) || ur_nic_rang(e->nic);
}

struct ur_nic *ur_engine_lock(struct ur_engine *e)
{
	if (pthread_mutex_trylock(&e->nic_lock)) {
		missed(e);
		atomic_fetch_add_explicit(&e->waiters, 1, memory_order_relaxed);
		pthread_mutex_lock(&e->nic_lock);
		atomic_fetch_sub_explicit(&e->waiters, 1, memory_order_relaxed);
	}
	nic_enter(e);
	e->nic->now = ur_engine_now();
	if (ur_unlikely(has_left_work(e))) { /* before the QP is disconnected, say: its own posts, and ACKs that its peer waits for */
		ur_engine_flushed(e, e->nic->now);
		ur_nic_poll_tx(e->nic, e->nic->now);
		atomic_store_explicit(&e->owes, false, memory_order_relaxed);
	}
	return e->nic;
}

struct ur_nic *ur_engine_try(struct ur_engine *e)
{
	if (!nic_try(e))
		return NULL;
	e->nic->now = ur_engine_now();
	return e->nic;
}

/* What a control call changes is to be published, and the progress thread may sleep for long. */
void ur_engine_unlock(struct ur_engine *e)
{
	for (int i = 0; i < CONTROL_ROUNDS && ur_nic_poll_control(e->nic, ur_engine_now()); i++)
		continue;
	if (e->publisher)
		ur_publisher_touch(e->publisher);
	nic_release(e, ur_min_time(ur_nic_next(e->nic), ur_engine_publish_at(e)));
}

void ur_engine_drop(struct ur_engine *e)
{
	if (e->publisher)
		ur_publisher_touch(e->publisher);
	if (give_up(e, ur_min_time(ur_nic_next(e->nic), ur_engine_publish_at(e))))
		ur_progress_wake(e);
}

ur_time ur_engine_publish_at(struct ur_engine *e)
{
	ur_time at = e->publisher ? ur_publisher_next(e->publisher, e->nic) : UR_TIME_NEVER;

	if (at < atomic_load_explicit(&e->publish_at, memory_order_relaxed))
		atomic_store_explicit(&e->publish_at, at, memory_order_relaxed);
	return at;
}

static bool is_publishing_due(const struct ur_engine *e, ur_time now)
{
	return now >= atomic_load_explicit(&e->publish_at, memory_order_relaxed);
}

/* A program that never sleeps asks again soon whether something has happened since. Under the NIC's lock. */
static void publish(struct ur_engine *e, ur_time now)
{
	if (ur_publisher_next(e->publisher, e->nic) <= now)
		ur_publisher_write(e->publisher, e->nic, now);
	atomic_store_explicit(&e->publish_at, now + UR_STATUS_EVERY, memory_order_relaxed);
	ur_engine_publish_at(e);
}

void ur_engine_publish(struct ur_engine *e, ur_time now)
{
	if (!is_publishing_due(e, now) || !nic_try(e))
		return; /* the holder does it */
	publish(e, now);
	nic_release(e, UR_TIME_NEVER);
}

/* A program that polls in a loop holds the NIC nearly always: the progress thread would find it taken for seconds. */
void ur_engine_leave(struct ur_engine *e, ur_time now, bool lazy)
{
	ur_time next = ur_nic_next(e->nic);
	bool owes = lazy && next <= now;

	if (ur_unlikely(is_publishing_due(e, now)))
		publish(e, now);
	ur_reply_waits(&e->reply, now, owes && ur_nic_owes_answers(e->nic));
	atomic_store_explicit(&e->owes, owes, memory_order_relaxed);
	nic_release(e, owes ? now + UR_POLLER_ASIDE_NS : next);
}

/* --- application threads --- */

/* A round that sends all that it can, and gives up the NIC. How many packets moved. */
static unsigned poll_held(struct ur_engine *e, ur_time now)
{
	unsigned n;

	ur_reply_sends(&e->reply, &e->costs, now, false);
	n = ur_nic_poll(e->nic, now);
	ur_engine_leave(e, now, false);
	return n;
}

/* Will the progress thread look soon, so that what we leave to the next poll cannot be forgotten for long? Asked after we rang. */
static bool is_looked_after(struct ur_engine *e, ur_time now)
{
	atomic_thread_fence(memory_order_seq_cst); /* pairs with that of announce: it sees that we rang, or we see how long it sleeps */
	return atomic_load_explicit(&e->wake_at, memory_order_relaxed) <= now + UR_POLLER_ASIDE_NS;
}

/* Posting is no promise to poll: what can be sent is sent now. To look for arrivals would cost a system call that mostly finds none. */
void ur_engine_ring(struct ur_engine *e, struct ur_qp *qp)
{
	ur_time now = ur_engine_now(), driven = atomic_load_explicit(&e->driven_at, memory_order_relaxed);
	struct ur_coalesce *c = ur_engine_coalesce(e);
	unsigned n;
	bool waits = ur_coalesce_posted(c, &e->costs, now, driven);

	if (ur_qp_doorbell(qp))
		ur_nic_ring(e->nic, qp);
	else if (!ur_nic_rang(e->nic))
		return;
	if (waits && is_looked_after(e, now))
		return;
	if (driven)
		atomic_store_explicit(&e->driven_at, now, memory_order_relaxed);
	if (!nic_try(e))
		return; /* the holder sees that we rang before it leaves */
	ur_catch_look(now);
	ur_reply_sends(&e->reply, &e->costs, now, true);
	n = ur_nic_poll_tx(e->nic, now);
	ur_engine_leave(e, now, false);
	if (ur_unlikely(ur_coalesce_sent(c, now)))
		ur_coalesce_took(c, &e->costs, n, now, ur_engine_now());
}

/* Sends what earlier arrivals ask for, unless the application is about to post something that it can travel with, and receives. */
static unsigned poll_lazy(struct ur_engine *e, ur_time now)
{
	if (ur_reply_is_near(&e->reply, &e->costs, now) && !ur_nic_rang(e->nic))
		return ur_nic_poll_rx(e->nic, now);
	ur_reply_sends(&e->reply, &e->costs, now, ur_nic_rang(e->nic));
	return ur_nic_poll_lazy(e->nic, now);
}

/* Holding the NIC, which it gives up. True when packets moved. */
static bool drive(struct ur_engine *e, ur_time now, bool polls_on)
{
	unsigned n;

	ur_catch_look(now);
	if (ur_unlikely(!polls_on))
		return poll_held(e, now) != 0;
	atomic_store_explicit(&e->driven_at, now, memory_order_relaxed);
	n = poll_lazy(e, now);
	ur_engine_leave(e, now, true);
	return n != 0;
}

/* A thread that finds the NIC taken in a loop may have the CPU that its holder waits for, and keep it for milliseconds: its time slice. */
static void let_holder_run(struct ur_engine *e)
{
	static __thread unsigned times;

	if (++times % YIELD_AFTER) {
		ur_cpu_relax();
		return;
	}
	missed(e);
	sched_yield();
}

/*
 * A thread that drives comes back at once, or posts, or says that it will block; if it does none of these, the progress thread polls soon.
 * So answers may wait. One that finds the NIC taken comes back as well, and until then needs no clock, unless it has posted several
 * requests: what else it would say of itself is said by the thread that drives, or at its next try.
 */
bool ur_engine_drive(struct ur_engine *e)
{
	bool polls_on = ur_likely(!atomic_load_explicit(&e->once_more, memory_order_relaxed)) || !atomic_exchange(&e->once_more, false);
	struct ur_coalesce *c = ur_engine_coalesce(e);
	bool row = ur_coalesce_is_row(c), moved = false;
	ur_time now = row ? ur_engine_now() : 0;
	bool late = row && ur_coalesce_polled(c, &e->costs, now);

	if (atomic_load_explicit(&e->taken, memory_order_relaxed) || !nic_try(e)) {
		let_holder_run(e);
	} else {
		now = row ? now : ur_engine_now();
		moved = drive(e, now, polls_on);
	}
	if (ur_unlikely(late))
		ur_coalesce_late(c, now, ur_engine_lost_cpu());
	return moved;
}

/* It may look at its queue once more before it does. */
void ur_engine_will_block(struct ur_engine *e)
{
	if (has_left_work(e) && nic_try(e)) /* else the holder sees what we would have seen before it leaves */
		poll_held(e, ur_engine_now());
	atomic_store_explicit(&e->once_more, true, memory_order_relaxed);
	atomic_store(&e->driven_at, 0);
	if (atomic_load(&e->aside))
		ur_progress_wake(e);
}

void ur_engine_reclaim(struct ur_engine *e)
{
	struct ur_port *port = ur_engine_lock(e)->port;

	if (port && port->queue->ops->reclaim)
		port->queue->ops->reclaim(port->queue);
	ur_engine_unlock(e);
	sched_yield();
}

/* --- lanes --- */

/* The first one's lock keeps others from being added. */
struct ur_nic *ur_engine_lock_all(struct ur_engine *device)
{
	struct ur_nic *nic = ur_engine_lock(device);

	for (unsigned i = 1; i < atomic_load_explicit(&device->lanes, memory_order_relaxed); i++)
		ur_engine_lock(device->at[i]);
	return nic;
}

/* Only the first one is polled first: what these calls change is nothing to be sent by the others. */
void ur_engine_unlock_lanes(struct ur_engine *device, unsigned lane)
{
	while (--lane > 0)
		ur_engine_drop(device->at[lane]);
	ur_engine_unlock(device);
}

void ur_engine_unlock_all(struct ur_engine *device)
{
	ur_engine_unlock_lanes(device, atomic_load_explicit(&device->lanes, memory_order_relaxed));
}

void ur_engine_sum_counters(const struct ur_engine *device, struct ur_counters *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (unsigned i = 0; i < atomic_load(&device->lanes); i++)
		ur_counters_add_to(sum, &device->at[i]->nic->counters);
}

void ur_engine_errand(struct ur_engine *device, struct ur_errand *errand)
{
	errand->next = atomic_load_explicit(&device->errands, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&device->errands, &errand->next, errand, memory_order_release, memory_order_relaxed))
		;
	ur_progress_wake(device);
}

void ur_engine_settle(struct ur_engine *device)
{
	struct ur_nic *nic = ur_engine_lock(device);
	struct ur_errand *errand = atomic_exchange_explicit(&device->errands, NULL, memory_order_acquire), *next;

	for (; errand; errand = next) {
		next = errand->next;
		errand->run(errand, nic->now);
	}
	ur_engine_unlock(device);
}

/* --- events of the port --- */

void ur_engine_watch(struct ur_engine *e, struct ur_engine_watch *w)
{
	ur_engine_lock(e);
	ur_list_add_tail(&e->watches, &w->link);
	ur_engine_unlock(e);
}

void ur_engine_unwatch(struct ur_engine *e, struct ur_engine_watch *w)
{
	if (ur_engine_foreign(e))
		return; /* the lock is the parent's, and so is the thread that would call */
	ur_engine_lock(e);
	ur_list_del(&w->link);
	ur_engine_unlock(e);
}

/* --- ports of the IP port spaces --- */

int ur_engine_port_bind(struct ur_engine *e, uint16_t port_space, const struct ur_gid *gid, bool reuse, uint16_t *port)
{
	static _Atomic uint16_t ephemeral;

	if (e->registry)
		return ur_registry_bind(e->registry, port_space, gid, reuse, port);
	if (!*port) /* alone, as far as we can know */
		*port = (uint16_t)(32768 + ephemeral++ % 28232);
	return 0;
}

void ur_engine_port_release(struct ur_engine *e, uint16_t port_space, const struct ur_gid *gid, uint16_t port)
{
	if (e->registry)
		ur_registry_release(e->registry, port_space, gid, port);
}

int ur_engine_port_move(struct ur_engine *e, uint16_t port_space, const struct ur_gid *from, const struct ur_gid *to, bool reuse,
			uint16_t port)
{
	return e->registry ? ur_registry_move(e->registry, port_space, from, to, reuse, port) : 0;
}

int ur_engine_port_listen(struct ur_engine *e, uint16_t port_space, const struct ur_gid *gid, uint16_t port, bool on)
{
	int err = e->registry ? ur_registry_listen(e->registry, port_space, gid, port, on) : 0;

	if (!err && on && ur_engine_started(e))
		ur_engine_port_listens(e);
	return err;
}
