/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_nic: a victim, an honest peer and an attacker on one fabric in virtual time. The input is a list of steps.
 *
 *   stage.c   the hosts of test/sim's world, their memory keys and queue pairs, the attacker's port; time
 *   arena.c   the memory of a host: regions, slots for messages, marks that may not leave, and what has changed
 *   work.c    honest work requests and what their completions have to be
 *   calls.c   verbs that change objects: states of QPs, memory regions and windows
 *   queues.c  what a program does with CQs, SRQs, groups and a region while packets come
 *   cm.c      connections and lookups of victim and peer
 *   judge.c   reads a frame as the standards have it: whom it concerns, what it may change
 *   inject.c  the attacker sends one frame, and what happens is held against the judgement
 *   forge.c   frames from the opcode table; capture.c frames that were seen, as they were or changed; mad.c connection management;
 *             noise.c other protocols
 *   steps.c   the table of steps
 *   end.c     when the attack is over: honest work completes, everything is given back
 *
 * Nothing here looks into the product to judge it: qp_priv.h is there for the attacker alone, who is meant to know what is on the wire.
 */
#ifndef UR_FUZZ_NIC_H
#define UR_FUZZ_NIC_H

#include "test/fuzz/input.h"
#include "test/fuzz/story.h"
#include "test/sim/world.h"
#include "wire/frame.h"

enum host { VICTIM, PEER, ATTACKER, HOSTS };

struct fuzz;

/* An invariant does not hold: prints the sentence and aborts. */
#define broke(f, ...) story_broke("fuzz_nic", (f)->w.now, __VA_ARGS__)
/* For debugging one input: prints when FUZZ_NIC_TRACE is set. */
#define trace(f, ...) (ur_unlikely((f)->tracing) ? story_line((f)->w.now, __VA_ARGS__) : (void)0)

/* --- arena.c --- */

/* Memory of a host. PD_OPEN is that of the victim, PD_SPARED that of the pair that nobody attacks. */
enum domain { PD_OPEN, PD_SPARED, DOMAINS };

enum region_id {
	R_OPEN,     /* remote read and write */
	R_READ,     /* remote read */
	R_WRITE,    /* remote write */
	R_CELLS,    /* remote atomics */
	R_LOCAL,    /* no remote access */
	R_WINDOW,   /* through memory windows alone */
	R_VOLATILE, /* all remote access; comes and goes */
	R_SOURCE,   /* what is sent; the same in both hosts */
	R_FOREIGN,  /* all remote access, in the other protection domain, where nobody uses it */
	R_BOARD,    /* of the spared pair: written by the other side */
	R_COUNTER,  /* of the spared pair: counted up by the other side */
	REGIONS
};

struct region {
	const char *name;
	uint32_t at, size; /* in the arena */
	int access;
	enum domain pd;
	bool marked;       /* to begin with it holds marks */
};

#define SLOTS 32
#define SLOTS_SPARED 10
#define SPARED_OPEN 5 /* requests that a side of the spared pair has open at a time */
#define SLOT 320
#define MESSAGE_MAX 300 /* what is posted for a slot; what lies after is nobody's */
#define RED 64          /* bytes of marks around every region */
#define SLOTS_AT 6720
#define ARENA (SLOTS_AT + SLOTS * SLOT + RED)

extern const struct region regions[REGIONS];

struct span { /* bytes of an arena */
	uint32_t at, len;
};

#define SPANS 128
struct spans {
	struct span s[SPANS];
	unsigned n;
};

struct arena {
	_Alignas(64) uint8_t mem[ARENA], was[ARENA]; /* `was`: as it was last seen */
	uint32_t taken;                              /* slots, a bit each */
};

