/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce between: frames from one end to the other, and the loop that waits for them. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apps/uroce/between/between.h"
#include "apps/uroce/between/train.h"
#include "apps/uroce/between/wait.h"
#include "apps/uroce/cli/cmd.h"
#include "host/clock.h"

#define LOOK UR_NS_PER_S
#define ARENA (4u << 20) /* packets of trains that have been cut and not been sent */

static struct ur_between_run *run;

static struct {
	ur_time look; /* at the ends, whether they are there */
	struct ur_between_frame frames[2][UR_BETWEEN_BATCH];
	struct ur_between_capture *capture;
	ur_time to_wall;        /* from the monotonic clock to the time of day */
	ur_time now;            /* the cable's, which does not go back */
	const uint8_t *current; /* the frame that is on its way in: its bytes stay until the flush */
	unsigned end;           /* where it came in */
	unsigned did;           /* to it */
	struct {
		struct ur_between_train is;
		bool in; /* the frame is a packet of it: bytes from `at` to `at` + `len` */
		uint32_t at, len;
		uint32_t from, to;              /* what goes on as it came, as a train; to 0: nothing */
		uint8_t under[UR_BETWEEN_HEAD]; /* what lies where the packet's headers lie now; or these, while that is back in its place
						 */
	} train;
	uint8_t *arena;
	uint32_t used; /* of it */
} mover;

/* --- frames --- */

/* The packets of a train to which nothing was done go on as a train. */
static void end_part(void)
{
	uint8_t head[UR_BETWEEN_HEAD];
	const uint32_t from = mover.train.from, to = mover.train.to;

	if (to) {
		struct ur_between_out out = {
			.head = head, .head_len = mover.train.is.begin, .data = mover.train.is.frame->data + from, .len = to - from};

		ur_between_head(&mover.train.is, from, to, head);
		ur_between_head_vnet(&mover.train.is, from, to, &out.vnet);
		ur_between_queue(&run->end[!mover.end], &out);
	}
	mover.train.from = mover.train.to = 0;
}

static void flush(void)
{
	ur_between_flush(&run->end[0]);
	ur_between_flush(&run->end[1]);
	mover.used = 0;
}

/*
 * A packet of a train becomes a frame where it lies: its headers are laid over the end of the packet before it, and that comes back
 * afterwards. Whenever something may be sent it has to be back.
 */
static void swap_head(void)
{
	uint8_t *at = mover.train.is.frame->data + mover.train.at - mover.train.is.begin, other[UR_BETWEEN_HEAD];

	memcpy(other, at, mover.train.is.begin);
	memcpy(at, mover.train.under, mover.train.is.begin);
	memcpy(mover.train.under, other, mover.train.is.begin);
}

/* A packet of a train to which something was done, as a frame of its own; its headers lie aside. */
static const uint8_t *copy_to_arena(uint32_t len)
{
	const uint32_t begin = ur_min_u32(mover.train.is.begin, len);
	uint8_t *to;

	if (len > ARENA - mover.used)
		flush();
	to = mover.arena + mover.used;
	memcpy(to, mover.train.under, begin);
	memcpy(to + begin, mover.train.is.frame->data + mover.train.at, len - begin);
	mover.used += len;
	return to;
}

static void leave_alone(unsigned end, const uint8_t *frame, uint32_t len, const uint8_t *extra, bool current)
{
	struct ur_between_out out = {.data = frame, .len = len};

	if (mover.train.in && current)
		out.data = copy_to_arena(len);
	memcpy(&out.vnet, extra, sizeof(out.vnet));
	ur_between_queue(&run->end[end], &out);
	if (!current)
		ur_between_flush(&run->end[end]);
}

static void emit_frame(void *ctx, unsigned end, const uint8_t *frame, uint32_t len, const uint8_t *extra)
{
	const bool current = frame == mover.current;

	(void)ctx;
	if (mover.train.in && current && !mover.did) {
		if (mover.train.to != mover.train.at) {
			swap_head();
			end_part();
			swap_head();
			mover.train.from = mover.train.at;
		}
		mover.train.to = mover.train.at + mover.train.len;
		return;
	}
	if (mover.train.in) {
		swap_head();
		end_part();
	}
	leave_alone(end, frame, len, extra, current);
	if (mover.train.in)
		swap_head();
}

static void judged(void *ctx, ur_time now, unsigned end, const uint8_t *frame, uint32_t len, const struct ur_between_fate *fate)
{
	char text[256];

	(void)ctx;
	mover.did = fate->did;
	if (!mover.capture)
		return;
	ur_between_did_text(fate, text, sizeof(text));
	ur_between_capture_frame(mover.capture, now + mover.to_wall, end, frame, len, text);
}

