/* SPDX-License-Identifier: BSD-3-Clause */
/* rdma_set_option(3) and the ECE parameters (rdma_set_local_ece(3), rdma_get_remote_ece(3)). */
#include <string.h>

#include "rdmacm/internal.h"

#define ECE_VENDOR_MAX 0xffffff /* 24 bits on the wire */

static int set_tos(struct ur_id *u, const void *val, size_t len)
{
	(void)len;
	u->tos = *(const uint8_t *)val;
	return 0;
}

static bool flag(const void *val)
{
	int value;

	memcpy(&value, val, sizeof(value));
	return value != 0;
}

/* A bound port cannot be taken back from those with whom it is shared, and a listener's is its own. */
static int set_reuseaddr(struct ur_id *u, const void *val, size_t len)
{
	(void)len;
	if (u->state != UR_ID_IDLE && (u->state == UR_ID_LISTEN || !flag(val)))
		return EINVAL;
	if (u->bound)
		ur_engine_port_move(u->engine, u->port_space, &u->bound_gid, &u->bound_gid, true, u->port);
	u->reuse = flag(val);
	return 0;
}

static int set_afonly(struct ur_id *u, const void *val, size_t len)
{
	(void)len;
	return ur_id_set_afonly(u, flag(val));
}

static int set_ack_timeout(struct ur_id *u, const void *val, size_t len)
{
	uint8_t value = *(const uint8_t *)val;

	(void)len;
	if ((u->id.qp_type != IBV_QPT_RC && u->id.qp_type != IBV_QPT_XRC_SEND) || value > UR_ACK_TIMEOUT_MAX)
		return EINVAL;
	u->ack_timeout = value;
	u->ack_timeout_set = true;
	return 0;
}

static const struct option {
	int level, name;
	size_t len; /* 0: of any length */
	int (*set)(struct ur_id *u, const void *val, size_t len);
} options[] = {
	{RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, sizeof(uint8_t), set_tos},
	{RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, sizeof(int), set_reuseaddr},
	{RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, sizeof(int), set_afonly},
	{RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, sizeof(uint8_t), set_ack_timeout},
	{RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, 0, ur_id_set_path},
};

static int set_locked(struct ur_id *u, const struct option *o, const void *optval, size_t optlen)
{
	int err;

	ur_id_lock(u);
	err = o->set(u, optval, optlen);
	ur_id_unlock(u);
	return err;
}

/* A wildcard whose port is taken on another device stays what it was on all. */
static void undo_afonly(struct ur_id *u, bool before)
{
	for (; u; u = u->twins) {
		ur_id_lock(u);
		ur_id_set_afonly(u, before);
		ur_id_unlock(u);
	}
}

static int apply(struct ur_id *u, const struct option *o, const void *optval, size_t optlen)
{
	const bool afonly = u->afonly;
	int err;

	if (optlen && !optval)
		return EFAULT;
	if (o->len && optlen != o->len)
		return EINVAL;
	err = set_locked(u, o, optval, optlen);
	for (struct ur_id *t = u->twins; t && !err && o->level == RDMA_OPTION_ID; t = t->twins)
		err = set_locked(t, o, optval, optlen);
	if (err && o->set == set_afonly && u->twins)
		undo_afonly(u, afonly);
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

/*
 * What a program agrees on with its peer about QPs of its own (a QP of the id has nothing to agree on: uroce's have no such options). Goes
 * out with the next REQ or REP.
 */
int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	struct ur_id *u = ur_id_enter(id);

	if (!u)
		return -1;
	if (!ece || !ece->vendor_id || ece->vendor_id > ECE_VENDOR_MAX || ece->comp_mask || u->id.qp)
		return ur_id_leave(u, EINVAL);
	u->local_ece = *ece;
	return ur_id_leave(u, 0);
}

int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	struct ur_id *u = ur_id_enter(id);

	if (!u)
		return -1;
	if (!ece || u->id.qp)
		return ur_id_leave(u, EINVAL);
	*ece = u->remote_ece;
	return ur_id_leave(u, 0);
}
