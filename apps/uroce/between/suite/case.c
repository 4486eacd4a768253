/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce between --suite: one case. It is a command like any other, `uroce between --script RULES --json -- PROGRAM -- PROGRAM`, whose
 * report is read. The programs print on lines of their own what the counters of their device were before and after.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/uroce/between/suite/suite.h"
#include "apps/uroce/cli/cmd.h"
#include "base/counters.h"
#include "host/clock.h"

#define WORDS 48
#define OUTPUT (16u << 20) /* bytes that a case may print */
#define LAST 160           /* of what it printed last */
#define PATIENCE 30        /* seconds more for programs on other hosts, which have to be started there */

static volatile pid_t running;        /* 0: none */
static volatile sig_atomic_t stopped; /* by this signal */

int ur_between_suite_stopped(void)
{
	return stopped;
}

static void on_signal(int signal)
{
	stopped = signal;
	if (running > 0)
		kill(running, SIGTERM);
}

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

static void catch_signals(void (*handler)(int))
{
	const struct sigaction action = {.sa_handler = handler};
	struct sigaction was;

	for (unsigned i = 0; i < ur_array_size(signals); i++) {
		sigaction(signals[i], &action, &was);
		if (signals[i] == SIGHUP && was.sa_handler == SIG_IGN) /* nohup(1) */
			sigaction(SIGHUP, &was, NULL);
	}
}

/* While `running` changes. */
static void hold_signals(sigset_t *before)
{
	sigset_t held;

	sigemptyset(&held);
	for (unsigned i = 0; i < ur_array_size(signals); i++)
		sigaddset(&held, signals[i]);
	sigprocmask(SIG_BLOCK, &held, before);
}

/* --- the command --- */

/*
 * What runs at end `i`. It prints the counters of all RDMA devices of the kernel there, of which only that of the case should change,
 * and those that uroce writes at the end of a process, into a folder that goes when this is told to end, too.
 */
static char *script_of(const struct ur_between_suite *s, const struct ur_suite_case *c, unsigned i)
{
	char *text;

	if (asprintf(&text,
		     "c() { for f in /sys/class/infiniband/*/ports/*/hw_counters/*; do [ -r \"$f\" ] && read -r v <\"$f\" && echo \"@count "
		     "$1 ${f##*/} $v\"; done; }; "
		     "d=$(mktemp -d) || exit 1; trap 'rm -r \"$d\"' EXIT; trap 'exit 143' HUP INT TERM; "
		     "export UROCE_COUNTERS=$d/c; c before; %s %s %s; s=$?; c after; "
		     "for f in \"$d\"/*; do [ -r \"$f\" ] && while read -r n v r; do echo \"@count uroce $n $v\"; done <\"$f\"; done; "
		     "exit $s",
		     c->program, s->options[i] ? s->options[i] : "", i ? "{peer}" : "") < 0)
		return NULL;
	return text;
}

/* A file without a name that holds the rules. -1 after a message. */
static int write_rules(const struct ur_suite_case *c)
{
	const int fd = memfd_create("rules", 0);

	for (unsigned i = 0; fd >= 0 && i < c->nrules; i++)
		if (dprintf(fd, "%s\n", c->rule[i]) < 0)
			break;
	if (fd < 0)
		ur_cmd_fail(0, "cannot create a file for the rules: %s", strerror(errno));
	return fd;
}

struct words {
	const char *list[WORDS];
	unsigned n;
};

static void add_option(struct words *w, const char *option, const char *value)
{
	if (!value || !*value)
		return;
	w->list[w->n++] = option;
	w->list[w->n++] = value;
}

static void compose(struct words *w, const struct ur_between_script *script, char **interfaces, const struct ur_suite_case *c,
		    const char *rules, char *const program[2])
{
	static const char *const run[] = {"--run1", "--run2"}, *const address[] = {"--address1", "--address2"};
	static char seconds[24], port[24];

	snprintf(seconds, sizeof(seconds), "%u", c->seconds + (script->run[0] ? PATIENCE : 0));
	snprintf(port, sizeof(port), "%llu", (unsigned long long)script->port);
	w->list[w->n++] = "uroce";
	w->list[w->n++] = "between";
	w->list[w->n++] = "--json";
	w->list[w->n++] = "--allow-unused";
	add_option(w, "--script", rules);
	add_option(w, "--seconds", seconds);
	add_option(w, "--rate", c->rate);
	add_option(w, "--queue", c->queue);
	add_option(w, "--mark-at", c->mark_at);
	if (script->native)
		w->list[w->n++] = "--native";
	for (unsigned i = 0; i < 2; i++) {
		add_option(w, run[i], script->run[i]);
		add_option(w, address[i], script->address[i]);
	}
	if (script->run[0]) {
		add_option(w, "--port", port);
		add_option(w, interfaces[0], interfaces[1]);
	}
	for (unsigned i = 0; i < 2; i++) {
		w->list[w->n++] = "--";
		w->list[w->n++] = "sh";
		add_option(w, "-c", program[i]);
	}
}

