/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scoreboard: what a requester notes of each PSN that is not acknowledged. loss/scoreboard.c keeps it, loss/rack.c decides by it what
 * is lost.
 */
#ifndef UR_SCOREBOARD_STATE_H
#define UR_SCOREBOARD_STATE_H

#include "base/base.h"

#define UR_SPAN 32768u           /* PSNs from the oldest unacknowledged one on of which notes are taken; a multiple of 64 */
#define UR_RETRANSMISSIONS 1024u /* retransmissions whose fate is not known yet; a power of two */

struct ur_retransmission { /* of packets, or requests for READ responses, of one work request */
	uint32_t psn, n;   /* n 0: what became of it is known */
	uint32_t mark;     /* the first PSN that had not been sent when it was sent */
	uint32_t upto;     /* of a READ: responses before this PSN, or later ones, have come */
	bool answer;       /* of a READ or atomic */
	bool first;        /* of one that had not been executed: its answers come in the order of PSNs */
	ur_time at;
};

/* Notes of one QP, by PSN modulo UR_SPAN. All bits are 0 but for those from `una` on while it is in use. */
struct ur_scoreboard_maps {
	uint64_t arrived[UR_SPAN / 64];       /* SENDs and WRITEs: at the peer; READs and atomics: the answer is here */
	uint64_t lost[UR_SPAN / 64];          /* and not sent again yet */
	uint64_t retransmitted[UR_SPAN / 64]; /* part of a retransmission whose fate is not known */
	uint64_t kept[UR_SPAN / 64];          /* READ requests and atomics that the peer has, and has not executed as far as is known */
	struct ur_retransmission queue[UR_RETRANSMISSIONS];
	uint16_t retransmission[UR_SPAN]; /* with a bit in `retransmitted`: which one in the queue */
};

/*
 * How far arrivals show what is lost: what was sent for the first time before `psn`; retransmissions before `mark`, and those numbered
 * before `rep`.
 */
struct ur_evidence {
	uint32_t psn, mark, rep;
};

enum ur_way { UR_WAY_REQUEST, UR_WAY_ANSWER, UR_WAYS };

struct ur_scoreboard {
	struct ur_scoreboard_maps *maps; /* NULL: nothing was ever lost */
	bool busy;                       /* in use */
	bool sacks;                      /* the peer has sent a SACK: it keeps what comes beyond a hole */
	bool one_hole;                   /* only the first hole is asked for, because the peer answers repeated READs only upwards */
	uint32_t base, top;              /* bits are set from `base` on and before `top` */
	uint32_t done;                   /* the peer has executed all requests before */
	uint32_t split;                  /* before it READ responses may begin and end a message anywhere */
	uint32_t gone, spare;            /* PSNs sent that are not in flight: arrived or lost; what the window is wider by */
	uint32_t rd_early;               /* requests of READs and atomics that are answered in full, or so it seems, beyond a hole */
	uint32_t nlost, first;           /* lost ones, none before `first` */
	uint32_t losses;                 /* packets that were found to be lost, ever */
	uint32_t head, tail;             /* numbers of the oldest retransmission in the queue and the next */
	uint32_t answers;                /* retransmissions in it that are of READs or atomics */
	uint32_t scan[UR_WAYS];          /* what was sent for the first time before it has been judged */
	struct ur_evidence seen[UR_WAYS], waits[UR_WAYS],
		ripe[UR_WAYS]; /* all; what becomes ripe at `due`; what loss detection relies on */
	ur_time due, reo_wnd;  /* of the reordering window: its end, its length */
	unsigned reo_persist;  /* retransmissions that were needed since one was not */
};

#endif
