/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/rdmacm: the librdmacm face of uroce. It gives programs the objects of <rdma/rdma_cma.h> and keeps what rdma_*(3) promise about
 * file descriptors, errno values, events and their acknowledgement; the protocol is lib/cm's, addresses are lib/net's, queue pairs
 * lib/verbs's. This header is what its files share:
 *
 *   channel.c  event channels              id.c       creation, destruction, migration
 *   bind.c     local addresses and ports   resolve.c  remote addresses and routes        sockaddr.c  addresses and GIDs
 *   device.c   devices, as ids see them    place.c    on which device an id is
 *   ib_addr.c  AF_IB addresses of ids      srq.c      shared receive queues, XRC domain
 *   connect.c  the active side             listen.c   the passive side                   conn.c      what happens to a connection
 *   qp.c       queue pairs                 ep.c       endpoints                          option.c    options, ECE
 *   datagram.c datagram ids: what connecting, listening and QPs are for them
 *   multicast.c groups that ids join       unsupported.c  what uroce does not have
 *   path_option.c  routes of the program    getaddrinfo.c, addrinfo_kind.c, addrinfo_addr.c  names and addresses
 *
 * An id belongs to the lock of its device's engine: API calls take it, callbacks of the layers below come under it. A channel's mutex nests
 * inside and guards its queue and the counts of unread and unacknowledged events of the ids on it. Nobody blocks while holding either.
 */
#ifndef UR_RDMACM_PRIV_H
#define UR_RDMACM_PRIV_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "base/list.h"
#include "base/table.h"
#include "base/wheel.h"
#include "cm/cm.h"
#include "engine/engine.h"
#include "net/net.h"
#include "verbs/live.h"

#ifndef AF_IB
#define AF_IB 27 /* of <infiniband/ib.h>; libc has no name for it */
#endif

/*
 * The rsockets of the real librdmacm run on top of this library and look behind rdma_cm_id for its private fields (rdma-core 44): all
 * are zero here, as for an id without a device, but the one that says whether the id is synchronous.
 */
#define UR_ID_SLACK 512
#define UR_ID_SLACK_SYNC 32

#define UR_RDMACM_BACKLOG_MIN 64
#define UR_RDMACM_BACKLOG_MAX 1024
#define UR_RDMACM_PKEY 0xffff
#define UR_RDMACM_PORT 1 /* the device's only port */
#define UR_RDMACM_HOP_LIMIT 64
#define UR_ACK_TIMEOUT_MAX 31        /* 5 bits on the wire */
#define UR_RDMACM_RETRIES 7          /* the most that a message can say, and what it says for callers without parameters */
#define UR_RDMACM_UNREAD UR_NS_PER_S /* a peer's farewell that nobody has read for so long ends the QP */
#define UR_RDMACM_REQ_PDATA (UR_CM_REQ_PDATA - UR_RDMA_CM_HDR_LEN)

struct ur_channel {
	struct rdma_event_channel ch; /* first; ch.fd is an eventfd, readable while the queue holds events */
	pthread_mutex_t lock;
	pthread_cond_t acked;
	struct ur_list queue; /* unread events */
	struct ur_list spare; /* events that were acknowledged, for the next ones */
	unsigned spares;
	uint64_t told;        /* written into ch.fd, less what was read from it (channel.c) */
	pthread_t reader;     /* who read the last event; valid when `was_read` */
	bool was_read;
	atomic_uint waiting; /* threads in ur_channel_get */
	atomic_uint holds;   /* one of the program, one of each id and of each thread that reads; it is freed with the last */
};

/* A device. What is below `default_pd` is under its engine's lock. */
struct ur_id_device {
	unsigned index;
	struct ur_engine *engine;
	struct ibv_context *ctx;
	struct ibv_pd *default_pd;
	struct ur_table awaiting; /* accepted ids without an RTU, by their QP (await.c) */
	struct ur_list joins;     /* of struct ur_mc that hold a membership, for when an address goes away (multicast.c) */
	struct ur_engine_watch watch;
	struct ibv_xrcd *xrcd;        /* of ids that bring none; under UR_FORK_XRCD */
	struct ur_id_device *parents; /* before a fork; for checkers of leaks alone */
};

