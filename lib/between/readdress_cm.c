/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses in messages of connection management (IBTA volume 1, 12.6 to 12.11): each is at a fixed place, in a field that is always
 * there or has a length. They are recognised by their value: what is not the address of one of the two hosts stays.
 */
#include "between/readdress.h"
#include "wire/frame.h"
#include "wire/msg/cm_msg.h"

#define IP_SERVICE 1 /* the first five bytes of a service id of an IP based port space (A11.3) */

/* Of the message, after the header of the MAD. */
static const struct {
	uint16_t attr;
	uint8_t at;
	uint8_t needs; /* length that the additional information around it must have; 0: the field is always whole */
} places[] = {
	{UR_CM_REQ, 56, 0},       {UR_CM_REQ, 72, 0},  /* primary path: local and remote GID */
	{UR_CM_REQ, 100, 0},      {UR_CM_REQ, 116, 0}, /* alternate path */
	{UR_CM_LAP, 24, 0},       {UR_CM_LAP, 40, 0},  /* alternate path */
	{UR_CM_REJ, 12, 16},      {UR_CM_REJ, 20, 24}, /* a GID that would do, or RedirectGID of a ClassPortInfo */
	{UR_CM_APR, 12, 16},      {UR_CM_APR, 20, 24}, /* the same */
	{UR_CM_SIDR_REP, 32, 24},                      /* of a ClassPortInfo */
};

/* Where private data begins that may have a header of the RDMA CM, and the service id. */
static const struct {
	uint16_t attr;
	uint8_t service_at, at;
} ip_headers[] = {{UR_CM_REQ, 8, 140}, {UR_CM_SIDR_REQ, 8, 16}};

/* Of the additional information. */
static unsigned info_len(const struct ur_cm_msg *m)
{
	switch (m->attr) {
	case UR_CM_REJ: return m->rej.ari_len;
	case UR_CM_APR: return m->apr.info_len;
	case UR_CM_SIDR_REP: return m->sidr_rep.info_len;
	default: return 0;
	}
}

static bool replace(uint8_t *at, const struct ur_readdress_pair pair[2])
{
	for (unsigned i = 0; i < 2; i++) {
		if (memcmp(at, pair[i].from.raw, 16) != 0)
			continue;
		memcpy(at, pair[i].to.raw, 16);
		return true;
	}
	return false;
}

/* Both addresses are of one family; one of them alone may be ours to change, and the other one is IPv4 in the form of a GID then. */
static bool replace_ip(uint8_t *at, const struct ur_readdress_pair pair[2])
{
	struct ur_rdma_cm_hdr h;
	bool any;

	if (!ur_rdma_cm_hdr_get(at, UR_RDMA_CM_HDR_LEN, &h))
		return false;
	any = replace(h.src.raw, pair);
	any |= replace(h.dst.raw, pair);
	if (!any)
		return false;
	h.ip_version = ur_gid_is_v4(&h.src) && ur_gid_is_v4(&h.dst) ? 4 : 6;
	ur_rdma_cm_hdr_put(at, &h);
	return true;
}

bool ur_readdress_is_cm(const struct ur_bth *bth, uint32_t len)
{
	return bth->dqpn == 1 && bth->opcode == (UR_UD | UR_OP_SEND_ONLY) && !bth->pad &&
	       len == UR_READDRESS_MAD + UR_MAD_LEN + UR_ICRC_LEN;
}

bool ur_readdress_cm(uint8_t *mad, const struct ur_readdress_pair pair[2])
{
	uint8_t *msg = mad + UR_MAD_HDR_LEN;
	struct ur_cm_msg m;
	bool any = false;

	if (!ur_cm_msg_parse(mad, &m))
		return false;
	for (unsigned i = 0; i < ur_array_size(places); i++)
		if (places[i].attr == m.attr && info_len(&m) >= places[i].needs)
			any |= replace(msg + places[i].at, pair);
	for (unsigned i = 0; i < ur_array_size(ip_headers); i++)
		if (ip_headers[i].attr == m.attr && ur_get64(msg + ip_headers[i].service_at) >> 24 == IP_SERVICE)
			any |= replace_ip(msg + ip_headers[i].at, pair);
	return any;
}
