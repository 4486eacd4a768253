/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handlers for SIGSEGV and SIGBUS. A fault of an access that may be given up continues in ur_touch_give_up, outside of the handler: the
 * kernel then restores signal mask and alternate stack as after any handler. Everything else is the program's: its handler is called with
 * the mask that the kernel would have set, and without one the default is restored, so that the fault happens again and ends the process
 * where it should.
 *
 * A program may set handlers whenever it likes. Interposing sigaction(2) and its relatives would tell, and would be in the way of every
 * program; so each registration looks, and every thread that moves packets does once a millisecond.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/touch.h"
#include "engine/catch.h"

#define SIGNALS 2
static const int caught[SIGNALS] = {SIGSEGV, SIGBUS};

/*
 * The program's handlers. A handler may run while they change, so a change fills the next of a few and then says so; nobody is still
 * reading one that is that old.
 */
#define GENERATIONS 8
static struct sigaction program[GENERATIONS][SIGNALS];
static atomic_uint generation;
_Atomic ur_time ur_catch_at;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool started;
static pthread_key_t state; /* ur_touch_mine of a thread that was admitted; to read it is safe in a handler */

/* --- where a fault continues --- */

#if defined(__x86_64__)
#define KNOWN true
#define RED_ZONE 128

static void continue_in(ucontext_t *uc, void (*fn)(void))
{
	greg_t *r = uc->uc_mcontext.gregs;

	/* As after a call: the stack is aligned except for the return address, which is never used. */
	r[REG_RSP] = ((r[REG_RSP] - RED_ZONE) & ~15ll) - 8;
	r[REG_RIP] = (greg_t)(uintptr_t)fn;
	r[REG_EFL] &= ~0x400ll; /* a copy that ran backwards */
}
#elif defined(__aarch64__)
#define KNOWN true

static void continue_in(ucontext_t *uc, void (*fn)(void))
{
	uc->uc_mcontext.pc = (uintptr_t)fn;
}
#else
#define KNOWN false

static void continue_in(ucontext_t *uc, void (*fn)(void))
{
	(void)uc;
	(void)fn;
}
#endif

/* --- what is not ours --- */

/* The fault that a thread has passed on last, and from how deep in the stack. By thread; who comes second to a place takes it over. */
#define PASSED 64
static struct passed {
	pid_t thread;
	const siginfo_t *info;
	const void *frame;
} passed[PASSED];

static void use_default(int sig, bool by_fault)
{
	struct sigaction dfl = {.sa_handler = SIG_DFL};

	sigaction(sig, &dfl, NULL);
	if (!by_fault)
		raise(sig); /* a fault happens again when the handler returns */
}

static const struct sigaction *programs(int sig)
{
	return &program[atomic_load(&generation) % GENERATIONS][sig == SIGBUS];
}

/* The program's handler has called ours: it has nobody else to ask. A stale note of one that left by siglongjmp(3) is not deeper. */
static bool comes_back(const struct passed *p, pid_t thread, const siginfo_t *info, const void *frame)
{
	return p->thread == thread && p->info == info && (uintptr_t)frame < (uintptr_t)p->frame;
}

static void pass_on(int sig, siginfo_t *info, void *ucontext)
{
	const pid_t thread = gettid();
	struct passed *p = &passed[(unsigned)thread % PASSED];
	const struct sigaction act = *programs(sig);
	bool by_fault = info->si_code > 0;
	void *frame = __builtin_frame_address(0);
	sigset_t mask = act.sa_mask;

	if (act.sa_handler == SIG_IGN && !by_fault)
		return;
	if (act.sa_handler == SIG_DFL || act.sa_handler == SIG_IGN || comes_back(p, thread, info, frame)) {
		use_default(sig, by_fault);
		return;
	}
	*p = (struct passed){thread, info, frame};
	if (!(act.sa_flags & SA_NODEFER))
		sigaddset(&mask, sig);
	pthread_sigmask(SIG_BLOCK, &mask, NULL);
	if (act.sa_flags & SA_SIGINFO)
		act.sa_sigaction(sig, info, ucontext);
	else
		act.sa_handler(sig);
	p->info = NULL;
}

/* --- the handlers --- */

static void on_fault(int sig, siginfo_t *info, void *ucontext)
{
	const void *mine = pthread_getspecific(state);
	int err = errno;

	if (info->si_code > 0 && mine && ur_touch_pending(mine))
		continue_in(ucontext, ur_touch_give_up);
	else
		pass_on(sig, info, ucontext);
	errno = err;
}

static bool is_ours(const struct sigaction *a)
{
	return a->sa_flags & SA_SIGINFO && a->sa_sigaction == on_fault;
}

static void save_handlers(const struct sigaction there[SIGNALS])
{
	unsigned now = atomic_load(&generation), next = (now + 1) % GENERATIONS;

	for (unsigned i = 0; i < SIGNALS; i++)
		program[next][i] = is_ours(&there[i]) ? program[now % GENERATIONS][i] : there[i];
	atomic_store(&generation, next);
}

/* Under the lock. The program's are kept before ours can be called; one that it sets between the two calls is what ours replace. */
static void install_handlers(void)
{
	/* SA_NODEFER: the mask is ours to set for the program's handler, and one that jumps away finds it as it would have been. */
	struct sigaction ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART};
	struct sigaction there[SIGNALS], replaced[SIGNALS];

	for (unsigned i = 0; i < SIGNALS; i++)
		sigaction(caught[i], NULL, &there[i]);
	if (is_ours(&there[0]) && is_ours(&there[1]))
		return;
	save_handlers(there);
	for (unsigned i = 0; i < SIGNALS; i++)
		sigaction(caught[i], &ours, &replaced[i]);
	save_handlers(replaced);
}

bool ur_catch_start(void)
{
	if (!KNOWN || atomic_load(&started))
		return KNOWN;
	pthread_mutex_lock(&lock);
	if (!atomic_load(&started) && !pthread_key_create(&state, NULL)) {
		install_handlers();
		atomic_store(&started, true);
	}
	pthread_mutex_unlock(&lock);
	return atomic_load(&started);
}

void ur_catch_again(void)
{
	if (!atomic_load_explicit(&started, memory_order_relaxed) || pthread_mutex_trylock(&lock))
		return;
	install_handlers();
	pthread_mutex_unlock(&lock);
}

void ur_catch_admit(void)
{
	static _Thread_local bool done;
	sigset_t set;

	if (ur_likely(done) || !atomic_load(&started))
		return;
	done = pthread_setspecific(state, ur_touch_mine()) == 0;
	sigemptyset(&set);
	for (unsigned i = 0; i < SIGNALS; i++)
		sigaddset(&set, caught[i]);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}
