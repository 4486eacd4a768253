/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A mock of the whole path of port udp: what sockets, CRC and one copy allow, without any protocol. The yardstick for uroce's own work.
 *
 *   mockbench server
 *   mockbench client ADDR [-m PATH_MTU] [-s BYTES] [-d DEPTH] [-w KIB]       prints: gbps=17.3 train=62
 *
 * Messages of BYTES (65536) as packets of at most PATH_MTU (1024) bytes of payload, with a header and a CRC each. As many packets as UDP
 * segmentation offload takes leave in one send, a train; the receiver gets a train by one receive (GRO), checks each CRC, copies each
 * payload to its place and answers with one datagram. At most DEPTH (128) messages are unacknowledged, but no more than KIB (4096).
 * Both sides poll. The time runs until the last acknowledgement. A TCP connection says what is to come, and its end is the end.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <isa-l.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONTROL_PORT 7301
#define DATA_PORT 7302
#define SECONDS 1
#define HEADER 12 /* as long as a BTH */
#define CRC 4
#define ANSWER 20 /* as long as an acknowledgement: BTH, AETH, ICRC */
#define ANSWERS 32
#define TRAIN_PKTS 62
#define TRAIN_BYTES 65507
#define WINDOW_KIB 4096u
#define WINDOW_KIB_MOST 8192u /* of what the receiver's buffer holds */
#define SOCKET_BUFFER (16 << 20)
#define SIZE_MAX_BYTES (16u << 20)
#define ROOM_BYTES 65536
#define EMPTY_LOOKS 1024 /* between two looks at the connection */

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#define UDP_GRO 104
#endif

/* What the client tells the server first. */
struct plan {
	uint32_t payload, message; /* bytes of a packet, of a message */
};

/* Numbers and offsets as they are in memory: both sides are one machine. */
struct header {
	uint32_t number; /* packets before it */
	uint32_t offset; /* of its payload in the message */
	uint32_t mark;
};

static uint8_t *memory;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "mockbench: %s%s%s\n", what, errno ? ": " : "", errno ? strerror(errno) : "");
	exit(1);
}

static int data_socket(bool gro)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), size = SOCKET_BUFFER, one = 1;

	if (fd < 0)
		die("socket");
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) && setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)))
		die("receive buffer");
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) && setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)))
		die("send buffer");
	if (gro && setsockopt(fd, IPPROTO_UDP, UDP_GRO, &one, sizeof(one)))
		die("UDP_GRO");
	return fd;
}

static uint32_t crc_of(const void *header, const void *payload, size_t n)
{
	return crc32_gzip_refl(crc32_gzip_refl(0, header, HEADER), payload, n);
}

/* --- the client --- */

struct sender {
	int fd;
	struct plan plan;
	uint32_t train, window;                       /* packets */
	uint32_t sent, acked, offset;                 /* packets; where the next payload is */
	uint8_t between[TRAIN_PKTS * (HEADER + CRC)]; /* the first header; then a CRC and the header that follows it, and so on */
	struct iovec iov[2 * TRAIN_PKTS + 1];
};

/* One send: between[] and the payloads, which stay where they are, take turns. */
static void send_train(struct sender *s)
{
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(uint16_t))] = {0};
	struct msghdr h = {.msg_iov = s->iov, .msg_control = control, .msg_controllen = sizeof(control)};
	uint16_t size = (uint16_t)(HEADER + s->plan.payload + CRC);
	struct cmsghdr *c = CMSG_FIRSTHDR(&h);
	uint8_t *at = s->between;

	for (uint32_t i = 0; i < s->train; i++) {
		struct header header = {.number = s->sent + i, .offset = s->offset, .mark = 0x5a5a5a5a};
		const uint8_t *payload = memory + s->offset;
		uint32_t crc = crc_of(&header, payload, s->plan.payload);
		uint8_t *from = i ? at - CRC : at;

		memcpy(at, &header, HEADER);
		s->iov[2 * i] = (struct iovec){.iov_base = from, .iov_len = (size_t)(at + HEADER - from)};
		s->iov[2 * i + 1] = (struct iovec){.iov_base = memory + s->offset, .iov_len = s->plan.payload};
		memcpy(at + HEADER, &crc, CRC);
		at += HEADER + CRC;
		s->offset = s->offset + 2 * s->plan.payload > s->plan.message ? 0 : s->offset + s->plan.payload;
	}
	s->iov[2 * s->train] = (struct iovec){.iov_base = at - CRC, .iov_len = CRC};
	h.msg_iovlen = 2 * (size_t)s->train + 1;
	*c = (struct cmsghdr){.cmsg_level = IPPROTO_UDP, .cmsg_type = UDP_SEGMENT, .cmsg_len = CMSG_LEN(sizeof(size))};
	memcpy(CMSG_DATA(c), &size, sizeof(size));
	while (sendmsg(s->fd, &h, MSG_DONTWAIT) < 0)
		if (errno != EAGAIN)
			die("send");
	s->sent += s->train;
}

