/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce between --script: runs a program on each host while the loop moves frames, and makes one exit status of what becomes of them. Each
 * program is a process group, whose leader is not reaped before the end, so that its number stays its own. When this process is killed, a
 * child of it kills the groups; the namespaces go with them.
 */
#include "apps/uroce/between/script/script.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "apps/uroce/cli/cmd.h"
#include "host/clock.h"

#define LIMIT 60                         /* seconds, unless told otherwise */
#define LISTEN_MAX (10 * UR_NS_PER_S)    /* that the first program may take until it listens, */
#define LISTEN_FAR (30 * UR_NS_PER_S)    /* and on a host where it has to be started first */
#define GRACE (5 * UR_NS_PER_S)          /* that a program has to end after the other one has failed, */
#define FAREWELL (2 * UR_NS_PER_S)       /* and after SIGTERM */
#define LOOK_NS (5 * (long)UR_NS_PER_MS) /* between two looks at the end */
#define STATUS_LIMIT 124                 /* as timeout(1) says it */
#define STATUS_SIGNAL 128                /* as a shell says it */
#define LINE 4096
#define EARLIER 256 /* children that are not this command's */

struct program {
	pid_t pid; /* 0: it has not been started */
	int out;   /* a pipe with its output; -1: it has none any more */
	char line[LINE];
	unsigned have;
	ur_time told_at; /* when it got SIGTERM; 0: it did not */
	struct ur_between_program *shown;
};

static struct {
	const struct ur_between_script *how;
	struct ur_between_run *run;
	struct ur_between_hosts hosts;
	struct program program[2];
	pid_t guard, waiter; /* 0: there is none */
	int to_guard;
	int failed; /* the first program that did; -1: none */
	sigset_t signals;
	pid_t earlier[EARLIER];
	unsigned nearlier;
} s;

/* --- what programs say --- */

static void print_line(unsigned i)
{
	struct program *p = &s.program[i];
	FILE *to = s.how->json ? stderr : stdout;

	fprintf(to, "%u| ", i + 1);
	fwrite(p->line, 1, p->have, to); /* which may have zeros */
	fputc('\n', to);
	p->have = 0;
}

/* Some of what is there: whole lines, and those that are too long in parts. 0 at its end, less when there is nothing now. */
static ssize_t relay(unsigned i)
{
	struct program *p = &s.program[i];
	char got[LINE];
	const ssize_t n = p->out < 0 ? -1 : read(p->out, got, sizeof(got));

	for (ssize_t k = 0; k < n; k++) {
		if (got[k] != '\n')
			p->line[p->have++] = got[k];
		if (got[k] == '\n' || p->have == sizeof(p->line))
			print_line(i);
	}
	fflush(stdout);
	return n;
}

static void hear_no_more(unsigned i)
{
	struct program *p = &s.program[i];

	if (p->out < 0)
		return;
	if (p->have)
		print_line(i);
	close(p->out);
	p->out = -1;
}

static unsigned outputs(struct pollfd *to)
{
	for (unsigned i = 0; i < 2; i++)
		to[i] = (struct pollfd){.fd = s.program[i].out, .events = POLLIN};
	return 2;
}

static unsigned hear_programs(const struct pollfd *from)
{
	for (unsigned i = 0; i < 2; i++)
		if (from[i].revents && from[i].fd == s.program[i].out && relay(i) == 0)
			hear_no_more(i);
	return 2;
}

/* --- children --- */

/* As it was before the loop; nothing of a terminal, which two programs would share. */
static void become_child(void)
{
	const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	sigprocmask(SIG_SETMASK, &s.signals, NULL);
	if (null >= 0)
		dup2(null, STDIN_FILENO);
}

/* To its group, and to the program itself if it has left that. */
static void signal_program(pid_t leader, int signal)
{
	kill(-leader, signal);
	if (getpgid(leader) != leader)
		kill(leader, signal);
}

/* Kills the groups that it has been told of when nobody is left to do so. */
static void guard(int from)
{
	pid_t group[2];
	unsigned n = 0;

	setsid();
	while (n < 2 && read(from, &group[n], sizeof(group[n])) == sizeof(group[n]))
		n++;
	while (n == 2 && read(from, &group[0], 1) > 0)
		;
	while (n)
		signal_program(group[--n], SIGKILL);
	_exit(0);
}