/* One rdma_join_multicast(3). */
struct ur_mc {
	struct ur_list of_id, of_all;
	struct ur_id *id;
	void *context;
	struct ur_gid group, sgid;
	uint16_t vlan;
	bool send_only;
	bool member;      /* until it is left, or its address has gone */
	bool attached;    /* id->qp is, for this join */
	bool closed;      /* it ends: its event attaches nothing any more */
	unsigned unacked; /* under the channel's mutex */
};

struct ur_event {
	struct rdma_cm_event ev;    /* first */
	struct ur_list link, mine;  /* in the channel's queue; among the owner's unread events */
	struct ur_channel *channel; /* where it was queued or read */
	struct ur_id *owner;        /* whose destruction waits for the acknowledgement: the listener for CONNECT_REQUEST, else ev.id */
	struct ur_mc *mc;           /* of a multicast event: it stays until the acknowledgement */
	uint8_t pdata[UR_CM_PDATA_MAX];
};

enum ur_id_state {
	UR_ID_IDLE,
	UR_ID_BOUND,
	UR_ID_ADDR_QUERY,
	UR_ID_ADDR_RESOLVED,
	UR_ID_ROUTE_RESOLVED,
	UR_ID_CONNECT, /* from the request, sent or received, until the connection ends */
	UR_ID_DISCONNECT,
	UR_ID_LISTEN,
	UR_ID_STATE_COUNT,
};

struct ur_id {
	struct rdma_cm_id id; /* first */
	uint8_t slack[UR_ID_SLACK];
	struct ur_id_device *device; /* and, of it: */
	struct ur_engine *engine;
	struct ibv_context *ctx;
	struct ibv_pd *default_pd;
	struct ur_nic *nic;  /* valid under the engine's lock */
	struct ur_id *twins; /* the next of those on other devices (place.c) */
	struct ur_id *main;  /* of a twin, the id that the program has */
	enum ur_id_state state;
	bool sync;    /* the channel is the id's own, and calls wait for their event */
	bool pending; /* a request that was not accepted: nothing more is said of it, and accepting fails if it ends before */
	struct ur_live live;
	bool any_type; /* no QP type was asked for: a QP decides, or a request */

	struct ur_list events; /* the unread ones that it owns; this and the counts are under the channel's mutex */
	unsigned unread_requests, unacked;
	unsigned backlog;

	bool bound; /* holds `port` at `bound_gid`, an address or a wildcard (wire/gid_set.h) */
	struct ur_gid bound_gid;
	uint16_t port, port_space; /* the port space is id.ps, or what an AF_IB address says */
	bool reuse;
	bool afonly, afonly_set; /* whether a wildcard means its own family alone, and whether the program said so */
	bool loopback;           /* bound to a loopback address that the device lacks: it stands for all of this host's */
	uint8_t tos, ack_timeout;
	bool ack_timeout_set;
	bool life_time_given; /* by the program, in path_rec */

	struct ur_gid sgid, dgid; /* once resolved or connected */
	uint16_t sport, dport;    /* of the port space, host order */
	uint64_t dst_service;     /* of the active side, the service id that it asks for */
	uint16_t vlan;
	uint32_t flow_label;

	struct ur_net_path path; /* open in ADDR_QUERY */
	struct ur_timer timer;
	ur_time deadline;
	struct ur_timer unread; /* since a peer's DREQ */

