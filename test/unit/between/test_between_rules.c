/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules that change packets, hold them or know them by their connection; in virtual time. */
#include <linux/virtio_net.h>

#include "between_harness.h"
#include "wire/crc/icrc.h"
#include "wire/ip.h"
#include "wire/msg/cm_msg.h"

void ur_suite_between_rules(void);

static struct {
	uint8_t bytes[1024];
	uint32_t len, l3, udp;
} made;

/* A packet as hosts build it, with an ICRC that is right, and over IPv6 a UDP checksum that is; `body` follows the BTH. */
static void make(unsigned end, bool v6, uint16_t sport, const struct ur_bth *bth, const void *body, uint32_t n)
{
	struct ur_gid host[2] = {ur_gid_from_v4(0x0100000a), ur_gid_from_v4(0x0200000a)};
	const struct ur_mac mac = {{2}};
	struct ur_path path;
	uint16_t sum;

	if (v6)
		host[0].raw[0] = host[1].raw[0] = 0xfd;
	ur_path_build(&path, &mac, &mac, 0, &host[end], &host[!end], 2, 64, 0, sport);
	memset(&made, 0, sizeof(made));
	memcpy(made.bytes, path.hdr, path.hdr_len);
	made.len = path.hdr_len + UR_BTH_LEN + n + UR_ICRC_LEN;
	made.l3 = UR_ETH_LEN;
	made.udp = path.hdr_len - UR_UDP_LEN;
	ur_bth_put(made.bytes + path.hdr_len, bth);
	memcpy(made.bytes + path.hdr_len + UR_BTH_LEN, body, n);
	ur_udp_put_lengths(made.bytes + made.l3, v6 ? 6 : 4, made.len - made.udp);
	ur_icrc_end(ur_icrc_begin(made.bytes + made.l3, v6 ? 6 : 4, made.len - UR_ICRC_LEN - made.l3), made.bytes + made.len - UR_ICRC_LEN);
	if (!v6)
		return;
	sum = ur_csum_fold(
		ur_csum_add(ur_udp_pseudo_sum(made.bytes + made.l3, 6, made.len - made.udp), made.bytes + made.udp, made.len - made.udp));
	memcpy(made.bytes + made.udp + 6, &sum, 2);
}

static void put_in(unsigned end)
{
	uint8_t extra[UR_BETWEEN_EXTRA], copy[sizeof(made.bytes)];

	memset(extra, 0xee, sizeof(extra));
	memcpy(copy, made.bytes, made.len);
	ur_between_in(cable.b, cable.now, end, copy, made.len, extra);
}

static void make_write(bool v6)
{
	const struct ur_bth bth = {.opcode = UR_RC | UR_OP_WRITE_ONLY, .dqpn = 0x123, .psn = 7, .ackreq = true};
	uint8_t body[16 + 256];

	for (unsigned i = 0; i < sizeof(body); i++)
		body[i] = (uint8_t)(i * 7);
	make(0, v6, 0xc123, &bth, body, sizeof(body));
}

/* Do all lengths and checksums of the last frame fit, by the bytes alone? */
static void check_headers(bool v6, uint32_t len)
{
	const uint8_t *l3 = cable.last + UR_ETH_LEN, *udp = l3 + (v6 ? 40 : 20);
	const uint32_t udp_len = len - UR_ETH_LEN - (v6 ? 40 : 20);

	CU_ASSERT_EQUAL(cable.out[cable.n - 1].len, len);
	CU_ASSERT_EQUAL(ur_get16(udp + 4), udp_len);
	if (v6) {
		CU_ASSERT_EQUAL(ur_get16(l3 + 4), udp_len);
		CU_ASSERT_EQUAL(ur_csum_fold(ur_csum_add(ur_udp_pseudo_sum(l3, 6, udp_len), udp, udp_len)), 0);
	} else {
		CU_ASSERT_EQUAL(ur_get16(l3 + 2), udp_len + 20);
		CU_ASSERT_EQUAL(ur_csum_fold(ur_csum_add(0, l3, 20)), 0);
		CU_ASSERT_EQUAL(ur_get16(udp + 6), 0);
	}
}

