/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The progress thread: opens the port (EAL must not run on a thread of the application's), then polls the NIC while there is work, steps
 * aside while applications poll, and sleeps when nobody needs it.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/output.h"
#include "config/cpus.h"
#include "engine/catch.h"
#include "engine/internal.h"
#include "host/clock.h"
#include "host/limits.h"
#include "host/thread.h"
#include "observe/counters_file.h"

_Static_assert(UR_COUNTERS_FILES >= UR_DEVICES, "each device has a file of counters");

#define LOOK_EVERY UR_NS_PER_MS
#define LINK_EVERY (100 * UR_NS_PER_MS)
#define SLICE_NS (100 * UR_NS_PER_US) /* the shortest that there is */

void ur_progress_wake(struct ur_engine *e)
{
	uint64_t one = 1;

	atomic_store(&e->wake_at, 0);
	if (write(e->wake_fd, &one, sizeof(one)) < 0)
		return; /* the counter is full: it wakes anyway */
}

/* --- sleeping --- */

/*
 * A link that goes down, or an ICMP error, leaves an error on the port's socket, and the socket readable until somebody fetches it. False
 * when it does not go away.
 */
static bool clear_port_error(struct ur_engine *e, int fd)
{
	struct ur_queue *q = e->nic->port->queue;
	struct pollfd again = {.fd = fd};
	int err;
	socklen_t len = sizeof(err);

	if (q->ops->take_error) {
		ur_engine_lock(e);
		q->ops->take_error(q);
		ur_engine_unlock(e);
	}
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) == 0 && poll(&again, 1, 0) == 0;
}

/* True when the timer ended it. */
static bool sleep_until(struct ur_engine *e, ur_time until, bool on_port)
{
	struct pollfd fds[4] = {{.fd = e->wake_fd, .events = POLLIN},
				{.fd = e->monitor_fd, .events = POLLIN},
				{.fd = e->local ? ur_local_fd(e->local) : -1, .events = POLLIN}};
	nfds_t n = 3;
	ur_time now = ur_engine_now();
	struct timespec ts, *timeout = NULL;
	int ready;
	uint64_t drained;

	if (on_port)
		fds[n++] = (struct pollfd){.fd = ur_queue_wake_fd(e->nic->port->queue), .events = POLLIN};
	if (until != UR_TIME_NEVER) {
		ts = ur_timespec(until > now ? until - now : 0);
		timeout = &ts;
	}
	ready = ppoll(fds, n, timeout, NULL);
	if (ready <= 0)
		return ready == 0 && until > now;
	if (on_port && fds[3].revents & (POLLERR | POLLHUP | POLLNVAL))
		e->port_error = !clear_port_error(e, fds[3].fd);
	if (fds[0].revents && read(e->wake_fd, &drained, sizeof(drained)) < 0)
		return false;
	if (fds[1].revents)
		ur_engine_read_monitor(e);
	return false;
}

/*
 * Announces a sleep. False when something happened meanwhile that forbids it. A thread that rings, or is about to block, does so before a
 * fence of its own and reads what is announced here after it: one of the two sees the other.
 */
static bool announce(struct ur_engine *e, ur_time until, enum ur_poller_act act)
{
	bool aside = act == UR_POLLER_ASIDE;

	atomic_store(&e->aside, aside);
	atomic_store(&e->wake_at, until);
	atomic_thread_fence(memory_order_seq_cst);
	return ur_poller_may_sleep(act, atomic_load(&e->driven_at), ur_nic_rang(e->nic)) && !atomic_load(&e->stop) && !ur_ending_asked(e) &&
	       (aside || !e->local || ur_local_sleep(e->local, true));
}

static void awake(struct ur_engine *e)
{
	if (e->local)
		ur_local_sleep(e->local, false);
	atomic_store(&e->wake_at, 0);
	atomic_store(&e->aside, false);
}

/* How a sleep went. */
struct slept {
	bool did;
	ur_time timer; /* that ended it; 0: something else did */
};

/* An application polls, until `until` at least. */
static struct slept step_aside(struct ur_engine *e, ur_time until)
{
	struct slept s = {.did = announce(e, until, UR_POLLER_ASIDE)};

	if (s.did && sleep_until(e, until, false))
		s.timer = until;
	awake(e);
	return s;
}

/*
 * Until when, is read and announced under the NIC: a thread that holds it later and has something due earlier sees that it must wake us. A
 * port that reports an error cannot wake us.
 */
static struct slept rest(struct ur_engine *e, const struct ur_poller *p)
{
	bool on_port = !e->port_error && ur_queue_wake_fd(e->nic->port->queue) >= 0;
	ur_time now = ur_engine_now(), until;
	struct slept s;

