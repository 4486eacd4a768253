/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one table of what can be found in a recording: name, severity, sentence, clause (of IBTA volume 1 unless it says otherwise).
 *
 * An error is what no loss, no order of arrival and no gap in the recording explains: a host broke a rule, or a packet is damaged. A
 * warning is what costs time or data, or what a host does wrong unless the recorder missed a packet; so an error that has an excuse is a
 * warning. A note says what the recording cannot show.
 *
 * Sentences have holes: {0} to {3} a number, {p0} the s of a noun that it counts, {x0} in hexadecimal, {m0} a MAC address, {b0} the numbers
 * of the bits that are set, {t0} a time in nanoseconds, {f0} to {f2} "frame N", {s0} and {s1} a phrase (which may have holes itself), {src}
 * and {dst} the hosts of the flow that the finding is about, {e} the excuse after a colon, if there is one.
 */
#ifndef UR_ANALYZE_RULES_H
#define UR_ANALYZE_RULES_H

enum ur_severity { UR_NOTE, UR_WARNING, UR_ERROR };

/* clang-format off */
#define UR_RULES(X) \
	/* frames */ \
	X(ICRC, "ICRC", ERROR, "the ICRC is wrong: {s0}; every receiver drops this packet", "7.8.1, A17") \
	X(LENGTH, "LENGTH", ERROR, "{s0}", "9.2, A17") \
	X(OPCODE, "OPCODE", ERROR, "opcode {x0} with transport version {1} is unknown to every receiver", "9.2.1") \
	X(SNAP, "SNAP", NOTE, "the recorder kept only the beginning of {0} frame{p0}: ICRC and payload are not checked there", "") \
	X(ONEWAY, "ONEWAY", NOTE, "only packets from {src} to {dst} are recorded: what was lost, and why, cannot be determined", "") \
	X(MID, "MID", NOTE, "the recording begins in the middle of this connection", "") \
	X(RECORDER, "RECORDER", NOTE, "{s0}", "") \
	X(LIMIT, "LIMIT", NOTE, "there are more than {0} flows: the packets of the others are checked one by one only", "") \
	X(ICMP, "ICMP", WARNING, "{s0}", "RFC 792, 4443") \
	X(ICMP_GONE, "ICMP-GONE", NOTE, \
	  "{src} says (ICMP, port unreachable) that nothing receives UDP port 4791 on {dst} any more: its program has ended", \
	  "RFC 792, 4443") \
	X(PAUSE, "PAUSE", WARNING, \
	  "{s0} from {m1}, up to {f0} ({t3}): that station, or one behind it, runs out of buffers and stops its neighbour, whose senders " \
	  "wait so long", "802.3 annexes 31B, 31D") \
	X(QKEY, "QKEY", WARNING, \
	  "{0} datagram{p0} to this QP of {dst} with Q_Key {x1}, and {2} with {x3} ({f0}): " \
	  "a receiver silently drops what has not its Q_Key", \
	  "10.2.5, 9.6.1.4.1") \
	/* requests */ \
	X(OPSEQ, "OPSEQ", ERROR, "{s0} follows {s1} ({f0}): a message has a first packet, middle ones and a last", "9.2.1, 9.7.4") \
	X(MTU, "MTU", ERROR, "{0} byte{p0} of payload in {s0}, and the path MTU is {1}", "9.7.4") \
	X(RETH_LEN, "RETH-LEN", ERROR, "the message has {0} byte{p0}, and its RETH says {1}", "9.7.4") \
	X(INVALID, "INVALID", ERROR, "PSN {0} is an invalid request: {s0}", "9.7.4") \
	X(PSN, "PSN", ERROR, "PSN {0} is far from {1}, the next one, and nothing continues from it", "9.7.2") \
	X(GAP, "GAP", WARNING, "packets with PSN {0} to {1} are missing here: {s0}", "9.7.2") \
	X(MISSING, "MISSING", WARNING, "PSN {0} to {1} never arrived, and nothing shows why", "9.7.2") \
	X(UNANSWERED, "UNANSWERED", WARNING, \
	  "PSN {0} requests an answer; none arrived in the {t1} that were recorded after it, with {2} transmission{p2}", \
	  "9.7.5.1") \
	X(DEPTH, "DEPTH", ERROR, "{0} outstanding READs and atomics exceed the agreed number, {1}", "9.7.3, 12.7") \
	/* repetition */ \
	X(RETX, "RETX", WARNING, "PSN {0} {s1}: {s0}", "9.7.6") \
	X(RETX_SPURIOUS, "RETX-SPURIOUS", WARNING, "PSN {0} {s1}: {s0}", "9.7.6") \
	X(RETX_DIFFERS, "RETX-DIFFERS", ERROR, "PSN {0} was {s0} in {f0} and comes again as {s1} with other contents", "9.7.6") \
	X(RETX_DATA, "RETX-DATA", WARNING, \
	  "PSN {0} comes again with other data than in {f0}: the program changed its buffer before the request was complete", "9.7.6") \
	X(REORDERED, "REORDERED", WARNING, \
	  "PSN {0} arrives {t1} after {f0}, which follows it in order: overtaken between {src} and the recorder", \
	  "9.7.2") \
	X(TIMER_EARLY, "TIMER-EARLY", NOTE, \
	  "PSN {0} comes again {t1} after {f0} without an answer, and the timer that {f1} requests is {t2}: " \
	  "{src} has another one", "9.7.6") \
	X(TIMER_LATE, "TIMER-LATE", WARNING, \
	  "PSN {0} comes again only {t1} after {f0} or the last answer, and the timer that {f1} requests is {t2}", "9.7.6") \
	X(TIMER_UNEVEN, "TIMER-UNEVEN", NOTE, \
	  "PSN {0} of {f0} comes again at uneven intervals, from {t1} to {t2}: {src} waits longer each time, or something else " \
	  "than its timer made it repeat", "9.7.6") \
	X(RETRY_LIMIT, "RETRY-LIMIT", WARNING, "transmission {1} of PSN {0}, and the retry count of the connection request is {2}", \
	  "9.7.6") \
	/* answers */ \
	X(ACK_AHEAD, "ACK-AHEAD", ERROR, "PSN {0} is answered, but requests had reached only {1}", "9.7.7") \
	X(ACK_OLD, "ACK-OLD", WARNING, \
	  "PSN {0} is answered after {1} was ({f0}): overtaken between {src} and the recorder, or answered out of order", \
	  "9.7.5.1") \
	X(ACK_DUP, "ACK-DUP", NOTE, "PSN {0} is answered again, as in {f0}, although no request had been repeated", "9.7.5.1") \
	X(TAKEN, "TAKEN", ERROR, "PSN {0} ({f0}) is accepted, but {s0}", "9.7.4, 9.9.3") \
	X(UC_ANSWER, "UC-ANSWER", ERROR, "{s0} on an unreliable connection", "9.8.2") \
	X(MSN, "MSN", ERROR, "the answer to PSN {0} has MSN {1}, but the number of complete messages is {2}", "9.7.7") \
	X(ANSWER_KIND, "ANSWER-KIND", ERROR, "{s0} answers PSN {0}, which is {s1} ({f0})", "9.7.5.1") \
	X(SYNDROME, "SYNDROME", ERROR, "syndrome {x0} is reserved", "table 45") \
	X(NAK_SEQ, "NAK-SEQ", WARNING, "{src} misses PSN {0}: {s0}", "9.7.5.2") \
	X(NAK_NOGAP, "NAK-NOGAP", WARNING, "{src} misses PSN {0}, but no later request was sent", "9.7.5.2") \
	X(NAK_BACK, "NAK-BACK", WARNING, "{src} misses PSN {0}, which it has answered in {f0}", "9.7.5.2") \
	X(NAK_DUP, "NAK-DUP", NOTE, "{src} misses PSN {0} again, as in {f0}, although nothing had been repeated", "9.7.5.2") \
	X(NAK_FATAL, "NAK-FATAL", ERROR, "{src} refuses PSN {0} ({f0}) for good: {s0}{s1}", "9.7.5.2, 9.9.3") \
	X(RNR, "RNR", WARNING, "{src} has no receive buffer for PSN {0} ({f0}); it may be repeated in {t1}", "9.7.5.2, table 46") \
	X(RNR_EARLY, "RNR-EARLY", ERROR, "PSN {0} comes again {t1} after {f0}, which asked to wait for {t2}", "9.7.5.2, table 46") \
	X(RNR_NONE, "RNR-NONE", WARNING, "{src} has no receive buffer for PSN {0}, {s0} ({f0}), which needs none", "9.7.5.2") \
	X(CREDITS, "CREDITS", WARNING, \
	  "PSN {0} goes {1} message{p1} beyond those that {dst} has buffers for, as {f0} says: {src} ignores flow control, or " \
	  "received a later answer that is missing here", "9.7.7") \
	X(ACK_AFTER_RNR, "ACK-AFTER-RNR", WARNING, "PSN {0} is answered, and {1} has not been repeated since {f0} refused it", "9.7.5.2") \
	X(NAK_AFTER_RNR, "NAK-AFTER-RNR", WARNING, \
	  "{src} misses PSN {0}: it has no receive buffer for that ({f0}), and drops what follows it{e}", "9.7.5.2") \
	X(ACK_AFTER_FATAL, "ACK-AFTER-FATAL", ERROR, "PSN {0} is answered, although {f0} refused a request with a fatal NAK{e}", "9.9.3") \
	X(ACK_AFTER_DREP, "ACK-AFTER-DREP", ERROR, "the request of {f1} is acknowledged, after the DREP of {f0}", "12.9.9, 10.3.1") \
	/* READ and atomic */ \
	X(READ_GAP, "READ-GAP", WARNING, "{0} response packet{p0} from PSN {1} on cannot be found here: {s0}", "9.7.5.1") \
	X(READ_DUP, "READ-DUP", WARNING, "the response with PSN {0} again, and no request has asked for it since {f0}", "9.7.5.1") \
	X(READ_LEN, "READ-LEN", ERROR, "the response with PSN {0} has {1} byte{p1} instead of {2}", "9.7.5.1") \
	X(READ_KIND, "READ-KIND", WARNING, "{s0} has PSN {0}, packet {1} of the {2} that {f0} requests", "9.2.1, 9.7.5.1") \
	X(READ_SHORT, "READ-SHORT", WARNING, "responses end with PSN {0}, after {1} of the {2} that {f0} requests", "9.7.5.1") \
	X(READ_PART, "READ-PART", WARNING, \
	  "{f0} asks for the rest of a READ from PSN {0} on, and the response to that does not begin with FIRST or ONLY{e}", "9.7.5.1.4") \
	X(ATOMIC_GAP, "ATOMIC-GAP", WARNING, "the answer to the atomic with PSN {0} ({f0}) is missing here: {s0}", "9.7.5.1") \
	X(ATOMIC_VALUE, "ATOMIC-VALUE", WARNING, \
	  "the atomic of {f0} found {x0} at address {x2}, where {f1} left {x1}: another host or the program there wrote to it, or " \
	  "{src} did not execute each atomic once", "9.4.5") \
	X(ATOMIC_AGAIN, "ATOMIC-AGAIN", ERROR, \
	  "the atomic with PSN {0} ({f0}) was answered with {x2}, and is answered with {x1} now: it was executed again", "9.4.5, 9.7.5") \
	/* congestion */ \
	X(CNP_PACE, "CNP-PACE", WARNING, "{s0}", "A17") \
	X(CE_NOCNP, "CE-NOCNP", WARNING, "{dst} got {0} packet{p0} marked for congestion from {src}, the first in {f0}, and sent no CNP", \
	  "A17") \
	X(CNP_BECN, "CNP-BECN", ERROR, "a CNP without BECN", "A17.9") \
	/* connection management */ \
	X(CM_PSN, "CM-PSN", ERROR, "requests begin with PSN {0}, and {f0} says {1}", "12.7") \
	X(CM_QPN, "CM-QPN", ERROR, "packets go to QP {x0}, and {f0} says {x1}", "12.7") \
	X(CM_IPHDR, "CM-IPHDR", ERROR, "the {s0} address in the RDMA CM header is not that of the packet", "A11") \
	X(CM_GID, "CM-GID", ERROR, "the {s0} GID of the path is not the address of the packet", "12.7, A17") \
	X(CM_REJ, "CM-REJ", WARNING, "{src} rejects the connection: {s0} (reason {0}){s1}", "chapter 12") \
	X(CM_NOREP, "CM-NOREP", WARNING, "no answer came to the {s0} in the {t0} after it, with {1} transmission{p1}", "12.9") \
	X(CM_RETRY, "CM-RETRY", WARNING, "the {s0} of {f0} again, {t0} later", "12.9") \
	X(CM_AGAIN, "CM-AGAIN", NOTE, \
	  "the {s0} of {f0} again, {t0} later, although {f1} answers it: that was lost after the recorder or came too late, or {src} " \
	  "repeats it in any case", "12.9") \
	X(CM_MRA, "CM-MRA", NOTE, "{src} has the {s0} and asks for more time (MRA): its program has not answered yet", "12.6.6") \
	X(CM_REP, "CM-REP", ERROR, "the REQ of {f1} came again, and gets a REP with another id than that of {f0}{e}", "12.9") \
	X(CM_FORM, "CM-FORM", ERROR, "a packet to QP 1 that is not a message of the connection manager", "13.4.2, chapter 12")