static bool icrc_fits(bool v6)
{
	const uint32_t len = cable.out[cable.n - 1].len;
	uint8_t icrc[4];

	ur_icrc_end(ur_icrc_begin(cable.last + UR_ETH_LEN, v6 ? 6 : 4, len - UR_ICRC_LEN - UR_ETH_LEN), icrc);
	return memcmp(icrc, cable.last + len - UR_ICRC_LEN, 4) == 0;
}

static unsigned bits_that_differ(uint32_t from, uint32_t to)
{
	unsigned n = 0;

	for (uint32_t i = from; i < to; i++)
		n += (unsigned)__builtin_popcount((unsigned)(cable.last[i] ^ made.bytes[i]));
	return n;
}

/* --- trim --- */

static void rules__trim(void)
{
	static const uint8_t complete[UR_BETWEEN_EXTRA];

	for (unsigned v6 = 0; v6 < 2; v6++) {
		cable_open("trim 1to2 dscp=10,trim 1to2", NULL); /* the second one finds nothing more to cut */
		make_write(v6);
		put_in(0);
		check_headers(v6, made.udp + 8 + 12 + 16 + 4);
		CU_ASSERT(!icrc_fits(v6) && memcmp(cable.last_extra, complete, sizeof(complete)) == 0);
		CU_ASSERT_EQUAL(bits_that_differ(made.udp + 8, made.udp + 8 + 28), 0); /* BTH and RETH are as they were */
		CU_ASSERT_EQUAL(v6 ? ur_get16(cable.last + UR_ETH_LEN) : 0x6000u | cable.last[UR_ETH_LEN + 1] << 4, 0x6000 | (10 << 2 | 2)
																     << 4);
		CU_ASSERT(cable.fate.did == UR_DID_TRIM && cable_hits(0) == 1 && cable_hits(1) == 0);
		cable_close();
		cable_open("trim keep=32 fix=icrc", NULL);
		put_in(0);
		check_headers(v6, made.udp + 8 + 12 + 16 + 32 + 4);
		CU_ASSERT(icrc_fits(v6) && cable.last[UR_ETH_LEN + 1] == made.bytes[UR_ETH_LEN + 1]);
		cable_close();
	}
}

/* An acknowledgement has no payload; a frame whose lengths are wrong has none that could be found. */
static void rules__trim_nothing(void)
{
	const struct ur_bth ack = {.opcode = UR_RC | UR_OP_ACK, .dqpn = 5};
	const uint8_t aeth[4] = {0x1f};

	cable_open("trim", NULL);
	make(0, false, 0xc000, &ack, aeth, 4);
	put_in(0);
	make_write(false);
	ur_put16(made.bytes + UR_ETH_LEN + 2, 600);
	put_in(0);
	CU_ASSERT(cable.n == 2 && cable_hits(0) == 0 && cable.out[1].len == made.len);
	cable_close();
}

/* A trimmed packet takes less of the line. */
static void rules__trim_before_the_queue(void)
{
	cable_open("trim", &(struct ur_between_limit){.rate = 8000000, .queue = 100});
	make_write(false);
	put_in(0);
	CU_ASSERT_EQUAL(ur_between_next(cable.b), cable.now + (42 + 12 + 16 + 4) * UR_NS_PER_US);
	cable_later(UR_NS_PER_MS);
	check_headers(false, 42 + 12 + 16 + 4);
	cable_close();
}

/* --- corrupt --- */

