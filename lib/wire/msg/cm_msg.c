/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CM messages: each is a table of fields, which parse and build both walk. A field is a run of bits on the wire (counted from the
 * start of the message, most significant bit first) and an unsigned member of the message's struct, or a run of bytes.
 */
#include "base/bytes.h"
#include "wire/msg/cm_msg.h"

#define CM_DATA_LEN (UR_MAD_LEN - UR_MAD_HDR_LEN)
#define CM_CLASS 7
#define CM_CLASS_VERSION 2
#define METHOD_SEND 3

struct field {
	uint16_t bit;    /* on the wire */
	uint16_t width;  /* in bits; of a byte run, 8 * size */
	uint16_t member; /* offset in the struct */
	uint8_t size;    /* bytes of the member; more than 8: copied as it is */
	uint8_t shift;   /* where the bits stand in the member */
};

#define MEMBER(type, m) (uint16_t) offsetof(struct type, m), (uint8_t)sizeof(((struct type *)0)->m)
#define BITS(type, m, byte, first, n)                                                                                                      \
	{                                                                                                                                  \
		(byte) * 8 + (first), n, MEMBER(type, m), 0                                                                                \
	}
#define BYTE_OF(type, m, byte, sh)                                                                                                         \
	{                                                                                                                                  \
		(byte) * 8, 8, MEMBER(type, m), sh                                                                                         \
	}
#define U8(type, m, byte) BITS(type, m, byte, 0, 8)
#define U16(type, m, byte) BITS(type, m, byte, 0, 16)
#define U24(type, m, byte) BITS(type, m, byte, 0, 24)
#define U32(type, m, byte) BITS(type, m, byte, 0, 32)
#define U64(type, m, byte) BITS(type, m, byte, 0, 64)
#define RUN(type, m, byte)                                                                                                                 \
	{                                                                                                                                  \
		(byte) * 8, sizeof(((struct type *)0)->m) * 8, MEMBER(type, m), 0                                                          \
	}

#define COMM_IDS(type) U32(type, local_comm_id, 0), U32(type, remote_comm_id, 4)

#define REQ_PATH(p, at)                                                                                                                    \
	U16(ur_cm_req, p.local_lid, (at)), U16(ur_cm_req, p.remote_lid, (at) + 2), RUN(ur_cm_req, p.local_gid, (at) + 4),                  \
		RUN(ur_cm_req, p.remote_gid, (at) + 20), BITS(ur_cm_req, p.flow_label, (at) + 36, 0, 20),                                  \
		BITS(ur_cm_req, p.packet_rate, (at) + 39, 2, 6), U8(ur_cm_req, p.traffic_class, (at) + 40),                                \
		U8(ur_cm_req, p.hop_limit, (at) + 41), BITS(ur_cm_req, p.sl, (at) + 42, 0, 4),                                             \
		BITS(ur_cm_req, p.subnet_local, (at) + 42, 4, 1), BITS(ur_cm_req, p.ack_timeout, (at) + 43, 0, 5)

static const struct field req_fields[] = {
	U32(ur_cm_req, local_comm_id, 0),
	U24(ur_cm_req, vendor_id, 5),
	U64(ur_cm_req, service_id, 8),
	U64(ur_cm_req, local_ca_guid, 16),
	U32(ur_cm_req, local_qkey, 28),
	U24(ur_cm_req, local_qpn, 32),
	U8(ur_cm_req, responder_resources, 35),
	U24(ur_cm_req, local_eecn, 36),
	U8(ur_cm_req, initiator_depth, 39),
	U24(ur_cm_req, remote_eecn, 40),
	BITS(ur_cm_req, remote_response_timeout, 43, 0, 5),
	BITS(ur_cm_req, transport_type, 43, 5, 2),
	BITS(ur_cm_req, end_to_end_flow_control, 43, 7, 1),
	U24(ur_cm_req, starting_psn, 44),
	BITS(ur_cm_req, local_response_timeout, 47, 0, 5),
	BITS(ur_cm_req, retry_count, 47, 5, 3),
	U16(ur_cm_req, pkey, 48),
	BITS(ur_cm_req, path_mtu, 50, 0, 4),
	BITS(ur_cm_req, rdc_exists, 50, 4, 1),
	BITS(ur_cm_req, rnr_retry_count, 50, 5, 3),
	BITS(ur_cm_req, max_cm_retries, 51, 0, 4),
	BITS(ur_cm_req, srq, 51, 4, 1),
	BITS(ur_cm_req, ext_transport, 51, 5, 3),
	REQ_PATH(primary, 52),
	REQ_PATH(alternate, 96),
};

