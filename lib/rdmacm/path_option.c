/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA_OPTION_IB_PATH of rdma_set_option(3): the program brings the path record of its connection instead of asking for one. On Ethernet
 * addresses are what rdma_resolve_addr found, so a record may leave its GIDs out but not contradict them; all that a RoCEv2 packet or a
 * REQ has of the rest is taken over.
 */
#include <string.h>

#include <infiniband/sa.h>

#include "rdmacm/internal.h"
#include "wire/frame.h"

#define USABLE (IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL)

/* Selectors stand in the upper two bits (IBTA volume 1, 15.2.5.16). */
#define SELECTOR(x) ((uint8_t)((x) >> 6))
#define VALUE(x) ((uint8_t)((x)&0x3f))

/* The first record that is one for a whole connection. */
static const struct ibv_path_data *usable_path(const void *paths, size_t len, struct ibv_path_data *copy)
{
	for (size_t at = 0; at < len; at += sizeof(*copy)) {
		memcpy(copy, (const char *)paths + at, sizeof(*copy));
		if (copy->flags == USABLE)
			return copy;
	}
	return NULL;
}

static bool gid_fits(const union ibv_gid *named, const struct ur_gid *found)
{
	static const union ibv_gid none;

	return !memcmp(named, &none, sizeof(none)) || !memcmp(named->raw, found->raw, sizeof(found->raw));
}

/* A field of zero leaves the choice to us. */
static int take_path(struct ur_id *u, const struct ibv_path_record *p)
{
	uint32_t flow_hop = ntohl(p->flowlabel_hoplimit);
	struct ibv_sa_path_rec *r = &u->path_rec;
	uint8_t mtu = VALUE(p->mtu), most = ur_id_path_mtu(u);

	if (!gid_fits(&p->sgid, &u->sgid) || !gid_fits(&p->dgid, &u->dgid) || mtu > most)
		return EINVAL;
	if (p->pkey && ntohs(p->pkey) != UR_RDMACM_PKEY)
		return EINVAL;
	ur_id_fill_route(u, mtu ? mtu : most);
	if (flow_hop & 0xff)
		r->hop_limit = (uint8_t)flow_hop;
	u->flow_label = flow_hop >> 8 & 0xfffff;
	r->flow_label = htonl(u->flow_label);
	u->tos = r->traffic_class = p->tclass;
	if (VALUE(p->rate)) {
		r->rate = VALUE(p->rate);
		r->rate_selector = SELECTOR(p->rate);
	}
	if (p->packetlifetime) {
		r->packet_life_time = VALUE(p->packetlifetime);
		r->packet_life_time_selector = SELECTOR(p->packetlifetime);
		u->life_time_given = true;
	}
	r->preference = p->preference;
	return 0;
}

int ur_id_set_path(struct ur_id *u, const void *paths, size_t len)
{
	const struct ibv_path_data *path;
	struct ibv_path_data copy;
	int err;

	if (!len || len % sizeof(copy))
		return EINVAL;
	path = usable_path(paths, len, &copy);
	if (!path || u->state != UR_ID_ADDR_RESOLVED)
		return EINVAL;
	err = take_path(u, &path->path);
	if (err)
		return err;
	u->state = UR_ID_ROUTE_RESOLVED;
	ur_event_send(u, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	return 0;
}
