/* SPDX-License-Identifier: BSD-3-Clause */
/* How long requesters wait: before they repeat something that nothing has asked for, and after an RNR NAK. */
#ifndef UR_BETWEEN_WAITS_H
#define UR_BETWEEN_WAITS_H

#include "between/spread.h"
#include "wire/sack.h"

#define UR_NAK_KINDS (UR_NAK_INV_RD + 1)

/* Repetitions of one PSN in a row. */
struct ur_account_series {
	uint32_t psn;
	unsigned n;          /* copies that follow a probe at once count for `vain` alone */
	ur_time at;          /* the last one */
	ur_time first, last; /* waits: from the request to the first repetition, and before the last one */
};

struct ur_account_rnr {
	uint64_t n;
	uint64_t early; /* repetitions before the timer that the NAK named was over */
	bool waits;     /* for this packet to come again: */
	uint32_t psn;
	ur_time at, timer;
	ur_time shortest, longest; /* timers */
	struct ur_spread waited;
};

struct ur_account_waits {
	uint64_t unprompted; /* times that it began to repeat, or repeated from the start, without a NAK or SACK since the time before */
	uint64_t probes;     /* of these: packets that were not the oldest without an answer, or sooner than the ACK timer can expire */
	uint64_t timers;     /* of these: later than that. What is neither is not known, because the timer is not */
	struct ur_account_series now, longest; /* of these */
	struct ur_account_series vain;         /* all repetitions of one PSN, asked for or not, that has not been acknowledged */
	struct ur_account_rnr rnr;
	uint64_t nak[UR_NAK_KINDS];
	bool refused; /* by a NAK of this kind, which ends the connection: */
	uint8_t kind;
	uint32_t refused_psn;
	ur_time refused_at;
	bool acked; /* all up to this PSN */
	uint32_t upto;
	/* whether the next repetition is a new one, and was asked for: */
	bool repeating, told, told_since;
	uint32_t repeated;
	ur_time waited;      /* since the packet before it, when it last began to repeat */
	struct ur_sack sack; /* the last one; what was repeated after it counts as arrived. n 0: there was none */
};

#endif
