/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plain program of librdmacm that does what packaged programs leave out: immediate data with SEND and WRITE, and every operation with
 * sizes at which padding and packets change; every byte, length and immediate is compared.
 *
 *   operations server KIND ADDRESS [slow]    slow: gives its receive a while after the client may send
 *   operations client KIND ADDRESS           KIND: rc, uc, or short for RC without the largest size; ADDRESS: the server's
 */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PORT 7323
#define LARGEST ((1 << 20) + 1)
#define SLOW 100000    /* us */
#define SLOW_SIZE 4097 /* for these messages alone, because the RDMA CM makes clients wait for 655 ms when they come too early */

/* A message of 1 MiB is more than the queues on the way hold, so what an unreliable connection sends is shorter. */
static const uint32_t sizes[] = {1, 3, 33, 4095, 4097, 65537, LARGEST};
static unsigned nsizes = sizeof(sizes) / sizeof(sizes[0]);

static const struct op {
	const char *name;
	enum ibv_wr_opcode code;
	int imm, told; /* told: the server gets no completion of it, so a SEND of no bytes follows */
	int reliable, atomic;
} ops[] = {
	{"SEND", IBV_WR_SEND, 0, 0, 0, 0},
	{"SEND with immediate", IBV_WR_SEND_WITH_IMM, 1, 0, 0, 0},
	{"WRITE", IBV_WR_RDMA_WRITE, 0, 1, 0, 0},
	{"WRITE with immediate", IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, 0, 0},
	{"READ", IBV_WR_RDMA_READ, 0, 1, 1, 0},
	{"FETCH_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 1, 1, 1},
	{"CMP_SWAP", IBV_WR_ATOMIC_CMP_AND_SWP, 0, 1, 1, 1},
};
#define NOPS (sizeof(ops) / sizeof(ops[0]))

struct place {
	uint64_t addr;
	uint32_t rkey;
} __attribute__((packed));

static int uc;
static struct rdma_cm_id *id;
static struct ibv_mr *mr;
static uint8_t buffer[LARGEST + 7] __attribute__((aligned(64)));
static const char *step = "connecting";
static uint32_t step_size;

static void need(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "operations: %s of %u B: ", step, step_size);
	perror(what);
	exit(1);
}

/* The bytes of a step: every one says which it is. */
static uint8_t byte(unsigned turn, uint32_t i)
{
	return (uint8_t)(turn * 37 + i + (i >> 8) * 3 + (i >> 16) * 5);
}

static void fill(unsigned turn, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		buffer[i] = byte(turn, i);
}

static void compare(unsigned turn, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		need(buffer[i] == byte(turn, i), "the bytes differ");
	need(buffer[len] == 0xee, "the byte behind them");
}

static uint64_t *word(void)
{
	return (uint64_t *)buffer;
}

static uint32_t imm_of(unsigned turn)
{
	return htobe32(0xa5000000 + turn);
}

