/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A random program of verbs on two hosts, and a model of what RDMA promises, which every completion is held against.
 *
 *   memory.c   where data lies: slots for messages, boards that peers write and read, cells for atomics, with red zones between
 *   setup.c    memory regions, CQs, SRQs and address handles; what a program is made of
 *   connect.c  QPs: making, connecting, breaking, taking down
 *   ops.c      the table of operations; posting of sends, legal or not
 *   recvs.c    posting of receives, legal or not; shared receive queues
 *   cells.c    atomics
 *   windows.c  memory windows
 *   model.c    completions of sends against what was posted
 *   arrive.c   completions of receives
 *   checks.c   events, and what must hold at the end
 *   liveness.c the time within which requests must end
 *   program.c  the table of actions, and the run from the first to the end
 *
 * The model never looks inside the transport. It knows what was posted, what has been seen, and the state of a QP as ibv_query_qp(3) tells.
 * Its time is p->clock, which counts the events that the program itself takes part in.
 */
#ifndef UR_TEST_PROG_H
#define UR_TEST_PROG_H

#include "test/sim/world.h"

#define OPS_MAX 2048
#define RECVS_MAX 8192
#define PAIRS_MAX 4
#define CQS_MAX 4     /* a host */
#define SLOTS_MAX 160 /* a host */
#define BOARDS 6      /* a host: the last BOARDS_VOLATILE of them in a memory region that comes and goes */
#define BOARDS_VOLATILE 2
#define VERSIONS 16
#define CELLS 4 /* a host */
#define CELL_OPS 256
#define STATUSES 24
#define RED 64 /* bytes around everything */
#define SCRATCH (512 * 1024)

#define NEVER UINT64_MAX

enum service { RC, UC, UD, XRC, SERVICES };

/* --- memory.c --- */

struct piece {
	uint8_t *p;
	uint32_t len;
};

struct buf {      /* a message in a slot: in pieces with gaps between */
	int slot; /* -1: none */
	uint8_t *mem;
	uint32_t extent; /* bytes of the slot that are in use */
	uint32_t n;
	struct piece piece[UR_MAX_SGE];
};

struct version { /* what an operation writes, or wrote, to a board */
	uint64_t tag;
	uint32_t from, to;
	uint64_t posted, done;      /* clock; done: it can no longer appear where it is not */
	bool sure;                  /* it has been executed: what it covers is gone */
	bool ended;                 /* nobody will tell more of it: done when the fabric is quiet */
	const struct sim_qp *qp;    /* on one of these, one after another; NULL for what was there first */
	unsigned epoch, seq, fence; /* fence: one more than the seq of the newest fenced request up to this one */
	bool used;
};

struct board {
	uint8_t *mem;
	uint32_t size;
	unsigned readers; /* operations under way that may see old versions */
	uint32_t damaged; /* the path MTU, where frames are corrupted on their way; 0: none are */
	bool stale;       /* payload is copied from another process, and what has come is looked at afterwards (wire/bulk.h) */
	struct version v[VERSIONS];
};

struct cell { /* eight bytes for atomics: either counted up by one, or swapped for unique numbers */
	uint64_t *mem;
	bool swaps;
	uint64_t first;
	unsigned posted, done; /* operations */
	/* Counted: has somebody seen first + i? Swapped: has the i-th value been replaced, and what is it? */
	bool gone[CELL_OPS + 1];
	uint64_t value[CELL_OPS + 1];
};

struct memory { /* of a host */
	uint8_t *base;
	size_t size;
	uint32_t slot_size;
	unsigned nslots, nfree;
	int16_t freelist[SLOTS_MAX];
	uint8_t *slots; /* the first */
	struct board board[BOARDS];
	struct cell cell[CELLS];
};

struct prog;
struct sim_op;

void memory_init(struct prog *p, unsigned host);
int slot_take(struct memory *m);
void slot_give(struct memory *m, struct buf *b);
/* Lays `len` bytes out in a free slot, in up to `max` pieces. False when no slot is free. */
bool buf_lay(struct prog *p, struct memory *m, struct buf *b, uint32_t len, unsigned max);
void buf_fill(const struct buf *b, uint64_t tag, uint32_t pos);
void buf_poison(const struct buf *b);
/* Do the `len` bytes behind the first `skip` hold what `tag` has at `pos`, and is everything else untouched but the first `skip`, and
 * (loose) what lies behind? */
