/* SPDX-License-Identifier: BSD-3-Clause */
/* CM messages: every field at its maximum sets exactly its own bits; random MADs survive parse and build. */
#include <CUnit/CUnit.h>
#include <string.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "wire/msg/cm_msg.h"

void ur_suite_cm_msg(void);

/* Where a member of a message's struct stands: bits first to first + width - 1 of the byte at `byte` of the message and on. */
struct row {
	enum ur_cm_attr attr;
	const char *what;
	size_t member, size;
	unsigned byte, first, width;
};

#define R(attr, type, m, byte, first, width)                                                                                               \
	{                                                                                                                                  \
		UR_CM_##attr, #attr " " #m, offsetof(struct type, m), sizeof(((struct type *)0)->m), byte, first, width                    \
	}
#define IDS(attr, type) R(attr, type, local_comm_id, 0, 0, 32), R(attr, type, remote_comm_id, 4, 0, 32)
#define PATH(attr, type, p, llid, flow, rate, tc, hop, at_sl, ack)                                                                         \
	R(attr, type, p.local_lid, llid, 0, 16), R(attr, type, p.remote_lid, (llid) + 2, 0, 16),                                           \
		R(attr, type, p.local_gid, (llid) + 4, 0, 128), R(attr, type, p.remote_gid, (llid) + 20, 0, 128),                          \
		R(attr, type, p.flow_label, flow, 0, 20), R(attr, type, p.packet_rate, rate, 2, 6),                                        \
		R(attr, type, p.traffic_class, tc, 0, 8), R(attr, type, p.hop_limit, hop, 0, 8), R(attr, type, p.sl, at_sl, 0, 4),         \
		R(attr, type, p.subnet_local, at_sl, 4, 1), R(attr, type, p.ack_timeout, ack, 0, 5)

