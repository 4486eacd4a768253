/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of lib/cm share. cm.c: instance, dispatch; listen.c: listeners; conn.c: the object, its keys, events and timer;
 * build.c: messages from state; active.c, passive.c: the two sides of connecting; half_open.c: what may never be confirmed; stale.c:
 * forgotten connections; reject.c: REJ and MRA;
 * disconnect.c: DREQ, DREP, TIMEWAIT; farewell.c: what peers hear of a process that is killed; icmp.c: peers
 * that cannot be reached; trouble.c: what was seen of a request that fails; sidr.c: lookups of datagram services;
 * transport.c: services.
 *
 * Two rules keep callbacks harmless. The state is complete before `send` or an event is called, so either may call back into
 * this library. And code that needs a connection after such a call holds a reference meanwhile (ur_cm_conn_hold).
 */
#ifndef UR_CM_INTERNAL_H
#define UR_CM_INTERNAL_H

#include "base/bucket.h"
#include "base/psn.h"
#include "base/random.h"
#include "base/table.h"
#include "cm/cm.h"
#include "wire/frame.h"

#define UR_CM_CONN_MAX (1u << 20) /* connections of one instance, TIMEWAIT included; a REQ beyond that is refused */
#define UR_CM_AGENT 1ull	  /* high half of the transaction ids */

#define UR_CM_RESPONSE_TIMEOUT 20 /* what a REQ promises and asks for: 2^(20-8) ms */
#define UR_CM_RETRIES 15
/*
 * A message that waits for an answer is sent again after this time, and then after twice as long each time, until the first of the retries
 * comes, which are as far apart as the peer's response timeout asks for: seconds, and a burst of requests loses a few. Who is only slow
 * answers a repeated request with an MRA, if at all.
 */
#define UR_CM_EARLY (500 * UR_NS_PER_MS)
#define UR_CM_ACK_TIMEOUT (UR_CM_PACKET_LIFE + 1) /* default local ack timeout of a REQ, and for one that says 0 */
#define UR_CM_TARGET_ACK_DELAY 15
#define UR_CM_MRA_TIMEOUT 24	  /* service timeout of our MRAs */
#define UR_CM_HOP_LIMIT 64

/* Exponents from a peer are held in this range: 16 ms to 65 s. */
#define UR_CM_EXP_MIN 12
#define UR_CM_EXP_MAX 24
/*
 * But for its response timeout, which a message of ours waits out up to 16 times: 4 s, so that nobody is asked for longer than 66 s, which
 * is what Linux asks for. Who needs longer to answer meets a repeated message or two, or says so (MRA).
 */
#define UR_CM_RESPONSE_MAX UR_CM_RESPONSE_TIMEOUT

/* Transport types of a REQ, and the enum ibv_qp_type that they stand for. */
enum { UR_CM_TRANSPORT_RC = 0, UR_CM_TRANSPORT_UC = 1, UR_CM_TRANSPORT_EXT = 3 };
enum { UR_CM_EXT_XRC = 1 };
enum { UR_CM_QPT_RC = 2, UR_CM_QPT_UC = 3, UR_CM_QPT_XRC_SEND = 9, UR_CM_QPT_XRC_RECV = 10 };

/* enum ibv_mtu as it stands in a REQ: 1 (256) to 5 (4096). */
static inline bool ur_cm_mtu_ok(uint8_t mtu)
{
	return mtu >= 1 && mtu <= 5;
}

/* Which message an MRA or REJ is about. */
enum { UR_CM_ABOUT_REQ = 0, UR_CM_ABOUT_REP = 1, UR_CM_ABOUT_OTHER = 2 };

struct ur_cm_listener {
	struct ur_cm *cm;
	struct ur_list link;
	struct ur_table_node node; /* cm->by_service */
	uint64_t service_id;
	struct ur_gid gid;
	bool plain; /* no RDMA CM header before private data */
	void *owner;
	ur_cm_event_fn event;
	ur_cm_sidr_fn sidr;  /* for lookups. NULL, or `event` is, when it listens for the other kind alone */
	unsigned unanswered; /* its lookups */
	unsigned requests;   /* its connections that are neither accepted nor refused */
};

/* A service that was listened on. Of the last UR_CM_LEFT_MAX of them, newer ones in the place of older ones. */
#define UR_CM_LEFT_MAX 8
struct ur_cm_left {
	uint64_t service_id;
	struct ur_gid gid;
	ur_time until;
};

