/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plain librdmacm program: endpoints of services and addresses that other programs leave alone.
 *
 *   endpoints server KIND ADDRESS    listens there, answers every message with the same message, and ends with its clients
 *   endpoints client KIND ADDRESS    sends COUNT messages on each of its connections in turn and compares the answers
 *
 * KIND is uc (unreliable connections in RDMA_PS_IB), ib (AF_IB addresses with 92 bytes of private data) or srq (two connections whose
 * receives come from the SRQ of the listening id).
 */
#include <arpa/inet.h>
#include <infiniband/ib.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT 7475
#define COUNT 50
#define LEN 5000 /* a few packets each */
#define MAX 2

static const struct kind {
	const char *name;
	int ps, type, connections;
	int ib, srq;
} kinds[] = {
	{"uc", RDMA_PS_IB, IBV_QPT_UC, 1, 0, 0},
	{"ib", RDMA_PS_IB, IBV_QPT_RC, 1, 1, 0},
	{"srq", RDMA_PS_TCP, IBV_QPT_RC, 2, 0, 1},
};

static const struct kind *kind;
static struct rdma_cm_id *ids[MAX];
static struct ibv_mr *mr;
static char in[MAX][LEN], out[LEN];
static char greeting[92] = "all ninety-two bytes of it";

static void need(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

/* ADDRESS, as IP or as GID. */
static void fill(struct sockaddr_storage *ss, const char *text)
{
	struct sockaddr_in *v4 = (void *)ss;
	struct sockaddr_ib *ib = (void *)ss;

	memset(ss, 0, sizeof(*ss));
	if (!kind->ib) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(PORT);
		need(inet_pton(AF_INET, text, &v4->sin_addr) == 1, "address");
		return;
	}
	ib->sib_family = AF_IB;
	ib->sib_pkey = htons(0xffff);
	ib->sib_sid = htobe64(RDMA_IB_PS_IB | PORT);
	ib->sib_sid_mask = htobe64(UINT64_MAX);
	ib->sib_addr.sib_raw[10] = ib->sib_addr.sib_raw[11] = 0xff; /* the GID of an IPv4 address */
	need(inet_pton(AF_INET, text, ib->sib_addr.sib_raw + 12) == 1, "address");
}

static struct rdma_cm_id *endpoint(const char *text, int flags, struct ibv_qp_init_attr *attr)
{
	static struct sockaddr_storage ss;
	struct rdma_addrinfo res = {.ai_flags = flags, .ai_port_space = kind->ps, .ai_qp_type = kind->type};
	socklen_t len = kind->ib ? sizeof(struct sockaddr_ib) : sizeof(struct sockaddr_in);
	struct rdma_cm_id *id;

	fill(&ss, text);
	if (flags & RAI_PASSIVE) {
		res.ai_src_addr = (struct sockaddr *)&ss;
		res.ai_src_len = len;
	} else {
		res.ai_dst_addr = (struct sockaddr *)&ss;
		res.ai_dst_len = len;
	}
	need(!rdma_create_ep(&id, &res, NULL, attr), "rdma_create_ep");
	return id;
}

static void give_receive(struct rdma_cm_id *id, int n)
{
	need(!rdma_post_recv(id, in[n], in[n], LEN, mr), "rdma_post_recv");
}

static void send_message(struct rdma_cm_id *id, struct ibv_mr *of, void *data)
{
	struct ibv_wc wc;

	need(!rdma_post_send(id, NULL, data, LEN, of, IBV_SEND_SIGNALED), "rdma_post_send");
	need(rdma_get_send_comp(id, &wc) == 1 && !wc.status, "send");
}

static char *receive(struct rdma_cm_id *id)
{
	struct ibv_wc wc;

	need(rdma_get_recv_comp(id, &wc) == 1 && !wc.status && wc.byte_len == LEN, "receive");
	return (char *)(uintptr_t)wc.wr_id;
}

