/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starting DPDK's EAL inside somebody else's process: once, quietly, without files, and without a trace on the calling thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_alarm.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_memory.h>

#include "drivers/ethdev/internal.h"

#define EAL_MAX_ARGS 64
#define NOHUGE_MB 192  /* address space, not memory: pages are touched as they are used */
#define HUGE_2M_MIN 16 /* free pages below which we leave them alone: twice what an engine takes */
/* Where EAL's memory of a NIC's begins: from EAL's own choice on, and so low that an IOMMU of 39 bits reaches all of it. */
#define BASE_FIRST (4ull << 30)
#define BASE_STEP (256ull << 20) /* more than a program's heap */
#define BASES 1008
#define LOG_LINE 256
#define LOG_TEXT 8192 /* what EAL says while it starts has room twice over */
#define OWN_DIR "--file-prefix=uroce-%d" /* the runtime directory, of this process alone */

static pthread_mutex_t eal_lock = PTHREAD_MUTEX_INITIALIZER;
static enum { EAL_DOWN, EAL_UP, EAL_FAILED } eal_state;
static pid_t eal_pid;
static bool eal_private;

static char log_line[LOG_LINE];
static char log_text[LOG_TEXT];
static size_t log_used;
static bool log_show;

/* Beyond what has room, the oldest half goes. */
static void log_keep(const char *buf, size_t n)
{
	if (n > LOG_TEXT / 4)
		n = LOG_TEXT / 4;
	if (log_used + n >= LOG_TEXT) {
		memmove(log_text, log_text + LOG_TEXT / 2, log_used - LOG_TEXT / 2);
		log_used -= LOG_TEXT / 2;
	}
	memcpy(log_text + log_used, buf, n);
	log_used += n;
	log_text[log_used] = 0;
}

/*
 * Keeps what was said, and apart from it the last line that is not blank; DPDK's first complaint is usually the vaguest, its last before an
 * error the cause.
 */
static ssize_t log_write(void *cookie, const char *buf, size_t len)
{
	size_t n = len;

	(void)cookie;
	if (log_show)
		fwrite(buf, 1, len, stderr);
	log_keep(buf, len);
	while (n && (buf[n - 1] == '\n' || buf[n - 1] == ' '))
		n--;
	if (n) {
		n = n < LOG_LINE ? n : LOG_LINE - 1;
		memcpy(log_line, buf, n);
		log_line[n] = 0;
		for (char *p = log_line; *p; p++)
			if (*p == '\n')
				*p = ' ';
	}
	return (ssize_t)len;
}

static void log_capture(void)
{
	static const cookie_io_functions_t io = {.write = log_write};
	const char *level = secure_getenv("UROCE_LOG");
	FILE *f = fopencookie(NULL, "w", io);

	log_show = level && strcmp(level, "debug") == 0;
	if (f) {
		setvbuf(f, NULL, _IOLBF, 0);
		rte_openlog_stream(f);
	}
}

void ur_eal_forget_log(void)
{
	log_line[0] = 0;
}

const char *ur_eal_more_log(void)
{
	return log_show ? "" : ": UROCE_LOG=debug shows more";
}

const char *ur_eal_last_log(void)
{
	return log_line[0] ? log_line : "no reason given";
}

bool ur_eal_has_logged(const char *words)
{
	return strstr(log_text, words) != NULL;
}

struct ur_eal_guard {
	cpu_set_t cpus;
	bool have_cpus;
	sigset_t mask;
	struct sigaction act[NSIG];
};

struct ur_eal_guard *ur_eal_guard_begin(void)
{
	static const int sync_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
	struct ur_eal_guard *g = calloc(1, sizeof(*g));
	sigset_t all;

	if (!g)
		return NULL;
	g->have_cpus = sched_getaffinity(0, sizeof(g->cpus), &g->cpus) == 0;
	sigfillset(&all);
	for (unsigned i = 0; i < ur_array_size(sync_signals); i++)
		sigdelset(&all, sync_signals[i]);
	pthread_sigmask(SIG_BLOCK, &all, &g->mask);
	for (int i = 1; i < NSIG; i++)
		sigaction(i, NULL, &g->act[i]);
	return g;
}

void ur_eal_guard_hide_signals(const struct ur_eal_guard *g)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};

	for (int i = SIGRTMIN; i < NSIG; i++)
		if (g->act[i].sa_handler == SIG_DFL)
			sigaction(i, &ignore, NULL);
}

void ur_eal_guard_end(struct ur_eal_guard *g)
{
	struct sigaction now;

	for (int i = 1; i < NSIG; i++)
		if (sigaction(i, NULL, &now) == 0 && now.sa_handler != g->act[i].sa_handler)
			sigaction(i, &g->act[i], NULL);
	if (g->have_cpus)
		sched_setaffinity(0, sizeof(g->cpus), &g->cpus);
	pthread_sigmask(SIG_SETMASK, &g->mask, NULL);
	free(g);
}

struct eal_args {
	char *v[EAL_MAX_ARGS + 1];
	int n;
	char buf[2048];
	size_t used;
	bool overflow;
};

