/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/replay: lib/transport is put in the place of one host of a recording. It is fed what the recorded peer sent, when it was sent, and
 * what it sends is compared with what the recorded host sent.
 *
 * Nothing depends on what the hosts are. What must be true of a recording: packets may be missing, repeated or out of order where the
 * recorder saw them so, and requests that were lost after it are inferred from NAKs; but an answer that was lost, or anything that changed
 * its order, between the recorder and its host cannot be seen, and such a recording differs from its replay sooner or later. A recording
 * made at a host whose own side loses nothing is always good; both hosts' sides can be replayed from it when no packet was lost after the
 * recorder on the other side either.
 *
 *   capture.c   frames into parsed packets
 *   conn.c      the connections that the CM made; what belongs to them
 *   pair.c      connections that were made without the CM
 *   stream.c    one direction of a connection: requests by PSN, their answers, messages
 *   side.c      a transport with one QP that stands for one side of a connection
 *   run.c       the recording's course of time: feeding, posting, timers
 *   deliver.c   what has arrived: completions, received data, data read
 *   compare.c   a packet sent and a packet recorded; the table of permitted differences
 *   sack.c      selective acknowledgements
 *   xrc.c       what XRC adds
 *   datagram.c  a UD QP, or a member of a group, in place of side.c's and run.c's
 *   exchange.c  the exchanges of the connection manager
 *   talk.c      the connection manager in the place of one end of an exchange
 *   report.c    where differences go
 *
 * Packets are kept in memory until the end: what a host did with one often shows much later.
 */
#ifndef UR_REPLAY_H
#define UR_REPLAY_H

#include "analyze/change/rewrite.h"
#include "analyze/frame/hash.h"
#include "base/psn.h"
#include "base/table.h"
#include "transport/state/tp_priv.h"
#include "wire/frame.h"
#include "wire/sack.h"

/* --- capture.c --- */

struct rec {            /* a recorded RoCEv2 packet */
	unsigned frame; /* its number in the file, from 1 */
	ur_time when;
	struct ur_pkt pkt;         /* as it is fed and as work requests are rebuilt from it */
	const struct ur_pkt *want; /* as it is compared: `pkt`, except for a falsified recording */
	struct rec *before;        /* the transmission of the same request packet before this one */
	bool lost;                 /* the recorded host never got it, as its NAK says */
	bool rnr;                  /* the recorded host had no receive WQE for it */
	bool missed;               /* it is lost, if it comes again, because a SACK of the host says that it was not there */
	bool again;                /* asks for what was asked for before */
};

struct capture {
	const char *file;
	struct rec *rec;
	unsigned n, room;
	unsigned bad;        /* packets that do not parse, or are cut: no host would have taken them */
	uint32_t psns_max;   /* of one end; set by capture_begin, may be lowered */
	uint64_t memory_max; /* of one side, in bytes; the same */
	struct ur_rewrite *plain;
	bool begun;
	ur_time origin, when;
};

/* False when memory is short; capture_free is needed even so. Each frame goes in; capture_end comes after the last. */
bool capture_begin(struct capture *c, const char *file);
void capture_frame(struct capture *c, const struct ur_an_frame *f);
void capture_end(struct capture *c);
void capture_free(struct capture *c);

/* A packet in a buffer that ends where the frame does; data is NULL when memory is short. */
void pkt_load(struct ur_pkt *p, const void *frame, uint32_t len);
void pkt_drop(struct ur_pkt *p);

static inline const struct ur_opcode_info *rec_op(const struct rec *r)
{
	return ur_opcode(r->pkt.bth.opcode);
}

static inline const uint8_t *pkt_bth(const struct ur_pkt *p)
{
	return p->data + p->bth_off;
}

static inline const uint8_t *pkt_ext(const struct ur_pkt *p)
{
	return pkt_bth(p) + UR_BTH_LEN;
}

static inline const uint8_t *pkt_payload(const struct ur_pkt *p)
{
	return p->data + p->payload_off;
}

/* Its opcode as an RC packet has it: XRC has the same ones. */
static inline uint8_t pkt_kind(const struct ur_pkt *p)
{
	return p->bth.opcode & 0x1f;
}