static void rules__corrupt_parts(void)
{
	static const struct {
		const char *rule;
		uint32_t from, to; /* after the UDP header */
	} t[] = {
		{"corrupt what=payload", 28, 284}, {"corrupt what=header", 0, 28},  {"corrupt what=icrc", 284, 288},
		{"corrupt what=psn", 9, 12},       {"corrupt what=qpn", 5, 8},      {"corrupt what=rkey", 20, 24},
		{"corrupt what=va", 12, 20},       {"corrupt what=length", 24, 28}, {"corrupt what=opcode", 0, 1},
		{"corrupt what=pkey", 2, 4},       {"corrupt what=ackreq", 8, 9},
	};

	make_write(false);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		cable_open(t[i].rule, NULL);
		for (unsigned k = 0; k < 100; k++) {
			put_in(0);
			CU_ASSERT(bits_that_differ(50 - 8 + t[i].from, 50 - 8 + t[i].to) == 1 && bits_that_differ(0, made.len) == 1);
			CU_ASSERT(cable.fate.did == UR_DID_CORRUPT && !icrc_fits(false));
		}
		cable_close();
	}
	cable_open("corrupt what=msn,corrupt what=imm,corrupt what=qkey", NULL);
	put_in(0);
	CU_ASSERT(bits_that_differ(0, made.len) == 0 && !cable.fate.did && !cable_hits(0));
	cable_close();
}

/* What no CRC sees: the packet is another one, and everything fits. */
static void rules__corrupt_unseen(void)
{
	for (unsigned v6 = 0; v6 < 2; v6++) {
		make_write(v6);
		cable_open("corrupt what=payload fix=icrc", NULL);
		for (unsigned k = 0; k < 50; k++) {
			put_in(0);
			check_headers(v6, made.len);
			CU_ASSERT(icrc_fits(v6) && bits_that_differ(made.udp + 8 + 28, made.len - 4) == 1 &&
				  cable.fate.did == UR_DID_ALTER);
		}
		cable_close();
	}
}

/* A frame of another protocol whose checksum somebody computes later would be right again; one of several does not leave. */
static void rules__corrupt_others(void)
{
	static const uint8_t complete[UR_BETWEEN_EXTRA];
	static const uint8_t whole[UR_BETWEEN_EXTRA] = {VIRTIO_NET_HDR_F_NEEDS_CSUM};
	static const uint8_t train[UR_BETWEEN_EXTRA] = {VIRTIO_NET_HDR_F_NEEDS_CSUM, VIRTIO_NET_HDR_GSO_TCPV4};
	uint8_t copy[sizeof(made.bytes)];

	cable_open("corrupt", NULL);
	make_write(false);
	made.bytes[UR_ETH_LEN + 9] = 6; /* TCP */
	memcpy(copy, made.bytes, made.len);
	ur_between_in(cable.b, cable.now, 0, copy, made.len, whole);
	CU_ASSERT(cable.n == 1 && memcmp(cable.last_extra, complete, sizeof(complete)) == 0 && bits_that_differ(UR_ETH_LEN, made.len) == 1);
	ur_between_in(cable.b, cable.now, 0, copy, made.len, train);
	CU_ASSERT(cable.n == 1 && cable.fate.did == UR_DID_CORRUPT && cable_hits(0) == 2);
	make_write(false);
	put_in(0); /* as it came: the ICRC tells */
	CU_ASSERT(cable.n == 2 && memcmp(cable.last_extra, complete, sizeof(complete)) != 0);
	cable_close();
}

/* --- hold --- */