/*
 * A REQ that names the QP of an established connection ends it, and a forged one needs no more than to hit one of 2^24 numbers, often one
 * of 2^16. So REQs from one address count for that at this rate alone: an hour for 2^14 of them. Addresses share buckets.
 */
#define UR_CM_KNOWN (2 * UR_NS_PER_S) /* for so long a connection that was established a moment ago is not forgotten */
#define UR_CM_GUESSERS 256u
#define UR_CM_GUESS_BURST 64
#define UR_CM_GUESS_INTERVAL (250 * UR_NS_PER_MS)

struct ur_cm {
	struct ur_cm_config cfg;
	struct ur_trace *trace; /* NULL: nobody wants to know */
	struct ur_cm_left left[UR_CM_LEFT_MAX];
	unsigned nleft; /* ever */
	struct ur_list listeners, conns;
	struct ur_list sidrs, answered; /* lookups; those that have been answered, oldest first */
	unsigned nanswered;
	uint32_t nconns;
	uint64_t entered; /* states, by all connections */
	struct {          /* as they were when the peers were last checked */
		uint64_t entered, slots[256 / 64]; /* slots of those that live on this host */
		uint32_t nconns, siblings;
	} checked;
	struct ur_list half_open; /* connections, oldest first */
	uint32_t nhalf_open;
	struct ur_shuffle ids; /* communication ids to come, without the slot */
	struct ur_bucket wrong_quotes; /* ICMP errors that quote nothing of ours */
	struct ur_bucket guesses[UR_CM_GUESSERS]; /* REQs by where they come from */
	uint64_t guess_salt;
	struct ur_table by_service;   /* listeners: service id */
	struct ur_table by_local;     /* local communication id */
	struct ur_table by_remote;    /* remote communication id, CA GUID, address */
	struct ur_table by_qpn;       /* remote QPN, CA GUID, address; not in TIMEWAIT */
	struct ur_table by_request;   /* our lookups: request id */
	struct ur_table by_requester; /* lookups of peers: request id, transaction id, address */
};

/* What is seen of a request of ours, from its first sending to its end. */
struct ur_cm_watch {
	struct ur_cm *cm;            /* NULL: nobody wants to know, or it has ended */
	struct ur_timer silence;
	ur_time since;
	struct ur_cm_trouble trouble; /* as far as it is known */
};

struct ur_cm_conn {
	struct ur_cm *cm;
	void *owner;
	ur_cm_event_fn event; /* NULL once the owner gave it up */
	struct ur_list link;
	struct ur_cm_listener *listener; /* as long as its request is unanswered, and the listener there */
	struct ur_table_node local_node, remote_node, qpn_node;
	struct ur_timer timer; /* resends, and the end of TIMEWAIT */
	struct ur_cm_addr addr;
	uint64_t tid;
	uint64_t service_id;
	uint64_t remote_guid;
	uint32_t local_id, remote_id; /* remote_id 0: not known yet */
	enum ur_cm_state state;
	unsigned hold;
	bool orphan; /* given up: to be freed when it comes to rest in IDLE */
	bool dead;   /* off all tables: freed with the last hold */
	bool active;
	bool closing; /* to be disconnected as soon as the RTU is here */
	bool heard;   /* the peer has our REP, for it has asked for time (MRA), or sent to our QP */
	struct ur_list half_open; /* cm->half_open */
	ur_time waiting_since;    /* for an answer to `mad` */
	uint8_t retries_left, max_retries;
	uint8_t response_timeout; /* exponent: how long the peer may take to answer */
	ur_time interval;	  /* between two sends of the same message */
	ur_time early, due;	  /* between two early sends; when the first retry comes */
	ur_time asked_at;	  /* when the message that waits for an answer was sent; 0: it was sent again since */
	ur_time established;	  /* when the peer last showed that it knows of it; 0: not yet */
	uint32_t local_qpn;
	uint32_t psn; /* of the packet that last carried `mad` */
	struct ur_cm_watch watch; /* of the REQ, while it waits */
	uint32_t farewell_place;     /* the owner's of the list of farewells: where this connection's is; 0: it has none */
	struct ur_cm_conn_info info; /* all but addr */
	uint8_t mad[UR_MAD_LEN];     /* the message that is sent again: REQ, REP, RTU, DREQ */
};

