/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of the process: by exit, and by a signal. A killed process cannot say goodbye itself: its keeper does (lib/keeper/keeper.c). */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "capture/output.h"
#include "engine/internal.h"
#include "observe/counters_file.h"

#define EXIT_TRIES 5
#define EXIT_TRY_NS (10 * UR_NS_PER_MS)
#define EXIT_WAIT_NS UR_NS_PER_S /* the progress thread may wait for a CPU */

/* --- exit --- */

static bool counted(const struct ur_counters *c)
{
	for (unsigned i = 0; i < UR_C_COUNT; i++)
		if (c->v[i])
			return true;
	return false;
}

/* The program that `uroce run --counters -` became would otherwise end without the counters that its user waits for. */
static void explain_no_counters(void)
{
	const char *pid = secure_getenv("UROCE_RUN_PID"), *counters = secure_getenv("UROCE_COUNTERS");

	if (pid && counters && !strcmp(counters, "-") && atoi(pid) == getpid())
		fprintf(stderr, "uroce: no counters: process %d (%s) made no RDMA call\n", (int)getpid(), program_invocation_short_name);
}

const char *ur_engine_counters_title(const struct ur_engine *e, char text[UR_ENGINE_TITLE])
{
	if (!e->index && !ur_engine_next(e))
		return NULL;
	snprintf(text, UR_ENGINE_TITLE, "uroce: counters of %s (%s):\n", e->info.name, e->info.ifname);
	return text;
}

static bool nothing_counted(void)
{
	for (const struct ur_engine *e = ur_engine_current(); e; e = e->next)
		if (counted(&e->nic->counters))
			return false;
	return true;
}

static void write_counters(struct ur_engine *e)
{
	char title[UR_ENGINE_TITLE];
	bool to_stderr = !strcmp(e->cfg.counters, "-");
	struct ur_counters sum;
	int err;

	ur_counters_renew_end(e->index);
	ur_engine_sum_counters(e, &sum);
	err = ur_counters_write(e->cfg.counters, ur_engine_counters_title(e, title), &sum);
	if (!err && to_stderr && !ur_engine_next(e) && nothing_counted())
		fprintf(stderr, "uroce: all counters are zero: process %d sent and received nothing\n", (int)getpid());
	if (err)
		fprintf(stderr, "uroce: cannot write the counters to '%s': %s\n", e->cfg.counters, ur_output_reason(err));
}

static void close_capture(struct ur_engine *e)
{
	uint64_t lost;
	int err = ur_capture_close(e->nic->capture, &lost);
	char frames[48] = "";

	for (unsigned i = 0; i < atomic_load(&e->lanes); i++)
		ur_nic_set_capture(e->at[i]->nic, NULL);
	if (lost)
		snprintf(frames, sizeof(frames), ", %" PRIu64 " frame%s missing", lost, ur_plural(lost));
	if (err)
		fprintf(stderr, "uroce: the capture%s%s is incomplete%s: %s\n", e->cfg.capture[0] ? " " : "", e->cfg.capture, frames,
			ur_output_reason(err));
}

static struct timespec exit_deadline(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_nsec += (long)EXIT_WAIT_NS;
	if (ts.tv_nsec >= (long)UR_NS_PER_S) {
		ts.tv_nsec -= (long)UR_NS_PER_S;
		ts.tv_sec++;
	}
	return ts;
}

/* Other threads may still run, and one of them may hold the lock for good when exit was called from a signal handler. */
static bool lock_at_exit(struct ur_engine *e)
{
	struct timespec ts = exit_deadline();

	return pthread_mutex_timedlock(&e->nic_lock, &ts) == 0;
}

static bool stop_progress(struct ur_engine *e)
{
	struct timespec ts = exit_deadline();

	atomic_store(&e->stop, true);
	ur_progress_wake(e);
	return pthread_timedjoin_np(e->progress, NULL, &ts) == 0;
}

/* Nobody resends a DREQ once the process is gone, and a peer that never hears of it waits for long: so a few times, a few milliseconds
 * apart. */
static void say_goodbye(struct ur_nic *nic)
{
	unsigned waiting = 1;

	for (unsigned tries = 0; waiting && tries < EXIT_TRIES; tries++) {
		ur_time until;

		nic->now = ur_engine_now();
		until = nic->now + EXIT_TRY_NS;
		ur_cm_shutdown(nic->cm, tries > 0, nic->now);
		do {
			ur_nic_poll(nic, ur_engine_now());
			waiting = ur_cm_shutdown(nic->cm, false, nic->now);
		} while ((waiting || ur_nic_next(nic) <= nic->now) && nic->now < until);
	}
	ur_nic_flush_mads(nic);
}

/* Destructors that run after this one find a closed device, not a held lock. True when its progress thread has ended, or there was none. */
static bool stop_engine(struct ur_engine *e)
{
	bool running = ur_engine_started(e);

	atomic_store(&e->foreign, true);
	__atomic_store_n(&e->state, UR_ENGINE_STOPPED, __ATOMIC_RELEASE);
	return !running || stop_progress(e);
}

