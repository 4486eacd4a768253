/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/transport/qp_modify.c: the transition table against a second one, written as text from IBTA volume 1, 11.2.5.2; for every pair of
 * states each required attribute is left out once and each attribute that is not allowed is added once.
 */
#include <errno.h>

#include "tp_harness.h"
#include "transport/failure/qp_end.h"
#include "transport/qp.h"

static const char *const state_names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

/* Attributes as letters: */
static const struct {
	char c;
	int attr;
} letters[] = {
	{'c', IBV_QP_CUR_STATE},
	{'n', IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{'f', IBV_QP_ACCESS_FLAGS},
	{'k', IBV_QP_PKEY_INDEX},
	{'p', IBV_QP_PORT},
	{'q', IBV_QP_QKEY},
	{'v', IBV_QP_AV},
	{'m', IBV_QP_PATH_MTU},
	{'t', IBV_QP_TIMEOUT},
	{'r', IBV_QP_RETRY_CNT},
	{'w', IBV_QP_RNR_RETRY},
	{'R', IBV_QP_RQ_PSN},
	{'x', IBV_QP_MAX_QP_RD_ATOMIC},
	{'a', IBV_QP_ALT_PATH},
	{'u', IBV_QP_MIN_RNR_TIMER},
	{'S', IBV_QP_SQ_PSN},
	{'y', IBV_QP_MAX_DEST_RD_ATOMIC},
	{'g', IBV_QP_PATH_MIG_STATE},
	{'C', IBV_QP_CAP},
	{'d', IBV_QP_DEST_QPN},
};

struct rule {
	enum ibv_qp_type type;
	const char *from, *to, *required, *optional;
};

static const struct rule rules[] = {
	{IBV_QPT_RC, "RESET", "INIT", "kpf", ""},
	{IBV_QPT_RC, "INIT", "INIT", "", "kpf"},
	{IBV_QPT_RC, "INIT", "RTR", "vmdRyu", "afk"},
	{IBV_QPT_RC, "RTR", "RTS", "Strwx", "cafug"},
	{IBV_QPT_RC, "RTS", "RTS", "", "cafug"},
	{IBV_QPT_RC, "RTS", "SQD", "", "n"},
	{IBV_QPT_RC, "SQD", "RTS", "", "cafug"},
	{IBV_QPT_RC, "SQD", "SQD", "", "pvtrwxyafkug"},
	{IBV_QPT_UC, "RESET", "INIT", "kpf", ""},
	{IBV_QPT_UC, "INIT", "INIT", "", "kpf"},
	{IBV_QPT_UC, "INIT", "RTR", "vmdR", "afk"},
	{IBV_QPT_UC, "RTR", "RTS", "S", "cafg"},
	{IBV_QPT_UC, "RTS", "RTS", "", "cafg"},
	{IBV_QPT_UC, "RTS", "SQD", "", "n"},
	{IBV_QPT_UC, "SQD", "RTS", "", "cafg"},
	{IBV_QPT_UC, "SQD", "SQD", "", "vafkg"},
	{IBV_QPT_UC, "SQE", "RTS", "", "cf"},
	{IBV_QPT_UC, "SQE", "RESET", "", ""},
	{IBV_QPT_UC, "SQE", "ERR", "", ""},
	{IBV_QPT_UD, "RESET", "INIT", "kpq", ""},
	{IBV_QPT_UD, "INIT", "INIT", "", "kpq"},
	{IBV_QPT_UD, "INIT", "RTR", "", "kq"},
	{IBV_QPT_UD, "RTR", "RTS", "S", "cq"},
	{IBV_QPT_UD, "RTS", "RTS", "", "cq"},
	{IBV_QPT_UD, "RTS", "SQD", "", "n"},
	{IBV_QPT_UD, "SQD", "RTS", "", "cq"},
	{IBV_QPT_UD, "SQD", "SQD", "", "kq"},
	{IBV_QPT_UD, "SQE", "RTS", "", "cq"},
	{IBV_QPT_UD, "SQE", "RESET", "", ""},
	{IBV_QPT_UD, "SQE", "ERR", "", ""},
	/* Annex A14: the requester's half and the responder's half of RC. */
	{IBV_QPT_XRC_SEND, "RESET", "INIT", "kpf", ""},
	{IBV_QPT_XRC_SEND, "INIT", "INIT", "", "kpf"},
	{IBV_QPT_XRC_SEND, "INIT", "RTR", "vmdR", "afk"},
	{IBV_QPT_XRC_SEND, "RTR", "RTS", "Strwx", "cafg"},
	{IBV_QPT_XRC_SEND, "RTS", "RTS", "", "cafg"},
	{IBV_QPT_XRC_SEND, "RTS", "SQD", "", "n"},
	{IBV_QPT_XRC_SEND, "SQD", "RTS", "", "cafg"},
	{IBV_QPT_XRC_SEND, "SQD", "SQD", "", "pvtrwxafkg"},
	{IBV_QPT_XRC_RECV, "RESET", "INIT", "kpf", ""},
	{IBV_QPT_XRC_RECV, "INIT", "INIT", "", "kpf"},
	{IBV_QPT_XRC_RECV, "INIT", "RTR", "vmdRyu", "afk"},
	{IBV_QPT_XRC_RECV, "RTR", "RTS", "St", "cafug"},
	{IBV_QPT_XRC_RECV, "RTS", "RTS", "", "cafug"},
	{IBV_QPT_XRC_RECV, "RTS", "SQD", "", "n"},
	{IBV_QPT_XRC_RECV, "SQD", "RTS", "", "cafug"},
	{IBV_QPT_XRC_RECV, "SQD", "SQD", "", "pvtyafkug"},
};

static const enum ibv_qp_type all_types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV};

