/* SPDX-License-Identifier: BSD-3-Clause */
/* The hosts, their keys and queue pairs, the attacker's port, and time. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include "nic.h"
#include "wire/msg/arp.h"
#include "wire/msg/icmp.h"

#define NPKTS 384
#define STEPS_MAX 200000 /* of one wait */
#define SQ_WR 16
#define RQ_WR 16
#define QKEY 0x1ee7u
#define ATTACKER_QPN 0x070000u    /* of its pairs, which exist in its head alone */
#define TIMEOUT 8                 /* 1 ms; a request is given up after eight of them */
#define RNR_TIMER 10              /* 320 us, and as often */
#define STRAY (40 * UR_NS_PER_MS) /* a packet that is held back has come by then */
#define START_PSN 0xfffff0u       /* numbers begin again soon */
#define IOVA(host, k) (((uint64_t)(k) + 1) << 32 | (uint64_t)(host) << 28)

enum { CONFIG_V6 = 1, CONFIG_BARE = 2, CONFIG_CC = 4, CONFIG_TRAINS = 8, CONFIG_MTU_512 = 16, CONFIG_BUSY = 32 };

const struct pair pairs[PAIRS] = {
	[P_SPARED] = {"spared RC", {IBV_QPT_RC, IBV_QPT_RC}, PEER, true, false},
	[P_RC] = {"RC", {IBV_QPT_RC, IBV_QPT_RC}, PEER, false, false},
	[P_RC_ATTACKER] = {"RC with the attacker", {IBV_QPT_RC, IBV_QPT_RC}, ATTACKER, false, false},
	[P_UC] = {"UC", {IBV_QPT_UC, IBV_QPT_UC}, PEER, false, false},
	[P_UC_ATTACKER] = {"UC with the attacker", {IBV_QPT_UC, IBV_QPT_UC}, ATTACKER, false, true},
	[P_UD] = {"UD", {IBV_QPT_UD, IBV_QPT_UD}, PEER, false, false},
	[P_XRC] = {"XRC", {IBV_QPT_XRC_RECV, IBV_QPT_XRC_SEND}, PEER, false, false},
	[P_XRC_ATTACKER] = {"XRC with the attacker", {IBV_QPT_XRC_RECV, IBV_QPT_XRC_SEND}, ATTACKER, false, false},
	[P_RC_SRQ] = {"RC with an SRQ, with the attacker", {IBV_QPT_RC, IBV_QPT_RC}, ATTACKER, false, true},
};

static void need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "fuzz_nic: cannot set up: %s\n", what);
	abort();
}

/* --- keys --- */

static const enum ibv_mw_type window_type[WINDOWS] = {IBV_MW_TYPE_1, IBV_MW_TYPE_2};

static void key_choose(struct key *k, unsigned which)
{
	*k = (struct key){.lane = -1, .stale = k->stale};
	if (which < REGIONS) {
		k->region = (enum region_id)which;
		k->pd = regions[which].pd;
		k->at = regions[which].at;
		k->len = regions[which].size;
		k->access = regions[which].access;
	} else if (which == K_SOURCE_SPARED) {
		k->region = R_SOURCE;
		k->pd = PD_SPARED;
		k->at = regions[R_SOURCE].at;
		k->len = regions[R_SOURCE].size;
	} else {
		k->region = REGIONS;
		k->pd = which == K_SLOTS ? PD_OPEN : PD_SPARED;
		k->at = SLOTS_AT;
		k->len = SLOTS * SLOT;
		k->access = IBV_ACCESS_LOCAL_WRITE;
	}
}

bool key_make(struct fuzz *f, unsigned host, unsigned which)
{
	struct side *s = &f->side[host];
	struct key *k = &s->key[which];

	if (which >= K_WINDOW) {
		*k = (struct key){.lane = -1, .region = R_WINDOW, .pd = PD_OPEN};
		if (ur_mw_alloc(s->nic->tp, s->pd[PD_OPEN], window_type[which - K_WINDOW], &k->mw))
			return false;
		k->rkey = ur_mw_rkey(k->mw);
		return true;
	}
	key_choose(k, which);
	k->iova = IOVA(host, which);
	if (ur_mr_reg(s->nic->tp, s->pd[k->pd], s->arena.mem + k->at, k->len, k->iova, k->access, &k->mr))
		return false;
	k->rkey = k->mr->rkey;
	k->live = true;
	return true;
}

/* --- queue pairs --- */

static struct ibv_ah_attr route(const struct ur_gid *to)
{
	struct ibv_ah_attr a = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}};

	memcpy(a.grh.dgid.raw, to->raw, 16);
	return a;
}

