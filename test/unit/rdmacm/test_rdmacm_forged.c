/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/rdmacm: requests whose RDMA CM header says other addresses than the packet bears (rdma_get_peer_addr(3) shows the header's). */
#include "base/bytes.h"
#include "rdmacm_fixture.h"

void ur_suite_rdmacm_forged(void);

static const struct claim {
	const char *from, *to;   /* of the packet */
	const char *src, *dst;   /* of the header */
	uint8_t ip_version;
	bool taken;
} claims[] = {
	{"10.0.0.2", "10.0.0.1", "10.0.0.2", "10.0.0.1", 4, true},
	{"10.0.0.2", "10.0.0.1", "10.0.0.3", "10.0.0.1", 4, false},
	{"10.0.0.2", "10.0.0.1", "127.0.0.1", "10.0.0.1", 4, false},
	{"10.0.0.2", "10.0.0.1", "10.0.0.1", "10.0.0.1", 4, false},
	{"10.0.0.2", "10.0.0.1", "10.0.0.2", "10.0.0.9", 4, false},
	{"10.0.0.2", "10.0.0.1", "10.0.0.2", "127.0.0.1", 4, false},
	{"10.0.0.2", "10.0.0.1", "::ffff:10.0.0.2", "::ffff:10.0.0.1", 6, true}, /* a program with an IPv6 socket address */
	{"10.0.0.2", "10.0.0.1", "fd00::2", "fd00::1", 6, false},
	{"fd00::2", "fd00::1", "fd00::2", "fd00::1", 6, true},
	{"fd00::2", "fd00::1", "fd00::3", "fd00::1", 6, false},
	{"fd00::2", "fd00::1", "::1", "::1", 6, false},
	{"fe80::2", "fd00::1", "fe80::2", "fd00::1", 6, true},
	{"fe80::2", "fd00::1", "fd00::2", "fd00::1", 6, false},
	{"10.0.0.1", "10.0.0.1", "127.0.0.1", "127.0.0.1", 4, true}, /* on this host a loopback address is another name */
	{"10.0.0.1", "10.0.0.1", "10.0.0.1", "127.0.0.1", 4, true},
	{"fd00::1", "fd00::1", "::1", "::1", 6, true},
	{"10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.1", 4, false},
};

static uint64_t receive(struct ur_id *l, struct ur_cm_msg *m, const struct claim *c)
{
	static uint32_t number = 0x4000;
	struct ur_rdma_cm_hdr hdr = {.ip_version = c->ip_version, .sport = 4000, .src = rx_gid(c->src), .dst = rx_gid(c->dst)};
	struct ur_cm_addr way = {.sgid = rx_gid(c->to), .dgid = rx_gid(c->from), .hop_limit = 64};
	uint8_t pdata[UR_RDMA_CM_HDR_LEN], mad[UR_MAD_LEN];
	uint64_t dropped;

	ur_rdma_cm_hdr_put(pdata, &hdr);
	m->pdata = pdata;
	m->pdata_len = sizeof(pdata);
	m->mad.tid = ++number;
	if (m->attr == UR_CM_REQ)
		m->req.local_comm_id = m->req.local_qpn = number;
	else
		m->sidr_req.request_id = number;
	if (!ur_cm_msg_build(mad, m))
		return 99;
	ur_id_lock(l);
	dropped = l->nic->counters.v[UR_C_DROP_SOURCE];
	ur_cm_rx(l->nic->cm, &way, mad, sizeof(mad), ur_engine_now());
	dropped = l->nic->counters.v[UR_C_DROP_SOURCE] - dropped;
	ur_id_unlock(l);
	return dropped;
}

static int all_claims(enum rdma_port_space ps, struct ur_cm_msg *m)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(RX_PORT)};
	struct rx_side l, s;

	WANT_OK(rx_listen_at(&l, ps, (struct sockaddr *)&any, 0));
	for (unsigned i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
		const struct claim *c = &claims[i];
		struct ur_gid src = rx_gid(c->src);
		struct sockaddr_storage want;

		if (receive((struct ur_id *)l.id, m, c) != !c->taken || rx_quiet(&l, 0) == c->taken) {
			fprintf(stderr, "from %s to %s, header %s to %s\n", c->from, c->to, c->src, c->dst);
			return __LINE__;
		}
		if (!c->taken)
			continue;
		WANT_OK(rx_request(&l, &s));
		ur_sa_put(&want, &src, 4000);
		WANT(!memcmp(rdma_get_peer_addr(s.id), &want, ur_sa_len(want.ss_family)));
		WANT(!rx_ack(&l) && !rdma_destroy_id(s.id));
	}
	return rx_close(&l);
}

static int connections(void)
{
	struct ur_cm_msg m = {.attr = UR_CM_REQ, .req = {.local_ca_guid = 5, .path_mtu = IBV_MTU_256}};

	m.req.service_id = (uint64_t)RDMA_PS_TCP << 16 | RX_PORT;
	return all_claims(RDMA_PS_TCP, &m);
}

static int lookups(void)
{
	struct ur_cm_msg m = {.attr = UR_CM_SIDR_REQ};

	m.sidr_req.service_id = (uint64_t)RDMA_PS_UDP << 16 | RX_PORT;
	return all_claims(RDMA_PS_UDP, &m);
}

#define TESTS(X) X(request, connections) X(request, lookups)

TESTS(RX_DEFINE)

void ur_suite_rdmacm_forged(void)
{
	CU_pSuite s = CU_add_suite("rdmacm_forged", verbs_fixture_init, NULL);

	TESTS(RX_ADD)
}
