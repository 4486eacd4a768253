/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners: who wants requests for which service id, at which address. */
#include <errno.h>
#include <stdlib.h>

#include "cm/internal.h"
#include "wire/gid_set.h"

static bool is_taken(const struct ur_cm *cm, uint64_t service_id, const struct ur_gid *gid)
{
	for (const struct ur_list *n = cm->listeners.next; n != &cm->listeners; n = n->next) {
		const struct ur_cm_listener *l = ur_container_of(n, struct ur_cm_listener, link);

		if (l->service_id == service_id && ur_gid_overlap(&l->gid, gid))
			return true;
	}
	return false;
}

int ur_cm_listener_new(struct ur_cm *cm, uint64_t service_id, const struct ur_gid *gid, void *owner, struct ur_cm_listener **out)
{
	struct ur_cm_listener *l;

	if (is_taken(cm, service_id, gid))
		return EADDRINUSE;
	l = calloc(1, sizeof(*l));
	if (!l)
		return ENOMEM;
	l->cm = cm;
	l->service_id = service_id;
	l->gid = *gid;
	l->owner = owner;
	ur_list_add_tail(&cm->listeners, &l->link);
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
	ur_cm_sidr_orphan(l);
	ur_list_del(&l->link);
	free(l);
}

/* Overlaps are refused, so at most one listener fits. */
struct ur_cm_listener *ur_cm_listener_find(const struct ur_cm *cm, uint64_t service_id, const struct ur_gid *gid)
{
	for (const struct ur_list *n = cm->listeners.next; n != &cm->listeners; n = n->next) {
		struct ur_cm_listener *l = ur_container_of(n, struct ur_cm_listener, link);

		if (l->service_id == service_id && ur_gid_covers(&l->gid, gid))
			return l;
	}
	return NULL;
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
	if (cm->cfg.elsewhere(cm->cfg.ctx, service_id, gid))
		ur_cm_count(cm, UR_C_RX_OTHER_SLOT);
	else if (has_left(cm, service_id, gid, now))
		ur_cm_count(cm, UR_C_CM_LEFT);
	else
		return false;
	return true;
}
