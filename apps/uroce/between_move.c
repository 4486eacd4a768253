/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce between: frames from one end to the other, and the loop that waits for them. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "between.h"
#include "cmd.h"
#include "host/clock.h"

#define ARENA (4u << 20) /* packets of trains that have been cut and not been sent */
#define LOOK 64          /* bytes of a packet that are enough to count it */

static struct ur_between_run *run;

/* Of a train, what goes on as it came: bytes from one packet to another. */
struct part {
	const struct ur_between_frame *train; /* NULL: what comes in is none */
	uint32_t from, to;
};

static struct {
	struct ur_between_frame frames[UR_BETWEEN_BATCH];
	struct ur_between_rx *rx;
	struct ur_between_capture *capture;
	ur_time to_wall;        /* from the monotonic clock to the time of day */
	const uint8_t *current; /* the frame that is on its way in: its bytes stay until the flush */
	unsigned end;           /* where it came in */
	unsigned did;           /* to it */
	struct part part;
	uint32_t at, len;                                   /* the packet of a train */
	uint8_t packet[UR_BETWEEN_HEAD + UR_BETWEEN_FRAME]; /* that packet as a frame */
	uint8_t *arena;
	uint32_t used; /* of it */
} mover;

/* --- frames --- */

/* The packets of a train to which nothing was done go on as a train. */
static void end_part(void)
{
	struct part *p = &mover.part;
	struct virtio_net_hdr vnet;
	uint8_t head[UR_BETWEEN_HEAD];
	uint32_t len;

	if (p->to > p->from) {
		len = ur_between_head(p->train, p->from, p->to, head, &vnet);
		ur_between_queue(&run->end[!mover.end], head, len, p->train->data + p->from, p->to - p->from, &vnet);
	}
	p->from = p->to = 0;
}

static void flush(void)
{
	ur_between_flush(&run->end[0]);
	ur_between_flush(&run->end[1]);
	mover.used = 0;
}

/* A packet of a train, to which something was done: what it lies in is needed for the next one. */
static const uint8_t *keep(const uint8_t *frame, uint32_t len)
{
	uint8_t *to;

	if (len > ARENA - mover.used)
		flush();
	to = memcpy(mover.arena + mover.used, frame, len);
	mover.used += len;
	return to;
}

static void leave(void *ctx, unsigned end, const uint8_t *frame, uint32_t len, const uint8_t *extra)
{
	const bool current = frame == mover.current;
	struct virtio_net_hdr vnet;

	(void)ctx;
	memcpy(&vnet, extra, sizeof(vnet));
	if (mover.part.train && current && !mover.did) {
		if (mover.part.to != mover.at)
			end_part();
		mover.part.from = mover.part.to ? mover.part.from : mover.at;
		mover.part.to = mover.at + mover.len;
		return;
	}
	end_part();
	if (mover.part.train && current)
		frame = keep(frame, len);
	ur_between_queue(&run->end[end], NULL, 0, frame, len, &vnet);
	if (!current)
		ur_between_flush(&run->end[end]);
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
	ur_between_in(run->cable, ur_clock_now(), mover.end, frame, len, extra);
	mover.current = NULL;
}

/* Each packet of it by itself, as a frame. */
static void take_apart(const struct ur_between_frame *train, bool acts)
{
	const uint32_t most = acts || mover.capture ? UINT32_MAX : LOOK;
	const ur_time now = ur_clock_now();
	struct virtio_net_hdr vnet;

	for (mover.at = ur_between_train_begin(train); mover.at < train->len; mover.at += mover.len) {
		uint32_t head, have;

		mover.len = ur_min_u32(train->vnet.gso_size, train->len - mover.at);
		have = ur_min_u32(mover.len, most);
		head = ur_between_head(train, mover.at, mover.at + mover.len, mover.packet, &vnet);
		memcpy(mover.packet + head, train->data + mover.at, have);
		if (acts)
			come_in(mover.packet, head + have, &vnet);
		else
			ur_between_note(run->cable, now, mover.end, mover.packet, head + have, head + mover.len);
	}
}

static void pass_on(struct ur_between_frame *f)
{
	const bool acts = ur_between_acts(run->cable); /* which may change on the way, when the last that was held has left */

	if (!ur_between_is_train(f)) {
		come_in(f->data, f->len, &f->vnet);
		return;
	}
	mover.part = (struct part){.train = f};
	take_apart(f, acts);
	if (acts)
		end_part();
	else
		ur_between_queue(&run->end[!mover.end], NULL, 0, f->data, f->len, &f->vnet);
	mover.part = (struct part){.train = NULL};
}

