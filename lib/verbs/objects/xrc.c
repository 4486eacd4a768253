/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extended reliable connections: XRC domains, ibv_open_xrcd(3), which an inode may stand for, and XRC_RECV QPs that are open more than
 * once, ibv_open_qp(3). Both are shared within the process: its engine is all that a packet for one of its QPs reaches.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verbs/internal.h"

/* --- domains --- */

struct domain { /* in its device's list, under the engine's lock */
	struct ur_list link;
	struct ur_xrcd *tp;
	unsigned handles;
	int fd; /* a duplicate, so that the inode's number is not given to another file; -1: of nobody else */
	dev_t dev;
	ino_t ino;
};

struct uv_xrcd {
	struct ibv_xrcd xrcd;
	uint8_t slack[UV_SLACK];
	struct ur_live live;
	struct domain *d;
};

static struct uv_xrcd *to_xrcd(struct ibv_xrcd *xrcd)
{
	return ur_container_of(xrcd, struct uv_xrcd, xrcd);
}

struct ur_xrcd *uv_xrcd_tp(struct ibv_xrcd *xrcd)
{
	return to_xrcd(xrcd)->d->tp;
}

static struct domain *find_domain(struct uv_device *device, const struct stat *st)
{
	struct ur_list *pos, *tmp;

	ur_list_for_each_safe (pos, tmp, &device->xrcds) {
		struct domain *d = ur_container_of(pos, struct domain, link);

		if (d->fd >= 0 && d->dev == st->st_dev && d->ino == st->st_ino)
			return d;
	}
	return NULL;
}

static int make(struct uv_device *device, struct ur_tp *tp, int fd, const struct stat *st, struct domain **out)
{
	struct domain *d = calloc(1, sizeof(*d));
	int err = d ? ur_xrcd_create(tp, &d->tp) : ENOMEM;

	if (err) {
		free(d);
		return err;
	}
	d->fd = -1;
	if (fd >= 0) {
		d->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (d->fd < 0) {
			err = errno;
			ur_xrcd_destroy(d->tp);
			free(d);
			return err;
		}
		d->dev = st->st_dev;
		d->ino = st->st_ino;
	}
	ur_list_add_tail(&device->xrcds, &d->link);
	*out = d;
	return 0;
}

/* As the kernel answers: EAGAIN when there is none and none may be made, EINVAL when there is one and there may not be. */
static int find_or_make(struct uv_device *device, struct ur_tp *tp, int fd, int oflags, const struct stat *st, struct domain **out)
{
	*out = fd >= 0 ? find_domain(device, st) : NULL;
	if (*out)
		return oflags & O_EXCL ? EINVAL : 0;
	return fd >= 0 && !(oflags & O_CREAT) ? EAGAIN : make(device, tp, fd, st, out);
}

#define XRCD_NEEDS (IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS)

struct ibv_xrcd *uv_open_xrcd(struct ibv_context *ctx, struct ibv_xrcd_init_attr *attr)
{
	struct uv_context *c = uv_context(ctx);
	struct stat st = {.st_ino = 0};
	struct ur_nic *nic;
	struct uv_xrcd *u;
	int err;

	if (attr->comp_mask >= IBV_XRCD_INIT_ATTR_RESERVED)
		return uv_null(EOPNOTSUPP);
	if ((attr->comp_mask & XRCD_NEEDS) != XRCD_NEEDS || attr->fd < -1 || attr->oflags & ~(O_CREAT | O_EXCL))
		return uv_null(EINVAL);
	if (attr->fd >= 0 && fstat(attr->fd, &st))
		return NULL; /* errno is EBADF */
	u = calloc(1, sizeof(*u));
	if (!u)
		return uv_null(ENOMEM);
	nic = uv_enter(c);
	err = EIO;
	if (nic) {
		err = find_or_make(c->device, nic->tp, attr->fd, attr->oflags, &st, &u->d);
		if (!err)
			u->d->handles++;
		uv_leave(c);
	}
	if (err) {
		free(u);
		return uv_null(err);
	}
	u->xrcd.context = ctx;
	uv_context_get(c);
	ur_live_add(&u->live, &u->xrcd);
	return &u->xrcd;
}

