/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer target: frames of arbitrary bytes through the cable of `uroce between`, with rules, and text as a specification of faults. The
 * first byte chooses the rules, or text. Then each frame is a byte of enum step, one that says how much later it comes, two for its length,
 * and its bytes. Frames end where their memory ends. None may be lost or made up but as the account says. In place of a frame there may be
 * a change of the rules or the limit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "between/between.h"
#include "fault/spec.h"
#include "input.h"
#include "wire/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TEXT 0xff
#define LENGTH_MAX 2048

enum step {
	END = 1,
	ROCE = 2, /* the bytes are those from the BTH on, between two hosts */
	V6 = 4,
	TAGGED = 8,
	NEXT = 16, /* with the PSN after the last one, which no mutation would find */
	PART = 32, /* only noted, and only half of it is here */
	CHANGE = 64,
};

static const char *const rules[] = {
	"",           "drop tx msg=2 iteration=1", "drop iteration=2",   "drop psn=+3 times=2",        "corrupt chance=50%",
	"dup",        "mark after=1us for=2us",    "drop opcode=ACK",    "delay chance=50% delay=3us", "reorder msg=2 by=2",
	"dup psn=+1", "reorder nth=2 by=1000",     "drop burst=30%/40%", "dup msg=1 delay=2us",
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

/* A byte: a rule more, one less, or another limit. */
static void change(struct ur_between *b, struct input *in, ur_time now)
{
	const unsigned what = take(in);
	const struct ur_between_limit limit = {.rate = (what & 7) * 1000000000ull, .queue = 4000, .mark_at = what & 8 ? 1000 : 0};
	const char *text = rules[what % ur_array_size(rules)];
	struct ur_fault_rule rule;
	unsigned at;

	if (what & 0x80 && ur_between_set_limit(b, now, &limit))
		abort();
	else if (what & 0x40)
		ur_between_delete(b, what & 0x3f);
	else if (*text && !ur_fault_rule_parse(text, &rule, &at))
		ur_between_add(b, now, &rule, text);
	for (unsigned i = 1; ur_between_rule(b, i); i++)
		require(ur_between_rule(b, i)->number > ur_between_rule(b, i - 1)->number, "rules are out of order");
}

static void come_in(struct ur_between *b, struct input *in, ur_time *now)
{
	const uint8_t extra[UR_BETWEEN_EXTRA] = {0};
	const unsigned step = take(in);
	const ur_time later = take(in) * 100u;
	const uint32_t said = step & CHANGE ? 0 : take16(in) % LENGTH_MAX, len = ur_min_u32(said, (uint32_t)in->left);
	uint32_t head = 0;
	uint8_t headers[128] = {0}, *frame;

	*now += later;
	if (step & CHANGE) {
		change(b, in, *now);
		return;
	}
	if (step & ROCE)
		head = put_headers(headers, step);
	if (!head && !len)
		return;
	frame = malloc(head + len);
	if (!frame)
		abort();
	memcpy(frame, headers, head);
	memcpy(frame + head, in->at, len);
	in->at += len;
	in->left -= len;
	if (step & ROCE && step & NEXT && len >= UR_BTH_LEN)
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

static void judge(const struct ur_between *b)
{
	const struct ur_account *a = ur_between_account(b);
	const uint64_t lost = a->did[0] + a->did[6] + a->did[8];

	require(a->frames[0] + a->frames[1] == seen.in, "frames are not counted once");
	require(seen.out + lost >= seen.in && seen.out + lost <= seen.in + a->did[1], "a frame is lost or made up");
	require(a->nevents <= UR_ACCOUNT_EVENTS && a->nopen <= UR_ACCOUNT_OPEN, "a table has grown beyond its bound");
	require(ur_between_next(b) == UR_TIME_NEVER, "a frame is held for ever");
	for (unsigned i = 0; i < a->nopen; i++)
		require(a->open[i].event < a->nevents && a->events[a->open[i].event].flow < UR_FAULT_FLOWS,
			"a loss of no flow is followed");
	for (unsigned i = 0; i < a->nevents; i++)
		require(!a->events[i].again_at || a->events[i].again_at >= a->events[i].when, "it came again before it was lost");
}

static void through_cable(unsigned choice, struct input *in)
{
	static const struct ur_between_host host = {.send = leave};
	struct ur_fault_rule rule;
	const struct ur_between_limit limit = {.rate = 1000000000, .queue = 4000, .mark_at = 1000};
	struct ur_between *b = ur_between_create(1, &host);
	ur_time now = 1;
	unsigned at;

	if (!b)
		return;
	if (*rules[choice % ur_array_size(rules)]) {
		require(!ur_fault_rule_parse(rules[choice % ur_array_size(rules)], &rule, &at), "a rule of the table is refused");
		require(ur_between_add(b, now, &rule, "") == 1, "the first rule finds no room");
	}
	if (choice & 0x40 && ur_between_set_limit(b, now, &limit))
		abort();
	seen.in = seen.out = seen.psn = 0;
	while (in->left)
		come_in(b, in, &now);
	ur_between_run(b, now + UR_NS_PER_S);
	judge(b);
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {.at = data, .left = size};
	const unsigned choice = take(&in);

	if (choice == TEXT)
		as_text(&in);
	else
		through_cable(choice, &in);
	return 0;
}
