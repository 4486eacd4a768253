/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/queues/rwqe.h"

#include <errno.h>

#include "transport/memory/sge.h"

int ur_recv_write(struct ur_rwqe *w, const struct ibv_recv_wr *wr, uint32_t max_sge)
{
	uint64_t length;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > max_sge)
		return EINVAL;
	length = ur_list_copy(w->sge, wr->sg_list, wr->num_sge);
	w->wr_id = wr->wr_id;
	w->length = length > UINT32_MAX ? UINT32_MAX : (uint32_t)length;
	w->nsge = (uint32_t)wr->num_sge;
	return 0;
}
