/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a process that uses several lanes. Two threads have created QPs and register memory in a loop, which takes the locks of all
 * lanes; two others end each of some captures at the same moment. Then main prints "fine" and calls exit.
 */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define CAPTURES 50
#define REGISTERED 1000

extern int uroce_capture_start(const char *path) __attribute__((weak)); /* of liburoce.so, which is preloaded */
extern int uroce_capture_stop(void) __attribute__((weak));

static struct ibv_context *context;
static struct ibv_pd *pd;
static pthread_barrier_t turn;
static atomic_uint registered;

static void *keep_registering(void *arg)
{
	static char buffer[4096];
	struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
	};

	(void)arg;
	if (!cq || !ibv_create_qp(pd, &attr))
		return NULL;
	for (;;) {
		struct ibv_mr *mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);

		if (mr && !ibv_dereg_mr(mr))
			atomic_fetch_add(&registered, 1);
	}
}

static void *stop_captures(void *arg)
{
	for (unsigned i = 0; i < CAPTURES; i++) {
		pthread_barrier_wait(&turn);
		uroce_capture_stop(); /* one of the two finds none */
		pthread_barrier_wait(&turn);
	}
	return arg;
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	pthread_t thread;

	context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	pd = context ? ibv_alloc_pd(context) : NULL;
	if (argc != 2 || !pd || !uroce_capture_start || pthread_barrier_init(&turn, NULL, 3))
		return 1;
	for (int i = 0; i < 2; i++)
		if (pthread_create(&thread, NULL, keep_registering, NULL) || pthread_create(&thread, NULL, stop_captures, NULL))
			return 1;
	for (unsigned i = 0; i < CAPTURES; i++) {
		if (uroce_capture_start(argv[1]))
			return 1;
		pthread_barrier_wait(&turn);
		pthread_barrier_wait(&turn);
	}
	while (atomic_load(&registered) < REGISTERED)
		;
	puts("fine");
	exit(0);
}
