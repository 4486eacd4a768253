/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the account share. */
#ifndef UR_BETWEEN_ACCOUNT_PRIV_H
#define UR_BETWEEN_ACCOUNT_PRIV_H

#include "base/psn.h"
#include "between/account.h"
#include "wire/frame.h"
#include "wire/rnr.h"
#include "wire/sack.h"

#define NEAR 32768 /* most PSNs between that of a response and the last one of its requester */

/* A packet, and what its extended headers say. */
struct heard {
	ur_time now;
	unsigned end;
	const struct ur_fault_frame *f;
	const struct ur_fault_place *at;
	const struct ur_fault_flows *flows;
	const uint8_t *bytes;
	uint32_t have;
	uint32_t flags; /* enum ur_op_flag */
	bool answers;   /* it has a syndrome: */
	uint8_t syndrome;
	bool nak; /* of a PSN sequence error */
	bool is_sack;
	struct ur_sack sack;
};

static inline bool is_near(uint32_t a, uint32_t b)
{
	const int32_t d = ur_psn_diff(a, b);

	return d > -NEAR && d < NEAR;
}

static inline bool is_ack(uint8_t opcode)
{
	const uint32_t flags = ur_opcode(opcode)->flags;

	return flags & UR_OPF_RESPONSE && (flags & UR_OPF_SACKETH || !(flags & (UR_OPF_PAYLOAD | UR_OPF_ATOMICACKETH)));
}

/* The packet goes the other way. */
static inline bool opposite(const struct ur_gid *src, const struct ur_gid *dst, unsigned end, const struct heard *h)
{
	return end != h->end && ur_gid_eq(src, &h->f->dst) && ur_gid_eq(dst, &h->f->src);
}

/* --- losses.c --- */

void ur_losses_packet(struct ur_account *a, const struct ur_account_flow *w, const struct heard *h);
void ur_losses_fate(struct ur_account *a, ur_time now, unsigned end, const struct ur_fault_frame *f, const struct ur_fault_place *at,
		    const struct ur_between_fate *fate);
/* Does it say that this packet is missing, and something beyond it is not? What has no bit may be under way. */
bool ur_losses_missing(const struct ur_sack *k, uint32_t psn);
/* Another flow gets the place of this one. */
void ur_losses_forget(struct ur_account *a, unsigned flow);

/* --- waits.c --- */

/* A request; `again`: it was seen before. Before the flow counts it. */
void ur_waits_request(const struct ur_account *a, struct ur_account_flow *w, const struct heard *h, bool again);
/* A response to it. */
void ur_waits_response(struct ur_account_flow *w, const struct heard *h);
/* A response to it is lost: its requester finds a hole. */
void ur_waits_hole(struct ur_account_flow *w);

/* --- marks.c --- */

void ur_marks_packet(struct ur_account_flow *w, const struct heard *h, uint32_t len);
/* It is marked here. */
void ur_marks_marked(struct ur_account_flow *w, ur_time now);
void ur_marks_cnp(struct ur_account *a, const struct heard *h);
/* A frame that came in at `end`. */
void ur_marks_frame(struct ur_account *a, ur_time now, unsigned end, const uint8_t *bytes, uint32_t have, uint32_t len);

/* --- connect.c --- */

void ur_connect_cm(struct ur_account *a, const struct heard *h);
/* A new flow: into its connection, if that is known. */
void ur_connect_flow(struct ur_account *a, unsigned flow);
/* Two flows of which the second answers the first. */
void ur_connect_pair(struct ur_account *a, unsigned requests, unsigned responses, ur_time now);
/* The side of a connection that this QP is; NULL: it is not known. */
struct ur_account_connection *ur_connect_find(struct ur_account *a, const struct ur_gid *gid, uint32_t qpn, unsigned *side);

#endif
