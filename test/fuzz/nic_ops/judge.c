/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a frame may do to the victim, from the standards (IBTA volume 1, 9.6 and 9.9, annex A17) and from what the program has set up. It is
 * a second reading, apart from the product's parser and its checks: a frame is inert, or it may change these bytes and no others.
 */
#include "nic.h"
#include "transport/state/qp_priv.h"
#include "wire/crc/icrc.h"
#include "wire/ip.h"

struct view {
	const uint8_t *b, *ip, *bth, *end; /* end: after the ICRC */
	struct ur_gid src, dst;
	uint32_t dqpn, psn;
	uint8_t opcode;
	bool icrc_wrong, mac_wrong;
};

static void inert(struct judgement *j, const char *why)
{
	j->is = J_INERT;
	j->why = why;
}

/* --- from Ethernet to UDP: false when it is settled --- */

static bool read_ip4(struct view *v, uint32_t room, uint32_t *l4, struct judgement *j)
{
	const uint8_t *ip = v->ip;
	uint32_t ihl = room < UR_IP4_LEN ? 0 : (ip[0] & 15u) * 4, total = room < UR_IP4_LEN ? 0 : ur_get16(ip + 2);

	if (room < UR_IP4_LEN || ip[0] >> 4 != 4 || ihl < UR_IP4_LEN || total < ihl || total > room || ur_get16(ip + 6) & 0x3fff ||
	    ur_csum_fold(ur_csum_add(0, ip, ihl))) {
		inert(j, "its IP header is wrong");
		return false;
	}
	if (ip[9] != UR_PROTO_UDP)
		return false;
	if (ihl != UR_IP4_LEN) {
		inert(j, "its IP header has options");
		return false;
	}
	v->src = v->dst = ur_gid_from_v4(0);
	memcpy(v->src.raw + 12, ip + 12, 4);
	memcpy(v->dst.raw + 12, ip + 16, 4);
	v->end = ip + total;
	*l4 = UR_IP4_LEN;
	return true;
}

static bool read_ip6(struct view *v, uint32_t room, uint32_t *l4, struct judgement *j)
{
	const uint8_t *ip = v->ip;

	if (room < UR_IP6_LEN || ip[0] >> 4 != 6 || ur_get16(ip + 4) > room - UR_IP6_LEN) {
		inert(j, "its IP header is wrong");
		return false;
	}
	memcpy(v->src.raw, ip + 8, 16);
	memcpy(v->dst.raw, ip + 24, 16);
	if (ur_gid_is_v4(&v->src) || ur_gid_is_v4(&v->dst)) {
		inert(j, "its IPv6 header has IPv4 addresses");
		return false;
	}
	if (ip[6] != UR_PROTO_UDP)
		return false;
	v->end = ip + UR_IP6_LEN + ur_get16(ip + 4);
	*l4 = UR_IP6_LEN;
	return true;
}

/* A kernel cuts a datagram to its UDP length before it hands it to a socket. */
static void cut(struct view *v, const uint8_t *udp)
{
	uint16_t len = ur_get16(udp + 4);

	if (len >= UR_UDP_LEN && udp + len < v->end)
		v->end = udp + len;
}

static bool read_udp(struct fuzz *f, struct view *v, uint32_t l4, struct judgement *j)
{
	const uint8_t *udp = v->ip + l4;

	if (udp + UR_UDP_LEN > v->end || ur_get16(udp + 2) != UR_ROCE_PORT) {
		inert(j, "it is not for the RoCE port");
		return false;
	}
	if (f->bare)
		cut(v, udp);
	if (v->end != udp + ur_get16(udp + 4) || udp + UR_UDP_LEN + UR_BTH_LEN + UR_ICRC_LEN > v->end) {
		inert(j, "its UDP length is wrong");
		return false;
	}
	v->bth = udp + UR_UDP_LEN;
	return true;
}

