/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/rdmacm: AF_IB addresses of ids: binding by service id and mask, connections without RDMA CM header, what stays apart from IP. */
#include <infiniband/ib.h>

#include "rdmacm_fixture.h"

void ur_suite_rdmacm_ib_addr(void);

#define OURS "10.0.0.1"
#define SID(ps, port) ((uint64_t)(ps) << 16 | (port))
#define FULL UINT64_MAX
#define PS_ONLY RDMA_IB_IP_PS_MASK

static struct sockaddr *ib_pkey(const char *gid, uint64_t sid, uint64_t mask, uint16_t pkey)
{
	static struct sockaddr_storage ss;
	struct ur_gid g = gid ? rx_gid(gid) : (struct ur_gid){{0}};

	ur_sa_put_ib(&ss, &g, sid, mask, pkey);
	return (struct sockaddr *)&ss;
}

static struct sockaddr *ib(const char *gid, uint64_t sid, uint64_t mask)
{
	return ib_pkey(gid, sid, mask, 0xffff);
}

/* An address of an id. */
static int is_ib(const struct sockaddr_storage *ss, const char *gid, uint64_t sid, uint64_t mask)
{
	const struct sockaddr_ib *a = (const void *)ss;
	struct ur_gid g = rx_gid(gid);

	WANT(a->sib_family == AF_IB && a->sib_pkey == htons(0xffff) && !memcmp(&a->sib_addr, &g, 16));
	WANT(be64toh(a->sib_sid) == sid && be64toh(a->sib_sid_mask) == mask);
	return 0;
}

/* --- binding --- */

static int bind_fields(void)
{
	struct ur_gid g = rx_gid("fd00::1");
	struct rx_side s;

	WANT(!rx_open_in(&s, RDMA_PS_IB));
	WANT(!rdma_bind_addr(s.id, ib("fd00::1", SID(RDMA_PS_IB, 77), FULL)));
	WANT(!is_ib(&s.id->route.addr.src_storage, "fd00::1", SID(RDMA_PS_IB, 77), FULL));
	WANT(rdma_get_src_port(s.id) == htons(77) && rdma_get_dst_port(s.id) == 0);
	WANT(s.id->verbs && s.id->port_num == 1 && s.id->pd);
	WANT(!memcmp(&s.id->route.addr.addr.ibaddr.sgid, &g, 16) && s.id->route.addr.addr.ibaddr.pkey == htons(0xffff));
	WANT_ERRNO(rdma_bind_addr(s.id, ib(OURS, SID(RDMA_PS_IB, 78), FULL)), EINVAL);
	WANT(!rx_close(&s));
	return 0;
}

/* Without a port one is found; what the mask leaves open of the port space is the id's own. */
static int bind_wildcards(void)
{
	const uint64_t masks[] = {0, PS_ONLY, FULL};
	const struct sockaddr_ib *a;
	struct rx_side s;

	for (unsigned i = 0; i < ur_array_size(masks); i++) {
		WANT(!rx_open_in(&s, RDMA_PS_IB));
		WANT(!rdma_bind_addr(s.id, ib(NULL, SID(RDMA_PS_IB, 0), masks[i])));
		a = (const void *)&s.id->route.addr.src_storage;
		WANT(be64toh(a->sib_sid) == SID(RDMA_PS_IB, ntohs(rdma_get_src_port(s.id))) && a->sib_sid_mask == FULL);
		WANT(rdma_get_src_port(s.id) && !s.id->verbs);
		WANT(!rx_close(&s));
	}
	WANT(!rx_open_in(&s, RDMA_PS_TCP) && !rdma_bind_addr(s.id, ib(NULL, 0x1234, RDMA_IB_IP_PORT_MASK)));
	WANT(!is_ib(&s.id->route.addr.src_storage, "::", SID(RDMA_PS_TCP, 0x1234), FULL));
	return rx_close(&s);
}

