/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/rdmacm: every call of the library with no id, with one that was destroyed, and with ids in every state; and every call with bad
 * arguments. What comes back is 0, or -1 and the errno of the manual page or else of the kernel, and never a crash.
 */
#include "rdmacm/newer.h"
#include "rdmacm_fixture.h"

void ur_suite_rdmacm_bad(void);

/* --- ids in every state --- */

/* A letter of a row each, in this order. */
enum state {
	NONE,           /* NULL */
	DEAD,           /* destroyed */
	IDLE,
	BOUND,
	LISTENING,
	ADDR_QUERY,
	ADDR_RESOLVED,
	ROUTE_RESOLVED,
	CONNECTING,     /* the peer has the request */
	REQUEST,        /* that id of a request */
	REJECTED,       /* that id after rdma_reject */
	ACTIVE,         /* established */
	PASSIVE,
	DISCONNECTED,   /* the passive side after the event */
	STATES,
};

/* The id under test, a listener, and the peer where one is needed. */
struct set {
	struct rx_side l, c, s;
	struct rdma_cm_id *id;
};

static int open_request(struct set *t)
{
	WANT_OK(rx_listen(&t->l, RX_PORT, 0));
	WANT_OK(rx_connect(&t->c, RX_PORT));
	WANT_OK(rx_request(&t->l, &t->s));
	return 0;
}

static int open_connection(struct set *t)
{
	WANT_OK(rx_listen(&t->l, RX_PORT, 0));
	WANT_OK(rx_establish(&t->l, &t->c, &t->s));
	return 0;
}

static int bring_to(struct set *t, enum state state)
{
	memset(t, 0, sizeof(*t));
	switch (state) {
	case NONE:
		return 0;
	case DEAD:
		WANT_OK(rx_open(&t->c));
		t->id = t->c.id;
		t->c.id = NULL;
		WANT(!rdma_destroy_id(t->id));
		return 0;
	case IDLE:
	case BOUND:
	case ADDR_QUERY:
		WANT_OK(rx_open(&t->c));
		if (state == BOUND)
			WANT(!rdma_bind_addr(t->c.id, rx_address(RX_HERE, 0)));
		if (state == ADDR_QUERY)
			WANT(!rdma_resolve_addr(t->c.id, NULL, rx_address(RX_NOBODY, 1), 5000));
		t->id = t->c.id;
		return 0;
	case LISTENING:
		WANT_OK(rx_listen(&t->c, RX_PORT, 0));
		t->id = t->c.id;
		return 0;
	case ADDR_RESOLVED:
		WANT_OK(rx_resolve_addr(&t->c, RX_PORT));
		t->id = t->c.id;
		return 0;
	case ROUTE_RESOLVED:
		WANT_OK(rx_resolve(&t->c, RX_PORT));
		t->id = t->c.id;
		return 0;
	case CONNECTING:
		WANT_OK(open_request(t));
		t->id = t->c.id;
		return 0;
	case REQUEST:
	case REJECTED:
		WANT_OK(open_request(t));
		t->id = t->s.id;
		if (state == REJECTED)
			WANT(!rdma_reject(t->id, NULL, 0));
		return 0;
	case ACTIVE:
	case PASSIVE:
		WANT_OK(open_connection(t));
		t->id = state == ACTIVE ? t->c.id : t->s.id;
		return 0;
	case DISCONNECTED:
		WANT_OK(open_connection(t));
		WANT(!rdma_disconnect(t->c.id));
		WANT_OK(rx_next(&t->l, RDMA_CM_EVENT_DISCONNECTED));
		t->id = t->s.id;
		return 0;
	case STATES:
		break;
	}
	return __LINE__;
}

static int put_away(struct set *t)
{
	if (t->l.ch)
		WANT(!rx_ack(&t->l));
	if (t->s.ch)
		WANT_OK(rx_close(&t->s));
	if (t->c.ch)
		WANT_OK(rx_close(&t->c));
	if (t->l.ch)
		WANT_OK(rx_close(&t->l));
	return 0;
}

/* --- the calls --- */

static struct rdma_conn_param param = {.qp_num = 0x4712, .retry_count = 7};

static int bind_addr(struct rdma_cm_id *id)
{
	return rdma_bind_addr(id, rx_address(RX_HERE, 0));
}