/* What has come, by one call. */
static void take_answers(struct sender *s)
{
	static uint32_t answer[ANSWERS][ANSWER / sizeof(uint32_t)];
	struct mmsghdr msg[ANSWERS] = {0};
	struct iovec iov[ANSWERS];
	int n;

	for (int i = 0; i < ANSWERS; i++) {
		iov[i] = (struct iovec){.iov_base = answer[i], .iov_len = ANSWER};
		msg[i].msg_hdr = (struct msghdr){.msg_iov = &iov[i], .msg_iovlen = 1};
	}
	n = recvmmsg(s->fd, msg, ANSWERS, MSG_DONTWAIT, NULL);
	if (n < 0 && errno != EAGAIN)
		die("receive");
	if (n > 0)
		s->acked = answer[n - 1][0];
}

static void wait_for(struct sender *s, uint32_t most_out)
{
	uint64_t start = now_ns();

	while (s->sent - s->acked > most_out) {
		take_answers(s);
		if (now_ns() - start > SECONDS * 5000000000ull) {
			errno = 0;
			die("a packet was lost");
		}
	}
}

static void run_client(int control, const struct sockaddr_in *server, const struct plan *plan, uint64_t out)
{
	uint32_t most = (TRAIN_BYTES) / (HEADER + plan->payload + CRC);
	struct sockaddr_in a = *server;
	static struct sender s;
	uint64_t start, took;
	char ready;

	s = (struct sender){.fd = data_socket(false), .plan = *plan};
	s.window = (uint32_t)(out / plan->payload);
	most = most < TRAIN_PKTS ? most : TRAIN_PKTS;
	s.train = s.window / 2 < most ? s.window / 2 : most; /* two at least, so that both sides work at once */
	s.train = s.train ? s.train : 1;
	a.sin_port = htons(DATA_PORT);
	if (connect(s.fd, (struct sockaddr *)&a, sizeof(a)) || send(control, plan, sizeof(*plan), MSG_NOSIGNAL) != sizeof(*plan) ||
	    recv(control, &ready, 1, 0) != 1)
		die("the server does not answer");
	start = now_ns();
	do {
		wait_for(&s, s.window - s.train);
		send_train(&s);
	} while (now_ns() - start < SECONDS * 1000000000ull);
	wait_for(&s, 0);
	took = now_ns() - start;
	printf("gbps=%.4g train=%u\n", (double)s.sent * plan->payload * 8 / (double)took, s.train);
	close(s.fd);
}

/* --- the server --- */

/* The length of each packet of a train, which the kernel says where it has more than one. */
static uint32_t piece_of(struct msghdr *h, uint32_t whole)
{
	int size;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c))
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
			memcpy(&size, CMSG_DATA(c), sizeof(size));
			return (uint32_t)size;
		}
	return whole;
}

static void take_train(const uint8_t *p, uint32_t len, uint32_t piece, const struct plan *plan, uint32_t *expected)
{
	errno = 0;
	if (piece != HEADER + plan->payload + CRC || len % piece)
		die("a packet of another length");
	for (; len; len -= piece, p += piece) {
		struct header header;
		uint32_t crc;

		memcpy(&header, p, HEADER);
		memcpy(&crc, p + piece - CRC, CRC);
		if (header.number != (*expected)++)
			die("a packet was lost");
		if (crc != crc_of(p, p + HEADER, plan->payload) || header.offset > plan->message - plan->payload)
			die("a packet with a wrong CRC");
		memcpy(memory + header.offset, p + HEADER, plan->payload);
	}
}

