/* SPDX-License-Identifier: BSD-3-Clause */
/* Which members of the transport's structures are part of a state and which are not, and why. For hash.c alone. */
#ifndef UR_TEST_HASH_FIELDS_H
#define UR_TEST_HASH_FIELDS_H

#include "transport/pending/rd_table.h"
#include "transport/pending/reorder.h"
#include "test/explore/transport/world.h"

enum how { VALUE, TIME, NOT };

struct field {
	uint32_t at, size;
	enum how how;
};

struct table {
	const char *name;
	const struct field *fields;
	uint32_t n, size, align;
};

#define SIZE_OF(m) sizeof(((struct T *)NULL)->m)
#define IS(m)                                                                                                                              \
	{                                                                                                                                  \
		offsetof(struct T, m), SIZE_OF(m), VALUE                                                                                   \
	}
#define AT(m)                                                                                                                              \
	{                                                                                                                                  \
		offsetof(struct T, m), SIZE_OF(m), TIME                                                                                    \
	}
#define NO(m, why)                                                                                                                         \
	{                                                                                                                                  \
		offsetof(struct T, m), SIZE_OF(m), NOT                                                                                     \
	}
/* Alignment between the two. */
#define GAP(after, before)                                                                                                                 \
	{                                                                                                                                  \
		offsetof(struct T, after) + SIZE_OF(after), offsetof(struct T, before) - offsetof(struct T, after) - SIZE_OF(after), NOT   \
	}
#define TABLE(fields, what)                                                                                                                \
	{                                                                                                                                  \
		what, fields, ur_array_size(fields), sizeof(struct T), _Alignof(struct T)                                                  \
	}

#define T ur_window
static const struct field window_fields[] = {
	IS(size), IS(max),       IS(ack_every),     IS(grow_from), IS(rd_shift), IS(slow_start), IS(tight),
	IS(rate), IS(back_offs), IS(backed_off_at), AT(moved_at),  IS(n),        IS(ns),
};
static const struct table window_table = TABLE(window_fields, "ur_window");
#undef T

#define T ur_rtt
static const struct field rtt_fields[] = {
	IS(mean),
	IS(var),
	IS(least),
	IS(high),
	IS(handshake),
	IS(last),
	NO(samples, "qp_cwnd.c alone asks whether it has changed, and notes it"),
	IS(psn),
	AT(at),
	IS(resent),
};
static const struct table rtt_table = TABLE(rtt_fields, "ur_rtt");
#undef T

#define T ur_tail_probe
static const struct field tail_probe_fields[] = {
	IS(times),
	IS(sent),
	IS(all),
	IS(copies),
	IS(turn),
	IS(one),
	IS(eager),
	IS(spent),
	NO(earned, "a way is too short to use the budget up"),
	NO(budget, "likewise"),
	AT(since),
	AT(sent_at),
	AT(loss_at),
	AT(news),
	IS(doubt.n),
	IS(doubt.from),
	IS(doubt.upto),
	IS(doubt.paid),
	IS(doubt.took),
	AT(doubt.loss_at),
};
static const struct table tail_probe_table = TABLE(tail_probe_fields, "ur_tail_probe");
#undef T

#define T ur_cwnd
static const struct field cwnd_fields[] = {
	IS(size),   IS(first),   IS(max),       IS(base),      IS(last),    IS(delay),     IS(before),   IS(noise),    IS(slope),
	IS(lowest), IS(samples), AT(lowest_at), IS(single),    IS(singles), AT(single_at), IS(unmet),    AT(based_at), AT(dipped_at),
	IS(acked),  IS(lost),    IS(seen),      IS(seen_lost), IS(longest), IS(low_sent),  IS(low_lost), IS(times),    IS(chance),
	IS(growth), IS(lossy),   IS(marked),    IS(heavy),     IS(kept),    AT(period_at), AT(cut_at),   AT(harm_at),
};
static const struct table cwnd_table = TABLE(cwnd_fields, "ur_cwnd");
#undef T

