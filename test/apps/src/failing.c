/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plain librdmacm program whose requests fail, so that there are recordings of it.
 *
 *   failing server KIND              listens, takes three messages, and then does to its client what KIND says
 *   failing client KIND ADDRESS      sends three messages and then what fails; prints "request N: status S" for each of these
 *   failing list                     prints the names of all kinds
 */
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PORT "7476"
#define GOOD 3 /* messages before anything happens */
#define BAD 3  /* requests after them */
#define LEN 64
#define MEMORY 8192u
#define ACK_TIMEOUT 14  /* 67 ms: a busy machine answers within four of them */
#define LONG_TIMEOUT 19 /* 2.1 s: the news of its death is sooner there */
#define RETRIES 3
#define PAUSE_US 100000

struct keys {
	uint64_t addr;
	uint32_t rkey;
};

enum receives { ENOUGH, NO_MORE, WITHOUT_MEMORY }; /* that the server has posted after the three messages */
enum ending { STAYS, STOPS, DIES, DISCONNECTS, DEREGISTERS };

#define ALL (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* What the server does once it has three messages, and what its client asks for then. */
static const struct kind {
	const char *name;
	enum ending ending;
	enum receives receives;
	unsigned access; /* to the server's memory */
	enum ibv_wr_opcode op;
	uint32_t len, key; /* what is asked for; what its key differs by */
	uint64_t off;
	int chain; /* nothing fails: FETCH_ADD and CMP_SWAP on one word, one after the other */
} kinds[] = {
	{.name = "silent", .ending = STOPS, .op = IBV_WR_SEND, .len = LEN},
	{.name = "gone", .ending = DIES, .op = IBV_WR_SEND, .len = LEN}, /* its keeper, or kernel, says so */
	{.name = "nobuffer", .receives = NO_MORE, .op = IBV_WR_SEND, .len = LEN},
	{.name = "badbuffer", .receives = WITHOUT_MEMORY, .op = IBV_WR_SEND, .len = LEN},
	{.name = "toolong", .op = IBV_WR_SEND, .len = 2 * LEN},
	{.name = "noaccess", .access = ALL, .op = IBV_WR_RDMA_WRITE, .len = LEN, .key = 0x5a00},
	{.name = "deadkey", .ending = DEREGISTERS, .access = ALL, .op = IBV_WR_RDMA_WRITE, .len = LEN},
	{.name = "beyond", .access = ALL, .op = IBV_WR_RDMA_WRITE, .len = LEN, .off = MEMORY - 8},
	{.name = "beyond_read", .access = ALL, .op = IBV_WR_RDMA_READ, .len = LEN, .off = MEMORY - 8},
	{.name = "readonly", .access = IBV_ACCESS_REMOTE_READ, .op = IBV_WR_RDMA_WRITE, .len = LEN},
	{.name = "unreadable", .access = IBV_ACCESS_REMOTE_WRITE, .op = IBV_WR_RDMA_READ, .len = LEN},
	{.name = "noatomic", .access = IBV_ACCESS_REMOTE_WRITE, .op = IBV_WR_ATOMIC_FETCH_AND_ADD, .len = 8},
	{.name = "misaligned", .access = ALL, .op = IBV_WR_ATOMIC_FETCH_AND_ADD, .len = 8, .off = 4},
	{.name = "disconnected", .ending = DISCONNECTS, .receives = NO_MORE, .op = IBV_WR_SEND, .len = LEN},
	{.name = "fine", .access = ALL, .op = IBV_WR_RDMA_WRITE, .len = LEN},
	{.name = "chain", .access = ALL, .op = IBV_WR_ATOMIC_FETCH_AND_ADD, .len = 8, .chain = 1},
};

static const struct kind *kind;
static uint64_t memory[MEMORY / 8];
static struct ibv_mr *mr, *target; /* for messages; for what the client asks for */
static struct keys peer;

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
	mr = ibv_reg_mr(id->pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	target = ibv_reg_mr(id->pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE | (int)kind->access);
	need(mr && target, "ibv_reg_mr");
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
	if (kind->ending == DIES && fork() == 0) {
		usleep(5 * PAUSE_US);
		kill(self, SIGKILL);
		_exit(0);
	}
	kill(self, SIGSTOP);
}

