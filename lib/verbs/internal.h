/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The objects behind the ibv_ pointers. Each begins with its public struct, so a cast leads back. Providers' helpers (mlx5dv, efadv) and
 * pyverbs look at private fields that rdma-core keeps behind some public structs: those have UV_SLACK zero bytes there.
 *
 * Lifetimes: every object holds a reference on its context, so that closing a context early frees nothing that the engine still calls.
 * Locks, in the order in which they are taken: a CQ's batch lock or a send queue's, which the program holds between calls of its own; the
 * engine's, which under those is only tried; an event queue's or a CQ's consumer lock. The device list's lock stands alone.
 */
#ifndef UV_VERBS_PRIV_H
#define UV_VERBS_PRIV_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include <infiniband/sa.h>
#include <infiniband/verbs.h>

#include "base/list.h"
#include "base/spin.h"
#include "engine/engine.h"
#include "host/thread.h"
#include "verbs/live.h"
#include "verbs/verbs.h"

#define UV_SLACK 128

/* --- a lock for a few instructions --- */

static inline void uv_spin_lock(struct ur_spin *l)
{
	ur_spin_lock(l, ur_thread_yield);
}

static inline void uv_spin_unlock(struct ur_spin *l)
{
	ur_spin_unlock(l);
}

/* --- evq.c: a queue of events whose fd is readable while events wait --- */

struct uv_evq {
	pthread_mutex_t lock;
	struct ur_list events;
	int fd;
	unsigned waiters; /* threads in read(2) */
	bool raised;      /* the eventfd counts 1, or a waiter took it and is about to say so */
};

/* 0 or an errno. */
int uv_evq_init(struct uv_evq *q);
void uv_evq_fini(struct uv_evq *q);
/* Returns the first event with q->lock held, waiting for one as the fd's flags say; NULL and errno (EAGAIN, EINTR) without the lock. */
struct ur_list *uv_evq_wait(struct uv_evq *q);
/* Makes the fd agree with the list, and unlocks. */
void uv_evq_unlock(struct uv_evq *q);

/* --- objects --- */

struct uv_device {
	struct ibv_device dev;
	uint8_t slack[UV_SLACK];
	atomic_uint refs;
	struct ur_engine *engine;
	uint64_t guid;
	struct ur_list xrcds; /* xrc.c's; under the engine's lock */
	atomic_size_t dm_used; /* bytes of device memory */
};

#define UV_PD_BUCKETS 1024 /* a power of two */

/* share.c: what a context and those imported from it have in common. */
struct uv_share {
	struct ur_list link;
	atomic_uint refs;
	struct uv_device *device;
	dev_t dev; /* of the file behind cmd_fd */
	ino_t ino;
	atomic_uint handles;      /* numbers for what has none of its own */
	pthread_mutex_t lock;     /* of what may be imported: */
	struct ur_list pds[UV_PD_BUCKETS]; /* by handle, which an import has in common with what it came from */
	struct ur_list dms;
};

struct uv_context {
	struct verbs_context vctx;
	uint8_t slack[UV_SLACK];
	struct ur_live live;
	atomic_uint refs;
	struct ur_engine *engine;
	struct uv_device *device;
	struct uv_share *share;
	struct uv_evq async;
	struct ur_engine_watch watch; /* of the port */
	pthread_mutex_t lock; /* default_pd */
	struct ibv_pd *default_pd;
};

struct uv_pd {
	struct ibv_pd pd;
	uint8_t slack[UV_SLACK];
	struct ur_live live;
	struct ur_pd *tp;
	struct ur_list shared; /* in its share's `pds`; never of an import or a parent domain */
	atomic_uint users;     /* objects that were made with this one, parent domains among them */
	struct uv_pd *base;    /* of a parent domain, as is all that follows */
	struct ibv_td *td;
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment, uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type);
	void *pd_context;
};

struct uv_td {
	struct ibv_td td;
	uint8_t slack[UV_SLACK];
	struct ur_live live;
	atomic_uint users; /* parent domains */
	unsigned lane;
};

struct uv_dm_mem;

enum uv_mr_kind { UV_MR_USER, UV_MR_NULL, UV_MR_DM, UV_MR_IMPORT };