bool buf_holds(const struct buf *b, uint64_t tag, uint32_t pos, uint32_t skip, uint32_t len, bool loose);
/* Copies the first n bytes out. */
void buf_peek(const struct buf *b, void *to, uint32_t n);
/* Are the first `len` bytes a copy of [pos, pos + len) of the board as it may have been between clock t0 and t1, seen by `op`? */
bool buf_holds_board(const struct buf *b, const struct board *bd, uint32_t pos, uint32_t len, uint64_t t0, uint64_t t1,
		     const struct sim_op *op);
/* Is [pos, pos + len) of the board as it may be now? */
bool board_ok(const struct board *bd, uint32_t pos, uint32_t len, uint64_t now);
/* Where the board, or its copy, was found wrong last. */
uint32_t board_bad(void);
/* A new version, or NULL when there is no room for one more. */
struct version *board_write(struct board *bd, const struct sim_op *op, uint64_t now);
/* No frame is under way any more. */
void boards_quiet(struct memory *m, uint64_t now);
/* NULL, or what was written to that nobody may write to. */
const char *memory_red(const struct memory *m);

/* --- setup.c --- */

/* The memory regions of a host: over slots (local use) and over boards (remote use). */
enum key_id { K_SLOTS, K_SLOTS2, K_SLOTS_RO, K_BOARDS, K_BOARDS_RO, K_BOARDS_WO, K_VOLATILE, K_FOREIGN, K_CELLS, KEYS };

struct key {
	struct ur_mr *mr; /* NULL while deregistered */
	uint8_t *base;
	uint64_t iova, size;
	int access;
	uint32_t stale; /* a key that was valid once */
};

#define CQ_POLL 8

struct sim_cq {
	struct ur_cq *cq;
	unsigned host, index;
	struct ibv_wc wc[CQ_POLL]; /* polled and not judged yet */
	int nwc, next;
	unsigned notified;
	bool armed_empty; /* armed and then seen empty: the next completion notifies */
};

struct sim_rq { /* a receive queue, of a QP or shared */
	unsigned host, cap, head, tail;
	unsigned lost;      /* shared: receives that QPs may have taken to their graves */
	unsigned limit;     /* shared: an event was asked for below this; 0: no longer */
	bool tainted;       /* shared: one of the receives is wrong */
	struct sim_qp *qp;  /* or NULL, */
	struct ur_srq *srq; /* when it is this; */
	struct sim_cq *cq;  /* of an XRC SRQ */
	struct prog *p;
	uint16_t recvs[RECVS_MAX]; /* all of this epoch, in the order of posting; before `head` none is open */
};

#define WINDOWS 4 /* a host: one of type 1, the others of type 2 */

enum window_state { W_FREE, W_BINDING, W_LIVE, W_ENDING };

struct sim_mw {
	struct ur_mw *mw;
	struct ibv_mw api; /* what a bind is posted with */
	unsigned host, board;
	bool two;             /* of type 2: for the peer of its owner alone */
	struct sim_qp *owner; /* the QP that bound it */
	enum window_state st;
	uint32_t rkey;
};

enum { SRQ_BASIC, SRQ_XRC, SRQS };

struct sim_host {
	struct ur_nic *nic;              /* the first one */
	unsigned lanes, lane[LANES_MAX]; /* which NICs of the world it has; that one is the first of them */
	struct ur_pd *pd, *pd2;
	struct memory m;
	struct key key[KEYS];
	struct sim_cq cq[CQS_MAX];
	unsigned ncq;
	struct sim_rq srq[SRQS];
	struct ur_xrcd *xrcd;
	struct sim_mw mw[WINDOWS];
	struct ibv_mr boards_mr;           /* what windows are bound to, as the verbs name it */
	struct ur_ah *ah[WORLD_HOSTS + 1]; /* to each host, and to the group; or NULL */
	uint64_t wc_errors[2];             /* seen: of sends, of receives */
	bool cleaned;                      /* completions were removed unseen */
};

enum life { UP, BROKEN, DOWN };

/* Why a QP went to ERR. */
enum cause { CAUSE_PROGRAM = 1, CAUSE_SEND = 2, CAUSE_RECV = 4 };