	struct ibv_sa_path_rec path_rec;
	struct ur_cm_listener *listener;
	struct ur_cm_conn *conn;
	struct ur_cm_sidr *lookup;                    /* of a datagram id: its own, or the one that it stands for */
	struct ur_table_node awaiting;                /* among the accepted ids without an RTU, by their QP */
	uint32_t psn;                                 /* our starting PSN: the first that the peer sends */
	uint8_t responder_resources, initiator_depth; /* what rdma_accept decided */
	bool depths_set;
	bool own_send_cq, own_recv_cq;
	bool srq_cq;        /* own_recv_cq was made for the SRQ */
	uint32_t qkey;      /* of a datagram id; 0 until ur_id_qkey chooses one */
	struct ur_list mcs; /* of struct ur_mc, in the order of joining */
	struct ibv_ece local_ece, remote_ece;
	struct ibv_qp_init_attr *ep_attr; /* for the QPs of a listening endpoint */
	struct ibv_pd *ep_pd;
	uint8_t *ep_connect; /* private data that precedes the caller's in a request */
	unsigned ep_connect_len;
};

static inline int ur_fail(int err)
{
	errno = err;
	return -1;
}

/* A positive errno as librdmacm gives it. */
static inline int ur_result(int err)
{
	return err ? ur_fail(err) : 0;
}

/* --- id.c --- */

const char *ur_id_state_name(enum ur_id_state s);
/* The id behind a caller's pointer; NULL and errno EINVAL for none or one that was destroyed, EIO for one from before a fork. */
struct ur_id *ur_id_get(struct rdma_cm_id *id);
/* An id that was not destroyed. */
bool ur_id_known(const struct rdma_cm_id *id);
/* A new id in IDLE. Does not block; errno. */
struct ur_id *ur_id_alloc(struct ur_channel *ch, void *context, enum rdma_port_space ps, enum ibv_qp_type type);
/* Puts it on the first device. Not under the lock. 0 or an errno. */
int ur_id_open(struct ur_id *u);
/* The program gets to know the id: from now on it is alive and holds its channel. Once is as good as twice. */
void ur_id_handed_out(struct ur_id *u);
/* rdma_create_id with a QP type of the caller's choice. 0 or an errno. */
int ur_id_create(struct rdma_event_channel *ch, void *context, enum rdma_port_space ps, enum ibv_qp_type type, struct ur_id **out);
/* rdma_migrate_id(3). 0 or an errno. */
int ur_id_migrate(struct ur_id *u, struct rdma_event_channel *ch);
/* The id may go to another device meanwhile. */
static inline void ur_id_lock(struct ur_id *u)
{
	struct ur_engine *e = __atomic_load_n(&u->engine, __ATOMIC_ACQUIRE), *now;
	struct ur_nic *nic;

	for (;;) {
		nic = ur_engine_lock(e);
		now = __atomic_load_n(&u->engine, __ATOMIC_ACQUIRE);
		if (ur_likely(now == e))
			break;
		ur_engine_unlock(e);
		e = now;
	}
	u->nic = nic;
}
static inline void ur_id_unlock(struct ur_id *u)
{
	ur_engine_unlock(u->engine);
}
/* How calls begin: ur_id_get and the lock; for those that need packets also with the engine running. How they end: unlocked, with `err`. */
struct ur_id *ur_id_enter(struct rdma_cm_id *id);
struct ur_id *ur_id_enter_started(struct rdma_cm_id *id);
int ur_id_leave(struct ur_id *u, int err);
/* `sync`, here and where rsockets look for it. */
void ur_id_set_sync(struct ur_id *u, bool sync);
/* The id is bound to the device: fills what programs look at. */
void ur_id_attach(struct ur_id *u);

/* --- channel.c --- */