static int bind_errors(void)
{
	static const struct {
		enum rdma_port_space ps;
		const char *gid;
		uint64_t sid, mask;
		uint16_t pkey;
		int err;
	} cases[] = {
		{RDMA_PS_IB, OURS, SID(0x4711, 1), FULL, 0xffff, EPROTONOSUPPORT},
		{RDMA_PS_IB, OURS, SID(RDMA_PS_IB, 1) | 1ull << 63, FULL, 0xffff, EPROTONOSUPPORT},
		{RDMA_PS_TCP, OURS, SID(RDMA_PS_IB, 1), FULL, 0xffff, EPROTONOSUPPORT},
		{RDMA_PS_UDP, OURS, SID(RDMA_PS_TCP, 1), FULL, 0xffff, EPROTONOSUPPORT},
		{RDMA_PS_IPOIB, OURS, SID(RDMA_PS_IPOIB, 1), FULL, 0xffff, EPROTONOSUPPORT},
		{RDMA_PS_IB, OURS, SID(RDMA_PS_IB, 1), FULL, 0x8001, ENODEV},
		{RDMA_PS_IB, "10.0.0.77", SID(RDMA_PS_IB, 1), FULL, 0xffff, EADDRNOTAVAIL},
	};
	struct rx_side s;

	for (unsigned i = 0; i < ur_array_size(cases); i++) {
		WANT(!rx_open_in(&s, cases[i].ps));
		WANT_ERRNO(rdma_bind_addr(s.id, ib_pkey(cases[i].gid, cases[i].sid, cases[i].mask, cases[i].pkey)), cases[i].err);
		WANT(!rdma_bind_addr(s.id, rx_address(OURS, 0))); /* nothing is left of it */
		WANT(!rx_close(&s));
	}
	return 0;
}

/* An id of RDMA_PS_IB may take a port of RDMA_PS_TCP, which is then nobody else's. */
static int bind_other_space(void)
{
	struct rx_side a, b;

	WANT(!rx_open_in(&a, RDMA_PS_IB) && !rx_open_in(&b, RDMA_PS_TCP));
	WANT(!rdma_bind_addr(a.id, ib_pkey(OURS, SID(RDMA_PS_TCP, 99), FULL, 0)));
	WANT_ERRNO(rdma_bind_addr(b.id, rx_address("0.0.0.0", 99)), EADDRINUSE);
	WANT(!rx_close(&a));
	WANT(!rdma_bind_addr(b.id, rx_address("0.0.0.0", 99)));
	WANT(!rx_close(&b));
	return 0;
}

/* --- connecting --- */

static const char data92[92] = "ninety-two bytes";

static int check_request(const struct rx_side *l, const struct rx_side *s, const char *gid, uint64_t service)
{
	const struct rdma_conn_param *p = &l->ev->param.conn;
	struct ur_gid g = rx_gid(gid);

	WANT(p->private_data_len == 92 && !memcmp(p->private_data, data92, 92));
	WANT(!is_ib(&s->id->route.addr.src_storage, gid, service, FULL));
	WANT(!is_ib(&s->id->route.addr.dst_storage, gid, 0, 0)); /* who asks, says no more */
	WANT(ntohs(rdma_get_src_port(s->id)) == RX_PORT && rdma_get_dst_port(s->id) == 0);
	WANT(!memcmp(&s->id->route.addr.addr.ibaddr.dgid, &g, 16) && s->id->route.num_paths == 1);
	return 0;
}

static int life(const char *listen_at, const char *to, uint64_t service)
{
	struct rdma_conn_param p = {.private_data = data92, .private_data_len = 92, .responder_resources = 1, .initiator_depth = 1};
	struct rx_side l, c, s;

	WANT(!rx_listen_at(&l, RDMA_PS_IB, ib(listen_at, service, FULL), 0));
	WANT(!rx_resolve_to(&c, RDMA_PS_IB, ib(to, service, FULL)));
	WANT(!is_ib(&c.id->route.addr.dst_storage, to, service, FULL));
	WANT(!is_ib(&c.id->route.addr.src_storage, to, SID(RDMA_PS_IB, ntohs(rdma_get_src_port(c.id))), FULL));
	WANT(!rx_make_qp_of(c.id, IBV_QPT_RC) && !rdma_connect(c.id, &p));
	WANT(!rx_request_apart(&l, &s) && !check_request(&l, &s, to, service));
	WANT(!rx_take(&l, &s) && !rx_make_qp_of(s.id, IBV_QPT_RC) && !rdma_accept(s.id, NULL));
	WANT(!rx_next(&c, RDMA_CM_EVENT_ESTABLISHED) && !rx_next(&s, RDMA_CM_EVENT_ESTABLISHED));
	WANT(!rx_part(&c, &s));
	WANT(!rx_close(&c) && !rx_close(&s) && !rx_close(&l));
	return 0;
}

