/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/verbs: address handles, multicast, and the queue pairs that use them. Addresses of the device: 10.0.0.1/24 and fd00::1/64. */
#include <arpa/inet.h>
#include <time.h>

#include "verbs_fixture.h"
#include "wire/frame.h"

void ur_suite_verbs_ah(void);

static union ibv_gid gid_of(const char *text)
{
	union ibv_gid g = {.raw = {[10] = 0xff, [11] = 0xff}};

	if (inet_pton(AF_INET, text, g.raw + 12) != 1)
		CU_ASSERT_EQUAL_FATAL(inet_pton(AF_INET6, text, g.raw), 1);
	return g;
}

static struct ibv_qp *make_qp(struct verbs_fixture *f, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr ia = {.send_cq = f->cq,
				      .recv_cq = f->cq,
				      .qp_type = type,
				      .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp *qp = ibv_create_qp(f->pd, &ia);

	CU_ASSERT_PTR_NOT_NULL_FATAL(qp);
	return qp;
}

/* --- address handles --- */

static void create_ah__cases(void)
{
	static const struct {
		const char *dgid;
		struct ibv_ah_attr attr;
		int err;
	} t[] = {
		{"10.0.0.9", {.is_global = 1, .port_num = 1}, 0},
		{"fd00::9", {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1}}, 0},
		{"239.1.2.3", {.is_global = 1, .port_num = 1}, 0},
		{"ff0e::7", {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1}}, 0},
		{"10.0.0.1", {.is_global = 1, .port_num = 1}, 0},
		{"10.0.0.9",
		 {.is_global = 1, .port_num = 1, .sl = 7, .static_rate = 5, .dlid = 3, .grh = {.hop_limit = 1, .traffic_class = 255}},
		 0},
		{"10.0.0.9", {.is_global = 0, .port_num = 1}, EINVAL},
		{"::", {.is_global = 0, .port_num = 1, .dlid = 1}, EINVAL},
		{"::", {.is_global = 0, .port_num = 1}, EINVAL},
		{"10.0.0.9", {.is_global = 1, .port_num = 0}, EINVAL},
		{"10.0.0.9", {.is_global = 1, .port_num = 2}, EINVAL},
		{"10.0.0.9", {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 5}}, EINVAL},
		{"10.0.0.9", {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1}}, EINVAL},
		{"::", {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1}}, EINVAL},
		{"192.0.2.1", {.is_global = 1, .port_num = 1}, ENETUNREACH},
	};
	struct verbs_fixture f;

	verbs_fixture_make(&f);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ibv_ah_attr a = t[i].attr;
		struct ibv_ah *ah;

		a.grh.dgid = gid_of(t[i].dgid);
		errno = 0;
		ah = ibv_create_ah(f.pd, &a);
		CU_ASSERT_EQUAL(ah ? 0 : errno, t[i].err);
		if (!ah)
			continue;
		CU_ASSERT_PTR_EQUAL(ah->context, f.ctx);
		CU_ASSERT_PTR_EQUAL(ah->pd, f.pd);
		CU_ASSERT_EQUAL(ibv_destroy_ah(ah), 0);
	}
	verbs_fixture_unmake(&f);
}

static void create_ah__keeps_its_pd(void)
{
	struct ibv_ah_attr a = {.is_global = 1, .port_num = 1};
	struct verbs_fixture f;
	struct ibv_pd *pd;
	struct ibv_ah *ah;

	verbs_fixture_make(&f);
	pd = ibv_alloc_pd(f.ctx);
	CU_ASSERT_PTR_NOT_NULL_FATAL(pd);
	a.grh.dgid = gid_of("10.0.0.9");
	ah = ibv_create_ah(pd, &a);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ah);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), EBUSY);
	CU_ASSERT_EQUAL(ibv_destroy_ah(ah), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), 0);
	verbs_fixture_unmake(&f);
}

/* Ids of the RDMA CM have the default PD, and datagram rsockets send to themselves so. */
static void create_ah__back_to_the_port(void)
{
	struct ibv_ah_attr a = {.is_global = 0, .port_num = 1};
	struct ibv_context *ctx = verbs_fixture_open();
	struct ibv_pd *pd = ur_verbs_default_pd(ctx);
	struct ibv_ah *ah;

	CU_ASSERT_PTR_NOT_NULL_FATAL(pd);
	ah = ibv_create_ah(pd, &a);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ah);
	CU_ASSERT_EQUAL(ibv_destroy_ah(ah), 0);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

/* --- from a completion --- */

struct grh_area {
	uint8_t b[40];
};

