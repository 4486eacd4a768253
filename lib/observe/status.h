/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a process publishes of its device and QPs. struct ur_status is the layout of a piece of shared memory that a process fills
 * (publish.c) and that anyone may copy who may open /proc/PID/fd: processes of the same user, and root. What `uroce top` and `uroce info`
 * make of it is lib/watch's. It is gone when the process is. An onlooker copies it whole, and
 * believes no word of the copy: ur_status_check makes of it what can be used without fear.
 */
#ifndef UR_STATUS_H
#define UR_STATUS_H

#include <stdatomic.h>

#include "base/base.h"
#include "base/counters.h"

#define UR_STATUS_FILE "uroce-status" /* what memfd_create(2) calls it */
#define UR_STATUS_MAGIC 0x7375746174536f72ull
#define UR_STATUS_LAYOUT 2 /* another one for each change of the structs below that does not change their sizes */
#define UR_STATUS_QPS 1024 /* those beyond are counted and not shown */
#define UR_STATUS_COUNTERS 192
#define UR_STATUS_LANES 16
#define UR_STATUS_TEXT 32
#define UR_STATUS_USES 96
#define UR_STATUS_EVERY (250 * UR_NS_PER_MS) /* how often it is renewed while something changes; otherwise it is not */

struct ur_status_qp {
	uint32_t qpn; /* 0: none */
	uint32_t dqpn;
	uint8_t type, state; /* enum ibv_qp_type, enum ibv_qp_state */
	uint8_t connected;   /* the addresses are there */
	uint8_t zero;
	uint32_t mtu; /* bytes */
	struct ur_gid local, peer;
	ur_time at;                     /* of these values, CLOCK_MONOTONIC */
	uint32_t srtt, rttvar, rtt_min; /* ns; 0: not known */
	uint32_t window, in_flight;     /* packets */
	uint32_t unfinished;            /* requests */
	uint32_t rate_kbps;             /* that congestion holds it to; 0: none */
	uint32_t zero2;
	struct ur_qp_counters n;
};

struct ur_status {
	uint64_t magic;
	uint32_t layout, qp_bytes;
	_Atomic uint32_t changes; /* odd while the owner writes */
	int32_t pid;              /* as the process sees itself: a forked child that inherited this is another one */
	uint32_t qps;             /* entries in use */
	uint32_t total;           /* QPs that there are */
	ur_time at, started;      /* CLOCK_MONOTONIC: when this was last looked after; when the port was opened */
	char version[UR_STATUS_TEXT], device[UR_STATUS_TEXT], interface[UR_STATUS_TEXT], port[UR_STATUS_TEXT];
	char uses[UR_STATUS_USES]; /* what the port does faster than it need, by words with commas; empty: nothing */
	uint32_t counters;
	uint32_t lane; /* of the device, below UR_STATUS_LANES: each has such a piece of memory */
	struct { /* of the device; by name, because another version may have others */
		char name[UR_STATUS_TEXT];
		uint64_t value;
	} counter[UR_STATUS_COUNTERS];
	struct ur_status_qp qp[UR_STATUS_QPS];
};

/* The owner. Between begin and end the rest may be written; an onlooker that copies meanwhile sees that it must copy again. */
void ur_status_init(struct ur_status *s, int32_t pid);
void ur_status_begin(struct ur_status *s);
void ur_status_end(struct ur_status *s);

/* --- the onlooker --- */

enum ur_status_verdict {
	UR_STATUS_GOOD,
	UR_STATUS_BUSY,  /* copied while it was written: copy again */
	UR_STATUS_OTHER, /* of another version, and cannot be read */
	UR_STATUS_BAD,   /* nothing that uroce wrote */
};

/* A copy that has been looked through: texts are printable ASCII and end, no QP stands there twice or has the number 0. */
struct ur_status_view {
	char version[UR_STATUS_TEXT], device[UR_STATUS_TEXT], interface[UR_STATUS_TEXT], port[UR_STATUS_TEXT], uses[UR_STATUS_USES];
	ur_time at, started;
	bool has[UR_C_COUNT]; /* a process of another version may lack a counter */
	uint64_t counter[UR_C_COUNT];
	uint32_t lanes; /* a bit for each lane of which it is */
	uint32_t total, count;
	struct ur_status_qp qp[UR_STATUS_QPS]; /* `count` of them, by number */
};

/*
 * `copy` are `bytes` bytes of somebody's, `before` its member `changes` read before them and `after` the same after. `pid` is the process
 * that it is looked for in, as that sees itself. `v` is filled when the verdict is GOOD; of OTHER its version alone.
 */
enum ur_status_verdict ur_status_check(const struct ur_status *copy, size_t bytes, uint32_t before, uint32_t after, int32_t pid,
				       struct ur_status_view *v);
/* Adds another lane of the same device: counters, and QPs as far as there is room for UR_STATUS_QPS. `v` has room for those of both. */
void ur_status_add_lane(struct ur_status_view *v, const struct ur_status_view *lane);
/* Copies text of a stranger: what is not printable ASCII becomes a question mark. `to` has room for `room` characters, the 0 among them. */
void ur_status_text(char *to, size_t room, const char *from, size_t n);

#endif