/* A hold on the channel of an id that the program has; giving it back. */
void ur_channel_hold(struct ur_channel *ch);
void ur_channel_release(struct ur_channel *ch);
/* rdma_destroy_event_channel(3) of a channel that no other thread reads, as those of synchronous ids. Does not block. */
void ur_channel_close(struct ur_channel *ch);
/* NULL when memory is short. `owner` as in struct ur_event. */
struct ur_event *ur_event_new(enum rdma_cm_event_type type, struct ur_id *id, struct ur_id *owner);
/* Copies private data, cut to the largest field. */
void ur_event_pdata(struct ur_event *e, const uint8_t *data, unsigned len);
/* Queues it on the owner's channel. */
void ur_event_push(struct ur_event *e);
/* ur_event_new and ur_event_push of an event without data. */
void ur_event_send(struct ur_id *u, enum rdma_cm_event_type type, int status);
/* Waits for the next event. 0 or an errno. */
int ur_channel_get(struct ur_channel *ch, struct ur_event **out);
void ur_event_ack(struct ur_event *e);
/* Moves the unread events that `u` owns to `out`, a list of their links. */
void ur_channel_take(struct ur_id *u, struct ur_list *out);
void ur_channel_wait_acked(struct ur_id *u);
/* Frees the unread events of a join; waits until those that were read are acknowledged. */
void ur_channel_forget_mc(struct ur_id *u, struct ur_mc *mc);
void ur_channel_wait_mc(struct ur_id *u, struct ur_mc *mc);
/*
 * Puts the id and its unread events on another channel. Under the engine's lock. False, and nothing is done, when an event of its own has
 * been read and not acknowledged.
 */
bool ur_channel_move(struct ur_id *u, struct ur_channel *to);
bool ur_channel_has(struct ur_id *u, enum rdma_cm_event_type type);
/* Synchronous ids wait here for the event of the current call, which stays in id->event. 0, or -1 and errno. */
int ur_id_complete(struct ur_id *u);
/*
 * The end of a call that causes an event: gives the lock back, and a synchronous id waits for the event. Others are not looked at any more,
 * because another thread may read the events that come now, and destroy the id in the end. 0, or -1 and errno.
 */
int ur_id_unlock_and_wait(struct ur_id *u, int err);
/* Acknowledges id->event of a synchronous id. */
void ur_id_drop_event(struct ur_id *u);

/* --- device.c --- */

/* The devices of this process in their order; how many, 0 and errno when there is none. Not under a lock. */
unsigned ur_id_devices(struct ur_id_device *out[UR_DEVICES]);
/* That of an engine; NULL when no id has been on it. */
struct ur_id_device *ur_id_device_of(const struct ur_engine *e);

/* --- place.c: not under a lock, but for ur_id_set_device --- */

/* The engine from whose device the best route leads there. NULL when there is none. */
struct ur_engine *ur_id_engine_towards(const struct sockaddr *dst);
void ur_id_set_device(struct ur_id *u, struct ur_id_device *d);
/* Before an id is bound: puts it on the device that has the address. */
void ur_id_place_source(struct ur_id *u, const struct sockaddr *src);
/* Before an id resolves an address: puts it on the device that has `src` (it may be NULL), or from which the best route leads to `dst`. */
void ur_id_place_towards(struct ur_id *u, const struct sockaddr *src, const struct sockaddr *dst);
/* ur_id_bind, and to a wildcard on all devices. */
int ur_id_bind_everywhere(struct ur_id *u, const struct sockaddr *addr);
void ur_id_free_twins(struct ur_id *u);
/*
 * Starts the engines of an id that is to listen and of its twins, and frees the twins of those that cannot start, which have said why; the
 * id itself then takes the place of a twin. 0, or an errno where none can start.
 */
int ur_id_start_all(struct ur_id *u);
/* The locks of an id and its twins, in the order of devices. */
void ur_id_lock_all(struct ur_id *u);
void ur_id_unlock_all(struct ur_id *u);
static inline struct ur_id *ur_id_main(struct ur_id *l)
{
	return l->main ? l->main : l;
}

/* --- sockaddr.c --- */

/* False for families other than AF_INET, AF_INET6 and AF_IB. */
bool ur_sa_gid(const struct sockaddr *sa, struct ur_gid *gid, uint16_t *port);
void ur_sa_put(struct sockaddr_storage *ss, const struct ur_gid *gid, uint16_t port);
/* AF_IB: `mask` says which bits of the service id (host order) are given; a port space of the RDMA CM is its bits 16 to 31. */
void ur_sa_put_ib(struct sockaddr_storage *ss, const struct ur_gid *gid, uint64_t service, uint64_t mask, uint16_t pkey);
void ur_sa_copy(struct sockaddr_storage *ss, const struct sockaddr *sa);
void ur_sa_set_port(struct sockaddr_storage *ss, uint16_t port);
size_t ur_sa_len(int family);
bool ur_gid_any(const struct ur_gid *gid);
bool ur_gid_loopback(const struct ur_gid *gid);