static int resolve_addr(struct rdma_cm_id *id)
{
	return rdma_resolve_addr(id, NULL, rx_address(RX_HERE, RX_PORT + 1), 1000);
}

static int resolve_route(struct rdma_cm_id *id)
{
	return rdma_resolve_route(id, 1000);
}

static int listen_call(struct rdma_cm_id *id)
{
	return rdma_listen(id, 5);
}

static int connect_call(struct rdma_cm_id *id)
{
	return rdma_connect(id, &param);
}

static int accept_call(struct rdma_cm_id *id)
{
	return rdma_accept(id, &param);
}

static int reject(struct rdma_cm_id *id)
{
	return rdma_reject(id, "no", 2);
}

static int reject_ece(struct rdma_cm_id *id)
{
	return rdma_reject_ece(id, NULL, 0);
}

static int notify(struct rdma_cm_id *id)
{
	return rdma_notify(id, IBV_EVENT_COMM_EST);
}

static int get_request(struct rdma_cm_id *id)
{
	struct rdma_cm_id *child;

	return rdma_get_request(id, &child);
}

static int create_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};

	return rdma_create_qp(id, NULL, &attr);
}

static int create_qp_ex(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};

	return rdma_create_qp_ex(id, &attr);
}

static int destroy_qp(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	return 0;
}

static int attr_of(struct rdma_cm_id *id, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask;

	return rdma_init_qp_attr(id, &attr, &mask);
}

static int attr_init(struct rdma_cm_id *id)
{
	return attr_of(id, IBV_QPS_INIT);
}

static int attr_rtr(struct rdma_cm_id *id)
{
	return attr_of(id, IBV_QPS_RTR);
}

static int attr_rts(struct rdma_cm_id *id)
{
	return attr_of(id, IBV_QPS_RTS);
}

static int set_tos(struct rdma_cm_id *id)
{
	uint8_t tos = 8;

	return rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos));
}

static int set_afonly(struct rdma_cm_id *id)
{
	int on = 1;

	return rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof(on));
}

static int resolve_info(struct rdma_cm_id *id)
{
	return rdma_resolve_addrinfo(id, "127.0.0.1", NULL, NULL);
}

static int query_info(struct rdma_cm_id *id)
{
	struct rdma_addrinfo *info;

	return rdma_query_addrinfo(id, &info);
}

static int write_event(struct rdma_cm_id *id)
{
	return rdma_write_cm_event(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0, 1);
}

static int set_ece(struct rdma_cm_id *id)
{
	struct ibv_ece none = {0};

	return rdma_set_local_ece(id, &none);
}

static int get_ece(struct rdma_cm_id *id)
{
	struct ibv_ece ece;

	return rdma_get_remote_ece(id, &ece);
}

static int migrate(struct rdma_cm_id *id)
{
	return rdma_migrate_id(id, id ? id->channel : NULL);
}

static int migrate_dead(struct rdma_cm_id *id)
{
	return rdma_migrate_id(id, NULL);
}

static int join(struct rdma_cm_id *id)
{
	return rdma_join_multicast(id, rx_address("239.1.2.3", 0), NULL);
}

static int join_ex(struct rdma_cm_id *id)
{
	struct rdma_cm_join_mc_attr_ex attr = {.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
					       .join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER,
					       .addr = rx_address("239.1.2.3", 0)};

	return rdma_join_multicast_ex(id, &attr, NULL);
}

static int leave(struct rdma_cm_id *id)
{
	return rdma_leave_multicast(id, rx_address("239.1.2.3", 0));
}

static int create_srq(struct rdma_cm_id *id)
{
	struct ibv_srq_init_attr attr = {.attr = {1, 1, 0}};
	int ret = rdma_create_srq(id, NULL, &attr);

	if (!ret)
		rdma_destroy_srq(id);
	return ret;
}

static int destroy_srq(struct rdma_cm_id *id)
{
	rdma_destroy_srq(id);
	return 0;
}

static int ports(struct rdma_cm_id *id)
{
	(void)rdma_get_src_port(id);
	(void)rdma_get_dst_port(id);
	return 0;
}

