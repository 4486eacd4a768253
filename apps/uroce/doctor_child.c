/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce doctor: trying things in a child, which a process can do once only (open the device), or which may take too long. A port that a
 * child gets is one that a program gets, with everything that opening it asks of the system.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "doctor.h"
#include "engine/engine.h"

#define PORT_SECONDS 15 /* DPDK's EAL takes one or two on a slow machine */
#define END_MS 3000     /* that a child has to end once it has said all */

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
		ur_time now = ur_engine_now();
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

static void end(pid_t pid, bool now)
{
	const struct timespec ms = {.tv_nsec = (long)UR_NS_PER_MS};

	for (int i = 0; !now && i < END_MS; i++) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return;
		nanosleep(&ms, NULL);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

bool ur_doctor_in_child(void (*fn)(const void *arg, void *result), const void *arg, void *result, size_t len, unsigned seconds)
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
	ok = pid > 0 && read_all(fds[0], result, len, ur_engine_now() + seconds * UR_NS_PER_S);
	close(fds[0]);
	if (pid > 0)
		end(pid, !ok);
	return ok;
}

void ur_doctor_plain_settings(const char *port)
{
	static const char *const plain[][2] = {{"capture", ""}, {"trace", ""}, {"fault", ""}, {"counters", ""}, {"telemetry", "0"}};
	char err[256];

	for (unsigned i = 0; i < ur_array_size(plain); i++)
		ur_config_set(plain[i][0], plain[i][1], err, sizeof(err));
	if (port)
		ur_config_set("port", port, err, sizeof(err));
}

static void try_port(const void *arg, void *result)
{
	struct ur_doctor_port *p = result;
	struct ur_engine *e;

	memset(p, 0, sizeof(*p));
	ur_doctor_plain_settings(arg);
	p->works = !ur_engine_open(&e) && !ur_engine_start(e);
	if (!p->works)
		snprintf(p->why, sizeof(p->why), "%s", ur_engine_error());
}

void ur_doctor_try_ports(struct ur_doctor_facts *f)
{
	for (unsigned i = 0; i < UR_DOCTOR_PORTS; i++) {
		struct ur_doctor_port *p = &f->ports[i];

		if (ur_doctor_in_child(try_port, ur_doctor_port_names[i], p, sizeof(*p), PORT_SECONDS))
			continue;
		p->works = false;
		snprintf(p->why, sizeof(p->why), "a process that tried it died or had not finished after %d seconds", PORT_SECONDS);
	}
}