static bool icrc_right(const struct view *v)
{
	uint8_t want[UR_ICRC_LEN];

	ur_icrc_end(ur_icrc_begin(v->ip, v->ip[0] >> 4, (size_t)(v->end - UR_ICRC_LEN - v->ip)), want);
	return !memcmp(want, v->end - UR_ICRC_LEN, UR_ICRC_LEN);
}

static bool read_bth(struct view *v, struct judgement *j)
{
	const struct ur_opcode_info *op = ur_opcode(v->bth[0]);
	const char *why = NULL;
	long room = v->end - UR_ICRC_LEN - (v->bth + UR_BTH_LEN);

	v->opcode = v->bth[0];
	v->dqpn = ur_get24(v->bth + 5);
	v->psn = ur_get24(v->bth + 9);
	v->icrc_wrong = !icrc_right(v);
	if (v->bth[1] & 15)
		why = "its transport version is wrong";
	else if (!op->name)
		why = "its opcode is unknown";
	else if (room < op->ext_len || room - op->ext_len < (v->bth[1] >> 4 & 3))
		why = "it is too short";
	if (why)
		inert(j, why);
	return !why;
}

static bool read_frame(struct fuzz *f, struct view *v, uint32_t len, struct judgement *j)
{
	uint32_t at = UR_ETH_LEN, l4;
	uint16_t type = ur_get16(v->b + 12);

	if (type == UR_ETHERTYPE_VLAN) {
		if (len < UR_ETH_LEN + UR_VLAN_LEN || ur_get16(v->b + 14) & 0xfff || f->bare)
			return false;
		type = ur_get16(v->b + 16);
		at += UR_VLAN_LEN;
	}
	v->ip = v->b + at;
	v->mac_wrong = !(v->b[0] & 1) && memcmp(v->b, f->mac[VICTIM].b, 6) != 0;
	if (type == UR_ETHERTYPE_IP4)
		return read_ip4(v, len - at, &l4, j) && read_udp(f, v, l4, j) && read_bth(v, j);
	if (type == UR_ETHERTYPE_IP6)
		return read_ip6(v, len - at, &l4, j) && read_udp(f, v, l4, j) && read_bth(v, j);
	return false;
}

/* --- whom it concerns --- */

static struct lane *find_lane(struct fuzz *f, uint32_t qpn)
{
	for (unsigned i = 0; i < LANES; i++)
		if (f->lane[i].qp && f->lane[i].qpn == qpn)
			return &f->lane[i];
	return NULL;
}

/* Who receives what is sent to the group. */
static struct lane *member(struct fuzz *f)
{
	struct lane *l = &f->lane[2 * P_UD];

	return l->qp ? l : NULL;
}

static uint8_t service_of(const struct lane *l)
{
	static const uint8_t services[] = {
		[IBV_QPT_RC] = UR_RC, [IBV_QPT_UC] = UR_UC, [IBV_QPT_UD] = UR_UD, [IBV_QPT_XRC_SEND] = UR_XRC, [IBV_QPT_XRC_RECV] = UR_XRC};

	return services[l->type];
}

static const struct ur_gid *peer_of(struct fuzz *f, const struct lane *l)
{
	return &f->gid[l->host == VICTIM ? pair_of(l)->other : VICTIM];
}

static bool right_direction(const struct lane *l, bool response)
{
	if (l->type == IBV_QPT_XRC_RECV)
		return !response;
	return l->type != IBV_QPT_XRC_SEND || response;
}

/* CNPs and SACKs have services of their own. */
static bool right_service(const struct lane *l, uint8_t opcode)
{
	const uint8_t service = service_of(l);

	if (opcode == UR_OP_CNP)
		return service == UR_RC || service == UR_UC;
	if (opcode == UR_OP_SACK)
		return service == UR_RC || service == UR_XRC;
	return (opcode & 0xe0) == service;
}