static bool start_guard(void)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		return false;
	s.guard = fork();
	if (s.guard == 0) {
		close(fds[1]);
		guard(fds[0]);
	}
	close(fds[0]);
	s.to_guard = fds[1];
	return s.guard > 0;
}

static void be_program(unsigned i, int out)
{
	setpgid(0, 0);
	become_child();
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	if (!s.how->run[i] && !ur_between_hosts_enter(&s.hosts, i)) {
		ur_cmd_fail(0, "cannot enter the network namespace of host %u: %s", i + 1, strerror(errno));
		_exit(UR_EXIT_FAIL);
	}
	ur_between_execute(s.how, i, s.program[i].shown, s.run->seconds);
	ur_cmd_fail(0, "cannot execute '%s': %s", s.program[i].shown->words[0], strerror(errno));
	_exit(errno == ENOENT ? UR_EXIT_NO_PROGRAM : UR_EXIT_CANNOT_RUN);
}

static bool start_program(unsigned i)
{
	struct program *p = &s.program[i];
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		return false;
	fflush(NULL);
	p->pid = fork();
	if (p->pid == 0)
		be_program(i, fds[1]);
	close(fds[1]);
	if (p->pid < 0) {
		p->pid = 0;
		close(fds[0]);
		return false;
	}
	setpgid(p->pid, p->pid);
	if (write(s.to_guard, &p->pid, sizeof(p->pid)) < 0)
		return false;
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	p->out = fds[0];
	p->shown->began = ur_clock_now();
	p->shown->started = true;
	return true;
}

static void start_waiter(void)
{
	s.waiter = fork();
	if (s.waiter == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		become_child();
		if (s.how->run[0])
			ur_between_execute_waiter(s.how);
		else if (ur_between_hosts_enter(&s.hosts, 0))
			ur_between_await_listener();
		_exit(0);
	}
}

static void stop_waiter(void)
{
	if (s.waiter <= 0)
		return;
	kill(s.waiter, SIGKILL);
	waitpid(s.waiter, NULL, 0);
	s.waiter = 0;
}

/* --- while frames move --- */

static bool runs(unsigned i)
{
	return s.program[i].shown->started && !s.program[i].shown->ended;
}