static const struct field mra_fields[] = {
	COMM_IDS(ur_cm_mra),
	BITS(ur_cm_mra, message, 8, 0, 2),
	BITS(ur_cm_mra, service_timeout, 9, 0, 5),
};

static const struct field rej_fields[] = {
	COMM_IDS(ur_cm_rej),        BITS(ur_cm_rej, message, 8, 0, 2), BITS(ur_cm_rej, ari_len, 9, 0, 7),
	U16(ur_cm_rej, reason, 10), RUN(ur_cm_rej, ari, 12),
};

static const struct field rep_fields[] = {
	COMM_IDS(ur_cm_rep),
	U32(ur_cm_rep, local_qkey, 8),
	U24(ur_cm_rep, local_qpn, 12),
	BYTE_OF(ur_cm_rep, vendor_id, 15, 16),
	U24(ur_cm_rep, local_eecn, 16),
	BYTE_OF(ur_cm_rep, vendor_id, 19, 8),
	U24(ur_cm_rep, starting_psn, 20),
	BYTE_OF(ur_cm_rep, vendor_id, 23, 0),
	U8(ur_cm_rep, responder_resources, 24),
	U8(ur_cm_rep, initiator_depth, 25),
	BITS(ur_cm_rep, target_ack_delay, 26, 0, 5),
	BITS(ur_cm_rep, failover_accepted, 26, 5, 2),
	BITS(ur_cm_rep, end_to_end_flow_control, 26, 7, 1),
	BITS(ur_cm_rep, rnr_retry_count, 27, 0, 3),
	BITS(ur_cm_rep, srq, 27, 3, 1),
	U64(ur_cm_rep, local_ca_guid, 28),
};

static const struct field rtu_fields[] = {COMM_IDS(ur_cm_rtu)};

static const struct field dreq_fields[] = {COMM_IDS(ur_cm_dreq), U24(ur_cm_dreq, remote_qpn, 8)};

static const struct field sidr_req_fields[] = {
	U32(ur_cm_sidr_req, request_id, 0),
	U16(ur_cm_sidr_req, pkey, 4),
	U64(ur_cm_sidr_req, service_id, 8),
};

static const struct field sidr_rep_fields[] = {
	U32(ur_cm_sidr_rep, request_id, 0),
	U8(ur_cm_sidr_rep, status, 4),
	U8(ur_cm_sidr_rep, info_len, 5),
	BYTE_OF(ur_cm_sidr_rep, vendor_id, 6, 16),
	BYTE_OF(ur_cm_sidr_rep, vendor_id, 7, 8),
	U24(ur_cm_sidr_rep, qpn, 8),
	BYTE_OF(ur_cm_sidr_rep, vendor_id, 11, 0),
	U64(ur_cm_sidr_rep, service_id, 12),
	U32(ur_cm_sidr_rep, qkey, 20),
	RUN(ur_cm_sidr_rep, info, 24),
};

