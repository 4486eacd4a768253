/* SPDX-License-Identifier: BSD-3-Clause */
/* What uroce.h promises. */
#include <errno.h>
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

	if (!e) {
		ur_engine_set_error("no counters yet: make a verbs or rdmacm call, or call uroce_start, first");
		return -1;
	}
	nic = ur_engine_lock(e);
	if (n)
		memcpy(values, nic->counters.v, (n < UR_C_COUNT ? n : UR_C_COUNT) * sizeof(*values));
	ur_engine_unlock(e);
	return UR_C_COUNT;
}

static bool is_capturing(struct ur_engine *e)
{
	bool capturing = ur_engine_lock(e)->capture;

	ur_engine_unlock(e);
	return capturing;
}

/* The file is opened without the NIC, since that may take its time. */
EXPORT int uroce_capture_start(const char *path)
{
	static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER; /* one capture at a time */
	struct ur_capture *c;
	struct ur_engine *e;
	struct ur_nic *nic;
	int err;

	if (!path) {
		ur_engine_set_error("a capture needs a file: the path must not be NULL");
		return EINVAL;
	}
	err = ur_engine_open(&e);
	if (err)
		return err;
	pthread_mutex_lock(&starting);
	err = is_capturing(e) ? EBUSY : ur_capture_open(path, e->info.ifname, ur_engine_now(), &c);
	if (!err) {
		nic = ur_engine_lock(e);
		ur_capture_read_clock(c);
		ur_capture_count(c, &nic->counters);
		ur_nic_set_capture(nic, c);
		ur_engine_unlock(e);
	}
	pthread_mutex_unlock(&starting);
	if (err)
		ur_engine_set_error("cannot capture to '%s': %s", path,
				    err == EBUSY ? "a capture is already running" : ur_output_reason(err));
	return err;
}

EXPORT int uroce_capture_stop(void)
{
	struct ur_engine *e = ur_engine_current();
	struct ur_capture *c = NULL;
	uint64_t lost;
	int err;

	if (e) {
		struct ur_nic *nic = ur_engine_lock(e);

		c = nic->capture;
		ur_nic_set_capture(nic, NULL);
		ur_engine_unlock(e);
	}
	err = c ? ur_capture_close(c, &lost) : ENOENT;
	if (err)
		ur_engine_set_error(c ? "the capture is incomplete: %s" : "no capture is running: start one with uroce_capture_start first",
				    ur_output_reason(err));
	return err;
}

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
	err = ur_nic_set_faults(ur_engine_lock(e), off ? NULL : &spec);
	ur_engine_unlock(e);
	if (err)
		ur_engine_set_error("cannot inject the faults '%s': %s", text ? text : "", strerror(err));
	return err;
}

/* In every process that has the library; where no engine was opened it does nothing. */
__attribute__((destructor)) static void end_of_process(void)
{
	ur_ending_exit();
}
