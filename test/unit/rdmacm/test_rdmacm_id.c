/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/rdmacm: ids before they need the port. Creation, addresses, ports, options, QPs in INIT, wrong states, forks. */
#include <arpa/inet.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rdmacm/internal.h"
#include "verbs_fixture.h"

void ur_suite_rdmacm_id(void);

#define OURS "10.0.0.1"
#define OURS6 "fd00::1"

/* Fails with -1 and this errno. */
#define ASSERT_ERRNO(call, err) \
	do { \
		errno = 0; \
		CU_ASSERT_EQUAL((call), -1); \
		CU_ASSERT_EQUAL(errno, (err)); \
	} while (0)

static struct rdma_event_channel *channel;

static int init(void)
{
	channel = rdma_create_event_channel();
	return !channel || verbs_fixture_init();
}

static int fini(void)
{
	rdma_destroy_event_channel(channel);
	return 0;
}

static struct rdma_cm_id *make_id(enum rdma_port_space ps)
{
	struct rdma_cm_id *id = NULL;

	CU_ASSERT_EQUAL_FATAL(rdma_create_id(channel, &id, &channel, ps), 0);
	return id;
}

static struct sockaddr *address(const char *text, uint16_t port)
{
	static struct sockaddr_storage ss;
	struct sockaddr_in *v4 = (void *)&ss;
	struct sockaddr_in6 *v6 = (void *)&ss;

	memset(&ss, 0, sizeof(ss));
	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
	} else {
		CU_ASSERT_EQUAL_FATAL(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
	}
	return (struct sockaddr *)&ss;
}

static void destroy(struct rdma_cm_id *id)
{
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
}

/* --- creation --- */

static void create_id__fields(void)
{
	struct rdma_cm_id *id = make_id(RDMA_PS_TCP);
	static const uint8_t zeros[UR_ID_SLACK];

	CU_ASSERT_PTR_EQUAL(id->channel, channel);
	CU_ASSERT_PTR_EQUAL(id->context, &channel);
	CU_ASSERT_EQUAL(id->ps, RDMA_PS_TCP);
	CU_ASSERT_EQUAL(id->qp_type, IBV_QPT_RC);
	CU_ASSERT_PTR_NULL(id->verbs);
	CU_ASSERT_PTR_NULL(id->qp);
	CU_ASSERT_EQUAL(rdma_get_src_port(id), 0);
	CU_ASSERT_EQUAL(rdma_get_dst_port(id), 0);
	CU_ASSERT_EQUAL(memcmp(id + 1, zeros, sizeof(zeros)), 0);
	destroy(id);
}

static void create_id__port_spaces(void)
{
	struct rdma_cm_id *id = make_id(RDMA_PS_UDP);

	CU_ASSERT_EQUAL(id->qp_type, IBV_QPT_UD);
	destroy(id);
	ASSERT_ERRNO(rdma_create_id(channel, &id, NULL, (enum rdma_port_space)0x77), EINVAL);
	ASSERT_ERRNO(rdma_create_id(channel, NULL, NULL, RDMA_PS_TCP), EINVAL);
}

static void create_id__starts_nothing(void)
{
	struct rdma_cm_id *id = make_id(RDMA_PS_TCP);

	CU_ASSERT_EQUAL(rdma_bind_addr(id, address(OURS, 0)), 0);
	CU_ASSERT_FALSE(ur_engine_started(((struct ur_id *)id)->engine));
	destroy(id);
}