static int mask_of(const char *s)
{
	int m = 0;

	for (; *s; s++)
		for (unsigned i = 0; i < ur_array_size(letters); i++)
			if (letters[i].c == *s)
				m |= letters[i].attr;
	return m;
}

static const struct rule *rule_of(enum ibv_qp_type type, unsigned from, unsigned to)
{
	static const struct rule plain = {IBV_QPT_RC, "", "", "", ""};

	for (unsigned i = 0; i < ur_array_size(rules); i++)
		if (rules[i].type == type && !strcmp(rules[i].from, state_names[from]) && !strcmp(rules[i].to, state_names[to]))
			return &rules[i];
	/* Any state but RESET and SQE goes to ERR, any but SQE to RESET, without attributes. */
	if (from == IBV_QPS_SQE || (to != IBV_QPS_RESET && to != IBV_QPS_ERR) || (from == IBV_QPS_RESET && to == IBV_QPS_ERR))
		return NULL;
	return &plain;
}

static void check_pair(enum ibv_qp_type type, unsigned from, unsigned to)
{
	const struct rule *r = rule_of(type, from, to);
	int required = r ? mask_of(r->required) : 0, optional = r ? mask_of(r->optional) : 0;
	int base = IBV_QP_STATE | required;

	CU_ASSERT_EQUAL(ur_qp_modify_check(type, from, to, base), r ? 0 : EINVAL);
	CU_ASSERT_EQUAL(ur_qp_modify_check(type, from, to, base | optional), r ? 0 : EINVAL);
	if (!r)
		return;
	for (unsigned i = 0; i < ur_array_size(letters); i++) {
		int a = letters[i].attr;

		if (required & a)
			CU_ASSERT_EQUAL(ur_qp_modify_check(type, from, to, base & ~a), EINVAL);
		CU_ASSERT_EQUAL(ur_qp_modify_check(type, from, to, base | a), (required | optional) & a ? 0 : EINVAL);
	}
	CU_ASSERT_EQUAL(ur_qp_modify_check(type, from, to, base | IBV_QP_RATE_LIMIT), EINVAL);
}

static void modify_check__every_pair_of_states(void)
{
	for (unsigned t = 0; t < ur_array_size(all_types); t++)
		for (unsigned from = 0; from <= IBV_QPS_ERR; from++)
			for (unsigned to = 0; to <= IBV_QPS_ERR; to++)
				check_pair(all_types[t], from, to);
	CU_ASSERT_EQUAL(ur_qp_modify_check(IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_UNKNOWN, IBV_QP_STATE), EINVAL);
}

/* A QP in a given state: through ERR and RESET, then as far as needed. */
static void bring_to(struct th *h, enum ibv_qp_state st)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RESET};

	CU_ASSERT_EQUAL(ur_qp_modify(h->n[0].qp, &a, IBV_QP_STATE, NULL, h->now), 0);
	if (st == IBV_QPS_RESET)
		return;
	h->opt.stay_rtr = st == IBV_QPS_RTR;
	if (st == IBV_QPS_INIT) {
		a = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1};
		CU_ASSERT_EQUAL(
			ur_qp_modify(h->n[0].qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, NULL, h->now),
			0);
		return;
	}
	th_connect(h, 0);
	a.qp_state = st;
	if (st == IBV_QPS_SQD || st == IBV_QPS_ERR)
		CU_ASSERT_EQUAL(ur_qp_modify(h->n[0].qp, &a, IBV_QP_STATE, NULL, h->now), 0);
}

/* A QP of any type beside the harness's own, and what it is made of. */
struct subject {
	struct th *h;
	struct ur_xrcd *xrcd;
	enum ibv_qp_type type;
	struct ur_qp *qp;
};

