/* SPDX-License-Identifier: BSD-3-Clause */
/* The port over UDP sockets, on the loopback interface of a network namespace of the test's own. */
#include <CUnit/CUnit.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "drivers/udp/udp.h"
#include "wire/cm_msg.h"
#include "wire/frame.h"
#include "wire/icrc.h"
#include "wire/train.h"

void ur_suite_udp(void);

#define MTU 1500
#define PAYLOAD 1024
#define QPN 0x090001

static int home_ns = -1;
static struct ur_port *port;
static struct ur_counters counters;
static uint8_t memory[64][PAYLOAD];
static struct ur_ref ref;

/* --- a world of its own --- */

static int set_up_lo(void)
{
	struct ifreq ifr = {.ifr_name = "lo"};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), r;

	ifr.ifr_flags = IFF_UP | IFF_RUNNING | IFF_LOOPBACK;
	r = ioctl(fd, SIOCSIFFLAGS, &ifr);
	ifr = (struct ifreq){.ifr_name = "lo", .ifr_mtu = MTU};
	r |= ioctl(fd, SIOCSIFMTU, &ifr);
	close(fd);
	return r;
}

/* Not root: the loopback interface that there is, as it is. */
static int init(void)
{
	home_ns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	return unshare(CLONE_NEWNET) == 0 ? set_up_lo() : 0;
}

static int clean(void)
{
	int r = setns(home_ns, CLONE_NEWNET) && errno != EPERM;

	close(home_ns);
	return r;
}

static struct ur_port *open_port(void)
{
	const struct ur_udp_config cfg = {.ifname = "lo", .mtu = MTU};
	struct ur_port *p = NULL;
	char err[400] = "";

	CU_ASSERT_EQUAL_FATAL(ur_udp_open(&cfg, &p, err, sizeof(err)), 0);
	CU_ASSERT_FATAL(p->queue->caps == (UR_QUEUE_BARE | UR_QUEUE_STEERED));
	return p;
}

static void setup(void)
{
	counters = (struct ur_counters){{0}};
	atomic_store(&ref.n, 0);
	for (unsigned i = 0; i < ur_array_size(memory); i++)
		memset(memory[i], (int)i + 1, PAYLOAD);
	port = open_port();
}

static void teardown(void)
{
	port->ops->close(port);
	CU_ASSERT_EQUAL(atomic_load(&ref.n), 0);
}

static struct ur_gid address(bool v4)
{
	struct ur_gid g = {{[15] = 1}};

	return v4 ? ur_gid_from_v4(htonl(INADDR_LOOPBACK)) : g;
}

/* A WRITE_MIDDLE of `len` bytes of memory[i], not finished. */
static struct ur_pkt *build(bool v4, unsigned i, uint32_t len, uint8_t tos)
{
	static const struct ur_mac none;
	struct ur_gid g = address(v4);
	struct ur_path path = {.hdr_len = 0};
	struct ur_pkt *p = NULL;

	CU_ASSERT_EQUAL_FATAL(ur_queue_alloc(port->queue, &p, 1), 1);
	ur_path_build(&path, &none, &none, 0, &g, &g, tos, 64, 0, UR_ROCE_PORT);
	memcpy(p->data, path.hdr, path.hdr_len);
	p->kind = UR_PKT_ROCE;
	p->ip_version = path.ip_version;
	p->l3_off = path.l3_off;
	p->bth_off = path.hdr_len;
	p->bth = (struct ur_bth){.opcode = UR_RC | UR_OP_WRITE_MIDDLE, .pkey = UR_PKEY_DEFAULT, .dqpn = QPN, .psn = i, .pad = -len & 3};
	ur_bth_put(p->data + p->bth_off, &p->bth);
	p->len = p->bth_off + UR_BTH_LEN;
	p->seg[0] = (struct ur_seg){memory[i], len, &ref};
	p->nseg = 1;
	ur_pkt_hold(p);
	return p;
}

static unsigned send_train(bool v4, unsigned n, uint32_t last_len, uint8_t tos)
{
	struct ur_pkt *p[64];

	for (unsigned i = 0; i < n; i++)
		p[i] = build(v4, i, i + 1 < n ? PAYLOAD : last_len, tos);
	ur_train_mark(p, n, port->queue->train_pkts, port->queue->train_bytes);
	for (unsigned i = 0; i < n; i++)
		ur_frame_finish(p[i], p[i]->bth.pad);
	return ur_queue_tx(port->queue, p, n);
}