/* --- its output --- */

struct output {
	int fd;
	char *text;
	size_t have;
};

/* Reads both to their ends. */
static void read_all(struct output out[2])
{
	struct pollfd fds[2];

	for (;;) {
		for (unsigned i = 0; i < 2; i++)
			fds[i] = (struct pollfd){.fd = out[i].fd, .events = POLLIN};
		if (out[0].fd < 0 && out[1].fd < 0)
			return;
		if (poll(fds, 2, -1) < 0)
			continue; /* a signal, which ends the command, too */
		for (unsigned i = 0; i < 2; i++) {
			ssize_t n;

			if (!fds[i].revents)
				continue;
			n = out[i].have < OUTPUT ? read(out[i].fd, out[i].text + out[i].have, OUTPUT - out[i].have) : 0;
			if (n > 0) {
				out[i].have += (size_t)n;
				continue;
			}
			close(out[i].fd);
			out[i].fd = -1;
		}
	}
}

static void be_command(const struct words *w, const int fd[2], const sigset_t *unheld)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	catch_signals(SIG_DFL);
	sigprocmask(SIG_SETMASK, unheld, NULL);
	dup2(fd[0], STDOUT_FILENO);
	dup2(fd[1], STDERR_FILENO);
	execv("/proc/self/exe", (char *const *)(uintptr_t)w->list);
	_exit(UR_EXIT_CANNOT_RUN);
}