static int modify(const struct subject *s, enum ibv_qp_state to, int mask)
{
	const struct ibv_qp_attr a = {
		.qp_state = to,
		.cur_qp_state = ur_qp_state(s->qp),
		.path_mtu = IBV_MTU_1024,
		.path_mig_state = IBV_MIG_MIGRATED,
		.port_num = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
	};

	return ur_qp_modify(s->qp, &a, mask, mask & IBV_QP_AV ? &s->h->n[0].path : NULL, s->h->now);
}

/* Back to RESET and from there as far as needed. SQE is where failed sends lead. */
static void bring(const struct subject *s, enum ibv_qp_state to)
{
	static const enum ibv_qp_state way[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD};
	enum ibv_qp_state end = to == IBV_QPS_SQE || to == IBV_QPS_ERR ? IBV_QPS_RTS : to;

	ur_qp_to_reset(s->qp);
	atomic_store(&s->qp->state, IBV_QPS_RESET);
	for (unsigned i = 1; ur_qp_state(s->qp) != end; i++)
		CU_ASSERT_FATAL(!modify(s, way[i], IBV_QP_STATE | mask_of(rule_of(s->type, way[i - 1], way[i])->required)));
	if (to == IBV_QPS_SQE)
		ur_qp_to_sqe(s->qp);
	else if (to == IBV_QPS_ERR)
		CU_ASSERT_EQUAL(modify(s, IBV_QPS_ERR, IBV_QP_STATE), 0);
	CU_ASSERT_EQUAL_FATAL(ur_qp_state(s->qp), to);
}

/* One call; the state follows when it succeeds and stays when it does not. */
static void try(const struct subject *s, enum ibv_qp_state from, enum ibv_qp_state to, int mask, int err)
{
	bring(s, from);
	CU_ASSERT_EQUAL(modify(s, to, mask), err);
	CU_ASSERT_EQUAL(ur_qp_state(s->qp), err ? from : to);
}

static void try_attributes(const struct subject *s, enum ibv_qp_state from, enum ibv_qp_state to)
{
	const struct rule *r = rule_of(s->type, from, to);
	int required = r ? mask_of(r->required) : 0, optional = r ? mask_of(r->optional) : 0;

	try(s, from, to, IBV_QP_STATE | required, r ? 0 : EINVAL);
	if (!r)
		return;
	try(s, from, to, IBV_QP_STATE | required | (optional & ~IBV_QP_ALT_PATH), 0);
	for (unsigned i = 0; i < ur_array_size(letters); i++) {
		int a = letters[i].attr, base = IBV_QP_STATE | required;

		if (required & a)
			try(s, from, to, base & ~a, EINVAL);
		else if (a == IBV_QP_ALT_PATH && optional & a)
			try(s, from, to, base | a, EOPNOTSUPP); /* there is no automatic path migration */
		else
			try(s, from, to, base | a, optional & a ? 0 : EINVAL);
	}
}

static void qp_modify__every_transition_and_attribute_of_every_type(void)
{
	static struct th h;
	struct subject s = {.h = &h};

	th_open(&h, &th_default);
	CU_ASSERT_EQUAL_FATAL(ur_xrcd_create(h.n[0].tp, &s.xrcd), 0);
	for (unsigned t = 0; t < ur_array_size(all_types); t++) {
		bool unacked = all_types[t] == IBV_QPT_UC || all_types[t] == IBV_QPT_UD;
		struct ur_qp_init init = {
			.type = all_types[t], .pd = h.n[0].pd, .send_cq = h.n[0].scq, .recv_cq = h.n[0].rcq, .cap = {4, 4, 1, 1, 0}};

		if (all_types[t] == IBV_QPT_XRC_RECV)
			init.xrcd = s.xrcd;
		s.type = all_types[t];
		CU_ASSERT_EQUAL_FATAL(ur_qp_create(h.n[0].tp, &init, &s.qp), 0);
		for (unsigned from = 0; from <= IBV_QPS_ERR; from++)
			for (unsigned to = 0; to <= IBV_QPS_ERR; to++)
				if (from != IBV_QPS_SQE || unacked)
					try_attributes(&s, (enum ibv_qp_state)from, (enum ibv_qp_state)to);
		CU_ASSERT_EQUAL(ur_qp_destroy(s.qp), 0);
	}
	CU_ASSERT_EQUAL(ur_xrcd_destroy(s.xrcd), 0);
	th_close(&h);
}