/*
 * What comes back in each state: '0' success, 'I' EINVAL, 'C' EISCONN, 'O' EOPNOTSUPP, '-' what another suite looks at: only that it comes
 * back. A call without a result always succeeds.
 */
static const struct row {
	const char *name;
	int (*call)(struct rdma_cm_id *id);
	const char *expect; /* a letter for each state */
} rows[] = {
	/*                                 ND ibl qar c pr as d */
	{"rdma_bind_addr", bind_addr,     "II0IIIIIIIIIII"},
	{"rdma_resolve_addr", resolve_addr, "II00IIIIIIIIII"},
	{"rdma_resolve_route", resolve_route, "IIIIII0IIIIIII"},
	{"rdma_listen", listen_call,      "II00IIIIIIIIII"},
	{"rdma_connect", connect_call,    "IIIIIII0IIIIII"},
	{"rdma_accept", accept_call,      "IIIIIIIII0IIII"},
	{"rdma_reject", reject,           "IIIIIIII00IIII"},
	{"rdma_reject_ece", reject_ece,   "IIIIIIII00IIII"},
	{"rdma_establish", rdma_establish, "IIIIIIIIIIIIII"},
	{"rdma_notify", notify,           "IIIIIIIIIIICCI"},
	{"rdma_disconnect", rdma_disconnect, "IIIIIIII000000"},
	{"rdma_get_request", get_request, "IIIIIIIIIIIIII"}, /* none of them is synchronous */
	{"rdma_create_qp", create_qp,     "III00I00I00III"},
	{"rdma_create_qp_ex", create_qp_ex, "III00I00I00III"},
	{"rdma_destroy_qp", destroy_qp,   "00000000000000"},
	{"rdma_init_qp_attr INIT", attr_init, "III00I00000000"},
	{"rdma_init_qp_attr RTR", attr_rtr, "IIIIIIIII0I00I"},
	{"rdma_init_qp_attr RTS", attr_rts, "IIIIIIIII0I00I"},
	{"rdma_set_option TOS", set_tos,  "II000000000000"},
	{"rdma_set_option AFONLY", set_afonly, "II00IIIIIIIIII"},
	{"rdma_set_local_ece", set_ece,   "II------------"},
	{"rdma_get_remote_ece", get_ece,  "II------------"},
	{"rdma_resolve_addrinfo", resolve_info, "IIOOOOOOOOOOOO"},
	{"rdma_query_addrinfo", query_info, "IIOOOOOOOOOOOO"},
	{"rdma_write_cm_event", write_event, "IIOOOOOOOOOOOO"},
	{"rdma_migrate_id", migrate,      "I-000000000000"},
	{"rdma_join_multicast", join,     "II------------"},
	{"rdma_join_multicast_ex", join_ex, "II------------"},
	{"rdma_leave_multicast", leave,   "II------------"},
	{"rdma_create_srq", create_srq,   "II------------"},
	{"rdma_destroy_srq", destroy_srq, "00------------"},
	{"rdma_get_src_port", ports,      "00000000000000"},
};

/* What a call left, in the letters of the table. */
static char outcome(int ret)
{
	if (!ret)
		return '0';
	if (ret != -1)
		return '!';
	return errno == EINVAL ? 'I' : errno == EISCONN ? 'C' : errno == EOPNOTSUPP ? 'O' : errno == EADDRINUSE ? 'U' : '?';
}

static int in_every_state(void)
{
	unsigned wrong = 0;

	for (unsigned r = 0; r < ur_array_size(rows); r++) {
		char got[STATES + 1] = "";

		WANT(strlen(rows[r].expect) == STATES);
		for (unsigned s = 0; s < STATES; s++) {
			struct set t;

			got[s] = '-';
			if (s == DEAD && rows[r].expect[s] == '-')
				continue; /* the library of another suite, or a call that must look at the id */
			WANT_OK(bring_to(&t, (enum state)s));
			WANT(!rx_ack(&t.c) && !rx_ack(&t.l)); /* some calls wait for that */
			errno = 0;
			got[s] = outcome(rows[r].call(t.id));
			if (rows[r].expect[s] == '-')
				got[s] = '-';
			WANT_OK(put_away(&t));
		}
		if (strcmp(got, rows[r].expect)) {
			fprintf(stderr, "%-24s %s instead of %s\n", rows[r].name, got, rows[r].expect);
			wrong++;
		}
	}
	WANT(!wrong);
	return 0;
}

