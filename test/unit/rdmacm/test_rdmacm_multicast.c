/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/rdmacm/multicast.c: joins, their events and QPs, in a process that hears its own multicasts. */
#include <infiniband/ib.h>

#include "rdmacm_fixture.h"
#include "wire/frame.h"

void ur_suite_rdmacm_multicast(void);

#define GROUP "239.1.2.3"
#define GROUP6 "ff0e::1:5"
#define GRH 40

static int context;

static int open_side(struct rx_side *s, enum rdma_port_space ps, const char *addr, bool qp)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_UD, .cap = {8, 8, 1, 1, 0}};

	memset(s, 0, sizeof(*s));
	s->ch = rdma_create_event_channel();
	WANT(s->ch && !rdma_create_id(s->ch, &s->id, NULL, ps));
	WANT(!addr || !rdma_bind_addr(s->id, rx_address(addr, 0)));
	WANT(!qp || !rdma_create_qp(s->id, NULL, &attr));
	return 0;
}

#define OPEN(s, ps, addr, qp)                                                                                                              \
	do {                                                                                                                               \
		int line_ = open_side(s, ps, addr, qp);                                                                                    \
		if (line_)                                                                                                                 \
			return line_;                                                                                                      \
	} while (0)
#define NEXT(s, type)                                                                                                                      \
	do {                                                                                                                               \
		int line_ = rx_next(s, type);                                                                                              \
		if (line_)                                                                                                                 \
			return __LINE__;                                                                                                   \
	} while (0)

static unsigned members(struct rdma_cm_id *id)
{
	struct ur_id *u = (struct ur_id *)id;
	unsigned n;

	ur_id_lock(u);
	n = ur_net_groups(u->nic->net, NULL, 0);
	ur_id_unlock(u);
	return n;
}

static unsigned attached(struct rdma_cm_id *id)
{
	struct ur_id *u = (struct ur_id *)id;
	unsigned n;

	ur_id_lock(u);
	n = ur_mcast_list(u->nic->tp, NULL, 0);
	ur_id_unlock(u);
	return n;
}

static int join_ex(struct rdma_cm_id *id, uint32_t mask, uint32_t flags, struct sockaddr *addr, void *ctx)
{
	struct rdma_cm_join_mc_attr_ex attr = {.comp_mask = mask, .join_flags = flags, .addr = addr};

	return rdma_join_multicast_ex(id, &attr, ctx);
}

/* --- what is refused --- */

static int arguments(void)
{
	struct sockaddr other = {.sa_family = AF_UNIX};
	struct rx_side s, tcp, idle;

	OPEN(&s, RDMA_PS_UDP, "10.0.0.1", false);
	OPEN(&tcp, RDMA_PS_TCP, "10.0.0.1", false);
	OPEN(&idle, RDMA_PS_UDP, NULL, false);
	WANT_ERRNO(rdma_join_multicast(NULL, rx_address(GROUP, 0), NULL), EINVAL);
	WANT_ERRNO(rdma_join_multicast(s.id, NULL, NULL), EINVAL);
	WANT_ERRNO(rdma_join_multicast(s.id, &other, NULL), EINVAL);
	WANT_ERRNO(rdma_join_multicast(s.id, rx_address("10.0.0.2", 0), NULL), EINVAL);
	WANT_ERRNO(rdma_join_multicast(s.id, rx_address("0.0.0.0", 0), NULL), EINVAL);
	WANT_ERRNO(rdma_join_multicast(tcp.id, rx_address(GROUP, 0), NULL), EINVAL);
	WANT_ERRNO(rdma_join_multicast(idle.id, rx_address(GROUP, 0), NULL), EINVAL);
	WANT(!rdma_bind_addr(idle.id, rx_address("0.0.0.0", 0))); /* to no device yet */
	WANT_ERRNO(rdma_join_multicast(idle.id, rx_address(GROUP, 0), NULL), EINVAL);
	WANT_ERRNO(rdma_join_multicast_ex(s.id, NULL, NULL), EINVAL);
	WANT_ERRNO(join_ex(NULL, 3, 0, rx_address(GROUP, 0), NULL), EINVAL);
	WANT_ERRNO(join_ex(s.id, 0, 0, rx_address(GROUP, 0), NULL), EINVAL);
	WANT_ERRNO(join_ex(s.id, 1, 0, rx_address(GROUP, 0), NULL), EINVAL);
	WANT_ERRNO(join_ex(s.id, 2, 0, rx_address(GROUP, 0), NULL), EINVAL);
	WANT_ERRNO(join_ex(s.id, 4, 0, rx_address(GROUP, 0), NULL), EOPNOTSUPP);
	WANT_ERRNO(join_ex(s.id, 7, 0, rx_address(GROUP, 0), NULL), EOPNOTSUPP);
	WANT_ERRNO(join_ex(s.id, 3, RDMA_MC_JOIN_FLAG_RESERVED, rx_address(GROUP, 0), NULL), EINVAL);
	WANT_ERRNO(join_ex(s.id, 3, 0, NULL, NULL), EINVAL);
	WANT_ERRNO(rdma_leave_multicast(NULL, rx_address(GROUP, 0)), EINVAL);
	WANT_ERRNO(rdma_leave_multicast(s.id, NULL), EINVAL);
	WANT_ERRNO(rdma_leave_multicast(s.id, &other), EINVAL);
	WANT_ERRNO(rdma_leave_multicast(s.id, rx_address(GROUP, 0)), EADDRNOTAVAIL);
	WANT(members(s.id) == 0 && !ur_channel_has((struct ur_id *)s.id, RDMA_CM_EVENT_MULTICAST_JOIN));
	WANT(!rx_close(&s) && !rx_close(&tcp));
	return rx_close(&idle);
}

