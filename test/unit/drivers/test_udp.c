/* SPDX-License-Identifier: BSD-3-Clause */
/* The port over UDP sockets, on the loopback interface of a network namespace of the test's own. */
#include "host/clock.h"
#include "udp_util.h"
#include "wire/msg/icmp.h"

void ur_suite_udp(void);

static void expect(struct ur_pkt *p, bool v4, unsigned i, uint32_t len)
{
	struct ur_gid g = address(v4);

	CU_ASSERT_TRUE_FATAL(ur_frame_parse(p, &counters));
	CU_ASSERT(p->kind == UR_PKT_ROCE || p->kind == UR_PKT_ROCE_GUESSED);
	CU_ASSERT_EQUAL(p->bth.psn, i);
	CU_ASSERT_EQUAL(p->bth.dqpn, QPN);
	CU_ASSERT_EQUAL(p->payload_len, len);
	CU_ASSERT_EQUAL(memcmp(p->data + p->payload_off, memory[i], len), 0);
	CU_ASSERT_TRUE(ur_gid_eq(&p->src, &g) && ur_gid_eq(&p->dst, &g));
	CU_ASSERT_EQUAL(p->ip_version, v4 ? 4 : 6);
	CU_ASSERT_EQUAL(p->sport, UR_ROCE_PORT);
}

