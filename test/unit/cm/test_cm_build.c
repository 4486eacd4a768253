/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Our messages against those of rdma_rxe, Linux 6.1: the recorded rejected and accepted connections of rping. Communication and
 * transaction ids are each side's own and left out of the comparison; everything else must be the same byte for byte.
 */
#include <CUnit/CUnit.h>
#include <string.h>

#include "base/bytes.h"
#include "cm_harness.h"

void ur_suite_cm_build(void);

/* The messages after the MAD headers, each up to the zeros that fill the rest. */
static const char req_hex[] = "fd1eaf06000000000000000001061c06505400fffe99000300000000000000000000490100000001000000a02a808ba7ffff37f0"
			      "ffffffff00000000000000000000ffff0a63000300000000000000000000ffff0a630002581f1000004000980000000000000000"
			      "0000000000000000000000000000000000000000000000000000000000000000000000000040b0b5000000000000000000000000"
			      "0a6300030000000000000000000000000a630002";
static const char rej_hex[] = "00000000fd1eaf0600000008";
static const char rep_hex[] = "f7da654bd51eaf06000000000000110000000000af488700010178e0505400fffe990002";
static const char rtu_hex[] = "d51eaf06f7da654b";
static const char dreq_hex[] = "d51eaf06f7da654b000011";
static const char drep_hex[] = "f7da654bd51eaf06";

static unsigned nibble(char c)
{
	return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a' + 10);
}

static void make_mad(uint8_t *mad, unsigned attr, const char *hex)
{
	size_t n = strlen(hex) / 2;

	memset(mad, 0, UR_MAD_LEN);
	memcpy(mad, (const uint8_t[]){1, 7, 2, 3}, 4);
	ur_put16(mad + 16, (uint16_t)attr);
	for (size_t i = 0; i < n; i++)
		mad[UR_MAD_HDR_LEN + i] = (uint8_t)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
}

/* Clears the ids: `ids` words at the start of the message, and the transaction id. */
static void same_but_ids(const uint8_t *ours, unsigned attr, const char *hex, unsigned ids)
{
	uint8_t a[UR_MAD_LEN], b[UR_MAD_LEN];

	memcpy(a, ours, UR_MAD_LEN);
	make_mad(b, attr, hex);
	memset(a + 8, 0, 8);
	memset(a + UR_MAD_HDR_LEN, 0, ids * 4);
	memset(b + UR_MAD_HDR_LEN, 0, ids * 4);
	for (unsigned i = 0; i < UR_MAD_LEN; i++)
		if (a[i] != b[i]) {
			CU_FAIL("a byte differs from rdma_rxe's");
			return;
		}
}

struct fixture {
	struct ur_wheel *wheel;
	struct ur_counters counters;
	struct ur_cm *cm;
	struct ur_random random;
	struct ur_cm_conn *conn;
	uint8_t sent[UR_MAD_LEN];
	unsigned nsent;
};

static void keep(void *ctx, const struct ur_cm_addr *to, const uint8_t mad[UR_MAD_LEN], uint32_t psn)
{
	struct fixture *f = ctx;

	(void)psn;
	(void)to;
	memcpy(f->sent, mad, UR_MAD_LEN);
	f->nsent++;
}

static bool no_other(void *ctx, uint64_t service_id, const struct ur_gid *dst)
{
	(void)ctx;
	(void)service_id;
	(void)dst;
	return false;
}

static void take_conn(void *owner, struct ur_cm_conn *conn, const struct ur_cm_event *ev, ur_time now)
{
	struct fixture *f = owner;

	(void)ev;
	(void)now;
	f->conn = conn;
}

static void setup(struct fixture *f, uint64_t guid)
{
	struct ur_cm_config c = {.ctx = f, .send = keep, .other_answers = no_other, .counters = &f->counters, .ca_guid = guid, .slot = 9};

	const struct ur_seed seed = ur_seed_of(0);

	memset(f, 0, sizeof(*f));
	f->wheel = c.wheel = ur_wheel_create(0);
	ur_random_init(&f->random, &seed);
	c.random = &f->random;
	CU_ASSERT_EQUAL_FATAL(ur_cm_create(&c, &f->cm), 0);
}

static void teardown(struct fixture *f)
{
	ur_cm_destroy(f->cm);
	ur_wheel_destroy(f->wheel);
}

static struct ur_gid addr_of(uint8_t last)
{
	return (struct ur_gid){.raw = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 99, [14] = 0, [15] = last}};
}

