/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events of the engine. One table has their names, fields, types and meanings; the receivers of events, the reference in doc/trace.md and
 * the probes are made from it. A library that is traced holds a pointer to a struct ur_trace, NULL while nobody traces, and passes numbers
 * only: its owner adds the time.
 */
#ifndef UR_TRACE_H
#define UR_TRACE_H

#include "base/base.h"

#define UR_TRACE_FIELDS 6 /* of an event, at most */

/* How a value is shown: a number, or the name that stands for it. */
enum ur_trace_type {
	UR_TT_NUM,
	UR_TT_NS,       /* a duration */
	UR_TT_BOOL,
	UR_TT_OPCODE,   /* enum ur_opcode with its service */
	UR_TT_QP_TYPE,  /* enum ibv_qp_type */
	UR_TT_QP_STATE, /* enum ibv_qp_state */
	UR_TT_STATUS,   /* enum ibv_wc_status */
	UR_TT_WAIT,     /* enum ur_req_state: what the requester waits for */
	UR_TT_SYNDROME, /* of an AETH */
	UR_TT_REASON,   /* enum ur_counter: why a packet was refused */
	UR_TT_CAUSE,    /* enum ur_trace_cause */
	UR_TT_TIMER,    /* enum ur_trace_timer */
	UR_TT_CM_STATE, /* enum ur_cm_state */
	UR_TT_PORT,     /* enum ibv_event_type */
	UR_TT_COUNT
};

/* Why a requester goes back. */
#define UR_TRACE_CAUSES(X) \
	X(SEQ_NAK, "sequence NAK") \
	X(RNR_NAK, "RNR NAK") \
	X(TIMEOUT, "timeout") \
	X(LOST_ANSWER, "lost answer") \
	X(LATE_ACK, "late ACK") /* forward, in fact: what was about to be sent again has arrived */

enum ur_trace_cause {
#define UR_TRACE_CAUSE_ENUM(id, name) UR_TRACE_CAUSE_##id,
	UR_TRACE_CAUSES(UR_TRACE_CAUSE_ENUM)
#undef UR_TRACE_CAUSE_ENUM
		UR_TRACE_CAUSE_COUNT
};

#define UR_TRACE_TIMERS(X) \
	X(ACK, "ACK") \
	X(PROBE, "probe") /* acknowledgements are overdue by measured round trips */ \
	X(RNR, "RNR") \
	X(PACE, "pace") /* the next packet under a sending rate */

enum ur_trace_timer {
#define UR_TRACE_TIMER_ENUM(id, name) UR_TRACE_TIMER_##id,
	UR_TRACE_TIMERS(UR_TRACE_TIMER_ENUM)
#undef UR_TRACE_TIMER_ENUM
		UR_TRACE_TIMER_COUNT
};

