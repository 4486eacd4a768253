/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer target: frames of arbitrary bytes through the cable of `uroce between`, with rules, and text as a specification of faults. The
 * first byte chooses the rules, or text, or the packet of a proxy. Then each frame is a byte of enum step, one that says how much later it
 * comes, two for its length, and its bytes. Frames end where their memory ends. None may be lost or made up but as the account says. In
 * place of a frame there may be a change of the rules or the limit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "between/between.h"
#include "between/readdress.h"
#include "fault/spec.h"
#include "input.h"
#include "wire/crc/icrc.h"
#include "wire/frame.h"
#include "wire/ip.h"
#include "wire/msg/cm_msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TEXT 0xff
#define PROXY 0xfe
#define LENGTH_MAX 2048
#define CM_LEN (UR_BTH_LEN + 8 + UR_MAD_LEN)

enum step {
	END = 1,
	ROCE = 2, /* the bytes are those from the BTH on, between two hosts */
	V6 = 4,
	TAGGED = 8,
	NEXT = 16, /* with the PSN after the last one, which no mutation would find */
	PART = 32, /* only noted, and only half of it is here */
	CHANGE = 64,
	CM = 128, /* with ROCE: a message of the connection manager, of what its first two bytes choose */
};

static const char *const rules[] = {
	"",
	"drop tx msg=2 iteration=1",
	"drop iteration=2",
	"drop psn=+3 times=2",
	"corrupt chance=50%",
	"dup",
	"mark after=1us for=2us",
	"drop opcode=ACK",
	"delay chance=50% delay=3us",
	"reorder msg=2 by=2",
	"dup psn=+1",
	"reorder nth=2 by=1000",
	"drop burst=30%/40%",
	"dup msg=1 delay=2us",
	"trim",
	"trim keep=3 fix=icrc dscp=5",
	"corrupt what=payload fix=icrc",
	"corrupt what=rkey",
	"corrupt what=header fix=icrc",
	"corrupt what=icrc",
	"hold tx delay=9us until rx",
	"hold most=3 delay=5us until told",
	"hold opcode=ACK delay=4us until opcode=NAK",
	"hold times=2 delay=3us until msg=2",
	"drop service=1 chance=50%",
	"delay rx service=2 delay=1us",
	"drop src=10.0.0.1 port=49152 chance=20%",
	"mark dst=10.0.0.2",
};

static struct {
	uint64_t in, out;
	uint32_t psn;
} seen;