/* --- the event --- */

static int check_event(struct rx_side *s, const char *group, const char *own)
{
	const struct rdma_ud_param *p = &s->ev->param.ud;
	union ibv_gid gid;
	struct ur_gid want, src;
	uint16_t port;

	WANT(ur_sa_gid(rx_address(group, 0), &want, &port) && ur_sa_gid(rx_address(own, 0), &src, &port));
	WANT(s->ev->status == 0 && s->ev->id == s->id);
	WANT(p->private_data == &context && p->private_data_len == 0);
	WANT(p->qp_num == 0xffffff && p->qkey == RDMA_UDP_QKEY);
	WANT(p->ah_attr.is_global && p->ah_attr.port_num == 1 && p->ah_attr.grh.hop_limit == 64);
	WANT(!memcmp(p->ah_attr.grh.dgid.raw, want.raw, 16));
	WANT(!ibv_query_gid(s->id->verbs, 1, p->ah_attr.grh.sgid_index, &gid) && !memcmp(gid.raw, src.raw, 16));
	return 0;
}

static int event_data(void)
{
	static const struct {
		enum rdma_port_space ps;
		const char *own, *group, *src;
	} cases[] = {
		{RDMA_PS_UDP, "10.0.0.1", GROUP, "10.0.0.1"},
		{RDMA_PS_IPOIB, "10.0.0.1", GROUP, "10.0.0.1"},
		{RDMA_PS_UDP, "fd00::1", GROUP6, "fd00::1"},
		{RDMA_PS_UDP, "10.0.0.1", GROUP6, "fd00::1"}, /* the group's family decides */
	};

	for (unsigned i = 0; i < ur_array_size(cases); i++) {
		struct rx_side s;
		int line;

		OPEN(&s, cases[i].ps, cases[i].own, false);
		WANT(!rdma_join_multicast(s.id, rx_address(cases[i].group, 0), &context));
		NEXT(&s, RDMA_CM_EVENT_MULTICAST_JOIN);
		line = check_event(&s, cases[i].group, cases[i].src);
		if (line)
			return line;
		WANT(members(s.id) == 1);
		WANT(!rx_close(&s)); /* leaves */
	}
	return 0;
}

static int gid_addresses(void)
{
	struct sockaddr_ib ib = {.sib_family = AF_IB};
	struct ur_gid group;
	uint16_t port;
	struct rx_side s;

	OPEN(&s, RDMA_PS_UDP, "10.0.0.1", false);
	WANT(ur_sa_gid(rx_address(GROUP, 0), &group, &port));
	memcpy(&ib.sib_addr, group.raw, 16);
	WANT(!rdma_join_multicast(s.id, (struct sockaddr *)&ib, &context));
	NEXT(&s, RDMA_CM_EVENT_MULTICAST_JOIN);
	WANT(!check_event(&s, GROUP, "10.0.0.1"));
	WANT(!rdma_ack_cm_event(s.ev));
	s.ev = NULL;
	WANT(!rdma_leave_multicast(s.id, rx_address(GROUP, 0))); /* it is the same group */
	WANT(members(s.id) == 0);
	return rx_close(&s);
}

