/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program is made of: memory regions, CQs, shared receive queues, address handles, and which QPs there are. */
#include <arpa/inet.h>
#include <string.h>

#include "test/sim/prog.h"
#include "wire/frame.h"

#define LW IBV_ACCESS_LOCAL_WRITE
#define RW IBV_ACCESS_REMOTE_WRITE
#define RR IBV_ACCESS_REMOTE_READ
#define RA IBV_ACCESS_REMOTE_ATOMIC

/* --- memory regions --- */

static const int key_access[KEYS] = {
	[K_SLOTS] = LW,
	[K_SLOTS2] = LW,
	[K_SLOTS_RO] = 0,
	[K_BOARDS] = LW | RW | RR | IBV_ACCESS_MW_BIND,
	[K_BOARDS_RO] = RR,
	[K_BOARDS_WO] = LW | RW,
	[K_VOLATILE] = LW | RW | RR,
	[K_FOREIGN] = LW | RW | RR | RA,
	[K_CELLS] = LW | RA,
};

static void key_span(const struct memory *m, enum key_id id, uint8_t **from, uint8_t **to)
{
	const struct board *first = &m->board[0], *last = &m->board[BOARDS - BOARDS_VOLATILE - 1];

	if (id == K_VOLATILE)
		first = &m->board[BOARDS - BOARDS_VOLATILE];
	if (id == K_VOLATILE || id == K_FOREIGN)
		last = &m->board[BOARDS - 1];
	*from = first->mem;
	*to = last->mem + last->size;
	if (id == K_CELLS) {
		*from = (uint8_t *)m->cell[0].mem;
		*to = (uint8_t *)m->cell[CELLS - 1].mem + RED;
	} else if (id <= K_SLOTS_RO) {
		*from = m->slots;
		*to = m->base + m->size;
	}
}

struct ur_tp *any_tp(struct prog *p, const struct sim_host *h)
{
	return p->w.nic[h->lane[h->lanes > 1 ? below(p, h->lanes) : 0]]->tp;
}

bool key_register(struct prog *p, unsigned host, enum key_id id)
{
	struct sim_host *h = &p->host[host];
	struct key *k = &h->key[id];
	uint8_t *from, *to;

	key_span(&h->m, id, &from, &to);
	*k = (struct key){.base = from, .size = (size_t)(to - from), .access = key_access[id], .stale = k->stale};
	k->iova = ur_rng_u64(&p->rng) >> 2 & ~63ull;
	SAY(p, "host %u: register memory region %u", host, id);
	if (p->w.mail[host].world && p->w.breaks_in && h->lanes > 1 && one_in(p, 2))
		k->access |= IBV_ACCESS_ON_DEMAND;
	return !ur_mr_reg(any_tp(p, h), id == K_FOREIGN ? h->pd2 : h->pd, from, k->size, k->iova, k->access, &k->mr);
}

/* What is under way and refers to the region may fail from now on. */
static void doubt(struct prog *p, unsigned host, enum key_id id)
{
	for (unsigned i = 0; i < p->nops; i++) {
		struct sim_op *op = &p->ops[i];

		if (op->open && op->qp->host == host && op->keys & 1u << id)
			op->may |= 1u << IBV_WC_LOC_PROT_ERR;
		if ((op->open || op->lost) && op->qp->peer->host == host && op->rkey == id && op->row->kind >= K_WRITE)
			op->may |= 1u << IBV_WC_REM_ACCESS_ERR;
	}
	for (unsigned i = 0; i < p->nrecvs; i++)
		if (p->recvs[i].open && p->recvs[i].rq->host == host && p->recvs[i].keys & 1u << id)
			p->recvs[i].may |= 1u << IBV_WC_LOC_PROT_ERR, p->recvs[i].rq->tainted = true;
}

static void let_go(struct prog *p, unsigned host, enum key_id id, struct ur_mr *mr)
{
	unsigned tries = 0;

	while (ur_mr_dereg(mr))
		if (!world_step(&p->w, p->w.now + UR_NS_PER_MS) || ++tries == 1000) {
			broke(p, "host %u: frames refer to memory region %u for ever", host, id);
			return;
		}
}

void key_deregister(struct prog *p, unsigned host, enum key_id id)
{
	struct key *k = &p->host[host].key[id];

	SAY(p, "host %u: deregister memory region %u", host, id);
	k->stale = k->mr->rkey;
	doubt(p, host, id);
	let_go(p, host, id, k->mr);
	k->mr = NULL;
}