struct sim_qp {
	unsigned index, host, nic; /* nic: of the world's, in which it lives until it is destroyed */
	enum service svc;
	bool sends, receives; /* an XRC QP does one of them */
	bool attached;        /* to the group */
	struct sim_qp *peer;
	struct ur_qp *qp; /* NULL when destroyed */
	uint32_t qpn, qkey;
	struct ur_net_path path;
	struct sim_cq *scq, *rcq;
	struct ibv_qp_cap cap;
	bool sig_all;
	uint8_t depth, served; /* READs that it asks for at a time, and those that its peer answers */
	uint8_t retry_cnt, rnr_retry, timeout, min_rnr;
	int access;
	bool tight; /* the timeout is shorter than an RTT may be */
	enum life life;
	unsigned epoch, causes;
	bool send_failed, recv_failed; /* an error was seen: only flushes may follow */
	bool sqd, frozen;              /* drain was asked for; it has been reported */
	unsigned drained;              /* events of this epoch */
	unsigned seen;                 /* events (bits) */
	bool unexplained;              /* a flush was seen before its cause */
	uint64_t went_bad;             /* clock at which the program took it out of RTS, or NEVER */
	ur_time ready_at;              /* when it may be connected again: nothing of the last epoch is under way */
	unsigned judged;               /* sends of which the peer has told that they were executed */
	struct prog *p;
	struct sim_rq *rq, own;
	uint16_t sent[OPS_MAX]; /* of this epoch, in order */
	unsigned shead, stail;
	unsigned rops[OPS_MAX], nrops; /* indices in `sent` of those that consume a receive of the peer */
	unsigned delivered;            /* how many of them the peer has seen */
	uint16_t fence;                /* one more than the index of the newest fenced send */
	unsigned oldest;               /* of its requests, when liveness_check looked last; UINT_MAX: none */
	bool resolving;                /* since then it, or its peer, did not know the other's address */
	ur_time oldest_since, limit;   /* when it became that; how long it may remain it */
};

/* --- ops.c --- */

/* Before K_SEND they are local; from K_WRITE on they name memory of the peer, from K_AWRITE on they wait for an answer, from K_READ on it
 * brings data. */
enum kind { K_BIND, K_INV, K_SEND, K_WRITE, K_AWRITE, K_READ, K_FADD, K_CSWAP };

struct row {
	const char *name;
	enum ibv_wr_opcode opcode;
	enum ibv_wc_opcode wc;
	enum kind kind;
	bool recv, imm, inv; /* consumes a receive; carries immediate data; invalidates a window of the peer */
	unsigned services, weight;
};

extern const struct row rows[];
extern const unsigned nrows;

/* What is wrong with a request on purpose. */
enum sin {
	SIN_NONE,
	SIN_RKEY,     /* no such key */
	SIN_STALE,    /* the key of a memory region that was deregistered */
	SIN_RANGE,    /* beyond the end of the memory region */
	SIN_RIGHT,    /* the memory region does not grant it */
	SIN_PD,       /* a memory region of another protection domain */
	SIN_ALIGN,    /* an atomic at an odd place */
	SIN_QKEY,     /* a datagram with another Q_Key */
	SIN_LKEY,     /* local: no such key */
	SIN_LRANGE,   /* local: beyond the end */
	SIN_LRIGHT,   /* local: no right to write there */
	SIN_LPD,      /* local: of another protection domain */
	SIN_TOO_LONG, /* more than 2^31 bytes */
	SINS
};

#define SIN_REMOTE_LAST SIN_QKEY

extern const char *const sin_names[SINS];
extern const char *const status_names[STATUSES];

struct sim_op {
	const struct row *row;
	struct sim_qp *qp;
	unsigned epoch, seq; /* seq: index in qp->sent */
	unsigned rindex;     /* of those that consume a receive: index in qp->rops */
	uint64_t tag;
	uint32_t len, imm;
	bool signaled, fence, solicited;
	bool open, lost; /* neither completed nor given up; given up, but packets of it may be under way */
	enum sin sin;
	unsigned may; /* statuses that something else than its own sin permits (bits) */
	uint64_t posted;
	struct buf local;
	uint8_t keys; /* which local ones it uses (bits of enum key_id) */
	enum key_id rkey;
	struct board *board;
	uint32_t at; /* in the board */
	struct version *v;
	uint64_t vtag; /* v->tag, while v is still that version */
	struct sim_mw *mw;
	struct cell *cell;
	unsigned before; /* operations on the cell that were over when it was posted */
	uint64_t compare, swap;
	struct sim_qp *target; /* of a datagram; NULL: the group */
	uint32_t qpn;          /* from which it was sent */
};

struct sim_recv {
	struct sim_rq *rq;
	unsigned epoch, seq; /* epoch: of the QP, when it has the queue for itself; seq: index in rq->recvs */
	uint32_t len;
	enum sin sin;
	unsigned may;
	bool open;
	struct buf local;
	uint8_t keys;
};

