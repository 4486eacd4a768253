/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce.h: what is uroce's alone. RDMA itself is spoken through <infiniband/verbs.h> and <rdma/rdma_cma.h>, unchanged.
 *
 * Functions return 0 or a positive errno unless they say otherwise; uroce_error() then holds one sentence that says what is wrong and what
 * to do.
 */
#ifndef UROCE_H
#define UROCE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0" */
const char *uroce_version(void);
/* The last error's sentence in this thread, or "". */
const char *uroce_error(void);

/*
 * Sets one knob (`uroce info --config` lists them) in place of the UROCE_* variable, before the first verbs or rdmacm call:
 * uroce_config("dev", "eth0"). ENOENT for an unknown name, EINVAL for a bad value, EBUSY once the engine is open.
 */
int uroce_config(const char *name, const char *value);
/* Opens the device and starts the port now rather than at the first call that needs it. */
int uroce_start(void);

/* Counters are numbered from 0; NULL past the last one. */
const char *uroce_counter_name(unsigned counter);
const char *uroce_counter_help(unsigned counter);
/* Copies the first n counters; returns how many there are, or -1 when no engine is open. */
int uroce_counters(uint64_t *values, unsigned n);

/* Writes every frame sent and received to a pcapng file from now on. EBUSY when a capture runs. */
int uroce_capture_start(const char *path);
/* Ends the capture and closes the file. ENOENT when none runs. */
int uroce_capture_stop(void);

/*
 * Fault injection on the packets of this process, those to and from processes of the same host included. `spec` is a comma separated list
 * of drop=P, dup=P, reorder=P, corrupt=P with P as a probability ("0.01" or "1%"), dir=tx|rx|both (default both) and seed=N, and up to
 * eight rules, which name packets: an action (drop, dup, delay, corrupt, mark), a direction (tx, rx, both) and conditions (opcode=, qpn=,
 * psn=, nth=, times=, and delay= of a delay), with blanks between them: "drop tx opcode=READ_RESP_MIDDLE nth=3". "", "off" or NULL ends it.
 * EINVAL, or an error of opening the device.
 */
int uroce_fault(const char *spec);

#ifdef __cplusplus
}
#endif
#endif
