/* SPDX-License-Identifier: BSD-3-Clause */
/* What uroce.h promises. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "capture/output.h"
#include "engine/internal.h"
#include "uroce/uroce.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT const char *uroce_version(void)
{
	return UR_VERSION;
}

EXPORT const char *uroce_error(void)
{
	return ur_engine_error();
}

EXPORT int uroce_config(const char *name, const char *value)
{
	if (!name || !value) {
		ur_engine_set_error("a setting needs a name and a value: neither may be NULL");
		return EINVAL;
	}
	return ur_engine_configure(name, value);
}

EXPORT int uroce_start(void)
{
	struct ur_engine *e;
	int err = ur_engine_open(&e);

	for (; !err && e; e = ur_engine_next(e))
		err = ur_engine_start(e);
	return err;
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
	struct ur_counters sum;

	n = n < UR_C_COUNT ? n : UR_C_COUNT;
	if (!e) {
		ur_engine_set_error("no counters yet: make a verbs or rdmacm call, or call uroce_start, first");
		return -1;
	}
	if (n)
		memset(values, 0, n * sizeof(*values));
	for (; e; e = ur_engine_next(e)) {
		ur_engine_lock_all(e);
		ur_engine_sum_counters(e, &sum);
		ur_engine_unlock_all(e);
		for (unsigned i = 0; i < n; i++)
			values[i] += sum.v[i];
	}
	return UR_C_COUNT;
}

/* --- capture --- */

static pthread_mutex_t capturing = PTHREAD_MUTEX_INITIALIZER; /* one capture at a time */

static bool is_capturing(struct ur_engine *e)
{
	bool yes = ur_engine_lock(e)->capture;

	ur_engine_unlock(e);
	return yes;
}

/* The file is opened without the NIC, since that may take its time. */
static int start_capture(struct ur_engine *e, const char *file)
{
	char path[PATH_MAX];
	struct ur_capture *c;
	int err = 0;

	if (snprintf(path, sizeof(path), "%s", file) >= (int)sizeof(path))
		err = ENAMETOOLONG;
	err = err ? err : ur_engine_name_file(path, sizeof(path), e->index);
	err = err ? err : is_capturing(e) ? EBUSY : ur_capture_open(path, e->info.ifname, ur_engine_now(), &c);
	if (!err) {
		ur_capture_read_clock(c);
		ur_capture_count(c, &e->nic->counters);
		ur_engine_set_capture(e, c);
	}
	return err;
}

/* 0 where none is running; *ran says whether one was. */
static int stop_capture(struct ur_engine *e, bool *ran)
{
	struct ur_capture *c = ur_engine_set_capture(e, NULL);
	uint64_t lost;

	*ran |= c != NULL;
	return c ? ur_capture_close(c, &lost) : 0;
}

static int stop_all(struct ur_engine *e, const struct ur_engine *end, bool *ran)
{
	int err = 0;

	*ran = false;
	for (; e != end; e = ur_engine_next(e)) {
		int failed = stop_capture(e, ran);

		err = err ? err : failed;
	}
	return err;
}

EXPORT int uroce_capture_start(const char *path)
{
	struct ur_engine *all, *e;
	bool ran;
	int err;

	if (!path) {
		ur_engine_set_error("a capture needs a file: the path must not be NULL");
		return EINVAL;
	}
	err = ur_engine_open(&all);
	if (err)
		return err;
	pthread_mutex_lock(&capturing);
	for (e = all; e; e = ur_engine_next(e)) {
		err = start_capture(e, path);
		if (err)
			break;
	}
	if (err)
		stop_all(all, e, &ran);
	pthread_mutex_unlock(&capturing);
	if (err)
		ur_engine_set_error("cannot capture to '%s': %s", path,
				    err == EBUSY ? "a capture is already running" : ur_output_reason(err));
	return err;
}

EXPORT int uroce_capture_stop(void)
{
	bool ran;
	int err;

	err = stop_all(ur_engine_current(), NULL, &ran);
	if (err)
		ur_engine_set_error("the capture is incomplete: %s", ur_output_reason(err));
	if (ran)
		return err;
	ur_engine_set_error("no capture is running: start one with uroce_capture_start first");
	return ENOENT;
}

/* --- faults --- */

EXPORT int uroce_fault(const char *text)
{
	bool off = !text || !*text || !strcmp(text, "off");
	struct ur_fault_spec spec;
	struct ur_engine *e;
	char why[512];
	int err = ur_engine_open(&e);

	if (!err && !off && (err = ur_fault_parse(text, &spec, why, sizeof(why))))
		ur_engine_set_error("%s", why);
	if (err)
		return err;
	for (; e && !err; e = ur_engine_next(e))
		err = ur_engine_set_faults(e, off ? NULL : &spec);
	if (err)
		ur_engine_set_error("cannot inject the faults '%s': %s", text ? text : "", strerror(err));
	return err;
}

/* In every process that has the library; where no engine was opened it does nothing. */
__attribute__((destructor)) static void end_of_process(void)
{
	ur_ending_exit();
}