static void null_ids__are_refused(void)
{
	struct ibv_qp_init_attr qp = {.qp_type = IBV_QPT_RC};
	struct rdma_conn_param conn = {.qp_num = 1};
	struct ibv_qp_attr attr;
	struct rdma_cm_id *id;
	int mask;

	ASSERT_ERRNO(rdma_destroy_id(NULL), EINVAL);
	ASSERT_ERRNO(rdma_bind_addr(NULL, address(OURS, 0)), EINVAL);
	ASSERT_ERRNO(rdma_resolve_addr(NULL, NULL, address(OURS, 1), 1), EINVAL);
	ASSERT_ERRNO(rdma_resolve_route(NULL, 1), EINVAL);
	ASSERT_ERRNO(rdma_connect(NULL, &conn), EINVAL);
	ASSERT_ERRNO(rdma_listen(NULL, 1), EINVAL);
	ASSERT_ERRNO(rdma_accept(NULL, &conn), EINVAL);
	ASSERT_ERRNO(rdma_reject(NULL, NULL, 0), EINVAL);
	ASSERT_ERRNO(rdma_establish(NULL), EINVAL);
	ASSERT_ERRNO(rdma_disconnect(NULL), EINVAL);
	ASSERT_ERRNO(rdma_notify(NULL, IBV_EVENT_COMM_EST), EINVAL);
	ASSERT_ERRNO(rdma_create_qp(NULL, NULL, &qp), EINVAL);
	ASSERT_ERRNO(rdma_init_qp_attr(NULL, &attr, &mask), EINVAL);
	ASSERT_ERRNO(rdma_migrate_id(NULL, NULL), EINVAL);
	ASSERT_ERRNO(rdma_set_option(NULL, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &mask, 1), EINVAL);
	ASSERT_ERRNO(rdma_get_request(NULL, &id), EINVAL);
	ASSERT_ERRNO(rdma_create_ep(&id, NULL, NULL, NULL), EINVAL);
	CU_ASSERT_EQUAL(rdma_get_src_port(NULL), 0);
	rdma_destroy_qp(NULL);
	rdma_destroy_ep(NULL);
}

/* --- addresses and ports --- */

static void bind_addr__own_address(void)
{
	static const char *const own[] = {OURS, OURS6};

	for (unsigned i = 0; i < ur_array_size(own); i++) {
		struct rdma_cm_id *id = make_id(RDMA_PS_TCP);

		CU_ASSERT_EQUAL(rdma_bind_addr(id, address(own[i], 7174)), 0);
		CU_ASSERT_EQUAL(ntohs(rdma_get_src_port(id)), 7174);
		CU_ASSERT_EQUAL(memcmp(rdma_get_local_addr(id), address(own[i], 7174), sizeof(struct sockaddr_in)), 0);
		CU_ASSERT_PTR_EQUAL(id->verbs, ((struct ur_id *)id)->ctx);
		CU_ASSERT_PTR_NOT_NULL(id->pd);
		CU_ASSERT_EQUAL(id->port_num, 1);
		ASSERT_ERRNO(rdma_bind_addr(id, address(own[i], 7175)), EINVAL);
		destroy(id);
	}
}

static void bind_addr__wildcard(void)
{
	struct rdma_cm_id *a = make_id(RDMA_PS_TCP), *b = make_id(RDMA_PS_TCP);

	CU_ASSERT_EQUAL(rdma_bind_addr(a, address("0.0.0.0", 0)), 0);
	CU_ASSERT_PTR_NULL(a->verbs);
	CU_ASSERT_NOT_EQUAL(rdma_get_src_port(a), 0);
	CU_ASSERT_EQUAL(rdma_bind_addr(b, address("::", 0)), 0);
	CU_ASSERT_NOT_EQUAL(rdma_get_src_port(a), rdma_get_src_port(b));
	destroy(a);
	destroy(b);
}

static void bind_addr__refused(void)
{
	struct rdma_cm_id *id = make_id(RDMA_PS_TCP);
	struct sockaddr other = {.sa_family = AF_UNIX};

	ASSERT_ERRNO(rdma_bind_addr(id, address("10.0.0.2", 0)), EADDRNOTAVAIL);
	ASSERT_ERRNO(rdma_bind_addr(id, &other), EINVAL);
	ASSERT_ERRNO(rdma_bind_addr(id, NULL), EINVAL);
	CU_ASSERT_EQUAL(rdma_bind_addr(id, address(OURS, 0)), 0); /* still possible */
	destroy(id);
}

