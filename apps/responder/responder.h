/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce-responder: what `uroce conform --serve` runs. A plain program of librdmacm and libibverbs, which knows nothing of uroce: it offers
 * regions, takes messages and answers them as conform/offer.h says. main.c has the connections, serve.c what goes over them, own_qp.c the
 * QPs that rdma_create_qp(3) cannot make.
 */
#ifndef UR_RESPONDER_H
#define UR_RESPONDER_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>

#include "conform/offer.h"

#define RECVS 8
#define ECHOES 4
#define CONNS 256
#define ACCESS_FLUSH_GLOBAL (1 << 8) /* IBV_ACCESS_FLUSH_GLOBAL, which verbs.h has from rdma-core 45 on */

struct conn {
	struct rdma_cm_id *id; /* NULL: not in use; of datagrams, whose QP all share, never set */
	struct ibv_qp *qp;
	bool own_qp;              /* not the id's */
	struct ibv_mw *window[2]; /* UR_CF_WINDOW and UR_CF_WINDOW_RO */
	uint32_t window_rkey[2];
	unsigned bound;      /* windows */
	struct ibv_srq *srq; /* of an XRC connection, with the receives */
	uint8_t recv[RECVS][UR_CF_RECV_LEN];
	uint8_t data[UR_CF_REGION_LEN]; /* what was READ and is written back */
	uint8_t echo[ECHOES][UR_CF_ADVERT_LEN];
	struct ibv_ah *ah[ECHOES]; /* of echoes that are in flight */
	struct ibv_mr *mr;         /* of all of this struct */
	uint64_t taken;            /* messages */
	uint64_t late_until;       /* ms; 0: its receives are posted */
	uint32_t source;           /* of datagrams: whose messages `taken` counts */
	uint8_t port;
	unsigned adverts;
};

/* What all connections of the device share. */
struct shared {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel;
	uint8_t *memory[UR_CF_REGIONS];
	struct ibv_mr *region[UR_CF_REGIONS];
	bool windows;                /* the device has those of type 2 */
	bool flush, atomic_write;    /* the device has them (annex A19) */
	struct ibv_xrcd *xrcd;       /* NULL: the device has no XRC */
	struct ibv_srq *foreign_srq; /* of another XRC domain */
	uint32_t gone_rkey;
	uint64_t gone_va;
	struct conn *conn[CONNS]; /* the first one is that of datagrams */
};

/* How a connection is to be served. */
struct wish {
	enum ur_cf_serve serve;
	uint32_t psn;
};

void need(int ok, const char *what);
/* CLOCK_MONOTONIC */
uint64_t now_ms(void);

/* serve.c */
void share_device(struct shared *s, struct ibv_context *verbs);
/* Writes UR_CF_REP_LEN bytes. */
void put_offer(const struct shared *s, const struct conn *c, uint8_t *to);
/* A connection whose QP is yet to be made; NULL when there are too many. */
struct conn *conn_new(struct shared *s);
void conn_free(struct shared *s, struct conn *c);
struct ibv_qp_init_attr conn_attributes(const struct shared *s, enum ibv_qp_type type);
void make_datagrams(struct shared *s, uint8_t port);
void post_receives(struct conn *c);
void post_bind(struct conn *c, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info);
/* xrc.c; `xrcd` stays NULL on a device that has no XRC. */
void share_xrc(struct shared *s);
struct ibv_srq *make_xrc_srq(const struct shared *s, struct ibv_xrcd *xrcd);
struct ibv_qp *make_xrc_qp(const struct shared *s);
/* Big-endian, as the REP has it; 0 without SRQ. */
uint32_t srq_number(struct ibv_srq *srq);
/* own_qp.c: whether there is such a mode on this device, and the connection's QP, which is ready when this returns true. */
bool can_serve(const struct shared *s, enum ur_cf_serve serve);
bool make_own_qp(struct shared *s, struct conn *c, struct rdma_cm_id *id, struct ibv_qp_init_attr *attr, const struct wish *wish);
void free_windows(struct conn *c);
/* All completions that there are. */
void take_completions(struct shared *s);

#endif