struct uv_mr {
	struct ibv_mr mr;
	uint8_t slack[UV_SLACK];
	struct ur_live live;
	struct ur_mr *tp;     /* NULL: an import */
	struct uv_dm_mem *dm; /* what it is registered in */
	uint8_t kind;         /* enum uv_mr_kind */
};

struct uv_mw {
	struct ibv_mw mw;
	uint8_t slack[UV_SLACK];
	struct ur_live live;
	struct ur_mw *tp;
};

struct uv_channel {
	struct ibv_comp_channel channel;
	uint8_t slack[UV_SLACK];
	struct ur_live live;
	struct uv_evq evq;
};

struct uv_cq {
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex ex;
	};
	uint8_t slack[UV_SLACK];
	struct ur_live live;
	struct ur_cq *tp;
	_Atomic(struct ur_engine *) engine; /* of its lane, which its first QP decides */
	atomic_uint feeders;   /* a bit for each lane whose QPs complete here, once there are several */
	unsigned vector;       /* comp_vector */
	struct ur_spin lock;          /* the consumer's side of the ring */
	struct ur_spin batch;         /* held from start_poll to end_poll; taken before `lock`, and never under the engine's */
	bool single;           /* the program polls from one thread and needs no `batch` */
	struct ibv_wc wc;      /* the completion that start_poll or next_poll came to */
	ur_time at;            /* when it arose */
	bool wall_compared;    /* in this batch: the engine's clock with the wall clock, */
	uint64_t wall_ahead;   /* which is ahead by this (modulo 2^64) */
	struct ibv_pd *pd;     /* a parent domain that it was made with, or NULL */
	void *lent;            /* its memory for the queue */
	struct ur_list link;   /* in the channel's events while `pending` */
	unsigned pending;      /* notifications that nobody fetched; under the channel's lock */
	uint32_t delivered;    /* fetched ones, all acknowledged before the CQ goes; under the channel's lock */
	uint32_t async_delivered; /* under the context's async.lock */
};

struct uv_qp {
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex ex;
	};
	uint8_t slack[UV_SLACK];
	struct ur_live live;
	struct ur_qp *tp;
	struct ur_engine *engine; /* of its lane */
	struct ur_errand first_packet; /* COMM_EST, for the first lane; `told`: it is on its way */
	atomic_bool told;
	struct ur_spin sq_lock, rq_lock;
	struct ur_wr_batch *batch; /* of ibv_wr_post(3), NULL without that; under sq_lock */
	struct ur_net_path path;
	uint32_t async_delivered; /* under the context's async.lock */
	struct uv_qp *root;    /* itself, or the one of which ibv_open_qp made it; that has tp, path and the engine's view */
	struct ur_list opened; /* of a root the list of those, else its place there; under the engine's lock, as is `closed` */
	void *lent[2];         /* a parent domain's memory for the send and the receive queue */
	bool closed;           /* a root that was destroyed while others have its QP open */
};

struct uv_srq {
	struct ibv_srq srq;
	uint8_t slack[UV_SLACK];
	struct ur_live live;
	struct ur_srq *tp;
	struct ur_engine *engine;
	struct ur_spin lock; /* the producers' side of the ring */
	bool xrc;
	void *lent; /* a parent domain's memory for the queue */
	uint32_t async_delivered; /* under the context's async.lock */
};

static inline struct uv_context *uv_context(struct ibv_context *c)
{
	return ur_container_of(c, struct uv_context, vctx.context);
}

/* Takes the engine for a control call on this context. NULL and EIO in a child that forked after the context was opened. */
struct ur_nic *uv_enter(struct uv_context *c);
void uv_leave(struct uv_context *c);
/* The same for all lanes of the device, which regions and shared queues need; and for one lane, that of a QP. */
struct ur_nic *uv_enter_all(struct uv_context *c);
void uv_leave_all(struct uv_context *c);
struct ur_nic *uv_enter_lane(struct ur_engine *lane);
void uv_leave_lane(struct ur_engine *lane);
/* uv_enter would fail. */
bool uv_is_foreign(const struct uv_context *c);
void uv_context_get(struct uv_context *c);
void uv_context_put(struct uv_context *c);
/* Fills the operations that programs call through the context. */
void uv_context_ops(struct verbs_context *v);

static inline void *uv_null(int err)
{
	errno = err;
	return NULL;
}

static inline int uv_errno(int err)
{
	if (err)
		errno = err;
	return err;
}

