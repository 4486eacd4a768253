/* SPDX-License-Identifier: BSD-3-Clause */
/* What uroce.h promises, and the process's end. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/counters_file.h"
#include "engine/engine_priv.h"
#include "engine/output.h"
#include "uroce/uroce.h"

#define EXPORT __attribute__((visibility("default")))

#define EXIT_TRIES 5
#define EXIT_FETCH_US 20000
#define EXIT_TRY_NS (10 * UR_NS_PER_MS)
#define EXIT_WAIT_NS UR_NS_PER_S /* the progress thread may wait for a CPU */

EXPORT const char *uroce_version(void)
{
	return UROCE_VERSION;
}

EXPORT const char *uroce_error(void)
{
	return ur_engine_error();
}

EXPORT int uroce_config(const char *name, const char *value)
{
	char err[256];
	int r;

	if (!name || !value)
		return EINVAL;
	if (ur_engine_current()) {
		ur_engine_set_error("setting %s comes too late: set it before the first verbs or rdmacm call", name);
		return EBUSY;
	}
	r = ur_config_set(name, value, err, sizeof(err));
	if (r)
		ur_engine_set_error("%s", err);
	return r;
}

EXPORT int uroce_start(void)
{
	struct ur_engine *e;
	int err = ur_engine_open(&e);

	return err ? err : ur_engine_start(e);
}

EXPORT const char *uroce_counter_name(unsigned counter)
{
	return ur_counter_name((enum ur_counter)counter);
}

EXPORT const char *uroce_counter_help(unsigned counter)
{
	return ur_counter_help((enum ur_counter)counter);
}

EXPORT int uroce_counters(uint64_t *values, unsigned n)
{
	struct ur_engine *e = ur_engine_current();
	struct ur_nic *nic;

	if (!e)
		return -1;
	nic = ur_engine_lock(e);
	memcpy(values, nic->counters.v, (n < UR_C_COUNT ? n : UR_C_COUNT) * sizeof(*values));
	ur_engine_unlock(e);
	return UR_C_COUNT;
}

EXPORT int uroce_capture_start(const char *path)
{
	struct ur_engine *e;
	struct ur_nic *nic;
	int err = path ? ur_engine_open(&e) : EINVAL;

	if (err)
		return err;
	nic = ur_engine_lock(e);
	err = nic->capture ? EBUSY : ur_capture_open(path, e->info.ifname, nic->now, &nic->capture);
	ur_engine_unlock(e);
	if (err)
		ur_engine_set_error("cannot capture to '%s': %s", path, err == EBUSY ? "a capture runs already" : ur_output_reason(err));
	return err;
}

EXPORT int uroce_capture_stop(void)
{
	struct ur_engine *e = ur_engine_current();
	struct ur_capture *c;
	struct ur_nic *nic;

	if (!e)
		return ENOENT;
	nic = ur_engine_lock(e);
	c = nic->capture;
	nic->capture = NULL;
	ur_engine_unlock(e);
	return c ? ur_capture_close(c) : ENOENT;
}

EXPORT int uroce_fault(const char *text)
{
	struct ur_faults *fresh = NULL, *old;
	struct ur_fault_spec spec;
	struct ur_engine *e;
	struct ur_nic *nic;
	char why[256];
	bool off = !text || !*text || !strcmp(text, "off");
	int err = ur_engine_open(&e);

	if (!err && !off && (err = ur_fault_parse(text, &spec, why, sizeof(why))))
		ur_engine_set_error("%s", why);
	if (!err && !off)
		err = ur_faults_create(&spec, e->nic, &fresh);
	if (err)
		return err;
	nic = ur_engine_lock(e);
	old = nic->faults;
	nic->faults = fresh;
	if (old)
		ur_faults_destroy(old);
	ur_engine_unlock(e);
	return 0;
}

/* --- the end of the process --- */

static void write_counters(struct ur_engine *e)
{
	int err;

	ur_counters_renew_end();
	err = ur_counters_write(e->cfg.counters, &e->nic->counters);
	if (err)
		fprintf(stderr, "uroce: cannot write the counters to '%s': %s\n", e->cfg.counters, strerror(err));
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

	return pthread_mutex_timedlock(&e->shard, &ts) == 0;
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
		waiting = ur_cm_shutdown(nic->cm, tries > 0, nic->now);
		do {
			ur_nic_poll(nic, ur_engine_now());
			waiting = ur_cm_shutdown(nic->cm, false, nic->now);
		} while ((waiting || ur_nic_next(nic) <= nic->now) && nic->now < until);
	}
}

/* Tells peers that connections end, lets the last frames out, and gives back what outlives a process. Keeps the lock: nobody uses the
 * engine any more. */
__attribute__((destructor)) static void end_of_process(void)
{
	struct ur_engine *e = ur_engine_current();
	bool running;

	if (!e)
		return;
	running = ur_engine_started(e);
	atomic_store(&e->foreign, true); /* destructors that run after this one find a closed device, not a held lock */
	__atomic_store_n(&e->state, UR_ENGINE_STOPPED, __ATOMIC_RELEASE);
	if ((running && !stop_progress(e)) || !lock_at_exit(e))
		return;
	if (e->nic->port) {
		ur_queue_enter(e->nic->port->queue);
		ur_nic_end_mcast(e->nic, ur_engine_now());
		say_goodbye(e->nic);
		if (e->info.owned)
			usleep(EXIT_FETCH_US); /* a port in shared memory takes with it what the peer has not fetched yet */
	}
	if (e->cfg.counters[0])
		write_counters(e);
	if (e->nic->capture)
		ur_capture_close(e->nic->capture);
	e->nic->capture = NULL;
	if (e->tracer)
		ur_tracer_close(e->tracer);
	e->tracer = NULL;
	if (e->nic->port)
		ur_device_close_port(e);
	if (e->registry)
		ur_registry_close(e->registry);
	e->registry = NULL;
}
