/* SPDX-License-Identifier: BSD-3-Clause */
/* rdma_set_option(3) and the ECE parameters (rdma_set_local_ece(3), rdma_get_remote_ece(3)). */
#include <string.h>

#include "rdmacm/rdmacm_priv.h"

#define ACK_TIMEOUT_MAX 31 /* 5 bits on the wire */

static int set_tos(struct ur_id *u, int value)
{
	u->tos = (uint8_t)value;
	return 0;
}

static int set_reuseaddr(struct ur_id *u, int value)
{
	if (u->state == UR_ID_LISTEN && value)
		return EINVAL;
	u->reuse = value != 0;
	return 0;
}

static int set_afonly(struct ur_id *u, int value)
{
	if (u->state != UR_ID_IDLE && u->state != UR_ID_BOUND)
		return EINVAL;
	u->afonly = value != 0;
	return 0;
}

static int set_ack_timeout(struct ur_id *u, int value)
{
	if ((u->id.qp_type != IBV_QPT_RC && u->id.qp_type != IBV_QPT_XRC_SEND) || value > ACK_TIMEOUT_MAX)
		return EINVAL;
	u->ack_timeout = (uint8_t)value;
	u->ack_timeout_set = true;
	return 0;
}

static const struct option {
	int level, name;
	size_t len;
	int (*set)(struct ur_id *u, int value); /* NULL: not supported */
} options[] = {
	{RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, sizeof(uint8_t), set_tos},
	{RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, sizeof(int), set_reuseaddr},
	{RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, sizeof(int), set_afonly},
	{RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, sizeof(uint8_t), set_ack_timeout},
	{RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, 0, NULL},
};

static int apply(struct ur_id *u, const struct option *o, const void *optval, size_t optlen)
{
	int value = 0, err;

	if (!o->set)
		return EOPNOTSUPP;
	if (!optval || optlen != o->len)
		return EINVAL;
	if (optlen == sizeof(uint8_t))
		value = *(const uint8_t *)optval;
	else
		memcpy(&value, optval, sizeof(value));
	ur_id_lock(u);
	err = o->set(u, value);
	ur_id_unlock(u);
	return err;
}

int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval, size_t optlen)
{
	struct ur_id *u = ur_id_get(id);

	if (!u)
		return -1;
	for (unsigned i = 0; i < ur_array_size(options); i++)
		if (options[i].level == level && options[i].name == optname)
			return ur_result(apply(u, &options[i], optval, optlen));
	return ur_fail(ENOSYS);
}

/* A software device has no ECE options of its own: only "none" can be sent. */
int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	struct ur_id *u = ur_id_get(id);

	if (!u)
		return -1;
	if (!ece || ece->comp_mask || u->id.qp)
		return ur_fail(EINVAL);
	return ece->vendor_id || ece->options ? ur_fail(EOPNOTSUPP) : 0;
}

int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	struct ur_id *u = ur_id_get(id);

	if (!u)
		return -1;
	if (!ece || u->id.qp)
		return ur_fail(EINVAL);
	ur_id_lock(u);
	*ece = u->remote_ece;
	ur_id_unlock(u);
	return 0;
}
