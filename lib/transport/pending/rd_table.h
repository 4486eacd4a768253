/* SPDX-License-Identifier: BSD-3-Clause */
/* The resource table of a responder, from which requests are answered that take more than an acknowledgement. */
#ifndef UR_RD_TABLE_H
#define UR_RD_TABLE_H

#include "transport/state/qp_priv.h"
#include "transport/state/verdict.h"
#include "wire/opcode.h"

#define UR_RD_SIDE 32                /* repeated parts of READs that wait to be sent; a power of two */
#define UR_RD_SLOTS UR_MAX_RD_ATOMIC /* a power of two */
/* Requests that are answered from the resource table. */
#define UR_OPF_ANSWERED (UR_OPF_READ | UR_OPF_ATOMIC | UR_OPF_FLUSH | UR_OPF_ATOMIC_WRITE)

/* Why a run of responses is sent: the request is new, or has come again after it was answered in full, or the peer is silent
 * (read_resend.c). */
enum ur_rd_why { UR_RD_NEW, UR_RD_REPLAY, UR_RD_RESEND };

struct ur_rd_res { /* a request whose answer is more than an acknowledgement, kept for duplicates */
	uint64_t va;
	uint64_t result; /* of an atomic: the original value; of a FLUSH: bytes that are still to be written back */
	uint32_t rkey, len, psn, npkts, msn;
	uint32_t start, k, end; /* the run of responses in flight: packets [start, end) of the request, `k` is next */
	uint32_t stop;          /* byte of the request where the run ends */
	uint8_t why;            /* enum ur_rd_why */
	bool again;             /* (parts of) the answer were asked for again, and may have been on the wire before */
	uint8_t opcode;         /* enum ur_opcode of the request */
	uint16_t flush_access;  /* of a FLUSH that has something to write back: the access flags that it needs; else 0 */
	bool flush_whole;       /* all of what its key stands for */
	uint32_t srqn;          /* XRC: the SRQ that lends its protection domain */
};

/* Entry `n` of the table, counted from the newest (1). */
static inline struct ur_rd_res *ur_resp_rd_newest(const struct ur_responder *r, uint32_t n)
{
	return &r->rd[(r->rd_tail - n) & (UR_RD_SLOTS - 1)];
}

/* Has it been answered in full, so that whatever is sent now the peer may have had? */
static inline bool ur_resp_rd_answered(const struct ur_rd_res *e)
{
	return e->why != UR_RD_NEW || e->k == e->end;
}

/* Lets packets [start, start + npkts) of the answer be sent; of a READ, `stop` is the offset at which its data ends. */
static inline void ur_resp_rd_run(struct ur_rd_res *e, uint32_t start, uint32_t npkts, uint32_t stop, bool replay)
{
	e->start = e->k = start;
	e->end = start + npkts;
	e->stop = stop;
	e->why = replay ? UR_RD_REPLAY : UR_RD_NEW;
}

/* Can an entry be added? UR_RESP_DONE then. The first of a QP brings the memory of the table. */
enum ur_resp_verdict ur_resp_rd_admit(struct ur_qp *qp);
/* After that: a new entry, for the request in `p`; the answers to be sent are the caller's to say. */
struct ur_rd_res *ur_resp_rd_add(struct ur_qp *qp, const struct ur_pkt *p);
/* Sends the responses from that PSN on again, if they are of a READ that is remembered. */
void ur_resp_rd_from(struct ur_qp *qp, uint32_t psn);
/* A duplicate READ is answered again when it lies in the range of one that is remembered: true then. */
bool ur_resp_rd_replay(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op);
/* Entry `n` of the table from the newest (1) on has something to send again. */
void ur_resp_rd_again(struct ur_qp *qp, uint32_t n);

#endif