/* Posts one random request; false when nothing can be posted. `quiet`: signalled, legal, without data. */
bool post_send(struct prog *p, struct sim_qp *q, bool quiet);
/* The scatter/gather list of a buffer, with keys drawn at random. */
unsigned make_sges(struct prog *p, struct sim_host *h, const struct buf *b, enum sin sin, bool writes, struct ibv_sge *sge, uint8_t *keys);
void ring(struct prog *p, struct sim_qp *q);

/* --- recvs.c --- */

#define GRH 40

bool post_recv(struct prog *p, struct sim_rq *rq, bool legal);
bool srq_create(struct prog *p, unsigned host, unsigned which);
void srq_limit(struct prog *p, struct sim_rq *rq);
/* Forgets a receive that nobody will hear of again. */
void recv_drop(struct prog *p, struct sim_recv *r);

/* --- cells.c --- */

/* False when the cell has had enough. */
bool cell_aim(struct prog *p, struct sim_op *op, struct ibv_send_wr *wr);
void cell_posted(struct sim_op *op);
void cell_done(struct prog *p, struct sim_op *op, unsigned no);
void cells_check(struct prog *p, unsigned host);

/* --- windows.c --- */

bool windows_create(struct prog *p, unsigned host);
void windows_destroy(struct prog *p, unsigned host);
/* Draw what a request does to a window; false when there is none for it. */
bool window_bind(struct prog *p, struct sim_op *op, struct ibv_send_wr *wr);
bool window_invalidate(struct prog *p, struct sim_op *op, struct ibv_send_wr *wr);
/* The request was not posted after all. */
void window_unposted(struct sim_op *op);
void window_done(struct prog *p, struct sim_op *op, bool ok);
/* A window that a request may use, or NULL. */
struct sim_mw *window_for(struct prog *p, const struct sim_op *op);
void windows_lose_owner(struct prog *p, const struct sim_qp *q);
void act_window(struct prog *p);

/* --- model.c, arrive.c, checks.c --- */

/* Polls up to n completions and judges them. Returns how many there were. */
unsigned reap(struct prog *p, struct sim_cq *c, unsigned n);
void reap_all(struct prog *p);
void on_send(struct prog *p, unsigned no, const struct ibv_wc *wc);
void on_recv(struct prog *p, unsigned no, const struct ibv_wc *wc);
void on_event(struct ur_qp *qp, enum ibv_event_type ev);
void on_srq_event(struct ur_srq *srq, enum ibv_event_type ev);
/* A flush without a cause that has been seen: there must be one. */
void unexplained(struct sim_qp *q);
/* Has q posted what takes its peer down? */
bool may_kill(const struct prog *p, const struct sim_qp *q);
/* The peer has told that everything up to request `upto` was executed. */
void executed(struct prog *p, struct sim_qp *q, unsigned upto);
/* It has been executed whole. */
void settle(struct sim_op *op, uint64_t now);
/* Nothing more will be heard of what is under way on the QP. */
void give_up(struct prog *p, struct sim_qp *q);
/* The QP is in ERR and everything was reaped. */
void end_unsignalled(struct prog *p, struct sim_qp *q);
/* The epoch of a QP ends: is what happened to it explained? */
void close_epoch(struct prog *p, struct sim_qp *q);
/* All completions have been seen: are the receives of a shared queue used in order? */
void srq_check(struct prog *p, const struct sim_rq *rq);
void final_checks(struct prog *p);

/* --- liveness.c --- */

/* Nothing more is lost, changed, doubled or reordered. */
void faults_end(struct prog *p);
/* From now on the program does what requests wait for, and faults are over. */
void liveness_begin(struct prog *p);
/* Does something hang? */
void liveness_check(struct prog *p);

/* --- program.c --- */

/* What the fabrics did with trains and at bare ports. */
enum train_stat { T_SENT, T_SPLIT, T_THINNED, T_MERGED, T_BUSY, T_UNSEEN, T_ANSWERED, T_BARE, T_JOINED, TRAIN_STATS };

enum peers { PEERS_NONE, PEERS_ONE, PEERS_BOTH, PEERS };
#define TENTHS 10

struct stats {
	uint64_t seeds, failed, ops[32], received[32], services[SERVICES], send_wc[STATUSES], recv_wc[STATUSES], events[32], sins[SINS],
		actions[32], windowed, counters[UR_C_COUNT], frames, virtual_ms, trains[TRAIN_STATS];
	uint64_t waited[TENTHS];         /* requests, by the share that they took of the time that they may take without faults */
	uint64_t peers[PEERS], keepless; /* worlds, by who has selective repeat; hosts that have it and no room to keep anything */
	uint64_t one_host, bulk, fetches, unfetched; /* worlds on one host; bulk packets between its processes; copies, failed on purpose */
	uint64_t lanes, further, other_slot, break_ins; /* worlds with lanes; QPs of further ones; packets at the wrong one; their rounds */
	uint64_t reregistered;
};