#define T ur_timer
static const struct field timer_fields[] = {
	NO(link, "its place in the wheel follows from its time"),
	AT(when),
	NO(fn, "always the same"),
};
static const struct table timer_table = TABLE(timer_fields, "ur_timer");
#undef T

#define T ur_qp_cwnd
static const struct field qp_cwnd_fields[] = {
	IS(on),
	IS(first),
	IS(slow),
	IS(seen),
	NO(losses, "hashed below, as news"),
	NO(samples, "likewise"),
	NO(traced, "nobody traces"),
	NO(w, "a table of its own"),
	NO(timer, "a table of its own"),
};
static const struct table qp_cwnd_table = TABLE(qp_cwnd_fields, "ur_qp_cwnd");
#undef T

#define T ur_scoreboard
static const struct field scoreboard_fields[] = {
	NO(maps, "as far as it is in use it is hashed below"),
	IS(busy),
	IS(sacks),
	IS(one_hole),
	IS(base),
	IS(top),
	IS(done),
	IS(split),
	IS(gone),
	IS(spare),
	IS(rd_early),
	IS(nlost),
	IS(first),
	NO(losses, "qp_cwnd.c alone asks whether it has changed, and notes it"),
	NO(head, "a number that runs on: the queue is hashed from it to tail"),
	NO(tail, "likewise"),
	NO(answers, "counts some in the queue"),
	IS(scan),
	NO(seen, "evidence is hashed below, relative to head"),
	NO(waits, "likewise"),
	NO(ripe, "likewise"),
	AT(due),
	IS(reo_wnd),
	IS(reo_persist),
};
static const struct table scoreboard_table = TABLE(scoreboard_fields, "ur_scoreboard");
#undef T

#define T ur_retransmission
static const struct field retransmission_fields[] = {
	IS(psn), IS(n), IS(mark), IS(upto), IS(answer), IS(first), AT(at),
};
static const struct table retransmission_table = TABLE(retransmission_fields, "ur_retransmission");
#undef T

#define T ur_requester
static const struct field requester_fields[] = {
	IS(head),
	IS(cur),
	IS(fresh),
	IS(tail),
	IS(una),
	IS(next),
	IS(max),
	IS(pos),
	IS(rpos),
	IS(since_ack),
	IS(asked),
	IS(packets_until),
	IS(restart),
	IS(rd_out),
	IS(rd_wqes),
	IS(locals),
	IS(stops),
	IS(max_rd),
	IS(retry_cnt),
	IS(retry_left),
	IS(rnr_cnt),
	IS(rnr_left),
	IS(hole),
	IS(reseek),
	IS(hello),
	IS(hello_end),
	IS(hello_most),
	IS(timeout),
	IS(wait),
	AT(deadline),
	AT(retried_at),
	AT(sent_at),
	NO(refused_at, "the peers' RNR timers are longer than what it makes longer"),
	IS(thrown_away),
	IS(refused),
	IS(refused_until),
	NO(window, "a table of its own"),
	NO(rtt, "likewise"),
	NO(cwnd, "likewise"),
	NO(probe, "likewise"),
	NO(scoreboard, "likewise"),
	IS(first),
	IS(answers),
	IS(unreachable),
	IS(unreachable_una),
	AT(unreachable_due),
};
static const struct table requester_table = TABLE(requester_fields, "ur_requester");
#undef T

#define T ur_read_resend
static const struct field read_resend_fields[] = {
	AT(asked_at), NO(sent, "whether it is as much as now is hashed below"),
	IS(times),    IS(series),
	IS(from),     IS(newest),
	IS(epsn),     NO(timer, "a table of its own"),
};
static const struct table read_resend_table = TABLE(read_resend_fields, "ur_read_resend");
#undef T