static void rules__hold_until_packet(void)
{
	cable_open("hold 1to2 qpn=5 until 2to1 qpn=6 psn=50", NULL);
	for (unsigned i = 0; i < 3; i++)
		cable_pass(0, SEND, 5, i);
	cable_pass(0, SEND, 7, 10);
	cable_pass(1, SEND, 6, 49);
	CU_ASSERT(CABLE_OUT(10, 49) && ur_between_acts(cable.b) && ur_between_next(cable.b) == cable.now + UR_NS_PER_S);
	cable_pass(1, SEND, 6, 50);
	CU_ASSERT(CABLE_OUT(10, 49, 50, 0, 1, 2));
	cable_pass(0, SEND, 5, 3); /* is held again, until its time is over */
	CU_ASSERT_EQUAL(cable.n, 6);
	cable_later(UR_NS_PER_S);
	CU_ASSERT(CABLE_OUT(10, 49, 50, 0, 1, 2, 3) && ur_between_next(cable.b) == UR_TIME_NEVER);
	CU_ASSERT(ur_between_account(cable.b)->did[10] == 4);
	cable_close();
}

/* By what an AETH says. */
static void rules__hold_until_nak(void)
{
	const uint8_t ack[4] = {0x1f}, rnr[4] = {0x21}, nak[4] = {0x60};

	cable_open("hold 1to2 until opcode=NAK,drop opcode=RNR_NAK", NULL);
	cable_pass(0, SEND, 5, 1);
	cable_frame(1, UR_OP_ACK, 6, 10, 0, ack, 4);
	cable_frame(1, UR_OP_ACK, 6, 11, 0, rnr, 4);
	CU_ASSERT(CABLE_OUT(10));
	cable_frame(1, UR_OP_ACK, 6, 12, 0, nak, 4);
	CU_ASSERT(CABLE_OUT(10, 12, 1));
	cable_close();
}

static void rules__hold_until_told(void)
{
	cable_open("hold 1to2 qpn=5 delay=10s most=2 until told,hold 1to2 qpn=6 until told", NULL);
	for (unsigned i = 0; i < 4; i++)
		cable_pass(0, SEND, 5, i);
	cable_pass(0, SEND, 6, 20);
	CU_ASSERT(CABLE_OUT(2, 3)); /* what finds two that wait passes */
	CU_ASSERT(ur_between_release(cable.b, cable.now, 7) == 0 && ur_between_release(cable.b, cable.now, 1) == 2);
	cable_later(0);
	CU_ASSERT(CABLE_OUT(2, 3, 0, 1));
	cable_pass(0, SEND, 5, 4);
	CU_ASSERT_TRUE(ur_between_delete(cable.b, cable.now, 2)); /* lets go what it holds */
	cable_later(0);
	CU_ASSERT(CABLE_OUT(2, 3, 0, 1, 20));
	CU_ASSERT_EQUAL(ur_between_release(cable.b, cable.now, 0), 1);
	cable_later(0);
	CU_ASSERT(CABLE_OUT(2, 3, 0, 1, 20, 4) && cable_hits(0) == 3 && ur_between_next(cable.b) == UR_TIME_NEVER);
	cable_close();
}

/* A fragment has no headers of RoCEv2, whatever stands in their place, nor all of a packet behind them; a header of IPv4 has 20 bytes. */
static void rules__fragments(void)
{
	static const struct {
		uint8_t at, value;
		bool roce;
	} odd[] = {{6, 0x40, true}, {6, 0x20, false}, {7, 1, false}, {6, 0x10, false}, {0, 0x44, false}};

	for (unsigned i = 0; i < ur_array_size(odd); i++) {
		cable_open("drop opcode=WRITE_ONLY", NULL);
		make_write(false);
		made.bytes[made.l3 + odd[i].at] = odd[i].value;
		if (odd[i].at == 0) /* where the UDP header would be then */
			memmove(made.bytes + made.udp - 4, made.bytes + made.udp, made.len - made.udp);
		put_in(0);
		CU_ASSERT(cable_hits(0) == odd[i].roce && ur_between_account(cable.b)->roce[0] == odd[i].roce);
		cable_close();
	}
}

