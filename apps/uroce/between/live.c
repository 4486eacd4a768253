/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce between --live: totals, rules and flows, once a second: as a screen, or as lines where there is no terminal. */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "apps/uroce/between/between.h"
#include "host/clock.h"
#include "watch/watch.h"
#include "wire/frame.h"
#ifdef UR_HAVE_NCURSES
#include "apps/uroce/cli/screen.h"
#endif

#define EVERY UR_NS_PER_S
#define LINE 512
#define SHORT 16 /* bytes of a number's text */

static struct {
	struct ur_between_run *run;
	bool screen;
	ur_time next, before; /* of the last lines */
	struct {
		uint64_t frames[2], bytes[2];
	} total;
	struct {
		uint32_t dqpn, first;
		uint64_t bytes, packets;
	} flow[UR_FAULT_FLOWS]; /* as they were then */
	double seconds;         /* since then */
	unsigned y, skip, rows;
} live;

/* --- lines --- */

enum look { PLAIN, TITLE, STRONG };

__attribute__((format(printf, 2, 3))) static void add_line(enum look look, const char *fmt, ...)
{
	char line[LINE];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
#ifdef UR_HAVE_NCURSES
	static const attr_t attributes[] = {[PLAIN] = A_NORMAL, [TITLE] = A_REVERSE, [STRONG] = A_BOLD};

	if (live.screen) {
		if ((int)live.y < LINES)
			ur_screen_draw((int)live.y++, line, attributes[look]);
		return;
	}
#endif
	(void)look;
	puts(line);
}

static const char *rate(uint64_t now, uint64_t was, double by, char text[SHORT])
{
	return live.seconds > 0 ? ur_watch_short((double)(now - was) * by / live.seconds, text) : strcpy(text, "-");
}

static void show_totals(const struct ur_account *a)
{
	char bits[SHORT], frames[SHORT];

	add_line(STRONG, "%s and %s joined for %.0f s; events %u", live.run->end[0].name, live.run->end[1].name,
		 (double)(live.run->ended - live.run->began) / UR_NS_PER_S, a->nevents);
	for (unsigned i = 0; i < 2; i++) {
		const uint64_t lost = live.run->end[i].kernel_lost + live.run->end[i].refused;

		add_line(lost ? STRONG : PLAIN,
			 "%s  %s bit/s, %s frames/s; %" PRIu64 " frames, %" PRIu64 " RoCEv2; lost by the kernel %" PRIu64
			 ", unsent %" PRIu64,
			 i ? "2to1" : "1to2", rate(a->bytes[i], live.total.bytes[i], 8, bits),
			 rate(a->frames[i], live.total.frames[i], 1, frames), a->frames[i], a->roce[i], lost, live.run->end[!i].unsent);
		live.total.bytes[i] = a->bytes[i];
		live.total.frames[i] = a->frames[i];
	}
}

static void show_late(const struct ur_account *a)
{
	static const char *const what[2] = {"delays of rules", "times in the queue"};
	char median[UR_BETWEEN_TIME], most[UR_BETWEEN_TIME];

	for (unsigned i = 0; i < 2; i++)
		if (a->late[i].n)
			add_line(PLAIN, "%s exceeded by %s in the median, %s at most", what[i],
				 ur_between_time_text(ur_spread_at(&a->late[i], 500), median), ur_between_time_text(a->late[i].most, most));
}

static void show_rules(void)
{
	const struct ur_between_limit *l = ur_between_limit(live.run->cable);
	const struct ur_between_rule *rule;
	char bits[SHORT];

	if (l->rate)
		add_line(PLAIN, "rate %s bit/s, queue %" PRIu32 " bytes, marked from %" PRIu32 " on", ur_watch_short((double)l->rate, bits),
			 l->queue, l->mark_at);
	for (unsigned i = 0; (rule = ur_between_rule(live.run->cable, i)); i++)
		if (!rule->deleted)
			add_line(PLAIN, "rule %u  %8u  %s", rule->number, rule->row.hits, rule->text);
}

static uint64_t lost(const struct ur_account_flow *w)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < UR_DID_KINDS; i++)
		n += UR_DID_HARM >> i & 1 ? w->did[i] : 0;
	return n;
}

static uint64_t marked(const struct ur_account_flow *w)
{
	uint64_t n = w->marks.came;

	for (unsigned i = 0; i < UR_DID_KINDS; i++)
		n += (UR_DID_MARK | UR_DID_QUEUE_MARK) >> i & 1 ? w->did[i] : 0;
	return n;
}

/* From what tells of a loss to the repetition, in the median. */
static const char *repair(const struct ur_account_flow *w, char text[SHORT])
{
	const struct ur_spread *s = &w->losses.to_again;

	if (!s->n)
		return "-";
	snprintf(text, SHORT, "%.0f us", (double)ur_spread_at(s, 500) / UR_NS_PER_US);
	return text;
}