static void arg_add(struct eal_args *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void arg_add(struct eal_args *a, const char *fmt, ...)
{
	size_t room = sizeof(a->buf) - a->used;
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(a->buf + a->used, room, fmt, ap);
	va_end(ap);
	if (a->n == EAL_MAX_ARGS || len < 0 || (size_t)len >= room) {
		a->overflow = true;
		return;
	}
	a->v[a->n++] = a->buf + a->used;
	a->used += (size_t)len + 1;
}

static bool arg_given(const char *user, const char *const *opts)
{
	for (; user && *opts; opts++)
		for (const char *p = user; (p = strstr(p, *opts)); p++)
			if (p == user || p[-1] == ' ')
				return true;
	return false;
}

static unsigned long free_hugepages(void)
{
	FILE *f = fopen("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "re");
	unsigned long n = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%lu", &n) != 1)
		n = 0;
	fclose(f);
	return n;
}

/* A CPU that this thread may run on: cgroups and cpusets often leave out CPU 0, which EAL would take. */
static int allowed_cpu(void)
{
	int cpu = sched_getcpu();
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return cpu < 0 ? 0 : cpu;
	if (cpu >= 0 && CPU_ISSET((size_t)cpu, &set))
		return cpu;
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET((size_t)cpu, &set))
			return cpu;
	return 0;
}

/*
 * Where EAL's heap comes from. Devices that copy need no hugepages, which are scarce and stay shared after fork; hardware, and
 * devices that hand memory to another process, get them when there are enough.
 */
static void memory_args(struct eal_args *a, const struct ur_ethdev_config *cfg, bool shares)
{
	static const char *const size[] = {"-m", NULL};

	if (!cfg->pci)
		arg_add(a, "--iova-mode=va"); /* for a NIC EAL goes by what it and its IOMMU can */
	if (shares && free_hugepages() >= HUGE_2M_MIN) {
		arg_add(a, "--in-memory");
		return;
	}
	arg_add(a, "--no-huge");
	arg_add(a, "--no-shconf");
	arg_add(a, OWN_DIR, (int)getpid());
	if (!arg_given(cfg->eal_args, size)) {
		arg_add(a, "-m");
		arg_add(a, "%d", NOHUGE_MB);
	}
}

/*
 * A NIC whose reset does nothing still has the rings of a program that was killed, and EAL lets it read and write before its driver stops
 * it. What it then reaches for must not be this program's memory, so each has its own at other addresses, and the IOMMU does the rest.
 */
static void address_arg(struct eal_args *a, const struct ur_ethdev_config *cfg)
{
	static const char *const base[] = {"--base-virtaddr", NULL};
	uint32_t random;

	if (!arg_given(cfg->eal_args, base) && getrandom(&random, sizeof(random), GRND_NONBLOCK) == sizeof(random))
		arg_add(a, "--base-virtaddr=0x%llx", BASE_FIRST + random % BASES * BASE_STEP);
}

/* With one of them in the arguments that the user gives, EAL's memory is the user's affair. */
static const char *const memory_options[] = {"--no-huge", "--in-memory", "--huge-", "--socket-mem", "--legacy-mem", "--no-shconf", NULL};

static void build_args(struct eal_args *a, const struct ur_ethdev_config *cfg, bool shares)
{
	static const char *const alone[] = {"--in-memory", "--file-prefix", NULL};
	static const char *const cores[] = {"-l", "-c", "--lcores", NULL};
	const char *user = cfg->eal_args;
	char *save, copy[1024];

	arg_add(a, "%s", program_invocation_short_name); /* EAL calls openlog with it */
	if (!arg_given(user, cores))
		arg_add(a, "--lcores=0@%d", allowed_cpu());
	arg_add(a, "--no-telemetry"); /* a thread, and a socket that outlives a process that is killed */
	if (!arg_given(user, memory_options))
		memory_args(a, cfg, shares);
	else if (!arg_given(user, alone))
		arg_add(a, OWN_DIR, (int)getpid()); /* or two programs would meet in one heap */
	if (cfg->pci)
		address_arg(a, cfg);
	if (cfg->pci && cfg->pci_args) {
		arg_add(a, "-a");
		arg_add(a, "%s%s", cfg->pci, cfg->pci_args);
	} else if (!cfg->pci) {
		arg_add(a, "--no-pci");
	}
	if (!user)
		return;
	if ((size_t)snprintf(copy, sizeof(copy), "%s", user) >= sizeof(copy))
		a->overflow = true;
	for (char *w = strtok_r(copy, " \t", &save); w; w = strtok_r(NULL, " \t", &save))
		arg_add(a, "%s", w);
}

/* Replaces [base, base + len), a shared mapping of fd at `off`, by private memory with the same contents. */
static int make_private(void *base, size_t len, int fd, off_t off)
{
	uint8_t *copy = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	off_t end = off + (off_t)len, data, hole;

	if (copy == MAP_FAILED)
		return errno;
	for (data = off; (data = lseek(fd, data, SEEK_DATA)) >= 0 && data < end; data = hole) {
		hole = lseek(fd, data, SEEK_HOLE);
		if (hole < 0 || hole > end)
			hole = end;
		memcpy(copy + (data - off), (uint8_t *)base + (data - off), (size_t)(hole - data));
	}
	/* By the system call: UCX replaces mremap(3) in the whole process by one that loses the last argument. */
	if (syscall(SYS_mremap, copy, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, base) == -1) {
		int rc = errno;

		munmap(copy, len);
		return rc;
	}
	return 0;
}

/* Called for each contiguous piece of the heap. */
static int privatize(const struct rte_memseg_list *msl, const struct rte_memseg *ms, size_t len, void *arg)
{
	int fd = rte_memseg_get_fd_thread_unsafe(ms), *memfd = arg;
	size_t off = 0;

	(void)msl;
	if (fd < 0 || rte_memseg_get_fd_offset_thread_unsafe(ms, &off))
		return 0;
	*memfd = fd;
	return make_private(ms->addr, len, fd, (off_t)off) ? -1 : 0;
}

/*
 * Without hugepages EAL's heap is a shared mapping, which a forked child would go on sharing with its parent. Nobody else maps
 * it, unless a device hands it to another process, so private memory does as well and fork copies it as it copies the rest.
 */
static bool privatize_heap(void)
{
	int memfd = -1;

	if (rte_memseg_contig_walk(privatize, &memfd) || memfd < 0)
		return false;
	fcntl(memfd, F_SETFD, FD_CLOEXEC);
	return ftruncate(memfd, 0) == 0;
}

static int eal_init(const struct ur_ethdev_config *cfg, char *err, size_t errlen)
{
	bool shares = ur_ethdev_shares_memory(cfg);
	struct eal_args a = {.n = 0};
	struct ur_eal_guard *guard;
	int rc;

	if (cfg->pci && free_hugepages() < HUGE_2M_MIN && !arg_given(cfg->eal_args, memory_options))
		return ur_port_fail(err, errlen, ENOMEM,
				    "a PCI device needs %d free huge pages of 2 MB: 'sysctl vm.nr_hugepages=%d', or give "
				    "--eal '--no-huge -m 128' if it is behind an IOMMU",
				    HUGE_2M_MIN, HUGE_2M_MIN * 2);
	build_args(&a, cfg, shares);
	if (a.overflow)
		return ur_port_fail(err, errlen, EINVAL, "the EAL arguments are too long: shorten them");
	guard = ur_eal_guard_begin();
	if (!guard)
		return ur_port_fail(err, errlen, ENOMEM, "out of memory");
	log_capture();
	rc = rte_eal_init(a.n, a.v);
	if (rc >= 0) {
		rmdir(rte_eal_get_runtime_dir()); /* made although nothing is put there; stays when it is not empty */
		eal_private = !shares && !rte_eal_has_hugepages() && privatize_heap();
		RTE_PER_LCORE(_lcore_id) = LCORE_ID_ANY; /* enter and leave lend the lcore to the thread that uses a port */
	}
	ur_eal_guard_end(guard);
	eal_state = rc < 0 ? EAL_FAILED : EAL_UP;
	eal_pid = getpid();
	if (rc < 0)
		return ur_port_fail(err, errlen, EIO, "DPDK cannot start (%s; last message: %s)%s", rte_strerror(rte_errno),
				    ur_eal_last_log(), ur_eal_more_log());
	return 0;
}

int ur_eal_start(const struct ur_ethdev_config *cfg, char *err, size_t errlen)
{
	int rc = 0;

	pthread_mutex_lock(&eal_lock);
	if (eal_state == EAL_DOWN)
		rc = eal_init(cfg, err, errlen);
	else if (eal_state == EAL_FAILED)
		rc = ur_port_fail(err, errlen, EIO,
				    "DPDK failed to start earlier in this process (%s) and cannot be tried twice: restart it",
				    ur_eal_last_log());
	pthread_mutex_unlock(&eal_lock);
	return rc;
}

bool ur_eal_started(void)
{
	return eal_state == EAL_UP;
}

bool ur_eal_private(void)
{
	return eal_private;
}

bool ur_eal_forked(void)
{
	return eal_state == EAL_UP && eal_pid != getpid();
}

struct errand {
	void (*fn)(void *);
	void *arg;
	sem_t done;
};

static void run_errand(void *arg)
{
	struct errand *e = arg;

	e->fn(e->arg);
	sem_post(&e->done);
}

/* Waiting is a cancellation point, and a thread cancelled in it would take its errand away under the service thread. */
void ur_eal_in_service(void (*fn)(void *), void *arg)
{
	struct errand e = {.fn = fn, .arg = arg};
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	sem_init(&e.done, 0, 0);
	if (ur_eal_forked() || rte_eal_alarm_set(1, run_errand, &e))
		fn(arg);
	else
		while (sem_wait(&e.done))
			continue;
	sem_destroy(&e.done);
	pthread_setcancelstate(state, NULL);
}