/* Waits for up to n packets in all. */
static unsigned receive(struct ur_port *from, struct ur_pkt **p, unsigned n)
{
	struct pollfd fd = {.fd = ur_queue_wake_fd(from->queue), .events = POLLIN};
	unsigned got = 0;

	while (got < n) {
		unsigned k = ur_queue_rx(from->queue, p + got, n - got);

		if (!k && poll(&fd, 1, 200) <= 0)
			break;
		got += k;
	}
	return got;
}

static void expect(struct ur_pkt *p, bool v4, unsigned i, uint32_t len)
{
	struct ur_gid g = address(v4);

	CU_ASSERT_TRUE_FATAL(ur_frame_parse(p, &counters));
	CU_ASSERT_EQUAL(p->kind, UR_PKT_ROCE);
	CU_ASSERT_EQUAL(p->bth.psn, i);
	CU_ASSERT_EQUAL(p->bth.dqpn, QPN);
	CU_ASSERT_EQUAL(p->payload_len, len);
	CU_ASSERT_EQUAL(memcmp(p->data + p->payload_off, memory[i], len), 0);
	CU_ASSERT_TRUE(ur_gid_eq(&p->src, &g) && ur_gid_eq(&p->dst, &g));
	CU_ASSERT_EQUAL(p->ip_version, v4 ? 4 : 6);
	CU_ASSERT_EQUAL(p->sport, UR_ROCE_PORT);
}

/* --- datagrams and trains --- */

static void datagram__arrives_bare(void)
{
	for (int v4 = 0; v4 < 2; v4++) {
		struct ur_pkt *p;

		CU_ASSERT_EQUAL(send_train(v4, 1, 301, 0xba), 1);
		CU_ASSERT_EQUAL_FATAL(receive(port, &p, 1), 1);
		expect(p, v4, 0, 301);
		CU_ASSERT_EQUAL(p->tos, 0xba);
		CU_ASSERT_EQUAL(p->place, 0);
		ur_pkts_release(&p, 1);
	}
}

static void train__arrives_whole(void)
{
	static const struct {
		unsigned n;
		uint32_t last;
	} cases[] = {{2, PAYLOAD}, {15, 7}, {62, PAYLOAD}, {60, 0}};

	for (unsigned c = 0; c < 2 * ur_array_size(cases); c++) {
		bool v4 = c & 1;
		unsigned n = cases[c / 2].n;
		struct ur_pkt *p[64];

		CU_ASSERT_EQUAL(send_train(v4, n, cases[c / 2].last, 0), n);
		CU_ASSERT_EQUAL(atomic_load(&ref.n), 0); /* the kernel has copied it */
		CU_ASSERT_EQUAL_FATAL(receive(port, p, n), n);
		for (unsigned i = 0; i < n; i++) {
			expect(p[i], v4, i, i + 1 < n ? PAYLOAD : cases[c / 2].last);
			CU_ASSERT_EQUAL(p[i]->place, i);
		}
		ur_pkts_release(p, n);
	}
	CU_ASSERT_EQUAL(counters.v[UR_C_ICRC], 0);
}

/* Who takes packets a few at a time gets all of them, and may keep some while others go back. */
static void train__a_few_at_a_time(void)
{
	struct ur_pkt *p[40], *kept;

	CU_ASSERT_EQUAL(send_train(true, 40, 9, 0), 40);
	for (unsigned i = 0; i < 40; i += 5)
		CU_ASSERT_EQUAL_FATAL(receive(port, p + i, 5), 5);
	kept = p[17];
	ur_pkts_release(p, 17);
	ur_pkts_release(p + 18, 22);
	CU_ASSERT_EQUAL(send_train(true, 40, 9, 0), 40); /* into other memory */
	CU_ASSERT_EQUAL_FATAL(receive(port, p, 40), 40);
	expect(kept, true, 17, PAYLOAD);
	ur_pkts_release(p, 40);
	ur_pkts_release(&kept, 1);
}

/* A receiver that does not ask for trains gets datagrams, and does not see the identifications that the kernel gave them. */
static void train__cut_by_the_kernel(void)
{
	const int off = 0;
	struct ur_pkt *p[20];

	CU_ASSERT_EQUAL(setsockopt(ur_queue_wake_fd(port->queue), SOL_UDP, UDP_GRO, &off, sizeof(off)), 0);
	CU_ASSERT_EQUAL(send_train(true, 20, 100, 0), 20);
	CU_ASSERT_EQUAL_FATAL(receive(port, p, 20), 20);
	for (unsigned i = 0; i < 20; i++) {
		CU_ASSERT_EQUAL(p[i]->place, 0);
		expect(p[i], true, i, i < 19 ? PAYLOAD : 100);
	}
	ur_pkts_release(p, 20);
}

