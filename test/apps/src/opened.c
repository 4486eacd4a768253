/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that links neither libibverbs nor librdmacm but opens them, as NCCL and language bindings do: by the names that it is given,
 * and asks the handles for symbols by their versions. Then it uses them for what cannot work with two engines or two devices in a process:
 * a completion queue made by verbs on the context of an rdma_cm_id; and a SEND between two queue pairs that are connected to one another.
 *
 *   opened ADDRESS LIBIBVERBS [LIBRDMACM]
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#undef ibv_query_port
#undef ibv_reg_mr

static struct {
	struct ibv_device **(*get_device_list)(int *);
	void (*free_device_list)(struct ibv_device **);
	const char *(*get_device_name)(struct ibv_device *);
	struct ibv_context *(*open_device)(struct ibv_device *);
	int (*close_device)(struct ibv_context *);
	int (*query_gid)(struct ibv_context *, uint8_t, int, union ibv_gid *);
	struct ibv_pd *(*alloc_pd)(struct ibv_context *);
	int (*dealloc_pd)(struct ibv_pd *);
	struct ibv_mr *(*reg_mr)(struct ibv_pd *, void *, size_t, int);
	int (*dereg_mr)(struct ibv_mr *);
	struct ibv_cq *(*create_cq)(struct ibv_context *, int, void *, struct ibv_comp_channel *, int);
	int (*destroy_cq)(struct ibv_cq *);
	struct ibv_qp *(*create_qp)(struct ibv_pd *, struct ibv_qp_init_attr *);
	int (*modify_qp)(struct ibv_qp *, struct ibv_qp_attr *, int);
	int (*destroy_qp)(struct ibv_qp *);
	struct ibv_mr *(*reg_mr_iova2)(struct ibv_pd *, void *, size_t, uint64_t, unsigned);
	int (*read_sysfs_file)(const char *, const char *, char *, size_t);
} v;

static struct {
	int (*create_id)(struct rdma_event_channel *, struct rdma_cm_id **, void *, enum rdma_port_space);
	int (*destroy_id)(struct rdma_cm_id *);
	int (*bind_addr)(struct rdma_cm_id *, struct sockaddr *);
	int (*rsocket)(int, int, int);
	int (*rclose)(int);
} r;

/* clang-format off */
static const struct symbol {
	const char *name, *version;
	void **where;
} verbs_symbols[] = {
	{"ibv_get_device_list", "IBVERBS_1.1", (void **)&v.get_device_list},
	{"ibv_free_device_list", "IBVERBS_1.1", (void **)&v.free_device_list},
	{"ibv_get_device_name", "IBVERBS_1.1", (void **)&v.get_device_name},
	{"ibv_open_device", "IBVERBS_1.1", (void **)&v.open_device},
	{"ibv_close_device", "IBVERBS_1.1", (void **)&v.close_device},
	{"ibv_query_gid", "IBVERBS_1.1", (void **)&v.query_gid},
	{"ibv_alloc_pd", "IBVERBS_1.1", (void **)&v.alloc_pd},
	{"ibv_dealloc_pd", "IBVERBS_1.1", (void **)&v.dealloc_pd},
	{"ibv_reg_mr", "IBVERBS_1.1", (void **)&v.reg_mr},
	{"ibv_dereg_mr", "IBVERBS_1.1", (void **)&v.dereg_mr},
	{"ibv_create_cq", "IBVERBS_1.1", (void **)&v.create_cq},
	{"ibv_destroy_cq", "IBVERBS_1.1", (void **)&v.destroy_cq},
	{"ibv_create_qp", "IBVERBS_1.1", (void **)&v.create_qp},
	{"ibv_modify_qp", "IBVERBS_1.1", (void **)&v.modify_qp},
	{"ibv_destroy_qp", "IBVERBS_1.1", (void **)&v.destroy_qp},
	{"ibv_reg_mr_iova2", "IBVERBS_1.8", (void **)&v.reg_mr_iova2},
	{"ibv_read_sysfs_file", NULL, (void **)&v.read_sysfs_file},
	{NULL, NULL, NULL},
}, rdmacm_symbols[] = {
	{"rdma_create_id", "RDMACM_1.0", (void **)&r.create_id},
	{"rdma_destroy_id", "RDMACM_1.0", (void **)&r.destroy_id},
	{"rdma_bind_addr", "RDMACM_1.0", (void **)&r.bind_addr},
	{"rsocket", "RDMACM_1.0", (void **)&r.rsocket},
	{"rclose", NULL, (void **)&r.rclose},
	{NULL, NULL, NULL},
};
/* clang-format on */

static void check(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "opened: %s\n", what);
	exit(1);
}

static void load(const char *name, const struct symbol *s)
{
	void *lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	check(lib != NULL, lib ? "" : dlerror());
	for (; s->name; s++) {
		if (s->version)
			*s->where = dlvsym(lib, s->name, s->version);
		else
			*s->where = dlsym(lib, s->name);
		check(*s->where != NULL, s->name);
	}
}

static int starts_with(const char *line, const char *s)
{
	return strncmp(line, s, strlen(s)) == 0;
}

/* Files mapped into this process whose name begins so: each liburoce would be an engine. */
static unsigned mapped(const char *name)
{
	char line[4096], last[4096] = "";
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned n = 0;

	check(f != NULL, "/proc/self/maps");
	while (fgets(line, sizeof(line), f)) {
		char *slash = strrchr(line, '/');

		if (!slash || !starts_with(slash + 1, name) || strcmp(strchr(line, '/'), last) == 0)
			continue;
		snprintf(last, sizeof(last), "%s", strchr(line, '/'));
		n++;
	}
	fclose(f);
	return n;
}

