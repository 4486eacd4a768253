/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many messages threads carry, as a plain program of libibverbs: each thread has QPs and a CQ of its own, which it creates itself.
 *
 *   threadbench server                       serves one client, from which it learns everything, on TCP port 7303
 *   threadbench [OPTIONS] client ADDR        between the threads of this process and those of the server
 *   threadbench [OPTIONS] self               within this process: each QP is connected to itself, so that no port takes part
 *
 *   -T THREADS   (1)                         -o write|read|send   (write); with send the server's threads poll, else they sleep
 *   -q QPS       of each thread (1)          -c       one CQ for all threads of a process instead of one for each
 *   -s SIZE      bytes of a message (8)      -v       the CQ of thread N has completion vector N
 *   -d DEPTH     outstanding messages of     -D       a thread domain for each thread
 *                each thread (64)            -x       of self: each thread's QPs are connected to those of the next thread
 *   -t SECONDS   (2)                         -g INDEX of the GID (0)
 *
 * A thread's messages go over its QPs in turn. Printed is one line of KEY=VALUE: what the plan was, mps (million messages a second), gbps,
 * least (what the slowest thread carried, as a part of an even share), client_cpu_ms and server_cpu_ms (user and system time of the
 * processes while it was measured), ms_gib (both, for a GiB), client_waits and server_waits: uroce's counter lock_waits meanwhile, "-"
 * where the library is another one.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PORT 7303
#define THREADS_MAX 256
#define QPS_MAX 65536
#define SIZE_LIMIT (16u << 20)
#define DEPTH_MAX 4096
#define WARM_UP_MS 300
#define LIMIT_SECONDS 110
#define BATCH 16

/* uroce.h has them; another libibverbs does not. */
extern int uroce_counters(uint64_t *values, unsigned n) __attribute__((weak));
extern const char *uroce_counter_name(unsigned counter) __attribute__((weak));

struct plan {
	uint32_t threads, qps, size, depth, op;
	bool one_cq, vectors, domains, cross;
};

struct place { /* where a QP is, and the memory of its thread */
	uint64_t addr;
	uint32_t rkey, qpn;
};

struct worker {
	_Alignas(64) _Atomic uint64_t done; /* messages; others count them, too, where all have one CQ */
	_Alignas(64) uint64_t posted;
	unsigned index, next; /* the QP whose turn it is */
	pthread_t thread;
	struct ibv_td *td;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *memory; /* `size` bytes of the sender, and as many of the receiver */
	struct ibv_qp **qp;
};

struct sample {
	double ns, cpu_ms, waits; /* waits: -1 when unknown */
};

enum { END_SELF, END_CLIENT, END_SERVER };

static const char *const op_names[] = {"write", "read", "send"};
static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND};
static struct plan plan = {.threads = 1, .qps = 1, .size = 8, .depth = 64};
static int role = -1, gid_index;
static double seconds = 2;

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *common_cq;
static struct ibv_port_attr port;
static struct ibv_device_attr device;
static union ibv_gid gid, peer_gid;
static struct worker workers[THREADS_MAX];
static struct place *ours, *theirs; /* of all QPs, thread by thread */
static pthread_barrier_t barrier;
static atomic_bool stop;
static atomic_uint sending; /* threads with outstanding messages */

static void die(const char *what, int err)
{
	fprintf(stderr, "threadbench: %s: %s\n", what, strerror(err));
	exit(1);
}

static void *allocate(size_t n)
{
	void *p = NULL;

	if (posix_memalign(&p, 4096, n))
		die("memory", ENOMEM);
	memset(p, 0, n);
	return p;
}

static double clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* --- what each thread creates: a QP, and the CQ with it, may belong to the thread that creates it --- */

static bool sends(void)
{
	return plan.op == 2;
}

static unsigned wrs(void)
{
	return plan.depth / plan.qps + 2;
}

