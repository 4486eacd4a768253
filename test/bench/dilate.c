/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded after liburoce.so by 'tools/bench instructions', into a program under callgrind and its peer. It makes the number of
 * instructions independent of how busy the machine is:
 *
 * Nobody polls in vain. A receive that finds nothing waits in the kernel, where no instructions are counted, for a packet or 2 ms.
 * Whoever receives holds the NIC's lock; so the program's first thread also waits for a lock that it tries and that is held. The ring of
 * a packet socket is looked into without a call; but each look follows a reading of the clock, and that waits for a packet.
 *
 * Time passes more slowly, by as much as callgrind slows the program down. So what the engine decides by time (does the program still
 * poll, is an acknowledgement late, how long may this wait) it decides as it would without callgrind.
 *
 * Its own calls of the kernel go past libc, so that they do not count as libc's.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#pragma GCC visibility push(default) /* they replace functions of libc */

#define SLOWER 50
#define WAIT_NS 2000000
#define NS_PER_S 1000000000ull

typedef int recvmmsg_fn(int, struct mmsghdr *, unsigned, int, struct timespec *);
typedef ssize_t recvmsg_fn(int, struct msghdr *, int);
typedef int trylock_fn(pthread_mutex_t *);
typedef int clock_fn(clockid_t, struct timespec *);
typedef int ppoll_fn(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);

static recvmmsg_fn *real_recvmmsg;
static recvmsg_fn *real_recvmsg;
static trylock_fn *real_trylock;
static clock_fn *real_clock;
static ppoll_fn *real_ppoll;
static pid_t pid;
static int ring = -1; /* the packet socket that has one */

/* Threads of libraries whose constructors run earlier may come first. */
static void find_real(void)
{
	real_recvmmsg = (recvmmsg_fn *)dlsym(RTLD_NEXT, "recvmmsg");
	real_recvmsg = (recvmsg_fn *)dlsym(RTLD_NEXT, "recvmsg");
	real_trylock = (trylock_fn *)dlsym(RTLD_NEXT, "pthread_mutex_trylock");
	real_ppoll = (ppoll_fn *)dlsym(RTLD_NEXT, "ppoll");
	pid = getpid();
	real_clock = (clock_fn *)dlsym(RTLD_NEXT, "clock_gettime");
}

__attribute__((constructor)) static void start(void)
{
	find_real();
}

static uint64_t to_ns(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * NS_PER_S + (uint64_t)t->tv_nsec;
}

static struct timespec from_ns(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
}

static uint64_t kernel_ns(void)
{
	struct timespec t;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
	return to_ns(&t);
}

int setsockopt(int fd, int level, int option, const void *value, socklen_t len)
{
	int rc = (int)syscall(SYS_setsockopt, fd, level, option, value, len);

	if (rc == 0 && level == SOL_PACKET && option == PACKET_RX_RING)
		ring = fd;
	return rc;
}

static void wait_for_ring(void)
{
	struct pollfd p = {.fd = ring, .events = POLLIN};
	struct timespec wait = {.tv_nsec = WAIT_NS};

	syscall(SYS_ppoll, &p, 1, &wait, NULL, 0);
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	int rc;

	if (!real_clock)
		find_real();
	if (clock == CLOCK_MONOTONIC && ring >= 0)
		wait_for_ring();
	rc = real_clock(clock, t);
	if (rc == 0 && clock == CLOCK_MONOTONIC)
		*t = from_ns(to_ns(t) / SLOWER);
	return rc;
}

int pthread_mutex_trylock(pthread_mutex_t *m)
{
	struct timespec until;
	int rc;

	if (!real_clock)
		find_real();
	rc = real_trylock(m);
	if (rc == EBUSY && syscall(SYS_gettid) == pid) {
		until = from_ns(kernel_ns() + WAIT_NS);
		rc = pthread_mutex_clocklock(m, CLOCK_MONOTONIC, &until) ? EBUSY : 0;
	}
	return rc;
}

int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	struct timespec longer;

	if (!real_clock)
		find_real();
	if (timeout) {
		longer = from_ns(to_ns(timeout) * SLOWER);
		timeout = &longer;
	}
	return real_ppoll(fds, n, timeout, mask);
}

static bool is_datagrams(int fd)
{
	int type = 0, domain = 0;
	socklen_t len = sizeof(int);

	return syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_DGRAM &&
	       syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && (domain == AF_INET || domain == AF_INET6);
}

/* After a receive: nothing has come, and now something may have. */
static bool has_come(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	struct timespec wait = {.tv_nsec = WAIT_NS};

	if (errno != EAGAIN)
		return false;
	if (is_datagrams(fd) && syscall(SYS_ppoll, &p, 1, &wait, NULL, 0) > 0)
		return true;
	errno = EAGAIN;
	return false;
}

int recvmmsg(int fd, struct mmsghdr *msgs, unsigned n, int flags, struct timespec *timeout)
{
	int got;

	if (!real_clock)
		find_real();
	got = real_recvmmsg(fd, msgs, n, flags, timeout);
	if (got < 0 && has_come(fd))
		return (int)syscall(SYS_recvmmsg, fd, msgs, n, flags, timeout);
	return got;
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	ssize_t got;

	if (!real_clock)
		find_real();
	got = real_recvmsg(fd, msg, flags);
	if (got < 0 && flags & MSG_DONTWAIT && !(flags & MSG_ERRQUEUE) && has_come(fd))
		return syscall(SYS_recvmsg, fd, msg, flags);
	return got;
}