static void bind_addr__port_in_use(void)
{
	struct rdma_cm_id *a = make_id(RDMA_PS_TCP), *b = make_id(RDMA_PS_TCP), *udp = make_id(RDMA_PS_UDP);

	CU_ASSERT_EQUAL(rdma_bind_addr(a, address(OURS, 9000)), 0);
	ASSERT_ERRNO(rdma_bind_addr(b, address(OURS, 9000)), EADDRINUSE);
	ASSERT_ERRNO(rdma_bind_addr(b, address("0.0.0.0", 9000)), EADDRINUSE);
	CU_ASSERT_EQUAL(rdma_bind_addr(udp, address(OURS, 9000)), 0); /* another port space */
	destroy(a);
	CU_ASSERT_EQUAL(rdma_bind_addr(b, address(OURS, 9000)), 0);
	destroy(b);
	destroy(udp);
}

static void bind_addr__reuse_needs_both(void)
{
	struct rdma_cm_id *a = make_id(RDMA_PS_TCP), *b = make_id(RDMA_PS_TCP);
	int on = 1;

	CU_ASSERT_EQUAL(rdma_set_option(a, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)), 0);
	CU_ASSERT_EQUAL(rdma_bind_addr(a, address(OURS, 9001)), 0);
	ASSERT_ERRNO(rdma_bind_addr(b, address(OURS, 9001)), EADDRINUSE);
	CU_ASSERT_EQUAL(rdma_set_option(b, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)), 0);
	CU_ASSERT_EQUAL(rdma_bind_addr(b, address(OURS, 9001)), 0);
	destroy(a);
	destroy(b);
}

/* --- options --- */

static void set_option__checked(void)
{
	struct rdma_cm_id *id = make_id(RDMA_PS_TCP);
	uint8_t tos = 0x20, timeout = 31, too_long = 32;
	int on = 1;

	CU_ASSERT_EQUAL(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)), 0);
	CU_ASSERT_EQUAL(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof(on)), 0);
	CU_ASSERT_EQUAL(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof(timeout)), 0);
	ASSERT_ERRNO(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &too_long, sizeof(too_long)), EINVAL);
	ASSERT_ERRNO(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &on, sizeof(on)), EINVAL);
	ASSERT_ERRNO(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, NULL, sizeof(tos)), EFAULT);
	ASSERT_ERRNO(rdma_set_option(id, RDMA_OPTION_ID, 99, &on, sizeof(on)), ENOSYS);
	destroy(id);
}

/* --- queue pairs --- */

