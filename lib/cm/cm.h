/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/cm: the InfiniBand communication manager (IBTA volume 1, chapter 12) with the RDMA CM's use of it (annex A11), without I/O. It keeps
 * the connection table, the timers, duplicates, stale connections and TIMEWAIT, and the lookups of datagram services (SIDR); of queue
 * pairs it knows only the numbers.
 *
 * MADs enter through ur_cm_rx and leave through `send`. What happens to a connection or a lookup is reported to its owner by `event`,
 * which may call any function of this file on it, ur_cm_conn_destroy and ur_cm_sidr_destroy included.
 */
#ifndef UR_CM_H
#define UR_CM_H

#include "base/counters.h"
#include "base/trace.h"
#include "base/wheel.h"
#include "wire/msg/cm_msg.h"
#include "wire/msg/icmp.h"

/*
 * Packet life time of a path that nothing else is known of, and with it the ack timeout of a REQ: 4.096 us * 2^16 and 2^17, as the Linux
 * RDMA CM has them since 6.2.
 */
#define UR_CM_PACKET_LIFE 16

struct ur_cm;
struct ur_cm_conn;
struct ur_cm_listener;

/* Where a MAD goes to or came from; of a connection, what its QP's path should be. */
struct ur_cm_addr {
	struct ur_gid sgid, dgid; /* ours, the peer's */
	uint8_t tclass, hop_limit;
	uint32_t flow_label;
	uint16_t vlan;
};

/* What became of a request of ours, a REQ or SIDR_REQ, as far as it can be seen from here. */
enum ur_cm_seen {
	UR_CM_SEEN_NOTHING,
	UR_CM_SEEN_PATIENCE,     /* the peer asked for time (MRA), and for no more than that */
	UR_CM_SEEN_NO_NEIGHBOUR, /* this host knows that the next hop does not answer */
	UR_CM_SEEN_ICMP,         /* an ICMP error about it came, from `from`, which is zero when that is not known */
	UR_CM_SEEN_REJ,          /* the peer refused, for `reason` */
	UR_CM_SEEN_SIDR_STATUS,  /* the peer has no such datagram service: `reason` is its status */
};

/* A request that has waited for UR_CM_SILENCE, and goes on waiting; or (`over`) has failed. */
#define UR_CM_SILENCE (5 * UR_NS_PER_S)
struct ur_cm_trouble {
	struct ur_gid dgid;
	uint64_t service_id; /* 0: not known */
	bool over;
	ur_time waited;
	enum ur_cm_seen seen;
	struct ur_gid from;
	enum ur_icmp_why why;
	uint16_t reason;
	uint8_t mtu, peer_mtu; /* enum ibv_mtu: of the REQ; the largest that the peer accepts, 0 where it does not say */
};

struct ur_cm_config {
	void *ctx;
	/* Sends one MAD to the peer's QP 1, in a packet with this PSN. May fail silently: the retries take care. */
	void (*send)(void *ctx, const struct ur_cm_addr *to, const uint8_t mad[UR_MAD_LEN], uint32_t psn);
	/*
	 * A REQ (or SIDR_REQ) named a service that no listener of this instance has. True: another process listens there, stay silent;
	 * false: REJ 8.
	 */
	bool (*other_answers)(void *ctx, uint64_t service_id, const struct ur_gid *dst);
	/*
	 * The process with that slot has ended, and it is for this one to answer in its place: a DREQ with a DREP, a REP with REJ 6, or the
	 * peer would ask for more than a minute. NULL: never.
	 */
	bool (*orphaned)(void *ctx, uint8_t slot);
	/*
	 * The peer of that QP of ours has sent to it a moment ago, so it has not forgotten the connection, whatever a REQ says. NULL:
	 * nobody knows.
	 */
	bool (*in_use)(void *ctx, uint32_t qpn, ur_time now);
	/*
	 * Should this process be killed, the peer at `to` is to hear `mad`, or nothing when that is NULL. Called whenever this changes for
	 * a connection; *place is the callee's, one for each connection and 0 at first. NULL: nobody will say anything.
	 */
	void (*farewell)(void *ctx, uint32_t *place, const struct ur_cm_addr *to, const uint8_t *mad);
	/* A request of ours is in trouble, for those who want to explain it; what its owner is told is another matter. May be NULL. */
	void (*trouble)(void *ctx, const struct ur_cm_trouble *t);
	struct ur_wheel *wheel;
	struct ur_counters *counters;
	struct ur_random *random; /* of communication ids and PSNs; outlives the CM */
	uint64_t ca_guid;
	uint32_t half_open; /* the most connections that are half-open; 0: UR_CM_HALF_OPEN */
	uint8_t slot;       /* top byte of every communication id; messages for another slot are not ours */
};