/* Lets the last frames out. */
static void leave_network(struct ur_engine *e)
{
	if (!e->nic->port)
		return;
	ur_queue_enter(e->nic->port->queue);
	ur_nic_end_mcast(e->nic, ur_engine_now());
	say_goodbye(e->nic);
	ur_nic_show_last_acks(e->nic, ur_engine_now());
}

/* Gives back what outlives a process. */
static void give_back(struct ur_engine *e)
{
	if (e->tracer)
		ur_tracer_close(e->tracer);
	e->tracer = NULL;
	if (e->nic->port && ur_engine_end_dma(e))
		ur_engine_port_close(e);
	if (e->registry)
		ur_registry_close(e->registry);
	e->registry = NULL;
}

/*
 * Tells peers that connections end. The lanes' locks are taken in their order, and kept: nobody uses the device any longer. Of what could
 * not be locked, because a thread holds it for good, everything stays as it is; it may record still.
 */
static void end_device(struct ur_engine *device)
{
	const unsigned n = atomic_load(&device->lanes);
	bool ended[UR_LANES] = {false}, all = true;

	for (unsigned i = 0; i < n; i++)
		ended[i] = stop_engine(device->at[i]);
	for (unsigned i = 0; i < n; i++) {
		ended[i] = ended[i] && lock_at_exit(device->at[i]);
		all &= ended[i];
	}
	for (unsigned i = n; i-- > 0;)
		if (ended[i])
			leave_network(device->at[i]);
	if (ended[0] && device->cfg.counters[0])
		write_counters(device);
	if (all && device->nic->capture)
		close_capture(device);
	for (unsigned i = n; i-- > 0;)
		if (ended[i])
			give_back(device->at[i]);
}

/* --- exit, by several threads --- */

/*
 * Before version 2.41 of glibc, a thread that calls exit while another is in it takes the handlers that are left, and ends the process
 * under the other's hands; some programs do so when a connection fails. So the engine is ended by the first thread that comes to the
 * library's destructor or to the handler below, and others wait.
 *
 * ld.so runs the constructor below, then libc registers the handler that runs all destructors, then main is called; handlers run from the
 * newest to the oldest, so ours runs after the destructors. Where the library is loaded by dlopen, it runs before them.
 */

#define PATIENCE_ROUNDS 3000 /* of a millisecond: more than the end of an engine takes, also when its locks are never released */
#define LEAD_NS (100 * UR_NS_PER_MS)
#define HANDLERS 8 /* threads that call exit at the same moment */

static struct {
	atomic_int thread;  /* the one that ends the engine */
	atomic_bool done;   /* or nobody waits for it any longer */
	atomic_bool waited; /* another thread has come */
} exiting;

/* A handler of no shared object: those of atexit(3) run with the destructors (Itanium C++ ABI, 3.3.5). */
extern int __cxa_atexit(void (*fn)(void *arg), void *arg, void *object);

static void last_handler(void *arg)
{
	(void)arg;
	ur_ending_exit();
}

/* Several, because a thread that finds none ends the process; and one more for each thread that has come. */
__attribute__((constructor)) static void register_last(void)
{
	for (unsigned i = 0; i < HANDLERS; i++)
		__cxa_atexit(last_handler, NULL, NULL);
}

static void wait_for_other_thread(void)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	unsigned rounds = 0;

	atomic_store(&exiting.waited, true);
	__cxa_atexit(last_handler, NULL, NULL);
	for (const struct ur_engine *e = ur_engine_current(); e; e = e->next)
		rounds += PATIENCE_ROUNDS;
	for (unsigned i = 0; i < rounds && !atomic_load(&exiting.done); i++)
		nanosleep(&ms, NULL);
	atomic_store(&exiting.done, true);
}

void ur_ending_exit(void)
{
	struct ur_engine *e = ur_engine_current();
	int thread = 0;

	if (!atomic_compare_exchange_strong(&exiting.thread, &thread, gettid())) {
		if (thread != gettid() && !atomic_load(&exiting.done))
			wait_for_other_thread();
		return;
	}
	if (!e)
		explain_no_counters();
	for (; e; e = ur_engine_next(e))
		end_device(e);
	atomic_store(&exiting.done, true);
	/* The thread that waited ends the process. This thread must not go on in glibc's list of handlers, of which the other has freed a
	 * part. */
	if (atomic_load(&exiting.waited))
		nanosleep(&(struct timespec){.tv_nsec = (long)LEAD_NS}, NULL);
}

void ur_ending_forked(void)
{
	atomic_store(&exiting.thread, 0);
	atomic_store(&exiting.done, false);
	atomic_store(&exiting.waited, false);
}

/* --- signals --- */

