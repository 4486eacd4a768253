/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The socket on which a running `uroce between` is told to change, and both ends of what is said there: a line, and an answer up to the end
 * of the connection. It lies in a folder of the user alone and is the user's alone. Who connects may say what he wants, as slowly as he
 * wants: lines, connections and their time are bounded, and frames pass meanwhile.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "apps/uroce/between/control.h"
#include "apps/uroce/cli/cmd.h"
#include "host/clock.h"

#define CLIENTS 8                  /* at a time */
#define PATIENCE (5 * UR_NS_PER_S) /* that one may take */
#define ANSWER_MS 10000            /* that the other side waits for an answer */

struct client {
	int fd; /* -1: free */
	ur_time until;
	char line[UR_BETWEEN_TOLD + 1];
	unsigned have;
	char *answer; /* NULL: the line is not there yet */
	size_t len, sent;
};

static struct {
	struct ur_between_run *run;
	int listener;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	ino_t inode; /* of the socket's file */
	struct client client[CLIENTS];
} control = {.listener = -1};

/* --- where it is --- */

static bool is_name(const char *name)
{
	if (!*name || *name == '.' || strlen(name) > UR_BETWEEN_NAME)
		return false;
	for (; *name; name++)
		if (*name <= ' ' || *name > '~' || *name == '/')
			return false;
	return true;
}

/* A folder that belongs to the user and that nobody else writes to; it is made if need be. */
static int folder(char *to, size_t room, bool make)
{
	const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
	struct stat st;

	if (geteuid() == 0)
		snprintf(to, room, "/run/uroce");
	else if (runtime && *runtime == '/' && strlen(runtime) < room - sizeof("/uroce"))
		snprintf(to, room, "%s/uroce", runtime);
	else
		snprintf(to, room, "/tmp/uroce-%u", geteuid());
	if (make && mkdir(to, 0700) && errno != EEXIST)
		return errno;
	if (lstat(to, &st))
		return errno;
	return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022) ? 0 : EPERM;
}

/* 0, or an errno. A name with a slash is a path. */
static int find_socket(const char *name, bool make, struct sockaddr_un *sa)
{
	char dir[PATH_MAX / 2], path[PATH_MAX];
	int err = 0;

	*sa = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strchr(name, '/') && !make) {
		snprintf(path, sizeof(path), "%s", name);
	} else {
		if (!is_name(name))
			return EINVAL;
		err = folder(dir, sizeof(dir), make);
		snprintf(path, sizeof(path), "%s/between-%s", dir, name);
	}
	if (!err && strlen(path) >= sizeof(sa->sun_path))
		err = ENAMETOOLONG;
	if (!err)
		strcpy(sa->sun_path, path);
	return err;
}

/* --- the side that is told --- */

static void hang_up(struct client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	free(c->answer);
	*c = (struct client){.fd = -1};
}

static void obey_line(struct client *c)
{
	FILE *f = open_memstream(&c->answer, &c->len);

	if (!f) {
		hang_up(c);
		return;
	}
	if (c->have > UR_BETWEEN_TOLD)
		fprintf(f, "error: a line has at most %d characters\n", UR_BETWEEN_TOLD);
	else
		ur_between_obey(control.run, c->line, f);
	if (fclose(f) || !c->answer)
		hang_up(c);
}

/* A line, or what there is when nothing more comes. */
static void get_line(struct client *c)
{
	const ssize_t n = recv(c->fd, c->line + c->have, sizeof(c->line) - c->have, MSG_DONTWAIT);
	char *end;

	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			hang_up(c);
		return;
	}
	c->have += (unsigned)n;
	end = memchr(c->line, '\n', c->have);
	if (end)
		c->have = (unsigned)(end - c->line);
	if (c->have <= UR_BETWEEN_TOLD)
		c->line[c->have] = 0;
	if (memchr(c->line, 0, c->have))
		c->line[0] = 0; /* which is no request */
	if (end || !n || c->have > UR_BETWEEN_TOLD)
		obey_line(c);
}