static inline bool pkt_is_response(const struct ur_pkt *p)
{
	return ur_opcode(p->bth.opcode)->flags & UR_OPF_RESPONSE;
}

/* The address, key and length of a READ, a WRITE's first packet or an atomic; false for others. */
bool pkt_remote(const struct ur_pkt *p, struct ur_reth *h);

struct ip_fields {
	uint8_t tclass, hop_limit;
	uint32_t flow_label;
};

/* What the IP header has that an address handle can choose. */
void pkt_ip(const struct ur_pkt *p, struct ip_fields *f);

/* --- conn.c, pair.c --- */

#define SERVICE_CM 0xff /* in the place of a service: an exchange of the connection manager */

struct endpoint {
	struct ur_gid gid;
	uint32_t qpn;
	uint32_t psn; /* the first that it sends */
	uint8_t max_rd, max_dest_rd;
	uint8_t timeout, retry_cnt, rnr_retry;
	uint32_t id; /* of an exchange: its communication or request id, 0 when unknown */
};

/*
 * A connection; or a UD QP, or (QPN 0xffffff) a group: end 0, with all that it sent (from 0) and got (from 1); or an exchange of the
 * connection manager, for which end 0 has asked.
 */
struct conn {
	struct endpoint end[2];
	uint8_t service; /* enum ur_service, or SERVICE_CM */
	enum ibv_mtu mtu;
	bool lookup; /* of an exchange: of a datagram service */
	bool cm;
	bool incomplete; /* memory was short */
	bool asks;       /* of datagrams: end 0 has sent some */
	uint32_t psns_max;
	uint64_t memory_max;
	unsigned since; /* index of the first packet that may belong to it */
	struct rec **rec;
	uint8_t *from; /* which end sent rec[i] */
	unsigned n, room;
};

struct conns {
	struct conn *conn;
	unsigned n, room;
	struct ur_table ends;
	uint32_t psns_max;
	uint64_t memory_max;
	struct ur_table uds, talks, pairs; /* talks by the id of who asked; and by both ids */
	uint64_t salt;
	unsigned others;    /* packets that are of no connection: congestion notifications, messages without their request */
	unsigned strays;    /* RC and XRC packets of which only one direction is in the file */
	struct rec **rest;  /* packets that belong to no connection of the CM */
	unsigned nrest;
};

/* `salt`: as ur_analysis_create's. */
void conns_find(struct conns *s, struct capture *c, uint64_t salt);
void conns_free(struct conns *s);
/* How many places it has that can be taken: one of datagrams. */
static inline unsigned conn_sides(const struct conn *c)
{
	return c->service == UR_UD ? 1 : 2;
}

/* NULL when memory is short. */
struct conn *conns_add(struct conns *s, const struct conn *new);
void conn_take(struct conn *c, struct rec *r, unsigned from);
/* Takes a message of the connection manager. False when what it belongs to is not in the recording. */
bool exchange_take(struct conns *s, struct rec *r);
/* Turns s->rest into connections. */
void conns_pair(struct conns *s);

/* --- stream.c --- */

struct slot {             /* a PSN */
	struct rec *req;  /* the first transmission of the request packet that has it */
	struct rec *last; /* the newest transmission so far */
	struct rec *data; /* the READ response or atomic answer that has it */
	struct rec *ack, *nak, *sack;
	struct rec *came;   /* the newest transmission up to now, of the peer's requests */
	uint32_t msg;       /* index of its message */
	uint32_t msn;       /* the responder's, once this PSN has been executed */
	uint32_t part;      /* number of the packet within its message */
	uint32_t due, sent; /* transmissions recorded until now, and replayed */
	bool covered;       /* by a READ request */
	bool again;         /* asked for by a READ request that was sent again */
	bool nak_late;      /* the NAK was recorded after an answer that takes it back */
	bool data_sent, ack_sent, nak_sent;
	bool kept;     /* the peer's request has come to us, and waits for one before it */
	bool reported; /* as arrived, by a SACK of ours */
};