struct prog_options {
	uint64_t seed;
	unsigned max_actions; /* stop the program after so many; UINT_MAX: never */
	bool one_host;        /* the hosts are processes of one, whatever the seed says */
	bool lanes;           /* there are lanes, likewise */
	bool trace, packets;
};

struct sim_trace { /* of a NIC */
	struct ur_trace trace;
	struct prog *p;
	unsigned nic;
};

struct prog {
	struct world w;
	struct fabric f;
	struct ur_rng rng;
	struct prog_options o;
	struct stats *stats;
	struct sim_host host[WORLD_HOSTS];
	struct sim_trace traces[WORLD_NICS];
	struct sim_qp qp[2 * PAIRS_MAX];
	unsigned nqp, nqp_max;
	uint64_t clock;
	struct ur_gid group;
	enum ibv_mtu mtu;
	uint32_t mtu_bytes, max_len; /* of a message */
	unsigned sq_wr, rq_wr, max_sge;
	bool sins, breaks; /* does it do what is forbidden, does it break connections? */
	bool spotless;     /* nothing at all can go wrong */
	bool stingy;       /* are receives posted late and few? */
	bool gave_up;      /* requests were flushed or forgotten */
	bool faultless;    /* the faults have ended */
	ur_time queued;    /* since then: the longest that something waited for a link */
	ur_time pace;      /* between actions, about */
	ur_time progress;  /* when something was last seen to happen */
	ur_time patience;
	uint64_t steps;
	unsigned actions, nops, nrecvs;
	struct sim_op *ops;
	struct sim_recv *recvs;
	char broken[400];
};

/* Runs the program of a seed; NULL, or the sentence of the first broken promise. *actions: how many it had done by then. */
const char *prog_run(const struct prog_options *o, struct stats *stats, unsigned *actions);
const char *action_name(unsigned i);
/* Has every request ended, and is no connection half broken? */
bool all_done(const struct prog *p);

void broke(struct prog *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void say(struct prog *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define SAY(p, ...)                                                                                                                        \
	do                                                                                                                                 \
		if ((p)->o.trace)                                                                                                          \
			say(p, __VA_ARGS__);                                                                                               \
	while (0)

static inline bool one_in(struct prog *p, uint32_t n)
{
	return ur_rng_below(&p->rng, n) == 0;
}

static inline uint32_t below(struct prog *p, uint32_t n)
{
	return ur_rng_below(&p->rng, n);
}

static inline bool reliable(const struct sim_qp *q)
{
	return q->svc == RC || q->svc == XRC;
}

/* setup.c */
const char *setup(struct prog *p);
bool key_register(struct prog *p, unsigned host, enum key_id id);
void key_deregister(struct prog *p, unsigned host, enum key_id id);
struct ur_ah *get_ah(struct prog *p, struct sim_host *h, unsigned to);
void drop_ah(struct prog *p, struct sim_host *h, unsigned to);
/* Registers it anew, and its keys stay. */
void key_reregister(struct prog *p, unsigned host, enum key_id id);
/* The transport of one of the lanes, for what they have in common. */
struct ur_tp *any_tp(struct prog *p, const struct sim_host *h);
bool is_quiet(const struct prog *p);
/* Completions that a CQ may have to hold. */
unsigned cq_room(const struct prog *p);
/* connect.c */
bool qp_create(struct prog *p, struct sim_qp *q);
void qp_connect(struct prog *p, struct sim_qp *q);
int qp_to(struct prog *p, struct sim_qp *q, enum ibv_qp_state to);
void qp_reset(struct prog *p, struct sim_qp *q);
void qp_destroy(struct prog *p, struct sim_qp *q);
/* An upper bound of the RTT while all windows are full. */
ur_time loaded_rtt(const struct prog *p);
/* How long something that was sent can be under way. */
ur_time in_flight_time(const struct prog *p);
const char *teardown(struct prog *p);
static inline struct sim_host *host_of(struct prog *p, const struct sim_qp *q)
{
	return &p->host[q->host];
}

static inline struct ur_nic *nic_of(const struct prog *p, const struct sim_qp *q)
{
	return p->w.nic[q->nic];
}

#endif
