/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that ends, or loses a thread, where programs should not. It serves rping-like pairs of its own: a connection that carries SENDs
 * both ways, with a thread that waits for completions.
 *
 *   ends serve N               port 7655: accepts connections, one after another, until N have ended; completes what arrives
 *   ends swallow HOW           accepts a connection, completes one message, and ends by exit(), with its QP (`exit`) or without (`destroy`)
 *   ends HOW ADDR              connects, and ends as HOW says:
 *     heard      exit() once its only message is acknowledged; it reads no event meanwhile
 *     handler    exit() on the thread that handles completions
 *     posted     exit() with requests posted and not completed
 *     quick      _exit() with requests posted
 *     connect    exit() between rdma_connect and its event
 *     resolve    exit() between rdma_resolve_addr and its event
 *     cancel     cancels threads in ibv_get_cq_event, rdma_get_cm_event and ibv_get_async_event, then goes on with all three queues
 *     exec       a child of fork executes a program while the parent goes on
 *     execself   executes `true` in its own place
 *     orphan     leaves a child of fork behind, which stays for five seconds
 *     abandon    returns from main with threads in every blocking call
 *     exits      exit() in three threads at once
 *     signal     exit() in a handler of SIGALRM that interrupts the library
 *     childless  looks for children that it does not have, by wait() and SIGCHLD, and goes on
 *     subreaper  the same, and is a subreaper
 *     dlclose    opens the library a second time and closes it, and goes on
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define PORT 7655
#define DEPTH 64
#define SIZE 4096

static struct rdma_event_channel *ch;
static struct rdma_cm_id *id;
static struct ibv_comp_channel *comp;
static struct ibv_cq *cq;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static char buf[2 * SIZE];
static volatile int stop_in_handler;

static void need(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "ends: %s: %s\n", what, strerror(errno));
	_exit(9);
}

/* --- one connection --- */

static struct rdma_cm_id *next(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *ev;
	struct rdma_cm_id *of;

	need(!rdma_get_cm_event(ch, &ev), "rdma_get_cm_event");
	if (ev->event != type)
		fprintf(stderr, "ends: %s, status %d\n", rdma_event_str(ev->event), ev->status);
	errno = 0;
	need(ev->event == type, rdma_event_str(type));
	of = ev->id;
	rdma_ack_cm_event(ev);
	return of;
}

static void receive(void)
{
	struct ibv_sge sge = {.addr = (uintptr_t)buf + SIZE, .length = SIZE, .lkey = mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	need(!ibv_post_recv(id->qp, &wr, &bad), "ibv_post_recv");
}

static void send_one(void)
{
	struct ibv_sge sge = {.addr = (uintptr_t)buf, .length = SIZE, .lkey = mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1}, *bad;

	need(!ibv_post_send(id->qp, &wr, &bad), "ibv_post_send");
}

static void make_qp(void)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {DEPTH, DEPTH, 1, 1, 0}};

	need((pd = ibv_alloc_pd(id->verbs)) != NULL, "ibv_alloc_pd");
	need((comp = ibv_create_comp_channel(id->verbs)) != NULL, "ibv_create_comp_channel");
	need((cq = ibv_create_cq(id->verbs, 2 * DEPTH, NULL, comp, 0)) != NULL, "ibv_create_cq");
	need((mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE)) != NULL, "ibv_reg_mr");
	attr.send_cq = attr.recv_cq = cq;
	need(!rdma_create_qp(id, pd, &attr), "rdma_create_qp");
	need(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
	for (int i = 0; i < DEPTH; i++)
		receive();
}

static void unmake_qp(void)
{
	rdma_destroy_qp(id);
	need(!ibv_destroy_cq(cq), "ibv_destroy_cq");
	need(!ibv_destroy_comp_channel(comp), "ibv_destroy_comp_channel");
	need(!ibv_dereg_mr(mr), "ibv_dereg_mr");
	need(!ibv_dealloc_pd(pd), "ibv_dealloc_pd");
}

static const struct rdma_conn_param params = {.retry_count = 7, .rnr_retry_count = 7};

static void resolve(const char *address)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};

	need(inet_pton(AF_INET, address, &to.sin_addr) == 1, "inet_pton");
	need((ch = rdma_create_event_channel()) != NULL, "rdma_create_event_channel");
	need(!rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	need(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000), "rdma_resolve_addr");
}

