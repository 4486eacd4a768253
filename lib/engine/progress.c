/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The progress thread: opens the port (EAL must not run on a thread of the application's), then polls the shard while there is work, steps
 * aside while applications poll, and sleeps when nobody needs it.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/counters_file.h"
#include "engine/engine_priv.h"

#define AWAY_NS (5 * UR_NS_PER_US) /* who polls in a loop drives again sooner */
#define VIGIL 64                   /* looks in vain that it takes before an application is trusted again */

#define SLICE_NS (100 * UR_NS_PER_US) /* the shortest that there is */

#define NAP_MIN_NS (50 * UR_NS_PER_US) /* sleep of a port that cannot wake us: grows from here ... */
#define NAP_MAX_NS (2 * UR_NS_PER_MS)  /* ... to here */

void ur_progress_wake(struct ur_engine *e)
{
	uint64_t one = 1;

	atomic_store(&e->wake_at, 0);
	if (write(e->wake_fd, &one, sizeof(one)) < 0)
		return; /* the counter is full: it wakes anyway */
}

/* --- sleeping --- */

/* A link that goes down leaves an error on the port's socket, and the socket readable until somebody fetches it. False when it does not go
 * away. */
static bool clear_port_error(int fd)
{
	struct pollfd again = {.fd = fd};
	int err;
	socklen_t len = sizeof(err);

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) == 0 && poll(&again, 1, 0) == 0;
}

static void sleep_until(struct ur_engine *e, ur_time until, bool on_port)
{
	struct pollfd fds[4] = {{.fd = e->wake_fd, .events = POLLIN},
				{.fd = e->monitor_fd, .events = POLLIN},
				{.fd = e->local ? ur_local_fd(e->local) : -1, .events = POLLIN}};
	nfds_t n = 3;
	ur_time now = ur_engine_now();
	struct timespec ts, *timeout = NULL;
	uint64_t drained;

	if (on_port)
		fds[n++] = (struct pollfd){.fd = ur_queue_wake_fd(e->nic->port->queue), .events = POLLIN};
	if (until != UR_TIME_NEVER) {
		ur_time ns = until > now ? until - now : 0;

		ts = (struct timespec){.tv_sec = (time_t)(ns / UR_NS_PER_S), .tv_nsec = (long)(ns % UR_NS_PER_S)};
		timeout = &ts;
	}
	if (ppoll(fds, n, timeout, NULL) <= 0)
		return;
	if (on_port && fds[3].revents & (POLLERR | POLLHUP | POLLNVAL))
		e->port_error = !clear_port_error(fds[3].fd);
	if (fds[0].revents && read(e->wake_fd, &drained, sizeof(drained)) < 0)
		return;
	if (fds[1].revents)
		ur_device_hear(e);
}

/* Announces a sleep. False when something happened meanwhile that forbids it. */
static bool announce(struct ur_engine *e, ur_time until, bool aside)
{
	atomic_store(&e->aside, aside);
	atomic_store(&e->wake_at, until);
	atomic_thread_fence(memory_order_seq_cst);
	if (!ur_nic_rang(e->nic) && !atomic_load(&e->stop) && !ur_ending_asked() && (!aside || atomic_load(&e->driven_at)) &&
	    (aside || !e->local || ur_local_sleep(e->local, true)))
		return true;
	return false;
}

static void awake(struct ur_engine *e)
{
	if (e->local)
		ur_local_sleep(e->local, false);
	atomic_store(&e->wake_at, 0);
	atomic_store(&e->aside, false);
}

/* An application polls: look in again when its last poll no longer counts. */
static void step_aside(struct ur_engine *e, ur_time until)
{
	if (announce(e, until, true))
		sleep_until(e, until, false);
	awake(e);
}

/*
 * Until when, is read and announced under the shard: whoever holds it later and has something due earlier sees that it must wake us. On a
 * port that cannot wake us, or reports an error, we nap.
 */
static void rest(struct ur_engine *e, ur_time until, ur_time *nap)
{
	bool on_port = !e->port_error && ur_queue_wake_fd(e->nic->port->queue) >= 0;
	ur_time now = ur_engine_now(), next;
	bool sleep;

	pthread_mutex_lock(&e->shard);
	next = ur_min_time(ur_nic_next(e->nic), until);
	if (!on_port) {
		next = ur_min_time(next, now + *nap);
		*nap = ur_min_time(*nap * 2, NAP_MAX_NS);
	}
	sleep = next > now && announce(e, next, false);
	pthread_mutex_unlock(&e->shard);
	if (sleep)
		sleep_until(e, next, on_port);
	awake(e);
}

/* --- the loop --- */

static unsigned poll_locked(struct ur_engine *e, struct ur_nic *nic)
{
	unsigned n = ur_nic_poll(nic, nic->now);

	if (!n && nic->capture)
		ur_capture_flush(nic->capture);
	ur_engine_unlock(e);
	return n;
}