static void connect_like_rping(struct fixture *f)
{
	struct ur_rdma_cm_hdr hdr = {.ip_version = 4, .sport = 0xb0b5, .src = addr_of(3), .dst = addr_of(2)};
	struct ur_cm_req_param p = {
		.addr = {.sgid = addr_of(3), .dgid = addr_of(2), .flow_label = (0xb0b5 * 31 + 7174) & 0xfffff},
		.service_id = 0x01060000 | 7174,
		.qpn = 0x49,
		.starting_psn = 0x2a808b,
		.qp_type = UR_CM_QPT_RC,
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.path_mtu = 3,
		.ack_timeout = 19,
		.hdr = &hdr,
	};

	CU_ASSERT_EQUAL_FATAL(ur_cm_conn_create(f->cm, f, take_conn, &f->conn), 0);
	CU_ASSERT_EQUAL(ur_cm_connect(f->conn, &p, 0), 0);
}

static void client__sends_what_rxe_sends(void)
{
	struct ur_cm_addr from = {.sgid = addr_of(3), .dgid = addr_of(2)};
	uint8_t rep[UR_MAD_LEN];
	struct fixture f;

	setup(&f, 0x505400fffe990003);
	connect_like_rping(&f);
	same_but_ids(f.sent, UR_CM_REQ, req_hex, 1);
	CU_ASSERT_EQUAL(ur_get64(f.sent + 8) & 0xffffffff, ur_get32(f.sent + UR_MAD_HDR_LEN));
	CU_ASSERT_EQUAL(f.sent[UR_MAD_HDR_LEN], 9);

	make_mad(rep, UR_CM_REP, rep_hex);
	ur_put32(rep + UR_MAD_HDR_LEN + 4, f.conn->local_id);
	ur_put64(rep + 8, ur_get64(f.sent + 8));
	ur_cm_rx(f.cm, &from, rep, sizeof(rep), 0);
	CU_ASSERT_EQUAL(ur_cm_send_rtu(f.conn, NULL, 0, 0), 0);
	same_but_ids(f.sent, UR_CM_RTU, rtu_hex, 2);
	CU_ASSERT_EQUAL(ur_get32(f.sent + UR_MAD_HDR_LEN + 4), 0xf7da654b);
	CU_ASSERT_EQUAL(ur_cm_disconnect(f.conn, NULL, 0, 0), 0);
	same_but_ids(f.sent, UR_CM_DREQ, dreq_hex, 2);
	teardown(&f);
}

static void server__sends_what_rxe_sends(void)
{
	struct ur_cm_rep_param p = {.qpn = 0x11, .starting_psn = 0xaf4887, .responder_resources = 1, .initiator_depth = 1,
				    .rnr_retry_count = 7};
	struct ur_cm_addr from = {.sgid = addr_of(2), .dgid = addr_of(3)};
	uint8_t mad[UR_MAD_LEN];
	struct ur_cm_listener *l;
	struct ur_gid any = {{0}};
	struct fixture f;

	setup(&f, 0x505400fffe990002);
	make_mad(mad, UR_CM_REQ, req_hex);
	ur_put64(mad + 8, 0x0000000206af1efd);
	ur_cm_rx(f.cm, &from, mad, sizeof(mad), 0);
	same_but_ids(f.sent, UR_CM_REJ, rej_hex, 0);
	CU_ASSERT_EQUAL(ur_get64(f.sent + 8), 0x0000000206af1efd);

	CU_ASSERT_EQUAL(ur_cm_listen(f.cm, 0x01061c06, &any, &f, take_conn, &l), 0);
	ur_cm_rx(f.cm, &from, mad, sizeof(mad), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(f.conn);
	CU_ASSERT_EQUAL(ur_cm_accept(f.conn, &p, 0), 0);
	same_but_ids(f.sent, UR_CM_REP, rep_hex, 2);
	CU_ASSERT_EQUAL(ur_get64(f.sent + 8), 0x0000000206af1efd);

	make_mad(mad, UR_CM_DREQ, dreq_hex);
	ur_put32(mad + UR_MAD_HDR_LEN, 0xfd1eaf06);
	ur_put32(mad + UR_MAD_HDR_LEN + 4, f.conn->local_id);
	ur_cm_rx(f.cm, &from, mad, sizeof(mad), 0);
	CU_ASSERT_EQUAL(ur_cm_disconnect(f.conn, NULL, 0, 0), 0);
	same_but_ids(f.sent, UR_CM_DREP, drep_hex, 2);
	teardown(&f);
}

void ur_suite_cm_build(void)
{
	CU_pSuite s = CU_add_suite("cm_build", NULL, NULL);

	CU_ADD_TEST(s, client__sends_what_rxe_sends);
	CU_ADD_TEST(s, server__sends_what_rxe_sends);
}