static void connect_to(const char *address)
{
	struct rdma_conn_param p = params;

	resolve(address);
	next(RDMA_CM_EVENT_ADDR_RESOLVED);
	need(!rdma_resolve_route(id, 2000), "rdma_resolve_route");
	next(RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp();
	need(!rdma_connect(id, &p), "rdma_connect");
}

/* n completions by events. */
static void complete(unsigned n)
{
	while (n) {
		struct ibv_cq *got;
		struct ibv_wc wc;
		void *context;

		if (ibv_poll_cq(cq, 1, &wc) == 1) {
			errno = 0;
			need(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
			n--;
			continue;
		}
		need(!ibv_get_cq_event(comp, &got, &context), "ibv_get_cq_event");
		ibv_ack_cq_events(got, 1);
		need(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
		if (stop_in_handler)
			exit(0);
	}
}

static void work(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		send_one();
		complete(1);
	}
}

static void finish(void)
{
	need(!rdma_disconnect(id), "rdma_disconnect");
	next(RDMA_CM_EVENT_DISCONNECTED);
	unmake_qp();
	need(!rdma_destroy_id(id), "rdma_destroy_id");
	rdma_destroy_event_channel(ch);
}

/* --- the other side --- */

static void *consume(void *arg)
{
	(void)arg;
	for (;;) {
		struct ibv_cq *got;
		void *context;
		struct ibv_wc wc;

		if (ibv_get_cq_event(comp, &got, &context))
			return NULL;
		ibv_ack_cq_events(got, 1);
		if (ibv_req_notify_cq(got, 0))
			return NULL;
		while (ibv_poll_cq(got, 1, &wc) == 1)
			if (wc.status == IBV_WC_SUCCESS)
				receive();
	}
}

static struct rdma_cm_id *listen_here(void)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct rdma_cm_id *listener;

	need((ch = rdma_create_event_channel()) != NULL, "rdma_create_event_channel");
	need(!rdma_create_id(ch, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
	need(!rdma_bind_addr(listener, (struct sockaddr *)&any) && !rdma_listen(listener, 8), "rdma_listen");
	return listener;
}

static int swallow(const char *how)
{
	struct rdma_conn_param p = params;

	listen_here();
	id = next(RDMA_CM_EVENT_CONNECT_REQUEST);
	make_qp();
	need(!rdma_accept(id, &p), "rdma_accept");
	complete(1);
	if (!strcmp(how, "destroy"))
		unmake_qp();
	exit(0);
}

/* Its consumer is cancelled where it waits, after each connection. */
static int serve(unsigned n)
{
	struct rdma_cm_id *listener = listen_here();

	while (n--) {
		struct rdma_conn_param p = params;
		struct rdma_cm_event *ev;
		enum rdma_cm_event_type type;
		pthread_t consumer;

		id = next(RDMA_CM_EVENT_CONNECT_REQUEST);
		make_qp();
		need(!pthread_create(&consumer, NULL, consume, NULL), "pthread_create");
		if (!rdma_accept(id, &p))
			do {
				need(!rdma_get_cm_event(ch, &ev), "rdma_get_cm_event");
				type = ev->event;
				printf("%s\n", rdma_event_str(type));
				fflush(stdout);
				rdma_ack_cm_event(ev);
			} while (type == RDMA_CM_EVENT_ESTABLISHED);
		pthread_cancel(consumer);
		pthread_join(consumer, NULL);
		unmake_qp();
		need(!rdma_destroy_id(id), "rdma_destroy_id");
	}
	need(!rdma_destroy_id(listener), "rdma_destroy_id");
	rdma_destroy_event_channel(ch);
	return 0;
}

/* --- ways to end --- */

static void *wait_comp(void *arg)
{
	struct ibv_cq *got;
	void *context;
	int state;

	(void)arg;
	if (ibv_get_cq_event(comp, &got, &context))
		return NULL;
	/* Of a completion that was polled meanwhile; the next one must raise its own. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	ibv_ack_cq_events(got, 1);
	ibv_req_notify_cq(got, 0);
	return NULL;
}

static void *wait_cm(void *arg)
{
	struct rdma_cm_event *ev;

	(void)arg;
	rdma_get_cm_event(ch, &ev);
	return NULL;
}

static void *wait_async(void *arg)
{
	struct ibv_async_event ev;

	(void)arg;
	ibv_get_async_event(id->verbs, &ev);
	return NULL;
}

static void *(*const waits[])(void *) = {wait_comp, wait_cm, wait_async};

static void start_waits(pthread_t t[3], unsigned us)
{
	for (int i = 0; i < 3; i++)
		need(!pthread_create(&t[i], NULL, waits[i], NULL), "pthread_create");
	usleep(us);
}

static int cancel(void)
{
	pthread_t t[3];

	for (unsigned k = 0; k < 200; k++) {
		start_waits(t, k * 10);
		for (int i = 0; i < 3; i++)
			pthread_cancel(t[i]);
		for (int i = 0; i < 3; i++)
			pthread_join(t[i], NULL);
		work(1);
	}
	work(100);
	finish();
	return 0;
}

static void *handler_main(void *arg)
{
	(void)arg;
	complete(1000000);
	return NULL;
}

static void handler(void)
{
	pthread_t t;

	work(10);
	need(!pthread_create(&t, NULL, handler_main, NULL), "pthread_create");
	stop_in_handler = 1;
	for (;;) {
		struct ibv_sge sge = {.addr = (uintptr_t)buf, .length = SIZE, .lkey = mr->lkey};
		struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1}, *bad;

		ibv_post_send(id->qp, &wr, &bad); /* full at times, and from some moment on of a library that has ended */
	}
}

static void fill_queue(void)
{
	for (int i = 0; i < DEPTH; i++)
		send_one();
}

static int child_executes(void)
{
	for (int i = 0; i < 10; i++) {
		pid_t child = fork();
		int status;

		if (!child) {
			execlp("true", "true", NULL);
			_exit(7);
		}
		work(20);
		need(waitpid(child, &status, 0) == child && status == 0, "the child");
	}
	finish();
	return 0;
}

#define EXITS 3
static pthread_barrier_t exits;

static void join_exit(void)
{
	pthread_barrier_wait(&exits);
}

static void *exit_too(void *arg)
{
	(void)arg;
	join_exit();
	exit(0);
}

/* A handler of exit is behind them all, so the library has not ended when the others come. */
static void exit_in_all_threads(void)
{
	pthread_t t;

	need(!pthread_barrier_init(&exits, NULL, EXITS), "pthread_barrier_init");
	need(!atexit(join_exit), "atexit");
	for (int i = 1; i < EXITS; i++)
		need(!pthread_create(&t, NULL, exit_too, NULL), "pthread_create");
	exit(0);
}

static void on_alarm(int sig)
{
	(void)sig;
	exit(0);
}

static void interrupted(void)
{
	const struct itimerval at = {.it_value = {.tv_usec = 20000}};

	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &at, NULL);
	for (;;)
		work(1);
}

static int close_library(void)
{
	for (int i = 0; i < 20; i++) {
		void *lib = dlopen("libibverbs.so.1", RTLD_NOW);

		need(lib != NULL, "dlopen");
		work(5);
		dlclose(lib);
		work(5);
	}
	finish();
	return 0;
}

static volatile sig_atomic_t children;

static void on_child(int sig)
{
	(void)sig;
	children++;
}

static int no_children(void)
{
	for (int i = 0; i < 50; i++) {
		work(5);
		usleep(10000);
		errno = 0;
		need(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD && !children, "a child");
	}
	finish();
	return 0;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	pthread_t t[3];

	if (!strcmp(how, "childless") || !strcmp(how, "subreaper"))
		signal(SIGCHLD, on_child);
	if (!strcmp(how, "subreaper"))
		need(!prctl(PR_SET_CHILD_SUBREAPER, 1), "PR_SET_CHILD_SUBREAPER");
	if (!strcmp(how, "serve") && argc > 2)
		return serve((unsigned)atoi(argv[2]));
	if (!strcmp(how, "swallow") && argc > 2)
		return swallow(argv[2]);
	if (argc < 3)
		return 2;
	if (!strcmp(how, "resolve")) {
		resolve(argv[2]);
		exit(0);
	}
	connect_to(argv[2]);
	if (!strcmp(how, "connect"))
		exit(0);
	next(RDMA_CM_EVENT_ESTABLISHED);
	if (!strcmp(how, "heard")) {
		work(1);
		exit(0);
	}
	work(10);
	if (!strcmp(how, "handler"))
		handler();
	if (!strcmp(how, "posted")) {
		fill_queue();
		exit(0);
	}
	if (!strcmp(how, "exits"))
		exit_in_all_threads();
	if (!strcmp(how, "quick")) {
		fill_queue();
		_exit(0);
	}
	if (!strcmp(how, "cancel"))
		return cancel();
	if (!strcmp(how, "exec"))
		return child_executes();
	if (!strcmp(how, "execself")) {
		fill_queue();
		execlp("true", "true", NULL);
		return 7;
	}
	if (!strcmp(how, "orphan")) {
		if (!fork()) {
			fclose(stdout);
			fclose(stderr);
			sleep(5);
			_exit(0);
		}
		fill_queue();
		_exit(0);
	}
	if (!strcmp(how, "abandon")) {
		start_waits(t, 20000);
		fill_queue();
		return 0;
	}
	if (!strcmp(how, "signal"))
		interrupted();
	if (!strcmp(how, "childless") || !strcmp(how, "subreaper"))
		return no_children();
	if (!strcmp(how, "dlclose"))
		return close_library();
	return 2;
}