/* What the first 40 bytes of a received datagram hold. */
static void fill_grh(struct grh_area *g, const char *src, const char *dst, uint8_t tclass, uint32_t flow_label)
{
	union ibv_gid s = gid_of(src), d = gid_of(dst);
	bool v4 = ur_gid_is_v4((const struct ur_gid *)s.raw);
	struct ur_pkt p = {.data = NULL};
	uint8_t frame[UR_PKT_ROOM];
	struct ur_gid from, to;
	struct ur_path path;
	struct ur_mac mac = {{2}};

	memcpy(from.raw, s.raw, 16);
	memcpy(to.raw, d.raw, 16);
	ur_path_build(&path, &mac, &mac, 0, &from, &to, tclass, 17, flow_label, 0xc000);
	memset(frame, 0, sizeof(frame));
	memcpy(frame, path.hdr, path.hdr_len);
	p.data = frame;
	p.l3_off = path.l3_off;
	p.bth_off = path.hdr_len;
	p.ip_version = path.ip_version;
	p.len = path.hdr_len + 12u;
	ur_frame_finish(&p, 0);
	memset(g, 0, sizeof(*g));
	if (v4)
		memcpy(g->b + 20, frame + 14, 20);
	else
		memcpy(g->b, frame + 14, 40);
}

static void init_ah_from_wc__cases(void)
{
	static const struct {
		const char *src, *dst;
		uint8_t tclass, port;
		unsigned wc_flags;
		uint8_t index, want_tclass;
		int err;
	} t[] = {
		{"10.0.0.9", "10.0.0.1", 0x6b, 1, IBV_WC_GRH, 0, 0x68, 0},
		{"fd00::9", "fd00::1", 0x6b, 1, IBV_WC_GRH | IBV_WC_WITH_IMM, 1, 0x68, 0},
		{"10.0.0.9", "239.1.2.3", 0, 1, IBV_WC_GRH, 0, 0, 0},
		{"fd00::9", "ff0e::7", 0, 1, IBV_WC_GRH, 1, 0, 0},
		{"10.0.0.9", "10.0.0.2", 0, 1, IBV_WC_GRH, 0, 0, EADDRNOTAVAIL},
		{"192.0.2.9", "239.1.2.3", 0, 1, IBV_WC_GRH, 0, 0, EADDRNOTAVAIL},
		{"10.0.0.9", "10.0.0.1", 0, 1, 0, 0, 0, EINVAL},
		{"10.0.0.9", "10.0.0.1", 0, 2, IBV_WC_GRH, 0, 0, EINVAL},
	};
	struct verbs_fixture f;

	verbs_fixture_make(&f);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ibv_wc wc = {.wc_flags = t[i].wc_flags, .sl = 3};
		union ibv_gid src = gid_of(t[i].src);
		struct ibv_ah_attr a;
		struct grh_area grh;
		struct ibv_ah *ah;

		fill_grh(&grh, t[i].src, t[i].dst, t[i].tclass, 0x12345);
		errno = 0;
		CU_ASSERT_EQUAL(ibv_init_ah_from_wc(f.ctx, t[i].port, &wc, (struct ibv_grh *)&grh, &a), t[i].err ? -1 : 0);
		CU_ASSERT_EQUAL(errno, t[i].err);
		errno = 0;
		ah = ibv_create_ah_from_wc(f.pd, &wc, (struct ibv_grh *)&grh, t[i].port);
		CU_ASSERT_EQUAL(ah ? 0 : errno, t[i].err);
		if (!ah)
			continue;
		CU_ASSERT_EQUAL(ibv_destroy_ah(ah), 0);
		CU_ASSERT_EQUAL(a.is_global, 1);
		CU_ASSERT_EQUAL(a.port_num, 1);
		CU_ASSERT_EQUAL(a.sl, 3);
		CU_ASSERT_EQUAL(a.grh.sgid_index, t[i].index);
		CU_ASSERT_EQUAL(a.grh.traffic_class, t[i].want_tclass);
		CU_ASSERT_EQUAL(a.grh.hop_limit, 64);
		CU_ASSERT_EQUAL(a.grh.flow_label, t[i].index ? 0x12345 : 0);
		CU_ASSERT_EQUAL(memcmp(a.grh.dgid.raw, src.raw, 16), 0);
	}
	verbs_fixture_unmake(&f);
}

static void resolve_eth__refusals(void)
{
	struct ibv_ah_attr a = {.is_global = 1, .port_num = 1};
	struct verbs_fixture f;
	uint8_t mac[6];
	uint16_t vid;

	verbs_fixture_make(&f);
	a.grh.dgid = gid_of("192.0.2.1");
	CU_ASSERT_EQUAL(ibv_resolve_eth_l2_from_gid(f.ctx, &a, mac, &vid), ENETUNREACH);
	a.is_global = 0;
	CU_ASSERT_EQUAL(ibv_resolve_eth_l2_from_gid(f.ctx, &a, mac, &vid), EINVAL);
	verbs_fixture_unmake(&f);
}

/* --- multicast --- */