/* The rest of a train that lost its head, as after faults: each has its ICRC mended. */
static void train__torn_apart(void)
{
	struct ur_pkt *p[8], *r[6];

	for (unsigned i = 0; i < 8; i++)
		p[i] = build(true, i, PAYLOAD, 0);
	ur_train_mark(p, 8, port->queue->train_pkts, port->queue->train_bytes);
	for (unsigned i = 0; i < 8; i++)
		ur_frame_finish(p[i], p[i]->bth.pad);
	ur_pkts_release(p, 2);
	CU_ASSERT_EQUAL(ur_queue_tx(port->queue, p + 2, 6), 6);
	CU_ASSERT_EQUAL_FATAL(receive(port, r, 6), 6);
	for (unsigned i = 0; i < 6; i++) {
		CU_ASSERT_EQUAL(r[i]->place, 0);
		expect(r[i], true, i + 2, PAYLOAD);
	}
	ur_pkts_release(r, 6);
}

/* --- what goes wrong --- */

static void too_long__is_refused(void)
{
	struct ur_pkt *p = build(true, 0, PAYLOAD, 0);

	memset(p->data + p->len, 0, 1000);
	p->len += 1000;
	ur_frame_finish(p, 0);
	CU_ASSERT_EQUAL(ur_queue_tx(port->queue, &p, 1), 1);
	CU_ASSERT_EQUAL(port->queue->tx_refused, 1);
	CU_ASSERT_EQUAL(send_train(true, 1, 8, 0), 1); /* and the next one leaves */
	CU_ASSERT_EQUAL_FATAL(receive(port, &p, 1), 1);
	expect(p, true, 0, 8);
	ur_pkts_release(&p, 1);
}

/* What the kernel had no room for is known once the next packet after it is fetched. */
static void overflow__is_counted(void)
{
	int fd = ur_queue_wake_fd(port->queue), small = 1;
	struct ur_pkt *p[64];
	unsigned sent = 0, got = 0, n;

	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	for (; sent < 50; sent++)
		CU_ASSERT_EQUAL(send_train(true, 1, PAYLOAD, 0), 1);
	while ((n = ur_queue_rx(port->queue, p, 64))) {
		got += n;
		ur_pkts_release(p, n);
	}
	CU_ASSERT_TRUE(got && got < sent);
	CU_ASSERT_EQUAL(send_train(true, 1, PAYLOAD, 0), 1);
	CU_ASSERT_EQUAL_FATAL(receive(port, p, 1), 1);
	CU_ASSERT_EQUAL(port->queue->rx_missed, sent - got);
	ur_pkts_release(p, 1);
}

static void port__taken_by_another(void)
{
	const struct ur_udp_config cfg = {.ifname = "lo", .mtu = MTU};
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(UR_ROCE_PORT)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ur_port *other = NULL;
	char err[400] = "";

	port->ops->close(port);
	CU_ASSERT_EQUAL(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	CU_ASSERT_EQUAL(ur_udp_open(&cfg, &other, err, sizeof(err)), EADDRINUSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "4791"));
	close(fd);
	port = open_port();
}

static struct ur_gid told;
static uint8_t told_quote[UR_BTH_LEN];
static unsigned told_len;
static void tell(struct ur_port *p, const struct ur_gid *dst, const uint8_t *quote, unsigned len)
{
	(void)p;
	told = *dst;
	told_len = len;
	memcpy(told_quote, quote, len);
}

/* The owner is told of an ICMP error, and the descriptor can be slept on again. Here the kernel's own: too long for the path. */
static void error__is_taken(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(UR_ROCE_PORT), .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct sockaddr_in6 mapped = {.sin6_family = AF_INET6, .sin6_port = htons(UR_ROCE_PORT)};
	static const uint8_t long_one[4000];
	int fd = ur_queue_wake_fd(port->queue);
	struct pollfd pfd = {.fd = fd};
	struct ur_gid here = address(true);

	told = (struct ur_gid){{0}};
	port->unreachable = tell;
	memcpy(mapped.sin6_addr.s6_addr, here.raw, 16);
	CU_ASSERT_TRUE(sendto(fd, long_one, sizeof(long_one), 0, (struct sockaddr *)&mapped, sizeof(mapped)) < 0 ||
		       sendto(fd, long_one, sizeof(long_one), 0, (struct sockaddr *)&to, sizeof(to)) < 0);
	CU_ASSERT_EQUAL(poll(&pfd, 1, 0), 1);
	CU_ASSERT_TRUE(pfd.revents & POLLERR);
	port->queue->ops->take_error(port->queue);
	CU_ASSERT_EQUAL(poll(&pfd, 1, 0), 0);
	CU_ASSERT_TRUE(ur_gid_is_zero(&told)); /* a local one says nothing of the peer */
}

