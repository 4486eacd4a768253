/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce-responder: what `uroce conform --serve` runs. A plain program of librdmacm and libibverbs, which knows nothing of uroce: it offers
 * regions, takes messages and answers them as conform/offer.h says. main.c has the connections, serve.c what goes over them.
 */
#ifndef UR_RESPONDER_H
#define UR_RESPONDER_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>

#include "conform/offer.h"

#define RECVS 8
#define ECHOES 4
#define CONNS 256

struct conn {
	struct rdma_cm_id *id; /* NULL: not in use; of datagrams, whose QP all share, never set */
	struct ibv_qp *qp;
	uint8_t recv[RECVS][UR_CF_RECV_LEN];
	uint8_t data[UR_CF_REGION_LEN]; /* what was READ and is written back */
	uint8_t echo[ECHOES][UR_CF_ADVERT_LEN];
	struct ibv_mr *mr;   /* of all of this struct */
	uint64_t taken;      /* messages */
	uint64_t late_until; /* ms; 0: its receives are posted */
	uint32_t source;     /* of datagrams: whose messages `taken` counts */
	uint8_t port;
	unsigned adverts;
};

/* What all connections of the device share. */
struct shared {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel;
	uint8_t *memory[UR_CF_OFFERED];
	struct ibv_mr *region[UR_CF_OFFERED];
	uint32_t gone_rkey;
	uint64_t gone_va;
	struct conn *conn[CONNS]; /* the first one is that of datagrams */
};

void need(int ok, const char *what);

/* serve.c */
void share_device(struct shared *s, struct ibv_context *verbs);
/* Writes UR_CF_REP_LEN bytes. */
void put_offer(const struct shared *s, uint8_t *to);
/* A connection whose QP is yet to be made; NULL when there are too many. */
struct conn *conn_new(struct shared *s);
void conn_free(struct shared *s, struct conn *c);
struct ibv_qp_init_attr conn_attributes(const struct shared *s, enum ibv_qp_type type);
void make_datagrams(struct shared *s, uint8_t port);
void post_receives(struct conn *c);
/* All completions that there are. */
void take_completions(struct shared *s);

#endif