/* The flow label that the address asks for, or 0. */
uint32_t ur_sa_flow_label(const struct sockaddr *sa);
static inline bool ur_id_is_ib(const struct ur_id *u)
{
	return u->id.route.addr.src_addr.sa_family == AF_IB;
}

/* --- ib_addr.c: under the lock; `addr` and `dst` are of AF_IB --- */

/* Takes the port space of an address to bind to. EPROTONOSUPPORT, ENODEV. */
int ur_ib_bind(struct ur_id *u, const struct sockaddr *addr);
/* Fills the id's source address from sgid and port. */
void ur_ib_bound(struct ur_id *u);
/* Takes the destination, with `gid` in place of a wildcard. ENODEV. */
int ur_ib_destination(struct ur_id *u, const struct sockaddr *dst, const struct ur_gid *gid);
/* Fills both addresses of a request's id. */
void ur_ib_request(struct ur_id *u, uint64_t service_id);

/* --- bind.c: under the lock --- */

int ur_id_bind(struct ur_id *u, const struct sockaddr *addr);
void ur_id_unbind(struct ur_id *u);
/* RDMA_OPTION_ID_AFONLY of an id that is not bound, or bound and not listening. 0 or an errno. */
int ur_id_set_afonly(struct ur_id *u, bool afonly);
/* May the device have to do with this scope id of an IPv6 address? Other addresses have none. 0, or ENODEV when it names another interface.
 */
int ur_scope_check(struct ur_engine *e, const struct sockaddr *addr);

/* --- resolve.c --- */

void ur_id_resolve_timer(struct ur_timer *t, ur_time now);
void ur_id_resolve_cancel(struct ur_id *u);
/* The local ACK timeout that a REQ names; 0 for the default. */
uint8_t ur_id_ack_timeout(const struct ur_id *u);
/* Fills route.path_rec from the id's addresses. */
void ur_id_fill_route(struct ur_id *u, uint8_t mtu);
/* The largest path MTU towards its peer (dgid), as the RDMA CM counts it. */
uint8_t ur_id_path_mtu(const struct ur_id *u);
/* The VLAN of the id's source address. */
uint16_t ur_id_vlan(const struct ur_id *u);
/* Starts the engine; 0 or an errno. Not under the lock. */
int ur_id_start(struct ur_id *u);

/* --- path_option.c --- */

/* RDMA_OPTION_IB_PATH: a route of the program's own takes the place of rdma_resolve_route. Under the lock. 0 or an errno. */
int ur_id_set_path(struct ur_id *u, const void *paths, size_t len);

/* --- conn.c --- */

void ur_id_conn_event(void *owner, struct ur_cm_conn *conn, const struct ur_cm_event *ev, ur_time now);
void ur_id_unread_timer(struct ur_timer *t, ur_time now);
/* Watches for data on an accepted id whose RTU may be lost; no longer. Under the engine's lock. */
void ur_id_await_rtu(struct ur_id *u);
void ur_id_await_no_rtu(struct ur_id *u);
/* The depths and counts of a caller's parameters are within bounds. */
bool ur_conn_param_ok(const struct ur_id *u, const struct rdma_conn_param *p, unsigned pdata_max);
uint8_t ur_conn_depth(const struct rdma_conn_param *p, bool responder, uint8_t limit);
/* Whether the receives at this end are shared: known of the id's QP, else as the caller says. */
bool ur_conn_srq(const struct ur_id *u, const struct rdma_conn_param *p);
static inline uint8_t ur_conn_retries(uint8_t wish)
{
	return wish < UR_RDMACM_RETRIES ? wish : UR_RDMACM_RETRIES;
}