struct message {
	uint32_t at, n; /* its slots */
	uint32_t len;
	const struct ur_opcode_info *op; /* of its last packet, which has all that matters */
	enum ibv_wr_opcode wr;
	enum ibv_wc_status status; /* how it ends */
	unsigned post_at; /* index of the packet with which the WQE is posted */
	uint8_t *buf;     /* sender: payload, or where what is read goes; receiver: the receive buffer */
};

struct stream {        /* what one end asks, and what the other answers */
	uint32_t base;  /* PSN of slot 0 */
	uint32_t msn;   /* before it, of the answers */
	uint32_t begun; /* PSNs before it, of a message whose beginning is not recorded */
	uint32_t mtu;
	struct slot *slot;
	uint32_t n;
	struct message *msg;
	uint32_t nmsg;
	uint32_t answered;                               /* slots before this one were answered in the recording */
	uint32_t requests, responses, repeated, refused; /* packets recorded */
	uint32_t sacks;                                  /* of the responses */
	bool hello;                                      /* requests say that their sender understands SACKs */
	bool cut;                                        /* the last message is not whole */
	bool doubled;                                    /* answers came again */
	bool hole;                                       /* it ends where `missing` is not in the recording, which goes on */
	uint32_t missing;                                /* a PSN */
	const struct rec *refusal;                       /* a NAK that ends it */
};

enum stream_state { STREAM_OK, STREAM_SKIP, STREAM_BROKEN };

/* The requests of end `from`. STREAM_SKIP and STREAM_BROKEN come with the reason in *why. */
enum stream_state stream_build(struct stream *s, const struct conn *c, unsigned from, const char **why);
void stream_free(struct stream *s);
/* The slot of a PSN; s->n when there is none. */
uint32_t stream_slot(const struct stream *s, uint32_t psn);
uint32_t stream_npkts(const struct stream *s, uint32_t len);
/* PSNs that a request packet takes. */
uint32_t stream_psns(const struct stream *s, const struct rec *r);
bool stream_lossy(const struct stream *s);

/* --- sack.c --- */

static inline bool pkt_is_sack(const struct ur_pkt *p)
{
	return p->bth.opcode == UR_OP_SACK;
}

/* A recorded SACK, when a stream is built. */
void sack_note(struct stream *s, struct rec *r);

/* --- report.c --- */

enum permit {
	PERMIT_MIGREQ,
	PERMIT_MARKS,
	PERMIT_ACKREQ,
	PERMIT_CREDITS,
	PERMIT_COALESCED,
	PERMIT_REPEATED,
	PERMIT_REREAD,
	PERMIT_LOST,
	PERMIT_NAK,
	PERMIT_OVERTAKEN,
	PERMIT_MISSED,
	PERMIT_TWICE,
	PERMIT_OLD_NAK,
	PERMIT_PATIENCE,
	PERMIT_UNANSWERED,
	PERMIT_GAVE_UP,
	PERMIT_WAITS,
	PERMIT_HELLO,
	PERMIT_KEEP,
	PERMIT_COUNT
};

struct report {
	/* Called for the first REPORT_MAX differences; NULL: the first is kept, as it always is. Those of a whole side have no frame. */
	void (*tell)(void *ctx, unsigned frame, const char *field, const char *recorded, const char *replayed);
	void *ctx;
	unsigned differences;
	unsigned first_frame;
	char first_field[48];
	unsigned permitted[PERMIT_COUNT];
	unsigned requests, responses; /* packets compared */
	unsigned messages;            /* of the peer, executed and compared */
};

#define REPORT_MAX 10 /* of each side */

void report_num(struct report *r, unsigned frame, const char *field, uint64_t recorded, uint64_t replayed);
void report_text(struct report *r, unsigned frame, const char *field, const char *recorded, const char *replayed);

/* --- side.c --- */

struct region { /* remote memory as the recorded peer addressed it */
	uint32_t rkey;
	uint64_t va, len;
	uint8_t *mem;
	struct ur_mr *mr;
};

