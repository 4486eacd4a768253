/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program of librdmacm and libibverbs whose memory vanishes under its regions, and a peer that makes use of them. Each row of the
 * table is a connection of its own: the victim registers two pages, takes them away, says where they were, and the peer or the victim
 * itself posts one request. The victim has handlers of its own for SIGSEGV and SIGBUS, which nobody may call: those of before the first
 * call of verbs, and others in the middle of the table.
 *
 *   vanished                  the victim
 *   vanished ADDR             its peer
 */
#define _GNU_SOURCE
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PORT "7322"
#define PAGE 4096
#define LEN (2 * PAGE)
#define ALL (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* What becomes of the memory; of a file the second page alone goes. */
enum how { UNMAPPED, NO_RIGHT, READ_ONLY, CUT_SHORT, ON_DEMAND, INTACT };
enum who { PEER, VICTIM };

static const struct row {
	enum how how;
	enum who who; /* posts */
	enum ibv_wr_opcode op;
	unsigned off, len;
	enum ibv_wc_status status, recv; /* of the request, and of a receive of the victim's: after a success its peer says so */
} rows[] = {
	{INTACT, PEER, IBV_WR_RDMA_WRITE, 0, LEN, IBV_WC_SUCCESS, IBV_WC_SUCCESS},
	{UNMAPPED, PEER, IBV_WR_RDMA_WRITE, 0, 8, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR},
	{UNMAPPED, PEER, IBV_WR_RDMA_WRITE, 0, LEN, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR},
	{UNMAPPED, PEER, IBV_WR_RDMA_READ, 0, 8, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR},
	{UNMAPPED, PEER, IBV_WR_RDMA_READ, 0, LEN, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR},
	{UNMAPPED, PEER, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 8, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR},
	{UNMAPPED, PEER, IBV_WR_ATOMIC_CMP_AND_SWP, 8, 8, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR},
	{UNMAPPED, PEER, IBV_WR_SEND, 0, LEN, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR},
	{UNMAPPED, VICTIM, IBV_WR_SEND, 0, 8, IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR},
	{UNMAPPED, VICTIM, IBV_WR_SEND, 0, LEN, IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR},
	{UNMAPPED, VICTIM, IBV_WR_RDMA_WRITE, 0, LEN, IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR},
	{UNMAPPED, VICTIM, IBV_WR_RDMA_READ, 0, LEN, IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR},
	{NO_RIGHT, PEER, IBV_WR_RDMA_WRITE, 100, 5000, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR},
	{NO_RIGHT, PEER, IBV_WR_RDMA_READ, 100, 5000, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR},
	{NO_RIGHT, PEER, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR},
	{READ_ONLY, PEER, IBV_WR_RDMA_WRITE, 0, LEN, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR},
	{READ_ONLY, PEER, IBV_WR_RDMA_READ, 0, LEN, IBV_WC_SUCCESS, IBV_WC_SUCCESS},
	{READ_ONLY, PEER, IBV_WR_ATOMIC_CMP_AND_SWP, 0, 8, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR},
	{READ_ONLY, VICTIM, IBV_WR_RDMA_WRITE, 0, LEN, IBV_WC_SUCCESS, IBV_WC_WR_FLUSH_ERR},
	{CUT_SHORT, PEER, IBV_WR_RDMA_WRITE, 0, LEN, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR},
	{CUT_SHORT, PEER, IBV_WR_RDMA_WRITE, 0, PAGE, IBV_WC_SUCCESS, IBV_WC_SUCCESS},
	{CUT_SHORT, PEER, IBV_WR_RDMA_READ, 0, LEN, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR},
	{CUT_SHORT, PEER, IBV_WR_ATOMIC_FETCH_AND_ADD, PAGE, 8, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR},
	{CUT_SHORT, VICTIM, IBV_WR_SEND, 0, LEN, IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR},
	{ON_DEMAND, PEER, IBV_WR_RDMA_WRITE, 0, LEN, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR},
	{ON_DEMAND, PEER, IBV_WR_RDMA_READ, 0, LEN, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR},
	{ON_DEMAND, PEER, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR},
	{INTACT, PEER, IBV_WR_RDMA_READ, 0, LEN, IBV_WC_SUCCESS, IBV_WC_SUCCESS},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

struct offer {
	uint64_t addr;
	uint32_t rkey;
};

static struct rdma_cm_id *listener, *id;
static struct rdma_addrinfo *ai;
static struct offer msg;
static uint8_t own[LEN];
static struct ibv_mr *msg_mr, *own_mr;
static unsigned row_now;

static void need(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "vanished: row %u: %s: %s\n", row_now, what, strerror(errno));
	exit(1);
}