struct queue *recv_queue(struct fuzz *f, struct lane *l)
{
	if (l->type == IBV_QPT_XRC_RECV)
		return &side_of(f, l)->xrc_q;
	return pair_of(l)->srq ? &side_of(f, l)->srq_q : &l->rq;
}

static void lane_empty(struct lane *l)
{
	l->sq.head = l->sq.tail = l->rq.head = l->rq.tail = 0;
	l->sq.failed = l->rq.failed = false;
	l->nsent = 0;
	l->touched = false;
}

static void lane_create(struct fuzz *f, struct lane *l)
{
	struct side *s = side_of(f, l);
	struct ur_qp_init init = {.type = (enum ibv_qp_type)l->type,
				  .pd = s->pd[domain_of(l)],
				  .send_cq = s->cq,
				  .recv_cq = s->cq,
				  .cap = {SQ_WR, RQ_WR, 2, 2, 0},
				  .context = l};

	if (l->type == IBV_QPT_XRC_RECV)
		init.xrcd = s->xrcd;
	else if (pair_of(l)->srq)
		init.srq = s->srq;
	need(ur_qp_create(s->nic->tp, &init, &l->qp) == 0, "a QP");
	l->qpn = ur_qp_num(l->qp);
	l->path = (struct ur_net_path){.owner = NULL};
	lane_empty(l);
}