int ur_cm_create(const struct ur_cm_config *c, struct ur_cm **out);
void ur_cm_destroy(struct ur_cm *cm);
/* Receives trace events; may be NULL. Outlives the instance, or is removed. */
void ur_cm_set_trace(struct ur_cm *cm, struct ur_trace *trace);
/*
 * The process ends: gives up every connection as ur_cm_conn_destroy does, so that the peers hear of it; their owners are told nothing.
 * Returns how many DREQs are unanswered yet; `again` resends those, for callers that cannot wait for their timers.
 */
unsigned ur_cm_shutdown(struct ur_cm *cm, bool again, ur_time now);
/*
 * This host knows that nothing reaches `dst`, its neighbour: requests and lookups that wait for its answer are given up with the next
 * timers, as after their last retry. Delivers nothing itself; may be called from within `send`.
 */
void ur_cm_unreachable(struct ur_cm *cm, const struct ur_gid *dst, ur_time now);
/*
 * An ICMP error, which anybody can send in another's name, says so and quotes a packet. It counts for the request or lookup whose last
 * message to u->dst that is, by its PSN, which cannot be guessed; and where the quote has the right transaction id as well, for all that
 * wait for that host. Guesses count at a bounded rate. False when it does not count.
 */
bool ur_cm_icmp_error(struct ur_cm *cm, const struct ur_undelivered *u, ur_time now);
/* The slot of the process that sent the message which an ICMP error quotes; 0: it quotes none, or too little of it. */
uint8_t ur_cm_quoted_slot(const struct ur_undelivered *u);

/*
 * Which connections are to a process of this host (`here`, by the peer's address) that has ended (not `alive`, by its slot, which is the
 * top byte of the communication id)? Those that are established, or may be to their peers, are disconnected as by a DREQ. Asks once for
 * each slot, however many connections there are, and looks at none of them while nothing has changed. Returns how many peers live on this
 * host: they have to be asked about again later.
 */
unsigned ur_cm_check_peers(struct ur_cm *cm, bool (*here)(void *ctx, const struct ur_gid *peer), bool (*alive)(void *ctx, uint8_t slot),
			   ur_time now);

/* One received MAD addressed to QP 1; `from` is turned round already: sgid is ours. */
void ur_cm_rx(struct ur_cm *cm, const struct ur_cm_addr *from, const uint8_t *mad, unsigned len, ur_time now);

/* --- events --- */

enum ur_cm_event_type {
	UR_CM_EV_REQ,           /* passive: a new connection request; `conn` is new and belongs to the receiver of the event */
	UR_CM_EV_REP,           /* active: the peer accepted; answer with ur_cm_send_rtu or ur_cm_reject */
	UR_CM_EV_RTU,           /* passive: established */
	UR_CM_EV_REJ,           /* the peer refused; `reason` */
	UR_CM_EV_UNREACHABLE,   /* REQ or REP unanswered after all retries; or a REP until others needed its room */
	UR_CM_EV_DREQ,          /* the peer disconnects; answer with ur_cm_disconnect */
	UR_CM_EV_DISCONNECTED,  /* our DREQ was answered, or never was after all retries: `unanswered` */
	UR_CM_EV_TIMEWAIT_EXIT, /* the QP may be used again */
};

/* The private data of a message. */
struct ur_cm_pdata {
	const uint8_t *data; /* after the RDMA CM header if there is one */
	unsigned len;        /* the field's maximum */
	bool has_hdr;        /* of requests: hdr is valid */
	struct ur_rdma_cm_hdr hdr;
};