void arena_init(struct arena *a);
/* -1 when there is none; the slot is poisoned. The last SLOTS_SPARED are the spared pair's. */
int slot_take(struct arena *a, bool spared);
/* Nobody may write it or send it any more. */
void slot_give(struct arena *a, int slot);
static inline uint32_t slot_at(int slot)
{
	return SLOTS_AT + (uint32_t)slot * SLOT;
}
/* Are these bytes of the slot as slot_take left them? */
bool slot_untouched(const struct arena *a, int slot, uint32_t from, uint32_t to);
void may_change(struct spans *s, uint32_t at, uint32_t len);
/* Forgets what has changed; true, or the first byte that had to stay what it was. */
bool arena_check(struct arena *a, const struct spans *may, uint32_t *bad);
/* Fills [at, at + len) with marks, or with bytes that anybody may see, and knows of it. */
void arena_mark(struct arena *a, uint32_t at, uint32_t len);
void arena_fill(struct arena *a, uint32_t at, uint32_t len, uint8_t seed);
/* Is there a mark among the bytes? */
bool holds_mark(const uint8_t *p, size_t len);
const char *place_name(uint32_t at);

/* --- stage.c --- */

struct key { /* of a memory region, or a memory window */
	struct ur_mr *mr;
	struct ur_mw *mw;
	enum region_id region;
	enum domain pd;
	uint32_t rkey, stale; /* stale: one that was valid once */
	uint64_t iova;
	uint32_t at, len;     /* in the arena */
	int access;
	int lane;             /* of a window of type 2: that of its QP; otherwise -1 */
	bool live;            /* a peer may have access through it */
	/* Of a window: a bind that was posted and has not completed, and what it asks for; nobody knows whether one was executed. */
	bool pending, unsure;
	struct span wanted;
	int wanted_access, wanted_lane;
	uint32_t wanted_rkey;
};

#define WINDOWS 2
enum { K_SLOTS = REGIONS, K_SLOTS_SPARED, K_SOURCE_SPARED, K_WINDOW, KEYS = K_WINDOW + WINDOWS };

struct wqe {
	uint8_t op; /* enum ibv_wr_opcode */
	bool open, signaled;
	int8_t slot;
	uint16_t len;    /* of the message, or room for one */
	uint16_t source; /* where in R_SOURCE the data begins */
	uint32_t at;     /* of the other side's arena */
	uint64_t result; /* what an atomic of the spared pair brings */
};

#define WQES 256 /* that one queue takes in all */

struct queue {
	unsigned head, tail; /* before head none is open */
	unsigned nopen;
	bool failed;         /* a completion with an error was seen */
	struct wqe w[WQES];
};

struct pair { /* rows of the table */
	const char *name;
	uint8_t type[2]; /* enum ibv_qp_type; of the victim, of the other side */
	uint8_t other;   /* enum host */
	bool spared, srq;
};

#define PAIRS 9
enum { P_SPARED, P_RC, P_RC_ATTACKER, P_UC, P_UC_ATTACKER, P_UD, P_XRC, P_XRC_ATTACKER, P_RC_SRQ };
extern const struct pair pairs[PAIRS];

#define LANES (2 * PAIRS)

#define SENT 1024 /* more than one input can post */
struct message { /* that a lane has posted: where in R_SOURCE its data begins */
	uint16_t source, len;
};

struct lane { /* one side of a pair: number 2 * pair for the victim's, 2 * pair + 1 for the other one's */
	unsigned pair, host;
	struct ur_qp *qp; /* NULL while there is none */
	struct ur_net_path path;
	uint32_t qpn, dqpn;
	uint8_t type;
	int access;
	struct queue sq, rq;
	unsigned messages; /* of the spared pair: those that it has received */
	unsigned posted;   /* and that it has posted */
	uint32_t writes;   /* WRITEs posted to the board */
	uint64_t adds;     /* FETCH_ADDs posted */
	struct message sent[SENT];
	unsigned nsent;
	bool touched;      /* the attacker has passed for its peer */
	struct fuzz *f;
};

struct side { /* a host and what the program on it has */
	struct ur_nic *nic;
	struct ur_pd *pd[DOMAINS];
	struct ur_cq *cq;
	struct ur_xrcd *xrcd;
	struct ur_srq *srq, *xrc_srq;
	struct queue srq_q, xrc_q;
	bool armed; /* the CQ, for any completion, and no event has come */
	unsigned asked, events; /* of the CQ */
	unsigned limits, limit_events; /* of the SRQs */
	struct ur_ah *ah;
	struct key key[KEYS];
	struct arena arena;
	uint64_t moved; /* of the world, when the arena was last looked at */
};