static struct ibv_qp_init_attr qp_attr(void)
{
	return (struct ibv_qp_init_attr){.qp_type = IBV_QPT_RC,
					 .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
}

static void create_qp__brings_its_queues(void)
{
	struct rdma_cm_id *id = make_id(RDMA_PS_TCP);
	struct ibv_qp_init_attr attr = qp_attr();

	ASSERT_ERRNO(rdma_create_qp(id, NULL, &attr), EINVAL); /* no device yet */
	CU_ASSERT_EQUAL_FATAL(rdma_bind_addr(id, address(OURS, 0)), 0);
	CU_ASSERT_EQUAL_FATAL(rdma_create_qp(id, NULL, &attr), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(id->qp);
	CU_ASSERT_EQUAL(id->qp->state, IBV_QPS_INIT);
	CU_ASSERT_PTR_EQUAL(id->qp->send_cq, id->send_cq);
	CU_ASSERT_PTR_EQUAL(id->qp->recv_cq, id->recv_cq);
	CU_ASSERT_PTR_EQUAL(id->send_cq->channel, id->send_cq_channel);
	CU_ASSERT_PTR_EQUAL(id->recv_cq->cq_context, id);
	CU_ASSERT_PTR_EQUAL(id->pd, id->qp->pd);
	CU_ASSERT_TRUE(attr.cap.max_send_wr >= 4);
	ASSERT_ERRNO(rdma_create_qp(id, NULL, &attr), EINVAL); /* one QP an id */
	rdma_destroy_qp(id);
	CU_ASSERT_PTR_NULL(id->qp);
	CU_ASSERT_PTR_NULL(id->send_cq);
	CU_ASSERT_PTR_NULL(id->recv_cq_channel);
	destroy(id);
}

static void create_qp__with_queues_of_the_program(void)
{
	struct rdma_cm_id *id = make_id(RDMA_PS_TCP);
	struct ibv_qp_init_attr attr = qp_attr();
	struct ibv_pd *pd;
	struct ibv_cq *cq;

	CU_ASSERT_EQUAL_FATAL(rdma_bind_addr(id, address(OURS, 0)), 0);
	pd = ibv_alloc_pd(id->verbs);
	cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = cq;
	CU_ASSERT_EQUAL_FATAL(rdma_create_qp(id, pd, &attr), 0);
	CU_ASSERT_PTR_EQUAL(id->pd, pd);
	CU_ASSERT_PTR_NULL(id->send_cq);
	CU_ASSERT_EQUAL(ibv_destroy_cq(cq), EBUSY);
	rdma_destroy_qp(id);
	CU_ASSERT_EQUAL(ibv_destroy_cq(cq), 0);
	destroy(id);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), 0);
}

static void create_qp__refused(void)
{
	struct rdma_cm_id *id = make_id(RDMA_PS_TCP), *ud = make_id(RDMA_PS_UDP);
	struct ibv_context *other = verbs_fixture_open();
	struct ibv_pd *pd = ibv_alloc_pd(other);
	struct ibv_qp_init_attr attr = qp_attr();

	CU_ASSERT_EQUAL_FATAL(rdma_bind_addr(id, address(OURS, 0)), 0);
	CU_ASSERT_EQUAL_FATAL(rdma_bind_addr(ud, address(OURS, 0)), 0);
	ASSERT_ERRNO(rdma_create_qp(id, NULL, NULL), EINVAL);
	ASSERT_ERRNO(rdma_create_qp(id, pd, &attr), EINVAL); /* of another context */
	attr.qp_type = IBV_QPT_UD;
	ASSERT_ERRNO(rdma_create_qp(id, NULL, &attr), EINVAL);
	attr.qp_type = IBV_QPT_RC;
	ASSERT_ERRNO(rdma_create_qp(ud, NULL, &attr), EINVAL);
	CU_ASSERT_PTR_NULL(id->send_cq);
	destroy(id);
	destroy(ud);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), 0);
	CU_ASSERT_EQUAL(ibv_close_device(other), 0);
}