/* What a rule holds that is deleted waits no longer for it, but for what others do; nor does what would come to it from the bottleneck. */
static void rules__hold_is_deleted(void)
{
	const struct ur_spread *late;

	cable_open("delay 1to2 qpn=5 delay=5ms,hold 1to2 delay=10s until told", NULL);
	cable.now = 3600 * UR_NS_PER_S;
	late = &ur_between_account(cable.b)->late[0];
	cable_pass(0, SEND, 5, 1);
	cable_pass(0, SEND, 6, 2);
	CU_ASSERT_TRUE(ur_between_delete(cable.b, cable.now, 2));
	cable_later(0);
	CU_ASSERT(CABLE_OUT(2) && late->most == 0);
	cable_later(5 * UR_NS_PER_MS);
	CU_ASSERT(CABLE_OUT(2, 1) && late->n && late->most == 0);
	CU_ASSERT_EQUAL(cable_add("hold 1to2 delay=10s until told"), 3);
	cable_limit(&(struct ur_between_limit){.rate = 8000000, .queue = 1000});
	cable_pass(0, SEND, 6, 3);
	CU_ASSERT_TRUE(ur_between_delete(cable.b, cable.now, 3));
	cable_later(UR_NS_PER_MS);
	CU_ASSERT(CABLE_OUT(2, 1, 3) && ur_between_next(cable.b) == UR_TIME_NEVER);
	cable_close();
}

/* A packet that is lost, or that waits at the bottleneck, has not passed. */
static void rules__hold_and_queue(void)
{
	cable_open("drop psn=50 times=1,hold 1to2 qpn=5 until 1to2 qpn=6 psn=50", NULL);
	cable_pass(0, SEND, 5, 1);
	cable_pass(0, SEND, 6, 50);
	CU_ASSERT_EQUAL(cable.n, 0);
	cable_limit(&(struct ur_between_limit){.rate = 8000000, .queue = 1000});
	cable_pass(0, SEND, 6, 50);
	CU_ASSERT_EQUAL(cable.n, 0);
	cable_later(118 * UR_NS_PER_US);
	CU_ASSERT(CABLE_OUT(50, 1));
	cable_close();
}

/* However many rules hold. */
static void rules__hold_is_bounded(void)
{
	char rule[64];

	cable_open("", NULL);
	for (unsigned i = 0; i < 4; i++) {
		snprintf(rule, sizeof(rule), "hold qpn=%u most=1000 until told", 5 + i);
		CU_ASSERT_TRUE(cable_add(rule));
	}
	for (unsigned i = 0; i < 2000; i++)
		cable_pass(0, SEND, 5 + i % 4, i);
	CU_ASSERT(cable.n == 0 && ur_between_account(cable.b)->did[8] == 2000 - 1024);
	cable_later(UR_NS_PER_S);
	CU_ASSERT_EQUAL(cable.n, 1024);
	cable_close();
}

/* --- connections --- */

static void cm(unsigned end, struct ur_cm_msg *m)
{
	const struct ur_bth bth = {.opcode = UR_UD | UR_OP_SEND_ONLY, .dqpn = 1};
	uint8_t body[8 + UR_MAD_LEN] = {0x80, 1, 0, 0, 0, 0, 0, 1};

	CU_ASSERT_TRUE_FATAL(ur_cm_msg_build(body + 8, m));
	make(end, false, 0xc000, &bth, body, sizeof(body));
	put_in(end);
}

static void connect_hosts(uint64_t service, uint32_t id, uint32_t qpn0, uint32_t qpn1)
{
	struct ur_cm_msg req = {.attr = UR_CM_REQ, .req = {.local_comm_id = id, .service_id = service, .local_qpn = qpn0}};
	struct ur_cm_msg rep = {.attr = UR_CM_REP, .rep = {.local_comm_id = id + 1000, .remote_comm_id = id, .local_qpn = qpn1}};

	cm(0, &req);
	cm(1, &rep);
}