static void post(enum ibv_wr_opcode code, uint32_t len, uint32_t imm, const struct place *at, unsigned turn)
{
	struct ibv_sge sge = {(uintptr_t)buffer, len, mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.sg_list = &sge, .num_sge = len ? 1 : 0, .opcode = code, .imm_data = imm, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc;

	if (code == IBV_WR_ATOMIC_CMP_AND_SWP || code == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = at->addr;
		wr.wr.atomic.rkey = at->rkey;
		wr.wr.atomic.compare_add = turn;
		wr.wr.atomic.swap = ~(uint64_t)turn;
	} else if (at) {
		wr.wr.rdma.remote_addr = at->addr;
		wr.wr.rdma.rkey = at->rkey;
	}
	need(!ibv_post_send(id->qp, &wr, &bad), "ibv_post_send");
	need(rdma_get_send_comp(id, &wc) == 1, "rdma_get_send_comp");
	/* The client may be gone when the last message has to be sent again. */
	need(wc.status == IBV_WC_SUCCESS || !turn, ibv_wc_status_str(wc.status));
}

static void give_receive(uint32_t len)
{
	need(!rdma_post_recv(id, NULL, buffer, len, mr), "rdma_post_recv");
}

static struct ibv_wc receive(void)
{
	struct ibv_wc wc;

	need(rdma_get_recv_comp(id, &wc) == 1, "rdma_get_recv_comp");
	need(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
	return wc;
}

/* --- the server's part of a step --- */

static void before(const struct op *op, unsigned turn, uint32_t len)
{
	memset(buffer, 0xee, len + 1);
	if (op->code == IBV_WR_RDMA_READ)
		fill(turn, len);
	else if (op->atomic)
		*word() = op->code == IBV_WR_ATOMIC_CMP_AND_SWP ? turn : 1000;
}

static void after(const struct op *op, const struct ibv_wc *wc, unsigned turn, uint32_t len)
{
	enum ibv_wc_opcode opcode = op->code == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;

	need(wc->opcode == opcode, "the completion's opcode");
	need(wc->byte_len == (op->told ? 0 : len), "the completion's length");
	need(!!(wc->wc_flags & IBV_WC_WITH_IMM) == op->imm && (!op->imm || wc->imm_data == imm_of(turn)), "the immediate data");
	if (op->code == IBV_WR_ATOMIC_CMP_AND_SWP)
		need(*word() == ~(uint64_t)turn, "the value after CMP_SWAP");
	else if (op->atomic)
		need(*word() == 1000 + turn, "the value after FETCH_ADD");
	else
		compare(turn, len);
}

/* --- the client's --- */

static void do_op(const struct op *op, const struct place *at, unsigned turn, uint32_t len)
{
	if (op->code == IBV_WR_RDMA_READ || op->atomic)
		memset(buffer, 0xee, len + 1);
	else
		fill(turn, len);
	post(op->code, len, imm_of(turn), op->code == IBV_WR_SEND || op->code == IBV_WR_SEND_WITH_IMM ? NULL : at, turn);
	if (op->code == IBV_WR_RDMA_READ)
		compare(turn, len);
	if (op->atomic)
		need(*word() == (op->code == IBV_WR_ATOMIC_CMP_AND_SWP ? turn : 1000), "the value before the atomic");
	if (op->told)
		post(IBV_WR_SEND, 0, 0, NULL, turn);
}

/*
 * A step: the client does an operation, the server looks at what has come and answers with a message of no bytes. Unless it is slow the
 * server has given the next receive before it answers.
 */
static unsigned all_steps(int server, int slow, const struct place *at)
{
	unsigned turn = 0;

	for (unsigned s = 0; s < nsizes; s++)
		for (const struct op *op = ops; op < ops + NOPS; op++) {
			uint32_t len = op->atomic ? 8 : sizes[s];
			struct ibv_wc wc;
			int late;

			if (op->reliable && uc)
				continue;
			step = op->name;
			step_size = len;
			turn++;
			if (!server) {
				receive(); /* it is ready for this step */
				give_receive(0);
				do_op(op, at, turn, len);
				continue;
			}
			before(op, turn, len);
			late = slow && sizes[s] == SLOW_SIZE;
			if (!late)
				give_receive(op->told ? 0 : LARGEST);
			post(IBV_WR_SEND, 0, 0, NULL, turn);
			if (late) {
				usleep(SLOW);
				give_receive(op->told ? 0 : LARGEST);
			}
			wc = receive();
			after(op, &wc, turn, len);
		}
	return turn;
}

/* --- connecting --- */

static struct rdma_cm_id *endpoint(const char *text, int flags)
{
	static struct sockaddr_in sin = {.sin_family = AF_INET};
	struct rdma_addrinfo res = {
		.ai_flags = flags, .ai_port_space = uc ? RDMA_PS_IB : RDMA_PS_TCP, .ai_qp_type = uc ? IBV_QPT_UC : IBV_QPT_RC};
	struct ibv_qp_init_attr attr = {.qp_type = uc ? IBV_QPT_UC : IBV_QPT_RC,
					.cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1}};
	struct rdma_cm_id *made;

	sin.sin_port = htons(PORT);
	need(inet_pton(AF_INET, text, &sin.sin_addr) == 1, "address");
	if (flags & RAI_PASSIVE) {
		res.ai_src_addr = (struct sockaddr *)&sin;
		res.ai_src_len = sizeof(sin);
	} else {
		res.ai_dst_addr = (struct sockaddr *)&sin;
		res.ai_dst_len = sizeof(sin);
	}
	need(!rdma_create_ep(&made, &res, NULL, &attr), "rdma_create_ep");
	return made;
}

static void register_buffer(void)
{
	mr = ibv_reg_mr(id->pd, buffer, sizeof(buffer),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	need(mr != NULL, "ibv_reg_mr");
}

static void serve(const char *text, int slow)
{
	struct rdma_cm_id *l = endpoint(text, RAI_PASSIVE);
	struct rdma_cm_event *e;
	struct place place;
	struct rdma_conn_param p = {.private_data = &place,
				    .private_data_len = sizeof(place),
				    .rnr_retry_count = 7,
				    .responder_resources = 1,
				    .initiator_depth = 1};

	need(!rdma_listen(l, 0) && !rdma_get_request(l, &id), "rdma_get_request");
	register_buffer();
	place = (struct place){(uintptr_t)buffer, mr->rkey};
	need(!rdma_accept(id, &p), "rdma_accept");
	all_steps(1, slow, NULL);
	/* The client may have to send its last request again: it ends the connection, when it has got this. */
	step = "the last message";
	post(IBV_WR_SEND, 0, 0, NULL, 0);
	need(!rdma_get_cm_event(id->channel, &e) && e->event == RDMA_CM_EVENT_DISCONNECTED, "disconnected");
	rdma_ack_cm_event(e);
	rdma_destroy_ep(id);
	rdma_destroy_ep(l);
}

static void ask(const char *text)
{
	struct rdma_conn_param p = {.responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7};
	struct place at;

	id = endpoint(text, 0);
	register_buffer();
	give_receive(0);
	need(!rdma_connect(id, &p), "rdma_connect");
	need(id->event->event == RDMA_CM_EVENT_ESTABLISHED && id->event->param.conn.private_data_len >= sizeof(at), "established");
	memcpy(&at, id->event->param.conn.private_data, sizeof(at));
	printf("%u operations as they should be\n", all_steps(0, 0, &at));
	step = "the last message";
	receive();
	need(!rdma_disconnect(id), "rdma_disconnect");
	rdma_destroy_ep(id);
}

int main(int argc, char **argv)
{
	int slow = argc == 5 && !strcmp(argv[4], "slow");

	if (argc != 4 + slow || (strcmp(argv[2], "rc") && strcmp(argv[2], "uc") && strcmp(argv[2], "short"))) {
		fprintf(stderr, "usage: operations server|client rc|short|uc ADDRESS [slow]\n");
		return 2;
	}
	uc = !strcmp(argv[2], "uc");
	nsizes -= strcmp(argv[2], "rc") != 0;
	if (!strcmp(argv[1], "server"))
		serve(argv[3], slow);
	else
		ask(argv[3]);
	return 0;
}
