/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/file_limit.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static sigset_t only_it(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	return set;
}

void ur_file_limit_begin(struct ur_file_limit *l)
{
	const sigset_t it = only_it();
	sigset_t before, pending;

	sigemptyset(&before);
	pthread_sigmask(SIG_BLOCK, &it, &before);
	l->blocked = sigismember(&before, SIGXFSZ) == 1;
	l->pending = l->blocked && !sigpending(&pending) && sigismember(&pending, SIGXFSZ) == 1;
}

/* One that was pending before is the program's. Not sigtimedwait(3), which is a cancellation point. */
void ur_file_limit_end(const struct ur_file_limit *l)
{
	const struct timespec now = {.tv_sec = 0};
	const sigset_t it = only_it();
	int err = errno;

	if (!l->pending)
		syscall(SYS_rt_sigtimedwait, &it, NULL, &now, _NSIG / 8);
	if (!l->blocked)
		pthread_sigmask(SIG_UNBLOCK, &it, NULL);
	errno = err;
}
