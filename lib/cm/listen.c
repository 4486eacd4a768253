/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners: which service ids they accept requests for, and at which addresses. */
#include <errno.h>
#include <stdlib.h>

#include "cm/internal.h"
#include "wire/gid_set.h"

static uint64_t hash_service(const struct ur_cm *cm, uint64_t service_id)
{
	return ur_table_hash(cm->by_service.salt, service_id, 0);
}

/* The listener of a service at an address for which `fits` holds. */
static struct ur_cm_listener *find_listener(const struct ur_cm *cm, uint64_t service_id, const struct ur_gid *gid,
					    bool (*fits)(const struct ur_gid *its, const struct ur_gid *gid))
{
	struct ur_cm_listener *l;

	ur_table_for_each (l, &cm->by_service, hash_service(cm, service_id), node)
		if (l->service_id == service_id && fits(&l->gid, gid))
			return l;
	return NULL;
}

int ur_cm_listener_new(struct ur_cm *cm, uint64_t service_id, const struct ur_gid *gid, void *owner, struct ur_cm_listener **out)
{
	struct ur_cm_listener *l;

	if (find_listener(cm, service_id, gid, ur_gid_overlap))
		return EADDRINUSE;
	l = calloc(1, sizeof(*l));
	if (!l)
		return ENOMEM;
	l->cm = cm;
	l->service_id = service_id;
	l->gid = *gid;
	l->owner = owner;
	ur_list_add_tail(&cm->listeners, &l->link);
	ur_table_add(&cm->by_service, &l->node, hash_service(cm, service_id));
	*out = l;
	return 0;
}

int ur_cm_listen(struct ur_cm *cm, uint64_t service_id, const struct ur_gid *gid, void *owner, ur_cm_event_fn event,
		 struct ur_cm_listener **out)
{
	int err = ur_cm_listener_new(cm, service_id, gid, owner, out);

	if (!err)
		(*out)->event = event;
	return err;
}

void ur_cm_listen_plain(struct ur_cm_listener *l)
{
	l->plain = true;
}

void ur_cm_unlisten(struct ur_cm_listener *l)
{
	if (!l)
		return;
	ur_cm_requests_orphan(l);
	ur_cm_sidr_orphan(l);
	ur_table_del(&l->cm->by_service, &l->node);
	ur_list_del(&l->link);
	free(l);
}

/* Overlaps are refused, so at most one listener fits. */
struct ur_cm_listener *ur_cm_listener_find(const struct ur_cm *cm, uint64_t service_id, const struct ur_gid *gid)
{
	return find_listener(cm, service_id, gid, ur_gid_covers);
}

/*
 * A program may end its listener once it has the connection it wants, and listen again for the next one, when its peer is on the way
 * already: perftest does for the QPs of -R, with nothing to keep the client from being first.
 */
void ur_cm_leave(struct ur_cm_listener *l, ur_time now)
{
	if (!l)
		return;
	l->cm->left[l->cm->nleft++ % UR_CM_LEFT_MAX] =
		(struct ur_cm_left){.service_id = l->service_id, .gid = l->gid, .until = now + UR_CM_LEFT};
	ur_cm_unlisten(l);
}

/* The same port of any port space: perftest makes the first connection by TCP's, the second by UDP's if its QPs are UD. */
static bool same_place(uint64_t a, uint64_t b)
{
	return a == b || (ur_cm_is_ip_service(a) && ur_cm_is_ip_service(b) && ((a ^ b) & 0xffff) == 0);
}

static bool has_left(const struct ur_cm *cm, uint64_t service_id, const struct ur_gid *gid, ur_time now)
{
	for (unsigned i = 0; i < UR_CM_LEFT_MAX; i++) {
		const struct ur_cm_left *f = &cm->left[i];

		if (now < f->until && same_place(f->service_id, service_id) && ur_gid_covers(&f->gid, gid))
			return true;
	}
	return false;
}

bool ur_cm_listener_unanswered(struct ur_cm *cm, uint64_t service_id, const struct ur_gid *gid, ur_time now)
{
	if (cm->cfg.other_answers(cm->cfg.ctx, service_id, gid))
		ur_cm_count(cm, UR_C_RX_OTHER_SLOT);
	else if (has_left(cm, service_id, gid, now))
		ur_cm_count(cm, UR_C_CM_LEFT);
	else
		return false;
	return true;
}

bool ur_cm_listener_pdata(const struct ur_cm_listener *l, uint64_t service_id, const struct ur_cm_msg *m, struct ur_cm_pdata *out)
{
	*out = (struct ur_cm_pdata){.data = m->pdata, .len = m->pdata_len};
	if (l->plain || !ur_cm_is_ip_service(service_id))
		return true;
	if (!ur_rdma_cm_hdr_get(m->pdata, m->pdata_len, &out->hdr))
		return false;
	out->has_hdr = true;
	out->data += UR_RDMA_CM_HDR_LEN;
	out->len -= UR_RDMA_CM_HDR_LEN;
	return true;
}
