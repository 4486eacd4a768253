/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Turns what processes publish into rates between two samples, sorted rows, columns of text, and metrics for Prometheus. The caller finds
 * the processes (apps/uroce/cli/watch_find.c).
 */
#ifndef UR_WATCH_H
#define UR_WATCH_H

#include "observe/status.h"

/* A process, as the kernel knows it, and what it publishes of one of its devices. */
struct ur_watch_process {
	int pid;
	unsigned uid;
	ur_time born; /* when it started, by the kernel: another process that got its number is another one */
	char program[UR_STATUS_TEXT];
	bool stopped;                 /* by a signal or a debugger: what it publishes does not change */
	bool unreadable;              /* it is of another version, of which only `status.version` is known */
	struct ur_status_view status; /* the last member: of `qp` there is only as much as is used */
};

/* What the host shows at one moment. */
struct ur_watch_sample {
	ur_time at;
	unsigned count;
	struct ur_watch_process *process[]; /* by pid, and by interface */
};

/* What changes with time, in a second. */
struct ur_watch_rates {
	bool known; /* there were two looks at the QP */
	double tx_bits, rx_bits, tx_packets, rx_packets, retransmits, cnps;
};

/* A line: a QP of a process. */
struct ur_watch_row {
	const struct ur_watch_process *process;
	const struct ur_status_qp *qp;
	struct ur_watch_rates rates;
};

/* --- rate.c --- */

/* How many processes there are, however many devices each of them has; those that cannot be read, too, if `all`. */
unsigned ur_watch_process_count(const struct ur_watch_sample *sample, bool all);
/* Sorts the processes of a sample, for qsort(3). */
int ur_watch_process_compare(const void *a, const void *b);
/* What the process publishes of the device on that interface; NULL when it is not there or cannot be read, or when `sample` is NULL. */
const struct ur_watch_process *ur_watch_process_find(const struct ur_watch_sample *sample, int pid, const char *interface);
/*
 * `was` is what was known of the same QP before. Counters that went back began anew meanwhile; the QP may have been reset. Rates are those
 * between the times at which the two were written; 0 when that is the same time, because a process that does something writes anew.
 */
struct ur_watch_rates ur_watch_rates(const struct ur_status_qp *was, const struct ur_status_qp *qp);
/*
 * A row for each QP of `now`, with rates against `before`, which may be NULL. Returns how many; `rows` has room for ur_watch_row_count.
 */
unsigned ur_watch_row_count(const struct ur_watch_sample *now);
unsigned ur_watch_rows(const struct ur_watch_sample *before, const struct ur_watch_sample *now, struct ur_watch_row *rows);

/* --- order.c --- */

/* Keys to sort by: names of columns. UR_WATCH_KEYS is for help and completion. */
#define UR_WATCH_KEYS "traffic pid program qp type state peer tx rx packets retransmits rtt window limit"
enum ur_watch_key {
	UR_WATCH_TRAFFIC, /* bits sent and received */
	UR_WATCH_PID,
	UR_WATCH_PROGRAM,
	UR_WATCH_QP,
	UR_WATCH_TYPE,
	UR_WATCH_STATE,
	UR_WATCH_PEER,
	UR_WATCH_TX,
	UR_WATCH_RX,
	UR_WATCH_PACKETS,
	UR_WATCH_RETRANSMITS,
	UR_WATCH_RTT,
	UR_WATCH_WINDOW,
	UR_WATCH_LIMIT,
	UR_WATCH_KEY_COUNT
};

/* NULL past the last. */
const char *ur_watch_key_name(unsigned key);
/* False for no key. */
bool ur_watch_key_find(const char *name, enum ur_watch_key *key);
/* Numbers from the largest down and words upwards, or the other way round with `reverse`; rows that are equal by pid and QP number. */
void ur_watch_sort(struct ur_watch_row *rows, unsigned n, enum ur_watch_key key, bool reverse);

/* What rows are to be shown. */
struct ur_watch_filter {
	int pid;             /* 0: any */
	const char *program; /* a part of its name; NULL: any */
	bool has_peer;       /* one address alone */
	struct ur_gid peer;
	bool active; /* those alone with traffic in the last interval */
};

/* True when a process may have rows that are to be shown. */
bool ur_watch_wants(const struct ur_watch_filter *f, const struct ur_watch_process *p);
/* Drops the others; returns how many are left. */
unsigned ur_watch_select(struct ur_watch_row *rows, unsigned n, const struct ur_watch_filter *f);

/* --- column.c --- */

#define UR_WATCH_LINE 320
#define UR_WATCH_PEER_WIDTH 39

/* "RC", "RTS"; "?" for what there is not. */
const char *ur_watch_type_name(unsigned type);
const char *ur_watch_state_name(unsigned state);
/* A number in four characters at most with a suffix of thousands: "0", "12", "1.2k", "945M". In room for 8. */
const char *ur_watch_short(double value, char *text);

/* Which columns there is room for, and how wide that of the peers is. */
struct ur_watch_layout {
	uint32_t columns;
	unsigned peer_width, program_width;
};

/* For `width` characters a line; 0: no limit. */
struct ur_watch_layout ur_watch_layout(const struct ur_watch_row *rows, unsigned n, unsigned width);
/* The line of titles, and one row, both without a new line, in room for UR_WATCH_LINE. */
void ur_watch_title(const struct ur_watch_layout *l, char *line);
void ur_watch_line(const struct ur_watch_layout *l, const struct ur_watch_row *row, char *line);

/* --- prometheus.c --- */

/*
 * Prometheus' text format (version 0.0.4) of the sample, in memory of malloc; NULL when that is short. `prefix` stands before the names
 * that node_exporter gives to what is the same of an RDMA NIC. doc/prometheus.md lists the names.
 */
char *ur_watch_prometheus(const struct ur_watch_sample *sample, const char *prefix);
/* The value of a label, without its quotes, in room for twice its length and 1. */
void ur_watch_escape(const char *value, char *out);

#endif