static const struct row rows[] = {
	R(REQ, ur_cm_req, local_comm_id, 0, 0, 32),
	R(REQ, ur_cm_req, vendor_id, 5, 0, 24),
	R(REQ, ur_cm_req, service_id, 8, 0, 64),
	R(REQ, ur_cm_req, local_ca_guid, 16, 0, 64),
	R(REQ, ur_cm_req, local_qkey, 28, 0, 32),
	R(REQ, ur_cm_req, local_qpn, 32, 0, 24),
	R(REQ, ur_cm_req, responder_resources, 35, 0, 8),
	R(REQ, ur_cm_req, local_eecn, 36, 0, 24),
	R(REQ, ur_cm_req, initiator_depth, 39, 0, 8),
	R(REQ, ur_cm_req, remote_eecn, 40, 0, 24),
	R(REQ, ur_cm_req, remote_response_timeout, 43, 0, 5),
	R(REQ, ur_cm_req, transport_type, 43, 5, 2),
	R(REQ, ur_cm_req, end_to_end_flow_control, 43, 7, 1),
	R(REQ, ur_cm_req, starting_psn, 44, 0, 24),
	R(REQ, ur_cm_req, local_response_timeout, 47, 0, 5),
	R(REQ, ur_cm_req, retry_count, 47, 5, 3),
	R(REQ, ur_cm_req, pkey, 48, 0, 16),
	R(REQ, ur_cm_req, path_mtu, 50, 0, 4),
	R(REQ, ur_cm_req, rdc_exists, 50, 4, 1),
	R(REQ, ur_cm_req, rnr_retry_count, 50, 5, 3),
	R(REQ, ur_cm_req, max_cm_retries, 51, 0, 4),
	R(REQ, ur_cm_req, srq, 51, 4, 1),
	R(REQ, ur_cm_req, ext_transport, 51, 5, 3),
	PATH(REQ, ur_cm_req, primary, 52, 88, 91, 92, 93, 94, 95),
	PATH(REQ, ur_cm_req, alternate, 96, 132, 135, 136, 137, 138, 139),
	IDS(REP, ur_cm_rep),
	R(REP, ur_cm_rep, local_qkey, 8, 0, 32),
	R(REP, ur_cm_rep, local_qpn, 12, 0, 24),
	R(REP, ur_cm_rep, local_eecn, 16, 0, 24),
	R(REP, ur_cm_rep, starting_psn, 20, 0, 24),
	R(REP, ur_cm_rep, responder_resources, 24, 0, 8),
	R(REP, ur_cm_rep, initiator_depth, 25, 0, 8),
	R(REP, ur_cm_rep, target_ack_delay, 26, 0, 5),
	R(REP, ur_cm_rep, failover_accepted, 26, 5, 2),
	R(REP, ur_cm_rep, end_to_end_flow_control, 26, 7, 1),
	R(REP, ur_cm_rep, rnr_retry_count, 27, 0, 3),
	R(REP, ur_cm_rep, srq, 27, 3, 1),
	R(REP, ur_cm_rep, local_ca_guid, 28, 0, 64),
	IDS(RTU, ur_cm_rtu),
	IDS(DREP, ur_cm_rtu),
	IDS(DREQ, ur_cm_dreq),
	R(DREQ, ur_cm_dreq, remote_qpn, 8, 0, 24),
	IDS(MRA, ur_cm_mra),
	R(MRA, ur_cm_mra, message, 8, 0, 2),
	R(MRA, ur_cm_mra, service_timeout, 9, 0, 5),
	IDS(REJ, ur_cm_rej),
	R(REJ, ur_cm_rej, message, 8, 0, 2),
	R(REJ, ur_cm_rej, ari_len, 9, 0, 7),
	R(REJ, ur_cm_rej, reason, 10, 0, 16),
	R(REJ, ur_cm_rej, ari, 12, 0, 72 * 8),
	R(SIDR_REQ, ur_cm_sidr_req, request_id, 0, 0, 32),
	R(SIDR_REQ, ur_cm_sidr_req, pkey, 4, 0, 16),
	R(SIDR_REQ, ur_cm_sidr_req, service_id, 8, 0, 64),
	R(SIDR_REP, ur_cm_sidr_rep, request_id, 0, 0, 32),
	R(SIDR_REP, ur_cm_sidr_rep, status, 4, 0, 8),
	R(SIDR_REP, ur_cm_sidr_rep, info_len, 5, 0, 8),
	R(SIDR_REP, ur_cm_sidr_rep, qpn, 8, 0, 24),
	R(SIDR_REP, ur_cm_sidr_rep, service_id, 12, 0, 64),
	R(SIDR_REP, ur_cm_sidr_rep, qkey, 20, 0, 32),
	R(SIDR_REP, ur_cm_sidr_rep, info, 24, 0, 72 * 8),
	IDS(LAP, ur_cm_lap),
	R(LAP, ur_cm_lap, remote_qpn, 12, 0, 24),
	R(LAP, ur_cm_lap, remote_response_timeout, 15, 0, 5),
	PATH(LAP, ur_cm_lap, alternate, 20, 56, 61, 59, 60, 62, 63),
	IDS(APR, ur_cm_apr),
	R(APR, ur_cm_apr, info_len, 8, 0, 8),
	R(APR, ur_cm_apr, status, 9, 0, 8),
	R(APR, ur_cm_apr, info, 12, 0, 72 * 8),
};

static const struct {
	enum ur_cm_attr attr;
	const char *name;
	unsigned pdata_off, pdata_len;
} messages[] = {
	{UR_CM_REQ, "REQ", 140, 92},           {UR_CM_MRA, "MRA", 10, 222}, {UR_CM_REJ, "REJ", 84, 148},
	{UR_CM_REP, "REP", 36, 196},           {UR_CM_RTU, "RTU", 8, 224},  {UR_CM_DREQ, "DREQ", 12, 220},
	{UR_CM_DREP, "DREP", 8, 224},          {UR_CM_LAP, "LAP", 64, 168}, {UR_CM_SIDR_REQ, "SIDR_REQ", 16, 216},
	{UR_CM_SIDR_REP, "SIDR_REP", 96, 136}, {UR_CM_APR, "APR", 84, 148},
};

static bool length_field(const struct row *r)
{
	return strstr(r->what, "_len") != NULL;
}

