/* SPDX-License-Identifier: BSD-3-Clause */
/* What the responder decides of a request packet. */
#ifndef UR_VERDICT_H
#define UR_VERDICT_H

#include "transport/transport.h"

#define UR_RESP_VERDICTS(X)                                                                                                                \
	X(DONE)                                                                                                                            \
	X(DUPLICATE)                                                                                                                       \
	X(OUT_OF_SEQ)                                                                                                                      \
	X(REORDERED)                                                                                                                       \
	X(REORDERED_TWICE)                                                                                                                 \
	X(UNREAD)                                                                                                                          \
	X(RNR)                                                                                                                             \
	X(BAD_ORDER)                                                                                                                       \
	X(UNSUPPORTED)                                                                                                                     \
	X(BAD_LENGTH)                                                                                                                      \
	X(LATE_READ)                                                                                                                       \
	X(NO_MEMORY)                                                                                                                       \
	X(TOO_MANY_READS) X(MISALIGNED) X(ACCESS) X(LOCAL_ACCESS) X(TOO_LONG) X(LOCAL_PROT) X(INVALIDATE) X(XRC_SRQ) X(SRQ_FAILED)

enum ur_resp_verdict {
#define UR_RESP_VERDICT_ENUM(n) UR_RESP_##n,
	UR_RESP_VERDICTS(UR_RESP_VERDICT_ENUM)
#undef UR_RESP_VERDICT_ENUM
		UR_RESP_VERDICT_COUNT
};

const char *ur_resp_verdict_name(enum ur_resp_verdict v);

#endif