static void on_signal(int sig)
{
	static const char text[] = "vanished: a handler of the program's was called\n";

	(void)!write(2, text, sizeof(text) - 1);
	_exit(sig);
}

static void set_handlers(void)
{
	struct sigaction a = {.sa_handler = on_signal};

	need(!sigaction(SIGSEGV, &a, NULL) && !sigaction(SIGBUS, &a, NULL), "sigaction");
}

static void post(const struct row *r, uint64_t addr, uint32_t lkey, const struct offer *to)
{
	struct ibv_sge sge = {addr, r->len, lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = r->op, .send_flags = IBV_SEND_SIGNALED}, *bad;
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = to->addr;
	wr.wr.rdma.rkey = to->rkey;
	if (r->op == IBV_WR_ATOMIC_FETCH_AND_ADD || r->op == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = to->addr;
		wr.wr.atomic.rkey = to->rkey;
		wr.wr.atomic.compare_add = 1;
	}
	need(!ibv_post_send(id->qp, &wr, &bad), "ibv_post_send");
	need(rdma_get_send_comp(id, &wc) == 1, "send completion");
	if (wc.status != r->status)
		fprintf(stderr, "vanished: row %u: %s\n", row_now, ibv_wc_status_str(wc.status));
	need(wc.status == r->status, "status of the request");
}

static void await_recv(enum ibv_wc_status status)
{
	struct ibv_wc wc;

	need(rdma_get_recv_comp(id, &wc) == 1, "receive completion");
	if (wc.status != status)
		fprintf(stderr, "vanished: row %u: receive: %s\n", row_now, ibv_wc_status_str(wc.status));
	need(wc.status == status, "status of the receive");
}

/* What the peer does with the message may end the connection before its acknowledgement is here. */
static void send_msg(const struct offer *m)
{
	struct ibv_wc wc;

	msg = *m;
	need(!rdma_post_send(id, NULL, &msg, sizeof(msg), msg_mr, IBV_SEND_SIGNALED), "rdma_post_send");
	need(rdma_get_send_comp(id, &wc) == 1 && (wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_WR_FLUSH_ERR), "offer");
}

/* --- the victim --- */

static uint8_t *map(enum how how, int *fd)
{
	uint8_t *at;

	*fd = -1;
	if (how == CUT_SHORT) {
		*fd = memfd_create("vanished", MFD_CLOEXEC);
		need(*fd >= 0 && !ftruncate(*fd, LEN), "memfd_create");
	}
	at = mmap(NULL, LEN, PROT_READ | PROT_WRITE, *fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, *fd, 0);
	need(at != MAP_FAILED, "mmap");
	return at;
}

static void take_away(enum how how, uint8_t *at, int fd)
{
	switch (how) {
	case UNMAPPED:
	case ON_DEMAND: need(!munmap(at, LEN), "munmap"); break;
	case NO_RIGHT: need(!mprotect(at, LEN, PROT_NONE), "mprotect"); break;
	case READ_ONLY: need(!mprotect(at, LEN, PROT_READ), "mprotect"); break;
	case CUT_SHORT: need(!ftruncate(fd, PAGE), "ftruncate"); break;
	case INTACT: break;
	}
}

static void victim_row(const struct row *r)
{
	int fd, access = ALL | (r->how == ON_DEMAND ? IBV_ACCESS_ON_DEMAND : 0), into_region = r->who == PEER && r->op == IBV_WR_SEND;
	uint8_t *at = map(r->how, &fd);
	struct ibv_mr *mr = ibv_reg_mr(id->pd, at, LEN, access);
	struct offer o, theirs;

	need(mr != NULL, "ibv_reg_mr");
	need(!rdma_post_recv(id, NULL, &msg, sizeof(msg), msg_mr), "rdma_post_recv");
	need(!rdma_accept(id, NULL), "rdma_accept");
	await_recv(IBV_WC_SUCCESS); /* where the peer's memory is */
	theirs = msg;
	need(!(into_region ? rdma_post_recv(id, NULL, at, LEN, mr) : rdma_post_recv(id, NULL, own, LEN, own_mr)), "rdma_post_recv");
	take_away(r->how, at, fd);
	o = (struct offer){(uintptr_t)at + r->off, mr->rkey};
	send_msg(&o);
	if (r->who == VICTIM)
		post(r, (uintptr_t)at + r->off, mr->lkey, &theirs);
	if (r->who == VICTIM && r->status == IBV_WC_SUCCESS)
		send_msg(&o);
	else
		await_recv(r->recv);
	rdma_disconnect(id);
	need(!ibv_dereg_mr(mr), "ibv_dereg_mr");
	if (r->how != UNMAPPED && r->how != ON_DEMAND)
		munmap(at, LEN);
	if (fd >= 0)
		close(fd);
}