static void cm_msg__each_field_at_its_maximum(void)
{
	for (unsigned i = 0; i < ur_array_size(rows); i++) {
		const struct row *r = &rows[i];
		uint8_t mad[UR_MAD_LEN], want[UR_MAD_LEN] = {1, 7, 2, 3};
		struct ur_cm_msg m, back;

		memset(&m, 0, sizeof(m));
		m.attr = r->attr;
		memset((uint8_t *)&m.req + r->member, 0xff, r->size); /* more bits than the field has: the rest must not leak */
		ur_put16(want + 16, (uint16_t)r->attr);
		for (unsigned bit = r->byte * 8 + r->first; bit < r->byte * 8 + r->first + r->width; bit++)
			want[UR_MAD_HDR_LEN + bit / 8] |= (uint8_t)(0x80 >> bit % 8);
		CU_ASSERT_TRUE_FATAL(ur_cm_msg_build(mad, &m));
		if (memcmp(mad, want, UR_MAD_LEN) != 0)
			CU_FAIL(r->what);
		CU_ASSERT_TRUE(ur_cm_msg_parse(mad, &back));
		if (length_field(r))
			continue; /* cut to what the field behind it holds: cm_msg_parse__lengths_are_cut */
		CU_ASSERT_TRUE(ur_cm_msg_build(mad, &back));
		if (memcmp(mad, want, UR_MAD_LEN) != 0)
			CU_FAIL(r->what);
	}
}

static void cm_msg__rep_vendor_id_is_scattered(void)
{
	struct ur_cm_msg m, back;
	uint8_t mad[UR_MAD_LEN];

	memset(&m, 0, sizeof(m));
	m.attr = UR_CM_REP;
	m.rep.vendor_id = 0x123456;
	CU_ASSERT_TRUE(ur_cm_msg_build(mad, &m));
	CU_ASSERT_EQUAL(mad[24 + 15], 0x12);
	CU_ASSERT_EQUAL(mad[24 + 19], 0x34);
	CU_ASSERT_EQUAL(mad[24 + 23], 0x56);
	CU_ASSERT_TRUE(ur_cm_msg_parse(mad, &back));
	CU_ASSERT_EQUAL(back.rep.vendor_id, 0x123456);
}

static void cm_msg__sidr_rep_vendor_id_is_scattered(void)
{
	struct ur_cm_msg m = {.attr = UR_CM_SIDR_REP, .sidr_rep = {.vendor_id = 0x123456}}, back;
	uint8_t mad[UR_MAD_LEN];

	CU_ASSERT_TRUE(ur_cm_msg_build(mad, &m));
	CU_ASSERT_EQUAL(mad[24 + 6], 0x12);
	CU_ASSERT_EQUAL(mad[24 + 7], 0x34);
	CU_ASSERT_EQUAL(mad[24 + 11], 0x56);
	CU_ASSERT_TRUE(ur_cm_msg_parse(mad, &back));
	CU_ASSERT_EQUAL(back.sidr_rep.vendor_id, 0x123456);
}

static void cm_msg__flow_label_is_20_bits(void)
{
	struct ur_cm_msg m, back;
	uint8_t mad[UR_MAD_LEN];

	memset(&m, 0, sizeof(m));
	m.attr = UR_CM_REQ;
	m.req.primary.flow_label = 0xfbcde;
	m.req.primary.packet_rate = 0x2a;
	CU_ASSERT_TRUE(ur_cm_msg_build(mad, &m));
	CU_ASSERT_EQUAL(ur_get32(mad + 24 + 88), 0xfbcde02a);
	CU_ASSERT_TRUE(ur_cm_msg_parse(mad, &back));
	CU_ASSERT_EQUAL(back.req.primary.flow_label, 0xfbcde);
	CU_ASSERT_EQUAL(back.req.primary.packet_rate, 0x2a);
}

static void cm_msg__private_data(void)
{
	for (unsigned i = 0; i < ur_array_size(messages); i++) {
		uint8_t mad[UR_MAD_LEN], data[UR_CM_PDATA_MAX + 1];
		unsigned off = UR_MAD_HDR_LEN + messages[i].pdata_off, len = messages[i].pdata_len;
		struct ur_cm_msg m, back;

		CU_ASSERT_EQUAL(ur_cm_pdata_max(messages[i].attr), len);
		CU_ASSERT_STRING_EQUAL(ur_cm_attr_name(messages[i].attr), messages[i].name);
		memset(&m, 0, sizeof(m));
		memset(data, 0xc3, sizeof(data));
		m.attr = messages[i].attr;
		m.pdata = data;
		m.pdata_len = len + 1;
		CU_ASSERT_FALSE(ur_cm_msg_build(mad, &m));
		m.pdata_len = len;
		CU_ASSERT_TRUE(ur_cm_msg_build(mad, &m));
		CU_ASSERT_EQUAL(memcmp(mad + off, data, len), 0);
		CU_ASSERT_EQUAL(mad[off - 1], 0);
		CU_ASSERT_TRUE(ur_cm_msg_parse(mad, &back));
		CU_ASSERT_EQUAL(back.pdata_len, len);
		CU_ASSERT_PTR_EQUAL(back.pdata, mad + off);
		memset(mad, 0xff, sizeof(mad));
		m.pdata_len = 3;
		CU_ASSERT_TRUE(ur_cm_msg_build(mad, &m));
		CU_ASSERT_EQUAL(memcmp(mad + off, data, 3), 0);
		CU_ASSERT_EQUAL(mad[off + 3], 0); /* zero filled */
	}
}