/* --- listen.c --- */

void ur_id_unlisten(struct ur_id *u);
/* The id of a request to `l`, in CONNECT. NULL when memory is short. */
struct ur_id *ur_id_child(struct ur_id *l, enum ibv_qp_type type);
/* The program has not read as many requests as it said it would leave. Counts it, because another one is dropped then. */
bool ur_id_backlog_full(struct ur_id *l);
/* The address that the listener is bound to lets requests `from` there pass, and their kind of address: `hdr`, NULL for AF_IB. */
bool ur_id_wants(const struct ur_id *l, const struct ur_rdma_cm_hdr *hdr, const struct ur_gid *from);
/*
 * The addresses in a request's header, which the program is shown, are those that its packet bears; counts it if they are not. NULL: there
 * is no header.
 */
bool ur_id_believes(const struct ur_id *l, const struct ur_rdma_cm_hdr *hdr, const struct ur_cm_addr *way);

/* --- ep.c --- */

/* What rdma_connect sends: what rdma_create_ep kept, then the caller's. At most `room` bytes in `data`; false when that is too little. */
bool ur_ep_connect_data(const struct ur_id *u, const struct rdma_conn_param *p, uint8_t *data, unsigned room, unsigned *len);
void ur_ep_connected(struct ur_id *u);

/* --- srq.c --- */

/* The XRC domain of ids that bring none; one for each context. NULL and errno. Not under the lock. */
struct ibv_xrcd *ur_id_default_xrcd(struct ur_id *u);

/* --- qp.c --- */

/* A completion channel and CQ of the id's own, on the receiving or the sending side. 0 or an errno. Not under the lock. */
int ur_id_create_cq(struct ur_id *u, bool recv, uint32_t size);
void ur_id_destroy_cq(struct ur_id *u, bool recv);

/* rdma_init_qp_attr(3) under the lock. 0 or an errno. */
int ur_id_qp_attr(struct ur_id *u, struct ibv_qp_attr *attr, int *mask);
/* Takes id->qp to RTR and RTS. Under the lock. 0 or an errno. */
int ur_id_qp_connect(struct ur_id *u, ur_time now);
void ur_id_qp_error(struct ur_id *u, ur_time now);

/* --- datagram.c --- */

/* The Q_Key of a datagram id and its QP: RDMA_UDP_QKEY unless something else set u->qkey before the first call. */
uint32_t ur_id_qkey(struct ur_id *u);
/* rdma_init_qp_attr(3) for a datagram id, under the lock. 0 or an errno. */
int ur_id_ud_qp_attr(struct ur_id *u, struct ibv_qp_attr *attr, int *mask);
/* rdma_connect(3) and rdma_disconnect(3) for one, under the lock; rdma_accept(3) and rdma_reject(3), which take it. 0 or an errno. */
int ur_id_ud_connect(struct ur_id *u, const struct rdma_conn_param *p, ur_time now);
int ur_id_ud_disconnect(struct ur_id *u, ur_time now);
int ur_id_ud_accept(struct ur_id *u, const struct rdma_conn_param *p);
int ur_id_ud_reject(struct ur_id *u, const void *data, unsigned len);
/* A lookup for the listener `owner`. */
void ur_id_on_lookup(void *owner, struct ur_cm_sidr *s, const struct ur_cm_sidr_event *ev, ur_time now);

/* --- multicast.c --- */

/* The program has retrieved an event: one of a join attaches the QP, and becomes MULTICAST_ERROR when that fails. Not under the lock. */
void ur_mc_event_read(struct ur_event *e);
/* The QP goes: takes it out of the groups that it was put in here. Under the lock. */
void ur_id_mc_detach(struct ur_id *u);
/* The id goes: leaves all groups, under the lock; frees what events have referred to, once all are acknowledged. */
void ur_id_mc_close(struct ur_id *u, ur_time now);
void ur_id_mc_free(struct ur_id *u);

#endif
