/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What connections cost that nobody uses, as a plain program of librdmacm and libibverbs:
 *
 *   idlebench ADDR [-n CONNECTIONS] [-t SECONDS]       prints:
 *       connections=1000 server_ms=1.2 client_ms=1.3 server_kib=5.1 client_kib=5.2
 *
 * Two processes with CONNECTIONS (1000) between them, to ADDR, which is an address of this host. Once all are there, both sleep for SECONDS
 * (10); printed is the CPU time that each process, with all its threads, used meanwhile, and the memory that a connection more takes there.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PORT 7302
#define CONNECTIONS_MAX 20000
#define SETTLE_SECONDS 1 /* what the last connections leave to do is done in it */
#define LIMIT_SECONDS 110

struct end {
	struct rdma_event_channel *ch;
	struct ibv_cq *cq; /* of all QPs; made with the first */
	struct rdma_cm_id **ids;
	unsigned n;
	double kib; /* resident, with one connection */
};

struct result {
	double ms, kib;
};

static const char *who = "server";
static struct sockaddr_in address = {.sin_family = AF_INET};
static unsigned connections = 1000;
static unsigned seconds = 10;

static void die(const char *what, int err)
{
	fprintf(stderr, "idlebench: %s: %s: %s\n", who, what, strerror(err));
	exit(1);
}

static double cpu_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static double resident_kib(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long pages = 0;

	if (!f || fscanf(f, "%*u %lu", &pages) != 1)
		die("/proc/self/statm", errno);
	fclose(f);
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1024;
}

static void open_end(struct end *e)
{
	e->ids = calloc(connections, sizeof(*e->ids));
	e->ch = rdma_create_event_channel();
	if (!e->ids || !e->ch)
		die("rdma_create_event_channel", errno);
}

/* The id of the next event, which has to be this one. */
static struct rdma_cm_id *expect(struct end *e, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;

	if (rdma_get_cm_event(e->ch, &ev))
		die("rdma_get_cm_event", errno);
	if (ev->event != type) {
		fprintf(stderr, "idlebench: %s: %s instead of %s, status %d\n", who, rdma_event_str(ev->event), rdma_event_str(type),
			ev->status);
		exit(1);
	}
	id = ev->id;
	rdma_ack_cm_event(ev);
	return id;
}

static void add_qp(struct end *e, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr a = {.qp_type = IBV_QPT_RC, .cap = {16, 16, 1, 1, 0}};

	if (!e->cq)
		e->cq = ibv_create_cq(id->verbs, 1024, NULL, NULL, 0);
	if (!e->cq)
		die("ibv_create_cq", errno);
	a.send_cq = a.recv_cq = e->cq;
	if (rdma_create_qp(id, NULL, &a))
		die("rdma_create_qp", errno);
	if (e->n == 1) /* now the device is open, too */
		e->kib = resident_kib();
	e->ids[e->n++] = id;
}

static void accept_one(struct end *e)
{
	struct rdma_conn_param p = {.rnr_retry_count = 7};
	struct rdma_cm_id *id = expect(e, RDMA_CM_EVENT_CONNECT_REQUEST);

	add_qp(e, id);
	if (rdma_accept(id, &p))
		die("rdma_accept", errno);
	expect(e, RDMA_CM_EVENT_ESTABLISHED);
}

static void connect_one(struct end *e)
{
	struct rdma_conn_param p = {.retry_count = 7, .rnr_retry_count = 7};
	struct rdma_cm_id *id;

	if (rdma_create_id(e->ch, &id, NULL, RDMA_PS_TCP) || rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 2000))
		die("rdma_resolve_addr", errno);
	expect(e, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(id, 2000))
		die("rdma_resolve_route", errno);
	expect(e, RDMA_CM_EVENT_ROUTE_RESOLVED);
	add_qp(e, id);
	if (rdma_connect(id, &p))
		die("rdma_connect", errno);
	expect(e, RDMA_CM_EVENT_ESTABLISHED);
}

static struct result idle(const struct end *e)
{
	struct result r;

	sleep(SETTLE_SECONDS);
	r.ms = cpu_ms();
	sleep(seconds);
	r.ms = cpu_ms() - r.ms;
	r.kib = e->n > 1 ? (resident_kib() - e->kib) / (e->n - 1) : 0;
	return r;
}

static void close_end(struct end *e)
{
	for (unsigned i = 0; i < e->n; i++) {
		rdma_destroy_qp(e->ids[i]);
		rdma_destroy_id(e->ids[i]);
	}
	ibv_destroy_cq(e->cq);
	rdma_destroy_event_channel(e->ch);
	free(e->ids);
}

/* `ready`: a byte comes once somebody listens. `result`: where our figures go. */
static void client(int ready, int result)
{
	struct end e = {0};
	struct result r;
	char byte;

	who = "client";
	alarm(LIMIT_SECONDS);
	if (read(ready, &byte, 1) != 1)
		exit(1);
	open_end(&e);
	for (unsigned i = 0; i < connections; i++)
		connect_one(&e);
	r = idle(&e);
	if (write(result, &r, sizeof(r)) != sizeof(r))
		die("pipe", errno);
	close_end(&e);
	exit(0);
}

static struct result serve(int ready)
{
	struct rdma_cm_id *listener;
	struct end e = {0};
	struct result r;

	open_end(&e);
	if (rdma_create_id(e.ch, &listener, NULL, RDMA_PS_TCP) || rdma_bind_addr(listener, (struct sockaddr *)&address) ||
	    rdma_listen(listener, 64))
		die("rdma_listen", errno);
	if (write(ready, "", 1) != 1)
		die("pipe", errno);
	close(ready);
	for (unsigned i = 0; i < connections; i++)
		accept_one(&e);
	r = idle(&e);
	rdma_destroy_id(listener);
	close_end(&e);
	return r;
}

static int usage(void)
{
	fprintf(stderr, "usage: idlebench ADDR [-n CONNECTIONS] [-t SECONDS]\n");
	return 2;
}

int main(int argc, char **argv)
{
	int ready[2], result[2], status;
	struct result of_server, of_client;
	pid_t pid;

	for (int c; (c = getopt(argc, argv, "n:t:")) != -1;)
		switch (c) {
		case 'n': connections = (unsigned)strtoul(optarg, NULL, 0); break;
		case 't': seconds = (unsigned)strtoul(optarg, NULL, 0); break;
		default: return usage();
		}
	if (optind + 1 != argc || inet_pton(AF_INET, argv[optind], &address.sin_addr) != 1 || !connections ||
	    connections > CONNECTIONS_MAX || !seconds || seconds > 60)
		return usage();
	address.sin_port = htons(PORT);
	if (pipe(ready) || pipe(result))
		die("pipe", errno);
	pid = fork(); /* before either has used the device */
	if (pid < 0)
		die("fork", errno);
	if (pid == 0) {
		close(ready[1]);
		client(ready[0], result[1]);
	}
	close(ready[0]);
	close(result[1]);
	alarm(LIMIT_SECONDS); /* a connection that is not made must not hang the caller */
	of_server = serve(ready[1]);
	if (read(result[0], &of_client, sizeof(of_client)) != sizeof(of_client) || waitpid(pid, &status, 0) != pid || status)
		die("the client", ECHILD);
	printf("connections=%u server_ms=%.2f client_ms=%.2f server_kib=%.2f client_kib=%.2f\n", connections, of_server.ms, of_client.ms,
	       of_server.kib, of_client.kib);
	return 0;
}