/* The path of a LAP is that of a REQ except for the flow label and the traffic class, which share a word (12.8.1). */
static const struct field lap_fields[] = {
	COMM_IDS(ur_cm_lap),
	U24(ur_cm_lap, remote_qpn, 12),
	BITS(ur_cm_lap, remote_response_timeout, 15, 0, 5),
	U16(ur_cm_lap, alternate.local_lid, 20),
	U16(ur_cm_lap, alternate.remote_lid, 22),
	RUN(ur_cm_lap, alternate.local_gid, 24),
	RUN(ur_cm_lap, alternate.remote_gid, 40),
	BITS(ur_cm_lap, alternate.flow_label, 56, 0, 20),
	U8(ur_cm_lap, alternate.traffic_class, 59),
	U8(ur_cm_lap, alternate.hop_limit, 60),
	BITS(ur_cm_lap, alternate.packet_rate, 61, 2, 6),
	BITS(ur_cm_lap, alternate.sl, 62, 0, 4),
	BITS(ur_cm_lap, alternate.subnet_local, 62, 4, 1),
	BITS(ur_cm_lap, alternate.ack_timeout, 63, 0, 5),
};

static const struct field apr_fields[] = {
	COMM_IDS(ur_cm_apr),
	U8(ur_cm_apr, info_len, 8),
	U8(ur_cm_apr, status, 9),
	RUN(ur_cm_apr, info, 12),
};

/* The private data fills the message from `pdata_off` to its end, except where `pdata_len` says less. */
static const struct format {
	const char *name;
	const struct field *fields;
	uint8_t nfields, pdata_off, pdata_len;
} formats[] = {
#define FORMAT(attr, name, fields, pdata) [UR_CM_##attr - UR_CM_REQ] = {name, fields, ur_array_size(fields), CM_DATA_LEN - (pdata), pdata}
	FORMAT(REQ, "REQ", req_fields, UR_CM_REQ_PDATA),
	FORMAT(MRA, "MRA", mra_fields, UR_CM_MRA_PDATA),
	FORMAT(REJ, "REJ", rej_fields, UR_CM_REJ_PDATA),
	FORMAT(REP, "REP", rep_fields, UR_CM_REP_PDATA),
	FORMAT(RTU, "RTU", rtu_fields, UR_CM_RTU_PDATA),
	FORMAT(DREQ, "DREQ", dreq_fields, UR_CM_DREQ_PDATA),
	FORMAT(DREP, "DREP", rtu_fields, UR_CM_DREP_PDATA),
	FORMAT(SIDR_REQ, "SIDR_REQ", sidr_req_fields, UR_CM_SIDR_REQ_PDATA),
	FORMAT(SIDR_REP, "SIDR_REP", sidr_rep_fields, UR_CM_SIDR_REP_PDATA),
	FORMAT(LAP, "LAP", lap_fields, UR_CM_LAP_PDATA),
	FORMAT(APR, "APR", apr_fields, UR_CM_APR_PDATA),
#undef FORMAT
};

static const struct format *format_of(unsigned attr)
{
	return attr >= UR_CM_REQ && attr - UR_CM_REQ < ur_array_size(formats) ? &formats[attr - UR_CM_REQ] : NULL;
}

/* A field lies within the eight bytes from its first on, all of which belong to the message: those at its end are runs of bytes. */
static uint64_t get_bits(const uint8_t *msg, unsigned bit, unsigned width)
{
	return ur_get64(msg + bit / 8) << bit % 8 >> (64 - width);
}

/* The bits on the wire must be zero. Bits of `v` above `width` are left out. */
static void put_bits(uint8_t *msg, unsigned bit, unsigned width, uint64_t v)
{
	uint8_t *at = msg + bit / 8;

	ur_put64(at, ur_get64(at) | v << (64 - width) >> bit % 8);
}

static uint64_t load(const uint8_t *member, unsigned size)
{
	uint16_t v2;
	uint32_t v4;
	uint64_t v8;

	switch (size) {
	case 1: return *member;
	case 2: memcpy(&v2, member, 2); return v2;
	case 4: memcpy(&v4, member, 4); return v4;
	default: memcpy(&v8, member, 8); return v8;
	}
}

