/* SPDX-License-Identifier: BSD-3-Clause */
/* drivers/udp: which of the sockets of one device gets which packet. */
#include "udp_util.h"

#include "wire/msg/cm_msg.h"

void ur_suite_udp_steering(void);

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
		{UR_CM_REQ, 0x06000001, 0, 0x1061c06, 1}, /* 7174 */
		{UR_CM_REQ, 0x06000001, 0, 0x1061f40, 0}, /* 8000 */
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

void ur_suite_udp_steering(void)
{
	CU_pSuite s = CU_add_suite_with_setup_and_teardown("udp_steering", init, clean, setup, teardown);

	CU_ADD_TEST(s, steering__follows_the_slot);
	CU_ADD_TEST(s, steering__by_chance_for_the_rest);
	CU_ADD_TEST(s, steering__follows_ids_and_listeners);
	CU_ADD_TEST(s, steering__of_as_many_as_there_may_be);
}