static void init_qp_attr__without_a_connection(void)
{
	struct rdma_cm_id *id = make_id(RDMA_PS_TCP);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	int mask = 0;

	ASSERT_ERRNO(rdma_init_qp_attr(id, &attr, &mask), EINVAL);
	CU_ASSERT_EQUAL_FATAL(rdma_bind_addr(id, address(OURS, 0)), 0);
	CU_ASSERT_EQUAL(rdma_init_qp_attr(id, &attr, &mask), 0);
	CU_ASSERT_EQUAL(mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	CU_ASSERT_EQUAL(attr.port_num, 1);
	attr.qp_state = IBV_QPS_RTR;
	ASSERT_ERRNO(rdma_init_qp_attr(id, &attr, &mask), EINVAL);
	attr.qp_state = IBV_QPS_RTS;
	ASSERT_ERRNO(rdma_init_qp_attr(id, &attr, &mask), EINVAL);
	attr.qp_state = IBV_QPS_SQD;
	ASSERT_ERRNO(rdma_init_qp_attr(id, &attr, &mask), EINVAL);
	destroy(id);
}

/* --- states --- */

static void wrong_states__are_refused(void)
{
	struct rdma_cm_id *id = make_id(RDMA_PS_TCP), *request;
	struct rdma_conn_param conn = {.qp_num = 1};

	ASSERT_ERRNO(rdma_resolve_route(id, 100), EINVAL);
	ASSERT_ERRNO(rdma_accept(id, &conn), EINVAL);
	ASSERT_ERRNO(rdma_accept(id, NULL), EINVAL);
	ASSERT_ERRNO(rdma_reject(id, NULL, 0), EINVAL);
	ASSERT_ERRNO(rdma_reject(id, "x", 149), EINVAL);
	ASSERT_ERRNO(rdma_establish(id), EINVAL);
	ASSERT_ERRNO(rdma_disconnect(id), EINVAL);
	ASSERT_ERRNO(rdma_notify(id, IBV_EVENT_COMM_EST), EINVAL);
	ASSERT_ERRNO(rdma_notify(id, IBV_EVENT_PORT_ERR), EINVAL);
	ASSERT_ERRNO(rdma_get_request(id, &request), EINVAL);
	destroy(id);
}

static void conn_param__bounds(void)
{
	static const struct {
		struct rdma_conn_param p;
		bool ok;
	} cases[] = {
		{{.responder_resources = UR_MAX_RD_ATOMIC, .initiator_depth = UR_MAX_RD_ATOMIC}, true},
		{{.responder_resources = RDMA_MAX_RESP_RES, .initiator_depth = RDMA_MAX_INIT_DEPTH}, true},
		{{.responder_resources = UR_MAX_RD_ATOMIC + 1}, false},
		{{.initiator_depth = UR_MAX_RD_ATOMIC + 1}, false},
		{{.private_data = "x", .private_data_len = 56}, true},
		{{.private_data = "x", .private_data_len = 57}, false},
		{{.private_data = NULL, .private_data_len = 1}, false},
	};
	struct rdma_cm_id *id = make_id(RDMA_PS_TCP);

	for (unsigned i = 0; i < ur_array_size(cases); i++)
		CU_ASSERT_EQUAL(ur_conn_param_ok((struct ur_id *)id, &cases[i].p, UR_RDMACM_REQ_PDATA), cases[i].ok);
	CU_ASSERT_FALSE(ur_conn_param_ok((struct ur_id *)id, NULL, UR_RDMACM_REQ_PDATA)); /* whose QP number then? */
	CU_ASSERT_EQUAL(ur_conn_depth(NULL, true, 16), 16);
	CU_ASSERT_EQUAL(ur_conn_depth(NULL, false, 255), UR_MAX_RD_ATOMIC);
	CU_ASSERT_EQUAL(ur_conn_depth(&cases[0].p, true, 1), UR_MAX_RD_ATOMIC);
	destroy(id);
}

static void states__have_names(void)
{
	for (int s = 0; s < UR_ID_STATE_COUNT; s++)
		CU_ASSERT_PTR_NOT_NULL(ur_id_state_name((enum ur_id_state)s));
	CU_ASSERT_STRING_EQUAL(ur_id_state_name(UR_ID_CONNECT), "CONNECT");
	CU_ASSERT_STRING_EQUAL(ur_id_state_name(UR_ID_STATE_COUNT), "?");
}

/* --- endpoints and devices --- */

static void create_ep__passive(void)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP}, *res;
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_cm_id *id = NULL;

	CU_ASSERT_EQUAL_FATAL(rdma_getaddrinfo(OURS, "9100", &hints, &res), 0);
	CU_ASSERT_EQUAL_FATAL(rdma_create_ep(&id, res, NULL, &attr), 0);
	CU_ASSERT_EQUAL(ntohs(rdma_get_src_port(id)), 9100);
	CU_ASSERT_PTR_NULL(id->qp);
	CU_ASSERT_PTR_NOT_NULL(id->verbs);
	rdma_destroy_ep(id);
	rdma_freeaddrinfo(res);
	CU_ASSERT_EQUAL_FATAL(rdma_getaddrinfo("10.0.0.9", "9100", &hints, &res), 0);
	ASSERT_ERRNO(rdma_create_ep(&id, res, NULL, &attr), EADDRNOTAVAIL);
	rdma_freeaddrinfo(res);
}