	pthread_mutex_lock(&e->nic_lock);
	until = ur_min_time(ur_nic_next(e->nic), ur_engine_publish_at(e));
	until = ur_min_time(until, atomic_load(&e->steer_at));
	until = ur_poller_until(p, now, atomic_load(&e->driven_at), until, on_port);
	if (e->info.owned)
		until = ur_min_time(until, now + LINK_EVERY);
	s = (struct slept){.did = until > now && announce(e, until, UR_POLLER_SLEEP)};
	s.did = !ur_engine_give_up(e) && s.did;
	if (s.did && sleep_until(e, until, on_port))
		s.timer = until;
	awake(e);
	return s;
}

/* --- looking --- */

/* Takes the NIC for a look. NULL when an application that drives has it: it sees what we would. */
static struct ur_nic *take_nic(struct ur_engine *e, bool company)
{
	if (company)
		return ur_engine_try(e);
	while (atomic_load_explicit(&e->waiters, memory_order_relaxed))
		sched_yield(); /* let those pass who wait for the lock */
	return ur_engine_lock(e);
}

static void poll_nic(struct ur_engine *e, struct ur_poller *p, ur_time now, ur_time driven)
{
	struct ur_nic *nic = take_nic(e, ur_poller_in_company(now, driven));
	bool lazy;
	unsigned n;

	if (!nic) {
		ur_poller_polled(p, now, driven, 0);
		return;
	}
	now = nic->now;
	driven = atomic_load_explicit(&e->driven_at, memory_order_relaxed);
	lazy = ur_poller_lazy(p, now, driven);
	ur_engine_flushed(e, now);
	ur_reply_sends(&e->reply, &e->costs, now, false);
	n = lazy ? ur_nic_poll_lazy(nic, now) : ur_nic_poll(nic, now);
	ur_engine_leave(e, now, lazy);
	ur_poller_polled(p, now, driven, n);
}

bool ur_engine_lost_cpu(void)
{
	static __thread long before;
	struct rusage ru;
	long times;

	if (getrusage(RUSAGE_THREAD, &ru))
		return false;
	times = ru.ru_nivcsw - before;
	before = ru.ru_nivcsw;
	return times != 0;
}

/* Before a look. Was it another thread that made us late, or what is below us (the hypervisor, interrupts)? */
static void note_lost_cpu(struct ur_poller *p, ur_time now)
{
	if (ur_unlikely(ur_poller_is_late(p, now)) && ur_engine_lost_cpu())
		ur_poller_lost_cpu(p, now);
}

/* --- the loop --- */

/* A port that wakes us when it is asked to, but not for what is there already: unlocking looks for that. */
static struct slept rest_armed(struct ur_engine *e, const struct ur_poller *p)
{
	struct ur_queue *q = e->nic->port->queue;
	struct slept s;

	if (!q->ops->arm)
		return rest(e, p);
	q->ops->arm(q, true);
	ur_engine_lock(e);
	ur_engine_unlock(e);
	s = rest(e, p);
	q->ops->arm(q, false);
	return s;
}

/* Steps aside or sleeps until there is something to look for. */
static void go_to_sleep(struct ur_engine *e, struct ur_poller *p, ur_time now, ur_time driven, bool aside)
{
	struct slept s = aside ? step_aside(e, ur_poller_until(p, now, driven, UR_TIME_NEVER, true)) : rest_armed(e, p);
	ur_time woke = ur_engine_now();

	if (s.timer)
		ur_costs_woke(&e->costs, now, s.timer, woke);
	ur_poller_woke(p, woke, atomic_load_explicit(&e->driven_at, memory_order_relaxed), s.did);
}

static void steer_again(struct ur_engine *e)
{
	atomic_store(&e->steer_at, UR_TIME_NEVER);
	ur_engine_lock(e);
	ur_engine_port_listens(e); /* may put it off once more */
	ur_engine_unlock(e);
}

static void serve_farewells(struct ur_engine *e)
{
	const char *why = ur_farewells_serve(e->farewells);

	if (ur_unlikely(why != NULL) && strcmp(e->cfg.log, "error"))
		fprintf(stderr, "uroce: no keeper informs the peers if this process is killed, because %s\n", why);
}

