/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints, which do several steps at once and wait for them: rdma_create_ep(3), rdma_destroy_ep(3), rdma_get_request(3). */
#include <stdlib.h>
#include <string.h>

#include "rdmacm/internal.h"

#define EP_TIMEOUT_MS 2000

/* The requests that a listening endpoint gets will have QPs like this. */
static int keep_attr(struct ur_id *u, struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	if (!attr)
		return 0;
	u->ep_attr = malloc(sizeof(*attr));
	if (!u->ep_attr)
		return ur_fail(ENOMEM);
	*u->ep_attr = *attr;
	u->ep_attr->qp_type = u->id.qp_type;
	u->ep_pd = pd;
	if (pd)
		u->id.pd = pd;
	return 0;
}

/* Private data that rdma_getaddrinfo found necessary. What does not fit a request shows when it is sent. */
static int keep_connect_data(struct ur_id *u, const struct rdma_addrinfo *res)
{
	if (!res->ai_connect_len)
		return 0;
	if (!res->ai_connect || res->ai_connect_len > (u->id.qp_type == IBV_QPT_UD ? UR_CM_SIDR_REQ_PDATA : UR_CM_REQ_PDATA))
		return ur_fail(EINVAL);
	u->ep_connect = malloc(res->ai_connect_len);
	if (!u->ep_connect)
		return ur_fail(ENOMEM);
	memcpy(u->ep_connect, res->ai_connect, res->ai_connect_len);
	u->ep_connect_len = (unsigned)res->ai_connect_len;
	return 0;
}

bool ur_ep_connect_data(const struct ur_id *u, const struct rdma_conn_param *p, uint8_t *data, unsigned room, unsigned *len)
{
	unsigned own = p ? p->private_data_len : 0;

	*len = u->ep_connect_len + own;
	if (*len > room)
		return false;
	if (u->ep_connect_len)
		memcpy(data, u->ep_connect, u->ep_connect_len);
	if (own)
		memcpy(data + u->ep_connect_len, p->private_data, own);
	return true;
}

void ur_ep_connected(struct ur_id *u)
{
	free(u->ep_connect);
	u->ep_connect = NULL;
	u->ep_connect_len = 0;
}

/* A route that came with the address is taken as it is. */
static int find_route(struct ur_id *u, const struct rdma_addrinfo *res)
{
	if (!res->ai_route_len)
		return rdma_resolve_route(&u->id, EP_TIMEOUT_MS);
	if (rdma_set_option(&u->id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, res->ai_route, res->ai_route_len))
		return -1;
	return ur_id_complete(u);
}

/* Lengths of zero say that there is none. */
static struct sockaddr *address(struct sockaddr *sa, socklen_t len)
{
	return sa && len >= sizeof(sa->sa_family) && len >= ur_sa_len(sa->sa_family) ? sa : NULL;
}

static int make_active(struct ur_id *u, const struct rdma_addrinfo *res, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct sockaddr *src = address(res->ai_src_addr, res->ai_src_len), *dst = address(res->ai_dst_addr, res->ai_dst_len);

	if (keep_connect_data(u, res))
		return -1;
	if (rdma_resolve_addr(&u->id, src, dst, EP_TIMEOUT_MS) || find_route(u, res))
		return -1;
	if (!attr)
		return 0;
	attr->qp_type = u->id.qp_type;
	return rdma_create_qp(&u->id, pd, attr);
}

static int make_passive(struct ur_id *u, const struct rdma_addrinfo *res, struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	return rdma_bind_addr(&u->id, address(res->ai_src_addr, res->ai_src_len)) ? -1 : keep_attr(u, pd, attr);
}

/* The type of an endpoint's QPs, where none is named that of the port space. EINVAL for one that the port space does not have. */
static int type_of(const struct rdma_addrinfo *res, enum ibv_qp_type *type)
{
	bool datagrams = res->ai_port_space == RDMA_PS_UDP || res->ai_port_space == RDMA_PS_IPOIB;

	*type = res->ai_qp_type ? (enum ibv_qp_type)res->ai_qp_type : datagrams ? IBV_QPT_UD : IBV_QPT_RC;
	switch (*type) {
	case IBV_QPT_UD:
		return datagrams || res->ai_port_space == RDMA_PS_IB ? 0 : EINVAL;
	case IBV_QPT_RC:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return res->ai_port_space == RDMA_PS_TCP || res->ai_port_space == RDMA_PS_IB ? 0 : EINVAL;
	case IBV_QPT_UC: /* RDMA_PS_TCP promises reliability */
		return res->ai_port_space == RDMA_PS_IB ? 0 : EINVAL;
	default:
		return EINVAL;
	}
}

int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
	enum ibv_qp_type type;
	struct ur_id *u;
	int err;

	if (!id || !res)
		return ur_fail(EINVAL);
	err = type_of(res, &type);
	if (!err)
		err = ur_id_create(NULL, NULL, (enum rdma_port_space)res->ai_port_space, type, &u);
	if (err)
		return ur_fail(err);
	if (res->ai_flags & RAI_PASSIVE ? make_passive(u, res, pd, qp_init_attr) : make_active(u, res, pd, qp_init_attr)) {
		err = errno;
		rdma_destroy_ep(&u->id);
		return ur_fail(err);
	}
	*id = &u->id;
	return 0;
}

void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (!ur_id_known(id))
		return;
	if (id->qp)
		rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	rdma_destroy_id(id);
}

static int equip(struct ur_id *l, struct rdma_cm_id *child)
{
	struct ibv_qp_init_attr attr;

	if (!l->ep_attr)
		return 0;
	attr = *l->ep_attr;
	return rdma_create_qp(child, l->ep_pd, &attr);
}

int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	struct ur_id *l = ur_id_get(listen);
	struct rdma_cm_event *ev;
	int err;

	if (!l)
		return -1;
	if (!id || !l->sync || l->state != UR_ID_LISTEN)
		return ur_fail(EINVAL);
	ur_id_drop_event(l);
	if (rdma_get_cm_event(listen->channel, &ev))
		return -1;
	if (ev->event != RDMA_CM_EVENT_CONNECT_REQUEST || ev->status) {
		listen->event = ev;
		return ur_fail(ev->status < 0 ? -ev->status : EINVAL);
	}
	if (equip(l, ev->id)) {
		err = errno;
		rdma_reject(ev->id, NULL, 0);
		rdma_destroy_id(ev->id);
		rdma_ack_cm_event(ev);
		return ur_fail(err);
	}
	ev->id->event = ev;
	*id = ev->id;
	return 0;
}
