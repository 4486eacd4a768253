/* SPDX-License-Identifier: BSD-3-Clause */
/* Two connection managers, joined by a queue in virtual time that loses, repeats and delays what a test tells it to. */
#ifndef CM_HARNESS_H
#define CM_HARNESS_H

#include "base/rng.h"
#include "cm/cm.h"
#include "cm/internal.h"

#define HX_SERVICE 0x0000000001061234ull /* TCP port space, port 0x1234 */
#define HX_PLAIN_SERVICE 0x4711ull	 /* no IP port: no RDMA CM header */
#define HX_GUID(side) (0x505400fffe990000ull + (unsigned)(side))
#define HX_EVENTS 8
#define HX_ATTRS 16
#define HX_MS UR_NS_PER_MS
#define HX_FAREWELLS 16 /* connections of a side at a time that a test may ask for the farewells of */

struct hx;

/* The owner of a connection or listener, with the manners that a test gives it. */
struct hx_ep {
	struct hx *h;
	struct hx_ep *next;
	int side;
	uint32_t qpn;
	struct ur_cm_conn *conn; /* NULL when destroyed */
	struct hx_ep *child;	 /* of a listener: the endpoint of the latest request */
	unsigned nchildren;
	unsigned got[HX_EVENTS];
	struct ur_cm_event last; /* its pointers are not valid any more */
	uint8_t pdata[UR_CM_PDATA_MAX];
	uint8_t ari[UR_CM_REJ_ARI];
	/* manners */
	bool accept;		/* REQ -> REP */
	uint16_t reject;	/* REQ or REP -> REJ with this reason */
	bool rtu;		/* REP -> RTU */
	bool drep;		/* DREQ -> DREP */
	unsigned destroy_on;	/* bit per event type: destroy the connection in the callback */
};

/* What a peer should hear of a side that is killed. */
struct hx_farewell {
	bool taken, said;
	uint8_t mad[UR_MAD_LEN];
};

struct hx_side {
	struct ur_cm *cm;
	struct ur_counters counters;
	struct ur_random random;
	struct ur_gid gid;
	bool other_answers;
	uint32_t in_use; /* a QP that is, or 0 */
	unsigned sent[HX_ATTRS]; /* by attribute - UR_CM_REQ, retries included, losses too */
	uint8_t last[HX_ATTRS][UR_MAD_LEN];
	uint32_t psn[HX_ATTRS]; /* of the packet with it */
	ur_time sent_at[HX_ATTRS];
	struct hx_farewell farewell[HX_FAREWELLS];
};

struct hx_mad {
	struct hx_mad *next;
	ur_time when;
	int to;
	struct ur_cm_addr from;
	uint8_t mad[UR_MAD_LEN];
};

struct hx {
	struct ur_wheel *wheel;
	ur_time now, latency, jitter;
	struct hx_side side[2];
	struct hx_mad *queue;
	struct hx_ep *eps;
	uint32_t next_qpn;
	struct ur_rng rng;
	/* How many copies of a message arrive; NULL: one. `nth` counts messages of this side and attribute from 1. */
	unsigned (*fate)(struct hx *h, int side, unsigned attr, unsigned nth);
	unsigned arg[4]; /* for `fate` */
};

void hx_init(struct hx *h, uint64_t seed);
void hx_fini(struct hx *h);
struct hx_ep *hx_ep(struct hx *h, int side);
/* A listener on `side` whose connections accept, confirm and answer DREQs. */
struct hx_ep *hx_listen(struct hx *h, int side, uint64_t service);
/* What hx_connect asks for; tests change it. */
struct ur_cm_req_param hx_req(const struct hx_ep *ep, const struct ur_rdma_cm_hdr *hdr);
struct ur_rdma_cm_hdr hx_hdr(const struct hx *h, int side);
/* An endpoint on `side` that connects, with RTU and DREP of its own. */
struct hx_ep *hx_connect(struct hx *h, int side, uint64_t service);
int hx_accept(struct hx_ep *ep);
void hx_run(struct hx *h, ur_time until);
/* Until nothing is in flight and no timer is armed; false after `limit`. */
bool hx_settle(struct hx *h, ur_time limit);
void hx_event(void *owner, struct ur_cm_conn *conn, const struct ur_cm_event *ev, ur_time now);
/* Hands a MAD to `to` as if it came from the other side. */
void hx_inject(struct hx *h, int to, const uint8_t *mad);
void hx_inject_msg(struct hx *h, int to, const struct ur_cm_msg *m);
/* The side is heard no more, except for its farewells: now, and after 100 ms again. The other side is asked to stay, in virtual time. */
void hx_kill(struct hx *h, int side);
/* Destroys the endpoint's connection. */
void hx_drop(struct hx_ep *ep);
/* A client (side 0) and a server (side 1) with an established connection. */
struct hx_pair {
	struct hx_ep *client, *listener, *server;
};
struct hx_pair hx_established(struct hx *h);
unsigned hx_conns(const struct hx *h, int side);

static inline enum ur_cm_state hx_state(const struct hx_ep *ep)
{
	return ur_cm_conn_state(ep->conn);
}

#define HX_SENT(h, s, a) ((h)->side[s].sent[UR_CM_##a - UR_CM_REQ])
#define HX_LAST(h, s, a) ((h)->side[s].last[UR_CM_##a - UR_CM_REQ])
#define HX_COUNTER(h, s, id) ((h)->side[s].counters.v[UR_C_##id])

#endif