/* After resolving the group's address, as mckey does. */
static int resolved_ids(void)
{
	struct rx_side s;

	OPEN(&s, RDMA_PS_UDP, NULL, false);
	WANT(!rdma_resolve_addr(s.id, NULL, rx_address(GROUP, 0), 1000));
	NEXT(&s, RDMA_CM_EVENT_ADDR_RESOLVED);
	WANT(!rdma_join_multicast(s.id, rx_address(GROUP, 0), &context));
	NEXT(&s, RDMA_CM_EVENT_MULTICAST_JOIN);
	WANT(!check_event(&s, GROUP, "10.0.0.1"));
	WANT(!rdma_resolve_route(s.id, 1000));
	NEXT(&s, RDMA_CM_EVENT_ROUTE_RESOLVED);
	WANT(!rdma_join_multicast(s.id, rx_address("239.9.9.9", 0), &context));
	NEXT(&s, RDMA_CM_EVENT_MULTICAST_JOIN);
	WANT(members(s.id) == 2);
	return rx_close(&s);
}

/* --- the QP --- */

static int attaches_at_retrieval(void)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_UD, .cap = {8, 8, 1, 1, 0}};
	struct rx_side s;

	OPEN(&s, RDMA_PS_UDP, "10.0.0.1", true);
	WANT(!rdma_join_multicast(s.id, rx_address(GROUP, 0), NULL));
	WANT(members(s.id) == 1 && attached(s.id) == 0);
	NEXT(&s, RDMA_CM_EVENT_MULTICAST_JOIN);
	WANT(attached(s.id) == 1);
	rdma_destroy_qp(s.id); /* takes it out, or there would be no destroying it */
	WANT(attached(s.id) == 0 && members(s.id) == 1);
	WANT(!rdma_create_qp(s.id, NULL, &attr));
	WANT(attached(s.id) == 0);
	WANT(!rdma_join_multicast(s.id, rx_address("239.1.2.4", 0), NULL));
	NEXT(&s, RDMA_CM_EVENT_MULTICAST_JOIN);
	WANT(attached(s.id) == 1 && members(s.id) == 2);
	WANT(!rx_close(&s));
	return 0;
}

static int send_only(void)
{
	struct rx_side s;

	OPEN(&s, RDMA_PS_UDP, "10.0.0.1", true);
	WANT(!join_ex(s.id, 3, RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, rx_address(GROUP, 0), &context));
	NEXT(&s, RDMA_CM_EVENT_MULTICAST_JOIN);
	WANT(!check_event(&s, GROUP, "10.0.0.1"));
	WANT(attached(s.id) == 0 && members(s.id) == 0);
	WANT(!rdma_ack_cm_event(s.ev));
	s.ev = NULL;
	WANT(!rdma_leave_multicast(s.id, rx_address(GROUP, 0)));
	WANT_ERRNO(rdma_leave_multicast(s.id, rx_address(GROUP, 0)), EADDRNOTAVAIL);
	return rx_close(&s);
}

/* Two joins of one group: membership and QP stay until the second leave. */
static int double_join(void)
{
	struct rx_side s;

	OPEN(&s, RDMA_PS_UDP, "10.0.0.1", true);
	for (int i = 0; i < 2; i++) {
		WANT(!rdma_join_multicast(s.id, rx_address(GROUP, 0), NULL));
		NEXT(&s, RDMA_CM_EVENT_MULTICAST_JOIN);
	}
	WANT(!rdma_ack_cm_event(s.ev));
	s.ev = NULL;
	WANT(members(s.id) == 1 && attached(s.id) == 1);
	WANT(!rdma_leave_multicast(s.id, rx_address(GROUP, 0)));
	WANT(members(s.id) == 1 && attached(s.id) == 1);
	WANT(!rdma_leave_multicast(s.id, rx_address(GROUP, 0)));
	WANT(members(s.id) == 0 && attached(s.id) == 0);
	WANT_ERRNO(rdma_leave_multicast(s.id, rx_address(GROUP, 0)), EADDRNOTAVAIL);
	return rx_close(&s);
}