static struct ibv_cq *new_cq(unsigned threads, unsigned vector)
{
	unsigned cqe = threads * (plan.depth + (sends() ? plan.qps * wrs() : 0));
	struct ibv_cq *cq = ibv_create_cq(ctx, (int)cqe, NULL, NULL, (int)(vector % (unsigned)ctx->num_comp_vectors));

	if (!cq)
		die("ibv_create_cq", errno);
	return cq;
}

static void open_domain(struct worker *w)
{
	struct ibv_td_init_attr none = {0};
	struct ibv_parent_domain_init_attr a = {.pd = pd};

	w->td = a.td = ibv_alloc_td(ctx, &none);
	if (!w->td)
		die("ibv_alloc_td", errno);
	w->pd = ibv_alloc_parent_domain(ctx, &a);
	if (!w->pd)
		die("ibv_alloc_parent_domain", errno);
}

static void post_recv(struct worker *w, unsigned i)
{
	struct ibv_sge sge = {(uintptr_t)w->memory + plan.size, plan.size, w->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = (uint64_t)w->index * plan.qps + i, .sg_list = &sge, .num_sge = 1}, *bad;
	int err = ibv_post_recv(w->qp[i], &wr, &bad);

	if (err)
		die("ibv_post_recv", err);
}

static void modify(struct ibv_qp *q, struct ibv_qp_attr *a, int mask)
{
	int err = ibv_modify_qp(q, a, mask | IBV_QP_STATE);

	if (err)
		die("ibv_modify_qp", err);
}

static void create_qp(struct worker *w, unsigned i)
{
	struct ibv_qp_init_attr a = {
		.qp_type = IBV_QPT_RC, .send_cq = w->cq, .recv_cq = w->cq, .cap = {wrs(), sends() ? wrs() : 1, 1, 1, 0}};
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
	struct place *p = &ours[w->index * plan.qps + i];

	w->qp[i] = ibv_create_qp(w->pd, &a);
	if (!w->qp[i])
		die("ibv_create_qp", errno);
	modify(w->qp[i], &init, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	*p = (struct place){(uintptr_t)w->memory + plan.size, w->mr->rkey, w->qp[i]->qp_num};
	for (unsigned k = 0; sends() && k < wrs(); k++)
		post_recv(w, i);
}

static void create(struct worker *w)
{
	w->pd = pd;
	if (plan.domains)
		open_domain(w);
	w->cq = plan.one_cq ? common_cq : new_cq(1, plan.vectors ? w->index : 0);
	w->memory = allocate(2 * (size_t)plan.size);
	w->mr = ibv_reg_mr(pd, w->memory, 2 * (size_t)plan.size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	if (!w->mr)
		die("ibv_reg_mr", errno);
	w->qp = allocate(plan.qps * sizeof(*w->qp));
	for (unsigned i = 0; i < plan.qps; i++)
		create_qp(w, i);
}

static void connect_qp(struct ibv_qp *q, uint32_t qpn)
{
	uint8_t reads = (uint8_t)(device.max_qp_rd_atom < 16 ? device.max_qp_rd_atom : 16);
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = port.active_mtu,
		.dest_qp_num = qpn,
		.max_dest_rd_atomic = reads,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = peer_gid, .sgid_index = (uint8_t)gid_index, .hop_limit = 64}}};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 17, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = reads};

	modify(q, &rtr, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	modify(q, &rts, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static void destroy(struct worker *w)
{
	for (unsigned i = 0; i < plan.qps; i++)
		ibv_destroy_qp(w->qp[i]);
	if (!plan.one_cq)
		ibv_destroy_cq(w->cq);
	ibv_dereg_mr(w->mr);
	if (plan.domains) {
		ibv_dealloc_pd(w->pd);
		ibv_dealloc_td(w->td);
	}
	free(w->qp);
	free(w->memory);
}

/* --- messages --- */

static struct place *peer_of(const struct worker *w, unsigned i)
{
	unsigned thread = plan.cross ? (w->index + 1) % plan.threads : w->index;

	return &theirs[thread * plan.qps + i];
}

/* False when the QP whose turn it is has no room. */
static bool post(struct worker *w)
{
	struct place *to = peer_of(w, w->next);
	struct ibv_sge sge = {(uintptr_t)w->memory, plan.size, w->mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = w->index, .sg_list = &sge, .num_sge = 1, .opcode = opcodes[plan.op], .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	int err;

	wr.wr.rdma.remote_addr = to->addr;
	wr.wr.rdma.rkey = to->rkey;
	err = ibv_post_send(w->qp[w->next], &wr, &bad);
	if (err == ENOMEM)
		return false;
	if (err)
		die("ibv_post_send", err);
	w->next = w->next + 1 == plan.qps ? 0 : w->next + 1;
	w->posted++;
	return true;
}

static void poll_once(struct worker *w)
{
	struct ibv_wc wc[BATCH];
	int n = ibv_poll_cq(w->cq, BATCH, wc);
	unsigned mine = 0;

	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			fprintf(stderr, "threadbench: completion: %s\n", ibv_wc_status_str(wc[i].status));
			exit(1);
		}
		if (wc[i].opcode & IBV_WC_RECV)
			post_recv(&workers[wc[i].wr_id / plan.qps], (unsigned)(wc[i].wr_id % plan.qps));
		else if (wc[i].wr_id == w->index)
			mine++;
		else
			atomic_fetch_add_explicit(&workers[wc[i].wr_id].done, 1, memory_order_relaxed);
	}
	if (mine)
		atomic_fetch_add_explicit(&w->done, mine, memory_order_relaxed);
}

static uint64_t outstanding(struct worker *w)
{
	return w->posted - atomic_load_explicit(&w->done, memory_order_relaxed);
}

static void send_messages(struct worker *w)
{
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		while (outstanding(w) < plan.depth && post(w))
			continue;
		poll_once(w);
	}
	/* Others may wait for what this thread receives. */
	for (bool counted = false; atomic_load_explicit(&sending, memory_order_relaxed); poll_once(w))
		if (!counted && !outstanding(w)) {
			counted = true;
			atomic_fetch_sub_explicit(&sending, 1, memory_order_relaxed);
		}
}

