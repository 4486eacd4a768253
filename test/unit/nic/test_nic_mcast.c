/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/nic/mcast.c: memberships of whole NICs: reports and queries on the fabric, the port's filter, the other processes of a device.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "nic_harness.h"
#include "wire/msg/gmp.h"
#include "wire/msg/icmp.h"

void ur_suite_nic_mcast(void);

static struct nics h;

static uint64_t count(unsigned nic, enum ur_counter c)
{
	return h.n[nic].nic->counters.v[c];
}

static struct ur_gid group(bool v4)
{
	return v4 ? ur_gid_from_v4(htonl(0xef010203)) : (struct ur_gid){{0xff, 0x0e, [14] = 1, [15] = 2}};
}

static int join(unsigned nic, struct ur_gid g)
{
	return ur_nic_join_mcast(h.n[nic].nic, &g, 0, h.now);
}

static int leave(unsigned nic, struct ur_gid g)
{
	return ur_nic_leave_mcast(h.n[nic].nic, &g, 0, h.now);
}

/* NIC 1 listens where reports of version 3 go, and counts what it cannot use. */
static void joins__are_heard_by_others(void)
{
	for (int v4 = 0; v4 < 2; v4++) {
		uint64_t before;

		nics_open(&h, 2);
		CU_ASSERT_EQUAL(join(1, ur_gmp_reporters(v4)), 0);
		nics_run(&h, 2 * UR_NS_PER_S);
		before = count(1, UR_C_RX_OTHER_HOST);
		CU_ASSERT_EQUAL(join(0, group(v4)), 0);
		nics_run(&h, 2 * UR_NS_PER_S);
		CU_ASSERT_EQUAL(count(0, UR_C_GMP_REPORTS), 2);
		CU_ASSERT_EQUAL(count(1, UR_C_RX_OTHER_HOST), before + 2);
		CU_ASSERT_EQUAL(count(1, UR_C_DROP_GMP), 0);
		CU_ASSERT_EQUAL(leave(0, group(v4)), 0);
		CU_ASSERT_EQUAL(leave(0, group(v4)), EADDRNOTAVAIL);
		nics_run(&h, 2 * UR_NS_PER_S);
		CU_ASSERT_EQUAL(count(0, UR_C_GMP_LEAVES), 2);
		CU_ASSERT_EQUAL(count(1, UR_C_RX_OTHER_HOST), before + 4);
		nics_close(&h);
	}
}

/* From NIC 1 onto the fabric. */
static void ask(bool v4, unsigned version)
{
	struct ur_gmp m = {.kind = UR_GMP_QUERY, .version = (uint8_t)version, .max_resp = UR_NS_PER_S};
	struct ur_gmp_to to = {.src = v4 ? nics_gid(&h, 1, false) : (struct ur_gid){{0xfe, 0x80, [15] = 9}}, .dst = ur_gmp_all_hosts(v4)};
	struct ur_port *port = ur_sim_port(h.sim, 1);
	struct ur_pkt *p;

	to.smac = port->mac;
	CU_ASSERT_EQUAL_FATAL(ur_queue_alloc(port->queue, &p, 1), 1);
	ur_gmp_build(p, &to, &m);
	CU_ASSERT_EQUAL_FATAL(ur_queue_tx(port->queue, &p, 1), 1);
}

/* Queries come through the filter of an owned port, and are answered. */
static void queries__are_answered(void)
{
	for (int v4 = 0; v4 < 2; v4++)
		for (unsigned version = 2; version <= 3; version++) {
			uint64_t before;

			nics_open(&h, 2);
			CU_ASSERT_EQUAL(join(0, group(v4)), 0);
			nics_run(&h, 2 * UR_NS_PER_S);
			before = count(0, UR_C_GMP_REPORTS);
			ask(v4, version);
			nics_run(&h, 2 * UR_NS_PER_S);
			CU_ASSERT_EQUAL(count(0, UR_C_GMP_QUERIES), 1);
			CU_ASSERT_EQUAL(count(0, UR_C_GMP_REPORTS), before + 1);
			CU_ASSERT_EQUAL(leave(0, group(v4)), 0);
			nics_close(&h);
		}
}

/* --- the filter --- */

static struct ur_mac macs[4096];
static unsigned nmacs;
static int filter_err;

static int keep_mcast(struct ur_port *port, const struct ur_mac *m, unsigned n)
{
	(void)port;
	if (filter_err)
		return filter_err;
	memcpy(macs, m, n * sizeof(*m));
	nmacs = n;
	return 0;
}

static unsigned listed(struct ur_gid g)
{
	struct ur_mac m = ur_mcast_mac(&g);
	unsigned n = 0;

	for (unsigned i = 0; i < nmacs; i++)
		n += memcmp(macs[i].b, m.b, 6) == 0;
	return n;
}