static unsigned poll_once(struct ur_engine *e)
{
	while (atomic_load_explicit(&e->waiters, memory_order_relaxed))
		sched_yield(); /* let those pass who wait for the lock */
	return poll_locked(e, ur_engine_lock(e));
}

/*
 * One look while an application drives that is not trusted, see progress_loop. True when it had left something undone: it was not in the
 * shard, and had not been for longer than a polling loop takes.
 */
static bool look_in(struct ur_engine *e, unsigned *n)
{
	struct ur_nic *nic = ur_engine_try(e);
	bool away;

	*n = 0;
	if (!nic)
		return false;
	away = nic->now >= atomic_load_explicit(&e->driven_at, memory_order_relaxed) + AWAY_NS;
	*n = poll_locked(e, nic);
	return *n && away;
}

/* Who spins beside a program that does so too takes its CPU when there are no others. */
static bool few_cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) < 4;
}

/*
 * Whoever drives is trusted to go on, and we sleep meanwhile. But a program may poll its CQ only for the completion of what it sent, and
 * then wait for its memory to change, as ib_write_lat does: nobody would see what arrives until we look in again. Once that has happened we
 * keep vigil: we sleep on the port's descriptor although an application drives, until it has been there first many times in a row.
 */
static void progress_loop(struct ur_engine *e)
{
	const ur_time spin = e->cfg.spin_us * UR_NS_PER_US, spin_beside = few_cpus() ? 0 : spin;
	ur_time last_work = ur_engine_now(), nap = NAP_MIN_NS;
	unsigned vigil = 0;

	while (!atomic_load_explicit(&e->stop, memory_order_relaxed)) {
		ur_time now = ur_engine_now(), driven = atomic_load_explicit(&e->driven_at, memory_order_relaxed);
		bool driving = driven && now < driven + UR_ASIDE_NS;
		unsigned n;

		if (ur_ending_asked())
			ur_ending_serve(e);
		if (driving && !vigil) {
			step_aside(e, driven + UR_ASIDE_NS);
			continue;
		}
		if (driving) {
			vigil = look_in(e, &n) ? VIGIL : vigil - !n;
		} else {
			n = poll_once(e);
			if (n && driven)
				vigil = VIGIL;
		}
		if (n) {
			last_work = now;
			nap = NAP_MIN_NS;
		} else if (now >= last_work + (driving ? spin_beside : spin)) {
			/* Beside an application no longer than what it owes may wait: then it need not wake us for that. */
			rest(e, driving ? now + UR_ASIDE_NS : UR_TIME_NEVER, &nap);
		}
	}
}

static void report_start(struct ur_engine *e, int err)
{
	if (err)
		fprintf(stderr, "uroce: %s\n", ur_engine_error());
	pthread_mutex_lock(&e->start_lock);
	e->start_err = err;
	snprintf(e->start_text, sizeof(e->start_text), "%s", ur_engine_error());
	__atomic_store_n(&e->state, err ? UR_ENGINE_FAILED : UR_ENGINE_RUNNING, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&e->start_cond);
	pthread_mutex_unlock(&e->start_lock);
}

static int open_capture(struct ur_engine *e)
{
	int err;

	if (!e->cfg.capture[0] || e->nic->capture)
		return 0;
	err = ur_capture_open(e->cfg.capture, e->info.ifname, ur_engine_now(), &e->nic->capture);
	if (err)
		ur_engine_set_error("cannot write the capture file '%s': %s", e->cfg.capture, strerror(err));
	return err;
}

/*
 * It works for microseconds at a time while others wait, perhaps in a loop on the same CPU. Linux 6.12 and later lets a thread that asks
 * for short slices begin before one with longer ones, for the same share of the CPU; older ones ignore it. (sched(7), sched_setattr(2))
 */
static void ask_for_short_slices(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = {.size = sizeof(attr)};

	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) || attr.policy != SCHED_OTHER)
		return;
	attr.runtime = SLICE_NS;
	syscall(SYS_sched_setattr, 0, &attr, 0);
}

static void *progress_main(void *arg)
{
	struct ur_engine *e = arg;
	struct ur_port *port;
	int err = open_capture(e);

	if (!err)
		err = ur_device_open_port(e, &port);
	if (!err) {
		pthread_mutex_lock(&e->shard);
		ur_nic_attach(e->nic, port);
		pthread_mutex_unlock(&e->shard);
		if (e->local)
			ur_local_announce(e->local);
		if (e->registry)
			ur_registry_started(e->registry, e->info.port);
	}
	ask_for_short_slices();
	report_start(e, err);
	if (!err)
		progress_loop(e);
	return NULL;
}

int ur_progress_start(struct ur_engine *e)
{
	sigset_t all, old;
	int err;

	if (e->cfg.counters[0])
		ur_counters_on_signal(e->cfg.counters, &e->nic->counters);
	sigfillset(&all); /* the application's signals are for the application's threads */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&e->progress, NULL, progress_main, e);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!err)
		pthread_setname_np(e->progress, "uroce");
	return err;
}