static void receive_messages(struct worker *w)
{
	while (!atomic_load_explicit(&stop, memory_order_relaxed))
		poll_once(w);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	create(w);
	pthread_barrier_wait(&barrier); /* all are created */
	pthread_barrier_wait(&barrier); /* the peer's are known */
	for (unsigned i = 0; i < plan.qps; i++)
		connect_qp(w->qp[i], peer_of(w, i)->qpn);
	pthread_barrier_wait(&barrier); /* all are connected */
	pthread_barrier_wait(&barrier); /* the peer's, too */
	if (role != END_SERVER)
		send_messages(w);
	else if (sends())
		receive_messages(w);
	pthread_barrier_wait(&barrier); /* nobody sends any more */
	pthread_barrier_wait(&barrier); /* in no process */
	destroy(w);
	return NULL;
}

/* --- the other process --- */

static void put(int fd, const void *p, size_t n)
{
	if (send(fd, p, n, MSG_NOSIGNAL) != (ssize_t)n)
		die("the other process", errno);
}

static void get(int fd, void *p, size_t n)
{
	if (recv(fd, p, n, MSG_WAITALL) != (ssize_t)n)
		die("the other process", errno ? errno : EPIPE);
}

/* Both processes call it; within one it copies. */
static void swap(int fd, const void *mine, void *others, size_t n)
{
	if (role == END_SELF)
		memcpy(others, mine, n);
	if (role == END_CLIENT)
		put(fd, mine, n);
	if (role != END_SELF)
		get(fd, others, n);
	if (role == END_SERVER)
		put(fd, mine, n);
}