/* 2^(exp-8) ms, as the Linux CM reads the 5-bit timeouts of 4.096 us * 2^exp. */
static inline ur_time ur_cm_exp_time(unsigned exp)
{
	return exp <= 8 ? UR_NS_PER_MS : UR_NS_PER_MS << (exp - 8);
}

static inline unsigned ur_cm_exp_clamp(unsigned exp)
{
	return exp < UR_CM_EXP_MIN ? UR_CM_EXP_MIN : exp > UR_CM_EXP_MAX ? UR_CM_EXP_MAX : exp;
}

static inline uint64_t ur_cm_own_tid(const struct ur_cm_conn *c)
{
	return UR_CM_AGENT << 32 | c->local_id;
}

/* In a packet whose PSN nobody can guess; returns it. */
static inline uint32_t ur_cm_send(struct ur_cm *cm, const struct ur_cm_addr *to, const uint8_t *mad)
{
	uint32_t psn = ur_random_u32(cm->cfg.random) & UR_PSN_MASK;

	cm->cfg.send(cm->cfg.ctx, to, mad, psn);
	return psn;
}

/* listen.c */
struct ur_cm_listener *ur_cm_listener_find(const struct ur_cm *cm, uint64_t service_id, const struct ur_gid *gid);
/* Nobody listens for this: true when it must not be answered, because another process does or because a listener left a moment ago. */
bool ur_cm_listener_unanswered(struct ur_cm *cm, uint64_t service_id, const struct ur_gid *gid, ur_time now);

/*
 * The private data of a request, and the RDMA CM header before it; false for one that we do not understand. There is no header when
 * the service id is not that of a port, or the listener's address is of a kind that knows none (`plain`).
 */
bool ur_cm_listener_pdata(const struct ur_cm_listener *l, uint64_t service_id, const struct ur_cm_msg *m, struct ur_cm_pdata *out);
int ur_cm_listener_new(struct ur_cm *cm, uint64_t service_id, const struct ur_gid *gid, void *owner, struct ur_cm_listener **out);

/* conn.c */
/* A communication or request id that has not been given away lately; in use it may be still. */
uint32_t ur_cm_next_id(struct ur_cm *cm);
struct ur_cm_conn *ur_cm_conn_new(struct ur_cm *cm, void *owner, ur_cm_event_fn event);
void ur_cm_conn_free(struct ur_cm_conn *c);
static inline void ur_cm_conn_hold(struct ur_cm_conn *c)
{
	c->hold++;
}
void ur_cm_conn_release(struct ur_cm_conn *c);
void ur_cm_conn_deliver(struct ur_cm_conn *c, const struct ur_cm_event *ev, ur_time now);
void ur_cm_conn_event(struct ur_cm_conn *c, enum ur_cm_event_type type, const struct ur_cm_msg *m, ur_time now);
struct ur_cm_conn *ur_cm_conn_find(const struct ur_cm *cm, uint32_t local_id);
struct ur_cm_conn *ur_cm_conn_find_remote(const struct ur_cm *cm, uint32_t remote_id, uint64_t guid, const struct ur_gid *peer);
struct ur_cm_conn *ur_cm_conn_find_qpn(const struct ur_cm *cm, uint32_t qpn, uint64_t guid, const struct ur_gid *peer);
/* Sets remote_id, remote_guid and the remote QPN and enters them in the tables. */
void ur_cm_conn_set_remote(struct ur_cm_conn *c, uint32_t remote_id, uint64_t guid, uint32_t qpn);
/* IDLE under a new communication id; an orphan is freed (look at it no more unless you hold it). */
void ur_cm_conn_reset(struct ur_cm_conn *c);
/* Sends c->mad, which waits for an answer: resends it every `interval`, `retries` times. */
void ur_cm_conn_send_and_wait(struct ur_cm_conn *c, ur_time interval, unsigned retries, ur_time now);
/* The message that was sent has been answered: no more of it, and how long that took is known, if it was sent once. */
void ur_cm_conn_answered(struct ur_cm_conn *c, ur_time now);
void ur_cm_conn_stop_timer(struct ur_cm_conn *c);
/* Nobody has answered. Hold it. */
void ur_cm_conn_give_up(struct ur_cm_conn *c, ur_time now);
/* Takes back a request that the peer has not answered; IDLE, as by ur_cm_conn_reset. */
void ur_cm_conn_withdraw(struct ur_cm_conn *c);