struct ur_cm_event {
	enum ur_cm_event_type type;
	const struct ur_cm_msg *msg;   /* REQ, REP, REJ: the message; otherwise NULL */
	const struct ur_cm_addr *addr; /* REQ: the way back */
	struct ur_cm_pdata pdata;
	uint16_t reason; /* REJ */
	bool unanswered; /* DISCONNECTED */
	const uint8_t *ari;
	unsigned ari_len;
};

typedef void (*ur_cm_event_fn)(void *owner, struct ur_cm_conn *conn, const struct ur_cm_event *ev, ur_time now);

/* --- listening --- */

/*
 * Service ids that stand for a port of one of the RDMA CM's port spaces (annex A11): port space and port number. Their requests have an
 * RDMA CM header before the private data.
 */
static inline bool ur_cm_is_ip_service(uint64_t service_id)
{
	enum { PS_IPOIB = 0x0002, PS_TCP = 0x0106, PS_UDP = 0x0111, PS_IB = 0x013f };
	uint64_t ps = service_id >> 16;

	return ps == PS_TCP || ps == PS_UDP || ps == PS_IB || ps == PS_IPOIB;
}

/*
 * REQs of one listener that its owner has neither accepted nor refused; one beyond that is dropped, and its sender asks again. However many
 * arrive, they take no more memory than this number of them.
 */
#define UR_CM_UNANSWERED 4096

/*
 * Accepted connections whose peer has not confirmed that it has the REP (half-open ones): at most this number, unless the configuration
 * says fewer. From one of UR_CM_HALF_OPEN_MANY parts of them on, a REP is repeated for one response timeout alone. Where all are there, the
 * oldest ends for each new request, but not before it has had this time, which is longer than any round trip.
 */
#define UR_CM_HALF_OPEN 4096
#define UR_CM_HALF_OPEN_MANY 4
#define UR_CM_HALF_OPEN_LEAST (500 * UR_NS_PER_MS)

/*
 * `gid` is an address or a wildcard (wire/gid_set.h). EADDRINUSE when the same service id is listened on at the same or an overlapping
 * address. A REQ goes to the listener with the fitting address; its event is called with `owner` and the new connection.
 */
int ur_cm_listen(struct ur_cm *cm, uint64_t service_id, const struct ur_gid *gid, void *owner, ur_cm_event_fn event,
		 struct ur_cm_listener **out);
/*
 * The listener's requests have no RDMA CM header, whatever their service id says, as those to AF_IB addresses: all of their private data is
 * the user's. Without this call, requests for a service id of a port space of the RDMA CM must have one.
 */
void ur_cm_listen_plain(struct ur_cm_listener *l);
/* Requests not yet handed out are gone with it; connections that were handed out are not. */
void ur_cm_unlisten(struct ur_cm_listener *l);
/*
 * As ur_cm_unlisten, for a service that may be listened on again soon: until UR_CM_LEFT from now no request is refused because there is no
 * listener there, or at the same port of another port space. The active side gets no answer, and repeats its request.
 */
#define UR_CM_LEFT (2 * UR_NS_PER_S)
void ur_cm_leave(struct ur_cm_listener *l, ur_time now);

/* --- connections --- */

enum ur_cm_state {
	UR_CM_IDLE,
	UR_CM_REQ_SENT,
	UR_CM_REQ_RCVD,
	UR_CM_MRA_REQ_RCVD, /* the peer asked for patience */
	UR_CM_MRA_REQ_SENT,
	UR_CM_REP_SENT,
	UR_CM_REP_RCVD,
	UR_CM_MRA_REP_RCVD,
	UR_CM_MRA_REP_SENT,
	UR_CM_ESTABLISHED,
	UR_CM_DREQ_SENT,
	UR_CM_DREQ_RCVD,
	UR_CM_TIMEWAIT,
	UR_CM_STATE_COUNT,
};

const char *ur_cm_state_name(enum ur_cm_state s);

