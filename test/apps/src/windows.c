/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plain program of librdmacm and libibverbs that uses memory windows, because no packaged one does: the server binds a window of each
 * type to memory that is closed otherwise, the client writes, adds and reads through it and gives it back, by SEND with invalidate for
 * type 2. In the end the client tries a key that is dead.
 *
 *   windows                  the server
 *   windows ADDR             the client
 */
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT "7321"
#define SIZE 4096
#define AT 1024 /* where the window begins */
#define WINDOW 64
#define VALUE 0x1122334455667700ull
#define ACCESS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

struct offer {
	uint64_t addr;
	uint32_t rkey, type; /* 0: a key that is dead */
};

static struct rdma_cm_id *id;
static struct ibv_mr *mr, *msg_mr;
static struct offer msg[2]; /* sent, received */
static uint64_t *buf;

static void need(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "windows: %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct ibv_wc send_done(enum ibv_wc_status status)
{
	struct ibv_wc wc;

	need(rdma_get_send_comp(id, &wc) == 1, "send completion");
	need(wc.status == status, ibv_wc_status_str(wc.status));
	return wc;
}

static void post(struct ibv_send_wr wr, void *at, uint32_t len, struct ibv_mr *of)
{
	struct ibv_sge sge = {(uintptr_t)at, len, of->lkey};
	struct ibv_send_wr *bad;

	wr.sg_list = &sge;
	wr.num_sge = len != 0;
	wr.send_flags = IBV_SEND_SIGNALED;
	need(!ibv_post_send(id->qp, &wr, &bad), "ibv_post_send");
}

static void open_id(const char *addr)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP, .ai_flags = addr ? 0 : RAI_PASSIVE}, *ai;
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {16, 16, 1, 1, 0}};
	struct rdma_cm_id *listener;

	need(!rdma_getaddrinfo(addr, PORT, &hints, &ai), "rdma_getaddrinfo");
	need(!rdma_create_ep(addr ? &id : &listener, ai, NULL, &attr), "rdma_create_ep");
	if (!addr)
		need(!rdma_listen(listener, 1) && !rdma_get_request(listener, &id), "rdma_get_request");
	need(!posix_memalign((void **)&buf, SIZE, SIZE), "memory");
	memset(buf, 0, SIZE);
	mr = ibv_reg_mr(id->pd, buf, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	msg_mr = ibv_reg_mr(id->pd, msg, sizeof(msg), IBV_ACCESS_LOCAL_WRITE);
	need(mr && msg_mr, "ibv_reg_mr");
	need(!rdma_post_recv(id, NULL, &msg[1], sizeof(msg[1]), msg_mr), "rdma_post_recv");
	need(!(addr ? rdma_connect(id, NULL) : rdma_accept(id, NULL)), "connection");
}

/* --- the server --- */

static void bind_window(struct ibv_mw *mw, uint64_t len, unsigned access)
{
	struct ibv_mw_bind_info info = {len ? mr : NULL, len ? (uintptr_t)buf + AT : 0, len, access};
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED, .bind_info = info};
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW};

	if (mw->type == IBV_MW_TYPE_1) {
		need(!ibv_bind_mw(id->qp, mw, &bind), "ibv_bind_mw");
	} else {
		wr.bind_mw.mw = mw;
		wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
		wr.bind_mw.bind_info = info;
		post(wr, NULL, 0, mr);
		mw->rkey = wr.bind_mw.rkey;
	}
	need(send_done(IBV_WC_SUCCESS).opcode == IBV_WC_BIND_MW, "completion of a bind");
}

static void offer(uint64_t addr, uint32_t rkey, uint32_t type)
{
	msg[0] = (struct offer){addr, rkey, type};
	post((struct ibv_send_wr){.opcode = IBV_WR_SEND}, &msg[0], sizeof(msg[0]), msg_mr);
	if (type)
		send_done(IBV_WC_SUCCESS);
}

static uint32_t one_window(enum ibv_mw_type type)
{
	struct ibv_mw *mw = ibv_alloc_mw(id->pd, type);
	int two = type == IBV_MW_TYPE_2;
	struct ibv_wc wc;
	uint32_t key;

	need(mw != NULL, "ibv_alloc_mw");
	bind_window(mw, WINDOW, ACCESS | (two ? IBV_ACCESS_ZERO_BASED : 0));
	need(ibv_dereg_mr(mr) == EBUSY, "ibv_dereg_mr under a window");
	offer(two ? 0 : (uintptr_t)buf + AT, mw->rkey, type);
	need(rdma_get_recv_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS, "receive");
	need(buf[AT / 8] == VALUE + 1, "what the client wrote");
	need(!(wc.wc_flags & IBV_WC_WITH_INV) == !two && (!two || wc.invalidated_rkey == mw->rkey), "invalidation");
	buf[AT / 8] = 0;
	need(!rdma_post_recv(id, NULL, &msg[1], sizeof(msg[1]), msg_mr), "rdma_post_recv");
	if (!two)
		bind_window(mw, 0, 0);
	key = mw->rkey;
	need(!ibv_dealloc_mw(mw), "ibv_dealloc_mw");
	return key;
}

static void serve(void)
{
	struct ibv_wc wc;

	open_id(NULL);
	one_window(IBV_MW_TYPE_2);
	/* What the client does with a dead key may end the connection before the acknowledgement of this message is here. */
	offer(0, one_window(IBV_MW_TYPE_1), 0);
	need(rdma_get_send_comp(id, &wc) == 1 && (wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_WR_FLUSH_ERR), "the last offer");
	need(rdma_get_recv_comp(id, &wc) == 1 && wc.status == IBV_WC_WR_FLUSH_ERR, "the end of the connection");
	need(buf[AT / 8] == 0, "memory behind a dead key");
	need(!ibv_dereg_mr(mr), "ibv_dereg_mr");
}

/* --- the client --- */

static void use(const struct offer *o)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE}, add = {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};

	buf[0] = VALUE;
	wr.wr.rdma.remote_addr = o->addr;
	wr.wr.rdma.rkey = o->rkey;
	post(wr, &buf[0], 8, mr);
	send_done(o->type ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
	if (!o->type)
		return;
	add.wr.atomic.remote_addr = o->addr;
	add.wr.atomic.rkey = o->rkey;
	add.wr.atomic.compare_add = 1;
	post(add, &buf[1], 8, mr);
	need(send_done(IBV_WC_SUCCESS).opcode == IBV_WC_FETCH_ADD && buf[1] == VALUE, "FETCH_ADD");
	wr.opcode = IBV_WR_RDMA_READ;
	post(wr, &buf[2], 8, mr);
	send_done(IBV_WC_SUCCESS);
	need(buf[2] == VALUE + 1, "READ");
}

static void go(const char *addr)
{
	struct ibv_wc wc;
	struct offer o;

	open_id(addr);
	do {
		need(rdma_get_recv_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS, "receive");
		o = msg[1];
		need(!rdma_post_recv(id, NULL, &msg[1], sizeof(msg[1]), msg_mr), "rdma_post_recv");
		use(&o);
		if (!o.type)
			break;
		post((struct ibv_send_wr){.opcode = o.type == IBV_MW_TYPE_2 ? IBV_WR_SEND_WITH_INV : IBV_WR_SEND,
					  .invalidate_rkey = o.rkey},
		     NULL, 0, mr);
		send_done(IBV_WC_SUCCESS);
		printf("window of type %u\n", o.type);
	} while (1);
	printf("dead key\n");
}

int main(int argc, char **argv)
{
	if (argc > 2)
		return 2;
	if (argc == 2)
		go(argv[1]);
	else
		serve();
	return 0;
}
