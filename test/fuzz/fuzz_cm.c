/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer target: one connection manager with listeners and a user who does what the input says, with connections and with lookups of
 * datagram services. The input is a list of steps: a byte that names the step, then what it needs. MADs are given as a patch on a valid
 * header, so that the fuzzer need not guess one.
 */
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "base/bytes.h"
#include "cm/cm.h"
#include "cm/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SLOT 3
#define CONNS 8
#define LOOKUPS 8
#define LOOKUP_STEP 0x80 /* of a step: with a lookup */
#define UDP_SERVICE 0x01114321u
#define IB_SERVICE 0x013f4321u /* plain */

struct fuzz {
	const uint8_t *in;
	size_t left;
	struct ur_wheel *wheel;
	struct ur_counters counters;
	struct ur_cm *cm;
	struct ur_cm_conn *conn[CONNS];
	struct ur_cm_sidr *lookup[LOOKUPS];
	uint32_t asked; /* request id of our latest SIDR_REQ */
	ur_time now;
};

static uint8_t take(struct fuzz *f)
{
	if (!f->left)
		return 0;
	f->left--;
	return *f->in++;
}

/* Whatever is sent must be well formed. */
static void send_mad(void *ctx, const struct ur_cm_addr *to, const uint8_t mad[UR_MAD_LEN], uint32_t psn)
{
	struct fuzz *f = ctx;
	struct ur_cm_msg m;

	(void)to, (void)psn;
	if (!ur_cm_msg_parse(mad, &m))
		abort();
	if (m.attr == UR_CM_SIDR_REQ)
		f->asked = m.sidr_req.request_id;
}

static bool other_answers(void *ctx, uint64_t service_id, const struct ur_gid *dst)
{
	(void)ctx;
	(void)dst;
	return service_id & 1;
}

static void event(void *owner, struct ur_cm_conn *conn, const struct ur_cm_event *ev, ur_time now)
{
	struct fuzz *f = owner;
	unsigned i;

	for (i = 0; i < CONNS && f->conn[i] != conn; i++)
		;
	if (ev->type == UR_CM_EV_REQ)
		for (i = 0; i < CONNS && f->conn[i]; i++)
			;
	if (i == CONNS || take(f) % 4 == 0) {
		if (i < CONNS)
			f->conn[i] = NULL;
		ur_cm_conn_destroy(conn, now);
		return;
	}
	f->conn[i] = conn;
}

static void connect(struct fuzz *f, unsigned i)
{
	static const uint8_t types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV};
	struct ur_cm_req_param p = {.service_id = take(f), .qpn = take(f), .path_mtu = 3};

	p.qp_type = types[take(f) % ur_array_size(types)];
	p.ack_timeout = take(f) % 32;
	if (!f->conn[i] && ur_cm_conn_create(f->cm, f, event, &f->conn[i]))
		return;
	ur_cm_connect(f->conn[i], &p, f->now);
}

static void act(struct fuzz *f, unsigned i)
{
	struct ur_cm_rep_param rep = {.qpn = take(f)};
	struct ur_cm_conn *c = f->conn[i];

	if (!c)
		return;
	switch (take(f) % 6) {
	case 0:
		ur_cm_accept(c, &rep, f->now);
		break;
	case 1:
		ur_cm_send_rtu(c, NULL, 0, f->now);
		break;
	case 2:
		ur_cm_reject(c, take(f), NULL, 0, "x", 1, f->now);
		break;
	case 3:
		ur_cm_disconnect(c, NULL, 0, f->now);
		break;
	case 4:
		ur_cm_notify_established(c, f->now);
		break;
	default:
		f->conn[i] = NULL;
		ur_cm_conn_destroy(c, f->now);
	}
}

/* The ids of a connection are filled in, because the fuzzer could not guess them; patches may spoil them again. */
static void receive(struct fuzz *f, unsigned i)
{
	struct ur_cm_addr from = {.hop_limit = 1};
	uint8_t mad[UR_MAD_LEN] = {1, 7, 2, 3};
	unsigned patches;

	mad[17] = (uint8_t)(UR_CM_REQ + take(f) % 12);
	mad[UR_MAD_HDR_LEN + 50] = 0x30;
	if (f->conn[i]) {
		ur_put32(mad + UR_MAD_HDR_LEN, f->conn[i]->remote_id ? f->conn[i]->remote_id : take(f));
		ur_put32(mad + UR_MAD_HDR_LEN + 4, f->conn[i]->local_id);
		ur_put24(mad + UR_MAD_HDR_LEN + 8, f->conn[i]->local_qpn);
	}
	for (patches = take(f) % 16; patches; patches--) {
		unsigned at = take(f);

		mad[at] = take(f);
	}
	ur_cm_rx(f->cm, &from, mad, UR_MAD_LEN - (take(f) == 0xff), f->now);
}