int lane_to(struct lane *l, enum ibv_qp_state st)
{
	const struct pair *p = pair_of(l);
	struct fuzz *f = l->f;
	bool ud = l->type == IBV_QPT_UD, rc = l->type == IBV_QPT_RC || l->type >= IBV_QPT_XRC_SEND;
	bool sends = l->type != IBV_QPT_XRC_RECV, receives = l->type != IBV_QPT_XRC_SEND;
	struct ibv_qp_attr a = {.qp_state = st,
				.port_num = 1,
				.qkey = QKEY,
				.qp_access_flags = (unsigned)l->access,
				.path_mtu = f->mtu == 512 ? IBV_MTU_512 : IBV_MTU_256,
				.dest_qp_num = l->dqpn,
				.rq_psn = START_PSN,
				.sq_psn = START_PSN,
				.max_rd_atomic = 4,
				.max_dest_rd_atomic = 4,
				.timeout = TIMEOUT,
				.retry_cnt = 7,
				.rnr_retry = 6,
				.min_rnr_timer = RNR_TIMER,
				.ah_attr = route(&f->gid[l->host == VICTIM ? p->other : VICTIM])};
	int mask = IBV_QP_STATE;

	if (st == IBV_QPS_INIT)
		mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
	else if (st == IBV_QPS_RTR && !ud)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			(rc && receives ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
	else if (st == IBV_QPS_RTS && ur_qp_state(l->qp) == IBV_QPS_RTR)
		mask |= IBV_QP_SQ_PSN | (rc ? IBV_QP_TIMEOUT : 0) |
			(rc && sends ? IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0);
	return ur_nic_modify_qp(side_of(f, l)->nic, l->qp, &l->path, &a, mask, f->w.now);
}

static void lane_connect(struct lane *l)
{
	need(!lane_to(l, IBV_QPS_INIT) && !lane_to(l, IBV_QPS_RTR) && !lane_to(l, IBV_QPS_RTS), "a connected QP");
}

static void lane_destroy(struct fuzz *f, struct lane *l)
{
	int err;

	if (!l->qp)
		return;
	if (l->type == IBV_QPT_UD && l->host == VICTIM && ur_nic_detach_mcast(f->side[VICTIM].nic, l->qp, &f->group))
		broke(f, "the UD QP cannot leave its group");
	err = ur_nic_destroy_qp(side_of(f, l)->nic, l->qp, &l->path);
	if (err)
		broke(f, "the QP of lane %u cannot be destroyed: error %d", (unsigned)(l - f->lane), err);
	ur_cq_clean(side_of(f, l)->cq, l->qpn);
	l->qp = NULL;
}

void lane_close(struct fuzz *f, unsigned pair)
{
	struct lane *l = &f->lane[2 * pair];

	for (unsigned i = 0; i < 2; i++) {
		if (!l[i].qp)
			continue;
		work_reap(f, l[i].host);
		windows_lose(f, 2 * pair + i);
		lane_destroy(f, &l[i]);
		work_forget(f, &l[i]);
	}
}

void lane_reset(struct fuzz *f, unsigned pair)
{
	struct lane *l = &f->lane[2 * pair];

	for (unsigned i = 0; i < 2; i++) {
		if (!l[i].qp)
			continue;
		work_reap(f, l[i].host);
		windows_lose(f, 2 * pair + i);
		need(!lane_to(&l[i], IBV_QPS_RESET), "a QP that is reset");
		ur_cq_clean(side_of(f, &l[i])->cq, l[i].qpn);
		work_forget(f, &l[i]);
		lane_empty(&l[i]);
	}
	stage_run(f, STRAY); /* numbers begin where they have begun before */
	for (unsigned i = 0; i < 2; i++)
		if (l[i].qp)
			lane_connect(&l[i]);
}

bool lane_open(struct fuzz *f, unsigned pair)
{
	struct lane *l = &f->lane[2 * pair];

	if (l->qp)
		return true;
	for (unsigned i = 0; i < 2; i++)
		if (lane_is_real(&l[i]))
			lane_create(f, &l[i]);
	l[0].dqpn = l[1].qpn;
	l[1].dqpn = l[0].qpn;
	for (unsigned i = 0; i < 2; i++)
		if (lane_is_real(&l[i]))
			lane_connect(&l[i]);
	if (pair == P_UD)
		need(ur_nic_attach_mcast(f->side[VICTIM].nic, l->qp, &f->group) == 0, "a group");
	stage_run(f, 20 * UR_NS_PER_US); /* neighbours are found */
	return true;
}

struct lane *lane_get(struct fuzz *f, unsigned i)
{
	struct lane *l = &f->lane[i % LANES];

	if (!lane_is_real(l))
		return NULL;
	lane_open(f, l->pair);
	return l;
}

/* --- the attacker's port --- */

static bool answer_arp(struct fuzz *f, const struct ur_pkt *p, struct ur_pkt *out)
{
	const struct ur_mac *own = &f->mac[ATTACKER];
	struct ur_arp a, reply;

	if (!ur_arp_parse(p, &a) || a.op != UR_ARP_REQUEST || memcmp(&a.tip, f->gid[ATTACKER].raw + 12, 4) != 0)
		return false;
	reply = (struct ur_arp){.op = UR_ARP_REPLY, .smac = *own, .tmac = a.smac, .sip = a.tip, .tip = a.sip};
	ur_arp_build(out, own, &a.smac, 0, &reply);
	return true;
}

static bool answer_nd(struct fuzz *f, const struct ur_pkt *p, struct ur_pkt *out)
{
	const struct ur_gid *own = &f->gid[ATTACKER];
	struct ur_nd na = {.target = *own, .has_lladdr = true, .lladdr = f->mac[ATTACKER], .solicited = true, .override = true};
	struct ur_icmp m;

	if (!ur_icmp_parse(p, &m) || m.kind != UR_ICMP_NS || !ur_gid_eq(&m.nd.target, own) || !m.nd.has_lladdr)
		return false;
	ur_nd_build(out, UR_ICMP_NA, &f->mac[ATTACKER], &m.nd.lladdr, 0, own, &p->src, &na);
	return true;
}

/* Who asks for the attacker's MAC address is told, as by any host. */
static void answer(struct fuzz *f, struct ur_queue *q, struct ur_pkt *p)
{
	struct ur_counters unused;
	struct ur_pkt *out;
	bool told;

	if (!ur_frame_parse(p, &unused) || (p->kind != UR_PKT_ARP && p->kind != UR_PKT_ICMP6) || ur_queue_alloc(q, &out, 1) != 1)
		return;
	told = p->kind == UR_PKT_ARP ? answer_arp(f, p, out) : answer_nd(f, p, out);
	if (told)
		ur_queue_tx(q, &out, 1);
	else
		ur_pkts_release(&out, 1);
}

static bool is_resolution(const uint8_t *b, uint32_t len)
{
	uint16_t type = ur_get16(b + 12);

	return type == UR_ETHERTYPE_ARP || (type == UR_ETHERTYPE_IP6 && len > 54 && b[20] == 58);
}

/* What comes to the attacker has been seen when it was sent. */
static void attacker_poll(struct fuzz *f)
{
	struct ur_queue *q = ur_sim_port(f->w.sim, ATTACKER)->queue;
	struct ur_pkt *pkts[32];
	unsigned n;

	while ((n = ur_queue_rx(q, pkts, ur_array_size(pkts)))) {
		for (unsigned i = 0; i < n; i++)
			if (pkts[i]->len >= UR_ETH_LEN && is_resolution(pkts[i]->data, pkts[i]->len))
				answer(f, q, pkts[i]);
		ur_pkts_release(pkts, n);
	}
}

/* --- frames that the hosts send --- */

static void note_read(struct fuzz *f, const uint8_t *b, uint32_t len)
{
	uint32_t bth = UR_ETH_LEN + (f->fab.v6 ? UR_IP6_LEN : UR_IP4_LEN) + UR_UDP_LEN;

	if (len < bth + UR_BTH_LEN || ur_get24(b + bth + 5) != f->read_qpn || ur_get24(b + bth + 9) != f->read_psn)
		return;
	f->read_seen |= b[bth] == (UR_RC | UR_OP_READ_RESP_FIRST) || b[bth] == (UR_RC | UR_OP_READ_RESP_ONLY);
}

static void watch(void *ctx, unsigned from, const uint8_t *b, uint32_t len, const char *fate)
{
	struct fuzz *f = ctx;

	(void)fate;
	if (from == ATTACKER || len < 14)
		return;
	if (holds_mark(b, len))
		broke(f, "host %u sent marked memory", from);
	if (from == VICTIM)
		note_read(f, b, len);
	if (from == VICTIM && !is_resolution(b, len)) {
		f->victim_bytes += len;
		f->victim_frames++;
	}
	capture(f, from, b, len);
}

/* --- time --- */

/* After any time in which nobody attacked. What a host does to memory it does while packets come and go. */
static void check_arenas(struct fuzz *f)
{
	for (unsigned h = VICTIM; h <= PEER; h++) {
		struct spans may = {.n = 0};
		uint32_t bad;

		if (f->side[h].moved == f->w.moved[h])
			continue;
		f->side[h].moved = f->w.moved[h];
		work_spans(f, h, &may);
		if (!arena_check(&f->side[h].arena, &may, &bad))
			broke(f, "honest work changed byte %u of host %u, %s", bad, h, place_name(bad));
	}
}

void stage_pass(struct fuzz *f, ur_time d)
{
	ur_time end = f->w.now + d;
	unsigned steps = 0;

	f->w.stuck = false;
	world_step(&f->w, f->w.now); /* who has posted is heard */
	attacker_poll(f);
	while ((f->w.now < end || ur_sim_next(f->w.sim) <= f->w.now) && world_step(&f->w, end)) {
		attacker_poll(f);
		if (++steps > STEPS_MAX)
			broke(f, "the hosts never come to rest");
	}
}

void stage_run(struct fuzz *f, ur_time d)
{
	stage_pass(f, d);
	work_reap(f, VICTIM);
	work_reap(f, PEER);
	check_arenas(f);
}

void stage_settle(struct fuzz *f)
{
	stage_run(f, 0);
}

/* --- all of it --- */

static void open_side(struct fuzz *f, unsigned host)
{
	struct side *s = &f->side[host];
	struct ur_srq_init srq = {.attr = {.max_wr = 32, .max_sge = 2}, .context = &f->side[host], .event = queue_limit};

	s->nic = f->w.nic[host];
	arena_init(&s->arena);
	need(!ur_pd_create(s->nic->tp, &s->pd[PD_OPEN]) && !ur_pd_create(s->nic->tp, &s->pd[PD_SPARED]), "PDs");
	need(!ur_cq_create(s->nic->tp, 1023, s, queue_event, &s->cq), "a CQ");
	for (unsigned k = 0; k < KEYS; k++)
		need(key_make(f, host, k), "a memory key");
	srq.pd = s->pd[PD_OPEN];
	need(!ur_srq_create(s->nic->tp, &srq, &s->srq), "an SRQ");
	need(!ur_xrcd_create(s->nic->tp, &s->xrcd), "an XRC domain");
	srq.xrcd = s->xrcd;
	srq.cq = s->cq;
	need(!ur_srq_create(s->nic->tp, &srq, &s->xrc_srq), "an XRC SRQ");
	s->srq_q.head = s->srq_q.tail = s->xrc_q.head = s->xrc_q.tail = 0;
	s->srq_q.nopen = s->xrc_q.nopen = 0;
	s->srq_q.failed = s->xrc_q.failed = false;
	s->ah = NULL;
	s->armed = false;
	s->asked = s->events = s->limits = s->limit_events = 0;
	s->moved = 0;
}

static void choose_lanes(struct fuzz *f)
{
	for (unsigned i = 0; i < LANES; i++) {
		struct lane *l = &f->lane[i];
		const struct pair *p = &pairs[i / 2];

		l->f = f;
		l->pair = i / 2;
		l->host = i % 2 ? p->other : VICTIM;
		l->type = p->type[i % 2];
		l->qp = NULL;
		l->qpn = l->host == ATTACKER ? ATTACKER_QPN + l->pair : 0;
		l->access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
			    UR_ACCESS_FLUSH;
		l->sq.nopen = l->rq.nopen = 0;
		l->messages = l->posted = 0;
		l->writes = 0;
		l->adds = 0;
	}
}

static void choose_fabric(struct fuzz *f, uint8_t config)
{
	f->bare = config & CONFIG_BARE;
	f->mtu = config & CONFIG_MTU_512 ? 512 : 256; /* payloads above 256 bytes are not copied to be sent */
	f->fab = (struct fabric){.tx = {{.delay = 2000}, {.delay = 2000}}, .npkts = NPKTS, .raw = 1, .mtu = 1500, .rtt = 4000};
	f->fab.tx[VICTIM].busy = config & CONFIG_BUSY ? UR_SIM_PPM / 2 : 0; /* and then frames wait in the victim */
	f->fab.v6 = config & CONFIG_V6;
	f->fab.cc = config & CONFIG_CC;
	f->fab.port[VICTIM].bare = f->bare;
	f->fab.port[VICTIM].selective = true;
	f->fab.port[VICTIM].reorder_bytes = 1 << 18; /* a few packets of each size, and boards for two QPs */
	if (config & CONFIG_TRAINS)
		for (unsigned i = 0; i < WORLD_HOSTS; i++) {
			f->fab.port[i].train_pkts = 16;
			f->fab.port[i].train_bytes = 65507;
		}
}

static void choose_addresses(struct fuzz *f)
{
	struct ur_port *port = ur_sim_port(f->w.sim, ATTACKER);

	for (unsigned i = 0; i < HOSTS; i++)
		f->mac[i] = ur_sim_port(f->w.sim, i)->mac;
	f->gid[VICTIM] = f->w.gid[VICTIM];
	f->gid[PEER] = f->w.gid[PEER];
	f->gid[ATTACKER] = f->stranger = f->w.gid[VICTIM];
	f->gid[ATTACKER].raw[15] = 3;
	f->stranger.raw[15] = 99;
	f->group = f->fab.v6 ? (struct ur_gid){.raw = {0xff, 0x0e, [15] = 0x77}} : ur_gid_from_v4(htonl(0xe0010203));
	ur_sim_set_addr(f->w.sim, ATTACKER, &f->gid[ATTACKER]);
	if (f->fab.v6) { /* it hears solicitations */
		const struct ur_gid group = ur_nd_solicited_node(&f->gid[ATTACKER]);
		const struct ur_mac mac = ur_mcast_mac(&group);

		port->ops->set_mcast(port, &mac, 1);
	}
}

void stage_open(struct fuzz *f, uint8_t config)
{
	choose_fabric(f, config);
	f->nseen[0] = f->nseen[1] = f->nfaults = 0;
	f->victim_bytes = f->victim_frames = 0;
	f->completions = f->joins = 0;
	f->focus_pair = P_RC_ATTACKER;
	f->focus_key = R_OPEN;
	f->ending = false;
	f->asked = 0;
	world_init(&f->w, 1 + config, &f->fab);
	choose_addresses(f);
	ur_sim_watch(f->w.sim, watch, f);
	open_side(f, VICTIM);
	open_side(f, PEER);
	choose_lanes(f);
	cm_open(f);
	lane_open(f, P_SPARED);
}

static void close_side(struct fuzz *f, unsigned host)
{
	struct side *s = &f->side[host];
	int err = 0;

	if (s->ah)
		ur_ah_destroy(s->ah);
	err = err ? err : ur_srq_destroy(s->xrc_srq);
	err = err ? err : ur_srq_destroy(s->srq);
	err = err ? err : ur_xrcd_destroy(s->xrcd);
	err = err ? err : ur_cq_destroy(s->cq);
	for (unsigned k = 0; k < WINDOWS; k++)
		if (s->key[K_WINDOW + k].mw)
			ur_mw_dealloc(s->key[K_WINDOW + k].mw);
	for (unsigned k = 0; k < K_WINDOW; k++)
		if (s->key[k].mr)
			err = err ? err : ur_mr_dereg(s->key[k].mr);
	for (unsigned d = 0; d < DOMAINS; d++)
		err = err ? err : ur_pd_destroy(s->pd[d]);
	if (err)
		broke(f, "host %u cannot take down what it made, error %d: somebody still counts as its user", host, err);
}

void stage_close(struct fuzz *f)
{
	unsigned left;

	for (unsigned p = 0; p < PAIRS; p++)
		lane_close(f, p);
	cm_close(f);
	stage_run(f, UR_NS_PER_MS);
	close_side(f, VICTIM);
	close_side(f, PEER);
	if (ur_sim_stats(f->w.sim)->bad_free)
		broke(f, "a packet was given back twice");
	left = world_fini(&f->w);
	if (left)
		broke(f, "%u packets were not given back", left);
}