static void port__interface_unknown(void)
{
	const struct ur_udp_config cfg = {.ifname = "no-such", .mtu = MTU};
	struct ur_port *other = NULL;
	char err[400] = "";

	CU_ASSERT_EQUAL(ur_udp_open(&cfg, &other, err, sizeof(err)), ENODEV);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "'no-such' does not exist"));
}

/* --- sharing --- */

static void steering__follows_the_slot(void)
{
	const struct ur_port_sharing one_is_ours = {.sharers = 2, .slot = {5, QPN >> 16}};
	const struct ur_port_sharing first_is = {.sharers = 2, .slot = {QPN >> 16, 5}};
	struct ur_port *second = open_port();
	struct ur_pkt *p;

	CU_ASSERT_EQUAL(port->ops->steer(port, &one_is_ours), 0);
	CU_ASSERT_EQUAL(send_train(true, 1, 8, 0), 1);
	CU_ASSERT_EQUAL_FATAL(receive(second, &p, 1), 1);
	ur_pkts_release(&p, 1);
	CU_ASSERT_EQUAL(second->ops->steer(second, &first_is), 0);
	CU_ASSERT_EQUAL(send_train(true, 1, 8, 0), 1);
	CU_ASSERT_EQUAL_FATAL(receive(port, &p, 1), 1);
	ur_pkts_release(&p, 1);
	CU_ASSERT_EQUAL(port->ops->steer(port, &(struct ur_port_sharing){.sharers = 0}), 0); /* nobody is known: to either */
	CU_ASSERT_EQUAL(send_train(true, 1, 8, 0), 1);
	CU_ASSERT_EQUAL(receive(port, &p, 1) || receive(second, &p, 1), 1);
	ur_pkts_release(&p, 1);
	second->ops->close(second);
}

/* One of them may be stopped: what is repeated reaches another in the end. */
static void steering__by_chance_for_the_rest(void)
{
	const struct ur_port_sharing others = {.sharers = 2, .slot = {5, 6}};
	struct ur_port *second = open_port();
	unsigned first = 0, n = 64;
	struct ur_pkt *p;

	CU_ASSERT_EQUAL(port->ops->steer(port, &others), 0);
	for (unsigned i = 0; i < n; i++) {
		CU_ASSERT_EQUAL(send_train(true, 1, 8, 0), 1);
		if (receive(port, &p, 1))
			first++;
		else
			CU_ASSERT_EQUAL_FATAL(receive(second, &p, 1), 1);
		ur_pkts_release(&p, 1);
	}
	CU_ASSERT_TRUE(first > 0 && first < n);
	second->ops->close(second);
}