/* At the same place for those who name it, or at another one: then what is under way fails. */
void key_reregister(struct prog *p, unsigned host, enum key_id id)
{
	struct key *k = &p->host[host].key[id];
	struct ur_mr *old = k->mr, as = *old;

	SAY(p, "host %u: register memory region %u anew", host, id);
	p->stats->reregistered++;
	if (one_in(p, 2)) {
		doubt(p, host, id);
		k->iova = as.iova = ur_rng_u64(&p->rng) >> 2 & ~63ull;
	}
	if (ur_mr_rereg(old, &as, &k->mr))
		broke(p, "host %u: memory region %u cannot be registered anew", host, id);
	else
		let_go(p, host, id, old);
}

/* --- nothing is under way --- */

bool is_quiet(const struct prog *p)
{
	for (unsigned i = 0; i < p->w.nnics; i++)
		if (p->w.mail[i].waiting || p->w.nic[i]->loop.head || !ur_list_empty(&p->w.nic[i]->waiting))
			return false;
	return !ur_sim_in_flight(p->w.sim);
}

/* --- address handles --- */

struct ur_ah *get_ah(struct prog *p, struct sim_host *h, unsigned to)
{
	struct ibv_ah_attr a = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}};

	if (h->ah[to])
		return h->ah[to];
	memcpy(a.grh.dgid.raw, to == WORLD_HOSTS ? p->group.raw : p->w.gid[to].raw, 16);
	if (ur_nic_create_ah(h->nic, h->pd, &a, p->w.now, &h->ah[to]))
		broke(p, "an address handle could not be made");
	return h->ah[to];
}

void drop_ah(struct prog *p, struct sim_host *h, unsigned to)
{
	(void)p;
	if (h->ah[to])
		ur_ah_destroy(h->ah[to]);
	h->ah[to] = NULL;
}

/* --- all of them --- */

static void on_completion(struct ur_cq *cq)
{
	((struct sim_cq *)ur_cq_context(cq))->notified++;
}

static bool setup_shared(struct prog *p, unsigned i)
{
	struct sim_host *h = &p->host[i];

	return !ur_xrcd_create(h->nic->tp, &h->xrcd) && srq_create(p, i, SRQ_BASIC) && srq_create(p, i, SRQ_XRC) && windows_create(p, i);
}

unsigned cq_room(const struct prog *p)
{
	return p->nqp_max * (p->sq_wr + p->rq_wr) + SRQS * 4 * p->rq_wr;
}

static bool setup_host(struct prog *p, unsigned i)
{
	struct sim_host *h = &p->host[i];

	*h = (struct sim_host){.nic = p->w.nic[i], .ncq = 1 + below(p, CQS_MAX)};
	for (unsigned k = 0; k < p->w.nnics; k++)
		if (p->w.host[k] == i)
			h->lane[h->lanes++] = k;
	memory_init(p, i);
	if (ur_pd_create(h->nic->tp, &h->pd) || ur_pd_create(h->nic->tp, &h->pd2))
		return false;
	for (unsigned k = 0; k < KEYS; k++)
		if (!key_register(p, i, (enum key_id)k))
			return false;
	for (unsigned k = 0; k < h->ncq; k++) {
		struct sim_cq *c = &h->cq[k];

		*c = (struct sim_cq){.host = i, .index = k};
		if (ur_cq_create(h->nic->tp, cq_room(p), c, on_completion, &c->cq))
			return false;
	}
	return setup_shared(p, i);
}

static void choose_qp(struct prog *p, struct sim_qp *q, unsigned host, enum service svc, struct sim_qp *peer)
{
	struct sim_host *h = &p->host[host];

	memset(q, 0, offsetof(struct sim_qp, own));
	q->p = p;
	q->index = (unsigned)(q - p->qp);
	q->host = host;
	q->svc = svc;
	q->sends = svc != XRC || peer > q;
	q->receives = svc != XRC || peer < q;
	q->peer = peer;
	q->life = DOWN;
	q->own = (struct sim_rq){.host = host, .cap = q->receives ? p->rq_wr : 0, .qp = q, .p = p};
	q->rq = svc == XRC && q->receives ? &h->srq[SRQ_XRC] : svc != XRC && one_in(p, h->lanes > 1 ? 2 : 4) ? &h->srq[SRQ_BASIC] : &q->own;
	q->scq = &h->cq[below(p, h->ncq)];
	q->rcq = one_in(p, 2) ? q->scq : &h->cq[below(p, h->ncq)];
	if (q->rq->cq)
		q->rcq = q->rq->cq;
	q->sig_all = one_in(p, 4);
}

