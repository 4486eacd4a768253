/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA between two processes, as a plain program of librdmacm and libibverbs: round trips of 8 bytes by WRITE and by SEND with both sides
 * polling, and the bandwidth of WRITEs and SENDs with many outstanding.
 *
 *   rcbench server [-p PORT]
 *   rcbench client ADDR [-p PORT] [-s BYTES] [-d DEPTH] [-t SECONDS]
 *
 * The client prints one line: write_rtt_us=5.1 send_rtt_us=5.6 write_gbps=9.8 send_gbps=9.5 mtu=4096. Round trips are medians. While it
 * waits for a WRITE a side polls its completion queue too, as programs that use both do.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PINGS 20000
#define RECVS 256
#define END 0xe0d
#define ID_RECV (1ull << 32)

struct params { /* private data of REQ and REP */
	uint64_t addr;
	uint32_t rkey, size;
};

struct bench {
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id, *listener;
	struct ibv_cq *cq;
	struct ibv_mr *mr, *rmr;
	uint8_t *buf;  /* size bytes to send from, 8 bytes to be written to, size bytes to be written to */
	uint8_t *rbuf; /* RECVS buffers of size bytes */
	struct params peer;
	unsigned depth, outstanding, recvs;
	double seconds;
	uint32_t size;
	bool ended;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static void die(const char *what, int err)
{
	fprintf(stderr, "rcbench: %s: %s\n", what, strerror(err));
	exit(1);
}

static void *buffer(size_t n)
{
	void *p = NULL;
	int rc = posix_memalign(&p, 4096, n);

	if (rc)
		die("memory", rc);
	memset(p, 0, n);
	return p;
}

/* --- posting and polling --- */

static volatile uint64_t *written(struct bench *b)
{
	return (volatile uint64_t *)(void *)(b->buf + b->size);
}

static void post_recv(struct bench *b, uint64_t slot)
{
	struct ibv_sge sge = {(uintptr_t)(b->rbuf + slot * b->size), b->size, b->rmr->lkey};
	struct ibv_recv_wr wr = {.wr_id = slot | ID_RECV, .sg_list = &sge, .num_sge = 1}, *bad;
	int rc = ibv_post_recv(b->id->qp, &wr, &bad);

	if (rc)
		die("ibv_post_recv", rc);
}

static void post(struct bench *b, enum ibv_wr_opcode op, uint32_t len, uint64_t offset)
{
	struct ibv_sge sge = {(uintptr_t)b->buf, len, b->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = op, .send_flags = IBV_SEND_SIGNALED}, *bad;
	int rc;

	if (len <= 8)
		wr.send_flags |= IBV_SEND_INLINE;
	if (op == IBV_WR_RDMA_WRITE) {
		wr.wr.rdma.remote_addr = b->peer.addr + offset;
		wr.wr.rdma.rkey = b->peer.rkey;
	} else if (op == IBV_WR_SEND_WITH_IMM) {
		wr.imm_data = htonl(END);
	}
	rc = ibv_post_send(b->id->qp, &wr, &bad);
	if (rc)
		die("ibv_post_send", rc);
	b->outstanding++;
}

static void poll_once(struct bench *b)
{
	struct ibv_wc wc[32];
	int n = ibv_poll_cq(b->cq, 32, wc);

	if (n < 0)
		die("ibv_poll_cq", EIO);
	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			fprintf(stderr, "rcbench: completion: %s\n", ibv_wc_status_str(wc[i].status));
			exit(1);
		}
		if (!(wc[i].wr_id & ID_RECV)) {
			b->outstanding--;
			continue;
		}
		b->recvs++;
		if (wc[i].wc_flags & IBV_WC_WITH_IMM && ntohl(wc[i].imm_data) == END)
			b->ended = true;
		post_recv(b, wc[i].wr_id & ~ID_RECV);
	}
}

static void drain(struct bench *b)
{
	while (b->outstanding)
		poll_once(b);
}

/* --- the four measurements; each has a client's and a server's part --- */

static int by_value(const void *x, const void *y)
{
	const uint64_t *a = x, *b = y;

	return (*a > *b) - (*a < *b);
}

static void write_word(struct bench *b, uint64_t v)
{
	memcpy(b->buf, &v, sizeof(v));
	post(b, IBV_WR_RDMA_WRITE, sizeof(v), b->size);
}