int ur_cm_conn_create(struct ur_cm *cm, void *owner, ur_cm_event_fn event, struct ur_cm_conn **out);
/*
 * Gives the connection up in any state: sends what the protocol wants (REJ for an open request, DREQ for an established one) and lets
 * TIMEWAIT run on in the background. No event comes afterwards.
 */
void ur_cm_conn_destroy(struct ur_cm_conn *c, ur_time now);
/* A request should be as if it had never come: forgets it silently. Its sender asks again. */
void ur_cm_conn_drop(struct ur_cm_conn *c);
void ur_cm_conn_set_owner(struct ur_cm_conn *c, void *owner, ur_cm_event_fn event);
enum ur_cm_state ur_cm_conn_state(const struct ur_cm_conn *c);

struct ur_cm_req_param {
	struct ur_cm_addr addr;
	uint64_t service_id;
	uint32_t qpn, starting_psn;
	uint8_t qp_type; /* enum ibv_qp_type as a number: 2 RC, 3 UC, 9 XRC_SEND; EINVAL for others */
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry_count;
	bool srq, flow_control;
	uint8_t path_mtu;                 /* enum ibv_mtu */
	uint8_t ack_timeout;              /* 5 bits; 0: the default */
	uint32_t vendor_id, ece_options;  /* enhanced connection establishment; 24 and 32 bits, 0 for none */
	const struct ur_rdma_cm_hdr *hdr; /* put before the private data; NULL for none */
	const void *pdata;
	unsigned pdata_len; /* at most 56 with a header, 92 without; EINVAL */
};
/* IDLE -> REQ_SENT. EINVAL in another state or for too much private data. */
int ur_cm_connect(struct ur_cm_conn *c, const struct ur_cm_req_param *p, ur_time now);

struct ur_cm_rep_param {
	uint32_t qpn, starting_psn, qkey;
	uint8_t responder_resources, initiator_depth;
	uint8_t rnr_retry_count;
	bool srq, flow_control;
	uint32_t vendor_id, ece_options;
	const void *pdata;
	unsigned pdata_len; /* at most 196 */
};
/* Passive: accepts a request with a REP. EINVAL in another state. */
int ur_cm_accept(struct ur_cm_conn *c, const struct ur_cm_rep_param *p, ur_time now);
/* Active: confirms a REP; ESTABLISHED. A duplicate REP is answered with the same RTU by itself. */
int ur_cm_send_rtu(struct ur_cm_conn *c, const void *pdata, unsigned pdata_len, ur_time now);
/* Passive, when data has arrived before the RTU (the QP's COMM_EST event): REP_SENT -> ESTABLISHED, with the RTU event. */
int ur_cm_notify_established(struct ur_cm_conn *c, ur_time now);
/* Refuses a request or a reply, or withdraws our own request: a reason and data of the caller's are not sent then. */
int ur_cm_reject(struct ur_cm_conn *c, uint16_t reason, const void *ari, unsigned ari_len, const void *pdata, unsigned pdata_len,
		 ur_time now);
/*
 * ESTABLISHED -> DREQ_SENT; after a DREQ event: answers DREP -> TIMEWAIT. When an RTU is still awaited the DREQ follows it, without the
 * private data. EINVAL otherwise.
 */
int ur_cm_disconnect(struct ur_cm_conn *c, const void *pdata, unsigned pdata_len, ur_time now);

/* What the connection negotiated, for the QP's attributes. Valid from the REQ or REP event on. */
struct ur_cm_conn_info {
	struct ur_cm_addr addr;
	uint32_t remote_qpn;
	/* The starting PSN of a message is where its receiver should begin to transmit (IBTA volume 1, 12.7), so each side receives from
	 * its own. */
	uint32_t send_psn; /* the peer's starting PSN */
	uint32_t recv_psn; /* our starting PSN */
	uint8_t path_mtu;
	uint8_t retry_count;                          /* of the REQ */
	uint8_t rnr_retry_count;                      /* the peer's wish, for our requester */
	uint8_t responder_resources, initiator_depth; /* as ours: incoming and outgoing depth */
	uint8_t ack_timeout;
	bool remote_srq;
	uint8_t qp_type;    /* ours, as a number; of an XRC request 10 XRC_RECV */
	ur_time round_trip; /* at most: what the peer took to answer our REQ or REP; 0: it was sent twice, or is not answered yet */
};
void ur_cm_conn_info(const struct ur_cm_conn *c, struct ur_cm_conn_info *info);

