/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What each host did, for those who judge it: lib/passive. The analysis reports a fact when it has decided what a packet is, so a judge
 * need not follow connections itself. A fact is about one request, or one exchange of the connection manager, and about the host that did
 * it.
 */
#ifndef UR_AN_FACTS_H
#define UR_AN_FACTS_H

#include "analyze/analyze.h"

/* clang-format off */
#define UR_AN_FACTS(X) \
	/* requesters */ \
	X(FIRST, RIGHT) /* the first request has the PSN that was agreed on */ \
	X(WRAP, RIGHT) /* PSN 0 after 0xffffff, in its turn */ \
	X(OFF_PSN, WRONG) /* a PSN that is not the next one */ \
	X(FAULT, WRONG) /* a request that every responder has to refuse: `sub` is an ur_an_fault */ \
	X(REPAIR, RIGHT) /* a request comes again: `sub` is an ur_an_cause */ \
	X(DIFFERS, WRONG) /* it comes again as another one */ \
	X(RNR_EARLY, WRONG) /* it comes again before the time that an RNR NAK asks for */ \
	X(STOPPED, RIGHT) /* nothing came again after a fatal NAK: `sub` is its code */ \
	X(ONCE, RIGHT) /* SENDs were acknowledged, and none came again */ \
	X(ODD_OPCODE, WRONG) /* a reserved opcode */ \
	X(ODD_VERSION, WRONG) /* another transport version */ \
	/* responders */ \
	X(ACK, RIGHT) /* a plain ACK with a right MSN, for a request that had none */ \
	X(ACK_AGAIN, RIGHT) /* the same of a request that has come again */ \
	X(MSN, WRONG) /* a wrong MSN */ \
	X(AHEAD, WRONG) /* an answer to a request that was never sent */ \
	X(OLD, DOUBTFUL) /* an answer after a later one */ \
	X(KIND, WRONG) /* an answer of another kind than the request needs */ \
	X(SYNDROME, WRONG) /* a reserved one */ \
	X(NAK, RIGHT) /* PSN sequence error, for PSNs that are missing */ \
	X(NAK_FALSE, DOUBTFUL) /* the same where nothing is missing */ \
	X(NAK_TWICE, DOUBTFUL) \
	X(NAK_ALONE, RIGHT) /* one NAK for a gap with several packets after it */ \
	X(RNR, RIGHT) \
	X(RNR_ALONE, RIGHT) /* what came after the refused request was dropped silently */ \
	X(RNR_NAK, WRONG) /* it was answered with a NAK */ \
	X(REFUSED, RIGHT) /* NAK: `sub` is its code */ \
	X(FAULT_REFUSED, RIGHT) /* the right NAK for a faulty request: `sub` is an ur_an_fault */ \
	X(FAULT_TAKEN, WRONG) /* it was answered in another way */ \
	X(ENDED, RIGHT) /* requests after a fatal NAK got no answer: `sub` is its code */ \
	X(GOES_ON, WRONG) /* one of them got one */ \
	X(READ, RIGHT) /* all responses to a READ, FLUSH or ATOMIC WRITE, as it asks for them */ \
	X(READ_AGAIN, RIGHT) /* the same after it has come again */ \
	X(READ_WRONG, WRONG) /* a response of the wrong length or opcode */ \
	X(PART_WRONG, WRONG) /* the responses to the rest of a READ do not begin with FIRST */ \
	X(ATOMIC, RIGHT) /* an atomic returned what was left there */ \
	X(ATOMIC_AGAIN, RIGHT) /* it returned the same as before when it came again */ \
	X(ATOMIC_WRONG, DOUBTFUL) \
	X(ATOMIC_TWICE, WRONG) \
	X(CNP, RIGHT) \
	X(NO_CNP, WRONG) \
	X(UC_SILENT, RIGHT) \
	X(UC_ANSWER, WRONG) \
	/* the connection manager */ \
	X(CM_REFUSED, RIGHT) /* a REJ: `sub` is its reason, as far as it is below 256 */ \
	X(CM_REP_AGAIN, RIGHT) /* the same REP for a REQ that has come again */ \
	X(CM_REP_OTHER, WRONG) /* another one */ \
	X(CM_REP_REPEATED, RIGHT) /* a REP that has no answer comes again */ \
	X(CM_REP_DONE, RIGHT) /* a REP that was answered did not: `sub` is the attribute of the answer */ \
	X(CM_REP_LATE, DOUBTFUL) /* it did */ \
	X(CM_EARLY, RIGHT) /* a message was acknowledged before the RTU came */ \
	X(CM_DREP, RIGHT) \
	X(CM_DREP_AGAIN, RIGHT) \
	X(CM_NO_DREP, DOUBTFUL) \
	X(CM_DREQ_CROSSED, RIGHT) \
	X(CM_DREQ_REPEATED, RIGHT) \
	X(CM_DREQ_LATE, DOUBTFUL) /* a DREQ that was answered comes again */ \
	X(CM_GONE, RIGHT) /* after its DREP a host no longer answered requests */ \
	X(CM_ALIVE, WRONG) /* it did */ \
	X(CM_SIDR, RIGHT) /* `sub` is the status */ \
	X(CM_SIDR_AGAIN, RIGHT)