/* Memory that has not the rights of its region, or is not there, is refused. */
static void register_bad(void)
{
	int fd = memfd_create("short", MFD_CLOEXEC);
	uint8_t *at = mmap(NULL, LEN, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *beyond;
	struct ibv_mr *mr;

	need(fd >= 0 && !ftruncate(fd, PAGE) && at != MAP_FAILED, "memory");
	beyond = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	need(!ibv_reg_mr(id->pd, at, LEN, ALL) && errno == EFAULT, "memory that may only be read, for writing");
	mr = ibv_reg_mr(id->pd, at, LEN, IBV_ACCESS_REMOTE_READ);
	need(mr && !ibv_dereg_mr(mr), "memory that may only be read, for reading");
	need(!mprotect(at, LEN, PROT_NONE), "mprotect");
	need(!ibv_reg_mr(id->pd, at, LEN, IBV_ACCESS_REMOTE_READ) && errno == EFAULT, "memory without rights");
	need(!ibv_reg_mr(id->pd, beyond, LEN, ALL) && errno == EFAULT, "memory beyond the end of its file");
	munmap(at, LEN);
	munmap(beyond, LEN);
	close(fd);
}

static void open_own(void)
{
	msg_mr = ibv_reg_mr(id->pd, &msg, sizeof(msg), IBV_ACCESS_LOCAL_WRITE);
	own_mr = ibv_reg_mr(id->pd, own, sizeof(own), ALL);
	need(msg_mr && own_mr, "ibv_reg_mr");
}

static void close_own(void)
{
	need(!ibv_dereg_mr(msg_mr) && !ibv_dereg_mr(own_mr), "ibv_dereg_mr");
	rdma_destroy_ep(id);
}

static void serve(struct ibv_qp_init_attr *attr)
{
	set_handlers();
	need(!rdma_create_ep(&listener, ai, NULL, attr) && !rdma_listen(listener, 8), "listener");
	for (row_now = 0; row_now < ROWS; row_now++) {
		if (row_now == ROWS / 2)
			set_handlers(); /* the registrations that follow see it */
		need(!rdma_get_request(listener, &id), "rdma_get_request");
		open_own();
		if (!row_now)
			register_bad();
		victim_row(&rows[row_now]);
		close_own();
	}
	printf("survived %zu rows\n", ROWS);
}

/* --- the peer --- */

static void go(struct ibv_qp_init_attr *attr)
{
	for (row_now = 0; row_now < ROWS; row_now++) {
		const struct row *r = &rows[row_now];
		struct offer mine, theirs;
		struct ibv_qp_init_attr a = *attr;

		need(!rdma_create_ep(&id, ai, NULL, &a), "rdma_create_ep");
		open_own();
		need(!rdma_post_recv(id, NULL, &msg, sizeof(msg), msg_mr), "rdma_post_recv");
		need(!rdma_post_recv(id, NULL, own, LEN, own_mr), "rdma_post_recv");
		need(!rdma_connect(id, NULL), "rdma_connect");
		mine = (struct offer){(uintptr_t)own, own_mr->rkey};
		{ /* what it receives into must not be what it sends from */
			static struct offer out;
			struct ibv_mr *out_mr = ibv_reg_mr(id->pd, &out, sizeof(out), 0);
			struct ibv_wc wc;

			out = mine;
			need(!rdma_post_send(id, NULL, &out, sizeof(out), out_mr, IBV_SEND_SIGNALED), "rdma_post_send");
			need(rdma_get_send_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS && !ibv_dereg_mr(out_mr), "offer");
		}
		await_recv(IBV_WC_SUCCESS);
		theirs = msg;
		if (r->who == PEER)
			post(r, (uintptr_t)own, own_mr->lkey, &theirs);
		if (r->who == PEER && r->status == IBV_WC_SUCCESS)
			send_msg(&mine);
		else if (r->who == PEER)
			await_recv(IBV_WC_WR_FLUSH_ERR);
		else if (r->status == IBV_WC_SUCCESS)
			await_recv(IBV_WC_SUCCESS);
		else
			usleep(50000); /* nothing comes from the victim */
		rdma_disconnect(id);
		close_own();
		printf("row %u\n", row_now);
	}
}

int main(int argc, char **argv)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP, .ai_flags = argc > 1 ? 0 : RAI_PASSIVE};
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {16, 16, 1, 1, 0}};

	setvbuf(stdout, NULL, _IOLBF, 0);

	need(!rdma_getaddrinfo(argc > 1 ? argv[1] : NULL, PORT, &hints, &ai), "rdma_getaddrinfo");
	if (argc > 1)
		go(&attr);
	else
		serve(&attr);
	return 0;
}
