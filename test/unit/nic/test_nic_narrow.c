/* SPDX-License-Identifier: BSD-3-Clause */
/* The path MTU of new connections, and what ICMP errors have to do with it. */
#include <string.h>

#include "base/psn.h"
#include "nic_harness.h"
#include "transport/state/qp_priv.h"
#include "wire/hdr.h"

void ur_suite_nic_narrow(void);

#define HOP 300 /* IP bytes: too few for path MTU 256 */

static struct nics h;
static struct nics_qp a, b;
static struct ur_gid peer;
static unsigned told;
static uint32_t told_mtu;

static void narrow(void *ctx, const struct ur_gid *dst, uint32_t path_mtu, uint16_t hop_mtu)
{
	(void)ctx;
	CU_ASSERT_TRUE(ur_gid_eq(dst, &peer) && hop_mtu == HOP);
	told_mtu = path_mtu;
	told++;
}

/* As the port tells its owner of an ICMP error. */
static void say(uint32_t psn, uint16_t hop_mtu, unsigned len)
{
	const struct ur_bth bth = {.opcode = UR_RC | UR_OP_WRITE_FIRST, .dqpn = ur_qp_num(b.qp), .psn = psn & UR_PSN_MASK};
	struct ur_port *port = h.n[0].nic->port;
	uint8_t quote[UR_BTH_LEN];

	ur_bth_put(quote, &bth);
	nics_run(&h, UR_NS_PER_MS);
	port->undelivered(port, &(struct ur_undelivered){.dst = peer, .hop_mtu = hop_mtu, .quote = quote, .len = len});
}

static uint64_t count(enum ur_counter c)
{
	return h.n[0].nic->counters.v[c];
}

/* A WRITE of four packets is on its way, and nobody takes it. */
static void setup(void)
{
	nics_open(&h, 2);
	peer = nics_gid(&h, 1, false);
	nics_qp_create(&h, 0, IBV_QPT_RC, &a);
	nics_qp_create(&h, 1, IBV_QPT_RC, &b);
	nics_qp_connect(&h, &a, &b);
	nics_qp_connect(&h, &b, &a);
	told = 0;
	h.n[0].nic->cfg.ctx = &h;
	h.n[0].nic->cfg.narrow = narrow;
	h.stopped = 1u << 1;
	CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_RDMA_WRITE, 1, 0, 1024, 1, 0), 0);
	nics_run(&h, UR_NS_PER_MS);
}

static void teardown(void)
{
	h.stopped = 0;
	nics_run(&h, 100 * UR_NS_PER_MS);
	nics_qp_destroy(&h, &a);
	nics_qp_destroy(&h, &b);
	nics_close(&h);
}

static void narrow__lies_change_nothing(void)
{
	struct ur_nic *nic = h.n[0].nic;
	const uint16_t before = ur_nic_path_mtu(nic, &peer);
	const uint32_t una = a.qp->req.una;

	say(una + 4, HOP, UR_BTH_LEN);
	say(una - 1, HOP, UR_BTH_LEN);
	say(una, HOP, UR_BTH_LEN - 1);
	say(una, HOP, 0);
	say(una, 1500, UR_BTH_LEN);
	CU_ASSERT_EQUAL(count(UR_C_DROP_ICMP_QUOTE), 5);
	CU_ASSERT_EQUAL(count(UR_C_NARROW_HOP), 0);
	CU_ASSERT_EQUAL(told, 0);
	CU_ASSERT_EQUAL(ur_nic_path_mtu(nic, &peer), before);
}

static void narrow__what_is_outstanding_counts(void)
{
	struct ur_nic *nic = h.n[0].nic;
	const uint16_t before = ur_nic_path_mtu(nic, &peer);
	struct ur_gid other = peer;

	other.raw[15]++;
	for (unsigned i = 0; i < 3; i++)
		say(a.qp->req.una + i, HOP, UR_BTH_LEN);
	CU_ASSERT_EQUAL(count(UR_C_DROP_ICMP_QUOTE), 0);
	CU_ASSERT_EQUAL(count(UR_C_NARROW_HOP), 3);
	CU_ASSERT_EQUAL(told, 1);
	CU_ASSERT_EQUAL(told_mtu, 256);
	CU_ASSERT_EQUAL(ur_nic_path_mtu(nic, &peer), HOP);
	CU_ASSERT_EQUAL(ur_nic_path_mtu(nic, &other), before);
	h.stopped = 0; /* it was no truth: nothing is lost */
	nics_run(&h, 600 * UR_NS_PER_S);
	nics_expect(&h, 0, 1, IBV_WC_SUCCESS);
	ur_nic_poll(h.n[0].nic, h.now);
	CU_ASSERT_EQUAL(ur_nic_path_mtu(nic, &peer), before);
}

/* Whoever has a connection may say so again and again, and of so many addresses that none is remembered. */
static void narrow__is_told_now_and_then(void)
{
	struct ur_nic *nic = h.n[0].nic;
	struct ur_gid other = peer;

	for (unsigned i = 0; i < 8; i++) {
		say(a.qp->req.una, HOP, UR_BTH_LEN);
		for (unsigned k = 1; k <= 32; k++) {
			other.raw[15] = (uint8_t)(peer.raw[15] + k);
			ur_net_narrow(nic->net, &other, 1500, h.now + i * 100 + k);
		}
		CU_ASSERT_EQUAL(ur_net_narrow_mtu(nic->net, &peer, h.now), 0);
	}
	CU_ASSERT_EQUAL(count(UR_C_NARROW_HOP), 8);
	CU_ASSERT_EQUAL(told, 4);
}

void ur_suite_nic_narrow(void)
{
	CU_pSuite s = CU_add_suite_with_setup_and_teardown("nic_narrow", NULL, NULL, setup, teardown);

	CU_ADD_TEST(s, narrow__lies_change_nothing);
	CU_ADD_TEST(s, narrow__what_is_outstanding_counts);
	CU_ADD_TEST(s, narrow__is_told_now_and_then);
}
