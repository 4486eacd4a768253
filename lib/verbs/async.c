/* SPDX-License-Identifier: BSD-3-Clause */
/* Asynchronous events: ibv_get_async_event(3). They are rare, so each is allocated; one that finds no memory is lost. */
#include <errno.h>
#include <stdlib.h>

#include "verbs/internal.h"

struct uv_async {
	struct ur_list link;
	enum ibv_event_type type;
	void *element;
};

/* What an event belongs to decides who waits for its acknowledgement. */
enum owner { OWNER_NONE, OWNER_CQ, OWNER_QP, OWNER_SRQ };

static enum owner owner_of(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_CQ_ERR:
		return OWNER_CQ;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return OWNER_QP;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return OWNER_SRQ;
	default:
		return OWNER_NONE;
	}
}

void uv_async_raise(struct uv_context *c, enum ibv_event_type type, void *element)
{
	struct uv_async *a = malloc(sizeof(*a));

	if (!a)
		return;
	a->type = type;
	a->element = element;
	pthread_mutex_lock(&c->async.lock);
	ur_list_add_tail(&c->async.events, &a->link);
	uv_evq_unlock(&c->async);
}

void uv_async_port(struct ur_engine_watch *w, enum ibv_event_type type)
{
	uv_async_raise(ur_container_of(w, struct uv_context, watch), type, NULL);
}

static void fill(struct uv_async *a, struct ibv_async_event *event)
{
	event->event_type = a->type;
	switch (owner_of(a->type)) {
	case OWNER_CQ:
		event->element.cq = a->element;
		((struct uv_cq *)a->element)->async_delivered++;
		break;
	case OWNER_QP:
		event->element.qp = a->element;
		((struct uv_qp *)a->element)->async_delivered++;
		break;
	case OWNER_SRQ:
		event->element.srq = a->element;
		((struct uv_srq *)a->element)->async_delivered++;
		break;
	case OWNER_NONE:
		event->element.port_num = 1;
		break;
	}
}

/* Only a started engine watches the kernel's interface. What happens to QPs and CQs is told even if it does not start. */
static void start_watching(struct ur_engine *e)
{
	struct ur_device_info info;

	ur_engine_info(e, &info);
	if (!info.owned)
		ur_engine_start(e);
}

static void cancelled(void *context)
{
	uv_context_put(context);
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct uv_context *c = uv_context(context);
	struct ur_list *node;
	struct uv_async *a;
	int err;

	if (uv_is_foreign(c)) {
		errno = EIO;
		return -1;
	}
	start_watching(c->engine);
	uv_context_get(c); /* another thread may close it while this one waits */
	pthread_cleanup_push(cancelled, c);
	node = uv_evq_wait(&c->async);
	pthread_cleanup_pop(0);
	if (!node) {
		err = errno;
		uv_context_put(c);
		errno = err;
		return -1;
	}
	a = ur_container_of(node, struct uv_async, link);
	ur_list_del(&a->link);
	fill(a, event);
	uv_evq_unlock(&c->async);
	uv_context_put(c);
	free(a);
	return 0;
}

static void acknowledge(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed)
{
	pthread_mutex_lock(mutex);
	++*completed;
	pthread_cond_broadcast(cond);
	pthread_mutex_unlock(mutex);
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_cq *cq = event->element.cq;
	struct ibv_qp *qp = event->element.qp;
	struct ibv_srq *srq = event->element.srq;

	switch (owner_of(event->event_type)) {
	case OWNER_CQ:
		acknowledge(&cq->mutex, &cq->cond, &cq->async_events_completed);
		break;
	case OWNER_QP:
		acknowledge(&qp->mutex, &qp->cond, &qp->events_completed);
		break;
	case OWNER_SRQ:
		acknowledge(&srq->mutex, &srq->cond, &srq->events_completed);
		break;
	case OWNER_NONE:
		break;
	}
}

/* Drops the unread events of an object and returns how many have been read, which is final now. */
static uint32_t drop_unread(struct uv_context *c, const void *element, const uint32_t *delivered)
{
	struct ur_list *pos, *tmp;
	uint32_t n;

	pthread_mutex_lock(&c->async.lock);
	ur_list_for_each_safe(pos, tmp, &c->async.events) {
		struct uv_async *a = ur_container_of(pos, struct uv_async, link);

		if (a->element != element)
			continue;
		ur_list_del(&a->link);
		free(a);
	}
	n = *delivered;
	uv_evq_unlock(&c->async);
	return n;
}

static void await(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *completed, uint32_t delivered)
{
	pthread_mutex_lock(mutex);
	while ((int32_t)(delivered - *completed) > 0)
		pthread_cond_wait(cond, mutex);
	pthread_mutex_unlock(mutex);
}

void uv_async_forget_qp(struct uv_qp *u)
{
	uint32_t n = drop_unread(uv_context(u->qp.context), &u->qp, &u->async_delivered);

	await(&u->qp.mutex, &u->qp.cond, &u->qp.events_completed, n);
}

void uv_async_forget_cq(struct uv_cq *u)
{
	uint32_t n = drop_unread(uv_context(u->cq.context), &u->cq, &u->async_delivered);

	await(&u->cq.mutex, &u->cq.cond, &u->cq.async_events_completed, n);
}

void uv_async_forget_srq(struct uv_srq *u)
{
	uint32_t n = drop_unread(uv_context(u->srq.context), &u->srq, &u->async_delivered);

	await(&u->srq.mutex, &u->srq.cond, &u->srq.events_completed, n);
}
