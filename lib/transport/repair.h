/* SPDX-License-Identifier: BSD-3-Clause */
/* Losses: what has arrived beyond a hole, what is lost, and what was sent again. */
#ifndef UR_REPAIR_H
#define UR_REPAIR_H

#include "base/base.h"
#include "wire/opcode.h"

struct ur_pkt;
struct ur_qp;
struct ur_requester;
struct ur_sack;
struct ur_swqe;

#define UR_SPAN 32768u   /* PSNs from the oldest unacknowledged one on of which notes are taken; a multiple of 64 */
#define UR_REPEATS 1024u /* repeats whose fate is not known yet; a power of two */

struct ur_repeat {       /* of packets, or requests for READ responses, of one work request */
	uint32_t psn, n; /* n 0: what became of it is known */
	uint32_t mark;   /* the first PSN that had not been sent when it was sent */
	uint32_t upto;   /* of a READ: responses before this PSN, or later ones, have come */
	bool answer;     /* of a READ or atomic */
	bool first;      /* of one that had not been executed: its answers come in the order of PSNs */
	ur_time at;
};

/* Notes of one QP, by PSN modulo UR_SPAN. All bits are 0 but for those from `una` on while it is in use. */
struct ur_board {
	uint64_t arrived[UR_SPAN / 64];  /* SENDs and WRITEs: at the peer; READs and atomics: the answer is here */
	uint64_t lost[UR_SPAN / 64];     /* and not sent again yet */
	uint64_t repeated[UR_SPAN / 64]; /* part of a repeat whose fate is not known */
	uint64_t kept[UR_SPAN / 64];     /* READ requests and atomics that the peer has, and has not executed as far as is known */
	struct ur_repeat queue[UR_REPEATS];
	uint16_t repeat[UR_SPAN]; /* with a bit in `repeated`: which one in the queue */
};

/*
 * How far arrivals show what is lost: what was sent for the first time before `psn`; repeats before `mark`, and those numbered before
 * `rep`.
 */
struct ur_evidence {
	uint32_t psn, mark, rep;
};

enum ur_way { UR_WAY_REQUEST, UR_WAY_ANSWER, UR_WAYS };

struct ur_repair {
	struct ur_board *board; /* NULL: nothing was ever lost */
	bool busy;              /* in use */
	bool sacks;             /* the peer has sent a SACK: it keeps what comes beyond a hole */
	bool one_hole;          /* the peer repeats only upwards: nothing is asked for before what is missing first has come */
	bool wanted;            /* something is to be sent again */
	uint32_t base, top;     /* bits are set from `base` on and before `top` */
	uint32_t done;          /* the peer has executed all requests before */
	uint32_t split;         /* before it READ responses may begin and end a message anywhere */
	uint32_t gone, spare;   /* PSNs sent that are not in flight: arrived or lost; what the window is wider by */
	uint32_t rd_early;      /* requests of READs and atomics that are answered in full, or so it seems, beyond a hole */
	uint32_t nlost, first;  /* lost ones, none before `first` */
	uint32_t losses;        /* packets that were found to be lost, ever */
	uint32_t head, tail;    /* numbers of the oldest repeat in the queue and the next */
	uint32_t answers;       /* repeats in it that are of READs or atomics */
	uint32_t scan[UR_WAYS]; /* what was sent for the first time before it has been judged */
	struct ur_evidence seen[UR_WAYS], waits[UR_WAYS], ripe[UR_WAYS]; /* all; what becomes ripe at `due`; what judgement relies on */
	ur_time due, patience;                                           /* how long a packet may be overtaken without being lost */
	unsigned calm;                                                   /* repeats that were needed since one was not */
};

/* What judging has found. FIRST: the oldest PSN is among what is lost. */
enum ur_found { UR_FOUND_NOTHING, UR_FOUND_MORE, UR_FOUND_FIRST };

/* A new connection begins at `psn`. */
void ur_repair_open(struct ur_repair *m, uint32_t psn);
/* Takes notes from now on. False without memory: what is lost is repaired by going back. */
bool ur_repair_start(struct ur_qp *qp);
/* `una` has moved. */
void ur_repair_moved(struct ur_qp *qp, ur_time now);
/* All before `upto` has been executed, and READs or atomics wait for answers. */
void ur_repair_done(struct ur_qp *qp, uint32_t upto, ur_time now);
/* As ur_repair_done, and answers to what is before `upto` would be here. */
void ur_repair_answered(struct ur_qp *qp, uint32_t upto, ur_time now);
/* What the bits of a SACK say. */
void ur_repair_sack(struct ur_qp *qp, const struct ur_sack *s, ur_time now);
/* The answer `psn` of `w` has come, in its turn. */
void ur_repair_answer(struct ur_qp *qp, const struct ur_swqe *w, uint32_t psn, ur_time now);
/* Keeps an answer beyond a hole. False when it cannot or need not be kept. */
bool ur_repair_take(struct ur_qp *qp, struct ur_swqe *w, const struct ur_pkt *p, const struct ur_opcode_info *op, ur_time now);
/* Completes what is there after `una`, which was a hole. */
void ur_repair_collect(struct ur_qp *qp);
/* Decides what is lost. */
enum ur_found ur_repair_judge(struct ur_qp *qp, ur_time now);
/* All repeats of which nothing was heard are lost. False: there are none, and nothing is lost. */
bool ur_repair_again(struct ur_qp *qp);
/* PSNs that were sent again and of which nothing was heard. */
uint32_t ur_repair_unheard(const struct ur_repair *m);
/* What to send again next: PSNs [psn, psn + n) of the work request `index`, which are one READ request at most. False for nothing. */
bool ur_repair_next(struct ur_qp *qp, uint32_t *index, uint32_t *psn, uint32_t *n);
/* That was done. */
void ur_repair_sent(struct ur_qp *qp, uint32_t psn, uint32_t n, bool answer, ur_time now);
/* All is sent again from `una` on. */
void ur_repair_forget(struct ur_requester *r);

#endif