#define FAULTS_MAX 6 /* of an input: fewer than the retries of the spared pair */
#define FRAME_MAX 1536
struct frame {
	uint16_t len;
	uint8_t from; /* enum host */
	uint8_t b[FRAME_MAX];
};
#define SEEN 16

struct fuzz {
	struct world w;
	struct fabric fab;
	struct input in;
	bool bare, tracing;
	uint32_t mtu; /* of the QPs, in bytes */
	struct side side[2];
	struct lane lane[LANES];
	struct ur_gid gid[HOSTS], stranger; /* nobody has the stranger's address */
	struct ur_gid group;                /* the victim's UD QP is attached to it */
	struct ur_mac mac[HOSTS];
	struct frame seen[2][SEEN]; /* what each host sent last */
	unsigned nseen[2];
	uint64_t victim_bytes;   /* sent, without ARP and neighbour discovery */
	uint64_t victim_frames;
	uint32_t read_qpn, read_psn; /* a READ response of the victim that must not be, and whether it was there */
	bool read_seen;
	unsigned completions;    /* of the victim */
	unsigned joins;          /* of the group, by the victim */
	unsigned nfaults;
	unsigned focus_pair, focus_key; /* what was touched last, which is where the attacker mostly tries next */
	bool ending;
	uint32_t asked;          /* request id of the latest lookup that was seen */
	struct frame out;        /* what the attacker is about to send */
};

void stage_open(struct fuzz *f, uint8_t config);
/* Destroys everything. */
void stage_close(struct fuzz *f);
/* Lets everything happen that happens within `d`. */
void stage_run(struct fuzz *f, ur_time d);
/* The same, and completions stay in their CQs. */
void stage_pass(struct fuzz *f, ur_time d);
/* All that happens now has happened. */
void stage_settle(struct fuzz *f);
/* The lane of the victim, or of the peer, with its QP made and connected; NULL when it is the attacker's. */
struct lane *lane_get(struct fuzz *f, unsigned i);
bool lane_open(struct fuzz *f, unsigned pair);
void lane_close(struct fuzz *f, unsigned pair);
/* Takes its QPs to RESET, and connects them again. */
void lane_reset(struct fuzz *f, unsigned pair);
int lane_to(struct lane *l, enum ibv_qp_state st);
static inline const struct pair *pair_of(const struct lane *l)
{
	return &pairs[l->pair];
}
static inline struct side *side_of(struct fuzz *f, const struct lane *l)
{
	return &f->side[l->host];
}
static inline bool lane_is_real(const struct lane *l)
{
	return l->host != ATTACKER;
}
static inline enum domain domain_of(const struct lane *l)
{
	return pairs[l->pair].spared ? PD_SPARED : PD_OPEN;
}
/* Where receives of the lane are. */
struct queue *recv_queue(struct fuzz *f, struct lane *l);
bool key_make(struct fuzz *f, unsigned host, unsigned k);

/* --- work.c --- */

bool work_post(struct fuzz *f, unsigned lane, unsigned op, uint32_t len, unsigned flags);
bool work_recv(struct fuzz *f, unsigned lane, uint32_t len);
/* A request that no packet is sent for; `rkey` is the key that it makes, or ends. */
bool work_post_local(struct fuzz *f, struct lane *l, struct ibv_send_wr *wr, uint32_t rkey);
/* Polls all completions of a host. */
void work_reap(struct fuzz *f, unsigned host);
/* Nothing will be heard of what the lane has posted. */
void work_forget(struct fuzz *f, struct lane *l);
/* What honest work may change in the memory of a host at any time. */
void work_spans(struct fuzz *f, unsigned host, struct spans *s);
/* Where a lane's receives, and the answers to what it asked for, may go. */
void recv_spans(struct fuzz *f, struct lane *l, struct spans *s);
void answer_spans(struct lane *l, struct spans *s);
void spared_check(struct fuzz *f);

/* --- calls.c --- */

