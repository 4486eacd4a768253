/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/uroce/cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "host/clock.h"
#include "uroce/uroce.h"

#define END_MS 5000 /* that a child has to end once it has said all */

static void hush(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; null >= 0 && fd <= 2; fd++)
		dup2(null, fd);
}

static void write_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno != EINTR)
			return;
		data += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
}

static bool read_all(int fd, char *data, size_t len, ur_time deadline)
{
	while (len) {
		ur_time now = ur_clock_now();
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ssize_t n;

		if (now >= deadline || poll(&p, 1, (int)((deadline - now) / UR_NS_PER_MS) + 1) <= 0)
			return false;
		n = read(fd, data, len);
		if (n == 0 || (n < 0 && errno != EINTR))
			return false;
		data += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* Whether it ends by itself. */
static bool wait_for_end(pid_t pid, bool now)
{
	const struct timespec ms = {.tv_nsec = (long)UR_NS_PER_MS};

	for (int i = 0; !now && i < END_MS; i++) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return true;
		nanosleep(&ms, NULL);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return false;
}

bool ur_child_run(void (*fn)(const void *arg, void *result), const void *arg, void *result, size_t len, unsigned seconds)
{
	int fds[2];
	pid_t pid;
	bool ok;

	if (pipe2(fds, O_CLOEXEC))
		return false;
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[0]);
		hush();
		fn(arg, result);
		write_all(fds[1], result, len);
		exit(0);
	}
	close(fds[1]);
	ok = pid > 0 && read_all(fds[0], result, len, ur_clock_now() + seconds * UR_NS_PER_S);
	close(fds[0]);
	return pid > 0 && wait_for_end(pid, !ok) && ok;
}

void ur_child_plain_settings(const char *port)
{
	static const char *const plain[][2] = {{"capture", ""}, {"trace", ""}, {"fault", ""}, {"counters", ""}};

	for (unsigned i = 0; i < ur_array_size(plain); i++)
		uroce_config(plain[i][0], plain[i][1]);
	if (port)
		uroce_config("port", port);
}