/* False after a message, or when a signal has come before. */
static bool start_child(const struct words *w, const int to[2])
{
	sigset_t before;

	fflush(NULL);
	hold_signals(&before);
	running = stopped ? 0 : fork();
	if (running == 0 && !stopped)
		be_command(w, to, &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (running < 0)
		ur_cmd_fail(0, "cannot start a process: %s", strerror(errno));
	return running > 0;
}

/* Its number is its own until nobody sends it signals any more. */
static void reap_child(void)
{
	siginfo_t info;
	sigset_t before;

	while (waitid(P_PID, (id_t)running, &info, WEXITED | WNOWAIT) && errno == EINTR)
		;
	hold_signals(&before);
	waitpid(running, NULL, 0);
	running = 0;
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/* Standard output and error; the texts are the caller's. False after a message, or when a signal has come before. */
static bool execute(const struct words *w, struct output out[2])
{
	int pair[2], to[2] = {-1, -1};
	bool began;

	for (unsigned i = 0; i < 2; i++) {
		out[i] = (struct output){.fd = -1, .text = calloc(1, OUTPUT + 1)};
		if (!out[i].text || pipe2(pair, O_CLOEXEC)) {
			ur_cmd_fail(0, "cannot read what a case prints: %s", strerror(errno));
			break;
		}
		out[i].fd = pair[0];
		to[i] = pair[1];
	}
	began = to[1] >= 0 && start_child(w, to);
	for (unsigned i = 0; i < 2; i++)
		if (to[i] >= 0)
			close(to[i]);
	read_all(out);
	if (began)
		reap_child();
	return began;
}

/* --- its output --- */

/* uroce does not write what has not moved. */
static void begin_counts(struct ur_suite_facts *f, const char *end)
{
	char fact[UR_SUITE_NAME];

	for (unsigned i = 0; i < UR_C_COUNT; i++) {
		snprintf(fact, sizeof(fact), "%s.%s", end, ur_counter_name((enum ur_counter)i));
		if (!ur_suite_fact(f, fact))
			ur_suite_set(f, fact, UR_SUITE_NUMBER, 0);
	}
}

/* "1| @count before duplicate_request 3": facts that begin with the name of the end. */
static bool read_count(struct ur_suite_facts *f, const char *line)
{
	static const char *const ends[] = {"server", "client"};
	char when[8], name[32], fact[UR_SUITE_NAME];
	unsigned end;
	double value;

	if (sscanf(line, "%u| @count %7s %31s %lf", &end, when, name, &value) != 4 || end < 1 || end > 2)
		return false;
	snprintf(fact, sizeof(fact), "%s.%s", ends[end - 1], name);
	if (strcmp(when, "uroce") == 0 && !ur_suite_fact(f, fact))
		begin_counts(f, ends[end - 1]);
	if (strcmp(when, "before") == 0)
		value = -value;
	ur_suite_set(f, fact, UR_SUITE_NUMBER, ur_suite_number(f, fact) + value);
	return true;
}

/* `programs`: the last line is that of a program. */
static void read_lines(const struct output *out, struct ur_suite_facts *f, bool programs, char last[LAST])
{
	for (size_t i = 0; i < out->have; i++)
		if (!out->text[i])
			out->text[i] = ' '; /* programs may print zeros */
	for (char *save, *line = strtok_r(out->text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (!read_count(f, line) && line[strspn(line, "12| -")] && (!programs || line[1] == '|'))
			snprintf(last, LAST, "%s", line);
}

static void conclude(const struct ur_suite_case *c, const struct output out[2], struct ur_between_tried *to)
{
	json_t *report = json_loadb(out[0].text, out[0].have, 0, NULL);
	char last[LAST] = "";
	size_t n;

	if (ur_suite_facts_read(&to->facts, report)) {
		read_lines(&out[1], &to->facts, true, last);
		to->verdict = ur_suite_judge(c, &to->facts, to->why, sizeof(to->why));
		ur_suite_describe(&to->facts, to->did, sizeof(to->did));
	} else {
		read_lines(&out[1], &to->facts, false, last);
		to->verdict = UR_SUITE_UNTESTED;
		snprintf(to->why, sizeof(to->why), "the cable wrote no report");
	}
	json_decref(report);
	n = strlen(to->why);
	if (to->verdict >= UR_SUITE_UNTESTED && *last && n < sizeof(to->why))
		snprintf(to->why + n, sizeof(to->why) - n, "; last output: %s", last);
}

static bool try_once(const struct ur_between_suite *s, const struct ur_between_script *script, char **interfaces,
		     const struct ur_suite_case *c, struct ur_between_tried *to)
{
	char *program[2] = {script_of(s, c, 0), script_of(s, c, 1)}, rules[32];
	const int fd = write_rules(c);
	const ur_time began = ur_clock_now();
	struct output out[2] = {{.fd = -1}, {.fd = -1}};
	struct words w = {.n = 0};
	bool done = fd >= 0 && program[0] && program[1];

	*to = (struct ur_between_tried){.seconds = 0};
	snprintf(rules, sizeof(rules), "/proc/self/fd/%d", fd);
	if (done) {
		compose(&w, script, interfaces, c, rules, program);
		done = execute(&w, out) && !stopped;
	}
	if (done)
		conclude(c, out, to);
	to->seconds = (double)(ur_clock_now() - began) / UR_NS_PER_S;
	for (unsigned i = 0; i < 2; i++) {
		free(out[i].text);
		free(program[i]);
	}
	if (fd >= 0)
		close(fd);
	return done;
}

/* What does not happen again is worth a note, but no verdict on a host: machines are busy, and lose frames where no cable sees it. */
bool ur_between_suite_try(const struct ur_between_suite *s, const struct ur_between_script *script, char **interfaces,
			  const struct ur_suite_case *c, struct ur_between_tried *to)
{
	static struct ur_between_tried first;
	size_t n;

	catch_signals(on_signal);
	if (!try_once(s, script, interfaces, c, to))
		return false;
	if (to->verdict < UR_SUITE_UNTESTED)
		return true;
	first = *to;
	if (!try_once(s, script, interfaces, c, to))
		return false;
	if (first.verdict != UR_SUITE_FAIL || to->verdict == UR_SUITE_FAIL)
		return true;
	to->verdict = UR_SUITE_NOTE;
	n = strlen(to->why);
	snprintf(to->why + n, sizeof(to->why) - n, "%sin one of two attempts: %s", n ? "; " : "", first.why);
	return true;
}
