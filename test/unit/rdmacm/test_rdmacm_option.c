/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/rdmacm: rdma_set_option(3), rdma_set_local_ece(3) and rdma_get_remote_ece(3). What is accepted, and what becomes of it in the path
 * record, the QP and the peer's events. Expected errors are those of librdmacm 44 on Linux 6.1 with rdma_rxe where the pages name none.
 */
#include <infiniband/sa.h>

#include "rdmacm_fixture.h"

void ur_suite_rdmacm_option(void);

#define OURS "10.0.0.1"

static int set(struct rdma_cm_id *id, int option, int value)
{
	uint8_t byte = (uint8_t)value;

	if (option == RDMA_OPTION_ID_TOS || option == RDMA_OPTION_ID_ACK_TIMEOUT)
		return rdma_set_option(id, RDMA_OPTION_ID, option, &byte, sizeof(byte));
	return rdma_set_option(id, RDMA_OPTION_ID, option, &value, sizeof(value));
}

/* --- what is accepted --- */

static int option_arguments(void)
{
	static const struct {
		int level, name;
		size_t len; /* 0 with no data, as in every other row */
		int err;
	} t[] = {
		{RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 1, 0},
		{RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 0, EINVAL},
		{RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 4, EINVAL},
		{RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 4, 0},
		{RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 1, EINVAL},
		{RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 8, EINVAL},
		{RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 4, 0},
		{RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 3, EINVAL},
		{RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 1, 0},
		{RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 2, EINVAL},
		{RDMA_OPTION_ID, 4, 1, ENOSYS},
		{RDMA_OPTION_ID, -1, 1, ENOSYS},
		{RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, 0, EINVAL},
		{RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, 71, EINVAL},
		{RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, 72, EINVAL}, /* no address is resolved */
		{RDMA_OPTION_IB, 0, 72, ENOSYS},
		{2, RDMA_OPTION_ID_TOS, 1, ENOSYS},
		{-1, RDMA_OPTION_ID_TOS, 1, ENOSYS},
	};
	char data[80] = {0};
	struct rx_side s;

	WANT(!rx_open_in(&s, RDMA_PS_TCP));
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		int ret = rdma_set_option(s.id, t[i].level, t[i].name, t[i].len ? data : NULL, t[i].len);

		if ((ret ? errno : 0) != t[i].err)
			fprintf(stderr, "\noption %d/%d of %zu bytes: %d", t[i].level, t[i].name, t[i].len, ret ? errno : 0);
		WANT((ret ? errno : 0) == t[i].err && (ret == 0 || ret == -1));
	}
	WANT_ERRNO(rdma_set_option(s.id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, NULL, 1), EFAULT);
	WANT_ERRNO(rdma_set_option(NULL, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, data, 1), EINVAL);
	return rx_close(&s);
}

static int option_states(void)
{
	struct rx_side s;

	WANT(!rx_open_in(&s, RDMA_PS_TCP));
	WANT(!set(s.id, RDMA_OPTION_ID_REUSEADDR, 1) && !set(s.id, RDMA_OPTION_ID_REUSEADDR, 0));
	WANT(!rdma_bind_addr(s.id, rx_address(OURS, 0)));
	WANT(!set(s.id, RDMA_OPTION_ID_REUSEADDR, 1));
	WANT_ERRNO(set(s.id, RDMA_OPTION_ID_REUSEADDR, 0), EINVAL);
	WANT(!set(s.id, RDMA_OPTION_ID_AFONLY, 1));
	WANT(!rdma_listen(s.id, 1));
	WANT_ERRNO(set(s.id, RDMA_OPTION_ID_REUSEADDR, 1), EINVAL);
	WANT_ERRNO(set(s.id, RDMA_OPTION_ID_REUSEADDR, 0), EINVAL);
	WANT_ERRNO(set(s.id, RDMA_OPTION_ID_AFONLY, 1), EINVAL);
	WANT_ERRNO(set(s.id, RDMA_OPTION_ID_AFONLY, 0), EINVAL);
	WANT(!set(s.id, RDMA_OPTION_ID_TOS, 4) && !set(s.id, RDMA_OPTION_ID_ACK_TIMEOUT, 14));
	return rx_close(&s);
}