static void attach_mcast__cases(void)
{
	static const struct {
		enum ibv_qp_type type;
		const char *gid;
		int err;
	} t[] = {
		{IBV_QPT_UD, "239.1.2.3", 0},     {IBV_QPT_UD, "ff0e::1", 0},        {IBV_QPT_UD, "ff02::1", 0},
		{IBV_QPT_UD, "10.0.0.1", EINVAL}, {IBV_QPT_UD, "fd00::1", EINVAL},   {IBV_QPT_UD, "::", EINVAL},
		{IBV_QPT_RC, "ff0e::1", EINVAL},  {IBV_QPT_UC, "239.1.2.3", EINVAL},
	};
	struct verbs_fixture f;

	verbs_fixture_make(&f);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ibv_qp *qp = make_qp(&f, t[i].type);
		union ibv_gid g = gid_of(t[i].gid);

		CU_ASSERT_EQUAL(ibv_detach_mcast(qp, &g, 0), EINVAL);
		CU_ASSERT_EQUAL(ibv_attach_mcast(qp, &g, 0), t[i].err);
		CU_ASSERT_EQUAL(ibv_attach_mcast(qp, &g, 0xc001), t[i].err); /* a second time is no error */
		CU_ASSERT_EQUAL(ibv_detach_mcast(qp, &g, 0), t[i].err);
		CU_ASSERT_EQUAL(ibv_detach_mcast(qp, &g, 0), EINVAL);
		CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	}
	verbs_fixture_unmake(&f);
}

/* ibv_create_qp(3): destroying fails while the QP is attached; at once. */
static void destroy_qp__while_attached(void)
{
	union ibv_gid g = gid_of("ff0e::1");
	struct verbs_fixture f;
	struct ibv_qp *qp;
	time_t start = time(NULL);

	verbs_fixture_make(&f);
	qp = make_qp(&f, IBV_QPT_UD);
	CU_ASSERT_EQUAL(ibv_attach_mcast(qp, &g, 0), 0);
	errno = 0;
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), EBUSY);
	CU_ASSERT_EQUAL(errno, EBUSY);
	CU_ASSERT_TRUE(time(NULL) - start < 3);
	CU_ASSERT_EQUAL(ibv_detach_mcast(qp, &g, 0), 0);
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	verbs_fixture_unmake(&f);
}

static void query_device__datagram_limits(void)
{
	struct ibv_device_attr a;
	struct verbs_fixture f;

	verbs_fixture_make(&f);
	CU_ASSERT_EQUAL(ibv_query_device(f.ctx, &a), 0);
	CU_ASSERT_EQUAL(a.max_mcast_grp, UR_MAX_MCAST_GROUPS);
	CU_ASSERT_EQUAL(a.max_mcast_qp_attach, UR_MAX_MCAST_QPS);
	CU_ASSERT_EQUAL(a.max_total_mcast_qp_attach, UR_MAX_MCAST_GROUPS * UR_MAX_MCAST_QPS);
	CU_ASSERT_TRUE(a.max_ah >= 1024);
	verbs_fixture_unmake(&f);
}

/* --- queue pairs --- */

/* Attributes that a service requires or does not have, and requests outside RTS. */
static void qp__attributes_of_the_service(void)
{
	static const struct {
		enum ibv_qp_type type;
		int mask, err;
	} t[] = {
		{IBV_QPT_UD, IBV_QP_QKEY, 0},         {IBV_QPT_UD, 0, EINVAL}, {IBV_QPT_UD, IBV_QP_QKEY | IBV_QP_ACCESS_FLAGS, EINVAL},
		{IBV_QPT_UC, IBV_QP_ACCESS_FLAGS, 0}, {IBV_QPT_UC, 0, EINVAL}, {IBV_QPT_UC, IBV_QP_ACCESS_FLAGS | IBV_QP_QKEY, EINVAL},
	};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
	struct verbs_fixture f;

	verbs_fixture_make(&f);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x8765};
		struct ibv_qp *qp = make_qp(&f, t[i].type);
		struct ibv_qp_init_attr ia;

		CU_ASSERT_EQUAL(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | t[i].mask), t[i].err);
		CU_ASSERT_EQUAL(ibv_query_qp(qp, &a, 0, &ia), 0);
		CU_ASSERT_EQUAL(a.qp_state, t[i].err ? IBV_QPS_RESET : IBV_QPS_INIT);
		CU_ASSERT_EQUAL(ia.qp_type, t[i].type);
		if (!t[i].err && t[i].type == IBV_QPT_UD)
			CU_ASSERT_EQUAL(a.qkey, 0x8765);
		bad = NULL;
		CU_ASSERT_EQUAL(ibv_post_send(qp, &wr, &bad), EINVAL);
		CU_ASSERT_PTR_EQUAL(bad, &wr);
		CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	}
	verbs_fixture_unmake(&f);
}

static int init(void)
{
	return verbs_fixture_init();
}

void ur_suite_verbs_ah(void)
{
	CU_pSuite s = CU_add_suite("verbs_ah", init, NULL);

	CU_ADD_TEST(s, create_ah__cases);
	CU_ADD_TEST(s, create_ah__keeps_its_pd);
	CU_ADD_TEST(s, create_ah__back_to_the_port);
	CU_ADD_TEST(s, init_ah_from_wc__cases);
	CU_ADD_TEST(s, resolve_eth__refusals);
	CU_ADD_TEST(s, attach_mcast__cases);
	CU_ADD_TEST(s, destroy_qp__while_attached);
	CU_ADD_TEST(s, query_device__datagram_limits);
	CU_ADD_TEST(s, qp__attributes_of_the_service);
}