/* --- datagram services --- */

/*
 * A lookup of the QP that offers a datagram service: service id resolution (SIDR), IBTA volume 1, 12.11. One that we make, or one of a peer
 * that we answer. There is no connection afterwards.
 */
struct ur_cm_sidr;

#define UR_CM_SIDR_UNANSWERED 4096 /* of one listener */
#define UR_CM_SIDR_ANSWERED 4096   /* answers that an instance keeps for SIDR_REQs that come again */

enum ur_cm_sidr_event_type {
	UR_CM_SIDR_EV_REQ,         /* passive: a new lookup; `s` is new and belongs to the receiver of the event */
	UR_CM_SIDR_EV_REP,         /* active: the answer; its status says whether there is a QP */
	UR_CM_SIDR_EV_UNREACHABLE, /* active: no answer after all retries */
};

struct ur_cm_sidr_event {
	enum ur_cm_sidr_event_type type;
	const struct ur_cm_msg *msg;   /* REQ, REP: the message; otherwise NULL */
	const struct ur_cm_addr *addr; /* the way to the peer */
	struct ur_cm_pdata pdata;
};

typedef void (*ur_cm_sidr_fn)(void *owner, struct ur_cm_sidr *s, const struct ur_cm_sidr_event *ev, ur_time now);

/*
 * As ur_cm_listen, for lookups: a REQ to such a listener is refused with reason 9, and a SIDR_REQ to one of connections answered with
 * status 1. A SIDR_REQ beyond UR_CM_SIDR_UNANSWERED is dropped; the peer sends it again.
 */
int ur_cm_sidr_listen(struct ur_cm *cm, uint64_t service_id, const struct ur_gid *gid, void *owner, ur_cm_sidr_fn event,
		      struct ur_cm_listener **out);

/* A listener of connections takes lookups as well. */
void ur_cm_listen_lookups(struct ur_cm_listener *l, ur_cm_sidr_fn event);

int ur_cm_sidr_create(struct ur_cm *cm, void *owner, ur_cm_sidr_fn event, struct ur_cm_sidr **out);
void ur_cm_sidr_set_owner(struct ur_cm_sidr *s, void *owner, ur_cm_sidr_fn event);
/* Gives it up; a peer that waits for our answer is told that we reject it. No event comes afterwards. */
void ur_cm_sidr_destroy(struct ur_cm_sidr *s, ur_time now);
/* Passive, unanswered: forgets it without an answer, as if it had never come. The peer asks again. */
void ur_cm_sidr_ignore(struct ur_cm_sidr *s);

struct ur_cm_sidr_req_param {
	struct ur_cm_addr addr;
	uint64_t service_id;
	const struct ur_rdma_cm_hdr *hdr; /* put before the private data; NULL for none */
	const void *pdata;
	unsigned pdata_len; /* at most 180 with a header, 216 without; EINVAL */
};
/* Asks, once for each object. EINVAL the second time or for too much private data. */
int ur_cm_sidr_query(struct ur_cm_sidr *s, const struct ur_cm_sidr_req_param *p, ur_time now);

struct ur_cm_sidr_rep_param {
	uint8_t status; /* enum ur_cm_sidr_status */
	uint32_t qpn, qkey;
	uint32_t vendor_id, ece_options;
	const void *pdata;
	unsigned pdata_len; /* at most 136 */
};
/*
 * Answers a peer's lookup. EINVAL when it has been answered, or for too much private data. The answer is kept for as long as the peer may
 * repeat its question, beyond ur_cm_sidr_destroy too.
 */
int ur_cm_sidr_answer(struct ur_cm_sidr *s, const struct ur_cm_sidr_rep_param *p, ur_time now);

#endif
