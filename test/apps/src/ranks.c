/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An MPI program for strangers.sh: messages of all sizes between each two ranks, collectives, windows, and a fork; every byte that arrives
 * is looked at. Rank 0 prints 'all is as it should be'.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank, ranks;

#define CHECK(cond)                                                                                                                        \
	do {                                                                                                                               \
		if (!(cond)) {                                                                                                             \
			fprintf(stderr, "rank %d, line %d: %s is not so\n", rank, __LINE__, #cond);                                        \
			MPI_Abort(MPI_COMM_WORLD, 1);                                                                                      \
		}                                                                                                                          \
	} while (0)

/* Around the limits of what goes inline, in one packet, by one copy, by rendezvous, and in one bulk packet. */
static const int sizes[] = {0, 1, 63, 1000, 1025, 8191, 8192, 8193, 65536, 262143, 262144, 262145, 1000003};
#define SIZES ((int)(sizeof(sizes) / sizeof(sizes[0])))
#define LARGEST 1000003

static unsigned char sent[LARGEST], got[LARGEST];

static unsigned char byte_of(int from, int to, int i)
{
	return (unsigned char)(from * 7 + to * 31 + i + (i >> 8) * 3);
}

static void fill(unsigned char *p, int n, int from, int to)
{
	for (int i = 0; i < n; i++)
		p[i] = byte_of(from, to, i);
}

static void look(const unsigned char *p, int n, int from, int to)
{
	for (int i = 0; i < n; i++)
		CHECK(p[i] == byte_of(from, to, i));
}

/* Each rank with each, both ways at once. */
static void pairs(void)
{
	MPI_Status status;
	int n;

	for (int s = 0; s < SIZES; s++)
		for (int step = 1; step < ranks; step++) {
			int to = (rank + step) % ranks, from = (rank - step + ranks) % ranks;

			fill(sent, sizes[s], rank, to);
			memset(got, 0, sizeof(got));
			MPI_Sendrecv(sent, sizes[s], MPI_BYTE, to, s, got, LARGEST, MPI_BYTE, from, s, MPI_COMM_WORLD, &status);
			MPI_Get_count(&status, MPI_BYTE, &n);
			CHECK(n == sizes[s]);
			look(got, n, from, rank);
		}
}

/* Many messages on their way, which the receiver takes in another order than they were sent. */
#define MANY 32
#define PIECE 20000
static void many(void)
{
	static unsigned char out[MANY][PIECE], in[MANY][PIECE];
	MPI_Request r[2 * MANY];
	int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;

	for (int i = 0; i < MANY; i++) {
		fill(out[i], PIECE, rank + i, to);
		MPI_Isend(out[i], PIECE, MPI_BYTE, to, 100 + i, MPI_COMM_WORLD, &r[i]);
	}
	for (int i = MANY - 1; i >= 0; i--)
		MPI_Irecv(in[i], PIECE, MPI_BYTE, from, 100 + i, MPI_COMM_WORLD, &r[MANY + i]);
	MPI_Waitall(2 * MANY, r, MPI_STATUSES_IGNORE);
	for (int i = 0; i < MANY; i++)
		look(in[i], PIECE, from + i, rank);
}

static void collectives(void)
{
	static int64_t numbers[50000], sums[50000];
	static unsigned char all[8][30000];

	for (int root = 0; root < ranks; root++)
		for (int s = 0; s < SIZES; s++) {
			memset(got, 0, sizeof(got));
			if (rank == root)
				fill(got, sizes[s], root, s);
			MPI_Bcast(got, sizes[s], MPI_BYTE, root, MPI_COMM_WORLD);
			look(got, sizes[s], root, s);
		}
	for (int n = 1; n <= 50000; n = n * 7 + 1) {
		for (int i = 0; i < n; i++)
			numbers[i] = (int64_t)(rank + 1) * i;
		MPI_Allreduce(numbers, sums, n, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
		for (int i = 0; i < n; i++)
			CHECK(sums[i] == (int64_t)i * ranks * (ranks + 1) / 2);
	}
	fill(sent, 30000, rank, 0);
	MPI_Allgather(sent, 30000, MPI_BYTE, all, 30000, MPI_BYTE, MPI_COMM_WORLD);
	for (int r = 0; r < ranks; r++)
		look(all[r], 30000, r, 0);
	for (int r = 0; r < ranks; r++)
		fill(sent + 30000 * r, 30000, rank, r);
	MPI_Alltoall(sent, 30000, MPI_BYTE, all, 30000, MPI_BYTE, MPI_COMM_WORLD);
	for (int r = 0; r < ranks; r++)
		look(all[r], 30000, r, rank);
}

/* One-sided: PUT to the next rank, GET from the one before, and all count up one number of rank 0. */
static void windows(void)
{
	int64_t *base, one = 1, before;
	int n = 300000, to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
	MPI_Win win;

	MPI_Win_allocate(2 * n + 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
	unsigned char *bytes = (unsigned char *)(base + 1);
	memset(base, 0, 2 * n + 8);
	fill(bytes + n, n, rank, 99);
	MPI_Win_fence(0, win);
	fill(sent, n, rank, to);
	MPI_Put(sent, n, MPI_BYTE, to, 8, n, MPI_BYTE, win);
	MPI_Get(got, n, MPI_BYTE, from, 8 + n, n, MPI_BYTE, win);
	MPI_Win_fence(0, win);
	look(bytes, n, from, rank);
	look(got, n, from, 99);
	MPI_Win_lock_all(0, win);
	for (int i = 0; i < 100; i++) {
		MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, 0, MPI_SUM, win);
		MPI_Win_flush(0, win);
	}
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
		CHECK(*base == 100 * ranks);
		MPI_Win_unlock(0, win);
	}
	MPI_Win_free(&win);
}

/* A child has copies of all pages that the next messages are written to; it sees none of them. */
static void with_child(void)
{
	int pipe_fds[2], status;
	pid_t pid = -1;
	char c;

	memset(got, 0xee, sizeof(got));
	CHECK(!pipe(pipe_fds) && (pid = fork()) >= 0);
	if (!pid) {
		close(pipe_fds[1]);
		while (read(pipe_fds[0], &c, 1) > 0)
			;
		for (int i = 0; i < LARGEST; i++)
			if (got[i] != 0xee)
				_exit(1);
		_exit(0);
	}
	close(pipe_fds[0]);
	pairs();
	many();
	memset(got, 0xdd, sizeof(got));
	close(pipe_fds[1]);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	CHECK(ranks <= 8);
	pairs();
	many();
	collectives();
	windows();
	with_child();
	MPI_Barrier(MPI_COMM_WORLD);
	if (!rank)
		puts("all is as it should be");
	MPI_Finalize();
	return 0;
}
