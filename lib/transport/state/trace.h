/* SPDX-License-Identifier: BSD-3-Clause */
/* What a trace is told from hot functions, which had to make room for the values otherwise. */
#ifndef UR_TP_TRACE_H
#define UR_TP_TRACE_H

#include "transport/transport.h"
#include "wire/row.h"

void ur_tp_trace_rx(struct ur_tp *tp, const struct ur_pkt *p);
/* The same of the first n packets of a row, with `len` bytes of payload each. */
void ur_tp_trace_row(const struct ur_qp *qp, const struct ur_row *row, unsigned n, uint32_t len);
/* What keeps the requester from going on, as far as its own packets do. */
void ur_tp_trace_wait(struct ur_qp *qp);
void ur_tp_trace_refused(const struct ur_qp *qp, enum ur_counter why);
void ur_tp_trace_armed(const struct ur_qp *qp, enum ur_trace_timer timer, ur_time after);
void ur_tp_trace_failed(const struct ur_qp *qp, uint64_t wr_id, enum ibv_wc_status status);

#endif
