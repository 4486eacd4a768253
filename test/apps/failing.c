/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plain librdmacm program whose requests fail, so that there are recordings of it.
 *
 *   failing server KIND              listens, takes three messages, and then does to its client what KIND says
 *   failing client KIND ADDRESS      sends three messages and then what fails; prints "request N: status S" for each of these
 *
 * KIND is silent (the server stops: status 12), gone (it dies, and its keeper or kernel says so: 5), nobuffer (it posts no more receives:
 * 13), noaccess (the client has a wrong key: 10) or chain (nothing fails: FETCH_ADD and CMP_SWAP on one word, one after the other).
 */
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PORT "7476"
#define GOOD 3 /* messages before anything happens */
#define BAD 3  /* requests after them */
#define LEN 64
#define ACK_TIMEOUT 14  /* 67 ms: a busy machine answers within four of them */
#define LONG_TIMEOUT 19 /* 2.1 s: the news of its death is sooner there */
#define RETRIES 3
#define PAUSE_US 100000

struct keys {
	uint64_t addr;
	uint32_t rkey;
};

static const char *kind;
static uint64_t memory[1024];
static struct ibv_mr *mr;
static struct keys peer;

static int is(const char *name)
{
	return strcmp(kind, name) == 0;
}

static void need(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static struct rdma_cm_id *endpoint(const char *address)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP, .ai_flags = address ? 0 : RAI_PASSIVE}, *res;
	struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
					.qp_type = IBV_QPT_RC,
					.sq_sig_all = 1};
	struct rdma_cm_id *id;

	need(rdma_getaddrinfo(address, PORT, &hints, &res) == 0, "rdma_getaddrinfo");
	need(rdma_create_ep(&id, res, NULL, &attr) == 0, "rdma_create_ep");
	rdma_freeaddrinfo(res);
	return id;
}

static void reg(struct rdma_cm_id *id)
{
	mr = ibv_reg_mr(id->pd, memory, sizeof(memory),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	need(mr != NULL, "ibv_reg_mr");
}

/* --- the server --- */

static void take_three(struct rdma_cm_id *id)
{
	struct ibv_wc wc;

	for (int i = 0; i < GOOD; i++)
		need(rdma_get_recv_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS, "rdma_get_recv_comp");
}

/* Stops once the acknowledgement of the third message has left, and is killed when the client has sent more. */
static void fall_silent(void)
{
	const pid_t self = getpid();

	usleep(PAUSE_US);
	if (is("gone") && fork() == 0) {
		usleep(5 * PAUSE_US);
		kill(self, SIGKILL);
		_exit(0);
	}
	kill(self, SIGSTOP);
}

static int server(void)
{
	struct rdma_cm_id *listener = endpoint(NULL), *id;
	struct rdma_conn_param param = {.responder_resources = 8, .initiator_depth = 8, .rnr_retry_count = RETRIES};
	struct rdma_cm_event *e;
	struct keys mine;

	need(rdma_listen(listener, 1) == 0, "rdma_listen");
	need(rdma_get_request(listener, &id) == 0, "rdma_get_request");
	reg(id);
	for (int i = 0; i < (is("nobuffer") ? GOOD : 2 * GOOD + BAD); i++)
		need(rdma_post_recv(id, NULL, memory, LEN, mr) == 0, "rdma_post_recv");
	mine.addr = (uintptr_t)memory;
	mine.rkey = mr->rkey;
	param.private_data = &mine;
	param.private_data_len = sizeof(mine);
	need(rdma_accept(id, &param) == 0, "rdma_accept");
	take_three(id);
	if (is("silent") || is("gone"))
		fall_silent();
	while (rdma_get_cm_event(id->channel, &e) == 0) {
		int over = e->event == RDMA_CM_EVENT_DISCONNECTED;

		rdma_ack_cm_event(e);
		if (over)
			break;
	}
	rdma_disconnect(id);
	return 0;
}

/* --- the client --- */

static void post(struct rdma_cm_id *id, uintptr_t n)
{
	struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = LEN, .lkey = mr->lkey};
	struct ibv_send_wr wr = {.wr_id = n, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	if (n >= GOOD && is("noaccess")) {
		wr.opcode = IBV_WR_RDMA_WRITE;
		wr.wr.rdma.remote_addr = peer.addr;
		wr.wr.rdma.rkey = peer.rkey ^ 0x5a00;
	} else if (n >= GOOD && is("chain")) {
		sge.length = 8;
		wr.opcode = n % 2 ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP;
		wr.wr.atomic.remote_addr = peer.addr + 4096;
		wr.wr.atomic.rkey = peer.rkey;
		wr.wr.atomic.compare_add = n % 2 ? 7 : 7 * (n - GOOD + 1) / 2;
		wr.wr.atomic.swap = 7 * (n - GOOD + 1) / 2;
	}
	need(ibv_post_send(id->qp, &wr, &bad) == 0, "ibv_post_send");
}

static void connect_to(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = {.responder_resources = 8, .initiator_depth = 8, .retry_count = RETRIES, .rnr_retry_count = RETRIES};
	uint8_t timeout = is("gone") ? LONG_TIMEOUT : ACK_TIMEOUT;

	need(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1) == 0, "rdma_set_option");
	need(rdma_connect(id, &param) == 0, "rdma_connect");
	need(id->event && id->event->param.conn.private_data_len >= sizeof(peer), "private data");
	memcpy(&peer, id->event->param.conn.private_data, sizeof(peer));
}

/* True when the peer has disconnected; its requests fail then. */
static void look_for_end(struct rdma_cm_id *id)
{
	struct pollfd p = {.fd = id->channel->fd, .events = POLLIN};
	struct rdma_cm_event *e;

	if (poll(&p, 1, 0) != 1 || rdma_get_cm_event(id->channel, &e))
		return;
	if (e->event == RDMA_CM_EVENT_DISCONNECTED)
		rdma_disconnect(id);
	rdma_ack_cm_event(e);
}

static int client(const char *address)
{
	struct rdma_cm_id *id = endpoint(address);
	const int bad = is("chain") ? 4 * BAD : BAD;
	struct ibv_wc wc;

	reg(id);
	connect_to(id);
	for (uintptr_t n = 0; n < GOOD; n++) {
		post(id, n);
		need(rdma_get_send_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS, "a message that should arrive");
	}
	usleep(3 * PAUSE_US);
	for (int n = 0; n < bad; n++)
		post(id, (uintptr_t)(GOOD + n));
	for (int n = 0; n < bad;) {
		int got = ibv_poll_cq(id->send_cq, 1, &wc);

		need(got >= 0, "ibv_poll_cq");
		n += got;
		if (got)
			printf("request %d: status %d\n", (int)wc.wr_id, wc.status);
		else
			look_for_end(id);
	}
	if (!is("silent")) /* who would not answer that either, for a minute */
		rdma_disconnect(id);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	kind = argv[2];
	return strcmp(argv[1], "server") == 0 ? server() : argc == 4 ? client(argv[3]) : 2;
}
