/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Event queues: a list and an eventfd(2) that is readable exactly while the list holds something. Programs poll the fd, set
 * O_NONBLOCK on it and block in the get calls, where a signal must end or restart the wait as its SA_RESTART says: so waiting is
 * read(2) itself.
 */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "verbs/internal.h"

int uv_evq_init(struct uv_evq *q)
{
	q->fd = eventfd(0, EFD_CLOEXEC);
	if (q->fd < 0)
		return errno;
	pthread_mutex_init(&q->lock, NULL);
	ur_list_init(&q->events);
	q->waiters = 0;
	q->raised = false;
	return 0;
}

void uv_evq_fini(struct uv_evq *q)
{
	close(q->fd);
	pthread_mutex_destroy(&q->lock);
}

/*
 * While nobody is in read(2) the counter is 1 if `raised`, else 0, so neither call here can block. With waiters in read(2) one of them
 * may have taken the count already; it finds the list empty then, and waits again.
 */
static void set_eventfd(struct uv_evq *q)
{
	uint64_t one = 1;

	if (!ur_list_empty(&q->events) && !q->raised)
		q->raised = write(q->fd, &one, sizeof(one)) == sizeof(one);
	else if (ur_list_empty(&q->events) && q->raised && !q->waiters)
		q->raised = read(q->fd, &one, sizeof(one)) != sizeof(one);
}

/* read(2) and write(2) are cancellation points, and a thread that is cancelled here would keep the locks of its callers. */
void uv_evq_unlock(struct uv_evq *q)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	set_eventfd(q);
	pthread_mutex_unlock(&q->lock);
	pthread_setcancelstate(state, NULL);
}

/* The C library cancels a thread even when its read(2) has just taken the count, so it is put back: twice does not matter, never would. */
static void cancelled(void *arg)
{
	struct uv_evq *q = arg;
	uint64_t one = 1;

	pthread_mutex_lock(&q->lock);
	q->waiters--;
	if (q->raised)
		q->raised = write(q->fd, &one, sizeof(one)) == sizeof(one);
	uv_evq_unlock(q);
}

struct ur_list *uv_evq_wait(struct uv_evq *q)
{
	uint64_t count;
	ssize_t n;
	int err;

	pthread_mutex_lock(&q->lock);
	while (ur_list_empty(&q->events)) {
		q->waiters++;
		pthread_mutex_unlock(&q->lock);
		pthread_cleanup_push(cancelled, q);
		n = read(q->fd, &count, sizeof(count));
		err = errno;
		pthread_cleanup_pop(0);
		pthread_mutex_lock(&q->lock);
		q->waiters--;
		if (n == sizeof(count)) {
			q->raised = false;
		} else if (ur_list_empty(&q->events)) {
			uv_evq_unlock(q);
			errno = n < 0 ? err : EIO;
			return NULL;
		}
	}
	return q->events.next;
}