static void come_in(uint8_t *frame, uint32_t len, const struct virtio_net_hdr *vnet)
{
	uint8_t extra[UR_BETWEEN_EXTRA] = {0};

	memcpy(extra, vnet, sizeof(*vnet));
	mover.current = frame;
	ur_between_in(run->cable, mover.now, mover.end, frame, len, extra);
	mover.current = NULL;
}

/* Each packet of it by itself, as a frame. */
static void take_apart(bool acts)
{
	const struct ur_between_train *t = &mover.train.is;
	struct virtio_net_hdr vnet;

	mover.train.in = true;
	for (uint32_t at = t->begin; at < t->frame->len; at += mover.train.len) {
		uint8_t *frame = t->frame->data + at - t->begin;

		mover.train.at = at;
		mover.train.len = ur_min_u32(t->frame->vnet.gso_size, t->frame->len - at);
		ur_between_head(t, at, at + mover.train.len, mover.train.under);
		swap_head();
		if (acts) {
			ur_between_head_vnet(t, at, at + mover.train.len, &vnet);
			come_in(frame, t->begin + mover.train.len, &vnet);
		} else {
			ur_between_note(run->cable, mover.now, mover.end, frame, t->begin + mover.train.len, t->begin + mover.train.len);
		}
		swap_head();
	}
	mover.train.in = false;
}

static void pass_on(struct ur_between_frame *f)
{
	const bool acts = ur_between_acts(run->cable); /* which may change on the way, when the last that was held has left */

	if (!ur_between_train_begin(&mover.train.is, f)) {
		come_in(f->data, f->len, &f->vnet);
		return;
	}
	take_apart(acts);
	if (acts)
		end_part();
	else
		ur_between_queue(&run->end[!mover.end], &(struct ur_between_out){.data = f->data, .len = f->len, .vnet = f->vnet});
}

/*
 * What has come at both ends, in the order in which it came: an answer is not judged before the packet that it answers. What comes at one
 * end while the other one is read may still be late; its time is then that of the last before it.
 */
static void fetch(const bool ready[2])
{
	unsigned n[2], i[2] = {0, 0};

	for (unsigned end = 0; end < 2; end++)
		n[end] = ready[end] ? ur_between_receive(&run->end[end], mover.frames[end]) : 0;
	ur_between_run(run->cable, ur_clock_now()); /* what was due before they are judged leaves before them */
	while (i[0] < n[0] || i[1] < n[1]) {
		const struct ur_between_frame *const f[2] = {&mover.frames[0][i[0]], &mover.frames[1][i[1]]};

		mover.end = i[0] == n[0] || (i[1] < n[1] && f[1]->when < f[0]->when);
		mover.now = ur_max_time(mover.now, f[mover.end]->when);
		pass_on(&mover.frames[mover.end][i[mover.end]++]);
	}
	flush();
}

/* --- the loop --- */

static volatile sig_atomic_t stopped; /* by this signal */

static void on_signal(int signal)
{
	stopped = signal;
}

/* A child has ended: the loop turns. */
static void wake(int signal)
{
	(void)signal;
}

int ur_between_stopped(void)
{
	return stopped;
}

static ur_time turn_guests(ur_time now)
{
	ur_time next = UR_TIME_NEVER;

	for (unsigned i = 0; i < run->nguests; i++)
		next = ur_min_time(next, run->guest[i].turn(now));
	return next;
}

/* What guests wait for, behind the two ends. */
static unsigned guests_fds(struct pollfd *fds)
{
	unsigned n = 0;

	for (unsigned i = 0; i < run->nguests; i++)
		n += run->guest[i].fds(fds + n);
	return n;
}

/* What one of them changes applies to what comes in later; everything else is judged as if it came after that. */
static void serve_guests(const struct pollfd *fds, unsigned n)
{
	bool any = false;

	for (unsigned i = 0; i < n; i++)
		any |= fds[i].revents != 0;
	for (unsigned i = 0; i < run->nguests; i++)
		fds += run->guest[i].ready(fds);
	if (any)
		mover.now = ur_clock_now();
}

/* An end without a descriptor is polled each time. */
static bool is_ready(unsigned end, const struct pollfd *fds)
{
	return run->end[end].fd < 0 || fds[end].revents;
}

static bool sleep_until(ur_time now, ur_time at, struct pollfd *fds, unsigned n, const sigset_t *unblocked)
{
	const struct ur_between_wait w = {.now = now,
					  .due = ur_between_next(run->cable),
					  .other = at,
					  .asks = run->end[0].fd < 0 || run->end[1].fd < 0,
					  .last = mover.now};

	for (unsigned i = 0; i < 2; i++)
		fds[i] = (struct pollfd){.fd = run->end[i].fd, .events = POLLIN};
	return ur_between_wait(&w, fds, n, unblocked);
}