/* --- arguments --- */

static int of_ids(void)
{
	struct rdma_cm_id *id = NULL;
	struct rx_side s;

	WANT_OK(rx_open(&s));
	WANT_ERRNO(rdma_create_id(s.ch, NULL, NULL, RDMA_PS_TCP), EINVAL);
	WANT_ERRNO(rdma_create_id(s.ch, &id, NULL, (enum rdma_port_space)0), EINVAL);
	WANT_ERRNO(rdma_create_id(s.ch, &id, NULL, (enum rdma_port_space)0x0107), EINVAL);
	WANT(!id);
	WANT_ERRNO(rdma_destroy_id(NULL), EINVAL);
	WANT_ERRNO(rdma_get_cm_event(NULL, &s.ev), EINVAL);
	WANT_ERRNO(rdma_get_cm_event(s.ch, NULL), EINVAL);
	WANT_ERRNO(rdma_ack_cm_event(NULL), EINVAL);
	WANT_ERRNO(migrate_dead(NULL), EINVAL);
	WANT_ERRNO(rdma_create_ep(NULL, NULL, NULL, NULL), EINVAL);
	WANT_ERRNO(rdma_create_ep(&id, NULL, NULL, NULL), EINVAL);
	rdma_destroy_ep(NULL);
	rdma_destroy_event_channel(NULL);
	rdma_free_devices(NULL);
	rdma_freeaddrinfo(NULL);
	WANT_ERRNO(rdma_getaddrinfo(NULL, NULL, NULL, NULL), EINVAL);
	WANT(!rdma_get_src_port(NULL) && !rdma_get_dst_port(NULL));
	WANT(!rdma_destroy_id(s.id));
	WANT_ERRNO(rdma_destroy_id(s.id), EINVAL);
	WANT_ERRNO(migrate_dead(s.id), EINVAL);
	rdma_destroy_ep(s.id);
	WANT(!rdma_get_src_port(s.id) && !rdma_get_dst_port(s.id));
	s.id = NULL;
	return rx_close(&s);
}

static int of_addresses(void)
{
	struct sockaddr none = {.sa_family = AF_UNSPEC}, local = {.sa_family = AF_UNIX};
	struct rx_side s;

	WANT_OK(rx_open(&s));
	WANT_ERRNO(rdma_bind_addr(s.id, NULL), EINVAL);
	WANT_ERRNO(rdma_bind_addr(s.id, &none), EINVAL);
	WANT_ERRNO(rdma_bind_addr(s.id, &local), EINVAL);
	WANT_ERRNO(rdma_bind_addr(s.id, rx_address("10.0.0.77", 0)), EADDRNOTAVAIL);
	WANT_ERRNO(rdma_resolve_addr(s.id, NULL, NULL, 100), EINVAL);
	WANT_ERRNO(rdma_resolve_addr(s.id, NULL, &local, 100), EINVAL);
	WANT_ERRNO(rdma_resolve_addr(s.id, &local, rx_address(RX_HERE, 1), 100), EINVAL);
	WANT(!rdma_bind_addr(s.id, rx_address("fd00::1", 0)));
	WANT_ERRNO(rdma_resolve_addr(s.id, NULL, rx_address(RX_HERE, 1), 100), EINVAL);
	return rx_close(&s);
}

