/* SPDX-License-Identifier: BSD-3-Clause */
/* What those have to know who judge a host, as lib/passive does: the circumstances of a finding, or of a fact. */
#ifndef UR_AN_FACTS_H
#define UR_AN_FACTS_H

#include "analyze/analyze.h"

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

/* The request that it is about, and the circumstances. Those up to ADDS follow from `opcode`, and who judges adds them (lib/passive). */
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
	UR_AN_INTACT = 1 << 27, /* its ICRC is right: its sender has meant it */
};

/* From now on facts are found, too. */
void ur_analysis_facts(struct ur_analysis *a);

#endif
