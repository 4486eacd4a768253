/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams at the NIC: address handles, whose paths the network layer keeps current. */
#include <errno.h>
#include <stdlib.h>

#include "nic/internal.h"
#include "wire/frame.h"

struct nic_ah {
	struct ur_ah ah;
	struct ur_net_path path;
};

static void path_changed(struct ur_net_path *path, int err, ur_time now)
{
	(void)now; /* what was to be sent in the meantime is sent or dropped in this round */
	ur_ah_changed(path->owner, err == 0);
}

static void retry(struct ur_ah *ah, ur_time now)
{
	ur_net_path_retry(&ur_container_of(ah, struct nic_ah, ah)->path, now);
}

static void release(struct ur_ah *ah)
{
	struct nic_ah *n = ur_container_of(ah, struct nic_ah, ah);

	ur_net_path_close(&n->path);
	free(n);
}

int ur_nic_create_ah(struct ur_nic *nic, struct ur_pd *pd, const struct ibv_ah_attr *attr, ur_time now, struct ur_ah **out)
{
	struct ur_net_path_attr a;
	struct nic_ah *n;
	int err;

	nic->now = now;
	err = ur_nic_path_attr(nic, attr, 0, 0, &a);
	if (err)
		return err;
	n = calloc(1, sizeof(*n));
	if (!n)
		return ENOMEM;
	n->path.owner = &n->ah;
	n->path.changed = path_changed;
	err = ur_net_path_open(nic->net, &n->path, &a, now);
	if (err) {
		free(n);
		return err;
	}
	err = ur_ah_init(&n->ah, pd, &n->path.wire, retry, release);
	if (err) {
		release(&n->ah);
		return err;
	}
	*out = &n->ah;
	return 0;
}