/* An interface that is removed takes the cable with it. */
static void look_at_ends(ur_time now)
{
	const char *gone = NULL;

	if (now < mover.look)
		return;
	mover.look = now + LOOK;
	for (unsigned i = 0; !gone && i < 2; i++)
		gone = ur_between_gone(&run->end[i]);
	if (!gone)
		return;
	snprintf(run->verdict, sizeof(run->verdict), "interface %s has been removed: join again when there is one", gone);
	run->status = UR_EXIT_FAIL;
	run->stop = true;
}

static void move_until_stopped(const sigset_t *unblocked)
{
	struct pollfd fds[2 + UR_BETWEEN_GUESTS * UR_BETWEEN_GUEST_FDS];
	const ur_time stop_at = run->seconds ? run->began + run->seconds * UR_NS_PER_S : UR_TIME_NEVER;

	for (ur_time now = run->began; !stopped && now < stop_at; now = ur_clock_now()) {
		const ur_time at = ur_min_time(turn_guests(now), stop_at);
		unsigned n;

		look_at_ends(now);
		if (run->stop)
			return;
		n = 2 + guests_fds(fds + 2);
		if (!sleep_until(now, at, fds, n, unblocked))
			continue; /* a signal */
		ur_between_run(run->cable, ur_clock_now());
		fetch((const bool[2]){is_ready(0, fds), is_ready(1, fds)});
		serve_guests(fds + 2, n - 2);
	}
}

/* Signals come only while it waits. */
static void catch_signals(sigset_t *before)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
	const struct sigaction end = {.sa_handler = on_signal}, child = {.sa_handler = wake};
	struct sigaction was;
	sigset_t ours;

	sigemptyset(&ours);
	sigaddset(&ours, SIGCHLD);
	for (unsigned i = 0; i < ur_array_size(ends); i++)
		sigaddset(&ours, ends[i]);
	sigprocmask(SIG_BLOCK, &ours, before);
	sigaction(SIGCHLD, &child, NULL);
	sigdelset(before, SIGCHLD);
	for (unsigned i = 0; i < ur_array_size(ends); i++) {
		sigaction(ends[i], &end, &was);
		if (ends[i] == SIGHUP && was.sa_handler == SIG_IGN) /* nohup(1) */
			sigaction(SIGHUP, &was, NULL);
		sigdelset(before, ends[i]);
	}
}

/* As the command line has them. False: out of memory. */
static bool set_rules(void)
{
	for (unsigned i = 0; i < run->nrules; i++)
		if (!ur_between_add(run->cable, 0, &run->rules[i], run->text[i]))
			return false;
	return ur_between_set_limit(run->cable, 0, &run->limit) == 0;
}

static int run_cable(void)
{
	const struct ur_between_host host = {.send = emit_frame, .judged = judged};
	sigset_t unblocked;

	mover.arena = malloc(ARENA);
	run->cable = ur_between_create(run->seed, &host);
	if (!mover.arena || !run->cable || !set_rules())
		return ur_cmd_fail(UR_EXIT_FAIL, "out of memory: free some and try again");
	if (!ur_between_wait_begin(run->realtime))
		return UR_EXIT_FAIL;
	catch_signals(&unblocked);
	if (!ur_between_open(&run->end[0]) || !ur_between_open(&run->end[1]))
		return UR_EXIT_FAIL;
	if (!run->quiet && run->proxied.is)
		fprintf(stderr, "uroce: %s reaches %s at %s, and %s reaches %s at %s\n", run->end[0].name, run->end[1].name,
			run->proxied.address[0], run->end[1].name, run->end[0].name, run->proxied.address[1]);
	if (!run->quiet)
		fprintf(stderr, "uroce: %s and %s are joined; Ctrl-C ends that\n", run->end[0].name, run->end[1].name);
	mover.now = run->began = ur_clock_now();
	move_until_stopped(&unblocked);
	ur_between_unpause(run->cable);
	ur_between_report_now(run);
	return 0;
}

int ur_between_join(struct ur_between_run *r)
{
	int status;

	run = r;
	run->end[0].fd = run->end[1].fd = -1;
	mover.to_wall = ur_clock_wall() - ur_clock_now();
	if (run->capture && !(mover.capture = ur_between_capture_open(run->capture, run->end[0].name, run->end[1].name)))
		return UR_EXIT_FAIL;
	status = run_cable();
	if (mover.capture && !ur_between_capture_close(mover.capture) && !status)
		status = UR_EXIT_FAIL;
	ur_between_close(&run->end[0]);
	ur_between_close(&run->end[1]);
	free(mover.arena);
	return status;
}
