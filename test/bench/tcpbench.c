/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernel TCP between two processes, the yardstick for uroce on the same interface: round trips with both sides polling, and bandwidth.
 *
 *   tcpbench server [-c CONTROL]
 *   tcpbench client ADDR [-s BYTES] [-d DEPTH] [-t SECONDS] [-c CONTROL]   prints: rtt_us=8.20 p99_us=9.50 pings=20000 gbps=13.10
 *
 * 99 % of the round trips took no longer than p99_us. Without options they are those of 8 bytes, and the bandwidth is that of a stream
 * of 64 KiB writes which nothing confirms but its end. With -s and -d both are of messages of BYTES, of which at most DEPTH are
 * unconfirmed: the server sends one byte for each. Either takes SECONDS (2), the round trips no more than that. CONTROL is a congestion
 * control of the kernel's.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PINGS 20000
#define STREAM_MESSAGE 65536
#define SIZE_MAX_BYTES (16u << 20)

/* What the client tells the server first. */
struct plan {
	uint32_t ping, message, depth; /* depth 0: nothing is confirmed */
};

static uint8_t *buffer;
static uint64_t took[PINGS];
static unsigned long seconds = 2;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "tcpbench: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Polls: never sleeps in the kernel. False at the end of the stream. */
static bool receive_polled(int fd, void *p, size_t n)
{
	for (size_t got = 0; got < n;) {
		ssize_t r = recv(fd, (char *)p + got, n - got, MSG_DONTWAIT);

		if (r == 0)
			return false;
		if (r < 0 && errno != EAGAIN)
			die("recv");
		if (r > 0)
			got += (size_t)r;
	}
	return true;
}

static void send_all(int fd, const void *p, size_t n)
{
	for (size_t sent = 0; sent < n;) {
		ssize_t r = send(fd, (const char *)p + sent, n - sent, MSG_NOSIGNAL);

		if (r < 0)
			die("send");
		sent += (size_t)r;
	}
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* As many as fit into the time, in ascending order in took[]; the server answers until a ping says that it was the last one. */
static unsigned ping(int fd, const struct plan *plan)
{
	uint64_t end = now_ns() + seconds * 1000000000ull;
	unsigned n = 0;
	bool last;

	do {
		uint64_t start = now_ns();

		last = n + 1 == PINGS || start > end;
		buffer[0] = last;
		send_all(fd, buffer, plan->ping);
		if (!receive_polled(fd, buffer, plan->ping))
			die("the server closed");
		took[n++] = now_ns() - start;
	} while (!last);
	qsort(took, n, sizeof(took[0]), by_value);
	return n;
}

static void pong(int fd, const struct plan *plan)
{
	do {
		if (!receive_polled(fd, buffer, plan->ping))
			die("the client closed");
		send_all(fd, buffer, plan->ping);
	} while (!buffer[0]);
}

/* Takes what confirmations have come; waits for one when `all` of them are out. */
static void confirm(int fd, uint32_t *out, bool all)
{
	uint8_t bytes[256];
	ssize_t r;

	do {
		r = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (r == 0 || (r < 0 && errno != EAGAIN))
			die("the server closed");
		*out -= r > 0 ? (uint32_t)r : 0;
	} while (r < 0 && all);
}

/* The time runs until the server has confirmed the last byte. */
static double stream(int fd, const struct plan *plan)
{
	uint64_t start = now_ns(), sent = 0, seen;
	uint32_t out = 0;

	while (now_ns() - start < seconds * 1000000000ull) {
		send_all(fd, buffer, plan->message);
		sent += plan->message;
		if (plan->depth)
			confirm(fd, &out, ++out == plan->depth);
	}
	while (out)
		confirm(fd, &out, true);
	shutdown(fd, SHUT_WR);
	if (!receive_polled(fd, &seen, sizeof(seen)) || seen != sent)
		die("the server did not see every byte");
	return (double)sent * 8 / (double)(now_ns() - start);
}

/* With a depth it polls, without it sleeps. */
static void absorb(int fd, const struct plan *plan)
{
	static const uint8_t bytes[256];
	uint64_t total = 0, confirmed = 0;
	ssize_t r;

	while ((r = recv(fd, buffer, plan->depth ? SIZE_MAX_BYTES : plan->message, plan->depth ? MSG_DONTWAIT : 0)) != 0) {
		if (r < 0 && errno != EAGAIN)
			die("recv");
		total += r > 0 ? (uint64_t)r : 0;
		while (plan->depth && confirmed < total / plan->message) {
			uint64_t n = total / plan->message - confirmed;

			n = n < sizeof(bytes) ? n : sizeof(bytes);
			send_all(fd, bytes, n);
			confirmed += n;
		}
	}
	send_all(fd, &total, sizeof(total));
}

static void serve(int listener)
{
	int fd = accept(listener, NULL, NULL), one = 1;
	struct plan plan;

	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		die("accept");
	if (!receive_polled(fd, &plan, sizeof(plan)) || plan.ping > SIZE_MAX_BYTES || plan.message > SIZE_MAX_BYTES)
		die("the client's plan");
	pong(fd, &plan);
	absorb(fd, &plan);
	close(fd);
}

static void run_client(int fd, const struct plan *plan)
{
	unsigned n;

	send_all(fd, plan, sizeof(*plan));
	n = ping(fd, plan);
	printf("rtt_us=%.2f p99_us=%.2f pings=%u ", (double)took[n / 2] / 1e3, (double)took[(uint64_t)n * 99 / 100] / 1e3, n);
	printf("gbps=%.4g\n", stream(fd, plan));
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(7300)};
	struct plan plan = {.ping = 8, .message = STREAM_MESSAGE};
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	bool server, good = true;

	for (int c; (c = getopt(argc, argv, "s:d:t:c:")) != -1;)
		switch (c) {
		case 's': plan.ping = plan.message = (uint32_t)strtoul(optarg, NULL, 0); break;
		case 'd': plan.depth = (uint32_t)strtoul(optarg, NULL, 0); break;
		case 'c':
			if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, optarg, (socklen_t)strlen(optarg)))
				die(optarg);
			break;
		case 't': seconds = strtoul(optarg, NULL, 0); break;
		default: good = false;
		}
	server = optind + 1 == argc && strcmp(argv[optind], "server") == 0;
	good &= server ||
		(optind + 2 == argc && strcmp(argv[optind], "client") == 0 && inet_pton(AF_INET, argv[optind + 1], &a.sin_addr) == 1);
	if (!good || plan.ping < 1 || plan.ping > SIZE_MAX_BYTES || !seconds || seconds > 60) {
		fprintf(stderr, "usage: tcpbench server [-c CONTROL] | client ADDR [-s BYTES] [-d DEPTH] [-t SECONDS] [-c CONTROL]\n");
		return 2;
	}
	buffer = calloc(1, SIZE_MAX_BYTES);
	if (!buffer)
		die("memory");
	if (server) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 1))
			die("listen");
		serve(fd);
	} else {
		if (connect(fd, (struct sockaddr *)&a, sizeof(a)) || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
			die("connect");
		run_client(fd, &plan);
	}
	free(buffer);
	close(fd);
	return 0;
}