static void progress_loop(struct ur_engine *e)
{
	struct ur_poller p;
	ur_time look_at = 0, link_at = 0;

	ur_engine_lost_cpu(); /* so far */
	ur_poller_init(&p, &e->costs, e->cfg.spin_us * UR_NS_PER_US, ur_thread_cpus(), ur_engine_now());
	while (!atomic_load_explicit(&e->stop, memory_order_relaxed)) {
		ur_time now = ur_engine_now(), driven = atomic_load_explicit(&e->driven_at, memory_order_relaxed);
		enum ur_poller_act act = ur_poller_next(&p, now, driven);

		if (ur_ending_asked(e))
			ur_ending_serve(e);
		ur_catch_look(now);
		if (ur_unlikely(now >= look_at)) {
			ur_tracer_check_probes(e->tracer, e);
			look_at = now + LOOK_EVERY;
		}
		if (ur_unlikely(now >= link_at)) {
			if (e->info.owned && e->nic->port->ops->link_up)
				ur_engine_check_link(e);
			link_at = now + LINK_EVERY;
		}
		if (ur_unlikely(now >= atomic_load_explicit(&e->steer_at, memory_order_relaxed)))
			steer_again(e);
		ur_engine_publish(e, now);
		if (e->farewells)
			serve_farewells(e);
		if (ur_unlikely(atomic_load_explicit(&e->errands, memory_order_relaxed) != NULL))
			ur_engine_settle(e);
		if (act == UR_POLLER_SLEEP || act == UR_POLLER_ASIDE) {
			go_to_sleep(e, &p, now, driven, act == UR_POLLER_ASIDE);
			continue;
		}
		if (act == UR_POLLER_YIELD) {
			sched_yield();
			now = ur_engine_now();
		}
		note_lost_cpu(&p, now);
		poll_nic(e, &p, now, driven);
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
	struct ur_capture *c;
	int err;

	if (!e->cfg.capture[0] || e->nic->capture)
		return 0;
	err = ur_capture_open(e->cfg.capture, e->info.ifname, ur_engine_now(), &c);
	if (!err) {
		ur_capture_read_clock(c);
		ur_capture_count(c, &e->nic->counters);
		ur_nic_set_capture(e->nic, c);
	} else {
		ur_engine_set_error("cannot write the capture file '%s': %s", e->cfg.capture, ur_output_reason(err));
	}
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

/* Sleeps of tens of microseconds would otherwise last 50 longer, in which the kernel looks for others to end together with them. */
static void ask_for_exact_sleeps(void)
{
	prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul);
}

/* The other processes come before the port, because some ports are shared with them. */
static void meet_others(struct ur_engine *e)
{
	int err = 0;

	pthread_mutex_lock(&e->nic_lock);
	if (e->registry)
		err = ur_registry_join(e->registry);
	pthread_mutex_unlock(&e->nic_lock);
	if (err)
		fprintf(stderr, "uroce: this process and others that use the device cannot find each other: %s\n", ur_limit_reason(err));
}

static void attach(struct ur_engine *e, struct ur_port *port)
{
	struct ur_publisher *publisher = NULL;

	ur_publisher_open(e->info.name, e->lane, e->info.ifname, e->kind->name, port, ur_engine_now(),
			  &publisher); /* without it `uroce top` sees nothing */
	pthread_mutex_lock(&e->nic_lock);
	ur_nic_attach(e->nic, port);
	e->publisher = publisher;
	if (publisher)
		atomic_store(&e->publish_at, 0);
	if (e->local)
		ur_local_announce(e->local);
	if (e->registry)
		ur_registry_started(e->registry, e->kind->name);
	pthread_mutex_unlock(&e->nic_lock);
}

static void *progress_main(void *arg)
{
	struct ur_engine *e = arg;
	struct ur_port *port;
	int err = open_capture(e);

	if (!err)
		meet_others(e);
	if (!err)
		err = ur_engine_port_open(e, &port);
	if (!err) {
		attach(e, port);
		ur_engine_look_again(e); /* what changed before there was a monitor */
	}
	ask_for_short_slices();
	ask_for_exact_sleeps();
	report_start(e, err);
	if (!err)
		progress_loop(e);
	return NULL;
}

int ur_progress_bind(struct ur_engine *e)
{
	cpu_set_t cpus;
	int err;

	ur_cpus_parse(e->cfg.cpus, &cpus);
	err = ur_thread_bind(&cpus);
	if (err && err != EINVAL)
		ur_engine_set_error("no thread can be started, as the setting cpus wants one: %s", ur_limit_reason(err));
	else if (err)
		ur_engine_set_error("setting cpus is '%s', but this process may use none of these CPUs (%s): 'taskset -cp $$' lists some",
				    e->cfg.cpus, strerror(err));
	return err;
}

int ur_progress_start(struct ur_engine *e)
{
	char title[UR_ENGINE_TITLE];

	if (e->cfg.counters[0]) {
		ur_counters_on_signal(e->index, e->cfg.counters, ur_engine_counters_title(e, title), &e->nic->counters);
		ur_counters_renew(e->index); /* without that thread they are still written at the end */
	}
	if (ur_catch_start() && e->local && e->cfg.one_copy)
		ur_local_map(e->local);
	return ur_thread_start(&e->progress, "uroce", 0, progress_main, e); /* its signals: see ur_catch_admit */
}
