/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What passed a cable, what was done to which packet, and what the hosts did about it: when a NAK came, when the packet came again, and
 * what was repeated with it. Everything is seen from one place with one clock. Flows, events and those that are followed are bounded; what
 * goes beyond is counted.
 */
#ifndef UR_BETWEEN_ACCOUNT_H
#define UR_BETWEEN_ACCOUNT_H

#include "fault/flows.h"

#define UR_ACCOUNT_EVENTS 1024
#define UR_ACCOUNT_OPEN 64 /* losses that are followed at a time */

enum ur_between_did { /* bits */
		      UR_DID_DROP = 1,
		      UR_DID_DUPLICATE = 2,
		      UR_DID_DELAY = 4,
		      UR_DID_REORDER = 8,
		      UR_DID_CORRUPT = 16,
		      UR_DID_MARK = 32,
		      UR_DID_OVERFLOW = 64, /* dropped at the bottleneck's queue */
		      UR_DID_QUEUE_MARK = 128,
		      UR_DID_NO_ROOM = 256, /* dropped because the cable itself could hold no more */
};
#define UR_DID_KINDS 9
#define UR_DID_LOSE (UR_DID_DROP | UR_DID_OVERFLOW | UR_DID_NO_ROOM)
#define UR_DID_HARM (UR_DID_LOSE | UR_DID_CORRUPT)

/* What becomes of a frame. */
struct ur_between_fate {
	unsigned did;     /* of enum ur_between_did */
	unsigned rule;    /* the number of the first that acted; 0: none */
	ur_time delay;    /* by rules */
	ur_time twin;     /* of UR_DID_DUPLICATE: the second one comes so much later */
	unsigned by;      /* of UR_DID_REORDER: so many pass it, */
	ur_time patience; /* but no longer than this */
};

/* What told the sender of a loss. */
enum ur_account_told { UR_TOLD_NOT, UR_TOLD_NAK, UR_TOLD_SACK, UR_TOLD_ASKED }; /* ASKED: the requester asked for a response again */

/* How it was made good. */
enum ur_account_manner {
	UR_MANNER_OPEN,      /* it was not, or not yet */
	UR_MANNER_ALONE,     /* the packet came again; nothing had followed it that could be repeated */
	UR_MANNER_SELECTIVE, /* it came again, and what had arrived beyond it did not */
	UR_MANNER_GO_BACK_N, /* it came again, and what had arrived beyond it too */
	UR_MANNER_LATER,     /* a later acknowledgement says what it said */
	UR_MANNER_LOST,      /* it came again and was lost again: that is another event */
};

struct ur_account_event {
	ur_time when;
	unsigned flow; /* index of ur_account.flows, or UR_ACCOUNT_GONE when another one has its place now */
	struct ur_gid src, dst;
	uint32_t dqpn, psn, msg, iteration;
	uint8_t opcode, end;
	unsigned rule, did;
	/* of a loss: */
	enum ur_account_told told;
	enum ur_account_manner manner;
	ur_time told_at, again_at; /* 0: not seen */
};
#define UR_ACCOUNT_GONE UINT32_MAX

struct ur_account_flow {
	bool used, response;
	uint8_t end; /* where it comes in */
	int partner; /* the flow of its responses, or requests; -1: not known */
	struct ur_gid src, dst;
	uint32_t dqpn, first, highest;
	uint64_t packets, bytes;
	uint64_t repeats;  /* packets that were seen before */
	uint64_t needless; /* of them those that had got through, ACKs apart */
	uint64_t timeouts; /* times that it began to repeat although no NAK or SACK had come since it did so before */
	uint64_t naks;     /* of responses: NAKs and SACKs */
	uint64_t cnps;     /* of responses: sent to this QP */
	uint64_t did[UR_DID_KINDS];
	bool repeating, told;
};

struct ur_account {
	struct ur_account_flow flows[UR_FAULT_FLOWS];
	uint64_t replaced; /* flows that made room for others */
	uint64_t frames[2], bytes[2], roce[2];
	uint64_t did[UR_DID_KINDS];
	struct ur_account_event events[UR_ACCOUNT_EVENTS];
	unsigned nevents;
	uint64_t unlisted, unfollowed; /* events beyond the table; losses that were not followed */
	struct {
		unsigned event;
		uint32_t beyond; /* the highest PSN of its flow when it came again */
	} open[UR_ACCOUNT_OPEN];
	unsigned nopen;
};

/* A packet of `len` bytes comes in, of which `have` are here; before what follows. `frame` NULL: not RoCEv2. */
void ur_account_packet(struct ur_account *a, ur_time now, unsigned end, const struct ur_fault_frame *frame, const struct ur_fault_place *at,
		       const uint8_t *bytes, uint32_t have, uint32_t len);
/* What is done to it. */
void ur_account_fate(struct ur_account *a, ur_time now, unsigned end, const struct ur_fault_frame *frame, const struct ur_fault_place *at,
		     const struct ur_between_fate *fate);

#endif