/* A full QP table makes the attachment fail; the event says so. */
static int attach_fails(void)
{
	struct ur_gid filler = {.raw = {0xff, 0x0e, [8] = 1}};
	struct rx_side s;
	union ibv_gid gid;

	OPEN(&s, RDMA_PS_UDP, "10.0.0.1", true);
	for (unsigned i = 0; i < UR_MAX_MCAST_GROUPS; i++) {
		filler.raw[14] = (uint8_t)(i >> 8);
		filler.raw[15] = (uint8_t)i;
		memcpy(gid.raw, filler.raw, 16);
		WANT(!ibv_attach_mcast(s.id->qp, &gid, 0));
	}
	WANT(!rdma_join_multicast(s.id, rx_address(GROUP, 0), &context));
	NEXT(&s, RDMA_CM_EVENT_MULTICAST_ERROR);
	WANT(s.ev->status == -ENOMEM && s.ev->param.ud.private_data == &context);
	for (unsigned i = 0; i < UR_MAX_MCAST_GROUPS; i++) {
		filler.raw[14] = (uint8_t)(i >> 8);
		filler.raw[15] = (uint8_t)i;
		memcpy(gid.raw, filler.raw, 16);
		WANT(!ibv_detach_mcast(s.id->qp, &gid, 0));
	}
	return rx_close(&s);
}

/* --- leaving --- */

static int leave_before_the_event_is_read(void)
{
	struct rx_side s;

	OPEN(&s, RDMA_PS_UDP, "10.0.0.1", true);
	WANT(!rdma_join_multicast(s.id, rx_address(GROUP, 0), NULL));
	WANT(!rdma_join_multicast(s.id, rx_address("239.1.2.4", 0), &context));
	WANT(!rdma_leave_multicast(s.id, rx_address(GROUP, 0)));
	WANT(members(s.id) == 1);
	NEXT(&s, RDMA_CM_EVENT_MULTICAST_JOIN); /* of the other */
	WANT(s.ev->param.ud.private_data == &context);
	WANT(!ur_channel_has((struct ur_id *)s.id, RDMA_CM_EVENT_MULTICAST_JOIN));
	return rx_close(&s);
}

static void *ack_later(void *arg)
{
	usleep(50000);
	return rdma_ack_cm_event(arg) ? arg : NULL;
}

/* As destroying an id does, leaving waits until the event of the join is acknowledged. */
static int leave_waits_for_the_ack(void)
{
	ur_time before;
	pthread_t t;
	struct rx_side s;
	void *bad;

	OPEN(&s, RDMA_PS_UDP, "10.0.0.1", false);
	WANT(!rdma_join_multicast(s.id, rx_address(GROUP, 0), NULL));
	NEXT(&s, RDMA_CM_EVENT_MULTICAST_JOIN);
	before = ur_engine_now();
	WANT(!pthread_create(&t, NULL, ack_later, s.ev));
	s.ev = NULL;
	WANT(!rdma_leave_multicast(s.id, rx_address(GROUP, 0)));
	WANT(ur_engine_now() - before >= 49 * UR_NS_PER_MS);
	WANT(!pthread_join(t, &bad) && !bad);
	return rx_close(&s);
}

static int synchronous(void)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_UD, .cap = {8, 8, 1, 1, 0}};
	struct rdma_cm_id *id;

	WANT(!rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP));
	WANT(!rdma_bind_addr(id, rx_address("10.0.0.1", 0)));
	WANT(!rdma_create_qp(id, NULL, &attr));
	WANT(!rdma_join_multicast(id, rx_address(GROUP, 0), &context));
	WANT(id->event && id->event->event == RDMA_CM_EVENT_MULTICAST_JOIN && id->event->param.ud.private_data == &context);
	WANT(attached(id) == 1);
	WANT(!rdma_leave_multicast(id, rx_address(GROUP, 0)));
	WANT(!id->event && attached(id) == 0);
	WANT(!rdma_join_multicast(id, rx_address(GROUP, 0), &context));
	rdma_destroy_qp(id);
	WANT(!rdma_destroy_id(id));
	return 0;
}

/* An unread event and a membership go with the id. */
static int destroy_leaves(void)
{
	struct rx_side s, other;

	OPEN(&s, RDMA_PS_UDP, "10.0.0.1", true);
	OPEN(&other, RDMA_PS_UDP, "10.0.0.1", false);
	WANT(!rdma_join_multicast(s.id, rx_address(GROUP, 0), NULL));
	WANT(!rdma_join_multicast(s.id, rx_address(GROUP6, 0), NULL));
	NEXT(&s, RDMA_CM_EVENT_MULTICAST_JOIN);
	WANT(members(other.id) == 2 && attached(other.id) == 1);
	WANT(!rx_close(&s));
	WANT(members(other.id) == 0 && attached(other.id) == 0);
	return rx_close(&other);
}