static void filter__follows(void)
{
	struct ur_gid v4 = group(true), v6 = group(false), twin = v4;
	struct ur_port *port;
	struct ur_port_ops ops;
	const struct ur_port_ops *real;
	struct nics_qp q;
	unsigned least;

	nics_open(&h, 1);
	port = h.n[0].nic->port;
	real = port->ops;
	ops = *real;
	ops.set_mcast = keep_mcast;
	port->ops = &ops;
	CU_ASSERT_EQUAL(ur_nic_filter_mcast(h.n[0].nic), 0);
	least = nmacs; /* both all hosts, one solicited-node group */
	CU_ASSERT_EQUAL(least, 3);
	CU_ASSERT_EQUAL(listed(ur_gmp_all_hosts(true)), 1);
	CU_ASSERT_EQUAL(listed(ur_gmp_all_hosts(false)), 1);

	nics_qp_create(&h, 0, IBV_QPT_UD, &q);
	twin.raw[13] |= 0x80; /* the same MAC address */
	CU_ASSERT_EQUAL(join(0, v4), 0);
	CU_ASSERT_EQUAL(join(0, v4), 0);
	CU_ASSERT_EQUAL(join(0, v6), 0);
	CU_ASSERT_EQUAL(join(0, twin), 0);
	CU_ASSERT_EQUAL(ur_nic_attach_mcast(h.n[0].nic, q.qp, &v4), 0);
	CU_ASSERT_EQUAL(listed(v4), 1);
	CU_ASSERT_EQUAL(listed(v6), 1);
	CU_ASSERT_EQUAL(nmacs, least + 2);
	CU_ASSERT_EQUAL(leave(0, twin), 0);
	CU_ASSERT_EQUAL(leave(0, v4), 0);
	CU_ASSERT_EQUAL(leave(0, v4), 0);
	CU_ASSERT_EQUAL(listed(v4), 1); /* the QP's */
	CU_ASSERT_EQUAL(ur_nic_detach_mcast(h.n[0].nic, q.qp, &v4), 0);
	CU_ASSERT_EQUAL(listed(v4), 0);
	CU_ASSERT_EQUAL(leave(0, v6), 0);
	CU_ASSERT_EQUAL(nmacs, least);

	filter_err = ENOSPC; /* what the port does not receive is not joined */
	CU_ASSERT_EQUAL(join(0, v4), ENOSPC);
	CU_ASSERT_EQUAL(ur_net_groups(h.n[0].nic->net, NULL, 0), 0);
	filter_err = 0;
	nics_qp_destroy(&h, &q);
	port->ops = real;
	nics_close(&h);
}

/* --- the other processes of a device --- */

/* NIC 0 leaves; NIC 1 stands for another process of its device, and says that it stays. Joins are told to nobody. */
static void siblings__hear_of_leaves(void)
{
	uint64_t before;

	nics_open(&h, 2);
	nics_mail_open(&h, 64);
	h.n[1].nic->cfg.sibling = NULL;
	h.n[1].nic->cfg.siblings = NULL;
	CU_ASSERT_EQUAL(join(0, group(true)), 0);
	CU_ASSERT_EQUAL(join(1, group(true)), 0);
	nics_run(&h, 2 * UR_NS_PER_S);
	CU_ASSERT_EQUAL(nics_mail[1].sent, 0);
	before = count(1, UR_C_GMP_REPORTS);
	CU_ASSERT_EQUAL(leave(0, group(true)), 0);
	nics_run(&h, UR_NS_PER_MS);
	CU_ASSERT_EQUAL(nics_mail[1].sent, 1);
	CU_ASSERT_EQUAL(count(1, UR_C_GMP_REPORTS), before + 1); /* at once */
	nics_run(&h, 3 * UR_NS_PER_S);
	CU_ASSERT_EQUAL(nics_mail[1].sent, 2);
	CU_ASSERT_TRUE(count(1, UR_C_GMP_REPORTS) >= before + 3);
	CU_ASSERT_EQUAL(leave(1, group(true)), 0);
	nics_mail_close(&h);
	nics_close(&h);
}

void ur_suite_nic_mcast(void)
{
	CU_pSuite s = CU_add_suite("nic_mcast", NULL, NULL);

	CU_add_test(s, "joins__are_heard_by_others", joins__are_heard_by_others);
	CU_add_test(s, "queries__are_answered", queries__are_answered);
	CU_add_test(s, "filter__follows", filter__follows);
	CU_add_test(s, "siblings__hear_of_leaves", siblings__hear_of_leaves);
}