static void post_receives(struct rdma_cm_id *id)
{
	struct ibv_mr *gone = ibv_reg_mr(id->pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	const int more = kind->receives == NO_MORE ? 0 : GOOD + BAD;

	need(gone != NULL, "ibv_reg_mr");
	for (int i = 0; i < GOOD + more; i++)
		need(rdma_post_recv(id, NULL, memory, LEN, i >= GOOD && kind->receives == WITHOUT_MEMORY ? gone : mr) == 0,
		     "rdma_post_recv");
	need(ibv_dereg_mr(gone) == 0, "ibv_dereg_mr");
}

static void wait_for_disconnect(struct rdma_cm_id *id)
{
	struct rdma_cm_event *e;

	while (rdma_get_cm_event(id->channel, &e) == 0) {
		int over = e->event == RDMA_CM_EVENT_DISCONNECTED;

		rdma_ack_cm_event(e);
		if (over)
			break;
	}
}

static int server(void)
{
	struct rdma_cm_id *listener = endpoint(NULL), *id;
	struct rdma_conn_param param = {.responder_resources = 8, .initiator_depth = 8, .rnr_retry_count = RETRIES};
	struct keys mine;

	need(rdma_listen(listener, 1) == 0, "rdma_listen");
	need(rdma_get_request(listener, &id) == 0, "rdma_get_request");
	reg(id);
	post_receives(id);
	mine.addr = (uintptr_t)memory;
	mine.rkey = target->rkey;
	param.private_data = &mine;
	param.private_data_len = sizeof(mine);
	need(rdma_accept(id, &param) == 0, "rdma_accept");
	take_three(id);
	if (kind->ending == STOPS || kind->ending == DIES)
		fall_silent();
	if (kind->ending == DEREGISTERS)
		need(ibv_dereg_mr(target) == 0, "ibv_dereg_mr");
	if (kind->ending == DISCONNECTS)
		usleep(4 * PAUSE_US); /* the client has asked for more */
	else
		wait_for_disconnect(id);
	rdma_disconnect(id); /* which waits for the end of the connection */
	return 0;
}

/* --- the client --- */

static void post(struct rdma_cm_id *id, uintptr_t n)
{
	struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = LEN, .lkey = mr->lkey};
	struct ibv_send_wr wr = {.wr_id = n, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	if (n >= GOOD) {
		wr.opcode = kind->chain && n % 2 == 0 ? IBV_WR_ATOMIC_CMP_AND_SWP : kind->op;
		sge.length = kind->len;
	}
	if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = peer.addr + MEMORY / 2 + kind->off;
		wr.wr.atomic.rkey = peer.rkey;
		wr.wr.atomic.compare_add = n % 2 ? 7 : 7 * (n - GOOD + 1) / 2;
		wr.wr.atomic.swap = 7 * (n - GOOD + 1) / 2;
	} else if (wr.opcode != IBV_WR_SEND) {
		wr.wr.rdma.remote_addr = peer.addr + kind->off;
		wr.wr.rdma.rkey = peer.rkey ^ kind->key;
	}
	need(ibv_post_send(id->qp, &wr, &bad) == 0, "ibv_post_send");
}

static void connect_to(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = {.responder_resources = 8, .initiator_depth = 8, .retry_count = RETRIES, .rnr_retry_count = RETRIES};
	uint8_t timeout = kind->ending == DIES ? LONG_TIMEOUT : ACK_TIMEOUT;

	need(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1) == 0, "rdma_set_option");
	need(rdma_connect(id, &param) == 0, "rdma_connect");
	need(id->event && id->event->param.conn.private_data_len >= sizeof(peer), "private data");
	memcpy(&peer, id->event->param.conn.private_data, sizeof(peer));
}

/* True when the peer has disconnected; the requests fail then. With the kernel, rdma_disconnect returns only once. */
static bool look_for_end(struct rdma_cm_id *id)
{
	struct pollfd p = {.fd = id->channel->fd, .events = POLLIN};
	struct rdma_cm_event *e;
	bool over;

	if (poll(&p, 1, 0) != 1 || rdma_get_cm_event(id->channel, &e))
		return false;
	over = e->event == RDMA_CM_EVENT_DISCONNECTED;
	if (over)
		rdma_disconnect(id);
	rdma_ack_cm_event(e);
	return over;
}

static int client(const char *address)
{
	struct rdma_cm_id *id = endpoint(address);
	const int bad = kind->chain ? 4 * BAD : BAD;
	struct ibv_wc wc;
	bool over = false;

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
		else if (!over)
			over = look_for_end(id);
	}
	if (kind->ending != STOPS && !over) /* who would not answer that either, for a minute */
		rdma_disconnect(id);
	return 0;
}

static const struct kind *find(const char *name)
{
	for (const struct kind *k = kinds; k < kinds + sizeof(kinds) / sizeof(*kinds); k++)
		if (strcmp(k->name, name) == 0)
			return k;
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "list") == 0) {
		for (const struct kind *k = kinds; k < kinds + sizeof(kinds) / sizeof(*kinds); k++)
			puts(k->name);
		return 0;
	}
	if (argc < 3 || !(kind = find(argv[2])))
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	return strcmp(argv[1], "server") == 0 ? server() : argc == 4 ? client(argv[3]) : 2;
}
