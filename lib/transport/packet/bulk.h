/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bulk packets (wire/bulk.h). They are an offer: a run that is sent for the first time goes as one where it may, and when its payload
 * cannot be read, its receiver asks for it again, and then it goes as packets, which find out why. Requests that are wrong fail as packets
 * do.
 */
#ifndef UR_TRANSPORT_BULK_H
#define UR_TRANSPORT_BULK_H

#include "transport/state/qp_priv.h"
#include "transport/state/token.h"
#include "wire/bulk.h"

#define UR_BULK_LEAST 8192u        /* bytes for which it is worth while */
#define UR_BULK_MOST (256u * 1024) /* bytes of one: a few microseconds of copying */

/* --- to send --- */

/* May the next packets of this QP to its peer go as a bulk packet, if there are `len` bytes of payload left? */
static inline bool ur_bulk_may(const struct ur_qp *qp, uint64_t len)
{
	return ur_unlikely(qp->path->local) && len >= qp->tp->c.bulk_least && qp->type == IBV_QPT_RC && !qp->cc.rate.active &&
	       ur_tp_takes(qp) & UR_TP_BULK;
}

/*
 * Begins one with that BTH, of the next `npkts` packets of `len` bytes. The caller writes the extended headers (ur_bulk_ext), adds
 * segments and ends it, or undoes it. NULL: there is no buffer, or none may be begun now.
 */
struct ur_pkt *ur_bulk_begin(struct ur_qp *qp, const struct ur_bth *bth, uint32_t npkts, uint32_t len);
uint8_t *ur_bulk_ext(struct ur_pkt *p);
/* False: there is no room for another. */
bool ur_bulk_add(struct ur_pkt *p, const struct ur_mr *mr, const uint8_t *at, uint32_t len);
/* The payload is a request's, or (`mr`) a READ response's, from that region. */
void ur_bulk_end(struct ur_qp *qp, struct ur_pkt *p, const struct ur_mr *mr);

/* The next run of the WQE `w`, which is at `cur`. False: it has to go as packets. */
bool ur_bulk_build(struct ur_qp *qp, struct ur_swqe *w);

/* What was posted to the QP may be given up from now on: nobody shall take its payload any more. */
void ur_bulk_revoke(struct ur_qp *qp);

/* --- received --- */

enum ur_fetched { UR_FETCHED, UR_FETCH_LOST /* copy it again, from packets */, UR_FETCH_PROT /* our own memory is at fault */ };

/* Copies the payload of `p` to `to`, bytes of the region `mr` that a lookup has granted. */
enum ur_fetched ur_bulk_write(struct ur_qp *qp, const struct ur_pkt *p, struct ur_mr *mr, uint8_t *to);
/* Copies it into the list, whose keys are of `pd`, from *pos on, and moves *pos if it could be fetched. The list has room for it. */
enum ur_fetched ur_bulk_scatter(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_pd *pd, const struct ibv_sge *sge, unsigned nsge,
				struct ur_sge_pos *pos);

#endif