static int open_socket(const char *host)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1, listener = fd;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (host) {
		if (inet_pton(AF_INET, host, &a.sin_addr) != 1 || connect(fd, (struct sockaddr *)&a, sizeof(a)))
			die("connect", errno);
		return fd;
	}
	if (bind(listener, (struct sockaddr *)&a, sizeof(a)) || listen(listener, 1))
		die("listen", errno);
	fd = accept(listener, NULL, NULL);
	if (fd < 0)
		die("accept", errno);
	close(listener);
	return fd;
}

/* --- what is measured --- */

/* The number of times that threads waited for uroce's lock; reading it may be one. */
static double lock_waits(void)
{
	static uint64_t values[1024];
	int n = uroce_counters && uroce_counter_name ? uroce_counters(values, 1024) : -1;

	for (int i = 0; i < n && i < 1024; i++)
		if (!strcmp(uroce_counter_name((unsigned)i), "lock_waits"))
			return (double)values[i];
	return -1;
}

static struct sample sample(void)
{
	double waits = lock_waits();

	return (struct sample){clock_ns(CLOCK_MONOTONIC), clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e6, waits};
}

static struct sample sample_of_server(int fd)
{
	struct sample s = {0, 0, -1};

	if (role == END_CLIENT) {
		put(fd, "s", 1);
		get(fd, &s, sizeof(s));
	}
	return s;
}

static void answer_samples(int fd)
{
	for (char c; recv(fd, &c, 1, 0) == 1 && c == 's';) {
		struct sample s = sample();

		put(fd, &s, sizeof(s));
	}
}

static void count(uint64_t *done)
{
	for (unsigned i = 0; i < plan.threads; i++)
		done[i] = atomic_load_explicit(&workers[i].done, memory_order_relaxed) - done[i];
}

static void print_waits(const char *key, double before, double after)
{
	if (before < 0 || after < 0)
		printf(" %s=-", key);
	else
		printf(" %s=%.0f", key, after - before);
}

static void measure(int fd)
{
	struct timespec warm_up = {0, WARM_UP_MS * 1000000}, during = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
	struct sample server[2], client[2];
	uint64_t done[THREADS_MAX] = {0}, total = 0, least = UINT64_MAX;
	double bytes, ns, cpu[2];

	nanosleep(&warm_up, NULL);
	server[0] = sample_of_server(fd);
	client[0] = sample();
	count(done);
	nanosleep(&during, NULL);
	count(done);
	client[1] = sample();
	server[1] = sample_of_server(fd);
	for (unsigned i = 0; i < plan.threads; i++) {
		total += done[i];
		least = done[i] < least ? done[i] : least;
	}
	ns = client[1].ns - client[0].ns;
	bytes = (double)total * plan.size;
	cpu[0] = client[1].cpu_ms - client[0].cpu_ms;
	cpu[1] = server[1].cpu_ms - server[0].cpu_ms;
	printf("threads=%u qps=%u size=%u depth=%u op=%s", plan.threads, plan.qps, plan.size, plan.depth, op_names[plan.op]);
	printf(" mps=%.4f gbps=%.4g least=%.2f", (double)total * 1e3 / ns, bytes * 8 / ns,
	       (double)least * plan.threads / (double)(total ? total : 1));
	printf(" client_cpu_ms=%.0f server_cpu_ms=%.0f ms_gib=%.4g", cpu[0], cpu[1], (cpu[0] + cpu[1]) / (bytes / (1 << 30)));
	print_waits("client_waits", client[0].waits, client[1].waits);
	print_waits("server_waits", server[0].waits, server[1].waits);
	printf("\n");
}

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
	if (!ctx || ibv_query_gid(ctx, 1, gid_index, &gid) || ibv_query_port(ctx, 1, &port) || ibv_query_device(ctx, &device))
		die("ibv_open_device, ibv_query_gid", errno);
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(ctx);
	if (!pd)
		die("ibv_alloc_pd", errno);
}