/* --- messages --- */

static int wait_recv(struct rx_side *s, struct ibv_wc *wc)
{
	for (int i = 0; i < 5000; i++) {
		int n = ibv_poll_cq(s->id->recv_cq, 1, wc);

		WANT(n >= 0);
		if (n)
			return 0;
		usleep(1000);
	}
	return __LINE__;
}

static int send_one(struct rx_side *from, struct rdma_ud_param *to, struct ibv_mr *mr, uint8_t *mem)
{
	struct ibv_ah *ah = ibv_create_ah(from->id->pd, &to->ah_attr);
	struct ibv_wc wc;

	WANT(ah);
	WANT(!rdma_post_ud_send(from->id, NULL, mem, 8, mr, IBV_SEND_SIGNALED, ah, to->qp_num));
	WANT(rdma_get_send_comp(from->id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	WANT(!ibv_destroy_ah(ah));
	return 0;
}

/* Joined ids hear it, and one that joined without a QP and had it attached by hand; a send-only one does not. */
static int delivery(void)
{
	static uint8_t mem[4][GRH + 64];
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_UD, .cap = {8, 8, 1, 1, 0}};
	struct rx_side s[4]; /* full member, send-only, by hand, full member that has left */
	struct ibv_mr *mr[4];
	struct ibv_wc wc;

	for (int i = 0; i < 4; i++) {
		OPEN(&s[i], RDMA_PS_UDP, "10.0.0.1", i != 2);
		WANT(!join_ex(s[i].id, 3, i == 1, rx_address(GROUP, 0), NULL));
		NEXT(&s[i], RDMA_CM_EVENT_MULTICAST_JOIN);
	}
	WANT(!rdma_create_qp(s[2].id, NULL, &attr));
	WANT(!ibv_attach_mcast(s[2].id->qp, &s[2].ev->param.ud.ah_attr.grh.dgid, 0));
	WANT(!rdma_ack_cm_event(s[3].ev));
	s[3].ev = NULL;
	WANT(!rdma_leave_multicast(s[3].id, rx_address(GROUP, 0)));
	for (int i = 0; i < 4; i++) {
		WANT((mr[i] = rdma_reg_msgs(s[i].id, mem[i], sizeof(mem[i]))) != NULL);
		WANT(!rdma_post_recv(s[i].id, NULL, mem[i], sizeof(mem[i]), mr[i]));
	}
	memcpy(mem[1], "multicas", 8);
	WANT(!send_one(&s[1], &s[1].ev->param.ud, mr[1], mem[1]));
	for (int i = 0; i < 4; i += 2) {
		int line = i < 3 ? wait_recv(&s[i], &wc) : 0;

		WANT(!line && wc.status == IBV_WC_SUCCESS && wc.byte_len == GRH + 8 && wc.src_qp == s[1].id->qp->qp_num);
		WANT(!memcmp(mem[i] + GRH, "multicas", 8));
	}
	for (int i = 1; i < 4; i += 2)
		WANT(ibv_poll_cq(s[i].id->recv_cq, 1, &wc) == 0);
	WANT(!ibv_detach_mcast(s[2].id->qp, &s[2].ev->param.ud.ah_attr.grh.dgid, 0));
	for (int i = 0; i < 4; i++) {
		WANT(!rdma_dereg_mr(mr[i]));
		WANT(!rx_close(&s[i]));
	}
	return 0;
}

/* --- threads: some join and leave, one reads and acknowledges what comes --- */

#define JOINERS 4
#define TURNS 300

static struct rx_side shared;

static void *read_events(void *arg)
{
	unsigned *errors = arg;
	struct rdma_cm_event *ev;

	while (!rdma_get_cm_event(shared.ch, &ev)) {
		bool last = ev->event == RDMA_CM_EVENT_ADDR_ERROR;

		*errors += !last && (ev->event != RDMA_CM_EVENT_MULTICAST_JOIN || ev->status);
		rdma_ack_cm_event(ev);
		if (last)
			return NULL;
	}
	return arg;
}

static void *join_and_leave(void *arg)
{
	const struct ibv_qp_init_attr fresh = {.qp_type = IBV_QPT_UD, .cap = {8, 8, 1, 1, 0}};
	struct ibv_qp_init_attr attr = fresh; /* comes back with the queues in it */
	struct sockaddr_in own = {.sin_family = AF_INET}, group = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xef010203)};
	struct rdma_cm_id *id;

	own.sin_addr.s_addr = htonl(0x0a000001);
	if (rdma_create_id(shared.ch, &id, NULL, RDMA_PS_UDP) || rdma_bind_addr(id, (struct sockaddr *)&own) ||
	    rdma_create_qp(id, NULL, &attr))
		return arg;
	for (unsigned i = 0; i < TURNS; i++) {
		if (rdma_join_multicast(id, (struct sockaddr *)&group, NULL))
			return arg;
		if (i % 3 && rdma_leave_multicast(id, (struct sockaddr *)&group))
			return arg;
		if (i % 50 == 49) { /* with joins that were not left */
			rdma_destroy_qp(id);
			attr = fresh;
			if (rdma_create_qp(id, NULL, &attr))
				return arg;
		}
	}
	rdma_destroy_qp(id);
	return rdma_destroy_id(id) ? arg : NULL;
}