static void show_flow(const struct ur_account_flow *w, unsigned i, uint32_t width)
{
	char src[UR_IP_TEXT], dst[UR_IP_TEXT], bits[SHORT] = "-", packets[SHORT] = "-", time[SHORT];

	if (live.flow[i].dqpn == w->dqpn && live.flow[i].first == w->first && w->packets >= live.flow[i].packets) {
		rate(w->bytes, live.flow[i].bytes, 8, bits);
		rate(w->packets, live.flow[i].packets, 1, packets);
	}
	add_line(w->needless || w->waits.unprompted ? STRONG : PLAIN,
		 "%-*s  %-*s  0x%06x  %-4s  %6s  %6s  %9" PRIu64 "  %7" PRIu64 "  %7" PRIu64 "  %7" PRIu64 "  %8" PRIu64 "  %8" PRIu64
		 "  %8s  %6" PRIu64 "  %6" PRIu64 "  %6" PRIu64,
		 (int)width, ur_gid_ip(&w->src, src), (int)width, ur_gid_ip(&w->dst, dst), w->dqpn, w->response ? "resp" : "req", bits,
		 packets, w->packets, lost(w), w->did[2], w->repeats, w->needless, w->waits.unprompted, repair(w, time), w->naks, marked(w),
		 w->cnps);
	live.flow[i].dqpn = w->dqpn;
	live.flow[i].first = w->first;
	live.flow[i].bytes = w->bytes;
	live.flow[i].packets = w->packets;
}

static void show_flows(const struct ur_account *a)
{
	char text[UR_IP_TEXT];
	uint32_t width = sizeof("DESTINATION") - 1;
	unsigned row = 0;

	for (unsigned i = 0; i < UR_FAULT_FLOWS; i++) {
		if (!a->flows[i].used)
			continue;
		width = ur_max_u32(width, (uint32_t)strlen(ur_gid_ip(&a->flows[i].src, text)));
		width = ur_max_u32(width, (uint32_t)strlen(ur_gid_ip(&a->flows[i].dst, text)));
	}
	add_line(TITLE, "%-*s  %-*s  %-8s  %-4s  %6s  %6s  %9s  %7s  %7s  %7s  %8s  %8s  %8s  %6s  %6s  %6s", (int)width, "SOURCE",
		 (int)width, "DESTINATION", "QP", "KIND", "BIT/S", "PKT/S", "PACKETS", "LOST", "DELAYED", "REPEATS", "NEEDLESS", "UNASKED",
		 "REPAIR", "NAKS", "MARKED", "CNPS");
	for (unsigned i = 0; i < UR_FAULT_FLOWS; i++)
		if (a->flows[i].used && row++ >= live.skip)
			show_flow(&a->flows[i], i, width);
	live.rows = row;
}

static void show_all(void)
{
	const struct ur_account *a = ur_between_account(live.run->cable);
	const ur_time now = ur_clock_now();

	ur_between_report_now(live.run);
	live.seconds = live.before ? (double)(now - live.before) / UR_NS_PER_S : 0;
	live.before = now;
	live.y = 0;
#ifdef UR_HAVE_NCURSES
	if (live.screen)
		erase();
#endif
	show_totals(a);
	show_late(a);
	show_rules();
	show_flows(a);
#ifdef UR_HAVE_NCURSES
	if (live.screen) {
		move(LINES - 1, 0);
		refresh();
		return;
	}
#endif
	puts("");
	fflush(stdout);
}

/* --- keys --- */

static void press(void)
{
#ifdef UR_HAVE_NCURSES
	int key;

	timeout(0);
	while (live.screen && (key = getch()) != ERR) {
		live.run->stop |= key == 'q';
		if (key == KEY_DOWN && live.skip + 1 < live.rows)
			live.skip++;
		if (key == KEY_UP && live.skip)
			live.skip--;
	}
#endif
}

static unsigned keyboard(struct pollfd *to)
{
	*to = (struct pollfd){.fd = live.screen ? STDIN_FILENO : -1, .events = POLLIN};
	return 1;
}

static unsigned hear_keys(const struct pollfd *from)
{
	if (from->revents & ~POLLIN)
		live.run->stop = true; /* the terminal has gone */
	else if (from->revents)
		press();
	return 1;
}

static ur_time show_when_due(ur_time now)
{
	if (now < live.next)
		return live.next;
	live.next = now + EVERY;
	press(); /* the size of the terminal comes as a key */
	show_all();
	return live.next;
}

void ur_between_live_open(struct ur_between_run *r)
{
	live.run = r;
#ifdef UR_HAVE_NCURSES
	live.screen = isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) && ur_screen_open();
#endif
	r->quiet = live.screen;
	r->guest[r->nguests++] = (struct ur_between_guest){.turn = show_when_due, .fds = keyboard, .ready = hear_keys};
}

void ur_between_live_close(void)
{
#ifdef UR_HAVE_NCURSES
	if (live.screen)
		ur_screen_close();
#endif
	live.screen = false;
}