/* stale.c: the peer says that it has a QP which is another connection's, so it must have forgotten that one (12.9.8.3.1). */
enum ur_cm_stale {
	UR_CM_FRESH,    /* there is no such connection */
	UR_CM_STALE,    /* there was one: it has been ended, and the message is to be refused */
	UR_CM_SPARED,   /* there is one, and not to be ended for this message, which deserves no answer */
};
enum ur_cm_stale ur_cm_stale_req(struct ur_cm *cm, const struct ur_cm_addr *from, const struct ur_cm_msg *m, ur_time now);
enum ur_cm_stale ur_cm_stale_rep(struct ur_cm *cm, struct ur_cm_conn *c, const struct ur_cm_msg *m, uint32_t qpn, ur_time now);

/* half_open.c. The state has changed, or the peer was heard. */
void ur_cm_half_open_note(struct ur_cm_conn *c);
/* It has waited for one response timeout, is not in use, and is not to wait for more because there are many like it. Counts it. */
bool ur_cm_half_open_gives_up(struct ur_cm_conn *c, ur_time now);
/* For a new request; where there is none, the oldest half-open connections make it. False when none may go yet. */
bool ur_cm_half_open_room(struct ur_cm *cm, ur_time now);

/* farewell.c: every change of the state goes through here, once what it rests on is in place. */
void ur_cm_enter(struct ur_cm_conn *c, enum ur_cm_state state);

/* build.c: each writes one MAD. */
void ur_cm_build_req(const struct ur_cm_conn *c, const struct ur_cm_req_param *p, uint8_t *mad);
void ur_cm_build_rep(const struct ur_cm_conn *c, const struct ur_cm_rep_param *p, uint8_t *mad);
void ur_cm_build_rtu(const struct ur_cm_conn *c, const void *pdata, unsigned pdata_len, uint8_t *mad);
void ur_cm_build_mra(const struct ur_cm_conn *c, uint8_t about, uint8_t *mad);
void ur_cm_build_dreq(const struct ur_cm_conn *c, const void *pdata, unsigned pdata_len, uint8_t *mad);
void ur_cm_build_drep(uint32_t local_id, uint32_t remote_id, uint64_t tid, const void *pdata, unsigned pdata_len, uint8_t *mad);
struct ur_cm_rej_spec {
	uint16_t reason;
	uint8_t about;
	const void *ari;
	unsigned ari_len;
	const void *pdata;
	unsigned pdata_len;
};
void ur_cm_build_rej(uint32_t local_id, uint32_t remote_id, uint64_t tid, const struct ur_cm_rej_spec *s, uint8_t *mad);
void ur_cm_build_withdrawal(const struct ur_cm_conn *c, uint8_t *mad);
void ur_cm_build_sidr_req(uint32_t request_id, const struct ur_cm_sidr_req_param *p, uint8_t *mad);
void ur_cm_build_sidr_rep(uint32_t request_id, uint64_t tid, uint64_t service_id, const struct ur_cm_sidr_rep_param *p, uint8_t *mad);
void ur_cm_build_apr(const struct ur_cm_msg *lap, uint8_t status, uint8_t *mad);

/* trouble.c. Begins when the request is sent first; `mtu` is that of a REQ, or 0. */
void ur_cm_watch_begin(struct ur_cm_watch *w, struct ur_cm *cm, const struct ur_gid *dst, uint64_t service_id, uint8_t mtu, ur_time now);
/* What was seen last is what is told in the end. */
void ur_cm_watch_saw(struct ur_cm_watch *w, enum ur_cm_seen what);
void ur_cm_watch_saw_icmp(struct ur_cm_watch *w, const struct ur_undelivered *u);
/* The request has failed, by what was seen. Where it has ended in another way ur_cm_watch_end is enough; once is as good as twice. */
void ur_cm_watch_failed(struct ur_cm_watch *w, ur_time now);
/* As ur_cm_watch_failed, by a REJ (reason, additional information) or a SIDR_REP (status). */
void ur_cm_watch_refused(struct ur_cm_watch *w, const struct ur_cm_rej *rej, ur_time now);
void ur_cm_watch_unserved(struct ur_cm_watch *w, uint8_t status, ur_time now);
void ur_cm_watch_end(struct ur_cm_watch *w);