/* NULL, or why a QP must not take it. */
static const char *foreign(struct fuzz *f, const struct view *v, const struct lane *l)
{
	bool response = ur_opcode(v->opcode)->flags & UR_OPF_RESPONSE, notification = v->opcode == UR_OP_CNP;
	enum ibv_qp_state st = ur_qp_state(l->qp);

	if (!right_service(l, v->opcode))
		return "its service is not the QP's";
	if (!notification && !right_direction(l, response))
		return "it goes in the wrong direction";
	if (st != IBV_QPS_RTS && st != IBV_QPS_SQD && (st != IBV_QPS_RTR || response) && (st != IBV_QPS_SQE || response))
		return "the QP receives nothing in its state";
	if ((ur_get16(v->bth + 2) & 0x7fff) != 0x7fff)
		return "its P_Key is not the partition's";
	if (l->type != IBV_QPT_UD && !ur_gid_eq(&v->src, peer_of(f, l)))
		return "it does not come from the QP's peer";
	if (l->type == IBV_QPT_UD && ur_get32(v->bth + UR_BTH_LEN) != 0x1ee7)
		return "its Q_Key is not the QP's";
	return NULL;
}

/* --- what it may change --- */

/* The bytes that a remote key stands for, when it grants the access to anyone who uses the lane. */
static void key_spans(struct fuzz *f, const struct lane *l, uint32_t rkey, uint64_t va, uint64_t len, int access, struct spans *may)
{
	for (unsigned i = 0; i < KEYS; i++) {
		const struct key *k = &f->side[VICTIM].key[i];

		if (k->mw && (k->pending || k->unsure) && k->rkey >> 8 == rkey >> 8) {
			may_change(may, regions[R_WINDOW].at, WINDOW_PLAIN);
			continue;
		}
		if (!k->live || k->rkey != rkey || k->pd != domain_of(l) || (k->access & access) != access ||
		    (k->lane >= 0 && k->lane != (int)(l - f->lane)))
			continue;
		if (va - k->iova <= k->len && len <= k->len - (va - k->iova))
			may_change(may, k->at + (uint32_t)(va - k->iova), (uint32_t)len);
	}
}

/* What a WRITE that was begun before may write to. */
static void writable_spans(struct fuzz *f, const struct lane *l, struct spans *may)
{
	for (unsigned i = 0; i < KEYS; i++) {
		const struct key *k = &f->side[VICTIM].key[i];

		if (k->mw && (k->pending || k->unsure))
			may_change(may, regions[R_WINDOW].at, WINDOW_PLAIN);
		else if (k->live && k->pd == domain_of(l) && k->access & IBV_ACCESS_REMOTE_WRITE)
			may_change(may, k->at, k->len);
	}
}

static bool may_read(struct fuzz *f, const struct lane *l, const uint8_t *reth)
{
	struct spans may = {.n = 0};

	if (!ur_get32(reth + 12))
		return true; /* there is nothing in the answer */
	key_spans(f, l, ur_get32(reth + 8), ur_get64(reth), ur_get32(reth + 12), IBV_ACCESS_REMOTE_READ, &may);
	return may.n != 0;
}

/* What came before its turn, and waited for this frame, may change whatever the peer has a right to. */
static void kept_spans(struct fuzz *f, struct lane *l, struct judgement *j)
{
	recv_spans(f, l, &j->may);
	for (unsigned i = 0; i < KEYS; i++) {
		const struct key *k = &f->side[VICTIM].key[i];

		if (k->mw && (k->pending || k->unsure))
			may_change(&j->may, regions[R_WINDOW].at, WINDOW_PLAIN);
		else if (k->live && k->pd == domain_of(l) && k->access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC))
			may_change(&j->may, k->at, k->len);
	}
	j->no_read = false;
}

