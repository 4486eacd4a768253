/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * many [ADDRESS SECONDS]: as a data store and its clients. A server that answers each message of 64 bytes by one; with an address, 50
 * connections to it that each send one and wait for the answer, for that long. The server ends with the last connection. Each side prints
 * how many messages it had answers to, and what uroce sent again, in all and within the last second.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PORT "7341"
#define CONNECTIONS 50
#define SIZE 64

static struct rdma_cm_id *ids[CONNECTIONS];
static struct ibv_mr *mrs[CONNECTIONS];
static char memory[CONNECTIONS][2 * SIZE];
static struct ibv_cq *cq;
static struct ibv_comp_channel *channel;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* As uroce counts it; 0 where something else serves the program. */
static uint64_t sent_again(void)
{
	const char *(*name)(unsigned) = (const char *(*)(unsigned))(uintptr_t)dlsym(RTLD_DEFAULT, "uroce_counter_name");
	int (*counters)(uint64_t *, unsigned) = (int (*)(uint64_t *, unsigned))(uintptr_t)dlsym(RTLD_DEFAULT, "uroce_counters");
	uint64_t v[256];
	int n = name && counters ? counters(v, 256) : 0;

	for (int i = 0; i < n && i < 256; i++)
		if (!strcmp(name((unsigned)i), "tx_retransmits"))
			return v[i];
	return 0;
}

static void receive(unsigned i)
{
	if (rdma_post_recv(ids[i], (void *)(uintptr_t)i, memory[i], SIZE, mrs[i]))
		fail("rdma_post_recv");
}

static void post(unsigned i)
{
	if (rdma_post_send(ids[i], (void *)(uintptr_t)i, memory[i] + SIZE, SIZE, mrs[i], IBV_SEND_SIGNALED))
		fail("rdma_post_send");
}

static void prepare(unsigned i)
{
	struct ibv_qp_init_attr attr = {.cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC, .sq_sig_all = 1};

	if (!cq) {
		channel = ibv_create_comp_channel(ids[i]->verbs);
		cq = channel ? ibv_create_cq(ids[i]->verbs, 8 * CONNECTIONS, NULL, channel, 0) : NULL;
		if (!cq || ibv_req_notify_cq(cq, 0))
			fail("a CQ");
	}
	attr.send_cq = attr.recv_cq = cq;
	if (rdma_create_qp(ids[i], NULL, &attr))
		fail("rdma_create_qp");
	mrs[i] = rdma_reg_msgs(ids[i], memory[i], sizeof(memory[i]));
	if (!mrs[i])
		fail("rdma_reg_msgs");
	receive(i);
}

static void answer(unsigned i)
{
	receive(i);
	post(i);
}

/* The next completions; sleeps until there are some. 0: a connection has ended. */
static int next(struct ibv_wc *wc, int n)
{
	struct ibv_cq *which;
	void *context;
	int got;

	while (!(got = ibv_poll_cq(cq, n, wc))) {
		if (ibv_get_cq_event(channel, &which, &context) || ibv_req_notify_cq(cq, 0))
			fail("ibv_get_cq_event");
		ibv_ack_cq_events(which, 1);
	}
	if (got < 0)
		fail("ibv_poll_cq");
	for (int i = 0; i < got; i++)
		if (wc[i].status != IBV_WC_SUCCESS)
			return 0;
	return got;
}

/* The next messages, which are answered or not; adds their number. False: a connection has ended. */
static bool take(bool answers, uint64_t *messages)
{
	struct ibv_wc wc[CONNECTIONS];
	const int n = next(wc, CONNECTIONS);

	for (int i = 0; i < n; i++)
		if (wc[i].opcode == IBV_WC_RECV) {
			++*messages;
			if (answers)
				answer((unsigned)wc[i].wr_id);
		}
	return n > 0;
}

/* Answers each message that comes, until that time or (0) until a connection ends. Returns their number. */
static uint64_t run(double until)
{
	uint64_t messages = 0;

	while ((!until || now() < until) && take(true, &messages))
		continue;
	return messages;
}

/* Takes the last answer of each connection: what a QP that is gone has not acknowledged, its peer would send again. */
static void finish(void)
{
	uint64_t messages = 0;

	while (messages < CONNECTIONS && take(false, &messages))
		continue;
}

static void serve(void)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP}, *info;
	struct rdma_cm_id *listener;

	if (rdma_getaddrinfo(NULL, PORT, &hints, &info) || rdma_create_ep(&listener, info, NULL, NULL))
		fail("rdma_create_ep");
	if (rdma_listen(listener, CONNECTIONS))
		fail("rdma_listen");
	for (unsigned i = 0; i < CONNECTIONS; i++) {
		if (rdma_get_request(listener, &ids[i]))
			fail("rdma_get_request");
		prepare(i);
		if (rdma_accept(ids[i], NULL))
			fail("rdma_accept");
	}
	run(0);
	printf("sent again %llu\n", (unsigned long long)sent_again());
}

static void ask(const char *address, double seconds)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *info;
	uint64_t answers, again;
	double begin;

	if (rdma_getaddrinfo((char *)(uintptr_t)address, PORT, &hints, &info))
		fail(address);
	for (unsigned i = 0; i < CONNECTIONS; i++) {
		if (rdma_create_ep(&ids[i], info, NULL, NULL))
			fail("rdma_create_ep");
		prepare(i);
		if (rdma_connect(ids[i], NULL))
			fail("rdma_connect");
	}
	begin = now();
	for (unsigned i = 0; i < CONNECTIONS; i++)
		post(i);
	answers = run(begin + seconds - 1);
	again = sent_again();
	printf("answers %llu, sent again %llu\n", (unsigned long long)answers, (unsigned long long)again);
	answers = run(begin + seconds);
	printf("within the last second: answers %llu, sent again %llu\n", (unsigned long long)answers,
	       (unsigned long long)(sent_again() - again));
	finish();
	for (unsigned i = 0; i < CONNECTIONS; i++)
		rdma_disconnect(ids[i]);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 3)
		ask(argv[1], atof(argv[2]));
	else
		serve();
	return 0;
}