static void rules__service(void)
{
	cable_open("", NULL);
	connect_hosts(0x01060000 | 18515, 7, 0x100, 0x200); /* before there is a rule */
	CU_ASSERT(cable_add("drop service=18515") == 1 && cable_add("drop 2to1 service=0xabcdef0123") == 2);
	connect_hosts(0x01060000 | 4000, 8, 0x101, 0x201);
	connect_hosts(0xabcdef0123, 9, 0x102, 0x202);
	cable.n = 0;
	for (unsigned i = 0; i < 4; i++) {
		cable_pass(0, SEND, 0x200 + i, i);
		cable_pass(1, SEND, 0x100 + i, 10 + i);
		cable_pass(1, SEND, 0x200 + i, 20 + i); /* the number of a QP at the other host */
	}
	CU_ASSERT(CABLE_OUT(20, 1, 11, 21, 2, 22, 3, 13, 23) && cable_hits(0) == 2 && cable_hits(1) == 1);
	connect_hosts(0x01060000 | 4000, 10, 0x100, 0x200); /* they serve something else now */
	cable.n = 0;
	cable_pass(0, SEND, 0x200, 1);
	CU_ASSERT(CABLE_OUT(1));
	cable_close();
}

/* A REP that nothing asked for teaches nothing, and no number of them takes more memory. */
static void rules__service_strangers(void)
{
	struct ur_cm_msg rep = {.attr = UR_CM_REP, .rep = {.local_comm_id = 5, .remote_comm_id = 7, .local_qpn = 0x200}};

	cable_open("drop service=18515", NULL);
	cm(1, &rep);
	for (unsigned i = 0; i < 3000; i++)
		connect_hosts(0x01060000 | 18515, 5000 + i, 0x1000 + i, 0x8000 + i);
	cable.n = 0;
	cable_pass(0, SEND, 0x200, 1);
	cable_pass(0, SEND, 0x8000 + 2999, 2);
	CU_ASSERT(CABLE_OUT(1));
	cable_close();
}

static void rules__addresses_and_ports(void)
{
	const struct ur_bth bth = {.opcode = SEND, .dqpn = 5};
	const uint8_t body[64] = {0};

	cable_open("drop src=10.0.0.1 port=0xc123,drop dst=fd00::ffff:a00:1 qpn=5", NULL);
	make(0, false, 0xc123, &bth, body, sizeof(body));
	put_in(0);
	make(0, false, 0xc124, &bth, body, sizeof(body));
	put_in(0);
	make(1, false, 0xc123, &bth, body, sizeof(body));
	put_in(1);
	CU_ASSERT(cable_hits(0) == 1 && cable_hits(1) == 0 && cable.n == 2);
	make(1, true, 0xc123, &bth, body, sizeof(body));
	put_in(1);
	CU_ASSERT(cable_hits(0) == 1 && cable_hits(1) == 1 && cable.n == 2);
	cable_close();
}

void ur_suite_between_rules(void)
{
	CU_pSuite s = CU_add_suite("between_rules", NULL, NULL);

	CU_ADD_TEST(s, rules__trim);
	CU_ADD_TEST(s, rules__trim_nothing);
	CU_ADD_TEST(s, rules__trim_before_the_queue);
	CU_ADD_TEST(s, rules__corrupt_parts);
	CU_ADD_TEST(s, rules__corrupt_unseen);
	CU_ADD_TEST(s, rules__corrupt_others);
	CU_ADD_TEST(s, rules__hold_until_packet);
	CU_ADD_TEST(s, rules__hold_until_nak);
	CU_ADD_TEST(s, rules__hold_until_told);
	CU_ADD_TEST(s, rules__fragments);
	CU_ADD_TEST(s, rules__hold_is_deleted);
	CU_ADD_TEST(s, rules__hold_and_queue);
	CU_ADD_TEST(s, rules__hold_is_bounded);
	CU_ADD_TEST(s, rules__service);
	CU_ADD_TEST(s, rules__service_strangers);
	CU_ADD_TEST(s, rules__addresses_and_ports);
}