static int close_xrcd(void *handle)
{
	struct ibv_xrcd *xrcd = handle;
	struct uv_context *c = uv_context(xrcd->context);
	struct uv_xrcd *u = to_xrcd(xrcd);
	struct domain *d = u->d;
	int err = 0;

	if (!uv_enter(c))
		return EIO;
	if (d->handles == 1)
		err = ur_xrcd_destroy(d->tp);
	if (!err && !--d->handles) {
		ur_list_del(&d->link);
		if (d->fd >= 0)
			close(d->fd);
		free(d);
	}
	uv_leave(c);
	if (err)
		return err;
	ur_live_del(xrcd);
	free(u);
	uv_context_put(c);
	return 0;
}

int uv_close_xrcd(struct ibv_xrcd *xrcd)
{
	return uv_destroy(xrcd, close_xrcd);
}

/* --- QPs that are open more than once --- */

#define OPEN_NEEDS (IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE)

static void init_opened(struct uv_qp *u, struct uv_qp *root, struct ibv_context *ctx, const struct ibv_qp_open_attr *attr)
{
	u->root = root;
	u->tp = root->tp;
	u->engine = root->engine;
	u->qp.context = ctx;
	u->qp.qp_context = attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context : NULL;
	u->qp.qp_num = u->qp.handle = ur_qp_num(u->tp);
	u->qp.state = ur_qp_state(u->tp);
	u->qp.qp_type = IBV_QPT_XRC_RECV;
	pthread_mutex_init(&u->qp.mutex, NULL);
	pthread_cond_init(&u->qp.cond, NULL);
	ur_list_add_tail(&root->opened, &u->opened);
}

struct ibv_qp *uv_open_qp(struct ibv_context *ctx, struct ibv_qp_open_attr *attr)
{
	struct uv_context *c = uv_context(ctx);
	struct ur_nic *nic;
	struct ur_qp *tp;
	struct uv_qp *u;

	if (attr->comp_mask >= IBV_QP_OPEN_ATTR_RESERVED)
		return uv_null(EOPNOTSUPP);
	if ((attr->comp_mask & OPEN_NEEDS) != OPEN_NEEDS || !attr->xrcd || attr->xrcd->context != ctx || attr->qp_type != IBV_QPT_XRC_RECV)
		return uv_null(EINVAL);
	u = calloc(1, sizeof(*u));
	if (!u)
		return uv_null(ENOMEM);
	nic = uv_enter(c);
	if (!nic) {
		free(u);
		return uv_null(EIO);
	}
	tp = ur_qp_find(nic->tp, attr->qp_num);
	if (!tp || ur_qp_xrcd(tp) != uv_xrcd_tp(attr->xrcd)) {
		uv_leave(c);
		free(u);
		return uv_null(EINVAL);
	}
	init_opened(u, ur_qp_context(tp), ctx, attr);
	uv_leave(c);
	uv_context_get(c);
	ur_live_add(&u->live, &u->qp);
	return &u->qp;
}

bool uv_qp_detach(struct uv_qp *u)
{
	struct uv_qp *root = u->root;

	if (u == root) {
		root->closed = !ur_list_empty(&root->opened);
		return root->closed;
	}
	ur_list_del(&u->opened);
	return !root->closed || !ur_list_empty(&root->opened);
}

void uv_qp_raise(struct uv_qp *root, enum ibv_event_type type)
{
	struct ur_list *pos, *tmp;

	if (!root->closed)
		uv_async_raise(uv_context(root->qp.context), type, &root->qp);
	ur_list_for_each_safe (pos, tmp, &root->opened) {
		struct uv_qp *u = ur_container_of(pos, struct uv_qp, opened);

		uv_async_raise(uv_context(u->qp.context), type, &u->qp);
	}
}