/* What both rdma_connect and rdma_accept refuse; `len` is the most private data. */
static int params(struct rdma_cm_id *id, int (*call)(struct rdma_cm_id *id, struct rdma_conn_param *p), uint8_t len)
{
	static const char data[255];
	struct rdma_conn_param p = {.private_data = data, .qp_num = 1};

	p.private_data_len = 255;
	WANT_ERRNO(call(id, &p), EINVAL);
	p.private_data_len = (uint8_t)(len + 1);
	WANT_ERRNO(call(id, &p), EINVAL);
	p.private_data_len = 1;
	p.private_data = NULL;
	WANT_ERRNO(call(id, &p), EINVAL);
	p.private_data_len = 0;
	p.responder_resources = UR_MAX_RD_ATOMIC + 1;
	WANT_ERRNO(call(id, &p), EINVAL);
	p.responder_resources = 0;
	p.initiator_depth = UR_MAX_RD_ATOMIC + 1;
	WANT_ERRNO(call(id, &p), EINVAL);
	WANT_ERRNO(call(id, NULL), EINVAL); /* without a QP of the id's it must say which */
	p = (struct rdma_conn_param){.private_data = data, .private_data_len = len, .qp_num = call == rdma_connect ? 0xffffffff : 1,
				     .retry_count = 255, .rnr_retry_count = 255, .flow_control = 255, .srq = 255,
				     .responder_resources = RDMA_MAX_RESP_RES, .initiator_depth = RDMA_MAX_INIT_DEPTH};
	WANT(!call(id, &p));
	WANT_ERRNO(call(id, &p), EINVAL); /* once */
	return 0;
}

static int of_connections(void)
{
	static const char data[255];
	struct rx_side l, c, s;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	int mask;

	WANT_OK(rx_listen(&l, RX_PORT, 0));
	WANT_ERRNO(rdma_listen(l.id, 0), EINVAL);
	WANT_OK(rx_resolve(&c, RX_PORT));
	WANT_OK(params(c.id, rdma_connect, 56));
	WANT_OK(rx_request(&l, &s));
	WANT(l.ev->param.conn.retry_count == 7 && l.ev->param.conn.rnr_retry_count == 7 && l.ev->param.conn.flow_control == 1 &&
	     l.ev->param.conn.srq == 1 && l.ev->param.conn.qp_num == 0xffffff);
	WANT_ERRNO(rdma_reject(s.id, data, 255), EINVAL);
	WANT_ERRNO(rdma_reject(s.id, data, 149), EINVAL);
	WANT_ERRNO(rdma_reject(s.id, NULL, 1), EINVAL);
	WANT_ERRNO(rdma_init_qp_attr(s.id, NULL, &mask), EINVAL);
	WANT_ERRNO(rdma_init_qp_attr(s.id, &attr, NULL), EINVAL);
	for (enum ibv_qp_state st = IBV_QPS_SQD; st <= IBV_QPS_UNKNOWN; st++) {
		attr.qp_state = st;
		WANT_ERRNO(rdma_init_qp_attr(s.id, &attr, &mask), EINVAL);
	}
	WANT_OK(params(s.id, rdma_accept, 196));
	WANT_ERRNO(rdma_notify(s.id, IBV_EVENT_PATH_MIG), EINVAL);
	WANT_ERRNO(rdma_notify(s.id, (enum ibv_event_type)9999), EINVAL);
	WANT_OK(rx_next(&c, RDMA_CM_EVENT_CONNECT_RESPONSE));
	WANT(!rdma_establish(c.id));
	WANT_ERRNO(rdma_establish(c.id), EINVAL);
	WANT(!rx_ack(&l));
	WANT_OK(rx_close(&s));
	WANT_OK(rx_close(&c));
	return rx_close(&l);
}

static int of_options(void)
{
	static const struct {
		int level, name;
		size_t len;
		int err;
	} cases[] = {
		{RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 4, EINVAL}, {RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 0, EINVAL},
		{RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 1, EINVAL}, {RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 8, EINVAL},
		{RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 4, EINVAL}, {RDMA_OPTION_ID, 99, 4, ENOSYS}, {99, 0, 4, ENOSYS},
	};
	static char value[8];
	struct rx_side s;

	WANT_OK(rx_open(&s));
	for (unsigned i = 0; i < ur_array_size(cases); i++)
		WANT_ERRNO(rdma_set_option(s.id, cases[i].level, cases[i].name, value, cases[i].len), cases[i].err);
	WANT_ERRNO(rdma_set_option(s.id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, NULL, 1), EFAULT);
	return rx_close(&s);
}

#define TESTS(T) \
	T(calls, in_every_state) \
	T(arguments, of_ids) \
	T(arguments, of_addresses) \
	T(arguments, of_connections) \
	T(arguments, of_options)

TESTS(RX_DEFINE)

void ur_suite_rdmacm_bad(void)
{
	CU_pSuite s = CU_add_suite("rdmacm_bad", verbs_fixture_init, NULL);

	TESTS(RX_ADD)
}
