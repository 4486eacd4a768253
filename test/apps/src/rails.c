/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program with a connection over each of several networks. "rails" serves on all addresses; "rails ADDRESS..." sends messages to each
 * of them, one connection and one thread for each. A connection that fails is made again, and it says so. When one that failed has sent
 * AGAIN messages more, all end, and it says for each how often it failed, and on which device it was.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define PORT "7480"
#define RAILS_MAX 8
#define LEN 64
#define RECEIVES 64
#define AGAIN 1000
#define PAUSE_US 100000

struct rail {
	const char *address;
	unsigned done, failed;
	char device[64];
	pthread_t thread;
};

static atomic_bool enough;

static struct ibv_qp_init_attr attributes(void)
{
	return (struct ibv_qp_init_attr){.cap = {.max_send_wr = 2, .max_recv_wr = RECEIVES, .max_send_sge = 1, .max_recv_sge = 1},
					 .sq_sig_all = 1,
					 .qp_type = IBV_QPT_RC};
}

/* --- the server --- */

/* Takes what comes, until the connection ends; where only the other side sees that it failed, until the program ends. */
static void *take(void *arg)
{
	struct rdma_cm_id *id = arg;
	char in[LEN];
	struct ibv_mr *mr = rdma_reg_msgs(id, in, LEN);
	struct ibv_wc wc;
	int error = 0;

	for (int i = 0; i < RECEIVES && !error; i++)
		error = rdma_post_recv(id, NULL, in, LEN, mr);
	if (!error && !rdma_accept(id, NULL))
		while (rdma_get_recv_comp(id, &wc) > 0 && !wc.status && !rdma_post_recv(id, NULL, in, LEN, mr))
			;
	rdma_disconnect(id);
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
	return NULL;
}

static int serve(void)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP}, *res;
	struct ibv_qp_init_attr attr = attributes();
	struct rdma_cm_id *listener, *id;
	pthread_t thread;

	if (rdma_getaddrinfo(NULL, PORT, &hints, &res) || rdma_create_ep(&listener, res, NULL, &attr) || rdma_listen(listener, 16)) {
		perror("rails: cannot listen");
		return 1;
	}
	while (!rdma_get_request(listener, &id))
		if (pthread_create(&thread, NULL, take, id) || pthread_detach(thread))
			return 1;
	perror("rails: no more requests");
	return 1;
}

/* --- the client --- */

static void say(const struct rail *r, const char *what)
{
	printf("%s: %s after %u messages\n", r->address, what, r->done);
	fflush(stdout);
}

/* One connection, for as long as it lasts. */
static void run(struct rail *r)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *res;
	struct ibv_qp_init_attr attr = attributes();
	char out[LEN] = "";
	uint8_t ack_timeout = 14; /* 67 ms, so that a rail is given up in seconds */
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	int made;

	if (rdma_getaddrinfo(r->address, PORT, &hints, &res))
		return;
	made = rdma_create_ep(&id, res, NULL, &attr);
	rdma_freeaddrinfo(res);
	if (made) {
		say(r, "no way");
		return;
	}
	snprintf(r->device, sizeof(r->device), "%s", ibv_get_device_name(id->verbs->device));
	mr = rdma_reg_msgs(id, out, LEN);
	if (!rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &ack_timeout, sizeof(ack_timeout)) &&
	    !rdma_connect(id, NULL)) {
		const unsigned before = r->done;

		while (!enough && !rdma_post_send(id, NULL, out, LEN, mr, 0) && rdma_get_send_comp(id, &wc) > 0 && !wc.status) {
			if (r->done++ == before)
				say(r, "works");
			if (r->failed && r->done == before + AGAIN)
				enough = true;
		}
		if (enough)
			rdma_disconnect(id);
		else
			say(r, "failed");
	}
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
}

static void *keep_running(void *arg)
{
	struct rail *r = arg;

	for (;;) {
		run(r);
		if (enough)
			break;
		r->failed++;
		usleep(PAUSE_US);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static struct rail rails[RAILS_MAX];
	const int n = argc - 1;

	if (!n)
		return serve();
	if (n > RAILS_MAX)
		return 2;
	for (int i = 0; i < n; i++) {
		rails[i].address = argv[i + 1];
		if (pthread_create(&rails[i].thread, NULL, keep_running, &rails[i]))
			return 1;
	}
	for (int i = 0; i < n; i++) {
		pthread_join(rails[i].thread, NULL);
		printf("%s: %u messages on %s, failed %u times\n", rails[i].address, rails[i].done, rails[i].device, rails[i].failed);
	}
	return 0;
}