static struct ibv_context *open_only_device(void)
{
	int n;
	struct ibv_device **list = v.get_device_list(&n);
	struct ibv_context *ctx;
	char text[64];

	check(list && n == 1, "not one device");
	printf("device %s\n", v.get_device_name(list[0]));
	check(v.read_sysfs_file(list[0]->ibdev_path, "ports/1/gid_attrs/types/0", text, sizeof(text)) == 7 && !strcmp(text, "RoCE v2"),
	      "no GID type by ibv_read_sysfs_file");
	ctx = v.open_device(list[0]);
	check(ctx != NULL, "ibv_open_device");
	v.free_device_list(list);
	return ctx;
}

static void connect_qp(struct ibv_qp *qp, uint32_t to, const union ibv_gid *gid)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
				.port_num = 1,
				.path_mtu = IBV_MTU_1024,
				.dest_qp_num = to,
				.max_dest_rd_atomic = 1,
				.max_rd_atomic = 1,
				.min_rnr_timer = 1,
				.timeout = 14,
				.retry_cnt = 7,
				.rnr_retry = 7,
				.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = *gid, .hop_limit = 64}}};

	check(!v.modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "to INIT");
	a.qp_state = IBV_QPS_RTR;
	check(!v.modify_qp(qp, &a,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				   IBV_QP_MIN_RNR_TIMER),
	      "to RTR");
	a.qp_state = IBV_QPS_RTS;
	check(!v.modify_qp(qp, &a,
			   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
	      "to RTS");
}

static void wait_for(struct ibv_cq *cq, int n)
{
	time_t end = time(NULL) + 20;
	struct ibv_wc wc;

	while (n > 0 && time(NULL) < end) {
		int got = ibv_poll_cq(cq, 1, &wc);

		check(got >= 0 && (!got || wc.status == IBV_WC_SUCCESS), "completion");
		n -= got;
	}
	check(!n, "completions are missing");
}

/* A SEND from one queue pair to another of this process. */
static void ping(struct ibv_context *ctx)
{
	static char from[100] = "over uroce", to[100];
	union ibv_gid gid;
	struct ibv_pd *pd = v.alloc_pd(ctx);
	struct ibv_cq *cq = v.create_cq(ctx, 8, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1, .cap = {1, 1, 1, 1, 0}};
	struct ibv_qp *a = v.create_qp(pd, &init), *b = v.create_qp(pd, &init);
	struct ibv_mr *mf = v.reg_mr(pd, from, sizeof(from), 0), *mt = v.reg_mr_iova2(pd, to, sizeof(to), 0, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sf = {(uintptr_t)from, sizeof(from), mf->lkey}, st = {0, sizeof(to), mt->lkey};
	struct ibv_send_wr send = {.sg_list = &sf, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad_send;
	struct ibv_recv_wr recv = {.sg_list = &st, .num_sge = 1}, *bad_recv;

	check(!v.query_gid(ctx, 1, 0, &gid), "ibv_query_gid");
	connect_qp(a, b->qp_num, &gid);
	connect_qp(b, a->qp_num, &gid);
	check(!ibv_post_recv(b, &recv, &bad_recv) && !ibv_post_send(a, &send, &bad_send), "posting");
	wait_for(cq, 2);
	check(!strcmp(to, from), "the message differs");
	check(!v.destroy_qp(a) && !v.destroy_qp(b) && !v.dereg_mr(mf) && !v.dereg_mr(mt) && !v.destroy_cq(cq) && !v.dealloc_pd(pd),
	      "destroying");
	puts("a SEND arrived");
}

/* The context of an id is one of verbs, of the same device. */
static void with_rdmacm(const char *address, struct ibv_context *ctx)
{
	struct sockaddr_in sin = {.sin_family = AF_INET};
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	int fd;

	inet_pton(AF_INET, address, &sin.sin_addr);
	check(!r.create_id(NULL, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	check(!r.bind_addr(id, (struct sockaddr *)&sin), "rdma_bind_addr");
	check(id->verbs && id->verbs->device == ctx->device, "librdmacm and libibverbs have a device each");
	cq = v.create_cq(id->verbs, 8, NULL, NULL, 0);
	check(cq && !v.destroy_cq(cq), "a completion queue on the id's context");
	check(!r.destroy_id(id), "rdma_destroy_id");
	fd = r.rsocket(AF_INET, SOCK_STREAM, 0);
	check(fd >= 0 && !r.rclose(fd), "rsocket");
	puts("librdmacm on the same device");
}

int main(int argc, char **argv)
{
	struct ibv_context *ctx;

	check(argc == 3 || argc == 4, "usage: opened ADDRESS LIBIBVERBS [LIBRDMACM]");
	load(argv[2], verbs_symbols);
	if (argc == 4)
		load(argv[3], rdmacm_symbols);
	ctx = open_only_device();
	ping(ctx);
	if (argc == 4)
		with_rdmacm(argv[1], ctx);
	check(mapped("liburoce.so") == 1, "liburoce is not there once");
	if (getenv("OPENED_WAIT")) { /* for who wants to look from outside */
		puts("waiting");
		fflush(stdout);
		sleep(20);
	}
	check(!v.close_device(ctx), "ibv_close_device");
	return 0;
}