/*
 * They end a process that is a member of multicast groups. The kernel leaves those of its sockets (port udp); others are ours to leave.
 * The keeper would do so too, but it joins first, and it may be killed along with the process, as when a container ends. The handler may
 * do next to nothing; it has the progress thread send the leaves, which takes a moment, and then lets the signal have its way.
 */

#define PATIENCE_MS 1000 /* for the progress thread: it may wait for a lock whose holder will never run again, or for a CPU */
#define SEND_NS (10 * UR_NS_PER_MS)
#define BUSY_MS 20

static const int signals[] = {SIGHUP, SIGINT, SIGTERM};
#define SIGNALS (sizeof(signals) / sizeof(signals[0]))

static struct {
	struct ur_engine *first;
	pid_t pid; /* whose engines they are */
	struct sigaction old[SIGNALS];
	atomic_int sig;          /* that has come; 0: none */
	atomic_uint at_work;     /* engines whose progress thread has not served it yet */
	atomic_bool thread_ends; /* a progress thread will end the process itself: the handler should return */
	atomic_bool done;
} at_end;

/* What would have happened without us, once the signal is delivered again. */
static void restore(int sig)
{
	for (unsigned i = 0; i < SIGNALS; i++)
		if (signals[i] == sig)
			sigaction(sig, &at_end.old[i], NULL);
}

/* False when the progress thread wants us out of its way. */
static bool wait_done(void)
{
	const struct timespec ms = {.tv_nsec = 1000000};

	for (unsigned i = 0; i < PATIENCE_MS && !atomic_load(&at_end.done); i++) {
		if (atomic_load(&at_end.thread_ends))
			return false;
		nanosleep(&ms, NULL);
	}
	return true;
}

static bool ask_all(int sig)
{
	unsigned n = 0;

	atomic_store(&at_end.sig, sig);
	for (struct ur_engine *e = at_end.first; e; e = e->next)
		n += ur_engine_started(e);
	atomic_store(&at_end.at_work, n);
	for (struct ur_engine *e = at_end.first; e; e = e->next)
		if (ur_engine_started(e)) {
			atomic_store(&e->ending_asked, true);
			ur_progress_wake(e);
		}
	return n != 0;
}

/*
 * The thread that is interrupted waits here, so that the program does not see an interrupted system call before it ends; unless it is the
 * one that has the NIC's lock, which the progress thread needs.
 */
static void on_signal(int sig)
{
	int err = errno;
	bool ends = true;

	if (getpid() == at_end.pid && ask_all(sig))
		ends = wait_done();
	if (ends) {
		restore(sig);
		raise(sig); /* delivered when this returns */
	}
	errno = err;
}

bool ur_ending_asked(const struct ur_engine *e)
{
	return atomic_load_explicit(&e->ending_asked, memory_order_relaxed);
}

/* Nobody keeps the NIC for long, except for a thread that is interrupted in it: that one has to go on. */
static struct ur_nic *take_nic(struct ur_engine *e)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	struct ur_nic *nic = ur_engine_try(e);

	for (unsigned i = 0; i < BUSY_MS && !nic; i++) {
		nanosleep(&ms, NULL);
		nic = ur_engine_try(e);
	}
	if (nic)
		return nic;
	atomic_store(&at_end.thread_ends, true);
	return ur_engine_lock(e);
}

void ur_ending_serve(struct ur_engine *e)
{
	struct ur_nic *nic = take_nic(e);
	ur_time until = nic->now + SEND_NS;
	int sig;

	atomic_store(&e->ending_asked, false);

	ur_nic_end_mcast(nic, nic->now);
	do
		ur_nic_poll(nic, ur_engine_now());
	while (ur_nic_next(nic) <= nic->now && nic->now < until);
	if (nic->capture)
		ur_capture_flush(nic->capture);
	ur_engine_unlock(e);
	if (atomic_fetch_sub(&at_end.at_work, 1) > 1)
		return;
	sig = atomic_exchange(&at_end.sig, 0);
	atomic_store(&at_end.done, true);
	if (atomic_load(&at_end.thread_ends)) {
		restore(sig);
		kill(getpid(), sig);
	}
}

/* In a forked child that inherited the actions, the actions before them are still known. */
static void install(void)
{
	struct sigaction ours = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, old;

	at_end.first = ur_engine_current();
	at_end.pid = getpid();
	atomic_store(&at_end.done, false);
	atomic_store(&at_end.thread_ends, false);
	sigemptyset(&ours.sa_mask);
	for (unsigned i = 0; i < SIGNALS; i++) {
		if (sigaction(signals[i], NULL, &old) || old.sa_flags & SA_SIGINFO)
			continue;
		if (old.sa_handler != SIG_DFL && !ur_counters_handles(&old))
			continue;
		at_end.old[i] = old;
		sigaction(signals[i], &ours, NULL);
	}
}

void ur_engine_leave_at_signals(struct ur_engine *e)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	if (e->nic->routed)
		return;
	pthread_mutex_lock(&lock);
	if (at_end.pid != getpid())
		install();
	pthread_mutex_unlock(&lock);
}
