/* SPDX-License-Identifier: BSD-3-Clause */
/* Scatter/gather lists. Keys are looked up for every packet: an MR may go away in the middle of a message. */
#include "transport/memory/memory.h"
#include "transport/memory/mr.h"
#include "transport/memory/sge.h"
#include "transport/state/qp_priv.h"
#include "transport/state/wqe.h"

struct ur_sge_pos ur_sge_seek(const struct ibv_sge *sge, unsigned nsge, uint64_t off)
{
	struct ur_sge_pos pos = {0, 0};

	while (pos.i < nsge && off >= sge[pos.i].length)
		off -= sge[pos.i++].length;
	pos.off = pos.i < nsge ? (uint32_t)off : 0;
	return pos;
}

enum ibv_wc_status ur_sge_check(const struct ur_qp *qp, const struct ibv_sge *sge, unsigned nsge, int access)
{
	struct ur_mr *mr;

	for (unsigned i = 0; i < nsge; i++)
		if (sge[i].length && !ur_mr_local(qp, sge[i].lkey, sge[i].addr, sge[i].length, access, &mr))
			return IBV_WC_LOC_PROT_ERR;
	return IBV_WC_SUCCESS;
}

static void append(struct ur_pkt *p, const uint8_t *from, uint32_t n)
{
	memcpy(p->data + p->len, from, n);
	p->len += n;
}

static bool append_from(const struct ur_tp *tp, struct ur_pkt *p, const struct ur_mr *mr, uint8_t *from, uint32_t n)
{
	if (!ur_mr_read(tp, mr, p->data + p->len, from, n))
		return false;
	p->len += n;
	return true;
}

/* More fragments than a packet has segments for: what is there so far goes into the packet itself. */
static bool flatten(const struct ur_tp *tp, struct ur_pkt *p)
{
	for (unsigned i = 0; i < p->nseg; i++) {
		const struct ur_mr *mr = ur_container_of(p->seg[i].ref, struct ur_mr, frames);

		if (!append_from(tp, p, mr, p->seg[i].data, p->seg[i].len))
			return false;
	}
	p->nseg = 0;
	return true;
}

/* The segments so far do not hold their memory yet: whoever frees the packet may not let go of it. */
static enum ibv_wc_status drop_segments(struct ur_pkt *p)
{
	p->nseg = 0;
	return IBV_WC_LOC_PROT_ERR;
}

static enum ibv_wc_status gather_list(const struct ur_qp *qp, const struct ur_swqe *w, struct ur_sge_pos *pos, uint32_t len,
				      struct ur_pkt *p)
{
	struct ur_sge_pos at = *pos;
	/* Without acknowledgements a WQE completes before its frames have left, and the program may change the memory. */
	bool copy = p->flags & UR_PKT_COMPLETE || len <= UR_COPY_MAX || !ur_qp_acked(qp);

	while (len) {
		const struct ibv_sge *s = &w->sge[at.i];
		uint32_t n;
		struct ur_mr *mr;
		uint8_t *from;

		if (ur_unlikely(at.i >= w->nsge))
			return drop_segments(p);
		n = ur_min_u32(len, s->length - at.off);
		if (!n) {
			at = (struct ur_sge_pos){at.i + 1, 0};
			continue;
		}
		from = ur_mr_local(qp, s->lkey, s->addr, s->length, 0, &mr);
		if (ur_unlikely(!from))
			return drop_segments(p);
		from += at.off;
		if (!copy && (ur_unlikely(p->nseg == UR_PKT_SEGS) || ur_mr_unusual(mr))) {
			if (!flatten(qp->tp, p))
				return drop_segments(p);
			copy = true;
		}
		if (!copy)
			p->seg[p->nseg++] = (struct ur_seg){from, n, &mr->frames};
		else if (ur_unlikely(!append_from(qp->tp, p, mr, from, n)))
			return drop_segments(p);
		at.off += n;
		len -= n;
	}
	ur_pkt_hold(p);
	*pos = at;
	return IBV_WC_SUCCESS;
}

/* A short message from one piece of memory, as most are. */
static enum ibv_wc_status gather_short(const struct ur_qp *qp, const struct ur_swqe *w, struct ur_sge_pos *pos, struct ur_pkt *p)
{
	const struct ibv_sge *s = &w->sge[0];
	struct ur_mr *mr;
	uint8_t *from = ur_mr_local(qp, s->lkey, s->addr, s->length, 0, &mr);

	if (ur_unlikely(!from || !append_from(qp->tp, p, mr, from, s->length)))
		return IBV_WC_LOC_PROT_ERR;
	pos->off = s->length;
	return IBV_WC_SUCCESS;
}

enum ibv_wc_status ur_sge_gather(const struct ur_qp *qp, const struct ur_swqe *w, struct ur_sge_pos *pos, uint32_t len, struct ur_pkt *p)
{
	if (w->flags & IBV_SEND_INLINE) {
		append(p, (const uint8_t *)w->sge + pos->off, len);
		pos->off += len;
		return IBV_WC_SUCCESS;
	}
	if (ur_likely(w->nsge == 1 && len && len == w->length && len <= UR_COPY_MAX)) /* so *pos is its beginning */
		return gather_short(qp, w, pos, p);
	return gather_list(qp, w, pos, len, p);
}

enum ibv_wc_status ur_sge_scatter_in(const struct ur_tp *tp, const struct ur_pd *pd, const struct ibv_sge *sge, unsigned nsge,
				     struct ur_sge_pos *pos, const uint8_t *data, uint32_t len)
{
	while (len) {
		const struct ibv_sge *s = &sge[pos->i];
		uint32_t n;
		struct ur_mr *mr;
		uint8_t *to;

		if (ur_unlikely(pos->i >= nsge))
			return IBV_WC_LOC_PROT_ERR;
		n = ur_min_u32(len, s->length - pos->off);
		if (!n) {
			*pos = (struct ur_sge_pos){pos->i + 1, 0};
			continue;
		}
		to = ur_mr_in(tp, pd, s->lkey, s->addr, s->length, IBV_ACCESS_LOCAL_WRITE, &mr);
		if (ur_unlikely(!to) || ur_unlikely(!ur_mr_write(tp, mr, to + pos->off, data, n)))
			return IBV_WC_LOC_PROT_ERR;
		pos->off += n;
		data += n;
		len -= n;
	}
	return IBV_WC_SUCCESS;
}

uint8_t *ur_sge_run(const struct ur_tp *tp, const struct ur_pd *pd, const struct ibv_sge *sge, unsigned nsge, struct ur_sge_pos *pos,
		    int access, unsigned shift, uint32_t *n, struct ur_mr **mr)
{
	const struct ibv_sge *s;
	uint8_t *to;

	while (pos->i < nsge && pos->off == sge[pos->i].length)
		*pos = (struct ur_sge_pos){pos->i + 1, 0};
	if (pos->i >= nsge)
		return NULL;
	s = &sge[pos->i];
	*n = ur_min_u32(*n, (s->length - pos->off) >> shift);
	to = *n ? ur_mr_in(tp, pd, s->lkey, s->addr, s->length, access, mr) : NULL;
	return to && !ur_mr_unusual(*mr) ? to + pos->off : NULL;
}