static int life_v4_gid(void)
{
	return life(OURS, OURS, SID(RDMA_PS_IB, RX_PORT));
}

static int life_v6_gid_wildcard(void)
{
	return life("::", "fd00::1", SID(RDMA_PS_IB, RX_PORT));
}

static int life_tcp_space(void)
{
	return life(OURS, OURS, SID(RDMA_PS_TCP, RX_PORT));
}

static int too_much_data(void)
{
	static const char big[93];
	struct rdma_conn_param p = {.private_data = big, .private_data_len = sizeof(big)};
	struct rx_side c;

	WANT(!rx_resolve_to(&c, RDMA_PS_IB, ib(OURS, SID(RDMA_PS_IB, 1), FULL)) && !rx_make_qp_of(c.id, IBV_QPT_RC));
	WANT_ERRNO(rdma_connect(c.id, &p), EINVAL);
	return rx_close(&c);
}

static const char data216[216] = "as much as a lookup has room for";

/* Lookups of datagram services have no header either. */
static int datagrams(void)
{
	struct rdma_conn_param p = {.private_data = data216, .private_data_len = sizeof(data216)};
	struct rx_side l, c, s;

	WANT(!rx_listen_at(&l, RDMA_PS_UDP, ib(OURS, SID(RDMA_PS_UDP, RX_PORT), FULL), 0));
	WANT(!rx_resolve_to(&c, RDMA_PS_UDP, ib(OURS, SID(RDMA_PS_UDP, RX_PORT), FULL)));
	WANT(!rx_make_qp_of(c.id, IBV_QPT_UD));
	p.private_data_len++;
	WANT_ERRNO(rdma_connect(c.id, &p), EINVAL);
	p.private_data_len--;
	WANT(!rdma_connect(c.id, &p) && !rx_request_apart(&l, &s));
	WANT(l.ev->param.ud.private_data_len == 216 && !memcmp(l.ev->param.ud.private_data, data216, 216));
	WANT(!is_ib(&s.id->route.addr.src_storage, OURS, SID(RDMA_PS_UDP, RX_PORT), FULL));
	WANT(!is_ib(&s.id->route.addr.dst_storage, OURS, 0, 0));
	WANT(!rx_take(&l, &s) && !rx_make_qp_of(s.id, IBV_QPT_UD) && !rdma_accept(s.id, NULL));
	WANT(!rx_next(&c, RDMA_CM_EVENT_ESTABLISHED) && c.ev->param.ud.qp_num == s.id->qp->qp_num);
	WANT(!rx_close(&c) && !rx_close(&s) && !rx_close(&l));
	return 0;
}

/* A port alone is one of the id's own port space, the wildcard GID this host, and the P_Key may be left to us. */
static int resolve_wildcards(void)
{
	struct rx_side c;

	WANT(!rx_resolve_to(&c, RDMA_PS_IB, ib_pkey(NULL, RX_PORT, RDMA_IB_IP_PORT_MASK, 0)));
	WANT(ntohs(rdma_get_dst_port(c.id)) == RX_PORT && c.id->verbs);
	WANT(!memcmp(&c.id->route.addr.addr.ibaddr.dgid, &c.id->route.addr.addr.ibaddr.sgid, 16));
	WANT(((struct ur_id *)c.id)->dst_service == SID(RDMA_PS_IB, RX_PORT));
	return rx_close(&c);
}