/*
 * For each call that destroys an object: 0, or errno and the same. `destroy` frees it and takes it off the live handles, or returns why it
 * cannot. No two threads are in it with one object, and none with an object that has gone: EBUSY and EINVAL.
 */
int uv_destroy(void *handle, int (*destroy)(void *handle));
/*
 * Waits for frames that refer to user memory: to be called, unlocked, after an EBUSY, with `turn` counting from 0. False when the port has
 * kept them for unreasonably long.
 */
bool uv_reclaim(struct uv_context *c, unsigned turn);

/* lane.c: the lane for a new QP, running. Not under a lock. */
struct ur_engine *uv_lane_for(struct ibv_context *ctx, const struct ibv_pd *pd, const struct ibv_qp_init_attr *attr);
/*
 * Takes the lane's lock for the creation of a QP, or XRC SRQ, with these queues, which are that lane's or shared afterwards. NULL in a
 * child. *all says whether the locks of all lanes are held. Gives them back.
 */
struct ur_nic *uv_enter_for_qp(struct ur_engine *lane, const struct ibv_qp_init_attr *attr, bool *all);
void uv_leave_for_qp(struct ur_engine *lane, bool all);
/* An empty poll of that CQ: drives the lanes that feed it. It is armed: none of them waits for another poll. */
bool uv_cq_drive_feeders(struct uv_cq *u, unsigned feeders);
static inline bool uv_cq_drive(struct uv_cq *u)
{
	const unsigned feeders = atomic_load_explicit(&u->feeders, memory_order_relaxed);

	if (ur_likely(!feeders))
		return ur_engine_drive(atomic_load_explicit(&u->engine, memory_order_relaxed));
	return uv_cq_drive_feeders(u, feeders);
}
void uv_cq_will_block(struct uv_cq *u);
/* The lane of the next thread domain. */
unsigned uv_next_lane(struct ur_engine *device);

/* context.c: a context over that descriptor, and with that reference on the share. NULL and errno, and neither is taken over. */
struct ibv_context *uv_context_open(struct uv_device *d, int cmd_fd, struct uv_share *share);

/* share.c: a new one, and its descriptor. 0 or an errno. */
int uv_share_new(struct uv_device *device, int *cmd_fd, struct uv_share **out);
void uv_share_put(struct uv_share *s);

static inline uint32_t uv_new_handle(struct uv_context *c)
{
	return atomic_fetch_add(&c->share->handles, 1);
}

/* pd.c: every object that is made with a PD counts as its user. */
static inline struct uv_pd *uv_pd(struct ibv_pd *pd)
{
	return ur_container_of(pd, struct uv_pd, pd);
}

static inline void uv_pd_get(struct ibv_pd *pd)
{
	atomic_fetch_add(&uv_pd(pd)->users, 1);
}

static inline void uv_pd_put(struct ibv_pd *pd)
{
	atomic_fetch_sub(&uv_pd(pd)->users, 1);
}

/* parent_domain.c */
struct ibv_td *uv_alloc_td(struct ibv_context *ctx, struct ibv_td_init_attr *attr);
int uv_dealloc_td(struct ibv_td *td);
struct ibv_pd *uv_alloc_parent_domain(struct ibv_context *ctx, struct ibv_parent_domain_init_attr *attr);
/* It is being deallocated: lets go of what it stands on. */
void uv_parent_domain_end(struct uv_pd *u);

/* What an allocator is asked for; uroce has no rdma_driver_id, so the upper half is 0. */
enum uv_resource { UV_RES_SQ = 1, UV_RES_RQ, UV_RES_SRQ, UV_RES_CQ };

/*
 * Memory for an object's queue from the allocator of a parent domain. *out is NULL when the object should use its own; 0, ENOMEM, or EINVAL
 * when what the allocator gave, which is in *out, is not aligned to UR_RING_ALIGN. Not under the engine's lock. `pd` may be NULL.
 */
int uv_pd_alloc(struct ibv_pd *pd, enum uv_resource what, size_t size, void **out);
/* `at` may be NULL. */
void uv_pd_free(struct ibv_pd *pd, enum uv_resource what, void *at);

/* mr.c: ibv_reg_mr_iova2(3) for memory of any kind. NULL and errno. */
struct ibv_mr *uv_mr_new(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access, enum uv_mr_kind kind);

