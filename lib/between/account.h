/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What passed a cable, what was done to which packet, and what the hosts did about it: when a NAK came, when the packet came again, and
 * what was repeated with it. Everything is seen from one place with one clock. Flows, connections, events and those that are followed are
 * bounded; what goes beyond is counted.
 *
 * account.c counts packets and flows, losses.c follows what was lost, waits.c has repetitions that nothing asked for and RNR NAKs, marks.c
 * congestion, connect.c says which flows belong together, ending.c how they ended.
 */
#ifndef UR_BETWEEN_ACCOUNT_H
#define UR_BETWEEN_ACCOUNT_H

#include "between/connect.h"
#include "between/marks.h"
#include "between/spread.h"
#include "between/waits.h"
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
		      UR_DID_TRIM = 512,
		      UR_DID_HOLD = 1024,
		      UR_DID_ALTER = 2048, /* corrupted, with an ICRC that is right */
};
#define UR_DID_KINDS 12
#define UR_DID_LOSE (UR_DID_DROP | UR_DID_OVERFLOW | UR_DID_NO_ROOM)
#define UR_DID_HARM (UR_DID_LOSE | UR_DID_CORRUPT | UR_DID_TRIM)

/* What becomes of a frame. */
struct ur_between_fate {
	unsigned did;     /* of enum ur_between_did */
	unsigned rule;    /* the number of the first that acted; 0: none */
	ur_time delay;    /* by rules */
	ur_time twin;     /* of UR_DID_DUPLICATE: the second one comes so much later */
	unsigned by;      /* of UR_DID_REORDER: so many pass it, */
	ur_time patience; /* but no longer than this */
	unsigned holder;  /* of UR_DID_HOLD: the number of the rule, */
	ur_time held_for; /* and no longer than this */
};

/* What told the sender of a loss. */
enum ur_account_told { UR_TOLD_NOT, UR_TOLD_NAK, UR_TOLD_SACK, UR_TOLD_ASKED }; /* ASKED: the requester asked for a response again */
#define UR_TOLDS 4

/*
 * How it was made good. When the packet comes again, A is what has got through of the packets beyond it that have passed until then. If
 * A is empty, the two cannot be told apart. The next packets of the flow decide: one of A in an unbroken run of PSNs from the lost one on,
 * sooner after the one before it than the loss took to be repaired, means going back; one that is newer than all of A, or an
 * acknowledgement of all of A and no such packet, means that only what was lost is sent. A run that begins later is a probe of several
 * packets.
 */
enum ur_account_manner {
	UR_MANNER_OPEN,      /* it was not, or not yet */
	UR_MANNER_ALONE,     /* the packet came again; A is empty */
	UR_MANNER_SELECTIVE, /* it came again, and what is in A did not */
	UR_MANNER_GO_BACK_N, /* it came again, and what is in A too */
	UR_MANNER_LATER,     /* a later acknowledgement says what it said */
	UR_MANNER_LOST,      /* it came again and was lost again: that is another event */
};
#define UR_MANNERS 6

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

/* The losses of a flow, put together: also of those that the list of events has no room for. */
struct ur_account_losses {
	uint64_t told[UR_TOLDS];     /* of those that came again: what had told the sender before */
	uint64_t manner[UR_MANNERS]; /* UR_MANNER_OPEN: also those that are no longer followed */
	struct ur_spread to_told;    /* from the loss to the NAK, SACK or repeated READ request */
	struct ur_spread to_again;   /* from there to the repetition */
	struct ur_spread untold;     /* from the loss to a repetition that nothing had asked for */
};

struct ur_account_flow {
	bool used, response;
	uint8_t end;    /* where it comes in */
	int partner;    /* the flow of its responses, or requests; -1: not known */
	int connection; /* -1: not known */
	struct ur_gid src, dst;
	uint32_t dqpn, first, highest;
	ur_time began, newest; /* its first and its last packet */
	uint64_t packets, bytes;
	uint64_t repeats;  /* packets that were seen before */
	uint64_t needless; /* of them those that had got through, ACKs apart */
	uint64_t naks;     /* of responses: NAKs and SACKs */
	uint64_t cnps;     /* of responses: sent to this QP */
	uint64_t did[UR_DID_KINDS];
	struct ur_account_losses losses;
	struct ur_account_waits waits; /* of requests */
	struct ur_account_marks marks; /* on it, and what its sender did about them */
};

struct ur_account {
	struct ur_account_flow flows[UR_FAULT_FLOWS];
	struct ur_account_connections connections;
	uint64_t replaced; /* flows that made room for others */
	uint64_t frames[2], bytes[2], roce[2];
	uint64_t did[UR_DID_KINDS];
	struct ur_account_pauses pauses[2]; /* that came in at this end */
	struct ur_spread late[2];           /* how much later than planned held frames left: held by a rule, by the bottleneck */
	struct ur_account_event events[UR_ACCOUNT_EVENTS];
	unsigned nevents;
	uint64_t unlisted, unfollowed; /* events beyond the table; losses that were not followed */
	struct ur_account_open {
		unsigned listed; /* its event, or UR_ACCOUNT_EVENTS: */
		struct ur_account_event event;
		uint32_t beyond; /* the highest PSN of its flow when it came again */
		uint32_t before; /* the last of the unbroken run of PSNs that began with it then; the one before it: there is none */
		ur_time passed;  /* when the last packet of the flow passed since then */
	} open[UR_ACCOUNT_OPEN];
	unsigned nopen;
};

/*
 * A packet of `len` bytes comes in, of which `have` are here; before what follows. `frame` NULL: not RoCEv2. `flows` are those that `at`
 * comes from.
 */
void ur_account_packet(struct ur_account *a, ur_time now, unsigned end, const struct ur_fault_frame *frame, const struct ur_fault_place *at,
		       const struct ur_fault_flows *flows, const uint8_t *bytes, uint32_t have, uint32_t len);
/* What is done to it. */
void ur_account_fate(struct ur_account *a, ur_time now, unsigned end, const struct ur_fault_frame *frame, const struct ur_fault_place *at,
		     const struct ur_between_fate *fate);
/* A frame that was held until `due` leaves; the bottleneck held it, or a rule. */
void ur_account_left(struct ur_account *a, ur_time now, ur_time due, bool queued);

/* How requests of a flow ended, as far as the wire shows. */
enum ur_account_ending {
	UR_ENDING_OPEN,    /* nothing tells of an end */
	UR_ENDING_CLOSED,  /* by the connection manager */
	UR_ENDING_REFUSED, /* by a NAK that ends a connection */
	UR_ENDING_RETRIES, /* repetitions that were never acknowledged, and then nothing more */
	UR_ENDING_RNR,     /* an RNR NAK, and then nothing more */
};
#define UR_ENDINGS 5
enum ur_account_ending ur_account_ending(const struct ur_account *a, const struct ur_account_flow *w, ur_time now);

#endif