/* clang-format on */

/* clang-format off */
/* What a host did right: facts for those who judge it, without a sentence. One is about one request, or one exchange of the CM. */
#define UR_FACTS(X) \
	/* requesters */ \
	X(FIRST) /* the first request has the PSN that was agreed on */ \
	X(WRAP) /* PSN 0 after 0xffffff, in its turn */ \
	X(REPAIR) /* a request comes again: `sub` is an ur_an_cause */ \
	X(STOPPED) /* nothing came again after a fatal NAK: `sub` is its code */ \
	X(ONCE) /* SENDs were acknowledged, and none came again */ \
	/* responders */ \
	X(ACK) /* a plain ACK with a right MSN, for a request that had none */ \
	X(ACK_AGAIN) /* the same of a request that has come again */ \
	X(NAK) /* PSN sequence error, for PSNs that are missing */ \
	X(NAK_ALONE) /* one NAK for a gap with several packets after it */ \
	X(RNR) \
	X(RNR_ALONE) /* what came after the refused request was dropped silently */ \
	X(FAULT_REFUSED) /* the right NAK for a faulty request: `sub` is an ur_an_fault */ \
	X(ENDED) /* requests after a fatal NAK got no answer: `sub` is its code */ \
	X(READ) /* all responses to a READ, FLUSH or ATOMIC WRITE, as it asks for them */ \
	X(READ_AGAIN) /* the same after it has come again */ \
	X(ATOMIC) /* an atomic returned what was left there */ \
	X(ATOMIC_AGAIN) /* it returned the same as before when it came again */ \
	X(CNP) \
	X(UC_SILENT) \
	/* the connection manager */ \
	X(CM_REFUSED) /* a REJ: `sub` is its reason, as far as it is below 256 */ \
	X(CM_REP_AGAIN) /* the same REP for a REQ that has come again */ \
	X(CM_REP_REPEATED) /* a REP that has no answer comes again */ \
	X(CM_REP_DONE) /* a REP that was answered did not: `sub` is the attribute of the answer */ \
	X(CM_EARLY) /* a message was acknowledged before the RTU came */ \
	X(CM_DREP) \
	X(CM_DREP_AGAIN) \
	X(CM_DREQ_CROSSED) \
	X(CM_DREQ_REPEATED) \
	X(CM_GONE) /* after its DREP a host no longer answered requests */ \
	X(CM_SIDR) /* `sub` is the status */ \
	X(CM_SIDR_AGAIN)

enum ur_rule { /* or a fact */
#define UR_RULE_ENUM(id, name, severity, sentence, clause) UR_RULE_##id,
	UR_RULES(UR_RULE_ENUM)
#undef UR_RULE_ENUM
	UR_RULE_COUNT,
#define UR_FACT_ENUM(id) UR_FACT_##id,
	UR_FACTS(UR_FACT_ENUM)
#undef UR_FACT_ENUM
	UR_FACT_END
};
/* clang-format on */

struct ur_rule_info {
	const char *name;
	enum ur_severity severity;
	const char *sentence, *clause;
};

extern const struct ur_rule_info ur_rules[UR_RULE_COUNT];

#endif