static void put_answer(struct client *c)
{
	const ssize_t n = send(c->fd, c->answer + c->sent, c->len - c->sent, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	c->sent += n > 0 ? (size_t)n : 0;
	if (n <= 0 || c->sent == c->len)
		hang_up(c);
}

static void take_call(void)
{
	const int fd = accept4(control.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	for (unsigned i = 0; fd >= 0 && i < CLIENTS; i++) {
		struct client *c = &control.client[i];

		if (c->fd >= 0)
			continue;
		c->fd = fd;
		c->until = ur_clock_now() + PATIENCE;
		return;
	}
	if (fd >= 0)
		close(fd);
}

static ur_time serve_clients(ur_time now)
{
	ur_time next = UR_TIME_NEVER;

	for (unsigned i = 0; i < CLIENTS; i++) {
		struct client *c = &control.client[i];

		if (c->fd >= 0 && now >= c->until)
			hang_up(c);
		if (c->fd >= 0)
			next = ur_min_time(next, c->until);
	}
	return next;
}

static unsigned fds(struct pollfd *to)
{
	bool room = false;

	for (unsigned i = 0; i < CLIENTS; i++) {
		const struct client *c = &control.client[i];

		to[i] = (struct pollfd){.fd = c->fd, .events = c->answer ? POLLOUT : POLLIN};
		room |= c->fd < 0;
	}
	to[CLIENTS] = (struct pollfd){.fd = room ? control.listener : -1, .events = POLLIN};
	return CLIENTS + 1;
}

static unsigned serve(const struct pollfd *from)
{
	for (unsigned i = 0; i < CLIENTS; i++) {
		struct client *c = &control.client[i];

		if (!from[i].revents || c->fd < 0)
			continue;
		if (!c->answer)
			get_line(c);
		if (c->answer)
			put_answer(c);
	}
	if (from[CLIENTS].revents)
		take_call();
	return CLIENTS + 1;
}

/* Only the user may connect. A file that nobody listens at is one that a killed process has left. */
static int listen_at(const struct sockaddr_un *sa)
{
	const struct sockaddr *at = (const struct sockaddr *)sa;
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const mode_t mask = umask(0177);
	struct stat st = {.st_ino = 0};
	int err = 0;

	if (fd < 0 || bind(fd, at, sizeof(*sa)))
		err = errno;
	if (err == EADDRINUSE) {
		const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		if (probe >= 0 && connect(probe, at, sizeof(*sa)) && errno == ECONNREFUSED && unlink(sa->sun_path) == 0)
			err = bind(fd, at, sizeof(*sa)) ? errno : 0;
		if (probe >= 0)
			close(probe);
	}
	umask(mask);
	if (!err && (listen(fd, CLIENTS) || lstat(sa->sun_path, &st)))
		err = errno;
	if (!err) {
		control.inode = st.st_ino;
		control.listener = fd;
	} else if (fd >= 0) {
		close(fd);
	}
	return err;
}

static const char *why_not(int err)
{
	if (err == EADDRINUSE)
		return "another running one has this name: give this one another name with --name";
	if (err == EINVAL)
		return "a name has at most 64 visible characters, no slash among them, and does not begin with a dot";
	if (err == EPERM)
		return "the folder of its socket does not belong to this user alone: remove it, or chmod it to 700";
	return strerror(err);
}

bool ur_between_control_open(struct ur_between_run *r, const char *name)
{
	struct sockaddr_un sa;
	int err = find_socket(name, true, &sa);

	control.run = r;
	for (unsigned i = 0; i < CLIENTS; i++)
		control.client[i].fd = -1;
	if (!err)
		err = listen_at(&sa);
	if (err) {
		ur_cmd_fail(0, "'--tell %s' is not available: %s", name, why_not(err));
		return false;
	}
	strcpy(control.path, sa.sun_path);
	r->guest[r->nguests++] = (struct ur_between_guest){.turn = serve_clients, .fds = fds, .ready = serve};
	return true;
}

void ur_between_control_close(void)
{
	struct stat st;

	if (control.listener < 0)
		return;
	for (unsigned i = 0; i < CLIENTS; i++)
		hang_up(&control.client[i]);
	if (lstat(control.path, &st) == 0 && st.st_ino == control.inode)
		unlink(control.path);
	close(control.listener);
	control.listener = -1;
}

/* --- the side that tells --- */

static int call(const char *name)
{
	const struct timeval patience = {.tv_sec = ANSWER_MS / 1000};
	struct sockaddr_un sa;
	int fd, err = find_socket(name, false, &sa);

	if (err == EINVAL)
		return ur_cmd_fail(-1, "'%s' is no name of a cable", name);
	if (err == EPERM)
		return ur_cmd_fail(-1, "the folder of the socket is not this user's alone, so nothing is said there");
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0) {
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)); /* connect() waits for room, too */
	}
	if (err || fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa))) {
		err = err ? err : errno;
		if (fd >= 0)
			close(fd);
		if (err == EAGAIN)
			return ur_cmd_fail(-1, "%s does not answer", name);
		return ur_cmd_fail(-1, "no uroce between of this user is called %s: %s", name, strerror(err));
	}
	return fd;
}

int ur_between_tell(const char *name, const char *line)
{
	const int fd = strlen(line) > UR_BETWEEN_TOLD ? -2 : call(name);
	char got[4096], *text = NULL;
	size_t len;
	ssize_t n = 0;
	int status = 0;
	FILE *f;

	if (fd == -2)
		return ur_cmd_fail(UR_EXIT_USAGE, "a request has at most %d characters", UR_BETWEEN_TOLD);
	if (fd < 0)
		return UR_EXIT_FAIL;
	f = open_memstream(&text, &len);
	if (f && send(fd, line, strlen(line), MSG_NOSIGNAL) == (ssize_t)strlen(line) && shutdown(fd, SHUT_WR) == 0)
		while ((n = recv(fd, got, sizeof(got), 0)) > 0)
			fwrite(got, 1, (size_t)n, f);
	close(fd);
	if (!f || fclose(f) || n < 0 || !len)
		status = ur_cmd_fail(UR_EXIT_FAIL, "%s does not answer", name);
	else if (text[len - 1] != '\n')
		status = ur_cmd_fail(UR_EXIT_FAIL, "%s has not answered to the end", name);
	else if (strncmp(text, "error: ", 7) == 0)
		status = ur_cmd_fail(UR_EXIT_FAIL, "%.*s", (int)strcspn(text + 7, "\n"), text + 7);
	else
		fwrite(text, 1, len, stdout);
	free(text);
	return status;
}
