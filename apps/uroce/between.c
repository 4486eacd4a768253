/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce between: a cable between two interfaces, with rules for what becomes of the packets on it. */
#include "between.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd.h"
#include "host/clock.h"

#define ARENA (4u << 20) /* packets of trains that have been cut and not been sent */
#define LOOK 64          /* bytes of a packet that are enough to count it */
#define SECONDS_MAX 10000000u
#define QUEUE_DEFAULT 200000u /* bytes */

static struct ur_between_run run;
static struct ur_between_config cfg = {.seed = 1, .queue = QUEUE_DEFAULT};
static const char *capture_name;
static bool json;
static uint64_t seconds; /* 0: until a signal */

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

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

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
		ur_between_queue(&run.end[!mover.end], head, len, p->train->data + p->from, p->to - p->from, &vnet);
	}
	p->from = p->to = 0;
}

static void flush(void)
{
	ur_between_flush(&run.end[0]);
	ur_between_flush(&run.end[1]);
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
	ur_between_queue(&run.end[end], NULL, 0, frame, len, &vnet);
	if (!current)
		ur_between_flush(&run.end[end]);
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
	ur_between_in(run.cable, ur_clock_now(), mover.end, frame, len, extra);
	mover.current = NULL;
}

/* Each packet of it by itself, as a frame. */
static void take_apart(const struct ur_between_frame *train)
{
	const bool acts = ur_between_acts(run.cable);
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
			ur_between_note(run.cable, now, mover.end, mover.packet, head + have, head + mover.len);
	}
}

static void pass_on(struct ur_between_frame *f)
{
	if (!ur_between_is_train(f)) {
		come_in(f->data, f->len, &f->vnet);
		return;
	}
	mover.part = (struct part){.train = f};
	take_apart(f);
	if (ur_between_acts(run.cable))
		end_part();
	else
		ur_between_queue(&run.end[!mover.end], NULL, 0, f->data, f->len, &f->vnet);
	mover.part = (struct part){.train = NULL};
}

static void fetch(unsigned end)
{
	const unsigned n = ur_between_receive(&run.end[end], mover.rx, mover.frames);

	mover.end = end;
	for (unsigned i = 0; i < n; i++)
		pass_on(&mover.frames[i]);
	flush();
}

/* --- the loop --- */

static ur_time until(ur_time now, ur_time stop_at)
{
	const ur_time next = ur_min_time(ur_between_next(run.cable), stop_at);

	return next > now ? ur_min_time(next - now, UR_NS_PER_S) : 0;
}

static void move(const sigset_t *unblocked)
{
	struct pollfd fds[2] = {{.fd = run.end[0].fd, .events = POLLIN}, {.fd = run.end[1].fd, .events = POLLIN}};
	const ur_time stop_at = seconds ? run.began + seconds * UR_NS_PER_S : UR_TIME_NEVER;

	for (ur_time now = run.began; !stopped && now < stop_at; now = ur_clock_now()) {
		const struct timespec wait = ur_timespec(until(now, stop_at));

		if (ppoll(fds, 2, &wait, unblocked) < 0)
			continue; /* a signal */
		ur_between_run(run.cable, ur_clock_now());
		for (unsigned i = 0; i < 2; i++)
			if (fds[i].revents)
				fetch(i);
	}
}

/* Signals come only while it waits. */
static void catch_signals(sigset_t *before)
{
	const struct sigaction action = {.sa_handler = stop};
	sigset_t both;

	sigemptyset(&both);
	sigaddset(&both, SIGINT);
	sigaddset(&both, SIGTERM);
	sigprocmask(SIG_BLOCK, &both, before);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigdelset(before, SIGINT);
	sigdelset(before, SIGTERM);
}

static int join(void)
{
	const struct ur_between_host host = {.send = leave, .judged = judged};
	sigset_t unblocked;

	mover.rx = ur_between_rx_create();
	mover.arena = malloc(ARENA);
	if (!mover.rx || !mover.arena || ur_between_create(&cfg, &host, &run.cable))
		return ur_cmd_fail(UR_EXIT_FAIL, "out of memory: free some and try again");
	catch_signals(&unblocked);
	if (!ur_between_open(&run.end[0]) || !ur_between_open(&run.end[1]))
		return UR_EXIT_FAIL;
	fprintf(stderr, "uroce: %s and %s are joined; Ctrl-C ends that\n", run.end[0].name, run.end[1].name);
	run.began = ur_clock_now();
	move(&unblocked);
	run.ended = ur_clock_now();
	ur_between_statistics(&run.end[0]);
	ur_between_statistics(&run.end[1]);
	if (json)
		ur_between_report_json(&run);
	else
		ur_between_report(&run);
	return 0;
}