struct side {
	const struct conn *conn;
	unsigned me;
	struct report *rep;
	struct stream out, in; /* our requests; the peer's */
	unsigned frame;        /* the one that is being replayed */
	ur_time now;
	struct ur_wheel *wheel;
	struct ur_counters count;
	struct ur_random random;
	struct ur_tp *tp;
	struct ur_pd *pd;
	struct ur_cq *scq, *rcq;
	struct ur_path path;
	struct ur_qp *qp;
	struct ur_mr *slab_mr;
	uint8_t *slab;
	struct region *region;
	unsigned nregion;
	int live;                   /* packets in flight */
	uint32_t posted, completed; /* messages of `out` */
	uint32_t given, received;   /* receive WQEs posted and completed */
	uint32_t executed;          /* messages of `in` */
	uint32_t answered_psn;      /* PSN up to which the host has answered */
	bool given_up;              /* on requests that nobody answers */
	bool selective;             /* the recorded host has selective repeat */
	struct rec **held;          /* answers that were recorded before what they answer */
	unsigned nheld;
	const struct rec *due; /* of a UD QP: the datagram that is to leave */
	struct talk *talk; /* of an exchange */
	struct ur_xrcd *xrcd;
	struct lender *lender; /* SRQs of an XRC_RECV QP */
	unsigned nlender;
	/* What is done with each packet that it has to send. */
	void (*sent)(struct side *s, const struct ur_pkt *p);
	/* Goes through the recording: connection_run, unless side_open has found that it is of another kind. */
	void (*run)(struct side *s);
};

enum side_state { SIDE_OK, SIDE_SKIP, SIDE_BROKEN };

/* Builds the transport. SIDE_SKIP and SIDE_BROKEN come with the reason in *why. side_close is needed in every case. */
enum side_state side_open(struct side *s, const struct conn *c, unsigned me, struct report *rep, const char **why);
void side_close(struct side *s);
/* The parts of side_open: a transport; a PD, CQs and a QP in it. 0 or an errno. */
int side_make_tp(struct side *s);
int side_make_qp(struct side *s, enum ibv_qp_type type);
/* Memory that the peer knows as [va, va + len) of `rkey`; NULL when the recording knows no such. */
struct region *side_region(const struct side *s, uint32_t rkey, uint64_t va, uint64_t len);
/* Hands the transport a copy that is addressed to it. */
void side_feed(struct side *s, const struct rec *r);
/* Takes and compares all that it has to send. */
void side_drain(struct side *s);

/* --- run.c, deliver.c, compare.c --- */

/* The parts of side_open for datagrams, and for an exchange; `conn`, `rep` and `now` are set. */
enum side_state datagram_open(struct side *s, const char **why);
enum side_state talk_open(struct side *s, const char **why);
void talk_close(struct side *s);

#define RECV_WRS UR_MAX_QP_WR /* they are posted when they are needed: at once those of all packets that were kept */
#define XRC_SRQS_MAX 1024

/* For an XRC_RECV QP, before it is made: the SRQs that the peer names. 0 or an errno. */
int xrc_lend(struct side *s);
/* Ours for the one that request `p` names; NULL when there is none. */
struct ur_srq *xrc_srq(const struct side *s, const struct ur_pkt *p);
/* Writes its number into `p`, if that is a request of XRC. */
void xrc_rename(const struct side *s, struct ur_pkt *p);
void xrc_close(struct side *s);

/* Replays the whole recording and reports what differs. */
void side_run(struct side *s);
void connection_run(struct side *s);

/* Puts the answers that were recorded into the memory that this READ or atomic refers to. */
void deliver_fill(struct side *s, const struct rec *r);
/* Takes completions and looks at memory. */
void deliver_check(struct side *s);
void deliver_finish(struct side *s);

void compare_sent(struct side *s, const struct ur_pkt *p);
/* A SACK of the recorded host, and one of ours. */
void sack_compare(struct side *s, const struct rec *r);
void sack_sent(struct side *s, const struct ur_pkt *p);
/* Datagram `p` was sent in the place of `r`. */
void compare_datagram(struct side *s, const struct rec *r, const struct ur_pkt *p);
/* What was recorded and never sent. */
void compare_finish(struct side *s);
/* "what: why" of a permitted difference. */
const char *permit_text(enum permit p);

#endif