static void request_spans(struct fuzz *f, const struct view *v, struct lane *l, struct judgement *j)
{
	struct spans *may = &j->may;
	const struct ur_opcode_info *op = ur_opcode(v->opcode);
	const uint8_t *h = v->bth + UR_BTH_LEN;

	if (service_of(l) != UR_UC && service_of(l) != UR_UD && v->psn != l->qp->resp.epsn)
		return; /* a duplicate, or too early */
	if (op->flags & UR_OPF_SEND) {
		recv_spans(f, l, may);
	} else if (op->flags & (UR_OPF_WRITE | UR_OPF_ATOMIC_WRITE)) {
		if (op->flags & UR_OPF_RETH)
			key_spans(f, l, ur_get32(h + op->off_reth + 8), ur_get64(h + op->off_reth), ur_get32(h + op->off_reth + 12),
				  IBV_ACCESS_REMOTE_WRITE, may);
		else
			writable_spans(f, l, may);
	} else if (op->flags & UR_OPF_READ) {
		j->no_read = !may_read(f, l, h + op->off_reth);
	} else if (op->flags & UR_OPF_ATOMIC) {
		key_spans(f, l, ur_get32(h + op->off_atomiceth + 8), ur_get64(h + op->off_atomiceth), 8, IBV_ACCESS_REMOTE_ATOMIC, may);
	}
	if (l->qp->resp.reorder)
		kept_spans(f, l, j);
}

static void what_it_may(struct fuzz *f, const struct view *v, struct lane *l, struct judgement *j)
{
	uint32_t flags = ur_opcode(v->opcode)->flags;

	if (!(flags & UR_OPF_RESPONSE))
		request_spans(f, v, l, j);
	else if (flags & (UR_OPF_PAYLOAD | UR_OPF_ATOMICACKETH) && v->opcode != UR_OP_SACK)
		answer_spans(l, &j->may);
}

/* --- all of it --- */

static void for_gsi(struct fuzz *f, const struct view *v, struct judgement *j)
{
	if (v->opcode != (UR_UD | UR_OP_SEND_ONLY))
		inert(j, "it is no datagram");
	else if ((ur_get16(v->bth + 2) & 0x7fff) != 0x7fff)
		inert(j, "its P_Key is not the partition's");
	else if (ur_get32(v->bth + UR_BTH_LEN) != 0x80010000)
		inert(j, "its Q_Key is not that of QP 1");
	else if (v->end - UR_ICRC_LEN - (v->bth[1] >> 4 & 3) - (v->bth + UR_BTH_LEN + 8) < 256)
		inert(j, "its MAD is too short");
	else
		j->is = J_MAD;
	j->from_peer = ur_gid_eq(&v->src, &f->gid[PEER]) || ur_gid_eq(&v->src, &f->gid[VICTIM]);
	j->spared |= j->is == J_MAD && cm_may_end_spared(f, v->bth + UR_BTH_LEN + 8, j->from_peer);
}

void judge(struct fuzz *f, const uint8_t *b, uint32_t len, struct judgement *j)
{
	struct view v = {.b = b};
	const char *why;
	struct lane *l;

	*j = (struct judgement){.is = J_OTHER};
	if (len < UR_ETH_LEN) {
		inert(j, "it is too short");
		return;
	}
	if (!read_frame(f, &v, len, j))
		return;
	l = v.dqpn == UR_QPN_MCAST ? member(f) : find_lane(f, v.dqpn);
	why = l ? foreign(f, &v, l) : NULL;
	j->spared = l && !why && pair_of(l)->spared;
	if (v.icrc_wrong && !f->bare)
		inert(j, "its ICRC is wrong");
	else if (v.mac_wrong && !f->bare)
		inert(j, "its MAC address is not the victim's");
	else if (!ur_gid_eq(&v.dst, v.dqpn == UR_QPN_MCAST ? &f->group : &f->gid[VICTIM]))
		inert(j, "its IP address is not the victim's");
	else if (v.dqpn == UR_QPN_MCAST && ur_gid_eq(&v.src, &f->gid[VICTIM]))
		inert(j, "the victim has sent it itself");
	else if (v.dqpn == 1)
		for_gsi(f, &v, j);
	else if (!l || l->host != VICTIM)
		inert(j, "the victim has no such QP");
	else if (why)
		inert(j, why);
	else
		j->is = v.icrc_wrong || v.mac_wrong ? J_MAYBE : J_AUTHENTIC;
	if (j->is != J_AUTHENTIC && j->is != J_MAYBE)
		return;
	j->lane = l;
	j->psn = v.psn;
	what_it_may(f, &v, l, j);
}
