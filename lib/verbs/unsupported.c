/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Public functions of libibverbs for objects that uroce does not have: each says EOPNOTSUPP. They are here because the real
 * library's would follow private pointers of a context that has none. What a program can only call with an object that it cannot
 * get is answered all the same.
 */
#include <errno.h>

#include "verbs/verbs_priv.h"

/* --- enhanced connection establishment: vendors' options, and uroce has none --- */

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (!qp || !ece || !ece->vendor_id)
		return uv_errno(EINVAL);
	return uv_errno(EOPNOTSUPP);
}

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (!qp || !ece)
		return uv_errno(EINVAL);
	memset(ece, 0, sizeof(*ece));
	return uv_errno(EOPNOTSUPP);
}
