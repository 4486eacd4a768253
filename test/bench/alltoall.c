/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Alltoall, as a plain MPI program, which 'tools/bench host' compiles where there is an mpicc:
 *
 *   mpirun -n RANKS alltoall BYTES SECONDS       rank 0 prints: us=812.4 calls=1230
 *
 * Every rank sends BYTES to every rank. Printed is how long a call takes, the mean over SECONDS.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define TOGETHER 8 /* calls between two looks at the clock */
#define BYTES_MAX (1ul << 26)

static void *memory(size_t n)
{
	void *p = calloc(1, n);

	if (!p)
		MPI_Abort(MPI_COMM_WORLD, 1);
	return p;
}

static void calls(char *from, char *to, int bytes)
{
	for (int i = 0; i < TOGETHER; i++)
		MPI_Alltoall(from, bytes, MPI_CHAR, to, bytes, MPI_CHAR, MPI_COMM_WORLD);
}

/* All do as many calls as rank 0 finds time for. */
static void run(char *from, char *to, int bytes, double seconds)
{
	double begin, took;
	int n = 0, more = 1, rank;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	calls(from, to, bytes); /* the first ones connect */
	MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	for (took = 0; more; n += TOGETHER) {
		calls(from, to, bytes);
		took = MPI_Wtime() - begin;
		more = took < seconds;
		MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	if (rank == 0)
		printf("us=%.2f calls=%d\n", took * 1e6 / n, n);
}

/* What came from rank r is that rank's number. */
static int check(const char *to, size_t bytes, int ranks)
{
	for (int r = 0; r < ranks; r++)
		for (size_t i = 0; i < bytes; i++)
			if (to[(size_t)r * bytes + i] != (char)(r + 1)) {
				fprintf(stderr, "alltoall: byte %zu of what rank %d sent is wrong\n", i, r);
				return 1;
			}
	return 0;
}

int main(int argc, char **argv)
{
	size_t bytes = argc == 3 ? strtoul(argv[1], NULL, 0) : 0;
	double seconds = argc == 3 ? strtod(argv[2], NULL) : 0;
	int ranks, rank, status;
	char *from, *to;

	if (!bytes || bytes > BYTES_MAX || !(seconds > 0 && seconds <= 60)) {
		fprintf(stderr, "usage: mpirun -n RANKS alltoall BYTES SECONDS\n");
		return 2;
	}
	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	from = memory(bytes * (size_t)ranks);
	to = memory(bytes * (size_t)ranks);
	for (size_t i = 0; i < bytes * (size_t)ranks; i++)
		from[i] = (char)(rank + 1);
	run(from, to, (int)bytes, seconds);
	status = check(to, bytes, ranks);
	free(from);
	free(to);
	MPI_Finalize();
	return status;
}