/* It stays a zombie, and its number its own. */
static void note_exit(unsigned i, ur_time now)
{
	struct ur_between_program *shown = s.program[i].shown;
	siginfo_t info = {.si_pid = 0};

	if (!runs(i) || waitid(P_PID, (id_t)s.program[i].pid, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
		return;
	shown->ended = now;
	shown->by_signal = info.si_code != CLD_EXITED;
	shown->status = info.si_status;
	if (s.failed < 0 && !shown->told && (shown->by_signal || shown->status) && shown->counts)
		s.failed = (int)i;
}

static void tell_to_end(unsigned i, ur_time now)
{
	struct program *p = &s.program[i];

	if (!p->told_at)
		signal_program(p->pid, SIGTERM);
	else if (now >= p->told_at + FAREWELL)
		signal_program(p->pid, SIGKILL);
	if (!p->told_at)
		p->told_at = now;
	p->shown->told = true;
}

/* Who has to be told, and when to look again. */
static ur_time end_programs(ur_time now)
{
	const struct ur_between_program *first = s.program[0].shown, *second = s.program[1].shown;

	if (s.how->stop_first && second->ended && runs(0)) {
		s.program[0].shown->counts = false;
		tell_to_end(0, now);
		return now + FAREWELL;
	}
	for (unsigned i = 0; i < 2; i++) {
		const ur_time other = i ? first->ended : second->ended;

		if (!runs(i) || s.failed != (int)!i)
			continue;
		if (now < other + GRACE)
			return other + GRACE;
		tell_to_end(i, now);
		return now + FAREWELL;
	}
	return UR_TIME_NEVER;
}

/* How long the first program may take until it listens. */
static ur_time listen_max(void)
{
	return s.how->run[0] ? LISTEN_FAR : LISTEN_MAX;
}

/* Is it time for the second program? */
static bool is_ready(ur_time now)
{
	if (s.how->start_after)
		return now >= s.program[0].shown->began + s.how->start_after;
	if (s.waiter > 0 && waitpid(s.waiter, NULL, WNOHANG) == s.waiter) {
		s.waiter = 0;
		return true;
	}
	if (now < s.program[0].shown->began + listen_max())
		return s.waiter < 0 || s.program[0].shown->ended;
	fprintf(stderr, "uroce: the first program does not listen; the second one starts now\n");
	return true;
}

static ur_time begin_programs(ur_time now)
{
	const ur_time patience = s.how->start_after ? s.how->start_after : listen_max();

	if (!s.program[0].pid) {
		if (!s.how->start_after)
			start_waiter();
		if (!start_program(0)) {
			s.failed = 0;
			s.run->stop = true;
		}
		return s.program[0].shown->began + patience;
	}
	if (s.program[1].pid)
		return UR_TIME_NEVER;
	if (!is_ready(now))
		return s.program[0].shown->began + patience;
	stop_waiter();
	if (!start_program(1)) {
		s.failed = 1;
		s.run->stop = true;
	}
	return UR_TIME_NEVER;
}

static ur_time look_at_programs(ur_time now)
{
	ur_time next;

	note_exit(0, now);
	note_exit(1, now);
	if (s.failed < 0 || s.program[1].pid) {
		next = begin_programs(now);
	} else { /* without the first program there is nobody to talk to */
		s.run->stop = true;
		return now;
	}
	if (s.program[0].shown->ended && s.program[1].shown->ended)
		s.run->stop = true;
	return ur_min_time(next, end_programs(now));
}

/* --- the end --- */

static bool one_runs(void)
{
	const ur_time now = ur_clock_now();

	note_exit(0, now);
	note_exit(1, now);
	return runs(0) || runs(1);
}

static void nap(void)
{
	const struct timespec t = {.tv_nsec = LOOK_NS};

	nanosleep(&t, NULL);
}

static FILE *open_children(void)
{
	return fopen("/proc/thread-self/children", "re");
}

/* Those that this process has from who it was before it was uroce, such as a shell that had jobs. */
static void remember_children(void)
{
	FILE *f = open_children();

	while (f && s.nearlier < EARLIER && fscanf(f, "%d", &s.earlier[s.nearlier]) == 1)
		s.nearlier++;
	if (f)
		fclose(f);
}

static bool is_earlier(pid_t pid)
{
	for (unsigned i = 0; i < s.nearlier; i++)
		if (s.earlier[i] == pid)
			return true;
	return false;
}

/* Returns how many there were. */
static unsigned kill_children(void)
{
	FILE *f = open_children();
	unsigned n = 0;
	int pid;

	while (f && fscanf(f, "%d", &pid) == 1) {
		if (is_earlier(pid))
			continue;
		kill(pid, SIGKILL);
		waitpid(pid, NULL, WNOHANG);
		n++;
	}
	if (f)
		fclose(f);
	return n;
}

/* Orphans of the programs that have left their groups: this process has become their parent. */
static void kill_orphans(void)
{
	const ur_time until = ur_clock_now() + FAREWELL;

	while (ur_clock_now() < until && kill_children())
		nap();
}

static void clean_up(void)
{
	ur_time until;

	for (unsigned i = 0; i < 2; i++)
		if (runs(i))
			tell_to_end(i, ur_clock_now());
	until = ur_clock_now() + FAREWELL;
	while (one_runs() && ur_clock_now() < until) {
		relay(0);
		relay(1);
		nap();
	}
	for (unsigned i = 0; i < 2; i++) {
		if (!s.program[i].pid)
			continue;
		signal_program(s.program[i].pid, SIGKILL);
		while (one_runs() && runs(i))
			nap();
		while (relay(i) > 0)
			;
		hear_no_more(i);
	}
	stop_waiter();
	if (s.guard > 0)
		kill(s.guard, SIGKILL);
	kill_orphans();
}

/* --- what it comes to --- */

__attribute__((format(printf, 2, 3))) static void conclude(int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s.run->verdict, sizeof(s.run->verdict), fmt, ap);
	va_end(ap);
	s.run->status = status;
}

static void judge_rules(void)
{
	const char *ended = s.program[0].shown->counts ? "both programs ended" : "the second program ended";
	const struct ur_between_rule *rule, *first = NULL;
	unsigned unused = 0, i;

	for (i = 0; (rule = ur_between_rule(s.run->cable, i)); i++) {
		if (rule->row.hits || rule->deleted)
			continue;
		first = first ? first : rule;
		unused++;
	}
	if (!unused)
		conclude(0, "%s with status 0%s", ended, i ? ", and each rule was applied" : "");
	else if (s.how->allow_unused)
		conclude(0, "%s with status 0; %u rule%s never applied", ended, unused, unused == 1 ? " was" : "s were");
	else
		conclude(UR_EXIT_FAIL, "rule %u was never applied, so nothing is proved (--allow-unused permits it): %s", first->number,
			 first->text);
}

static void conclude_by_programs(void)
{
	const struct ur_between_program *p = s.failed < 0 ? NULL : s.program[s.failed].shown;

	if (ur_between_stopped())
		return conclude(STATUS_SIGNAL + ur_between_stopped(), "ended by a signal: %s", strsignal(ur_between_stopped()));
	if (p && !p->ended)
		return conclude(UR_EXIT_FAIL, "program %d could not be started", s.failed + 1);
	if (p && p->by_signal)
		return conclude(STATUS_SIGNAL + p->status, "program %d failed first: %s", s.failed + 1, strsignal(p->status));
	if (p)
		return conclude(p->status, "program %d failed first: status %d", s.failed + 1, p->status);
	for (unsigned i = 0; i < 2; i++) {
		if (s.program[i].shown->ended && !(s.program[i].shown->told && s.program[i].shown->counts))
			continue;
		if (s.run->asked)
			return conclude(UR_EXIT_FAIL, "ended by --tell before program %u had ended", i + 1);
		return conclude(STATUS_LIMIT, "program %u did not end within %llu s", i + 1, (unsigned long long)s.run->seconds);
	}
	judge_rules();
}

static bool split(int n, char **words)
{
	unsigned part = 0;

	for (int i = 0; i < n; i++) {
		struct ur_between_program *p = &s.run->program[part];

		if (strcmp(words[i], "--") == 0) {
			if (++part == 2)
				return false;
			continue;
		}
		if (!p->n++)
			p->words = &words[i];
	}
	return s.run->program[0].n && s.run->program[1].n;
}

/* Hosts of its own, unless there are others. False after a message. */
static bool find_hosts(struct ur_between_run *r, char **interfaces)
{
	static const char *const leads[2] = {"e1", "e2"};

	for (unsigned i = 0; i < 2; i++) {
		s.program[i] = (struct program){.out = -1, .shown = &r->program[i]};
		r->program[i].counts = true;
		r->program[i].address = s.how->run[i] ? s.how->address[i] : s.hosts.address[i];
		r->end[i].name = s.how->run[i] ? interfaces[i] : leads[i];
	}
	return s.how->run[0] || ur_between_hosts_make(&s.hosts, leads, s.how->v6);
}

int ur_between_script_run(struct ur_between_run *r, const struct ur_between_script *how, int n, char **words)
{
	const int interfaces = how->run[0] ? 2 : 0;
	int status;

	s.run = r;
	s.how = how;
	s.failed = -1;
	if (n < interfaces)
		return ur_cmd_fail(
			UR_EXIT_USAGE,
			"give the interfaces that lead to the two hosts: uroce between --script FILE --run1 'ssh HOST1' --run2 'ssh HOST2' "
			"--address1 ADDRESS IF1 IF2 -- PROGRAM1 -- PROGRAM2");
	if (!split(n - interfaces, words + interfaces))
		return ur_cmd_fail(UR_EXIT_USAGE,
				   "give two programs, each after --: 'uroce between --script FILE -- PROGRAM1 -- PROGRAM2'; one with "
				   "a -- of its own has to be started by sh -c");
	sigprocmask(SIG_SETMASK, NULL, &s.signals);
	remember_children();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (!find_hosts(r, words))
		return UR_EXIT_FAIL;
	if (!start_guard())
		return ur_cmd_fail(UR_EXIT_FAIL, "cannot start a process: %s", strerror(errno));
	r->nprograms = 2;
	r->seconds = r->seconds ? r->seconds : LIMIT;
	r->quiet = true;
	r->guest[r->nguests++] = (struct ur_between_guest){.turn = look_at_programs, .fds = outputs, .ready = hear_programs};
	status = ur_between_join(r);
	clean_up();
	if (!status && !r->status) /* else the cable has broken */
		conclude_by_programs();
	return status;
}
