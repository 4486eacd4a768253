/* SPDX-License-Identifier: BSD-3-Clause */
/* drivers/udp: ICMP errors, which anybody can send, change neither what leaves nor how long it may be; the host's routes do. */
#include <linux/rtnetlink.h>

#include "drivers/os/netlink.h"
#include "udp_util.h"
#include "wire/msg/icmp.h"

void ur_suite_udp_icmp(void);

#define TOLD 1280                  /* the path MTU of the errors: the least that IPv6 has */
#define LONGER 300                 /* than a packet of PAYLOAD bytes, so that TOLD is too little for it */
#define MANY 200                   /* errors: more than are fetched in one go */
#define QUOTED (UR_QUOTE_LEN + 16) /* more than is looked at, from the BTH on */
#define QUOTE (40 + 8 + QUOTED)

static uint16_t sum16(const uint8_t *b, unsigned len)
{
	uint32_t s = 0;

	for (unsigned i = 0; i < len; i += 2)
		s += (uint32_t)(b[i] << 8 | b[i + 1]);
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return (uint16_t)~s;
}

static uint8_t quoted(unsigned at)
{
	return (uint8_t)(at * 7);
}

/* The headers of a RoCEv2 packet of ours, and what nobody has sent. */
static unsigned put_quote(bool v4, uint8_t *q)
{
	const struct ur_gid g = address(v4);
	const unsigned ip = v4 ? 20 : 40;

	memset(q, 0, QUOTE);
	if (v4) {
		q[0] = 0x45;
		ur_put16(q + 2, 1100);
		q[6] = 0x40;
		q[8] = 64;
		q[9] = IPPROTO_UDP;
		memcpy(q + 12, g.raw + 12, 4);
		memcpy(q + 16, g.raw + 12, 4);
		ur_put16(q + 10, sum16(q, 20));
	} else {
		q[0] = 0x60;
		ur_put16(q + 4, 1100);
		q[6] = IPPROTO_UDP;
		q[7] = 64;
		memcpy(q + 8, g.raw, 16);
		memcpy(q + 24, g.raw, 16);
	}
	ur_put16(q + ip, UR_ROCE_PORT);
	ur_put16(q + ip + 2, UR_ROCE_PORT);
	ur_put16(q + ip + 4, 1100 - ip);
	for (unsigned i = 0; i < QUOTED; i++)
		q[ip + 8 + i] = quoted(i);
	return ip + 8 + QUOTED;
}

/* The kernel computes the checksum of IPv6. */
static void forge(bool v4, uint8_t type, uint8_t code, uint32_t value, unsigned times)
{
	const struct sockaddr_in to4 = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	const struct sockaddr_in6 to6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = socket(v4 ? AF_INET : AF_INET6, SOCK_RAW | SOCK_CLOEXEC, v4 ? IPPROTO_ICMP : IPPROTO_ICMPV6);
	uint8_t m[8 + QUOTE] = {type, code};
	const unsigned len = 8 + put_quote(v4, m + 8);

	ur_put32(m + 4, value);
	if (v4)
		ur_put16(m + 2, sum16(m, len));
	CU_ASSERT_FATAL(fd >= 0);
	for (unsigned i = 0; i < times; i++)
		CU_ASSERT_EQUAL(sendto(fd, m, len, 0, v4 ? (const void *)&to4 : (const void *)&to6, v4 ? sizeof(to4) : sizeof(to6)),
				(ssize_t)len);
	close(fd);
}

static void forge_too_long(bool v4)
{
	forge(v4, v4 ? 3 : 2, v4 ? 4 : 0, TOLD, 1);
}

static void send_longer(bool v4, uint32_t by)
{
	struct ur_pkt *p = build(v4, 0, PAYLOAD, 0);

	memset(p->data + p->len, 0, by);
	p->len += by;
	ur_frame_finish(p, 0);
	CU_ASSERT_EQUAL(ur_queue_tx(port->queue, &p, 1), 1);
}

static void too_long__is_not_believed(void)
{
	for (int v4 = 0; v4 < 2; v4++) {
		const struct ur_gid here = address(v4);
		struct ur_pkt *p;

		forge_too_long(v4);
		for (unsigned i = 0; i < 3; i++) {
			send_longer(v4, LONGER);
			CU_ASSERT_EQUAL_FATAL(receive(port, &p, 1), 1);
			CU_ASSERT_TRUE(p->len > PAYLOAD + LONGER);
			ur_pkts_release(&p, 1);
		}
		CU_ASSERT_EQUAL(send_train(v4, 40, PAYLOAD, 0), 1);
		CU_ASSERT_EQUAL_FATAL(receive(port, &p, 40), 1);
		CU_ASSERT_EQUAL(ur_train_count(p), 40);
		ur_pkts_release(&p, 1);
		CU_ASSERT_EQUAL(port->ops->path_mtu(port, &here), MTU);
	}
	CU_ASSERT_EQUAL(port->queue->tx_refused, 0);
}

