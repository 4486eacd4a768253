/* SPDX-License-Identifier: BSD-3-Clause */
/* What the transport tells a trace of packets, and the names of the values that are its own. */
#include "base/bytes.h"
#include "transport/state/qp_priv.h"
#include "transport/state/req_state.h"
#include "transport/state/tp_priv.h"
#include "transport/state/trace.h"
#include "wire/hdr.h"
#include "wire/opcode.h"

void ur_tp_set_trace(struct ur_tp *tp, struct ur_trace *trace)
{
	tp->trace = trace;
}

void ur_tp_trace_rx(struct ur_tp *tp, const struct ur_pkt *p)
{
	UR_TRACE(tp->trace, RX, p->bth.dqpn, p->bth.opcode, p->bth.psn, p->payload_len, p->bth.ackreq, ur_tos_is_ce(p->tos));
}

void ur_tp_trace_row(const struct ur_qp *qp, const struct ur_row *row, unsigned n, uint32_t len)
{
	for (unsigned i = 0; i < n; i++) {
		const uint8_t *b = row->apart ? row->apart[i]->data + row->like->bth_off : row->bth + (size_t)i * row->stride;

		UR_TRACE(qp->tp->trace, RX, ur_get24(b + UR_BTH_QPN), b[UR_BTH_OPCODE], ur_get24(b + UR_BTH_PSN), len,
			 b[UR_BTH_ACKREQ] >> 7, ur_tos_is_ce(row->like->tos));
	}
}

void ur_tp_trace_refused(const struct ur_qp *qp, enum ur_counter why)
{
	UR_TRACE(qp->tp->trace, REFUSED, qp->qpn, why);
}

void ur_tp_trace_armed(const struct ur_qp *qp, enum ur_trace_timer timer, ur_time after)
{
	UR_TRACE(qp->tp->trace, TIMER_ARMED, qp->qpn, timer, after);
}

void ur_tp_trace_failed(const struct ur_qp *qp, uint64_t wr_id, enum ibv_wc_status status)
{
	UR_TRACE(qp->tp->trace, FAILED, qp->qpn, wr_id, status);
}

void ur_tp_trace_wait(struct ur_qp *qp)
{
	const uint32_t waits = 1u << UR_REQ_WINDOW | 1u << UR_REQ_RD_LIMIT | 1u << UR_REQ_FENCE | 1u << UR_REQ_RNR_WAIT |
			       1u << UR_REQ_PACED | 1u << UR_REQ_HALT | 1u << UR_REQ_DRAIN;
	enum ur_req_state s;

	if (qp->type == IBV_QPT_UD)
		return;
	s = ur_req_next(qp);
	if (waits >> s & 1)
		UR_TRACE(qp->tp->trace, WAITS, qp->qpn, s);
}

/* --- names --- */

#define NAME(prefix, id) [prefix##id] = #id
#define NAMED(table, v) ((v) < ur_array_size(table) ? (table)[v] : NULL)

static const char *const types[] = {
	NAME(IBV_QPT_, RC), NAME(IBV_QPT_, UC), NAME(IBV_QPT_, UD), NAME(IBV_QPT_, XRC_SEND), NAME(IBV_QPT_, XRC_RECV),
};
static const char *const states[] = {
	NAME(IBV_QPS_, RESET), NAME(IBV_QPS_, INIT), NAME(IBV_QPS_, RTR), NAME(IBV_QPS_, RTS),
	NAME(IBV_QPS_, SQD),   NAME(IBV_QPS_, SQE),  NAME(IBV_QPS_, ERR),
};
static const char *const statuses[] = {
	NAME(IBV_WC_, SUCCESS),         NAME(IBV_WC_, LOC_LEN_ERR),     NAME(IBV_WC_, LOC_QP_OP_ERR),     NAME(IBV_WC_, LOC_PROT_ERR),
	NAME(IBV_WC_, WR_FLUSH_ERR),    NAME(IBV_WC_, MW_BIND_ERR),     NAME(IBV_WC_, BAD_RESP_ERR),      NAME(IBV_WC_, LOC_ACCESS_ERR),
	NAME(IBV_WC_, REM_INV_REQ_ERR), NAME(IBV_WC_, REM_ACCESS_ERR),  NAME(IBV_WC_, REM_OP_ERR),        NAME(IBV_WC_, RETRY_EXC_ERR),
	NAME(IBV_WC_, RNR_RETRY_EXC_ERR), NAME(IBV_WC_, REM_INV_RD_REQ_ERR), NAME(IBV_WC_, REM_ABORT_ERR), NAME(IBV_WC_, FATAL_ERR),
	NAME(IBV_WC_, RESP_TIMEOUT_ERR), NAME(IBV_WC_, GENERAL_ERR),
};
static const char *const port_events[] = {
	NAME(IBV_EVENT_, PORT_ACTIVE), NAME(IBV_EVENT_, PORT_ERR), NAME(IBV_EVENT_, GID_CHANGE),
};

static const char *syndrome_name(uint64_t v)
{
	static const char *const codes[] = {
		[UR_NAK_PSN_SEQ] = "sequence error",         [UR_NAK_INV_REQ] = "invalid request",
		[UR_NAK_REM_ACCESS] = "remote access error", [UR_NAK_REM_OP] = "remote operation error",
		[UR_NAK_INV_RD] = "invalid RD request",
	};

	if (v > 0xff)
		return NULL;
	switch (ur_syndrome_type((uint8_t)v)) {
	case UR_AETH_ACK: return "ACK";
	case UR_AETH_RNR: return "RNR";
	case UR_AETH_NAK: return NAMED(codes, ur_syndrome_value((uint8_t)v));
	}
	return NULL;
}

const char *ur_tp_trace_name(enum ur_trace_type type, uint64_t v)
{
	switch (type) {
	case UR_TT_QP_TYPE: return NAMED(types, v);
	case UR_TT_QP_STATE: return NAMED(states, v);
	case UR_TT_STATUS: return NAMED(statuses, v);
	case UR_TT_PORT: return NAMED(port_events, v);
	case UR_TT_OPCODE: return v < 256 ? ur_opcode((uint8_t)v)->name : NULL;
	case UR_TT_WAIT: return v < UR_REQ_STATE_COUNT ? ur_req_state_name((enum ur_req_state)v) : NULL;
	case UR_TT_SYNDROME: return syndrome_name(v);
	case UR_TT_REASON: return v < UR_C_COUNT ? ur_counter_name((enum ur_counter)v) : NULL;
	case UR_TT_CAUSE: return ur_trace_cause_name(v);
	case UR_TT_TIMER: return ur_trace_timer_name(v);
	default: return NULL;
	}
}