/* A CM message as the kernel sees it: behind the BTH and the DETH a MAD. */
static void send_mad(uint16_t attribute, uint32_t local_id, uint32_t remote_id, uint64_t service)
{
	const struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(UR_ROCE_PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint8_t b[12 + 8 + 256 + 4] = {0x64}, *mad = b + 20;

	ur_put32(b + 4, 1); /* QP 1 */
	ur_put16(mad + 16, attribute);
	ur_put32(mad + 24, local_id);
	ur_put32(mad + 28, remote_id);
	if (service)
		ur_put64(mad + 32, service);
	CU_ASSERT_EQUAL(sendto(fd, b, sizeof(b), 0, (const struct sockaddr *)&to, sizeof(to)), sizeof(b));
	close(fd);
}

/* Which of two has it? */
static int who_got_it(struct ur_port *second)
{
	struct ur_port *both[] = {port, second};
	int got = -1;

	for (int i = 0; i < 2; i++) {
		uint8_t b[512];

		if (recv(both[i]->queue->ops->wake_fd(both[i]->queue), b, sizeof(b), MSG_DONTWAIT) > 0)
			got = got < 0 ? i : 9;
	}
	return got;
}

static void steering__follows_ids_and_listeners(void)
{
	const struct ur_port_sharing s = {.sharers = 2, .slot = {5, 6}, .listens = 3, .listen = {{7174, 1}, {8000, 0}, {7174, 0}}};
	static const struct {
		uint16_t attribute;
		uint32_t local, remote;
		uint64_t service;
		int to;
	} cases[] = {
		{UR_CM_REQ, 0x06000001, 0, 0x1061c06, 1},      /* 7174 */
		{UR_CM_REQ, 0x06000001, 0, 0x1061f40, 0},      /* 8000 */
		{UR_CM_SIDR_REQ, 0x05000001, 0, 0x1111c06, 1},
		{UR_CM_REP, 0x06000001, 0x05abcdef, 0, 0},
		{UR_CM_REP, 0x05000001, 0x06abcdef, 0, 1},
		{UR_CM_RTU, 0x05000001, 0x06abcdef, 0, 1},
		{UR_CM_REJ, 0x05000001, 0x06abcdef, 0, 1},
		{UR_CM_DREQ, 0x06000001, 0x05abcdef, 0, 0},
		{UR_CM_DREP, 0x05000001, 0x06abcdef, 0, 1},
		{UR_CM_SIDR_REP, 0x06abcdef, 0x05000001, 0, 1}, /* the request's id comes first */
		{UR_CM_SIDR_REP, 0x05abcdef, 0x06000001, 0, 0},
	};
	struct ur_port *second = open_port();

	CU_ASSERT_EQUAL(port->ops->steer(port, &s), 0);
	for (unsigned i = 0; i < ur_array_size(cases); i++) {
		for (unsigned n = 0; n < 8; n++) { /* by chance it would not be the same each time */
			send_mad(cases[i].attribute, cases[i].local, cases[i].remote, cases[i].service);
			CU_ASSERT_EQUAL(who_got_it(second), cases[i].to);
		}
	}
	send_mad(UR_CM_REQ, 0x06000001, 0, 0x1060001); /* nobody's: one of them refuses it */
	CU_ASSERT_TRUE(who_got_it(second) < 2);
	second->ops->close(second);
}

/* As long as the kernel takes a program, and no longer. */
static void steering__of_as_many_as_there_may_be(void)
{
	struct ur_port_sharing s = {.sharers = 255, .listens = UR_PORT_LISTENS};

	for (unsigned i = 0; i < s.sharers; i++)
		s.slot[i] = (uint8_t)(i + 1);
	for (unsigned i = 0; i < s.listens; i++)
		s.listen[i].port = (uint16_t)(i + 1);
	CU_ASSERT_EQUAL(port->ops->steer(port, &s), 0);
	s.listens++;
	CU_ASSERT_EQUAL(port->ops->steer(port, &s), EINVAL);
}

static void groups__replace_one_another(void)
{
	struct ur_gid g[3] = {ur_gid_from_v4(htonl(0xef010203)), ur_gid_from_v4(htonl(0xef010204)), ur_gid_from_v4(htonl(0x7f000001))};

	CU_ASSERT_EQUAL(port->ops->set_groups(port, g, 1), 0);
	CU_ASSERT_EQUAL(port->ops->set_groups(port, g, 2), 0);
	CU_ASSERT_EQUAL(port->ops->set_groups(port, g, 3), EINVAL); /* the last is no group: nothing has changed */
	CU_ASSERT_EQUAL(port->ops->set_groups(port, g + 1, 1), 0);
	CU_ASSERT_EQUAL(port->ops->set_groups(port, NULL, 0), 0);
	CU_ASSERT_EQUAL(port->ops->set_groups(port, g, 5000), ENOSPC);
}

static void path_mtu__is_the_routes(void)
{
	for (int v4 = 0; v4 < 2; v4++) {
		struct ur_gid here = address(v4);

		CU_ASSERT_EQUAL(port->ops->path_mtu(port, &here), MTU);
	}
}

void ur_suite_udp(void)
{
	CU_pSuite s = CU_add_suite_with_setup_and_teardown("udp", init, clean, setup, teardown);

	CU_ADD_TEST(s, datagram__arrives_bare);
	CU_ADD_TEST(s, train__arrives_whole);
	CU_ADD_TEST(s, train__a_few_at_a_time);
	CU_ADD_TEST(s, train__cut_by_the_kernel);
	CU_ADD_TEST(s, train__torn_apart);
	CU_ADD_TEST(s, too_long__is_refused);
	CU_ADD_TEST(s, overflow__is_counted);
	CU_ADD_TEST(s, port__taken_by_another);
	CU_ADD_TEST(s, port__interface_unknown);
	CU_ADD_TEST(s, error__is_taken);
	CU_ADD_TEST(s, steering__follows_the_slot);
	CU_ADD_TEST(s, steering__by_chance_for_the_rest);
	CU_ADD_TEST(s, steering__follows_ids_and_listeners);
	CU_ADD_TEST(s, steering__of_as_many_as_there_may_be);
	CU_ADD_TEST(s, groups__replace_one_another);
	CU_ADD_TEST(s, path_mtu__is_the_routes);
}