/* What the interface itself does not carry is refused, not sent in fragments. */
static void too_long__is_not_cut(void)
{
	for (int v4 = 0; v4 < 2; v4++) {
		const uint64_t before = port->queue->tx_refused;
		struct ur_pkt *p;

		forge_too_long(v4);
		send_longer(v4, 600);
		CU_ASSERT_EQUAL(port->queue->tx_refused, before + 1);
		CU_ASSERT_EQUAL(send_train(v4, 1, 8, 0), 1);
		CU_ASSERT_EQUAL_FATAL(receive(port, &p, 1), 1);
		CU_ASSERT_TRUE(ur_frame_parse(p, &counters) && p->payload_len == 8);
		ur_pkts_release(&p, 1);
	}
}

/* What forbids fragments, and numbers the packets of trains from 0 on, stays as it is when the kernel has been told of a short hop. */
static void too_long__packets_keep_their_numbers(void)
{
	int raw = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP);
	const int off = 0;
	uint8_t ip[2048];
	unsigned n = 0;

	CU_ASSERT_FATAL(raw >= 0);
	CU_ASSERT_EQUAL(setsockopt(ur_queue_wake_fd(port->queue), SOL_UDP, UDP_GRO, &off, sizeof(off)), 0); /* so that it is cut */
	forge_too_long(true);
	for (unsigned round = 0; round < 2; round++) {
		struct ur_pkt *p[20];

		CU_ASSERT_EQUAL(send_train(true, 20, PAYLOAD, 0), 1);
		CU_ASSERT_EQUAL_FATAL(receive(port, p, 20), 20);
		for (unsigned i = 0; i < 20; i++)
			CU_ASSERT_TRUE(ur_frame_parse(p[i], &counters) && p[i]->bth.psn == i);
		ur_pkts_release(p, 20);
	}
	CU_ASSERT_EQUAL(counters.v[UR_C_ICRC], 0);
	while (recv(raw, ip, sizeof(ip), 0) > 0) {
		CU_ASSERT_EQUAL(ur_get16(ip + 6), 0x4000);
		n++;
	}
	CU_ASSERT_TRUE(n > 0);
	close(raw);
}

/* The error that one datagram has caused, or nobody's, fails no other one. */
static void unreachable__fails_no_send(void)
{
	for (int v4 = 0; v4 < 2; v4++) {
		struct ur_pkt *p;

		forge(v4, v4 ? 3 : 1, v4 ? 3 : 4, 0, MANY);
		CU_ASSERT_EQUAL(send_train(v4, 1, 8, 0), 1);
		CU_ASSERT_EQUAL(port->queue->tx_refused, 0);
		CU_ASSERT_EQUAL_FATAL(receive(port, &p, 1), 1);
		CU_ASSERT_TRUE(ur_frame_parse(p, &counters) && p->payload_len == 8);
		ur_pkts_release(&p, 1);
	}
}

static struct {
	struct ur_undelivered u;
	unsigned times;
	uint8_t quote[UR_QUOTE_LEN];
} told;
static void tell(struct ur_port *p, const struct ur_undelivered *u)
{
	(void)p;
	told.u = *u;
	told.times++;
	memcpy(told.quote, u->quote, u->len);
}

/* The owner judges what the packet quotes; a length that no hop has is nothing to judge. */
static void told__what_is_quoted(void)
{
	const struct {
		bool v4;
		uint8_t type, code;
		uint32_t value;
		uint16_t hop_mtu;
		bool told;
		enum ur_icmp_why why;
	} cases[] = {{true, 3, 4, 1400, 1400, true, 0},
		     {true, 3, 4, 0, 576, true, 0},
		     {true, 3, 4, 67, 0, false, 0},
		     {true, 3, 3, 0, 0, true, UR_ICMP_NO_PORT},
		     {true, 3, 1, 0, 0, true, UR_ICMP_NO_WAY},
		     {true, 3, 13, 0, 0, true, UR_ICMP_PROHIBITED},
		     {true, 11, 0, 0, 0, false, 0},
		     {false, 2, 0, 1400, 1400, true, 0},
		     {false, 2, 0, 1279, 0, false, 0},
		     {false, 1, 4, 0, 0, true, UR_ICMP_NO_PORT},
		     {false, 1, 3, 0, 0, true, UR_ICMP_NO_WAY},
		     {false, 1, 1, 0, 0, true, UR_ICMP_PROHIBITED},
		     {false, 3, 0, 0, 0, false, 0}};

	port->undelivered = tell;
	for (unsigned i = 0; i < ur_array_size(cases); i++) {
		const struct ur_gid here = address(cases[i].v4);

		memset(&told, 0, sizeof(told));
		forge(cases[i].v4, cases[i].type, cases[i].code, cases[i].value, 1);
		port->queue->ops->take_error(port->queue);
		CU_ASSERT_EQUAL(told.times, cases[i].told);
		if (!told.times)
			continue;
		CU_ASSERT_EQUAL(told.u.hop_mtu, cases[i].hop_mtu);
		CU_ASSERT_TRUE(told.u.hop_mtu || told.u.why == cases[i].why);
		CU_ASSERT_TRUE(ur_gid_eq(&told.u.dst, &here) && ur_gid_eq(&told.u.from, &here));
		CU_ASSERT_EQUAL(told.u.len, UR_QUOTE_LEN);
		for (unsigned k = 0; k < UR_QUOTE_LEN; k++)
			CU_ASSERT_EQUAL(told.quote[k], quoted(k));
	}
}