static void clean_up(void)
{
	ur_between_close(&run.end[0]);
	ur_between_close(&run.end[1]);
	if (run.cable)
		ur_between_destroy(run.cable);
	ur_between_rx_destroy(mover.rx);
	free(mover.arena);
}

static int run_between(int argc, char **argv)
{
	int status;

	if (argc != 2)
		return ur_cmd_fail(UR_EXIT_USAGE, "give the two interfaces that are to be joined");
	if (!strcmp(argv[0], argv[1]))
		return ur_cmd_fail(UR_EXIT_USAGE, "give two interfaces: %s would be joined to itself", argv[0]);
	if ((cfg.mark_at && !cfg.rate) || (cfg.queue != QUEUE_DEFAULT && !cfg.rate))
		return ur_cmd_fail(UR_EXIT_USAGE, "there is a queue only with --rate");
	for (unsigned i = 0; i < 2; i++)
		run.end[i] = (struct ur_between_end){.name = argv[i], .fd = -1};
	cfg.rules = run.rules;
	cfg.nrules = run.nrules;
	mover.to_wall = ur_clock_wall() - ur_clock_now();
	if (capture_name && !(mover.capture = ur_between_capture_open(capture_name, argv[0], argv[1])))
		return UR_EXIT_FAIL;
	status = join();
	if (mover.capture && !ur_between_capture_close(mover.capture) && !status)
		status = UR_EXIT_FAIL;
	clean_up();
	return status;
}

/* --- options --- */

static int add_rule(const char *text, const char *where)
{
	const char *wrong;
	unsigned at;

	if (run.nrules == UR_BETWEEN_RULES)
		return ur_cmd_fail(UR_EXIT_USAGE, "%srule '%s' is one too many: there may be %d", where, text, UR_BETWEEN_RULES);
	if (strlen(text) >= UR_BETWEEN_RULE_TEXT)
		return ur_cmd_fail(UR_EXIT_USAGE, "%sa rule is longer than %d characters", where, UR_BETWEEN_RULE_TEXT - 1);
	wrong = ur_fault_rule_parse(text, &run.rules[run.nrules], &at);
	if (wrong)
		return ur_cmd_fail(UR_EXIT_USAGE, "%srule '%s' is not understood at '%s': %s", where, text, text + at, wrong);
	strcpy(run.text[run.nrules++], text);
	return 0;
}

static int take_rule(const struct ur_option *o, const char *value)
{
	(void)o;
	return add_rule(value, "");
}

/* Without the comment and the blanks around it. */
static char *trim(char *line)
{
	size_t n;

	line[strcspn(line, "#\r\n")] = 0;
	for (char *c = line; *c; c++)
		if (*c == '\t')
			*c = ' ';
	line += strspn(line, " ");
	for (n = strlen(line); n && line[n - 1] == ' ';)
		line[--n] = 0;
	return line;
}

static int take_rules(const struct ur_option *o, const char *value)
{
	char line[2 * UR_BETWEEN_RULE_TEXT], where[512];
	FILE *f = fopen(value, "r");
	int rc = 0;

	(void)o;
	if (!f)
		return ur_cmd_fail(UR_EXIT_USAGE, "cannot read %s: %s", value, strerror(errno));
	for (unsigned i = 1; !rc && fgets(line, sizeof(line), f); i++) {
		const char *text = trim(line);

		snprintf(where, sizeof(where), "%.400s, line %u: ", value, i);
		if (*text)
			rc = add_rule(text, where);
	}
	if (!rc && ferror(f))
		rc = ur_cmd_fail(UR_EXIT_USAGE, "cannot read %s: %s", value, strerror(errno));
	fclose(f);
	return rc;
}

static bool parse_number(const char *value, uint64_t most, uint64_t *to, const char **rest)
{
	char *end;

	if (!isdigit((unsigned char)*value))
		return false;
	errno = 0;
	*to = strtoull(value, &end, 0);
	*rest = end;
	return !errno && *to <= most;
}

static bool parse_scaled(const char *value, const char *unit, uint64_t most, uint64_t *to)
{
	static const struct {
		const char *prefix;
		uint64_t by;
	} scales[] = {{"", 1}, {"K", 1000}, {"M", 1000000}, {"G", 1000000000}};
	const char *rest;

	if (!parse_number(value, UINT32_MAX, to, &rest))
		return false;
	for (unsigned i = 0; i < 4; i++) {
		const size_t n = strlen(scales[i].prefix);

		if (strncmp(rest, scales[i].prefix, n) || strcmp(rest + n, unit))
			continue;
		*to *= scales[i].by;
		return *to && *to <= most;
	}
	return false;
}