static int resolve_errors(void)
{
	struct sockaddr_storage ip;
	struct rx_side c;

	memcpy(&ip, rx_address(OURS, 0), sizeof(ip));
	WANT(!rx_open_in(&c, RDMA_PS_IB));
	WANT_ERRNO(rdma_resolve_addr(c.id, (struct sockaddr *)&ip, ib(OURS, SID(RDMA_PS_IB, 1), FULL), 100), EINVAL);
	WANT_ERRNO(rdma_resolve_addr(c.id, NULL, ib_pkey(OURS, SID(RDMA_PS_IB, 1), FULL, 0x8123), 100), ENODEV);
	WANT_ERRNO(rdma_resolve_addr(c.id, NULL, ib("192.0.2.1", SID(RDMA_PS_IB, 1), FULL), 100), ENETUNREACH);
	WANT_ERRNO(rdma_resolve_addr(c.id, NULL, (struct sockaddr *)&ip, 100), EINVAL);      /* it is bound as AF_IB by now */
	WANT(!rdma_resolve_addr(c.id, NULL, ib("10.0.0.2", SID(RDMA_PS_IB, 1), FULL), 200)); /* nobody answers */
	WANT(!rx_next(&c, RDMA_CM_EVENT_ADDR_ERROR) && c.ev->status == -ETIMEDOUT);
	return rx_close(&c);
}

/* --- beside IP addresses --- */

static int same_port_once(void)
{
	struct rx_side a, b;

	WANT(!rx_listen_at(&a, RDMA_PS_IB, ib(OURS, SID(RDMA_PS_IB, RX_PORT), FULL), 0));
	WANT(!rx_open_in(&b, RDMA_PS_IB));
	WANT_ERRNO(rdma_bind_addr(b.id, rx_address("0.0.0.0", RX_PORT)), EADDRINUSE);
	WANT(!rx_close(&a) && !rx_close(&b));
	return 0;
}

/* A listener with an IP address wants the header that an AF_IB client does not send. */
static int ib_client_of_ip_listener(void)
{
	struct rx_side l, c;

	WANT(!rx_listen_at(&l, RDMA_PS_IB, rx_address(OURS, RX_PORT), 0));
	WANT(!rx_resolve_to(&c, RDMA_PS_IB, ib(OURS, SID(RDMA_PS_IB, RX_PORT), FULL)));
	WANT(!rx_make_qp_of(c.id, IBV_QPT_RC) && !rdma_connect(c.id, NULL));
	WANT(!rx_next(&c, RDMA_CM_EVENT_REJECTED) && c.ev->status == UR_CM_REJ_CONSUMER_DEFINED);
	WANT(!rx_close(&c) && !rx_close(&l));
	return 0;
}

/* The other way round the header is private data like any other. */
static int ip_client_of_ib_listener(void)
{
	struct ur_rdma_cm_hdr hdr;
	struct rx_side l, c, s;

	WANT(!rx_listen_at(&l, RDMA_PS_IB, ib(OURS, SID(RDMA_PS_IB, RX_PORT), FULL), 0));
	WANT(!rx_resolve_to(&c, RDMA_PS_IB, rx_address(OURS, RX_PORT)));
	WANT(!rx_make_qp_of(c.id, IBV_QPT_RC) && !rdma_connect(c.id, NULL));
	WANT(!rx_request_apart(&l, &s));
	WANT(l.ev->param.conn.private_data_len == 92 && ur_rdma_cm_hdr_get(l.ev->param.conn.private_data, 92, &hdr));
	WANT(hdr.sport == ntohs(rdma_get_src_port(c.id)) && s.id->route.addr.dst_addr.sa_family == AF_IB);
	WANT(!rx_take(&l, &s) && !rx_close(&s) && !rx_close(&c) && !rx_close(&l));
	return 0;
}

#define TESTS(T)                                                                                                                           \
	T(bind, bind_fields)                                                                                                               \
	T(bind, bind_wildcards)                                                                                                            \
	T(bind, bind_errors) T(bind, bind_other_space) T(connect, life_v4_gid) T(connect, life_v6_gid_wildcard) T(connect, life_tcp_space) \
		T(connect, too_much_data) T(connect, datagrams) T(resolve, resolve_wildcards) T(resolve, resolve_errors)                   \
			T(apart, same_port_once) T(apart, ib_client_of_ip_listener) T(apart, ip_client_of_ib_listener)

TESTS(RX_DEFINE)

void ur_suite_rdmacm_ib_addr(void)
{
	CU_pSuite s = CU_add_suite("rdmacm_ib_addr", verbs_fixture_init, NULL);

	TESTS(RX_ADD)
}