static int ack_timeout_values(void)
{
	struct rx_side s, ud;

	WANT(!rx_open_in(&s, RDMA_PS_TCP) && !rx_open_in(&ud, RDMA_PS_UDP));
	WANT(!set(s.id, RDMA_OPTION_ID_ACK_TIMEOUT, 0) && !set(s.id, RDMA_OPTION_ID_ACK_TIMEOUT, 31));
	WANT_ERRNO(set(s.id, RDMA_OPTION_ID_ACK_TIMEOUT, 32), EINVAL);
	WANT_ERRNO(set(s.id, RDMA_OPTION_ID_ACK_TIMEOUT, 255), EINVAL);
	WANT_ERRNO(set(ud.id, RDMA_OPTION_ID_ACK_TIMEOUT, 14), EINVAL); /* nothing is acknowledged there */
	return rx_close(&s) || rx_close(&ud);
}

/* --- what becomes of them --- */

static int query(struct rdma_cm_id *id, struct ibv_qp_attr *a)
{
	struct ibv_qp_init_attr init;

	return ibv_query_qp(id->qp, a, IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_PATH_MTU, &init);
}

static int tos_and_ack_timeout(void)
{
	struct rx_side l, c, s;
	struct ibv_qp_attr a;

	WANT(!rx_listen_at(&l, RDMA_PS_TCP, rx_address(OURS, RX_PORT), 0));
	WANT(!rx_open_in(&c, RDMA_PS_TCP));
	WANT(!set(c.id, RDMA_OPTION_ID_TOS, 0x68) && !set(c.id, RDMA_OPTION_ID_ACK_TIMEOUT, 11));
	WANT(!rdma_resolve_addr(c.id, NULL, rx_address(OURS, RX_PORT), 100) && !rx_next(&c, RDMA_CM_EVENT_ADDR_RESOLVED));
	WANT(!rdma_resolve_route(c.id, 100) && !rx_next(&c, RDMA_CM_EVENT_ROUTE_RESOLVED));
	WANT(c.id->route.path_rec->traffic_class == 0x68 && c.id->route.path_rec->packet_life_time == 10);
	WANT(!set(c.id, RDMA_OPTION_ID_TOS, 0x10)); /* too late for this route */
	WANT(!rx_join(&l, &c, &s, IBV_QPT_RC, IBV_QPT_RC));
	WANT(!query(c.id, &a) && a.ah_attr.grh.traffic_class == 0x68 && a.timeout == 11);
	WANT(!query(s.id, &a) && a.ah_attr.grh.traffic_class == 0x68);
	WANT(s.id->route.path_rec->traffic_class == 0x68);
	return rx_part(&c, &s) || rx_close(&c) || rx_close(&s) || rx_close(&l);
}

/* A listener's is for the ids of its requests. Zero waits for ever. */
static int ack_timeout_of_listener(void)
{
	struct rx_side l, c, s;
	struct ibv_qp_attr a;

	WANT(!rx_open_in(&l, RDMA_PS_TCP) && !set(l.id, RDMA_OPTION_ID_ACK_TIMEOUT, 0));
	WANT(!rdma_bind_addr(l.id, rx_address(OURS, RX_PORT)) && !rdma_listen(l.id, 1));
	WANT(!rx_resolve_to(&c, RDMA_PS_TCP, rx_address(OURS, RX_PORT)));
	WANT(!rx_join(&l, &c, &s, IBV_QPT_RC, IBV_QPT_RC));
	WANT(!query(s.id, &a) && a.timeout == 0);
	WANT(!query(c.id, &a) && a.timeout != 0);
	return rx_part(&c, &s) || rx_close(&c) || rx_close(&s) || rx_close(&l);
}

/* --- a route of the program --- */

#define WHOLE (IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL)

static struct ibv_path_data a_path(void)
{
	struct ibv_path_data d = {.flags = WHOLE};

	d.path.pkey = htobe16(0xffff);
	d.path.flowlabel_hoplimit = htobe32(0x12345 << 8 | 33);
	d.path.tclass = 0x60;
	d.path.mtu = 2 << 6 | IBV_MTU_512;
	d.path.rate = 2 << 6 | IBV_RATE_10_GBPS;
	d.path.packetlifetime = 2 << 6 | 15;
	d.path.reversible_numpath = 0x81;
	return d;
}

static int use_path(struct rx_side *s, const void *paths, size_t len)
{
	return rdma_set_option(s->id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, (void *)(uintptr_t)paths, len);
}