static void cm_msg__mad_header(void)
{
	struct ur_cm_msg m, back;
	uint8_t mad[UR_MAD_LEN];

	memset(&m, 0, sizeof(m));
	m.attr = UR_CM_DREP;
	m.mad.status = 0x1234;
	m.mad.tid = 0x0102030405060708;
	m.mad.attr_mod = 0xa1b2c3d4;
	CU_ASSERT_TRUE(ur_cm_msg_build(mad, &m));
	CU_ASSERT_EQUAL(memcmp(mad, "\x01\x07\x02\x03\x12\x34\0\0\x01\x02\x03\x04\x05\x06\x07\x08\x00\x16\0\0\xa1\xb2\xc3\xd4", 24), 0);
	CU_ASSERT_TRUE(ur_cm_msg_parse(mad, &back));
	CU_ASSERT_EQUAL(back.attr, UR_CM_DREP);
	CU_ASSERT_EQUAL(back.mad.attr_id, UR_CM_DREP);
	CU_ASSERT_EQUAL(back.mad.status, 0x1234);
	CU_ASSERT_EQUAL(back.mad.tid, 0x0102030405060708);
	CU_ASSERT_EQUAL(back.mad.attr_mod, 0xa1b2c3d4);
}

static void cm_msg_parse__refused(void)
{
	static const struct {
		uint8_t off, value;
	} bad[] = {{0, 2}, {1, 3}, {2, 1}, {3, 0x81}, {16, 1}, {17, 0x0f}, {17, 0x1b}, {17, 0xff}, {17, 0}};

	for (unsigned i = 0; i < ur_array_size(bad); i++) {
		uint8_t mad[UR_MAD_LEN] = {1, 7, 2, 3, [17] = UR_CM_REQ};
		struct ur_cm_msg m;

		CU_ASSERT_TRUE(ur_cm_msg_parse(mad, &m));
		mad[bad[i].off] = bad[i].value;
		CU_ASSERT_FALSE(ur_cm_msg_parse(mad, &m));
	}
	CU_ASSERT_PTR_NULL(ur_cm_attr_name(0x0f));
	CU_ASSERT_PTR_NULL(ur_cm_attr_name(0x1b));
	CU_ASSERT_EQUAL(ur_cm_pdata_max((enum ur_cm_attr)0x1b), 0);
}

static void cm_msg_build__unknown_attribute(void)
{
	uint8_t mad[UR_MAD_LEN];
	struct ur_cm_msg m;

	memset(&m, 0, sizeof(m));
	CU_ASSERT_FALSE(ur_cm_msg_build(mad, &m));
	m.attr = (enum ur_cm_attr)0x1b;
	CU_ASSERT_FALSE(ur_cm_msg_build(mad, &m));
}

static void cm_msg_parse__lengths_are_cut(void)
{
	uint8_t mad[UR_MAD_LEN] = {1, 7, 2, 3};
	struct ur_cm_msg m;

	memset(mad + 24, 0xff, 232);
	mad[17] = UR_CM_REJ;
	CU_ASSERT_TRUE(ur_cm_msg_parse(mad, &m));
	CU_ASSERT_EQUAL(m.rej.ari_len, UR_CM_REJ_ARI);
	mad[17] = UR_CM_SIDR_REP;
	CU_ASSERT_TRUE(ur_cm_msg_parse(mad, &m));
	CU_ASSERT_EQUAL(m.sidr_rep.info_len, UR_CM_SIDR_REP_INFO);
	mad[17] = UR_CM_APR;
	CU_ASSERT_TRUE(ur_cm_msg_parse(mad, &m));
	CU_ASSERT_EQUAL(m.apr.info_len, UR_CM_APR_INFO);
	mad[24 + 8] = 5;
	CU_ASSERT_TRUE(ur_cm_msg_parse(mad, &m));
	CU_ASSERT_EQUAL(m.apr.info_len, 5);
}