static void qp_modify__values(void)
{
	static const struct {
		enum ibv_qp_state at;
		int mask;
		struct ibv_qp_attr a;
		int err;
	} t[] = {
		{IBV_QPS_SQD, IBV_QP_PKEY_INDEX, {.pkey_index = 1}, EINVAL},
		{IBV_QPS_SQD, IBV_QP_PORT, {.port_num = 2}, EINVAL},
		{IBV_QPS_SQD, IBV_QP_PORT, {.port_num = 0}, EINVAL},
		{IBV_QPS_SQD, IBV_QP_ACCESS_FLAGS, {.qp_access_flags = 1 << 10}, EINVAL},
		{IBV_QPS_SQD, IBV_QP_AV, {0}, EINVAL},
		{IBV_QPS_SQD, IBV_QP_TIMEOUT, {.timeout = 32}, EINVAL},
		{IBV_QPS_SQD, IBV_QP_TIMEOUT, {.timeout = 31}, 0},
		{IBV_QPS_SQD, IBV_QP_RETRY_CNT, {.retry_cnt = 8}, EINVAL},
		{IBV_QPS_SQD, IBV_QP_RNR_RETRY, {.rnr_retry = 8}, EINVAL},
		{IBV_QPS_SQD, IBV_QP_MIN_RNR_TIMER, {.min_rnr_timer = 32}, EINVAL},
		{IBV_QPS_SQD, IBV_QP_MAX_QP_RD_ATOMIC, {.max_rd_atomic = 129}, EINVAL},
		{IBV_QPS_SQD, IBV_QP_MAX_DEST_RD_ATOMIC, {.max_dest_rd_atomic = 128}, 0},
		{IBV_QPS_SQD, IBV_QP_MAX_DEST_RD_ATOMIC, {.max_dest_rd_atomic = 129}, EINVAL},
		{IBV_QPS_RTS, IBV_QP_CUR_STATE, {.cur_qp_state = IBV_QPS_SQD}, EINVAL},
		{IBV_QPS_RTS, IBV_QP_CUR_STATE, {.cur_qp_state = IBV_QPS_RTS}, 0},
		{IBV_QPS_RTS, IBV_QP_CUR_STATE, {.cur_qp_state = IBV_QPS_UNKNOWN}, EINVAL},
		{IBV_QPS_RTS, IBV_QP_PATH_MIG_STATE, {.path_mig_state = IBV_MIG_REARM}, EOPNOTSUPP},
		{IBV_QPS_RTS, IBV_QP_PATH_MIG_STATE, {.path_mig_state = IBV_MIG_ARMED}, EOPNOTSUPP},
		{IBV_QPS_SQD, IBV_QP_PATH_MIG_STATE, {.path_mig_state = IBV_MIG_MIGRATED}, 0},
		{IBV_QPS_RTS, IBV_QP_PATH_MIG_STATE, {.path_mig_state = IBV_MIG_MIGRATED}, 0},
		{IBV_QPS_RTS, IBV_QP_ALT_PATH, {0}, EOPNOTSUPP},
		{IBV_QPS_RTS, IBV_QP_CAP, {0}, EINVAL},
	};
	static struct th h;

	th_open(&h, &th_default);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		bring_to(&h, t[i].at);
		CU_ASSERT_EQUAL(ur_qp_modify(h.n[0].qp, &t[i].a, t[i].mask, NULL, h.now), t[i].err);
		CU_ASSERT_EQUAL(ur_qp_state(h.n[0].qp), t[i].at);
	}
	th_close(&h);
}

static void qp_modify__connect_values(void)
{
	static const struct {
		enum ibv_mtu mtu;
		uint32_t dqpn;
		int err;
	} t[] = {{IBV_MTU_256, 1, 0}, {IBV_MTU_4096, 0xffffff, 0}, {0, 1, EINVAL}, {6, 1, EINVAL}, {IBV_MTU_1024, 0x1000000, EINVAL}};
	static struct th h;

	th_open(&h, &th_default);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR, .path_mtu = t[i].mtu, .dest_qp_num = t[i].dqpn}, q;

		bring_to(&h, IBV_QPS_INIT);
		a.rq_psn = 0xff123456; /* as hardware, only 24 bits are taken */
		CU_ASSERT_EQUAL(ur_qp_modify(h.n[0].qp, &a, IBV_QP_STATE | mask_of("vmdRyu"), &h.n[0].path, h.now), t[i].err);
		ur_qp_query(h.n[0].qp, &q, NULL);
		CU_ASSERT_EQUAL(q.qp_state, t[i].err ? IBV_QPS_INIT : IBV_QPS_RTR);
		CU_ASSERT_EQUAL(q.rq_psn, t[i].err ? 0 : 0x123456);
		CU_ASSERT_EQUAL(q.dest_qp_num, t[i].err ? 0 : t[i].dqpn);
	}
	th_close(&h);
}

void ur_suite_qp_modify(void);

void ur_suite_qp_modify(void)
{
	CU_pSuite s = CU_add_suite("qp_modify", NULL, NULL);

	CU_ADD_TEST(s, modify_check__every_pair_of_states);
	CU_ADD_TEST(s, qp_modify__every_transition_and_attribute_of_every_type);
	CU_ADD_TEST(s, qp_modify__values);
	CU_ADD_TEST(s, qp_modify__connect_values);
}
