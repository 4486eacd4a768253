/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels: ibv_create_comp_channel(3), ibv_get_cq_event(3). A CQ stands in its channel's queue once and counts its
 * notifications, so that notifying allocates nothing.
 */
#include <errno.h>
#include <stdlib.h>

#include "verbs/internal.h"

static struct uv_channel *to_channel(struct ibv_comp_channel *c)
{
	return ur_container_of(c, struct uv_channel, channel);
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct uv_context *c = uv_context(context);
	struct uv_channel *ch;
	int err;

	if (uv_is_foreign(c))
		return uv_null(EIO);
	ch = calloc(1, sizeof(*ch));
	if (!ch)
		return uv_null(ENOMEM);
	err = uv_evq_init(&ch->evq);
	if (err) {
		free(ch);
		return uv_null(err);
	}
	ch->channel.context = context;
	ch->channel.fd = ch->evq.fd;
	uv_context_get(c);
	ur_live_add(&ch->live, &ch->channel);
	return &ch->channel;
}

static int destroy(void *handle)
{
	struct ibv_comp_channel *channel = handle;
	struct uv_channel *ch = to_channel(channel);
	struct uv_context *c = uv_context(channel->context);
	bool busy;

	if (uv_is_foreign(c))
		return EIO;
	pthread_mutex_lock(&ch->evq.lock);
	busy = channel->refcnt != 0;
	pthread_mutex_unlock(&ch->evq.lock);
	if (busy)
		return EBUSY;
	ur_live_del(channel);
	uv_evq_fini(&ch->evq);
	free(ch);
	uv_context_put(c);
	return 0;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	return uv_destroy(channel, destroy);
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct uv_channel *ch = to_channel(channel);
	struct uv_context *c = uv_context(channel->context);
	struct ur_list *node;
	struct uv_cq *u;

	if (uv_is_foreign(c)) {
		errno = EIO;
		return -1;
	}
	if (ur_engine_lanes(c->engine) == 1) /* otherwise arming has told the lanes that it concerns */
		ur_engine_will_block(c->engine);
	node = uv_evq_wait(&ch->evq);
	if (!node)
		return -1;
	u = ur_container_of(node, struct uv_cq, link);
	ur_list_del(&u->link);
	u->delivered++;
	ur_cq_event_fetched(u->tp);
	if (--u->pending)
		ur_list_add_tail(&ch->evq.events, &u->link);
	*cq = &u->cq;
	*cq_context = u->cq.cq_context;
	uv_evq_unlock(&ch->evq);
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_broadcast(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}

void uv_channel_notify(struct uv_cq *cq)
{
	struct uv_channel *ch = to_channel(cq->cq.channel);

	pthread_mutex_lock(&ch->evq.lock);
	if (!cq->pending++)
		ur_list_add_tail(&ch->evq.events, &cq->link);
	uv_evq_unlock(&ch->evq);
}

void uv_channel_forget(struct uv_cq *cq)
{
	struct uv_channel *ch = to_channel(cq->cq.channel);
	uint32_t delivered;

	pthread_mutex_lock(&ch->evq.lock);
	ur_list_del(&cq->link);
	cq->pending = 0;
	delivered = cq->delivered;
	ch->channel.refcnt--;
	uv_evq_unlock(&ch->evq);

	pthread_mutex_lock(&cq->cq.mutex);
	while ((int32_t)(delivered - cq->cq.comp_events_completed) > 0)
		pthread_cond_wait(&cq->cq.cond, &cq->cq.mutex);
	pthread_mutex_unlock(&cq->cq.mutex);
}