static void get_devices__one(void)
{
	struct ibv_context **list;
	struct rdma_cm_id *id = make_id(RDMA_PS_TCP);
	int n = 0;

	list = rdma_get_devices(&n);
	CU_ASSERT_PTR_NOT_NULL_FATAL(list);
	CU_ASSERT_EQUAL(n, 1);
	CU_ASSERT_PTR_NULL(list[1]);
	CU_ASSERT_EQUAL(rdma_bind_addr(id, address(OURS, 0)), 0);
	CU_ASSERT_PTR_EQUAL(list[0], id->verbs); /* so that PDs made on it serve ids */
	rdma_free_devices(list);
	destroy(id);
}

/* --- forks --- */

static int child(struct rdma_cm_id *parents)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id;

	if (rdma_bind_addr(parents, address(OURS, 0)) != -1 || errno != EIO)
		return 1;
	if (rdma_destroy_id(parents) != -1 || errno != EIO)
		return 2;
	if (!ch || rdma_create_id(ch, &id, NULL, RDMA_PS_TCP))
		return 3;
	if (rdma_bind_addr(id, address(OURS, 9200)) != -1 || errno != EADDRINUSE) /* the parent has it */
		return 4;
	if (rdma_bind_addr(id, address(OURS, 9201)) || !id->verbs)
		return 5;
	return rdma_destroy_id(id) ? 6 : 0;
}

static void fork__child_has_ids_of_its_own(void)
{
	struct rdma_cm_id *id = make_id(RDMA_PS_TCP);
	int status = -1;
	pid_t pid;

	CU_ASSERT_EQUAL(rdma_bind_addr(id, address(OURS, 9200)), 0);
	pid = fork();
	if (!pid) {
		alarm(20);
		_exit(child(id));
	}
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_TRUE(WIFEXITED(status));
	CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
	CU_ASSERT_EQUAL(ntohs(rdma_get_src_port(id)), 9200);
	destroy(id);
}

void ur_suite_rdmacm_id(void)
{
	CU_pSuite s = CU_add_suite("rdmacm_id", init, fini);

	CU_add_test(s, "create_id__fields", create_id__fields);
	CU_add_test(s, "create_id__port_spaces", create_id__port_spaces);
	CU_add_test(s, "create_id__starts_nothing", create_id__starts_nothing);
	CU_add_test(s, "null_ids__are_refused", null_ids__are_refused);
	CU_add_test(s, "bind_addr__own_address", bind_addr__own_address);
	CU_add_test(s, "bind_addr__wildcard", bind_addr__wildcard);
	CU_add_test(s, "bind_addr__refused", bind_addr__refused);
	CU_add_test(s, "bind_addr__port_in_use", bind_addr__port_in_use);
	CU_add_test(s, "bind_addr__reuse_needs_both", bind_addr__reuse_needs_both);
	CU_add_test(s, "set_option__checked", set_option__checked);
	CU_add_test(s, "create_qp__brings_its_queues", create_qp__brings_its_queues);
	CU_add_test(s, "create_qp__with_queues_of_the_program", create_qp__with_queues_of_the_program);
	CU_add_test(s, "create_qp__refused", create_qp__refused);
	CU_add_test(s, "init_qp_attr__without_a_connection", init_qp_attr__without_a_connection);
	CU_add_test(s, "wrong_states__are_refused", wrong_states__are_refused);
	CU_add_test(s, "conn_param__bounds", conn_param__bounds);
	CU_add_test(s, "states__have_names", states__have_names);
	CU_add_test(s, "create_ep__passive", create_ep__passive);
	CU_add_test(s, "get_devices__one", get_devices__one);
	CU_add_test(s, "fork__child_has_ids_of_its_own", fork__child_has_ids_of_its_own);
}