/* --- lookups --- */

static void lookup_event(void *owner, struct ur_cm_sidr *s, const struct ur_cm_sidr_event *ev, ur_time now)
{
	struct fuzz *f = owner;
	unsigned i;

	if (ev->pdata.len > UR_CM_SIDR_REQ_PDATA)
		abort();
	for (i = 0; i < LOOKUPS && f->lookup[i] != s; i++)
		;
	if (ev->type == UR_CM_SIDR_EV_REQ)
		for (i = 0; i < LOOKUPS && f->lookup[i]; i++)
			;
	if (i < LOOKUPS && take(f) % 4) {
		f->lookup[i] = s;
		return;
	}
	if (i < LOOKUPS)
		f->lookup[i] = NULL;
	if (ev->type == UR_CM_SIDR_EV_REQ && take(f) % 2)
		ur_cm_sidr_ignore(s);
	else
		ur_cm_sidr_destroy(s, now);
}

static void ask(struct fuzz *f, unsigned i)
{
	struct ur_rdma_cm_hdr hdr = {.ip_version = 4};
	struct ur_cm_sidr_req_param p = {.service_id = take(f), .pdata = "x", .pdata_len = take(f) % 2};

	p.hdr = p.pdata_len ? &hdr : NULL;
	if (!f->lookup[i] && ur_cm_sidr_create(f->cm, f, lookup_event, &f->lookup[i]))
		return;
	ur_cm_sidr_query(f->lookup[i], &p, f->now);
}

static void answer(struct fuzz *f, unsigned i)
{
	struct ur_cm_sidr_rep_param p = {.status = take(f), .qpn = take(f)};
	struct ur_cm_sidr *s = f->lookup[i];

	if (!s)
		return;
	if (take(f) % 3) {
		ur_cm_sidr_answer(s, &p, f->now);
		return;
	}
	f->lookup[i] = NULL;
	ur_cm_sidr_destroy(s, f->now);
}

/* One of a few requests, or an answer to what was asked last. */
static void receive_lookup(struct fuzz *f, unsigned i)
{
	struct ur_cm_addr from = {.hop_limit = 1};
	uint8_t mad[UR_MAD_LEN] = {1, 7, 2, 3}, *msg = mad + UR_MAD_HDR_LEN;
	bool is_answer = take(f) % 2;

	mad[17] = is_answer ? UR_CM_SIDR_REP : UR_CM_SIDR_REQ;
	if (is_answer) {
		ur_put32(msg, f->asked);
	} else {
		ur_put32(msg, i);
		ur_put64(msg + 8, UDP_SERVICE);
		msg[17] = 0x40; /* of the RDMA CM header: IPv4 */
	}
	for (unsigned patches = take(f) % 8; patches; patches--) {
		unsigned at = take(f);

		mad[at] = take(f);
	}
	ur_cm_rx(f->cm, &from, mad, UR_MAD_LEN, f->now);
}

static void step_of_lookup(struct fuzz *f, unsigned step, unsigned i)
{
	if (step % 4 == 0)
		ask(f, i);
	else if (step % 4 == 1)
		answer(f, i);
	else
		receive_lookup(f, i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct ur_gid any;
	struct fuzz f = {.in = data, .left = size, .wheel = ur_wheel_create(0)};
	struct ur_cm_config c = {.ctx = &f, .send = send_mad, .other_answers = other_answers, .wheel = f.wheel, .slot = SLOT};
	const struct ur_seed seed = ur_seed_of(0);
	struct ur_random random;
	struct ur_cm_listener *l;

	ur_random_init(&random, &seed);
	c.random = &random;
	c.counters = &f.counters;
	if (ur_cm_create(&c, &f.cm) || ur_cm_listen(f.cm, 0, &any, &f, event, &l) || ur_cm_listen(f.cm, 0x01061234, &any, &f, event, &l) ||
	    ur_cm_sidr_listen(f.cm, UDP_SERVICE, &any, &f, lookup_event, &l) || ur_cm_listen(f.cm, IB_SERVICE, &any, &f, event, &l))
		abort();
	ur_cm_listen_plain(l);
	while (f.left) {
		unsigned step = take(&f), i = step >> 2 & (CONNS - 1);

		if (step & LOOKUP_STEP && step % 4 != 3)
			step_of_lookup(&f, step, i);
		else if (step % 4 == 0)
			connect(&f, i);
		else if (step % 4 == 1)
			act(&f, i);
		else if (step % 4 == 2)
			receive(&f, i);
		else
			ur_wheel_advance(f.wheel, f.now += take(&f) * 500 * UR_NS_PER_MS);
	}
	ur_cm_destroy(f.cm);
	ur_wheel_destroy(f.wheel);
	return 0;
}