static void run(int fd)
{
	size_t places = (size_t)plan.threads * plan.qps;
	char ready;

	open_device();
	if (plan.one_cq)
		common_cq = new_cq(plan.threads, 0);
	ours = allocate(places * sizeof(*ours));
	theirs = allocate(places * sizeof(*theirs));
	sending = plan.threads;
	pthread_barrier_init(&barrier, NULL, plan.threads + 1);
	for (unsigned i = 0; i < plan.threads; i++) {
		workers[i].index = i;
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			die("pthread_create", EAGAIN);
	}
	pthread_barrier_wait(&barrier);
	swap(fd, ours, theirs, places * sizeof(*ours));
	swap(fd, &gid, &peer_gid, sizeof(gid));
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	swap(fd, "", &ready, 1);
	pthread_barrier_wait(&barrier);
	if (role == END_SERVER)
		answer_samples(fd); /* until the client has said that it is done */
	else
		measure(fd);
	atomic_store(&stop, true);
	pthread_barrier_wait(&barrier);
	if (role == END_CLIENT)
		put(fd, "e", 1);
	pthread_barrier_wait(&barrier);
	for (unsigned i = 0; i < plan.threads; i++)
		pthread_join(workers[i].thread, NULL);
	if (common_cq)
		ibv_destroy_cq(common_cq);
	ibv_dealloc_pd(pd);
	ibv_close_device(ctx);
	free(ours);
	free(theirs);
}

static bool sane(void)
{
	return plan.threads && plan.threads <= THREADS_MAX && plan.qps && (uint64_t)plan.threads * plan.qps <= QPS_MAX && plan.size &&
	       plan.size <= SIZE_LIMIT && plan.depth && plan.depth <= DEPTH_MAX && plan.op < 3 &&
	       !(plan.one_cq && plan.domains && sends()) && /* whoever polls posts receives, and a domain is for one thread */
	       seconds > 0 && seconds <= 60;
}

static uint32_t number(const char *s)
{
	char *end;
	unsigned long n = strtoul(s, &end, 10);

	return *end || n > UINT32_MAX ? 0 : (uint32_t)n; /* 0 is never sane */
}

static bool parse(int argc, char **argv)
{
	for (int c; (c = getopt(argc, argv, "T:q:s:d:o:t:g:cvDx")) != -1;)
		switch (c) {
		case 'T': plan.threads = number(optarg); break;
		case 'q': plan.qps = number(optarg); break;
		case 's': plan.size = number(optarg); break;
		case 'd': plan.depth = number(optarg); break;
		case 'o':
			for (plan.op = 0; plan.op < 3 && strcmp(optarg, op_names[plan.op]);)
				plan.op++;
			break;
		case 't': seconds = strtod(optarg, NULL); break;
		case 'g': gid_index = (int)number(optarg); break;
		case 'c': plan.one_cq = true; break;
		case 'v': plan.vectors = true; break;
		case 'D': plan.domains = true; break;
		case 'x': plan.cross = true; break;
		default: return false;
		}
	if (optind == argc)
		return false;
	if (optind + 1 == argc)
		role = !strcmp(argv[optind], "server") ? END_SERVER : !strcmp(argv[optind], "self") ? END_SELF : -1;
	else if (optind + 2 == argc && !strcmp(argv[optind], "client"))
		role = END_CLIENT;
	return role >= 0 && sane() && (role == END_SELF || !plan.cross);
}

int main(int argc, char **argv)
{
	int fd = -1;

	if (!parse(argc, argv)) {
		fprintf(stderr, "usage: threadbench server | [-T THREADS] [-q QPS] [-s SIZE] [-d DEPTH] [-o write|read|send] [-t SECONDS]\n"
				"       [-g INDEX] [-cvDx] client ADDR | self\n");
		return 2;
	}
	if (role == END_SERVER) {
		fd = open_socket(NULL);
		get(fd, &plan, sizeof(plan));
		if (!sane())
			die("the client's plan", EPROTO);
	} else if (role == END_CLIENT) {
		fd = open_socket(argv[argc - 1]);
		put(fd, &plan, sizeof(plan));
	}
	alarm(LIMIT_SECONDS + (unsigned)seconds); /* a message that is lost must not hang the caller */
	run(fd);
	return 0;
}