/* active.c */
void ur_cm_rx_rep(struct ur_cm *cm, const struct ur_cm_addr *from, const struct ur_cm_msg *m, ur_time now);
/* transport.c: which service a REQ asks for. */
struct ur_cm_transport {
	uint8_t type, ext; /* of the REQ */
	uint8_t active, passive; /* the QP types of the two sides, enum ibv_qp_type as a number */
};
/* NULL when there is none that has such an active side, or such a REQ. */
const struct ur_cm_transport *ur_cm_transport_of_qp(uint8_t active_qp_type);
const struct ur_cm_transport *ur_cm_transport_of_req(const struct ur_cm_req *r);
/* passive.c */
/* The request, if it is one, has its answer. */
void ur_cm_request_done(struct ur_cm_conn *c);
/* Requests of a listener that goes away belong to their owners from now on. */
void ur_cm_requests_orphan(struct ur_cm_listener *l);
void ur_cm_rx_req(struct ur_cm *cm, const struct ur_cm_addr *from, const struct ur_cm_msg *m, ur_time now);
void ur_cm_rx_rtu(struct ur_cm *cm, const struct ur_cm_addr *from, const struct ur_cm_msg *m, ur_time now);
/* reject.c */
void ur_cm_rx_rej(struct ur_cm *cm, const struct ur_cm_addr *from, const struct ur_cm_msg *m, ur_time now);
void ur_cm_rx_mra(struct ur_cm *cm, const struct ur_cm_addr *from, const struct ur_cm_msg *m, ur_time now);
/* Answers a message of no connection with a REJ; the peer's id is taken from the message's first field. */
void ur_cm_refuse(struct ur_cm *cm, const struct ur_cm_addr *to, const struct ur_cm_msg *m, uint32_t local_id, uint8_t about,
		  uint16_t reason);
void ur_cm_send_mra(struct ur_cm_conn *c, uint8_t about);
/* disconnect.c */
void ur_cm_rx_dreq(struct ur_cm *cm, const struct ur_cm_addr *from, const struct ur_cm_msg *m, ur_time now);
void ur_cm_rx_drep(struct ur_cm *cm, const struct ur_cm_addr *from, const struct ur_cm_msg *m, ur_time now);
void ur_cm_enter_timewait(struct ur_cm_conn *c, ur_time now);
/* The peer ends the connection: DREQ_RCVD. `m`: its DREQ, or NULL. */
void ur_cm_take_end(struct ur_cm_conn *c, const struct ur_cm_msg *m, ur_time now);
/* ESTABLISHED -> DREQ_SENT. */
void ur_cm_start_disconnect(struct ur_cm_conn *c, const void *pdata, unsigned pdata_len, ur_time now);

/* reject.c: in which states a connection may be refused by us, what the REJ is about, whether the peer knows our id, and what we become. */
struct ur_cm_refusal {
	bool allowed, id_known, timewait;
	uint8_t about;
};
extern const struct ur_cm_refusal ur_cm_refusals[UR_CM_STATE_COUNT];

/* sidr.c */
void ur_cm_rx_sidr_req(struct ur_cm *cm, const struct ur_cm_addr *from, const struct ur_cm_msg *m, ur_time now);
void ur_cm_rx_sidr_rep(struct ur_cm *cm, const struct ur_cm_addr *from, const struct ur_cm_msg *m, ur_time now);
/* Lookups of a listener that goes away belong to their owners from now on. */
void ur_cm_sidr_orphan(struct ur_cm_listener *l);
void ur_cm_sidr_unreachable(struct ur_cm *cm, const struct ur_gid *dst, ur_time now);
/* icmp.c: is the quoted MAD, of which there is at least the BTH, the one with this PSN that carried this message? */
bool ur_cm_quotes(const uint8_t *quote, unsigned len, uint32_t psn, const uint8_t mad[UR_MAD_LEN]);
/* How many lookups end: those whose message is quoted, or `all` that wait for that host. */
unsigned ur_cm_sidr_icmp_error(struct ur_cm *cm, const struct ur_undelivered *u, bool all, ur_time now);
void ur_cm_sidr_shutdown(struct ur_cm *cm, ur_time now);
void ur_cm_sidr_fini(struct ur_cm *cm);
/* cm.c: the connection a message is for, by both communication ids and the sender's address; NULL after counting the drop. */
struct ur_cm_conn *ur_cm_match(struct ur_cm *cm, const struct ur_cm_addr *from, uint32_t local_id, uint32_t remote_id);
static inline void ur_cm_count(struct ur_cm *cm, enum ur_counter id)
{
	ur_count(cm->cfg.counters, id);
}

#endif