static int path_takes_the_place_of_a_route(void)
{
	struct ibv_path_data two[2] = {{.flags = IBV_PATH_FLAG_ALTERNATE}, a_path()};
	const struct ibv_sa_path_rec *r;
	struct rx_side l, c, s;
	struct ibv_qp_attr a;

	WANT(!rx_listen_at(&l, RDMA_PS_TCP, rx_address(OURS, RX_PORT), 0));
	WANT(!rx_open_in(&c, RDMA_PS_TCP));
	WANT_ERRNO(use_path(&c, &two[1], sizeof(two[1])), EINVAL);
	WANT(!rdma_resolve_addr(c.id, NULL, rx_address(OURS, RX_PORT), 100) && !rx_next(&c, RDMA_CM_EVENT_ADDR_RESOLVED));
	WANT_ERRNO(use_path(&c, two, sizeof(two[0])), EINVAL);
	WANT(!use_path(&c, two, sizeof(two)) && !rx_next(&c, RDMA_CM_EVENT_ROUTE_RESOLVED));
	r = c.id->route.path_rec;
	WANT(c.id->route.num_paths == 1 && r->mtu == IBV_MTU_512 && r->rate == IBV_RATE_10_GBPS && r->packet_life_time == 15);
	WANT(r->hop_limit == 33 && r->traffic_class == 0x60 && r->flow_label == htobe32(0x12345) && r->pkey == htobe16(0xffff));
	WANT(!memcmp(r->dgid.raw, rx_gid(OURS).raw, 16));
	WANT_ERRNO(use_path(&c, two, sizeof(two)), EINVAL);
	WANT_ERRNO(rdma_resolve_route(c.id, 100), EINVAL);
	WANT(!rx_join(&l, &c, &s, IBV_QPT_RC, IBV_QPT_RC));
	WANT(!query(c.id, &a) && a.path_mtu == IBV_MTU_512 && a.timeout == 17); /* with the delay of the peer's ACKs */
	WANT(a.ah_attr.grh.traffic_class == 0x60 && a.ah_attr.grh.hop_limit == 33 && a.ah_attr.grh.flow_label == 0x12345);
	WANT(!query(s.id, &a) && a.path_mtu == IBV_MTU_512 && a.ah_attr.grh.traffic_class == 0x60);
	return rx_part(&c, &s) || rx_close(&c) || rx_close(&s) || rx_close(&l);
}

static int path_refused(void)
{
	struct ibv_path_data bad[4] = {a_path(), a_path(), a_path(), a_path()}, good = {.flags = WHOLE};
	struct rx_side s;

	bad[0].path.dgid.raw[0] = 1; /* not where the address leads */
	bad[1].path.sgid.raw[0] = 1;
	bad[2].path.pkey = htobe16(0x8001);
	bad[3].path.mtu = 2 << 6 | 9;
	WANT(!rx_open_in(&s, RDMA_PS_TCP));
	WANT(!rdma_resolve_addr(s.id, NULL, rx_address(OURS, RX_PORT), 100) && !rx_next(&s, RDMA_CM_EVENT_ADDR_RESOLVED));
	for (unsigned i = 0; i < ur_array_size(bad); i++)
		WANT_ERRNO(use_path(&s, &bad[i], sizeof(bad[i])), EINVAL);
	WANT(!use_path(&s, &good, sizeof(good)) && !rx_next(&s, RDMA_CM_EVENT_ROUTE_RESOLVED)); /* says nothing, so all is our choice */
	WANT(s.id->route.path_rec->hop_limit == 64 && s.id->route.path_rec->mtu && s.id->route.path_rec->packet_life_time == 16);
	return rx_close(&s);
}

/* --- ECE --- */

static int ece_arguments(void)
{
	struct ibv_ece none = {0}, some = {.vendor_id = 1}, masked = {.vendor_id = 1, .comp_mask = 1}, wide = {.vendor_id = 1 << 24}, got;
	struct rx_side s;

	WANT(!rx_open_in(&s, RDMA_PS_TCP));
	WANT_ERRNO(rdma_set_local_ece(s.id, &none), EINVAL);
	WANT_ERRNO(rdma_set_local_ece(s.id, &masked), EINVAL);
	WANT_ERRNO(rdma_set_local_ece(s.id, &wide), EINVAL);
	WANT_ERRNO(rdma_set_local_ece(s.id, NULL), EINVAL);
	WANT_ERRNO(rdma_set_local_ece(NULL, &some), EINVAL);
	WANT(!rdma_set_local_ece(s.id, &some));
	WANT_ERRNO(rdma_get_remote_ece(s.id, NULL), EINVAL);
	WANT_ERRNO(rdma_get_remote_ece(NULL, &got), EINVAL);
	WANT(!rdma_get_remote_ece(s.id, &got) && !got.vendor_id && !got.options && !got.comp_mask);
	WANT(!rdma_bind_addr(s.id, rx_address(OURS, 0)) && !rx_make_qp_of(s.id, IBV_QPT_RC));
	WANT_ERRNO(rdma_set_local_ece(s.id, &some), EINVAL); /* for QPs of the program's own */
	WANT_ERRNO(rdma_get_remote_ece(s.id, &got), EINVAL);
	return rx_close(&s);
}

