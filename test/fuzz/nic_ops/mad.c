/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection management from the attacker: every message, with the ids of connections that there are or with others, from any address. */
#include "nic.h"
#include "wire/msg/cm_msg.h"

#define LEN (UR_ETH_LEN + UR_IP6_LEN + UR_UDP_LEN + UR_BTH_LEN + 8 + UR_MAD_LEN + UR_ICRC_LEN)
_Static_assert(LEN < FRAME_MAX, "a frame holds a MAD");

static const uint64_t services[] = {0x01064321, 0x01114321, 0x01064322, 0x013f0000};

static void put_req(struct fuzz *f, struct ur_cm_msg *m, const struct cm_ids *ids, uint8_t v, uint8_t pdata[UR_RDMA_CM_HDR_LEN])
{
	const struct ur_rdma_cm_hdr hdr = {.ip_version = f->fab.v6 ? 6 : 4, .sport = 9, .src = f->gid[ATTACKER], .dst = f->gid[VICTIM]};

	m->req = (struct ur_cm_req){.local_comm_id = v & 1 ? ids->remote : 0x1000u + v,
				    .service_id = services[v >> 1 & 3],
				    .local_ca_guid = v & 8 ? ids->guid : 99,
				    .local_qpn = v & 16 ? ids->remote_qpn : 0x100u + v,
				    .responder_resources = v,
				    .initiator_depth = v,
				    .remote_response_timeout = v & 31,
				    .local_response_timeout = v & 31,
				    .transport_type = v >> 5 & 1,
				    .path_mtu = v & 64 ? v & 7 : 3,
				    .max_cm_retries = v & 15,
				    .retry_count = 7};
	m->req.primary.local_gid = hdr.src;
	m->req.primary.remote_gid = hdr.dst;
	m->req.primary.ack_timeout = v & 31;
	ur_rdma_cm_hdr_put(pdata, &hdr);
	m->pdata = pdata;
	m->pdata_len = UR_RDMA_CM_HDR_LEN;
}

/* All others but LAP and APR begin with the two ids; the sender's comes first. */
static void put_ids(struct ur_cm_msg *m, const struct cm_ids *ids, uint8_t v)
{
	m->rtu = (struct ur_cm_rtu){v & 1 ? 0x1000u + v : ids->remote, v & 2 ? ids->local ^ v : ids->local};
	if (m->attr == UR_CM_DREQ)
		m->dreq.remote_qpn = v & 4 ? v : ids->local_qpn;
	else if (m->attr == UR_CM_REJ)
		m->rej.reason = v >> 3, m->rej.message = v >> 2 & 3;
	else if (m->attr == UR_CM_MRA)
		m->mra.message = v >> 2 & 3, m->mra.service_timeout = v >> 3;
	else if (m->attr == UR_CM_REP)
		m->rep.local_qpn = v;
}

static bool build(struct fuzz *f, uint8_t mad[UR_MAD_LEN])
{
	struct cm_ids ids = {.guid = 1};
	uint8_t pdata[UR_RDMA_CM_HDR_LEN], v;
	struct ur_cm_msg m = {.attr = (enum ur_cm_attr)(UR_CM_REQ + take(&f->in) % 11)};

	cm_ids(f, take(&f->in), &ids);
	v = take(&f->in);
	m.mad.tid = v & 128 ? ids.tid : v;
	if (m.attr == UR_CM_REQ)
		put_req(f, &m, &ids, v, pdata);
	else if (m.attr == UR_CM_SIDR_REQ)
		m.sidr_req = (struct ur_cm_sidr_req){v, 0xffff, services[v & 3]};
	else if (m.attr == UR_CM_SIDR_REP)
		m.sidr_rep = (struct ur_cm_sidr_rep){.request_id = f->asked ^ (v & 1), .status = v >> 1 & 3, .qpn = v};
	else
		put_ids(&m, &ids, v);
	return ur_cm_msg_build(mad, &m);
}

static void put_frame(struct fuzz *f, const struct ur_gid *from, const uint8_t *mad, uint32_t len)
{
	uint8_t room[LEN + 64];
	struct ur_pkt p = {.data = room, .room = sizeof(room)};
	struct ur_path path = {.ready = true};
	uint8_t *h;

	ur_path_build(&path, &f->mac[ATTACKER], &f->mac[VICTIM], 0, from, &f->gid[VICTIM], 0, 64, 0, 0xc000);
	memcpy(room, path.hdr, path.hdr_len);
	p.l3_off = path.l3_off;
	p.bth_off = path.hdr_len;
	p.ip_version = path.ip_version;
	h = room + p.bth_off;
	ur_bth_put(h, &(struct ur_bth){.opcode = UR_UD | UR_OP_SEND_ONLY, .migreq = true, .pkey = UR_PKEY_DEFAULT, .dqpn = 1});
	ur_deth_put(h + UR_BTH_LEN, &(struct ur_deth){UR_GSI_QKEY, 1});
	memcpy(h + UR_BTH_LEN + 8, mad, len);
	p.len = p.bth_off + UR_BTH_LEN + 8 + len;
	ur_frame_finish(&p, 0);
	f->out.from = ATTACKER;
	f->out.len = (uint16_t)ur_pkt_frame_len(&p);
	ur_pkt_gather(&p, 0, f->out.b);
}

void mad_send(struct fuzz *f)
{
	const struct ur_gid *from[] = {&f->gid[ATTACKER], &f->gid[ATTACKER], &f->stranger, &f->gid[PEER]};
	uint8_t mad[UR_MAD_LEN], how = take(&f->in);

	stage_settle(f);
	if (!build(f, mad))
		return;
	for (unsigned n = how >> 2 & 3; n; n--) {
		uint8_t at = take(&f->in);

		mad[at] = take(&f->in);
	}
	put_frame(f, from[how & 3], mad, how & 128 ? UR_MAD_LEN - 4 : UR_MAD_LEN);
	inject(f, false);
}