static void fetch(unsigned end)
{
	const unsigned n = ur_between_receive(&run->end[end], mover.rx, mover.frames);

	mover.end = end;
	for (unsigned i = 0; i < n; i++)
		pass_on(&mover.frames[i]);
	flush();
}

/* --- the loop --- */

static volatile sig_atomic_t stopped; /* by this signal */

static void stop(int signal)
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
		n += run->guest[i].fds ? run->guest[i].fds(fds + n) : 0;
	return n;
}

static void serve_guests(const struct pollfd *fds)
{
	for (unsigned i = 0; i < run->nguests; i++)
		if (run->guest[i].fds)
			fds += run->guest[i].ready(fds);
}

static ur_time until(ur_time now, ur_time at)
{
	const ur_time next = ur_min_time(ur_between_next(run->cable), at);

	return next > now ? ur_min_time(next - now, UR_NS_PER_S) : 0;
}

static void move(const sigset_t *unblocked)
{
	struct pollfd fds[2 + UR_BETWEEN_GUESTS * UR_BETWEEN_GUEST_FDS];
	const ur_time stop_at = run->seconds ? run->began + run->seconds * UR_NS_PER_S : UR_TIME_NEVER;

	for (ur_time now = run->began; !stopped && now < stop_at; now = ur_clock_now()) {
		const ur_time at = ur_min_time(turn_guests(now), stop_at);
		struct timespec wait;
		unsigned n = 2;

		if (run->stop)
			return;
		for (unsigned i = 0; i < 2; i++)
			fds[i] = (struct pollfd){.fd = run->end[i].fd, .events = POLLIN};
		n += guests_fds(fds + 2);
		wait = ur_timespec(until(now, at));
		if (ppoll(fds, n, &wait, unblocked) < 0)
			continue; /* a signal */
		ur_between_run(run->cable, ur_clock_now());
		for (unsigned i = 0; i < 2; i++)
			if (fds[i].revents)
				fetch(i);
		serve_guests(fds + 2);
	}
}

/* Signals come only while it waits. */
static void catch_signals(sigset_t *before)
{
	const struct sigaction end = {.sa_handler = stop}, child = {.sa_handler = wake};
	sigset_t ours;

	sigemptyset(&ours);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGTERM);
	sigaddset(&ours, SIGCHLD);
	sigprocmask(SIG_BLOCK, &ours, before);
	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGCHLD, &child, NULL);
	sigdelset(before, SIGINT);
	sigdelset(before, SIGTERM);
	sigdelset(before, SIGCHLD);
}

/* As the command line has them. False: out of memory. */
static bool set_rules(void)
{
	for (unsigned i = 0; i < run->nrules; i++)
		if (!ur_between_add(run->cable, 0, &run->rules[i], run->text[i]))
			return false;
	return ur_between_set_limit(run->cable, 0, &run->limit) == 0;
}

static int join(void)
{
	const struct ur_between_host host = {.send = leave, .judged = judged};
	sigset_t unblocked;

	mover.rx = ur_between_rx_create();
	mover.arena = malloc(ARENA);
	run->cable = ur_between_create(run->seed, &host);
	if (!mover.rx || !mover.arena || !run->cable || !set_rules())
		return ur_cmd_fail(UR_EXIT_FAIL, "out of memory: free some and try again");
	catch_signals(&unblocked);
	if (!ur_between_open(&run->end[0]) || !ur_between_open(&run->end[1]))
		return UR_EXIT_FAIL;
	if (!run->quiet)
		fprintf(stderr, "uroce: %s and %s are joined; Ctrl-C ends that\n", run->end[0].name, run->end[1].name);
	run->began = ur_clock_now();
	move(&unblocked);
	ur_between_report_now(run);
	return run->failed ? UR_EXIT_FAIL : 0;
}

int ur_between_join(struct ur_between_run *r)
{
	int status;

	run = r;
	run->end[0].fd = run->end[1].fd = -1;
	mover.to_wall = ur_clock_wall() - ur_clock_now();
	if (run->capture && !(mover.capture = ur_between_capture_open(run->capture, run->end[0].name, run->end[1].name)))
		return UR_EXIT_FAIL;
	status = join();
	if (mover.capture && !ur_between_capture_close(mover.capture) && !status)
		status = UR_EXIT_FAIL;
	ur_between_close(&run->end[0]);
	ur_between_close(&run->end[1]);
	ur_between_rx_destroy(mover.rx);
	free(mover.arena);
	return status;
}