static bool has_ended(int control)
{
	char byte;

	return recv(control, &byte, 1, MSG_DONTWAIT) == 0;
}

static void receive(int fd, int control, const struct plan *plan)
{
	_Alignas(struct cmsghdr) uint8_t cmsg[CMSG_SPACE(sizeof(int))];
	static uint8_t room[ROOM_BYTES];
	struct iovec iov = {.iov_base = room, .iov_len = sizeof(room)};
	uint32_t answer[ANSWER / sizeof(uint32_t)] = {0};
	struct sockaddr_in from;
	unsigned empty = 0;

	while (empty < EMPTY_LOOKS || !has_ended(control)) {
		struct msghdr h = {.msg_name = &from,
				   .msg_namelen = sizeof(from),
				   .msg_iov = &iov,
				   .msg_iovlen = 1,
				   .msg_control = cmsg,
				   .msg_controllen = sizeof(cmsg)};
		ssize_t len = recvmsg(fd, &h, MSG_DONTWAIT);

		if (len < 0) {
			if (errno != EAGAIN)
				die("receive");
			empty = empty < EMPTY_LOOKS ? empty + 1 : 0;
			continue;
		}
		empty = 0;
		take_train(room, (uint32_t)len, piece_of(&h, (uint32_t)len), plan, &answer[0]);
		if (sendto(fd, answer, sizeof(answer), 0, (struct sockaddr *)&from, sizeof(from)) < 0)
			die("answer");
	}
}

static bool is_plan(const struct plan *p)
{
	return p->payload && p->payload <= TRAIN_BYTES - HEADER - CRC && p->message <= SIZE_MAX_BYTES && p->message >= p->payload;
}

static void serve(const struct sockaddr_in *control_addr, int listener)
{
	struct sockaddr_in a = *control_addr;
	int fd = data_socket(true), control;
	struct plan plan;

	a.sin_port = htons(DATA_PORT);
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)))
		die("bind");
	control = accept(listener, NULL, NULL);
	if (control < 0 || recv(control, &plan, sizeof(plan), MSG_WAITALL) != sizeof(plan) || !is_plan(&plan))
		die("the client's plan");
	if (send(control, "", 1, MSG_NOSIGNAL) != 1)
		die("the client closed");
	receive(fd, control, &plan);
	close(control);
	close(fd);
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(CONTROL_PORT)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	uint64_t depth = 128, window = WINDOW_KIB, out;
	uint32_t path_mtu = 1024;
	struct plan plan = {.message = 65536};
	bool server, good = true;

	for (int c; (c = getopt(argc, argv, "m:s:d:w:")) != -1;)
		switch (c) {
		case 'm': path_mtu = (uint32_t)strtoul(optarg, NULL, 0); break;
		case 's': plan.message = (uint32_t)strtoul(optarg, NULL, 0); break;
		case 'd': depth = strtoul(optarg, NULL, 0); break;
		case 'w': window = strtoul(optarg, NULL, 0); break;
		default: good = false;
		}
	out = depth * plan.message;
	if (out > window * 1024)
		out = window * 1024;
	plan.payload = plan.message < path_mtu ? plan.message : path_mtu;
	server = optind + 1 == argc && strcmp(argv[optind], "server") == 0;
	good &= server ||
		(optind + 2 == argc && strcmp(argv[optind], "client") == 0 && inet_pton(AF_INET, argv[optind + 1], &a.sin_addr) == 1);
	if (!good || depth > UINT32_MAX || window > WINDOW_KIB_MOST || !is_plan(&plan) || out < plan.payload) {
		fprintf(stderr, "usage: mockbench server | client ADDR [-m PATH_MTU] [-s BYTES] [-d DEPTH] [-w KIB]\n");
		return 2;
	}
	memory = calloc(1, SIZE_MAX_BYTES);
	if (!memory)
		die("memory");
	if (server) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 1))
			die("listen");
		serve(&a, fd);
	} else {
		if (connect(fd, (struct sockaddr *)&a, sizeof(a)))
			die("connect");
		run_client(fd, &a, &plan, out);
	}
	free(memory);
	close(fd);
	return 0;
}