/* odp.c */
struct ibv_mr *uv_alloc_null_mr(struct ibv_pd *pd);
int uv_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *list, uint32_t n);
void uv_odp_caps(struct ibv_device_attr_ex *attr);

/* dm.c */
#define UV_MAX_DM (16u << 20)
struct ibv_dm *uv_alloc_dm(struct ibv_context *ctx, struct ibv_alloc_dm_attr *attr);
int uv_free_dm(struct ibv_dm *dm);
struct ibv_mr *uv_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t off, size_t length, unsigned int access);
/* A region in it has been deregistered. */
void uv_dm_mr_gone(struct uv_dm_mem *m);

/* query.c */
int uv_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr, size_t len);
int uv_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *in, struct ibv_device_attr_ex *attr, size_t len);

/* cq.c; uv_cq_create takes wc_flags and flags as they are, and bounds as ibv_create_cq(3) does. NULL and errno. */
struct uv_cq *uv_cq_create(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr);
int uv_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int uv_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int uv_req_notify_cq(struct ibv_cq *cq, int solicited_only);

/* cq_ex.c */
#define UV_WC_STAMPS (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
struct ibv_cq_ex *uv_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
int uv_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);

/* channel.c: the NIC's notification of a CQ with a channel, and what happens to unread and unacknowledged ones before the CQ is freed. */
void uv_channel_notify(struct uv_cq *cq);
void uv_channel_forget(struct uv_cq *cq);

/* async.c: events of QPs, CQs and SRQs; dropping and awaiting them before the object is freed. `element` is the ibv_ object. */
void uv_async_raise(struct uv_context *c, enum ibv_event_type type, void *element);
/* For ur_engine_watch of a context. */
void uv_async_port(struct ur_engine_watch *w, enum ibv_event_type type);
void uv_async_forget_qp(struct uv_qp *qp);
void uv_async_forget_cq(struct uv_cq *cq);
void uv_async_forget_srq(struct uv_srq *srq);

/* mw.c */
struct ibv_mw *uv_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int uv_dealloc_mw(struct ibv_mw *mw);
int uv_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

/* qp.c, post.c */
struct ibv_qp *uv_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);
int uv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int uv_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* wr.c: the ibv_wr_ interface. Has a QP of that type all these IBV_QP_EX_WITH_ operations? */
bool uv_wr_supported(enum ibv_qp_type type, uint64_t send_ops);
/* Gives it to a QP; ibv_qp_to_qp_ex(3) is NULL without. 0 or ENOMEM. */
int uv_wr_init(struct uv_qp *u, uint64_t send_ops);

/* srq.c */
struct ibv_srq *uv_create_srq_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *ex);
int uv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int uv_get_srq_num(struct ibv_srq *srq, uint32_t *num);

/* xrc.c */
struct ibv_xrcd *uv_open_xrcd(struct ibv_context *ctx, struct ibv_xrcd_init_attr *attr);
int uv_close_xrcd(struct ibv_xrcd *xrcd);
struct ibv_qp *uv_open_qp(struct ibv_context *ctx, struct ibv_qp_open_attr *attr);
struct ur_xrcd *uv_xrcd_tp(struct ibv_xrcd *xrcd);
/* Under the engine's lock, for a QP being destroyed: true while others have it open, so that only `u` goes. */
bool uv_qp_detach(struct uv_qp *u);
/* Under the engine's lock: tells all who have it open. */
void uv_qp_raise(struct uv_qp *root, enum ibv_event_type type);

/* --- public symbols that no installed header declares (marshall.h and driver.h of rdma-core) --- */

struct ib_uverbs_ah_attr;
struct ib_uverbs_qp_attr;
struct ib_user_path_rec;

enum uv_gid_type_sysfs { UV_GID_TYPE_SYSFS_IB_ROCE_V1, UV_GID_TYPE_SYSFS_ROCE_V2 };

int ibv_query_gid_type(struct ibv_context *ctx, uint8_t port, unsigned int index, enum uv_gid_type_sysfs *type);
void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ib_uverbs_ah_attr *src);
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ib_uverbs_qp_attr *src);
void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst, struct ib_user_path_rec *src);
void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst, struct ibv_sa_path_rec *src);
const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

/* Macros of verbs.h precede these. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#endif