static void await_word(struct bench *b, uint64_t v)
{
	while (*written(b) != v)
		poll_once(b);
}

static void ping_write(struct bench *b, bool client, uint64_t i)
{
	if (client)
		write_word(b, i);
	await_word(b, i);
	if (!client)
		write_word(b, i);
}

static void ping_send(struct bench *b, bool client, uint64_t i)
{
	(void)i;
	if (client)
		post(b, IBV_WR_SEND, 8, 0);
	while (!b->recvs)
		poll_once(b);
	b->recvs--;
	if (!client)
		post(b, IBV_WR_SEND, 8, 0);
}

static double round_trip(struct bench *b, bool client, void (*ping)(struct bench *, bool, uint64_t))
{
	static uint64_t took[PINGS];

	for (unsigned i = 0; i < PINGS; i++) {
		uint64_t start = now_ns();

		ping(b, client, i + 1);
		took[i] = now_ns() - start;
		while (b->outstanding > 64)
			poll_once(b);
	}
	drain(b);
	qsort(took, PINGS, sizeof(took[0]), by_value);
	return (double)took[PINGS / 2] / 1e3;
}

static double blast(struct bench *b, enum ibv_wr_opcode op)
{
	uint64_t start = now_ns(), end = start + (uint64_t)(b->seconds * 1e9), n = 0;

	while (now_ns() < end) {
		while (b->outstanding < b->depth) {
			post(b, op, b->size, b->size + 8);
			n++;
		}
		poll_once(b);
	}
	drain(b);
	end = now_ns();
	post(b, IBV_WR_SEND_WITH_IMM, 8, 0);
	drain(b);
	return (double)n * b->size * 8 / (double)(end - start);
}

static void absorb(struct bench *b)
{
	while (!b->ended)
		poll_once(b);
	b->ended = false;
	b->recvs = 0;
}

/* --- connecting --- */

static struct rdma_cm_event *await(struct bench *b, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *ev;

	if (rdma_get_cm_event(b->ch, &ev))
		die("rdma_get_cm_event", errno);
	if (ev->event != type) {
		fprintf(stderr, "rcbench: %s (status %d) instead of %s\n", rdma_event_str(ev->event), ev->status, rdma_event_str(type));
		exit(1);
	}
	return ev;
}

static void await_and_ack(struct bench *b, enum rdma_cm_event_type type)
{
	rdma_ack_cm_event(await(b, type));
}

static void make_qp(struct bench *b)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 256, .max_recv_wr = RECVS, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 8},
	};

	b->cq = ibv_create_cq(b->id->verbs, 1024, NULL, NULL, 0);
	if (!b->cq)
		die("ibv_create_cq", errno);
	init.send_cq = init.recv_cq = b->cq;
	if (rdma_create_qp(b->id, NULL, &init))
		die("rdma_create_qp", errno);
	b->buf = buffer(2 * (size_t)b->size + 8);
	b->rbuf = buffer((size_t)b->size * RECVS);
	b->mr = ibv_reg_mr(b->id->qp->pd, b->buf, 2 * (size_t)b->size + 8, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	b->rmr = ibv_reg_mr(b->id->qp->pd, b->rbuf, (size_t)b->size * RECVS, IBV_ACCESS_LOCAL_WRITE);
	if (!b->mr || !b->rmr)
		die("ibv_reg_mr", errno);
	for (uint64_t i = 0; i < RECVS; i++)
		post_recv(b, i);
}