/* --- the routes of this host --- */

static void add_route(bool v4, const uint8_t *dst, uint32_t mtu)
{
	const struct rtmsg r = {.rtm_family = v4 ? AF_INET : AF_INET6,
				.rtm_dst_len = v4 ? 32 : 128,
				.rtm_table = RT_TABLE_MAIN,
				.rtm_protocol = RTPROT_STATIC,
				.rtm_scope = v4 ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE,
				.rtm_type = RTN_UNICAST};
	struct nlmsghdr *nlh = ur_netlink_begin(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_ACK, &r, sizeof(r));
	struct nlattr *metrics;

	CU_ASSERT_PTR_NOT_NULL_FATAL(nlh);
	mnl_attr_put(nlh, RTA_DST, v4 ? 4 : 16, dst);
	mnl_attr_put_u32(nlh, RTA_OIF, if_nametoindex("lo"));
	metrics = mnl_attr_nest_start(nlh, RTA_METRICS);
	mnl_attr_put_u32(nlh, RTAX_MTU, mtu);
	mnl_attr_nest_end(nlh, metrics);
	CU_ASSERT_EQUAL(ur_netlink_end(NETLINK_ROUTE, nlh, NULL, NULL), 0);
}

static void path_mtu__is_the_routes(void)
{
	struct ur_gid there4 = ur_gid_from_v4(htonl(0x0a090909)), there6 = {.raw = {0xfd, 9, [15] = 9}},
		      nowhere = {.raw = {0xfd, 8, [15] = 1}};

	add_route(true, there4.raw + 12, 1400);
	add_route(false, there6.raw, 1350);
	CU_ASSERT_EQUAL(port->ops->path_mtu(port, &there4), 1400);
	CU_ASSERT_EQUAL(port->ops->path_mtu(port, &there6), 1350);
	CU_ASSERT_EQUAL(port->ops->path_mtu(port, &nowhere), MTU);
	there4.raw[15]++;
	there6.raw[15]++;
	add_route(true, there4.raw + 12, 9000); /* more than the interface carries */
	add_route(false, there6.raw, 9000);
	CU_ASSERT_EQUAL(port->ops->path_mtu(port, &there4), MTU);
	CU_ASSERT_EQUAL(port->ops->path_mtu(port, &there6), MTU);
}

static void set_lo_mtu(int mtu)
{
	struct ifreq ifr = {.ifr_name = "lo", .ifr_mtu = mtu};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	CU_ASSERT_EQUAL(ioctl(fd, SIOCSIFMTU, &ifr), 0);
	close(fd);
}

/* Lowered while the port is open; what it could carry when it was opened is the most. */
static void path_mtu__is_the_interfaces(void)
{
	static const int mtus[] = {1300, MTU, MTU + 500};

	for (unsigned i = 0; i < ur_array_size(mtus); i++) {
		set_lo_mtu(mtus[i]);
		for (int v4 = 0; v4 < 2; v4++) {
			const struct ur_gid here = address(v4);

			CU_ASSERT_EQUAL(port->ops->path_mtu(port, &here), mtus[i] < MTU ? mtus[i] : MTU);
		}
	}
	set_lo_mtu(MTU);
}

/* Not root: there are no raw sockets and no routes to add. */
static bool may_forge(void)
{
	int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

void ur_suite_udp_icmp(void)
{
	CU_pSuite s = CU_add_suite_with_setup_and_teardown("udp_icmp", init, clean, setup, teardown);

	if (!may_forge())
		return;
	CU_ADD_TEST(s, too_long__is_not_believed);
	CU_ADD_TEST(s, too_long__is_not_cut);
	CU_ADD_TEST(s, too_long__packets_keep_their_numbers);
	CU_ADD_TEST(s, unreachable__fails_no_send);
	CU_ADD_TEST(s, told__what_is_quoted);
	CU_ADD_TEST(s, path_mtu__is_the_routes);
	CU_ADD_TEST(s, path_mtu__is_the_interfaces);
}