static void store(uint8_t *member, unsigned size, uint64_t v)
{
	uint16_t v2 = (uint16_t)v;
	uint32_t v4 = (uint32_t)v;

	switch (size) {
	case 1: *member = (uint8_t)v; break;
	case 2: memcpy(member, &v2, 2); break;
	case 4: memcpy(member, &v4, 4); break;
	default: memcpy(member, &v, 8);
	}
}

/* `s` is zero to begin with: a field may be one of several that make up its member. */
static void parse_fields(const struct format *f, const uint8_t *msg, void *s)
{
	for (const struct field *d = f->fields; d < f->fields + f->nfields; d++) {
		uint8_t *member = (uint8_t *)s + d->member;

		if (d->size > 8)
			memcpy(member, msg + d->bit / 8, d->size);
		else
			store(member, d->size, load(member, d->size) | get_bits(msg, d->bit, d->width) << d->shift);
	}
}

static void build_fields(const struct format *f, uint8_t *msg, const void *s)
{
	for (const struct field *d = f->fields; d < f->fields + f->nfields; d++) {
		const uint8_t *member = (const uint8_t *)s + d->member;

		if (d->size > 8)
			memcpy(msg + d->bit / 8, member, d->size);
		else
			put_bits(msg, d->bit, d->width, load(member, d->size) >> d->shift);
	}
}

static void parse_mad(const uint8_t *p, struct ur_mad_hdr *h)
{
	h->base_version = p[0];
	h->mgmt_class = p[1];
	h->class_version = p[2];
	h->method = p[3];
	h->status = ur_get16(p + 4);
	h->class_specific = ur_get16(p + 6);
	h->tid = ur_get64(p + 8);
	h->attr_id = ur_get16(p + 16);
	h->attr_mod = ur_get32(p + 20);
}

/* A length on the wire may claim more than the field that it describes can hold. */
static void clamp_lengths(struct ur_cm_msg *m)
{
	if (m->attr == UR_CM_REJ && m->rej.ari_len > UR_CM_REJ_ARI)
		m->rej.ari_len = UR_CM_REJ_ARI;
	else if (m->attr == UR_CM_SIDR_REP && m->sidr_rep.info_len > UR_CM_SIDR_REP_INFO)
		m->sidr_rep.info_len = UR_CM_SIDR_REP_INFO;
	else if (m->attr == UR_CM_APR && m->apr.info_len > UR_CM_APR_INFO)
		m->apr.info_len = UR_CM_APR_INFO;
}

bool ur_cm_msg_parse(const uint8_t mad[UR_MAD_LEN], struct ur_cm_msg *m)
{
	const struct format *f;

	memset(m, 0, sizeof(*m));
	parse_mad(mad, &m->mad);
	f = format_of(m->mad.attr_id);
	if (!f || m->mad.base_version != 1 || m->mad.mgmt_class != CM_CLASS || m->mad.class_version != CM_CLASS_VERSION ||
	    m->mad.method != METHOD_SEND)
		return false;
	m->attr = (enum ur_cm_attr)m->mad.attr_id;
	parse_fields(f, mad + UR_MAD_HDR_LEN, &m->req);
	clamp_lengths(m);
	m->pdata = mad + UR_MAD_HDR_LEN + f->pdata_off;
	m->pdata_len = f->pdata_len;
	return true;
}

bool ur_cm_msg_build(uint8_t mad[UR_MAD_LEN], const struct ur_cm_msg *m)
{
	const struct format *f = format_of(m->attr);

	if (!f || m->pdata_len > f->pdata_len)
		return false;
	memset(mad, 0, UR_MAD_LEN);
	mad[0] = 1;
	mad[1] = CM_CLASS;
	mad[2] = CM_CLASS_VERSION;
	mad[3] = METHOD_SEND;
	ur_put16(mad + 4, m->mad.status);
	ur_put64(mad + 8, m->mad.tid);
	ur_put16(mad + 16, (uint16_t)m->attr);
	ur_put32(mad + 20, m->mad.attr_mod);
	build_fields(f, mad + UR_MAD_HDR_LEN, &m->req);
	if (m->pdata_len)
		memcpy(mad + UR_MAD_HDR_LEN + f->pdata_off, m->pdata, m->pdata_len);
	return true;
}