static struct rdma_conn_param conn_param(struct bench *b, struct params *mine)
{
	*mine = (struct params){(uintptr_t)b->buf, b->mr->rkey, b->size};
	return (struct rdma_conn_param){
		.private_data = mine,
		.private_data_len = sizeof(*mine),
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
}

static void read_peer(struct bench *b, const struct rdma_cm_event *ev)
{
	if (ev->param.conn.private_data_len < sizeof(b->peer))
		die("the peer's parameters", EPROTO);
	memcpy(&b->peer, ev->param.conn.private_data, sizeof(b->peer));
}

static void connect_to(struct bench *b, struct sockaddr *to)
{
	struct rdma_conn_param param;
	struct rdma_cm_event *ev;
	struct params mine;

	if (rdma_create_id(b->ch, &b->id, NULL, RDMA_PS_TCP) || rdma_resolve_addr(b->id, NULL, to, 5000))
		die("rdma_resolve_addr", errno);
	await_and_ack(b, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(b->id, 5000))
		die("rdma_resolve_route", errno);
	await_and_ack(b, RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(b);
	param = conn_param(b, &mine);
	if (rdma_connect(b->id, &param))
		die("rdma_connect", errno);
	ev = await(b, RDMA_CM_EVENT_ESTABLISHED);
	read_peer(b, ev);
	rdma_ack_cm_event(ev);
}

static void accept_one(struct bench *b, struct sockaddr *at)
{
	struct rdma_conn_param param;
	struct rdma_cm_event *ev;
	struct params mine;

	if (rdma_create_id(b->ch, &b->listener, NULL, RDMA_PS_TCP) || rdma_bind_addr(b->listener, at) || rdma_listen(b->listener, 1))
		die("rdma_listen", errno);
	ev = await(b, RDMA_CM_EVENT_CONNECT_REQUEST);
	b->id = ev->id;
	read_peer(b, ev);
	rdma_ack_cm_event(ev);
	b->size = b->peer.size;
	make_qp(b);
	param = conn_param(b, &mine);
	if (rdma_accept(b->id, &param))
		die("rdma_accept", errno);
	await_and_ack(b, RDMA_CM_EVENT_ESTABLISHED);
}

static unsigned path_mtu(struct bench *b)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(b->id->qp, &attr, IBV_QP_PATH_MTU, &init))
		die("ibv_query_qp", errno);
	return 128u << attr.path_mtu;
}

static void measure(struct bench *b)
{
	double write_rtt = round_trip(b, true, ping_write), send_rtt = round_trip(b, true, ping_send);
	double write_gbps = blast(b, IBV_WR_RDMA_WRITE), send_gbps = blast(b, IBV_WR_SEND);

	printf("write_rtt_us=%.2f send_rtt_us=%.2f write_gbps=%.2f send_gbps=%.2f mtu=%u\n", write_rtt, send_rtt, write_gbps, send_gbps,
	       path_mtu(b));
}

static void serve(struct bench *b)
{
	round_trip(b, false, ping_write);
	round_trip(b, false, ping_send);
	absorb(b);
	absorb(b);
}

static void finish(struct bench *b, bool client)
{
	if (client)
		rdma_disconnect(b->id);
	await_and_ack(b, RDMA_CM_EVENT_DISCONNECTED);
	if (!client)
		rdma_disconnect(b->id);
	rdma_destroy_qp(b->id);
	ibv_dereg_mr(b->mr);
	ibv_dereg_mr(b->rmr);
	ibv_destroy_cq(b->cq);
	rdma_destroy_id(b->id);
	if (b->listener)
		rdma_destroy_id(b->listener);
	rdma_destroy_event_channel(b->ch);
	free(b->buf);
	free(b->rbuf);
}

int main(int argc, char **argv)
{
	struct bench b = {.size = 65536, .depth = 128, .seconds = 2};
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(7301)};
	bool client, good = true;

	for (int c; (c = getopt(argc, argv, "p:s:d:t:")) != -1;)
		switch (c) {
		case 'p': a.sin_port = htons((uint16_t)atoi(optarg)); break;
		case 's': b.size = (uint32_t)strtoul(optarg, NULL, 0); break;
		case 'd': b.depth = (unsigned)strtoul(optarg, NULL, 0); break;
		case 't': b.seconds = strtod(optarg, NULL); break;
		default: good = false;
		}
	client = optind + 2 == argc && strcmp(argv[optind], "client") == 0;
	good &= client ? inet_pton(AF_INET, argv[optind + 1], &a.sin_addr) == 1 : optind + 1 == argc && strcmp(argv[optind], "server") == 0;
	if (!good || b.size < 8 || b.size % 8 || b.depth < 1 || b.depth > 255) {
		fprintf(stderr, "usage: rcbench server [-p PORT] | client ADDR [-p PORT] [-s BYTES] [-d DEPTH, up to 255] [-t SECONDS]\n");
		return 2;
	}
	b.ch = rdma_create_event_channel();
	if (!b.ch)
		die("rdma_create_event_channel", errno);
	if (client) {
		connect_to(&b, (struct sockaddr *)&a);
		measure(&b);
	} else {
		accept_one(&b, (struct sockaddr *)&a);
		serve(&b);
	}
	finish(&b, client);
	return 0;
}