/* Pairs between the hosts, and now and then within one of them, or of a QP with itself. */
static void choose_pairs(struct prog *p, unsigned pairs)
{
	static const enum service services[] = {RC, RC, RC, RC, RC, UC, UC, UD, UD, XRC, XRC};
	unsigned n = 0;

	for (unsigned i = 0; i < pairs; i++) {
		unsigned host = below(p, 2), other = one_in(p, 12) ? host : !host;
		enum service svc = services[below(p, ur_array_size(services))];
		bool alone = svc != XRC && one_in(p, 40);

		choose_qp(p, &p->qp[n], host, svc, &p->qp[n + !alone]);
		if (!alone)
			choose_qp(p, &p->qp[n + 1], other, svc, &p->qp[n]);
		n += 2 - alone;
	}
	p->nqp = n;
}

static void choose_sizes(struct prog *p)
{
	unsigned max = (unsigned)ur_max_path_mtu(p->f.mtu), packets = one_in(p, 2) ? 4 : 12;

	p->mtu = (enum ibv_mtu)(1 + below(p, max));
	p->mtu = one_in(p, 2) ? (enum ibv_mtu)max : p->mtu;
	p->mtu_bytes = 128u << p->mtu;
	if (p->mtu_bytes <= 512 && one_in(p, 12))
		packets = 300 * (1 + below(p, 3)); /* more than a window, for a while */
	p->max_len = packets * p->mtu_bytes;
	p->sq_wr = 1u << (1 + below(p, 6));
	p->rq_wr = 1u << (1 + below(p, 4));
	p->max_sge = one_in(p, 8) ? UR_MAX_SGE : 1 + below(p, 4);
	p->sins = one_in(p, 2);
	p->breaks = one_in(p, 2);
	p->stingy = one_in(p, 4);
}

const char *setup(struct prog *p)
{
	unsigned pairs = 1 + below(p, PAIRS_MAX);

	choose_sizes(p);
	p->nqp_max = 2 * pairs;
	p->group = (struct ur_gid){.raw = {0xff, 0x0e, [15] = 0x77}};
	if (!p->f.v6)
		p->group = ur_gid_from_v4(htonl(0xe0010203));
	for (unsigned i = 0; i < WORLD_HOSTS; i++)
		if (!setup_host(p, i))
			return "the objects of a host could not be made";
	choose_pairs(p, pairs);
	for (unsigned i = 0; i < p->nqp; i++)
		if (!qp_create(p, &p->qp[i]))
			return "a QP could not be made";
	for (unsigned i = 0; i < p->nqp; i++)
		if (p->qp[i].life == DOWN)
			qp_connect(p, &p->qp[i]);
	p->pace = 1 + fabric_rtt(&p->f, p->mtu_bytes) / (1u << below(p, 6));
	if (p->f.one.nap)
		p->pace = 1 + 16 * p->f.one.nap / (1u << below(p, 9));
	p->patience = 200 * (8 * (4096ull << 8) + loaded_rtt(p)) + 2000 * UR_NS_PER_S;
	return NULL;
}

static const char *teardown_host(struct prog *p, unsigned i)
{
	struct sim_host *h = &p->host[i];

	for (unsigned k = 0; k <= WORLD_HOSTS; k++)
		drop_ah(p, h, k);
	windows_destroy(p, i);
	for (unsigned k = 0; k < SRQS; k++)
		if (h->srq[k].srq && ur_srq_destroy(h->srq[k].srq))
			return "an SRQ could not be destroyed";
	if (h->xrcd && ur_xrcd_destroy(h->xrcd))
		return "an XRC domain could not be destroyed";
	for (unsigned k = 0; k < h->ncq; k++)
		if (h->cq[k].cq && ur_cq_destroy(h->cq[k].cq))
			return "a CQ could not be destroyed";
	for (unsigned k = 0; k < KEYS; k++)
		if (h->key[k].mr)
			key_deregister(p, i, (enum key_id)k);
	if ((h->pd && ur_pd_destroy(h->pd)) || (h->pd2 && ur_pd_destroy(h->pd2)))
		return "a PD could not be destroyed";
	return NULL;
}

const char *teardown(struct prog *p)
{
	const char *left = NULL;

	for (unsigned i = 0; i < p->nqp; i++)
		if (p->qp[i].qp)
			qp_destroy(p, &p->qp[i]);
	for (unsigned i = 0; i < WORLD_HOSTS && !left; i++)
		left = teardown_host(p, i);
	return left;
}