/* Both ways, with QPs that the ids do not know of. */
static int ece_exchange(void)
{
	struct ibv_ece request = {.vendor_id = 0x2c9, .options = 0x89abcdef}, reply = {.vendor_id = 0xfedcba, .options = 7}, got;
	struct rdma_conn_param p = {.qp_num = 0x10};
	struct rx_side l, c, s;

	WANT(!rx_listen_at(&l, RDMA_PS_TCP, rx_address(OURS, RX_PORT), 0));
	WANT(!rx_resolve_to(&c, RDMA_PS_TCP, rx_address(OURS, RX_PORT)));
	WANT(!rdma_set_local_ece(c.id, &request) && !rdma_connect(c.id, &p));
	WANT(!rx_request_apart(&l, &s) && !rx_take(&l, &s));
	WANT(!rdma_get_remote_ece(s.id, &got) && got.vendor_id == request.vendor_id && got.options == request.options);
	p.qp_num = 0x11;
	WANT(!rdma_set_local_ece(s.id, &reply) && !rdma_accept(s.id, &p));
	WANT(!rx_next(&c, RDMA_CM_EVENT_CONNECT_RESPONSE));
	WANT(!rdma_get_remote_ece(c.id, &got) && got.vendor_id == reply.vendor_id && got.options == reply.options);
	WANT(!rdma_establish(c.id) && !rx_next(&s, RDMA_CM_EVENT_ESTABLISHED));
	return rx_close(&c) || rx_close(&s) || rx_close(&l);
}

/* --- devices --- */

static int devices(void)
{
	struct ibv_context **list, **again;
	struct rx_side s;
	int n = -1;

	list = rdma_get_devices(&n);
	again = rdma_get_devices(NULL);
	WANT(list && n == 1 && list[0] && !list[1] && again && again != list && again[0] == list[0]);
	rdma_free_devices(again);
	WANT(!rx_open_in(&s, RDMA_PS_TCP) && !rdma_bind_addr(s.id, rx_address(OURS, 0)));
	WANT(s.id->verbs == list[0]); /* so that what is made on it serves ids */
	WANT(!rx_close(&s));
	rdma_free_devices(list);
	rdma_free_devices(NULL);
	return 0;
}

static int no_device(void)
{
	int n = 7;

	WANT(!unsetenv("UROCE_VDEV") && !unsetenv("UROCE_IP") && !setenv("UROCE_DEV", "no-such-if", 1));
	errno = 0;
	WANT(!rdma_get_devices(&n) && n == 0 && errno == ENODEV);
	errno = 0;
	WANT(!rdma_get_devices(NULL) && errno == ENODEV);
	return 0;
}

#define RUN(test) CU_ASSERT_EQUAL(rx_child(__FILE__, test), 0)

static void set_option__arguments(void) { RUN(option_arguments); }
static void set_option__states(void) { RUN(option_states); }
static void set_option__ack_timeout_values(void) { RUN(ack_timeout_values); }
static void set_option__tos_and_ack_timeout_take_effect(void) { RUN(tos_and_ack_timeout); }
static void set_option__ack_timeout_of_listener(void) { RUN(ack_timeout_of_listener); }
static void set_option__path_takes_the_place_of_a_route(void) { RUN(path_takes_the_place_of_a_route); }
static void set_option__path_refused(void) { RUN(path_refused); }
static void ece__arguments(void) { RUN(ece_arguments); }
static void ece__exchange(void) { RUN(ece_exchange); }
static void get_devices__list(void) { RUN(devices); }
static void get_devices__without_one(void) { RUN(no_device); }

void ur_suite_rdmacm_option(void)
{
	CU_pSuite s = CU_add_suite("rdmacm_option", verbs_fixture_init, NULL);

	CU_ADD_TEST(s, set_option__arguments);
	CU_ADD_TEST(s, set_option__states);
	CU_ADD_TEST(s, set_option__ack_timeout_values);
	CU_ADD_TEST(s, set_option__tos_and_ack_timeout_take_effect);
	CU_ADD_TEST(s, set_option__ack_timeout_of_listener);
	CU_ADD_TEST(s, set_option__path_takes_the_place_of_a_route);
	CU_ADD_TEST(s, set_option__path_refused);
	CU_ADD_TEST(s, ece__arguments);
	CU_ADD_TEST(s, ece__exchange);
	CU_ADD_TEST(s, get_devices__list);
	CU_ADD_TEST(s, get_devices__without_one);
}