const char *ur_cm_attr_name(unsigned attr_id)
{
	const struct format *f = format_of(attr_id);

	return f ? f->name : NULL;
}

unsigned ur_cm_pdata_max(enum ur_cm_attr attr)
{
	const struct format *f = format_of(attr);

	return f ? f->pdata_len : 0;
}

static void get_addr(const uint8_t *p, bool v4, struct ur_gid *g)
{
	memcpy(g->raw, p, 16);
	if (v4) {
		memset(g->raw, 0, 10);
		memset(g->raw + 10, 0xff, 2);
	}
}

static void put_addr(uint8_t *p, bool v4, const struct ur_gid *g)
{
	memcpy(p, g->raw, 16);
	if (v4)
		memset(p, 0, 12);
}

bool ur_rdma_cm_hdr_get(const uint8_t *p, unsigned len, struct ur_rdma_cm_hdr *h)
{
	if (len < UR_RDMA_CM_HDR_LEN || p[0] != 0)
		return false;
	h->ip_version = p[1] >> 4;
	if (h->ip_version != 4 && h->ip_version != 6)
		return false;
	h->sport = ur_get16(p + 2);
	get_addr(p + 4, h->ip_version == 4, &h->src);
	get_addr(p + 20, h->ip_version == 4, &h->dst);
	return true;
}

void ur_rdma_cm_hdr_put(uint8_t p[UR_RDMA_CM_HDR_LEN], const struct ur_rdma_cm_hdr *h)
{
	p[0] = 0;
	p[1] = (uint8_t)(h->ip_version << 4);
	ur_put16(p + 2, h->sport);
	put_addr(p + 4, h->ip_version == 4, &h->src);
	put_addr(p + 20, h->ip_version == 4, &h->dst);
}

const char *ur_cm_rej_text(uint16_t reason)
{
	static const char *const texts[] = {
		[1] = "no QP is available",
		[2] = "no end-to-end context is available",
		[3] = "no resources are available",
		[4] = "it waited too long for the next message",
		[5] = "the request is unsupported",
		[6] = "the communication id is not valid",
		[7] = "the communication instance is not valid",
		[8] = "nobody listens there",
		[9] = "the transport type is not valid",
		[10] = "it still has a connection with this QP: a stale connection",
		[11] = "the reliable datagram channel does not exist",
		[12] = "the GID is not valid",
		[13] = "the LID is not valid",
		[14] = "the service level is not valid",
		[15] = "the traffic class is not valid",
		[16] = "the hop limit is not valid",
		[17] = "the packet rate is not valid",
		[18] = "the GID of the alternate path is not valid",
		[19] = "the LID of the alternate path is not valid",
		[20] = "the service level of the alternate path is not valid",
		[21] = "the traffic class of the alternate path is not valid",
		[22] = "the hop limit of the alternate path is not valid",
		[23] = "the packet rate of the alternate path is not valid",
		[24] = "it redirects to another port and connection manager",
		[25] = "it redirects to another port",
		[26] = "the path MTU is not valid",
		[27] = "it does not have the resources for this number of READs",
		[28] = "the program rejects it",
		[29] = "the RNR retry count is not valid",
		[30] = "the communication id is in use",
		[31] = "the class version is not valid",
		[32] = "the flow label is not valid",
		[33] = "the flow label of the alternate path is not valid",
		[34] = "for a reason that the specification reserves",
		[35] = "an option of the vendor is not supported",
	};

	return reason < ur_array_size(texts) && texts[reason] ? texts[reason] : "for a reason without a name";
}