/* A whole train of n packets, the last of them with `last` bytes. */
static void expect_train(const struct ur_pkt *t, bool v4, unsigned n, uint32_t last)
{
	struct ur_train_cursor at = {.place = t->place};
	struct ur_pkt view = {.data = NULL};

	CU_ASSERT_EQUAL_FATAL(ur_train_count(t), n);
	CU_ASSERT_EQUAL(t->flags, UR_PKT_BARE);
	CU_ASSERT_EQUAL(t->bth_off, 0);
	for (unsigned i = 0; i < n; i++) {
		CU_ASSERT_TRUE_FATAL(ur_train_view(t, &at, &view));
		CU_ASSERT_EQUAL(view.place, i);
		expect(&view, v4, i, i + 1 < n ? PAYLOAD : last);
	}
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

static void alloc_train__contract(void)
{
	struct ur_queue *q = port->queue;

	for (unsigned round = 0; round < 3; round++) {
		struct ur_pkt *t[8];

		for (unsigned i = 0; i < ur_array_size(t); i++) {
			t[i] = q->ops->alloc_train(q);
			CU_ASSERT_TRUE(t[i]->room >= 40 + 8 + 14 + q->train_bytes);
			CU_ASSERT_TRUE(!t[i]->len && !t[i]->nseg && !t[i]->tail_len && !t[i]->flags && !t[i]->kind && !t[i]->bth_off);
			CU_ASSERT_TRUE(!t[i]->stride && !t[i]->place && !t[i]->when && !t[i]->next && t[i]->home == q);
			memset(t[i]->data, 0xff, t[i]->room);
			t[i]->len = t[i]->stride = t[i]->bth_off = 200;
		}
		ur_pkts_release(t, ur_array_size(t));
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

		CU_ASSERT_EQUAL(send_train(v4, n, cases[c / 2].last, 0), 1);
		CU_ASSERT_EQUAL(atomic_load(&ref.n), 0); /* everything was copied */
		CU_ASSERT_EQUAL_FATAL(receive(port, p, n), 1);
		expect_train(p[0], v4, n, cases[c / 2].last);
		ur_pkts_release(p, 1);
	}
	CU_ASSERT_EQUAL(counters.v[UR_C_ICRC], 0);
}

/* The kernel is asked when datagrams came for as long as somebody wants to know: when they were sent here, not when they are fetched. */
static void stamp__while_asked_for(void)
{
	unsigned early = 0;

	for (unsigned round = 0; round < 6 || (!early && round < 300); round++) {
		struct ur_pkt *p[64];
		uint64_t before, after;

		port->queue->stamp = round % 3 == 1;
		CU_ASSERT_EQUAL(ur_queue_rx(port->queue, p, 1), 0); /* tells the kernel */
		before = ur_clock_wall();
		CU_ASSERT_EQUAL(send_train(round % 6 < 3, 10, PAYLOAD, 0x20), 1);
		after = ur_clock_wall();
		usleep(3000);
		CU_ASSERT_EQUAL_FATAL(receive(port, p, 10), 1);
		expect_train(p[0], round % 6 < 3, 10, PAYLOAD);
		CU_ASSERT_EQUAL(p[0]->tos, 0x20);
		if (port->queue->stamp)
			CU_ASSERT_TRUE(p[0]->when >= before && p[0]->when <= ur_clock_wall())
		else
			CU_ASSERT_EQUAL(p[0]->when, 0);
		early += port->queue->stamp && p[0]->when <= after + UR_NS_PER_MS;
		ur_pkts_release(p, 1);
	}
	CU_ASSERT_TRUE(early > 0); /* on a busy machine the kernel itself may be late with some */
}

/* Trains among packets, in one call, each with an address and a traffic class of its own. */
static void train__among_others(void)
{
	struct ur_pkt *p[8], *sent[5];

	sent[0] = build_finished(true, 0, 100, 0);
	sent[2] = build_finished(false, 0, 100, 0);
	sent[4] = build_finished(true, 0, 9, 4);
	for (unsigned i = 1; i < 5; i += 2) {
		sent[i] = port->queue->ops->alloc_train(port->queue);
		for (unsigned k = 0; k < 10; k++) {
			struct ur_pkt *one = build_finished(i == 1, k, k < 9 ? PAYLOAD : 4, (uint8_t)(i << 2));

			CU_ASSERT_TRUE(ur_train_append(sent[i], one, 64, 65000));
			ur_pkts_release(&one, 1);
		}
	}
	CU_ASSERT_EQUAL(ur_queue_tx(port->queue, sent, 5), 5);
	CU_ASSERT_EQUAL_FATAL(receive(port, p, 23), 5);
	expect(p[0], true, 0, 100);
	expect_train(p[1], true, 10, 4);
	expect(p[2], false, 0, 100);
	expect_train(p[3], false, 10, 4);
	expect(p[4], true, 0, 9);
	CU_ASSERT_TRUE(p[1]->tos == 4 && p[3]->tos == 12 && p[4]->tos == 4 && p[2]->tos == 0);
	ur_pkts_release(p, 5);
}

/* One after another, each the first message of its call: none goes where the one before it went, or is cut as that was. */
static void way__is_each_packets_own(void)
{
	static const struct {
		bool v4, train;
		uint8_t from, to, tos; /* the last byte of IPv4 addresses */
	} cases[] = {{true, false, 1, 1, 0},   {true, false, 1, 2, 0},    {true, false, 1, 2, 0x20},  {true, false, 3, 2, 0x20},
		     {true, true, 1, 1, 0x20}, {true, false, 1, 1, 0x20}, {false, false, 1, 1, 0x20}, {false, false, 1, 1, 0},
		     {false, true, 1, 1, 0},   {false, false, 1, 1, 0},   {true, false, 1, 1, 0},     {true, false, 1, 1, 0}};

	for (unsigned i = 0; i < ur_array_size(cases); i++) {
		const bool v4 = cases[i].v4;
		struct ur_gid src = address(v4), dst = address(v4);
		struct ur_pkt *p;

		if (cases[i].train) {
			CU_ASSERT_EQUAL(send_train(v4, 3, 20, cases[i].tos), 1);
		} else {
			src.raw[15] = cases[i].from;
			dst.raw[15] = cases[i].to;
			p = build(v4, 0, 40, cases[i].tos);
			memcpy(p->data + p->l3_off + (v4 ? 12 : 8), v4 ? src.raw + 12 : src.raw, v4 ? 4 : 16);
			memcpy(p->data + p->l3_off + (v4 ? 16 : 24), v4 ? dst.raw + 12 : dst.raw, v4 ? 4 : 16);
			ur_frame_finish(p, p->bth.pad);
			CU_ASSERT_EQUAL(ur_queue_tx(port->queue, &p, 1), 1);
		}
		CU_ASSERT_EQUAL_FATAL(receive(port, &p, cases[i].train ? 3 : 1), 1);
		CU_ASSERT_EQUAL(ur_train_count(p), cases[i].train ? 3 : 1);
		CU_ASSERT_TRUE(ur_gid_eq(&p->src, &src) && ur_gid_eq(&p->dst, &dst));
		CU_ASSERT_EQUAL(p->tos, cases[i].tos);
		CU_ASSERT_EQUAL(p->ip_version, v4 ? 4 : 6);
		CU_ASSERT_TRUE(cases[i].train || ur_frame_parse(p, &counters));
		ur_pkts_release(&p, 1);
	}
}

/* Who takes packets a few at a time gets whole trains, and may keep some while others go back. */
static void train__a_few_at_a_time(void)
{
	struct ur_pkt *p[4], *kept;

	for (unsigned i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(send_train(true, 20, 9, 0), 1);
	CU_ASSERT_EQUAL_FATAL(receive(port, p, 5), 1);
	CU_ASSERT_EQUAL_FATAL(receive(port, p + 1, 21), 2);
	CU_ASSERT_EQUAL_FATAL(receive(port, p + 3, 20), 1);
	kept = p[1];
	ur_pkts_release(p, 1);
	ur_pkts_release(p + 2, 2);
	for (unsigned i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(send_train(true, 40, 8, 0), 1); /* into other memory */
		CU_ASSERT_EQUAL_FATAL(receive(port, p, 40), 1);
		expect_train(p[0], true, 40, 8);
		ur_pkts_release(p, 1);
	}
	expect_train(kept, true, 20, 9);
	ur_pkts_release(&kept, 1);
}

/* Who keeps all long buffers receives nothing, loses nothing, and goes on afterwards. */
static void train__without_buffers(void)
{
	static struct ur_pkt *all[4096];
	struct ur_queue *q = port->queue;
	struct ur_pkt *p;
	unsigned n = 0;

	CU_ASSERT_EQUAL(send_train(true, 20, 9, 0), 1);
	while (n < ur_array_size(all) && (all[n] = q->ops->alloc_train(q)))
		n++;
	CU_ASSERT_TRUE(n > 0 && n < ur_array_size(all));
	CU_ASSERT_EQUAL(ur_queue_rx(q, &p, 1), 0);
	ur_pkts_release(all, n);
	CU_ASSERT_EQUAL_FATAL(receive(port, &p, 20), 1);
	expect_train(p, true, 20, 9);
	ur_pkts_release(&p, 1);
}

/* A receiver that does not ask for trains gets datagrams, and does not see the identifications that the kernel gave them. */
static void train__cut_by_the_kernel(void)
{
	const int off = 0;
	struct ur_pkt *p[20];

	CU_ASSERT_EQUAL(setsockopt(ur_queue_wake_fd(port->queue), SOL_UDP, UDP_GRO, &off, sizeof(off)), 0);
	CU_ASSERT_EQUAL(send_train(true, 20, 100, 0), 1);
	CU_ASSERT_EQUAL_FATAL(receive(port, p, 20), 20);
	for (unsigned i = 0; i < 20; i++) {
		CU_ASSERT_EQUAL(p[i]->place, 0);
		CU_ASSERT_EQUAL(p[i]->stride, 0);
		expect(p[i], true, i, i < 19 ? PAYLOAD : 100);
	}
	ur_pkts_release(p, 20);
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

/* Packets that are too long for the interface: the whole train is refused, and counts. */
static void too_long__train(void)
{
	struct ur_pkt *t = port->queue->ops->alloc_train(port->queue), *p;

	for (unsigned i = 0; i < 7; i++) {
		p = build(true, i, PAYLOAD, 0);
		memset(p->data + p->len, 0, 1000);
		p->len += 1000;
		ur_frame_finish(p, 0);
		CU_ASSERT_TRUE(ur_train_append(t, p, 64, 65000));
		ur_pkts_release(&p, 1);
	}
	CU_ASSERT_EQUAL(ur_queue_tx(port->queue, &t, 1), 1);
	CU_ASSERT_EQUAL(port->queue->tx_refused, 7);
	CU_ASSERT_EQUAL(send_train(true, 5, 8, 0), 1); /* and the next one leaves */
	CU_ASSERT_EQUAL_FATAL(receive(port, &p, 5), 1);
	expect_train(p, true, 5, 8);
	ur_pkts_release(&p, 1);
}

/* What the kernel had no room for is known when somebody asks, or else once the next packet after it is fetched. */
static void overflow__is_counted(void)
{
	int fd = ur_queue_wake_fd(port->queue), small = 1;
	struct ur_pkt *p[64];
	unsigned sent = 0, got = 0, n;
	uint64_t missed;

	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	for (; sent < 50; sent++)
		CU_ASSERT_EQUAL(send_train(true, 1, PAYLOAD, 0), 1);
	ur_udp_missed(port);
	missed = port->queue->rx_missed;
	while ((n = ur_queue_rx(port->queue, p, 64))) {
		got += n;
		ur_pkts_release(p, n);
	}
	CU_ASSERT_TRUE(got && got < sent);
	CU_ASSERT_EQUAL(missed, sent - got);
	CU_ASSERT_EQUAL(port->queue->rx_missed, missed);
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

/* One that is not shared is refused while there is another one, and refuses others while it is there. */
static void port__alone(void)
{
	const struct ur_udp_config shared = {.ifname = "lo", .mtu = MTU}, alone = {.ifname = "lo", .mtu = MTU, .alone = true};
	struct ur_port *other = NULL, *third = NULL;
	char err[400] = "";

	CU_ASSERT_EQUAL(ur_udp_open(&alone, &other, err, sizeof(err)), EADDRINUSE);
	CU_ASSERT_EQUAL_FATAL(ur_udp_open(&shared, &other, err, sizeof(err)), 0);
	other->ops->close(other);
	port->ops->close(port);
	CU_ASSERT_EQUAL_FATAL(ur_udp_open(&alone, &other, err, sizeof(err)), 0);
	CU_ASSERT_EQUAL(ur_udp_open(&shared, &third, err, sizeof(err)), EADDRINUSE);
	CU_ASSERT_EQUAL(ur_udp_open(&alone, &third, err, sizeof(err)), EADDRINUSE);
	other->ops->close(other);
	port = open_port();
}

static struct ur_gid told;
static uint8_t told_quote[UR_QUOTE_LEN];
static unsigned told_len;
static void tell(struct ur_port *p, const struct ur_undelivered *u)
{
	(void)p;
	told = u->dst;
	told_len = u->len;
	memcpy(told_quote, u->quote, u->len);
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
	port->undelivered = tell;
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
	CU_ADD_TEST(s, alloc_train__contract);
	CU_ADD_TEST(s, train__arrives_whole);
	CU_ADD_TEST(s, train__among_others);
	CU_ADD_TEST(s, way__is_each_packets_own);
	CU_ADD_TEST(s, train__a_few_at_a_time);
	CU_ADD_TEST(s, train__cut_by_the_kernel);
	CU_ADD_TEST(s, train__without_buffers);
	CU_ADD_TEST(s, too_long__is_refused);
	CU_ADD_TEST(s, too_long__train);
	CU_ADD_TEST(s, overflow__is_counted);
	CU_ADD_TEST(s, port__taken_by_another);
	CU_ADD_TEST(s, port__alone);
	CU_ADD_TEST(s, port__interface_unknown);
	CU_ADD_TEST(s, error__is_taken);
	CU_ADD_TEST(s, groups__replace_one_another);
	CU_ADD_TEST(s, path_mtu__is_the_routes);
	CU_ADD_TEST(s, stamp__while_asked_for);
}
