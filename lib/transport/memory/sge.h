/* SPDX-License-Identifier: BSD-3-Clause */
/* From and to scatter/gather lists. What can fail returns IBV_WC_SUCCESS or IBV_WC_LOC_PROT_ERR. */
#ifndef UR_SGE_H
#define UR_SGE_H

#include "transport/state/qp_priv.h"

#define UR_COPY_MAX 256 /* payloads up to this size are copied after the headers instead of being referred to */

/* Bytes of a list. */
static inline uint64_t ur_list_length(const struct ibv_sge *sge, int n)
{
	uint64_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += sge[i].length;
	return sum;
}

/* Copies a list; returns how many bytes there are in it. */
static inline uint64_t ur_list_copy(struct ibv_sge *to, const struct ibv_sge *from, int n)
{
	uint64_t sum = 0;

	for (int i = 0; i < n; i++) {
		to[i] = from[i];
		sum += from[i].length;
	}
	return sum;
}

/* The place `off` bytes into a list; after its last element when it is not as long. */
struct ur_sge_pos ur_sge_seek(const struct ibv_sge *sge, unsigned nsge, uint64_t off);
/* Does the program grant this access to all of the list? */
enum ibv_wc_status ur_sge_check(const struct ur_qp *qp, const struct ibv_sge *sge, unsigned nsge, int access);
/* Puts `len` bytes from *pos on into the packet after p->len, as segments or copied, and moves *pos. */
enum ibv_wc_status ur_sge_gather(const struct ur_qp *qp, const struct ur_swqe *w, struct ur_sge_pos *pos, uint32_t len, struct ur_pkt *p);

/* Copies `len` bytes into the list from *pos on, and moves *pos. The list has room for them; its keys are of the domain `pd`. */
enum ibv_wc_status ur_sge_scatter_in(const struct ur_tp *tp, const struct ur_pd *pd, const struct ibv_sge *sge, unsigned nsge,
				     struct ur_sge_pos *pos, const uint8_t *data, uint32_t len);

/*
 * Where packets of 1 << shift bytes lie from *pos on in one piece of usual memory with this access: at most *n, and *n is made smaller as
 * necessary; *mr is the region. NULL: not one of them does. *pos stays in its place, at the latest element that it may be said to be in.
 */
uint8_t *ur_sge_run(const struct ur_tp *tp, const struct ur_pd *pd, const struct ibv_sge *sge, unsigned nsge, struct ur_sge_pos *pos,
		    int access, unsigned shift, uint32_t *n, struct ur_mr **mr);

static inline enum ibv_wc_status ur_sge_scatter(const struct ur_qp *qp, const struct ibv_sge *sge, unsigned nsge, struct ur_sge_pos *pos,
						const uint8_t *data, uint32_t len)
{
	return ur_sge_scatter_in(qp->tp, qp->pd, sge, nsge, pos, data, len);
}

#endif