static void require(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static void leave(void *ctx, unsigned end, const uint8_t *frame, uint32_t len, const uint8_t *extra)
{
	(void)ctx;
	require(end < 2 && frame && len && extra, "what leaves is no frame");
	seen.out++;
}

static uint32_t put_headers(uint8_t *f, unsigned step)
{
	struct ur_gid host[2] = {ur_gid_from_v4(0x0100000a), ur_gid_from_v4(0x0200000a)};
	const struct ur_mac mac = {{2}};
	struct ur_path path;

	if (step & V6)
		host[0].raw[0] = host[1].raw[0] = 0xfd;
	ur_path_build(&path, &mac, &mac, step & TAGGED ? 7 : 0, &host[step & END], &host[!(step & END)], 2, 64, 0, 0xc000);
	memcpy(f, path.hdr, path.hdr_len);
	return path.hdr_len;
}

static const struct ur_between_limit narrow = {.rate = 1000000000,
					       .queue = 4000,
					       .mark_at = 1000,
					       .mark_full = 3000,
					       .mark_most = 500000,
					       .pause_at = 2000,
					       .pause_until = 500,
					       .obey = true};

/* A byte: a rule more, one less, what they hold, or another limit. */
static void change(struct ur_between *b, struct input *in, ur_time now)
{
	const unsigned what = take(in);
	struct ur_between_limit limit = narrow;
	const char *text = rules[what % ur_array_size(rules)];
	struct ur_fault_rule rule;
	unsigned at;

	limit.rate = (what & 7) * 1000000000ull;
	limit.mark_at = what & 8 ? 1000 : 0;
	limit.pause_at = what & 16 ? 1000 : 0;
	limit.pause_class = what >> 1 & 8;
	limit.obey = what & 8;
	if (what & 0x80 && ur_between_set_limit(b, now, &limit))
		abort();
	else if (what == 0x7f)
		ur_between_release(b, now, take(in));
	else if (what & 0x40)
		ur_between_delete(b, now, what & 0x3f);
	else if (*text && !ur_fault_rule_parse(text, &rule, &at))
		ur_between_add(b, now, &rule, text);
	for (unsigned i = 1; ur_between_rule(b, i); i++)
		require(ur_between_rule(b, i)->number > ur_between_rule(b, i - 1)->number, "rules are out of order");
}

/* Behind the headers: a datagram to QP 1. Few numbers, so that messages are about each other, and about QPs that packets go to. */
static uint32_t put_cm(uint8_t *to, unsigned what, unsigned numbers)
{
	static const enum ur_cm_attr attr[] = {UR_CM_REQ, UR_CM_REP, UR_CM_REJ, UR_CM_DREQ};
	const struct ur_bth bth = {.opcode = UR_UD | UR_OP_SEND_ONLY, .dqpn = 1};
	const uint32_t id = 1 + (numbers & 1), other = numbers >> 1 & 1, qpn = numbers >> 2 & 7;
	struct ur_cm_msg m = {.attr = attr[what & 3]};

	if (m.attr == UR_CM_REQ)
		m.req = (struct ur_cm_req){.local_comm_id = id,
					   .local_qpn = qpn,
					   .primary.ack_timeout = what >> 2 & 31,
					   .service_id = 1u << 24 | (what >> 2 & 3)};
	else if (m.attr == UR_CM_REP)
		m.rep = (struct ur_cm_rep){.local_comm_id = id, .remote_comm_id = other, .local_qpn = qpn};
	else if (m.attr == UR_CM_REJ)
		m.rej = (struct ur_cm_rej){.local_comm_id = id, .remote_comm_id = other, .reason = (uint16_t)what};
	else
		m.dreq = (struct ur_cm_dreq){.local_comm_id = id, .remote_comm_id = other, .remote_qpn = qpn};
	ur_bth_put(to, &bth);
	memset(to + UR_BTH_LEN, 0, CM_LEN - UR_BTH_LEN);
	require(ur_cm_msg_build(to + CM_LEN - UR_MAD_LEN, &m), "a message cannot be built");
	return CM_LEN;
}

static void come_in(struct ur_between *b, struct input *in, ur_time *now)
{
	const uint8_t extra[UR_BETWEEN_EXTRA] = {0};
	const unsigned step = take(in);
	const ur_time later = take(in) * 100u;
	const uint32_t said = step & CHANGE ? 0 : take16(in) % LENGTH_MAX;
	uint32_t head = 0, udp = 0, len; /* udp: where its payload begins */
	uint8_t headers[128 + CM_LEN] = {0}, *frame;

	*now += later;
	if (step & CHANGE) {
		change(b, in, *now);
		return;
	}
	if (step & ROCE)
		udp = head = put_headers(headers, step);
	if (head && step & CM) {
		const unsigned what = take(in);

		head += put_cm(headers + head, what, take(in));
	}
	len = ur_min_u32(said, (uint32_t)in->left);
	if (!head && !len)
		return;
	frame = malloc(head + len);
	if (!frame)
		abort();
	memcpy(frame, headers, head);
	memcpy(frame + head, in->at, len);
	if (step & ROCE && (step & CM || len % 8)) /* else its lengths are wrong */
		ur_udp_put_lengths(frame + UR_ETH_LEN + (step & TAGGED ? UR_VLAN_LEN : 0), step & V6 ? 6 : 4,
				   UR_UDP_LEN + head + len - udp);
	in->at += len;
	in->left -= len;
	if (step & ROCE && !(step & CM) && step & NEXT && len >= UR_BTH_LEN)
		ur_put24(frame + head + 9, seen.psn++ & 0xffffff);
	if (step & PART) {
		ur_between_note(b, *now, step & END, frame, head + (len + 1) / 2, head + len);
		seen.in += 1;
		seen.out += 1;
	} else {
		ur_between_in(b, *now, step & END, frame, head + len, extra);
		seen.in++;
	}
	free(frame);
}

static void judge_spread(const struct ur_spread *s)
{
	const ur_time median = ur_spread_at(s, 500), most = ur_spread_at(s, 990);

	require(s->n ? s->least <= median && median <= most && most <= s->most : !median && !most, "a spread is out of order");
}

/* Its figures agree with each other. */
static void judge_flow(const struct ur_account *a, const struct ur_account_flow *w, ur_time now)
{
	const struct ur_account_losses *l = &w->losses;
	const struct ur_account_flow *p = w->partner < 0 ? NULL : &a->flows[w->partner];
	uint64_t lost = 0, again = 0;

	for (unsigned i = 0; i < UR_MANNERS; i++)
		lost += l->manner[i];
	for (unsigned i = 0; i < UR_TOLDS; i++)
		again += l->told[i];
	require(lost <= w->did[0] + w->did[4] + w->did[6] + w->did[8] + w->did[9] && again <= lost, "more losses than there were");
	require(l->to_again.n + l->untold.n == again && l->to_again.n <= l->to_told.n, "times of repetitions are not those of losses");
	require(w->waits.probes + w->waits.timers <= w->waits.unprompted && w->waits.unprompted <= w->repeats, "repetitions");
	require(!p || (p->used && p->response != w->response && p->end != w->end), "a partner is none");
	require(w->connection < 0 || a->connections.c[w->connection].used, "a connection is none");
	require(w->needless <= w->repeats && w->repeats <= w->packets, "more repetitions than packets");
	judge_spread(&l->to_told);
	judge_spread(&l->to_again);
	judge_spread(&l->untold);
	judge_spread(&w->waits.rnr.waited);
	judge_spread(&w->marks.to_cnp);
	ur_account_ending(a, w, now);
}

static void judge(const struct ur_between *b, ur_time now)
{
	const struct ur_account *a = ur_between_account(b);
	const uint64_t lost = a->did[0] + a->did[6] + a->did[8];
	const uint64_t told = ur_between_pauses(b, 0)->frames + ur_between_pauses(b, 1)->frames;
	const uint64_t obeyed = ur_between_pauses(b, 0)->obeyed + ur_between_pauses(b, 1)->obeyed;

	seen.out += obeyed;
	require(a->frames[0] + a->frames[1] == seen.in, "frames are not counted once");
	require(seen.out + lost >= seen.in + told && seen.out + lost <= seen.in + told + a->did[1], "a frame is lost or made up");
	require(a->nevents <= UR_ACCOUNT_EVENTS && a->nopen <= UR_ACCOUNT_OPEN, "a table has grown beyond its bound");
	require(ur_between_next(b) == UR_TIME_NEVER, "a frame is held for ever");
	for (unsigned i = 0; i < a->nopen; i++) {
		const struct ur_account_open *o = &a->open[i];
		const struct ur_account_event *e = o->listed < UR_ACCOUNT_EVENTS ? &a->events[o->listed] : &o->event;

		require((o->listed < a->nevents || o->listed == UR_ACCOUNT_EVENTS) && e->flow < UR_FAULT_FLOWS,
			"a loss of no flow is followed");
	}
	for (unsigned i = 0; i < a->nevents; i++)
		require(!a->events[i].again_at || a->events[i].again_at >= a->events[i].when, "it came again before it was lost");
	for (unsigned i = 0; i < UR_FAULT_FLOWS; i++)
		if (a->flows[i].used)
			judge_flow(a, &a->flows[i], now);
}

static void through_cable(unsigned choice, struct input *in)
{
	static const struct ur_between_host host = {.send = leave};
	struct ur_fault_rule rule;
	struct ur_between *b = ur_between_create(1, &host);
	ur_time now = 1;
	unsigned at;

	if (!b)
		return;
	if (*rules[choice % ur_array_size(rules)]) {
		require(!ur_fault_rule_parse(rules[choice % ur_array_size(rules)], &rule, &at), "a rule of the table is refused");
		require(ur_between_add(b, now, &rule, "") == 1, "the first rule finds no room");
	}
	if (choice & 0x40 && ur_between_set_limit(b, now, &narrow))
		abort();
	seen.in = seen.out = seen.psn = 0;
	while (in->left)
		come_in(b, in, &now);
	ur_between_run(b, now + UR_NS_PER_S);
	judge(b, now + UR_NS_PER_S);
	ur_between_destroy(b);
}

static void as_text(struct input *in)
{
	struct ur_fault_spec s;
	char err[256] = "", *text = malloc(in->left + 1);

	if (!text)
		abort();
	memcpy(text, in->at, in->left);
	text[in->left] = 0;
	if (ur_fault_parse(text, &s, err, sizeof(err)))
		require(*err, "a text is refused without a reason");
	else
		require(s.nrules <= UR_FAULT_RULES && s.drop <= UR_FAULT_PPM, "a text is taken that makes no sense");
	free(text);
}

/* --- a packet that gets other addresses --- */

enum proxied { FROM_V6 = 1, TO_V6 = 2, AS_SENT = 4, WHOLE = 8, RIGHT = 16 };

static struct ur_gid host(bool v6, uint8_t n)
{
	struct ur_gid g = ur_gid_from_v4(__builtin_bswap32(0x0a000000u | n));

	if (v6)
		g = (struct ur_gid){.raw = {0xfd, [15] = n}};
	return g;
}

/* By how much the ICRC of a frame without a VLAN tag is wrong. */
static uint32_t wrongness(const uint8_t *frame, uint32_t len)
{
	uint8_t want[UR_ICRC_LEN];

	ur_icrc_end(ur_icrc_begin(frame + UR_ETH_LEN, frame[UR_ETH_LEN] >> 4, len - UR_ETH_LEN - UR_ICRC_LEN), want);
	return ur_get_le32(want) ^ ur_get_le32(frame + len - UR_ICRC_LEN);
}

/* What a proxy has received, `p`, goes out: it is as wrong as it was. */
static void send_on(unsigned how, const struct ur_pkt *p, uint8_t *frame)
{
	struct ur_readdress r = {.src = host(how & TO_V6, 8), .dst = host(how & TO_V6, 9), .as_sent = how & AS_SENT};
	const uint32_t len = p->len - p->bth_off, wrong = wrongness(p->data, p->len);
	const uint32_t out = ur_readdress(&r, p, 7, frame);
	struct ur_pkt again;

	require(out == len + (how & TO_V6 ? 62u : 42u), "the frame has another length");
	require(wrongness(frame, out) == wrong, "a right ICRC has become wrong, or a wrong one another");
	require(ur_readdress_view(frame, out, &r.src, &r.dst, &again), "the cable's own frame is refused");
}

/* A byte of enum proxied, and a packet from its BTH on; or a frame, whose headers may be anything. */
static void as_proxy(struct input *in)
{
	const unsigned how = take(in);
	const uint32_t len = ur_min_u32((uint32_t)in->left, LENGTH_MAX);
	const struct ur_gid src = host(how & FROM_V6, 1), dst = host(how & FROM_V6, 2);
	struct ur_pkt p = {.flags = UR_PKT_BARE, .src = src, .dst = dst, .sport = 0xd000, .ip_version = how & FROM_V6 ? 6 : 4, .ttl = 64};
	uint8_t *body = malloc(len + 1), first[LENGTH_MAX + UR_READDRESS_HEAD], second[LENGTH_MAX + 2 * UR_READDRESS_HEAD];
	struct ur_readdress r = {.src = src, .dst = dst};
	uint32_t n;

	if (!body)
		abort();
	memcpy(body, in->at, len);
	p.data = body;
	p.len = len;
	if (how & WHOLE) {
		if (ur_readdress_view(body, len, &src, &dst, &p))
			send_on(how, &p, second);
	} else if (len >= UR_BTH_LEN + UR_ICRC_LEN) {
		ur_frame_find_id(&p);
		ur_bth_get(body, &p.bth);
		n = ur_readdress(&r, &p, p.place, first);
		if (how & RIGHT)
			ur_put_le32(first + n - UR_ICRC_LEN, ur_get_le32(first + n - UR_ICRC_LEN) ^ wrongness(first, n));
		require(ur_readdress_view(first, n, &src, &dst, &p), "the frame of a packet is refused");
		send_on(how, &p, second);
	}
	free(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {.at = data, .left = size};
	const unsigned choice = take(&in);

	if (choice == TEXT)
		as_text(&in);
	else if (choice == PROXY)
		as_proxy(&in);
	else
		through_cable(choice, &in);
	return 0;
}