/* clang-format on */

/* What a fact says of the host that did it. DOUBTFUL: it looks wrong, but no recording proves it. A WRONG fact may have an excuse, too. */
enum ur_an_weight { UR_AN_RIGHT, UR_AN_DOUBTFUL, UR_AN_WRONG };

enum ur_an_fact_kind {
#define UR_AN_FACT_ENUM(id, weight) UR_AN_F_##id,
	UR_AN_FACTS(UR_AN_FACT_ENUM)
#undef UR_AN_FACT_ENUM
		UR_AN_FACT_COUNT
};
extern const uint8_t ur_an_weights[UR_AN_FACT_COUNT]; /* enum ur_an_weight */

/* What every responder has to refuse as an invalid request. */
enum ur_an_fault {
	UR_AN_SOUND,
	UR_AN_MIDDLE_ALONE, /* these two have no FIRST */
	UR_AN_LAST_ALONE,
	UR_AN_ONLY_WITHIN, /* begins within another message */
	UR_AN_FIRST_WITHIN,
	UR_AN_OTHER_WITHIN, /* is of another kind than the message that it would continue */
	UR_AN_ABOVE_MTU,
	UR_AN_BELOW_MTU,
	UR_AN_LAST_EMPTY,
	UR_AN_ABOVE_RETH,
	UR_AN_BELOW_RETH,
	UR_AN_READ_HUGE,
	UR_AN_MISALIGNED,
	UR_AN_FAULTS
};
extern const char *const ur_an_fault_text[UR_AN_FAULTS];

/* The request that it is about, and the circumstances. */
enum ur_an_with {
	UR_AN_SEND = 1 << 0,
	UR_AN_WRITE = 1 << 1,
	UR_AN_READ = 1 << 2,
	UR_AN_ATOMIC = 1 << 3,
	UR_AN_FLUSH = 1 << 4,
	UR_AN_ATOMIC_WRITE = 1 << 5,
	UR_AN_BEGINS = 1 << 6, /* FIRST or ONLY; */
	UR_AN_ENDS = 1 << 7,   /* LAST or ONLY: neither is MIDDLE */
	UR_AN_ON_RC = 1 << 8,
	UR_AN_ON_UC = 1 << 9,
	UR_AN_ON_XRC = 1 << 10,
	UR_AN_RECEIVES = 1 << 11, /* a SEND, or a WRITE with immediate data */
	UR_AN_ADDS = 1 << 12,     /* FETCH_ADD */
	UR_AN_ASKED = 1 << 13,    /* AckReq */
	UR_AN_COVERS = 1 << 14,   /* messages before it, too */
	UR_AN_WRAPS = 1 << 15,    /* PSN 0 is in it, or after its beginning */
	UR_AN_MSN_ZERO = 1 << 16,
	UR_AN_NOTHING = 1 << 17,    /* no bytes */
	UR_AN_LIMITED = 1 << 18,    /* of a limited member of the partition */
	UR_AN_AFTER_READ = 1 << 19, /* that takes several PSNs */
	UR_AN_AFTER_RNR = 1 << 20,
	UR_AN_OLDER = 1 << 21, /* others were sent after it */
	UR_AN_PART = 1 << 22,  /* not from its beginning */
	UR_AN_SEVERAL = 1 << 23,
	UR_AN_ANEW = 1 << 24,
	UR_AN_IN_SEND = 1 << 25, /* the message that is open */
	UR_AN_IN_WRITE = 1 << 26,
};

struct ur_an_fact {
	enum ur_an_fact_kind kind;
	uint8_t sub, opcode; /* opcode: of the request */
	uint32_t with;       /* enum ur_an_with */
	uint32_t frame;
	const struct ur_gid *by;        /* valid as long as the call */
	const struct ur_finding *wrong; /* what is wrong, where that can be proved; NULL: nothing. Valid as long as the call */
	const char *excuse;             /* why the recording does not prove that; NULL: it does */
	uint8_t enough; /* after this number of times, without ever having been right, no excuse counts; 0: an excuse always counts */
};

typedef void (*ur_an_fact_fn)(void *ctx, const struct ur_an_fact *f);

/* From now on. */
void ur_analysis_judge(struct ur_analysis *a, ur_an_fact_fn judge, void *ctx);

#endif
