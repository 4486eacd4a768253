/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one copy costs on this machine, the bound for whatever moves messages between two processes by copying them:
 *
 *   copybench memcpy | readv [-s BYTES] [-f FOOTPRINT] [-t SECONDS]       prints: gbps=81.20
 *
 * memcpy copies within the process, readv (process_vm_readv) from memory of a second process, which sleeps. Pieces of BYTES (65536), one
 * after another; source and destination each walk through FOOTPRINT bytes, a multiple of BYTES. As long as BYTES it is one buffer that is
 * used again and again, as perftest does with messages of a page and more.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FOOTPRINT_MAX (1ul << 30)
#define BETWEEN_LOOKS (1u << 20) /* bytes that are copied before the clock is read again */
#define SOURCE 0x5a
#define TARGET 0xa5

struct copy {
	uint8_t *from, *to;
	size_t piece, footprint;
	pid_t owner; /* of `from`; 0: this process */
};

static void die(const char *what)
{
	fprintf(stderr, "copybench: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

/* As perftest gets its buffers. */
static uint8_t *memory(size_t n)
{
	void *p = NULL;

	errno = posix_memalign(&p, 4096, n);
	if (errno)
		die("memory");
	return p;
}

/* The second process: pages of its own at the same address, until we close `stay` or end. */
static void own(const struct copy *c, int ready, int stay)
{
	char byte = 0;

	memset(c->from, SOURCE, c->footprint);
	if (write(ready, &byte, 1) != 1)
		_exit(1);
	_exit(read(stay, &byte, 1) != 0);
}

/* Returns the descriptor that lets it end. */
static int start_owner(struct copy *c)
{
	int ready[2], stay[2];
	char byte;

	if (pipe(ready) || pipe(stay))
		die("pipe");
	c->owner = fork();
	if (c->owner < 0)
		die("fork");
	if (c->owner == 0) {
		close(stay[1]);
		own(c, ready[1], stay[0]);
	}
	close(ready[1]);
	close(stay[0]);
	if (read(ready[0], &byte, 1) != 1)
		die("the second process");
	close(ready[0]);
	return stay[1];
}

static void copy_piece(const struct copy *c, size_t at)
{
	struct iovec to = {c->to + at, c->piece}, from = {c->from + at, c->piece};

	if (!c->owner)
		memcpy(to.iov_base, from.iov_base, c->piece);
	else if (process_vm_readv(c->owner, &to, 1, &from, 1, 0) != (ssize_t)c->piece)
		die("process_vm_readv");
}

static void walk(const struct copy *c)
{
	for (size_t at = 0; at < c->footprint; at += c->piece)
		copy_piece(c, at);
}

/* Gbit/s. What the first walk costs, page faults among it, does not count. */
static double run(const struct copy *c, unsigned long seconds)
{
	uint64_t end, begin, bytes = 0, looked = 0, now;

	walk(c);
	begin = now = now_ns();
	end = begin + seconds * 1000000000ull;
	while (now < end) {
		walk(c);
		bytes += c->footprint;
		if (bytes - looked >= BETWEEN_LOOKS) {
			looked = bytes;
			now = now_ns();
		}
	}
	return (double)bytes * 8 / (double)(now - begin);
}

static void check(const struct copy *c)
{
	for (size_t i = 0; i < c->footprint; i++)
		if (c->to[i] != SOURCE) {
			fprintf(stderr, "copybench: byte %zu was not copied\n", i);
			exit(1);
		}
}

static int usage(void)
{
	fprintf(stderr, "usage: copybench memcpy | readv [-s BYTES] [-f FOOTPRINT] [-t SECONDS]\n");
	return 2;
}

int main(int argc, char **argv)
{
	struct copy c = {.piece = 65536};
	unsigned long seconds = 2;
	int stay = -1, status = 0;
	bool readv;

	for (int o; (o = getopt(argc, argv, "s:f:t:")) != -1;)
		switch (o) {
		case 's': c.piece = strtoul(optarg, NULL, 0); break;
		case 'f': c.footprint = strtoul(optarg, NULL, 0); break;
		case 't': seconds = strtoul(optarg, NULL, 0); break;
		default: return usage();
		}
	if (!c.footprint)
		c.footprint = c.piece;
	if (optind + 1 != argc || !c.piece || c.footprint % c.piece || c.footprint > FOOTPRINT_MAX || !seconds || seconds > 60)
		return usage();
	readv = !strcmp(argv[optind], "readv");
	if (!readv && strcmp(argv[optind], "memcpy") != 0)
		return usage();
	c.from = memory(c.footprint);
	c.to = memory(c.footprint);
	if (readv)
		stay = start_owner(&c);
	else
		memset(c.from, SOURCE, c.footprint);
	memset(c.to, TARGET, c.footprint);
	printf("gbps=%.4g\n", run(&c, seconds));
	check(&c);
	if (readv) {
		close(stay);
		if (waitpid(c.owner, &status, 0) != c.owner || status)
			die("the second process");
	}
	free(c.from);
	free(c.to);
	return 0;
}