/* Parse, build, parse again: the second parse sees what the first saw, whatever the reserved bits held. */
static void cm_msg__random_round_trip(void)
{
	struct ur_rng rng = {11};
	unsigned wrong = 0;

	for (unsigned i = 0; i < 2000; i++) {
		uint8_t mad[UR_MAD_LEN], once[UR_MAD_LEN], twice[UR_MAD_LEN];
		struct ur_cm_msg m;

		for (unsigned j = 0; j < UR_MAD_LEN; j++)
			mad[j] = (uint8_t)ur_rng_u32(&rng);
		memcpy(mad, "\x01\x07\x02\x03", 4);
		mad[16] = 0;
		mad[17] = messages[i % ur_array_size(messages)].attr;
		wrong += !ur_cm_msg_parse(mad, &m) || !ur_cm_msg_build(once, &m);
		wrong += !ur_cm_msg_parse(once, &m) || !ur_cm_msg_build(twice, &m);
		wrong += memcmp(once, twice, UR_MAD_LEN) != 0;
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

static void rdma_cm_hdr__bytes(void)
{
	static const uint8_t want4[36] = {0, 0x40, 0xe2, 0xa0, [16] = 10, 99, 0, 3, [32] = 10, 99, 0, 2};
	struct ur_rdma_cm_hdr h = {.ip_version = 4, .sport = 0xe2a0}, back;
	uint8_t p[36];

	h.src = (struct ur_gid){{[10] = 0xff, 0xff, 10, 99, 0, 3}};
	h.dst = (struct ur_gid){{[10] = 0xff, 0xff, 10, 99, 0, 2}};
	ur_rdma_cm_hdr_put(p, &h);
	CU_ASSERT_EQUAL(memcmp(p, want4, 36), 0);
	CU_ASSERT_TRUE(ur_rdma_cm_hdr_get(p, 36, &back));
	CU_ASSERT_TRUE(back.ip_version == 4 && back.sport == 0xe2a0);
	CU_ASSERT_EQUAL(memcmp(&back.src, &h.src, 16) | memcmp(&back.dst, &h.dst, 16), 0);

	h.ip_version = 6;
	h.src = (struct ur_gid){{0xfd, 0x99, [15] = 3}};
	h.dst = (struct ur_gid){{0xfd, 0x99, [15] = 2}};
	ur_rdma_cm_hdr_put(p, &h);
	CU_ASSERT_EQUAL(p[1], 0x60);
	CU_ASSERT_EQUAL(memcmp(p + 4, h.src.raw, 16) | memcmp(p + 20, h.dst.raw, 16), 0);
	CU_ASSERT_TRUE(ur_rdma_cm_hdr_get(p, 92, &back));
	CU_ASSERT_EQUAL(memcmp(&back.src, &h.src, 16) | memcmp(&back.dst, &h.dst, 16), 0);
}

static void rdma_cm_hdr__refused(void)
{
	uint8_t p[36] = {0, 0x40};
	struct ur_rdma_cm_hdr h;

	CU_ASSERT_TRUE(ur_rdma_cm_hdr_get(p, 36, &h));
	CU_ASSERT_FALSE(ur_rdma_cm_hdr_get(p, 35, &h));
	p[0] = 1;
	CU_ASSERT_FALSE(ur_rdma_cm_hdr_get(p, 36, &h));
	p[0] = 0;
	p[1] = 0x50;
	CU_ASSERT_FALSE(ur_rdma_cm_hdr_get(p, 36, &h));
}

void ur_suite_cm_msg(void)
{
	CU_pSuite s = CU_add_suite("cm_msg", NULL, NULL);

	CU_ADD_TEST(s, cm_msg__each_field_at_its_maximum);
	CU_ADD_TEST(s, cm_msg__rep_vendor_id_is_scattered);
	CU_ADD_TEST(s, cm_msg__sidr_rep_vendor_id_is_scattered);
	CU_ADD_TEST(s, cm_msg__flow_label_is_20_bits);
	CU_ADD_TEST(s, cm_msg__private_data);
	CU_ADD_TEST(s, cm_msg__mad_header);
	CU_ADD_TEST(s, cm_msg_parse__refused);
	CU_ADD_TEST(s, cm_msg_build__unknown_attribute);
	CU_ADD_TEST(s, cm_msg_parse__lengths_are_cut);
	CU_ADD_TEST(s, cm_msg__random_round_trip);
	CU_ADD_TEST(s, rdma_cm_hdr__bytes);
	CU_ADD_TEST(s, rdma_cm_hdr__refused);
}