void call_state(struct fuzz *f, unsigned lane, unsigned what);
void call_volatile(struct fuzz *f, unsigned host);
/* The region's memory stays, and the rights to it become others. */
void call_rereg(struct fuzz *f, unsigned host);
void call_bind(struct fuzz *f, unsigned lane, unsigned window, unsigned what);
void call_invalidate(struct fuzz *f, unsigned lane, unsigned window);
#define WINDOW_PLAIN 256 /* bytes of R_WINDOW that windows are bound to; the rest holds marks */
/* A bind has completed, or never will be heard of. */
void window_bound(struct fuzz *f, unsigned host, uint32_t rkey, bool ok);
void window_unsure(struct fuzz *f, unsigned host, uint32_t rkey);
void window_gone(struct fuzz *f, unsigned host, uint32_t rkey);
void windows_lose(struct fuzz *f, unsigned lane);

/* --- queues.c --- */

void queue_call(struct fuzz *f, unsigned what, unsigned v);
void queue_event(struct ur_cq *cq);
void queue_limit(struct ur_srq *srq, enum ibv_event_type ev);
/* Completions of the host are there, or are not, and nobody has been told more often than he asked. */
void queue_check(struct fuzz *f, unsigned host, bool completed);

/* --- cm.c --- */

#define CM_CONNS 6
#define CM_LOOKUPS 3

void cm_open(struct fuzz *f);
void cm_call(struct fuzz *f, unsigned what, unsigned which);
void cm_end(struct fuzz *f);
void cm_close(struct fuzz *f);

struct cm_ids { /* of a connection of the victim's; 0 when unknown */
	uint32_t local, remote, local_qpn, remote_qpn;
	uint64_t guid, tid;
};
bool cm_ids(struct fuzz *f, unsigned i, struct cm_ids *ids);
/* Does the MAD know of the spared connection, and come with the address of its peer? */
bool cm_may_end_spared(struct fuzz *f, const uint8_t *mad, bool from_peer);

/* --- judge.c --- */

enum judged {
	J_OTHER,     /* no RoCE packet for a QP of the victim; ARP, ICMP and the like */
	J_INERT,     /* a RoCE packet that has to be dropped and counted */
	J_MAD,       /* for QP 1, well formed */
	J_MAYBE,     /* whether its ICRC is right, a socket cannot tell */
	J_AUTHENTIC, /* nothing tells it from one of the QP's peer */
};

struct judgement {
	enum judged is;
	const char *why; /* of J_INERT */
	struct lane *lane;
	bool spared;     /* it may pass for one of the spared pair */
	bool no_read;    /* a READ that no key allows: nothing of the memory may be in the answer */
	uint32_t psn;
	bool from_peer;  /* J_MAD: its address is the peer's, or the victim's own */
	struct spans may;
};

/* What [b, b + len) may do to the victim. */
void judge(struct fuzz *f, const uint8_t *b, uint32_t len, struct judgement *j);

/* --- inject.c, forge.c, capture.c, mad.c --- */

/* Sends f->out; `verbatim`: it is a copy of what was sent before. */
void inject(struct fuzz *f, bool verbatim);
/* Puts f->out on the wire, and nobody looks what it does. */
void put_on_wire(struct fuzz *f);
void forge(struct fuzz *f);
/* The pair's other side uses the key as it is now, in a packet in which nothing is wrong but perhaps the right to it. */
void forge_use(struct fuzz *f, unsigned pair, unsigned key, uint8_t how);
/* It READs all of the key's memory, n times at once, and some of the answers may still be in the victim when this returns. */
void forge_reads(struct fuzz *f, unsigned pair, unsigned key, unsigned n);
/* It sends a message that ends the key. */
void forge_invalidate(struct fuzz *f, unsigned pair, unsigned key);
void capture(struct fuzz *f, unsigned from, const uint8_t *frame, uint32_t len);
/* Copies one of them to f->out; mostly one that goes to the victim. False when there is none. */
bool capture_choose(struct fuzz *f, uint8_t which);
void mad_send(struct fuzz *f);
void noise(struct fuzz *f);
void capture_replay(struct fuzz *f);
void capture_mutate(struct fuzz *f);
/* IP checksum, lengths and ICRC of f->out anew, as far as it has the form. */
void mend(struct frame *fr, bool lengths);

/* --- steps.c, end.c --- */

bool step(struct fuzz *f);
void the_end(struct fuzz *f);

#endif