static struct ibv_qp_init_attr attributes(struct ibv_srq *srq)
{
	return (struct ibv_qp_init_attr){
		.qp_type = kind->type, .srq = srq, .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
}

/* --- server --- */

static void accept_one(struct rdma_cm_id *l, int n)
{
	struct ibv_qp_init_attr attr = attributes(l->srq);
	struct rdma_conn_param p = {.rnr_retry_count = 7, .responder_resources = 1, .initiator_depth = 1};

	need(!rdma_get_request(l, &ids[n]), "rdma_get_request");
	if (kind->ib)
		need(ids[n]->event->param.conn.private_data_len == 92 && !memcmp(ids[n]->event->param.conn.private_data, greeting, 92),
		     "private data");
	need(ids[n]->qp_type == (enum ibv_qp_type)kind->type && !rdma_create_qp(ids[n], NULL, &attr), "rdma_create_qp");
	if (!mr)
		mr = ibv_reg_mr(ids[n]->pd, in, sizeof(in), IBV_ACCESS_LOCAL_WRITE);
	need(mr != NULL, "ibv_reg_mr");
	give_receive(l->srq ? l : ids[n], n);
	need(!rdma_accept(ids[n], &p), "rdma_accept");
}

static void serve(const char *text)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = MAX, .max_sge = 1}};
	struct rdma_cm_id *l = endpoint(text, RAI_PASSIVE, NULL);
	struct ibv_mr *out_mr;

	if (kind->srq)
		need(!rdma_create_srq(l, NULL, &attr), "rdma_create_srq");
	need(!rdma_listen(l, 0), "rdma_listen");
	for (int n = 0; n < kind->connections; n++)
		accept_one(l, n);
	out_mr = ibv_reg_mr(ids[0]->pd, out, LEN, 0);
	need(out_mr != NULL, "ibv_reg_mr");
	for (int i = 0; i < COUNT * kind->connections; i++) {
		int n = i % kind->connections;
		char *msg = receive(ids[n]);

		memcpy(out, msg, LEN);
		give_receive(l->srq ? l : ids[n], msg == in[0] ? 0 : 1);
		send_message(ids[n], out_mr, out);
	}
	for (int n = 0; n < kind->connections; n++) {
		need(!rdma_disconnect(ids[n]), "rdma_disconnect");
		rdma_destroy_ep(ids[n]);
	}
	rdma_destroy_ep(l);
}

/* --- client --- */

static void join(const char *text, int n)
{
	struct rdma_conn_param p = {.private_data = greeting,
				    .private_data_len = kind->ib ? 92 : 8,
				    .responder_resources = 1,
				    .initiator_depth = 1,
				    .retry_count = 7,
				    .rnr_retry_count = 7};
	struct ibv_qp_init_attr attr = attributes(NULL);

	ids[n] = endpoint(text, 0, &attr);
	if (!mr)
		mr = ibv_reg_mr(ids[n]->pd, in, sizeof(in), IBV_ACCESS_LOCAL_WRITE);
	need(mr && !rdma_connect(ids[n], &p), "rdma_connect");
	need(ids[n]->event->event == RDMA_CM_EVENT_ESTABLISHED, "established");
	if (kind->srq)
		need(ids[n]->event->param.conn.srq, "the server's SRQ");
}

static void ask(const char *text)
{
	struct ibv_mr *out_mr;

	for (int n = 0; n < kind->connections; n++)
		join(text, n);
	out_mr = ibv_reg_mr(ids[0]->pd, out, LEN, 0);
	need(out_mr != NULL, "ibv_reg_mr");
	for (int i = 0; i < COUNT * kind->connections; i++) {
		struct rdma_cm_id *id = ids[i % kind->connections];

		memset(out, 'a' + i % 26, LEN);
		give_receive(id, 0);
		send_message(id, out_mr, out);
		need(!memcmp(receive(id), out, LEN), "the answer differs");
	}
	for (int n = 0; n < kind->connections; n++) {
		need(!rdma_disconnect(ids[n]), "rdma_disconnect");
		rdma_destroy_ep(ids[n]);
	}
	printf("%d messages answered\n", COUNT * kind->connections);
}

int main(int argc, char **argv)
{
	for (unsigned i = 0; argc == 4 && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(argv[2], kinds[i].name))
			kind = &kinds[i];
	if (!kind) {
		fprintf(stderr, "usage: endpoints server|client uc|ib|srq ADDRESS\n");
		return 2;
	}
	if (!strcmp(argv[1], "server"))
		serve(argv[3]);
	else
		ask(argv[3]);
	return 0;
}
