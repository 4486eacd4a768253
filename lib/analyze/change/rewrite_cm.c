/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of the connection manager: what in them names hosts, QPs and PSNs, and their private data. */
#include "analyze/change/rewrite_priv.h"
#include "wire/frame.h"
#include "wire/msg/cm_msg.h"

enum { ALTERNATE_GID = 18, CM_REDIRECTED = 24, PORT_REDIRECTED = 25 }; /* reasons of a REJ that no uroce host gives */

static void path(struct ur_rewrite *w, struct ur_cm_path_rec *r)
{
	r->local_gid = rewrite_addr(w, &r->local_gid);
	r->remote_gid = rewrite_addr(w, &r->remote_gid);
}

static void req(struct ur_rewrite *w, const struct an_pkt *p, struct ur_cm_req *r)
{
	r->local_qpn = rewrite_qpn(w, &p->src, r->local_qpn);
	r->starting_psn = rewrite_psn(w, &p->src, &p->dst, r->starting_psn);
	r->local_ca_guid = rewrite_guid(w, r->local_ca_guid);
	path(w, &r->primary);
	path(w, &r->alternate);
}

static void rep(struct ur_rewrite *w, const struct an_pkt *p, struct ur_cm_rep *r)
{
	r->local_qpn = rewrite_qpn(w, &p->src, r->local_qpn);
	r->local_eecn = rewrite_qpn(w, &p->src, r->local_eecn); /* that of an XRC QP stands here */
	r->starting_psn = rewrite_psn(w, &p->src, &p->dst, r->starting_psn);
	r->local_ca_guid = rewrite_guid(w, r->local_ca_guid);
}

static void gid_at(struct ur_rewrite *w, uint8_t *at)
{
	struct ur_gid g;

	memcpy(g.raw, at, sizeof(g.raw));
	g = rewrite_addr(w, &g);
	memcpy(at, g.raw, sizeof(g.raw));
}

/*
 * Additional information: a GID with some reasons (IBTA volume 1, 12.6.7.2), with one a ClassPortInfo, of which there are two GIDs, and
 * otherwise the program's own.
 */
static void rej(struct ur_rewrite *w, struct ur_cm_rej *r)
{
	static const struct {
		uint16_t reason;
		uint8_t at[2], n;
	} gids[] = {{UR_CM_REJ_INVALID_GID, {0}, 1}, {ALTERNATE_GID, {0}, 1}, {CM_REDIRECTED, {8, 40}, 2}, {PORT_REDIRECTED, {8, 40}, 2}};
	uint8_t was[sizeof(r->ari)];

	memcpy(was, r->ari, sizeof(was));
	rewrite_data(w, r->ari, r->ari_len);
	if (w->c.payload != UR_PAYLOAD_KEEP)
		memset(r->ari + r->ari_len, 0, sizeof(was) - r->ari_len);
	for (unsigned i = 0; i < ur_array_size(gids); i++)
		for (unsigned k = 0; gids[i].reason == r->reason && k < gids[i].n; k++) {
			memcpy(r->ari + gids[i].at[k], was + gids[i].at[k], sizeof(struct ur_gid));
			gid_at(w, r->ari + gids[i].at[k]);
		}
}

static unsigned header(struct ur_rewrite *w, uint64_t service_id, uint8_t *pdata, unsigned len)
{
	struct ur_rdma_cm_hdr h;

	if (!an_cm_ip_service(service_id) || !ur_rdma_cm_hdr_get(pdata, len, &h))
		return 0;
	h.src = rewrite_addr(w, &h.src);
	h.dst = rewrite_addr(w, &h.dst);
	ur_rdma_cm_hdr_put(pdata, &h);
	return UR_RDMA_CM_HDR_LEN;
}

static void private_data(struct ur_rewrite *w, const struct ur_cm_msg *m, uint8_t *pdata)
{
	static const uint8_t zero[UR_CM_PDATA_MAX];
	unsigned at = 0;

	if (m->attr == UR_CM_REQ)
		at = header(w, m->req.service_id, pdata, m->pdata_len);
	else if (m->attr == UR_CM_SIDR_REQ)
		at = header(w, m->sidr_req.service_id, pdata, m->pdata_len);
	if (memcmp(pdata + at, zero, m->pdata_len - at) != 0)
		rewrite_data(w, pdata + at, m->pdata_len - at);
}

static bool whole_message(struct ur_rewrite *w, const struct an_pkt *p, uint8_t mad[UR_MAD_LEN])
{
	uint8_t pdata[UR_CM_PDATA_MAX];
	struct ur_cm_msg m;

	if (!ur_cm_msg_parse(mad, &m))
		return false;
	memcpy(pdata, m.pdata, m.pdata_len);
	m.pdata = pdata;
	switch (m.attr) {
	case UR_CM_REQ: req(w, p, &m.req); break;
	case UR_CM_REP: rep(w, p, &m.rep); break;
	case UR_CM_REJ: rej(w, &m.rej); break;
	case UR_CM_DREQ: m.dreq.remote_qpn = rewrite_qpn(w, &p->dst, m.dreq.remote_qpn); break;
	case UR_CM_SIDR_REP:
		m.sidr_rep.qpn = rewrite_qpn(w, &p->src, m.sidr_rep.qpn);
		rewrite_data(w, m.sidr_rep.info, m.sidr_rep.info_len);
		break;
	case UR_CM_LAP:
		m.lap.remote_qpn = rewrite_qpn(w, &p->dst, m.lap.remote_qpn);
		path(w, &m.lap.alternate);
		break;
	case UR_CM_APR: rewrite_data(w, m.apr.info, m.apr.info_len); break;
	case UR_CM_MRA:
	case UR_CM_RTU:
	case UR_CM_DREP:
	case UR_CM_SIDR_REQ: break;
	}
	private_data(w, &m, pdata);
	return ur_cm_msg_build(mad, &m);
}

/* What was cut off is taken for zeros; an address of which the beginning is here becomes the beginning of another one. */
bool rewrite_cm(struct ur_rewrite *w, const struct an_pkt *p, uint8_t *mad, size_t have)
{
	uint8_t room[UR_MAD_LEN] = {0};

	if (have >= UR_MAD_LEN)
		return whole_message(w, p, mad);
	memcpy(room, mad, have);
	if (!whole_message(w, p, room))
		return false;
	memcpy(mad, room, have);
	return true;
}
