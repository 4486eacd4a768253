/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce.h: what only uroce has. RDMA itself is done through <infiniband/verbs.h> and <rdma/rdma_cma.h>, unchanged.
 *
 * Errors: functions return 0 or a positive errno unless they say otherwise. After a failure uroce_error() has one sentence that says what
 * is wrong and what to do. errno itself is not set.
 *
 * Threads: any thread may call any function at any time, at the same time as others. None may be called from a signal handler, because they
 * take locks, or after the process has begun to exit. In the child of a fork they act on a device of the child's own, which the first call
 * that needs one opens.
 *
 * Units: counters are numbers of frames, packets or events, and bytes where the name ends with "bytes". Settings have the units that
 * uroce(5) names.
 */
#ifndef UROCE_H
#define UROCE_H

#include <stddef.h>
#include <stdint.h>

#include <uroce/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The version of the library that the program runs with, as "MAJOR.MINOR.PATCH", a constant string. UROCE_VERSION and UROCE_VERSION_MAJOR,
 * _MINOR and _PATCH are the version that it was compiled against.
 */
const char *uroce_version(void);
/*
 * The sentence about the last call of uroce that failed in this thread, or "" when none has; a call that succeeds leaves it. The pointer is
 * valid until the thread ends, the text until its next failing call. Never NULL.
 */
const char *uroce_error(void);

/*
 * Gives a setting (`uroce info --config` lists them) a value, which comes before its UROCE_* variable: uroce_config("dev", "eth0"). Both
 * strings are copied. Call it before the first verbs or rdmacm call. ENOENT for an unknown name, EINVAL for a bad value or NULL, EBUSY when
 * the device is open, ENOMEM.
 */
int uroce_config(const char *name, const char *value);
/*
 * Opens the device and starts its port now rather than at the first call that needs it. Returns when the port is ready or has failed, which
 * takes milliseconds on an interface of the kernel and may take seconds on a NIC; once it runs, at once. ENODEV when there is no such
 * interface or none can be chosen, EINVAL when the settings contradict one another, ESHUTDOWN when the process is ending, or an error of
 * opening the device or a socket. Opening the device is tried again by the next call, starting its port is not.
 */
int uroce_start(void);

/* The name of a counter, and what it counts: constant strings. Counters are numbered from 0; NULL past the last one. */
const char *uroce_counter_name(unsigned counter);
const char *uroce_counter_help(unsigned counter);
/*
 * Copies the first n counters and no more than there are, those of a device all of one moment, and of several their sums; values may be
 * NULL when n is 0. They count from 0 since the devices were opened and never decrease. Waits for the packets that another thread is
 * processing, some microseconds. Returns how many counters there are, or -1 when no device is open.
 */
int uroce_counters(uint64_t *values, unsigned n);

/*
 * Writes every frame sent and received to a pcapng file from now on, with times in nanoseconds. Opens the device if necessary. A file is
 * made, or emptied, with mode 0600; each further device has one of its own, "x.uroce1.pcapng" beside "x.pcapng". EBUSY when a capture is
 * running, EINVAL when path is NULL, or an error of opening the file, or of opening the device as uroce_start.
 */
int uroce_capture_start(const char *path);
/* Ends the capture and closes the file. ENOENT when none is running, or the first error of writing: frames after it are missing. */
int uroce_capture_stop(void);

/*
 * Fault injection on the packets of this process, of all its devices, including those to and from processes of the same host; it takes
 * effect at once and replaces what was set before. Opens the device if necessary. `spec` is a comma-separated list of drop=P, dup=P,
 * reorder=P, corrupt=P with P as a probability ("0.01" or "1%"), dir=tx|rx|both (default both) and seed=N, and up to eight rules, which
 * name packets: an action (drop, dup, delay, corrupt, mark), a direction (tx, rx, both) and conditions (opcode=, qpn=, psn=, nth=, times=,
 * and delay= of a delay, a number with us, ms or s), with blanks between them: "drop tx opcode=READ_RESP_MIDDLE nth=3". "", "off" or NULL
 * ends it. EINVAL for a spec that cannot be understood, or an error of opening the device as uroce_start.
 */
int uroce_fault(const char *spec);

#ifdef __cplusplus
}
#endif
#endif
