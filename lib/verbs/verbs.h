/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/verbs: the libibverbs face of uroce. It gives programs the objects of <infiniband/verbs.h> with the layout and the symbol
 * versions of rdma-core, keeps the file descriptors, errno values and acknowledgement counts that ibv_*(3) promise, and leaves all
 * protocol to lib/engine and lib/transport.
 *
 * Programs call the public ibv_ functions. This header is for lib/rdmacm alone, which shares a context with rdma_cm ids and moves
 * QPs from inside callbacks.
 */
#ifndef UR_VERBS_H
#define UR_VERBS_H

#include <infiniband/verbs.h>

#include "base/base.h"

struct ur_engine;
struct ur_nic;
struct ur_qp;

/*
 * The context that all rdma_cm ids on a device share; devices are counted from 0. Opened at the first call and never closed; starts
 * nothing. A child gets its own after fork. NULL and errno (ENODEV when there is no such device) otherwise. Do not call it under an
 * engine's lock.
 */
struct ibv_context *ur_verbs_context(unsigned device);

/*
 * The protection domain of ids that bring none (rdma_create_qp(3)); one for each context, made at the first call, gone with it.
 * NULL and errno. Not under the lock.
 */
struct ibv_pd *ur_verbs_default_pd(struct ibv_context *ctx);
/* Keeps a protection domain from being deallocated, until the process ends. */
void ur_verbs_keep_pd(struct ibv_pd *pd);

/* NULL when ctx is not one of ours. */
struct ur_engine *ur_verbs_engine(struct ibv_context *ctx);

/* The transport's QP behind an ibv_qp; valid until ibv_destroy_qp. */
struct ur_qp *ur_verbs_qp(struct ibv_qp *qp);

/*
 * ibv_modify_qp(3) for callers that hold the lock of the device's first lane, as in callbacks of the connection manager. Everybody else
 * calls ibv_modify_qp, which takes the lock and starts the engine when the QP goes to RTR; here it must have been started. 0 or a positive
 * errno.
 */
int ur_verbs_modify_qp_locked(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, ur_time now);
/* ur_qp_handshake_took, for the same callers. */
void ur_verbs_handshake_took_locked(struct ibv_qp *qp, ur_time t);

/*
 * Tells lib/rdmacm of every asynchronous event of a QP as well, under the engine's lock and before the program can see it. One
 * hook a process; set it under the lock. COMM_EST (the first packet on a QP in RTR or RTS) is what it is for; programs see that in RTR
 * only, as IBTA 11.6.3.1 wants it.
 */
typedef void (*ur_verbs_qp_event_fn)(struct ibv_qp *qp, enum ibv_event_type type, ur_time now);
void ur_verbs_set_qp_event_hook(ur_verbs_qp_event_fn fn);

#endif