/* Users of the table define UR_TRACE_F(name, type). */
/* clang-format off */
#define UR_TRACE_EVENTS(X) \
	X(QP_MADE, qp_made, "a queue pair is created", \
	  UR_TRACE_F(qpn, NUM) UR_TRACE_F(type, QP_TYPE)) \
	X(QP_GONE, qp_gone, "a queue pair is destroyed", \
	  UR_TRACE_F(qpn, NUM)) \
	X(QP_STATE, qp_state, "a queue pair enters a state; PSNs: the next that it sends, and expects", \
	  UR_TRACE_F(qpn, NUM) UR_TRACE_F(from, QP_STATE) UR_TRACE_F(to, QP_STATE) UR_TRACE_F(dqpn, NUM) \
	  UR_TRACE_F(sq_psn, NUM) UR_TRACE_F(rq_psn, NUM)) \
	X(TX, tx, "a packet is built; faults, the port and the kernel come after that", \
	  UR_TRACE_F(qpn, NUM) UR_TRACE_F(dqpn, NUM) UR_TRACE_F(opcode, OPCODE) UR_TRACE_F(psn, NUM) UR_TRACE_F(len, NUM) \
	  UR_TRACE_F(ackreq, BOOL)) \
	X(RX, rx, "a packet for a queue pair arrives whole; `qpn` is that of its BTH, `ce` a congestion mark", \
	  UR_TRACE_F(qpn, NUM) UR_TRACE_F(opcode, OPCODE) UR_TRACE_F(psn, NUM) UR_TRACE_F(len, NUM) UR_TRACE_F(ackreq, BOOL) \
	  UR_TRACE_F(ce, BOOL)) \
	X(REFUSED, refused, \
	  "a packet is dropped: that of the `rx` before, or a frame without one; `reason` is the counter", \
	  UR_TRACE_F(qpn, NUM) UR_TRACE_F(reason, REASON)) \
	X(NAK_SENT, nak_sent, "a NAK for `psn` will be sent", \
	  UR_TRACE_F(qpn, NUM) UR_TRACE_F(psn, NUM) UR_TRACE_F(syndrome, SYNDROME)) \
	X(SACK_SENT, sack_sent, "a SACK is built: what has arrived of the `n` PSNs from `base` on, while `expected` is missing", \
	  UR_TRACE_F(qpn, NUM) UR_TRACE_F(expected, NUM) UR_TRACE_F(base, NUM) UR_TRACE_F(n, NUM)) \
	X(NAK_RCVD, nak_rcvd, "a NAK for `psn` has arrived", \
	  UR_TRACE_F(qpn, NUM) UR_TRACE_F(psn, NUM) UR_TRACE_F(syndrome, SYNDROME)) \
	X(LOST_ANSWER, lost_answer, "the answer to `psn` is missing, and a later one shows that all before `upto` are answered", \
	  UR_TRACE_F(qpn, NUM) UR_TRACE_F(psn, NUM) UR_TRACE_F(upto, NUM)) \
	X(REWIND, rewind, "everything from `psn` on will be sent again; `retries` are left", \
	  UR_TRACE_F(qpn, NUM) UR_TRACE_F(psn, NUM) UR_TRACE_F(cause, CAUSE) UR_TRACE_F(retries, NUM)) \
	X(REREAD, reread, "READ responses are asked for again: `n` from `psn` on", \
	  UR_TRACE_F(qpn, NUM) UR_TRACE_F(psn, NUM) UR_TRACE_F(n, NUM)) \
	X(PROBE, probe, "acknowledgements are overdue: the oldest and newest request, or what is missing, is sent again", \
	  UR_TRACE_F(qpn, NUM) UR_TRACE_F(oldest, NUM) UR_TRACE_F(next, NUM) UR_TRACE_F(times, NUM)) \
	X(TIMER_ARMED, timer_armed, "a timer of a queue pair is armed, to expire `after`", \
	  UR_TRACE_F(qpn, NUM) UR_TRACE_F(timer, TIMER) UR_TRACE_F(after, NS)) \
	X(TIMER_EXPIRED, timer_expired, "a timer of a queue pair has expired", \
	  UR_TRACE_F(qpn, NUM) UR_TRACE_F(timer, TIMER)) \
	X(WINDOW, window, "the number of packets that may be unacknowledged from now on", \
	  UR_TRACE_F(qpn, NUM) UR_TRACE_F(packets, NUM)) \
	X(WAITS, waits, "requests are posted, and none can be sent now", \
	  UR_TRACE_F(qpn, NUM) UR_TRACE_F(for, WAIT)) \
	X(RATE, rate, "congestion notifications, or their absence, change the sending rate; 0: no limit", \
	  UR_TRACE_F(qpn, NUM) UR_TRACE_F(kbps, NUM)) \
	X(FAILED, failed, "a send work request ends with an error", \
	  UR_TRACE_F(qpn, NUM) UR_TRACE_F(wr_id, NUM) UR_TRACE_F(status, STATUS)) \
	X(CM_STATE, cm_state, "a connection enters a state; identifiers and QPNs are 0 until they are known", \
	  UR_TRACE_F(id, NUM) UR_TRACE_F(peer_id, NUM) UR_TRACE_F(qpn, NUM) UR_TRACE_F(dqpn, NUM) UR_TRACE_F(from, CM_STATE) \
	  UR_TRACE_F(to, CM_STATE)) \
	X(MR_MADE, mr_made, "a memory region is registered", \
	  UR_TRACE_F(key, NUM) UR_TRACE_F(iova, NUM) UR_TRACE_F(length, NUM) UR_TRACE_F(access, NUM)) \
	X(MR_GONE, mr_gone, "a memory region is deregistered, or its keys pass to another", \
	  UR_TRACE_F(key, NUM)) \
	X(PORT_OPEN, port_open, "the port is open; `mtu` is that of IP", \
	  UR_TRACE_F(mtu, NUM) UR_TRACE_F(mbps, NUM) UR_TRACE_F(train, NUM)) \
	X(PORT_EVENT, port_event, "the state of the port that programs see", \
	  UR_TRACE_F(event, PORT)) \
	X(TRACE_LOST, trace_lost, "this number of earlier events is missing: the file could not be written fast enough, or not at all", \
	  UR_TRACE_F(events, NUM))
/* clang-format on */

enum ur_trace_id {
#define UR_TRACE_ENUM(id, name, help, fields) UR_TRACE_##id,
	UR_TRACE_EVENTS(UR_TRACE_ENUM)
#undef UR_TRACE_ENUM
		UR_TRACE_COUNT
};

/* How many fields each has. */
enum {
#define UR_TRACE_F(name, type) +1
#define UR_TRACE_COUNT_FIELDS(id, name, help, fields) UR_TRACE_N_##id = 0 fields,
	UR_TRACE_EVENTS(UR_TRACE_COUNT_FIELDS)
#undef UR_TRACE_COUNT_FIELDS
#undef UR_TRACE_F
};

struct ur_trace_info {
	const char *name, *help;
	unsigned n;
	struct {
		const char *name;
		enum ur_trace_type type;
	} field[UR_TRACE_FIELDS];
};

extern const struct ur_trace_info ur_trace_events[UR_TRACE_COUNT];

struct ur_trace {
	/* Under whatever serialises calls of the library that is traced. May not call back into it. */
	void (*event)(struct ur_trace *t, enum ur_trace_id id, const uint64_t v[UR_TRACE_FIELDS]);
};

/* The values are computed only if there is a trace. Their number is checked against the table's. */
#define UR_TRACE(trace, id, ...)                                                                                                           \
	do {                                                                                                                               \
		struct ur_trace *trace_ = (trace);                                                                                         \
		_Static_assert(sizeof((uint64_t[]){__VA_ARGS__}) == UR_TRACE_N_##id * sizeof(uint64_t), "fields of the table");            \
		if (ur_unlikely(trace_ != NULL))                                                                                           \
			trace_->event(trace_, UR_TRACE_##id, (const uint64_t[UR_TRACE_FIELDS]){__VA_ARGS__});                              \
	} while (0)

/* Names of values; NULL outside the tables. */
const char *ur_trace_cause_name(uint64_t v);
const char *ur_trace_timer_name(uint64_t v);

#endif