#define T ur_responder
static const struct field responder_fields[] = {
	IS(epsn),
	IS(msn),
	IS(head),
	IS(tail),
	NO(w, "whether there is one is hashed below; which one, head says"),
	IS(expect),
	IS(nak_sent),
	IS(dying),
	IS(slow_path),
	IS(peer_sacks),
	IS(goes_back),
	IS(rd_larger),
	IS(ack_pending),
	IS(ack_again),
	IS(ack_syndrome),
	IS(min_rnr),
	IS(ack_psn),
	IS(ack_msn),
	IS(probed),
	IS(pos),
	IS(got),
	IS(rkey),
	IS(va),
	IS(left),
	IS(dma_len),
	NO(rd_cur, "hashed relative to rd_tail"),
	NO(rd_tail, "a number that runs on"),
	IS(rd_count),
	IS(rd_n),
	NO(rd, "as far as its entries are valid they are hashed below"),
	NO(side_head, "as rd_cur"),
	NO(side_tail, "as rd_tail"),
	NO(reorder, "what is kept is hashed below"),
	NO(paced_at, "nothing is farther away than what is kept of any peer"),
	NO(paced_from, "likewise"),
	NO(shown, "likewise"),
	NO(listens, "runs down from more packets than a way has that does not come back to a state"),
	IS(beyond),
	NO(resend, "a table of its own"),
};
static const struct table responder_table = TABLE(responder_fields, "ur_responder");
#undef T

#define T ur_rd_res
static const struct field rd_res_fields[] = {
	IS(va),  IS(result), IS(rkey), IS(len),   IS(psn),    IS(npkts),        IS(msn),         IS(start), IS(k),
	IS(end), IS(stop),   IS(why),  IS(again), IS(opcode), IS(flush_access), IS(flush_whole), IS(srqn),
};
static const struct table rd_res_table = TABLE(rd_res_fields, "ur_rd_res");
#undef T

#define T ur_dcqcn
static const struct field dcqcn_fields[] = {
	IS(active), IS(timer_stage), IS(byte_stage), GAP(byte_stage, line), IS(line),        IS(rate), IS(target),
	IS(alpha),  IS(bytes),       AT(cut_at),     AT(alpha_at),          AT(increase_at),
};
static const struct table dcqcn_table = TABLE(dcqcn_fields, "ur_dcqcn");
#undef T

#define T ur_cc
static const struct field cc_fields[] = {
	NO(rate, "a table of its own"), IS(cnp_due), IS(cnp_sent), AT(cnp_at), AT(next), NO(timer, "a table of its own"),
};
static const struct table cc_table = TABLE(cc_fields, "ur_cc");
#undef T

#define T ur_qp
static const struct field qp_fields[] = {
	NO(tp, "always the same"),
	NO(path, "likewise"),
	NO(pd, "likewise"),
	IS(qpn),
	IS(dqpn),
	IS(mtu),
	IS(mtu_shift),
	IS(state),
	IS(access),
	NO(send_cq, "emptied after each step"),
	NO(recv_cq, "likewise"),
	NO(srq, "always the same; hashed by itself"),
	NO(xrcd, "none"),
	NO(link, "the lists are hashed below"),
	NO(stalled, "none has"),
	NO(timer, "a table of its own"),
	NO(req, "likewise"),
	NO(resp, "likewise"),
	NO(windows, "none are bound"),
	NO(cc, "a table of its own"),
	NO(n, "counts"),
	NO(heard, "qp_cwnd.c alone asks for it: hashed there"),
	IS(broken),
	IS(no_mcast_loopback),
	IS(sig_all),
	IS(sqd_notify),
	IS(srq_only),
	IS(type),
	IS(service),
	IS(ngroups),
	NO(cap, "always the same"),
	NO(attr, "for queries"),
	NO(context, "the program's"),
	NO(event, "the program's"),
	GAP(event, db),
	NO(db, "the doorbell is answered at once"),
	GAP(db, doorbell_link),
	NO(doorbell_link, "likewise"),
	GAP(doorbell_link, sq),
	NO(sq, "what is posted is known by its number, and hashed below"),
	NO(rq, "likewise"),
	NO(sq_ext, "likewise"),
};
static const struct table qp_table = TABLE(qp_fields, "ur_qp");
#undef T

#endif
