/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernel TCP between two processes, the yardstick for uroce on the same interface: the round trip of 8 bytes with both sides polling, and
 * the bandwidth of 64 KiB messages.
 *
 *   tcpbench server [PORT]
 *   tcpbench client ADDR [PORT]       prints: rtt_us=8.20 gbps=13.10
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
#define MESSAGE 65536
#define SECONDS 2

static uint8_t buffer[MESSAGE];

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

static double ping(int fd)
{
	static uint64_t took[PINGS];
	uint64_t word = 0;

	for (unsigned i = 0; i < PINGS; i++) {
		uint64_t start = now_ns();

		send_all(fd, &word, sizeof(word));
		if (!receive_polled(fd, &word, sizeof(word)))
			die("the server closed");
		took[i] = now_ns() - start;
	}
	qsort(took, PINGS, sizeof(took[0]), by_value);
	return (double)took[PINGS / 2] / 1e3;
}

/* The time runs until the server has confirmed the last byte. */
static double stream(int fd)
{
	uint64_t start = now_ns(), sent = 0, seen;

	while (now_ns() - start < SECONDS * 1000000000ull) {
		send_all(fd, buffer, sizeof(buffer));
		sent += sizeof(buffer);
	}
	shutdown(fd, SHUT_WR);
	if (!receive_polled(fd, &seen, sizeof(seen)) || seen != sent)
		die("the server did not see every byte");
	return (double)sent * 8 / (double)(now_ns() - start);
}

static void serve(int listener)
{
	int fd = accept(listener, NULL, NULL), one = 1;
	uint64_t word, total = 0;
	ssize_t r;

	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		die("accept");
	for (unsigned i = 0; i < PINGS && receive_polled(fd, &word, sizeof(word)); i++)
		send_all(fd, &word, sizeof(word));
	while ((r = recv(fd, buffer, sizeof(buffer), 0)) > 0)
		total += (uint64_t)r;
	send_all(fd, &total, sizeof(total));
	close(fd);
}

int main(int argc, char **argv)
{
	bool server = argc >= 2 && strcmp(argv[1], "server") == 0;
	const char *port = server ? argv[2] : argc > 3 ? argv[3] : NULL;
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(port ? atoi(port) : 7300))};
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	double rtt;

	if (!server && (argc < 3 || strcmp(argv[1], "client") != 0 || inet_pton(AF_INET, argv[2], &a.sin_addr) != 1)) {
		fprintf(stderr, "usage: tcpbench server [PORT] | client ADDR [PORT]\n");
		return 2;
	}
	if (server) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 1))
			die("listen");
		serve(fd);
	} else {
		if (connect(fd, (struct sockaddr *)&a, sizeof(a)) || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
			die("connect");
		rtt = ping(fd);
		printf("rtt_us=%.2f gbps=%.2f\n", rtt, stream(fd));
	}
	close(fd);
	return 0;
}