static int threads(void)
{
	pthread_t joiner[JOINERS], reader;
	unsigned errors = 0;
	void *bad;

	OPEN(&shared, RDMA_PS_UDP, "10.0.0.1", false);
	WANT(!pthread_create(&reader, NULL, read_events, &errors));
	for (int i = 0; i < JOINERS; i++)
		WANT(!pthread_create(&joiner[i], NULL, join_and_leave, &shared));
	for (int i = 0; i < JOINERS; i++)
		WANT(!pthread_join(joiner[i], &bad) && !bad);
	WANT(members(shared.id) == 0 && attached(shared.id) == 0);
	ur_event_send((struct ur_id *)shared.id, RDMA_CM_EVENT_ADDR_ERROR, 0); /* the end */
	WANT(!pthread_join(reader, &bad) && !bad && !errors);
	return rx_close(&shared);
}

/* --- forks --- */

static int forked(void)
{
	struct rx_side s;
	int status;
	pid_t pid;

	OPEN(&s, RDMA_PS_UDP, "10.0.0.1", false);
	WANT(!rdma_join_multicast(s.id, rx_address(GROUP, 0), NULL));
	pid = fork();
	if (!pid) {
		struct rx_side mine;
		int line = open_side(&mine, RDMA_PS_UDP, "10.0.0.1", false);

		if (!line && (rdma_leave_multicast(s.id, rx_address(GROUP, 0)) != -1 || errno != EIO))
			line = __LINE__;
		if (!line && (rdma_join_multicast(mine.id, rx_address(GROUP, 0), NULL) || members(mine.id) != 1))
			line = __LINE__;
		if (!line)
			line = rx_close(&mine);
		if (line)
			fprintf(stderr, "line %d\n", line);
		_exit(line != 0);
	}
	WANT(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status));
	WANT(members(s.id) == 1);
	return rx_close(&s);
}

#define TEST(name)                                                                                                                         \
	static void name##__in_a_child(void)                                                                                               \
	{                                                                                                                                  \
		CU_ASSERT_EQUAL(rx_child("test_rdmacm_multicast.c", name), 0);                                                             \
	}

TEST(arguments)
TEST(event_data)
TEST(gid_addresses)
TEST(resolved_ids)
TEST(attaches_at_retrieval)
TEST(send_only)
TEST(double_join)
TEST(attach_fails)
TEST(leave_before_the_event_is_read)
TEST(leave_waits_for_the_ack)
TEST(synchronous)
TEST(destroy_leaves)
TEST(delivery)
TEST(forked)
TEST(threads)

void ur_suite_rdmacm_multicast(void)
{
	static const struct {
		const char *name;
		void (*fn)(void);
	} tests[] = {
#define ENTRY(name) {#name, name##__in_a_child}
		ENTRY(arguments),
		ENTRY(event_data),
		ENTRY(gid_addresses),
		ENTRY(resolved_ids),
		ENTRY(attaches_at_retrieval),
		ENTRY(send_only),
		ENTRY(double_join),
		ENTRY(attach_fails),
		ENTRY(leave_before_the_event_is_read),
		ENTRY(leave_waits_for_the_ack),
		ENTRY(synchronous),
		ENTRY(destroy_leaves),
		ENTRY(delivery),
		ENTRY(forked),
		ENTRY(threads),
#undef ENTRY
	};
	CU_pSuite s = CU_add_suite("rdmacm_multicast", verbs_fixture_init, NULL);

	for (unsigned i = 0; i < ur_array_size(tests); i++)
		CU_add_test(s, tests[i].name, tests[i].fn);
}