static bool parse_rate(const char *value)
{
	return parse_scaled(value, "bit", 1000000000000, &cfg.rate);
}

static bool parse_bytes(const char *value, uint32_t *to)
{
	uint64_t n;

	if (!parse_scaled(value, "B", UR_BETWEEN_QUEUE_MAX, &n))
		return false;
	*to = (uint32_t)n;
	return true;
}

static bool parse_queue(const char *value)
{
	return parse_bytes(value, &cfg.queue);
}

static bool parse_mark_at(const char *value)
{
	return parse_bytes(value, &cfg.mark_at);
}

static bool parse_seed(const char *value)
{
	const char *rest;

	return parse_number(value, UINT64_MAX, &cfg.seed, &rest) && !*rest;
}

static bool parse_seconds(const char *value)
{
	const char *rest;

	return parse_number(value, SECONDS_MAX, &seconds, &rest) && !*rest && seconds;
}

#define SIZE "a number of bytes such as 200KB, at most 1GB"

static const struct ur_option options[] = {
	{"rule", "RULE", .take = take_rule,
	 .help = "what is done to which frames, such as `drop 1to2 opcode=WRITE_LAST msg=3`; may be repeated"},
	{"rules", "FILE", UR_COMPLETE_FILE, .take = take_rules, .help = "a file of rules, one in a line; `#` begins a comment"},
	{"rate", "RATE", .parse = parse_rate, .takes = "a rate such as 10Gbit, at most 1000Gbit",
	 .help = "limit each direction to this rate, such as `10Gbit`"},
	{"queue", "SIZE", .parse = parse_queue, .takes = SIZE,
	 .help = "how much may wait for that, such as `200KB`, which is the default; the rest is dropped"},
	{"mark-at", "SIZE", .parse = parse_mark_at, .takes = SIZE, .help = "mark ECN-capable packets (CE) while more than this waits"},
	{"seed", "NUMBER", .parse = parse_seed, .takes = "a number", .help = "what `chance=` chooses by (default 1)"},
	{"capture", "FILE", UR_COMPLETE_FILE, .value = &capture_name,
	 .help = "write all frames to a pcapng file, as they come in at either interface; what was done to one is its comment"},
	{"json", .set = &json, .help = "report as one JSON object; doc/between.md describes it"},
	{"seconds", "NUMBER", .parse = parse_seconds, .takes = "a number from 1 to 10000000",
	 .help = "end after so long (default: at Ctrl-C)"},
	{0},
};

static const struct ur_example examples[] = {
	{"uroce between eth1 eth2", "Join two interfaces, and say at the end what passed."},
	{"uroce between eth1 eth2 --rule 'drop 1to2 opcode=WRITE_LAST msg=3 iteration=1'",
	 "Lose the last packet of the third WRITE of each QP, once."},
	{"uroce between eth1 eth2 --rate 10Gbit --queue 200KB --mark-at 50KB", "A bottleneck that marks."},
	{0},
};

const struct ur_command ur_command_between = {
	.name = "between",
	.operands = "IF1 IF2",
	.complete = UR_COMPLETE_INTERFACE,
	.summary = "join two interfaces as a cable does, and lose, delay or mark the RoCEv2 packets that rules name",
	.text = "What comes in at one interface leaves at the other, unchanged: all Ethernet frames, whatever they carry. It needs "
		"CAP_NET_RAW; give the interfaces no addresses, and do not put them into a bridge. Linux 6.2 or later is needed for trains "
		"of UDP "
		"packets.\n\n"
		"Rules are those of the setting `fault`, which uroce(5) describes. `1to2` is what goes from IF1 to IF2, and `2to1` the "
		"other "
		"direction; `tx` and `rx` say the same. Each rule sees the packets that earlier ones have left. Without rules, and without "
		"--rate, trains pass in one piece.\n\n"
		"Ctrl-C, SIGTERM or --seconds ends it with a report: what passed, what was done to which packet, how long it took until "
		"the "
		"sender was told of a loss and until it sent the packet again, and what it sent again needlessly. All times are those of "
		"this "
		"program's clock.",
	.status = "0; 1 when an interface cannot be joined or a file not be written, 2 when something is wrong with the command line.",
	.options = options,
	.examples = examples,
	.run = run_between,
};
