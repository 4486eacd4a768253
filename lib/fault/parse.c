/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of a rule. */
#include "fault/rule.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "fault/change.h"
#include "wire/frame.h"
#include "wire/opcode.h"

#define REORDER_NS (10 * UR_NS_PER_MS) /* a packet that nothing follows waits this long to be overtaken */
#define HOLD_NS UR_NS_PER_S            /* likewise, until what ends its hold */
#define HOLD_MOST 64

static bool is_word(const char *word, size_t len, const char *name)
{
	return strlen(name) == len && memcmp(word, name, len) == 0;
}

static const char *const actions[UR_FAULT_ACTIONS] = {
	[UR_FAULT_DROP] = "drop",       [UR_FAULT_DUPLICATE] = "dup", [UR_FAULT_DELAY] = "delay", [UR_FAULT_REORDER] = "reorder",
	[UR_FAULT_CORRUPT] = "corrupt", [UR_FAULT_MARK] = "mark",     [UR_FAULT_TRIM] = "trim",   [UR_FAULT_HOLD] = "hold",
};

static bool parse_action(const char *word, size_t len, enum ur_fault_action *to)
{
	for (unsigned i = 0; i < UR_FAULT_ACTIONS; i++) {
		if (!is_word(word, len, actions[i]))
			continue;
		*to = (enum ur_fault_action)i;
		return true;
	}
	return false;
}

/* As a host says it, or `uroce between` with its two interfaces. */
static bool parse_dir(const char *word, size_t len, unsigned *dir)
{
	if (is_word(word, len, "tx") || is_word(word, len, "1to2"))
		*dir = UR_FAULT_TX;
	else if (is_word(word, len, "rx") || is_word(word, len, "2to1"))
		*dir = UR_FAULT_RX;
	else if (is_word(word, len, "both"))
		*dir = UR_FAULT_TX | UR_FAULT_RX;
	else
		return false;
	return true;
}

/* Decimal or with 0x, all of the word except for what `rest` gets. */
static bool parse_number(const char *v, size_t len, uint64_t most, uint64_t *to, const char **rest)
{
	char *end;

	if (!len || !isdigit((unsigned char)*v))
		return false;
	errno = 0;
	*to = strtoull(v, &end, 0);
	if (errno || *to > most || end > v + len)
		return false;
	*rest = end;
	return true;
}

static bool parse_plain(const char *v, size_t len, uint64_t most, uint64_t *to)
{
	const char *rest;

	return parse_number(v, len, most, to, &rest) && rest == v + len;
}

/* From 1 to `most`. */
static bool parse_count(const char *v, size_t len, uint32_t most, uint32_t *to)
{
	uint64_t n;

	if (!parse_plain(v, len, most, &n) || !n)
		return false;
	*to = (uint32_t)n;
	return true;
}

bool ur_fault_parse_time(const char *v, size_t len, ur_time *to)
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} units[] = {{"us", UR_NS_PER_US}, {"ms", UR_NS_PER_MS}, {"s", UR_NS_PER_S}};
	const char *rest;
	uint64_t n;

	if (!parse_number(v, len, 1000000, &n, &rest))
		return false;
	for (unsigned i = 0; i < ur_array_size(units); i++) {
		if (!is_word(rest, (size_t)(v + len - rest), units[i].unit))
			continue;
		*to = n * units[i].ns;
		return true;
	}
	return false;
}

/* --- conditions of a packet --- */

/* An acknowledgement by what its AETH says. */
static bool parse_answer(const char *v, size_t len, struct ur_fault_match *m)
{
	m->answer = is_word(v, len, "NAK") ? UR_FAULT_NAK : is_word(v, len, "RNR_NAK") ? UR_FAULT_RNR_NAK : UR_FAULT_ANY_ANSWER;
	m->opcode = UR_OP_ACK;
	m->any_service = true;
	return m->answer;
}

/* By its whole name, or without the service: then it is that of any. */
static bool parse_opcode(const char *v, size_t len, struct ur_fault_match *m)
{
	uint64_t number;

	if (parse_answer(v, len, m))
		return true;
	m->any_service = false;
	if (parse_plain(v, len, 255, &number)) {
		m->opcode = (int)number;
		return true;
	}
	for (unsigned i = 0; i < 256; i++) {
		const char *name = ur_opcode((uint8_t)i)->name, *service = name ? strchr(name, '_') : NULL;

		if (!name)
			continue;
		m->any_service = service && is_word(v, len, service + 1);
		if (!m->any_service && !is_word(v, len, name))
			continue;
		m->opcode = (int)i;
		return true;
	}
	return false;
}

/* Absolute, or from the first of the flow: +N. */
static bool parse_psn(const char *v, size_t len, struct ur_fault_match *m)
{
	uint64_t n;

	m->relative = len && *v == '+';
	if (!parse_plain(v + m->relative, len - m->relative, 0xffffff, &n))
		return false;
	m->psn = (int64_t)n;
	return true;
}

static bool parse_address(const char *v, size_t len, struct ur_gid *to)
{
	char text[UR_IP_TEXT];
	uint8_t v4[4];

	if (len >= sizeof(text))
		return false;
	memcpy(text, v, len);
	text[len] = 0;
	if (inet_pton(AF_INET, text, v4) == 1) {
		*to = ur_gid_from_v4_at(v4);
		return true;
	}
	return inet_pton(AF_INET6, text, to->raw) == 1;
}

static bool parse_src(const char *v, size_t len, struct ur_fault_match *m)
{
	return m->has_src = parse_address(v, len, &m->src);
}

static bool parse_dst(const char *v, size_t len, struct ur_fault_match *m)
{
	return m->has_dst = parse_address(v, len, &m->dst);
}

static bool parse_port(const char *v, size_t len, struct ur_fault_match *m)
{
	uint64_t n;

	if (!parse_plain(v, len, UINT16_MAX, &n) || !n)
		return false;
	m->port = (uint16_t)n;
	return true;
}

static bool parse_service(const char *v, size_t len, struct ur_fault_match *m)
{
	return parse_plain(v, len, UINT64_MAX, &m->service) && m->service;
}

/* --- conditions of a rule, and what it does --- */

bool ur_fault_parse_chance(const char *v, size_t len, uint32_t *ppm)
{
	char *end;
	double p;

	if (!len || !(isdigit((unsigned char)*v) || *v == '.'))
		return false;
	p = strtod(v, &end);
	if (end == v || end > v + len)
		return false;
	if (end < v + len && *end == '%') {
		p /= 100;
		end++;
	}
	if (end != v + len || !(p >= 0 && p <= 1))
		return false;
	*ppm = (uint32_t)(p * UR_FAULT_PPM + 0.5);
	return true;
}

static bool parse_chance(const char *v, size_t len, struct ur_fault_rule *r)
{
	return ur_fault_parse_chance(v, len, &r->chance) && r->chance;
}

/* How likely one begins, and how likely it ends: 1%/20%. */
static bool parse_burst(const char *v, size_t len, struct ur_fault_rule *r)
{
	const char *slash = memchr(v, '/', len);
	const size_t first = slash ? (size_t)(slash - v) : 0;

	return slash && ur_fault_parse_chance(v, first, &r->enter) && ur_fault_parse_chance(slash + 1, len - first - 1, &r->leave) &&
	       r->enter && r->leave;
}

static bool parse_what(const char *v, size_t len, struct ur_fault_rule *r)
{
	r->part = ur_fault_part_named(v, len);
	return r->part;
}

static bool parse_fix(const char *v, size_t len, struct ur_fault_rule *r)
{
	return r->fix = is_word(v, len, "icrc");
}

static bool parse_dscp(const char *v, size_t len, struct ur_fault_rule *r)
{
	uint64_t n;

	if (!parse_plain(v, len, 63, &n))
		return false;
	r->dscp = (int)n;
	return true;
}

/* A word of the form KEY=VALUE; NULL when it is none. */
static const char *value_of(const char *word, size_t len, size_t *rest)
{
	const char *eq = memchr(word, '=', len);

	if (eq)
		*rest = (size_t)(word + len - eq - 1);
	return eq ? eq + 1 : NULL;
}

static bool parse_match(const char *word, size_t len, struct ur_fault_match *m)
{
	const struct {
		const char *key;
		bool (*parse)(const char *v, size_t len, struct ur_fault_match *m);
		uint32_t *number; /* from 1 */
		uint32_t most;
	} keys[] = {
		{"opcode", .parse = parse_opcode},
		{"psn", .parse = parse_psn},
		{"src", .parse = parse_src},
		{"dst", .parse = parse_dst},
		{"port", .parse = parse_port},
		{"service", .parse = parse_service},
		{"qpn", .number = &m->qpn, .most = 0xffffff},
		{"msg", .number = &m->msg, .most = UINT32_MAX},
		{"iteration", .number = &m->iteration, .most = UR_FAULT_ITERATIONS},
	};
	size_t rest;
	const char *v = value_of(word, len, &rest);

	for (unsigned i = 0; v && i < ur_array_size(keys); i++) {
		if (!is_word(word, (size_t)(v - 1 - word), keys[i].key))
			continue;
		if (keys[i].parse)
			return keys[i].parse(v, rest, m);
		return parse_count(v, rest, keys[i].most, keys[i].number);
	}
	return parse_dir(word, len, &m->dir);
}

static bool parse_condition(const char *word, size_t len, struct ur_fault_rule *r)
{
	const struct {
		const char *key;
		bool (*parse)(const char *v, size_t len, struct ur_fault_rule *r);
		ur_time *time;
		uint32_t *number; /* from 1 */
		uint32_t most;
	} keys[] = {
		{"chance", .parse = parse_chance},
		{"burst", .parse = parse_burst},
		{"what", .parse = parse_what},
		{"fix", .parse = parse_fix},
		{"dscp", .parse = parse_dscp},
		{"delay", .time = &r->delay},
		{"after", .time = &r->after},
		{"for", .time = &r->lasts},
		{"nth", .number = &r->nth, .most = UINT32_MAX},
		{"times", .number = &r->times, .most = UINT32_MAX},
		{"by", .number = &r->by, .most = 1000},
		{"keep", .number = &r->keep, .most = 4096},
		{"most", .number = &r->most, .most = 1000},
	};
	size_t rest;
	const char *v = value_of(word, len, &rest);

	for (unsigned i = 0; v && i < ur_array_size(keys); i++) {
		if (!is_word(word, (size_t)(v - 1 - word), keys[i].key))
			continue;
		if (keys[i].parse)
			return keys[i].parse(v, rest, r);
		if (keys[i].time)
			return ur_fault_parse_time(v, rest, keys[i].time) && (*keys[i].time || keys[i].time == &r->after);
		return parse_count(v, rest, keys[i].most, keys[i].number);
	}
	return parse_match(word, len, &r->on);
}

/* After the word `until`: the packet, or "told". */
static bool parse_until(const char *word, size_t len, struct ur_fault_rule *r)
{
	if (r->ends == UR_FAULT_UNTIL_TOLD)
		return false;
	if (is_word(word, len, "told") && r->ends == UR_FAULT_UNTIL_NOTHING) {
		r->ends = UR_FAULT_UNTIL_TOLD;
		return true;
	}
	r->ends = UR_FAULT_UNTIL_PACKET;
	return parse_match(word, len, &r->until);
}

static const char begins[] = "a rule begins with drop, dup, delay, reorder, corrupt, mark, trim or hold";
#define CONDITIONS(directions)                                                                                                             \
	"conditions are " directions " and opcode=, qpn=, psn=, msg=, iteration=, src=, dst=, port=, service=, nth=, times=, chance=, "    \
	"burst=, by=, what=, fix=icrc, keep=, dscp=, most=, and after=, for= and delay= (with us, ms or s)"
#define EVENTS(directions)                                                                                                                 \
	"after 'until' give 'told', or " directions " and opcode=, qpn=, psn=, msg=, iteration=, src=, dst=, port= or service= of a "      \
	"packet"

/* In the words of a host, and of a cable; both understand both. */
static const struct words {
	const char *conditions, *events;
} of_host = {CONDITIONS("tx, rx or both"), EVENTS("tx, rx or both")},
  of_cable = {CONDITIONS("1to2, 2to1 or both"), EVENTS("1to2, 2to1 or both")};

/* What goes with which actions. */
static const char *check(const struct ur_fault_rule *r)
{
	const bool corrupts = r->action == UR_FAULT_CORRUPT, trims = r->action == UR_FAULT_TRIM, holds = r->action == UR_FAULT_HOLD;

	if (r->action == UR_FAULT_DELAY && !r->delay)
		return "a delay needs its length, such as delay=5ms";
	if (r->part && !corrupts)
		return "what= goes with corrupt alone";
	if (corrupts && r->fix && (!r->part || r->part == ur_fault_part_named("icrc", 4)))
		return "fix=icrc needs what=payload, what=header or what= and a field of these";
	if (r->fix && !corrupts && !trims)
		return "fix=icrc goes with corrupt and trim alone";
	if ((r->keep || r->dscp >= 0) && !trims)
		return "keep= and dscp= go with trim alone";
	if (holds && !r->ends)
		return "a hold needs what ends it, such as 'until 2to1 opcode=ACK' or 'until told'";
	if (!holds && (r->ends || r->most))
		return "until and most= go with hold alone";
	return NULL;
}

static void fill_in(struct ur_fault_rule *r)
{
	/* A condition without a number means 1. */
	if (r->nth && !r->times)
		r->times = 1;
	if (r->action == UR_FAULT_REORDER && !r->by)
		r->by = 1;
	if (r->action == UR_FAULT_REORDER && !r->delay)
		r->delay = REORDER_NS;
	if (r->action == UR_FAULT_HOLD && !r->most)
		r->most = HOLD_MOST;
	if (r->action == UR_FAULT_HOLD && !r->delay)
		r->delay = HOLD_NS;
}

static const char *parse(const char *text, struct ur_fault_rule *r, unsigned *at, const struct words *w)
{
	bool first = true, until = false;
	const char *p = text, *wrong;
	size_t len;

	*r = (struct ur_fault_rule){.on = {.opcode = -1, .psn = -1}, .until = {.opcode = -1, .psn = -1}, .dscp = -1};
	for (p += strspn(p, " "); (len = strcspn(p, " ")); p += len, p += strspn(p, " ")) {
		*at = (unsigned)(p - text);
		if (first && !parse_action(p, len, &r->action))
			return begins;
		if (!first && !until && is_word(p, len, "until")) {
			until = true;
			continue;
		}
		if (until && !parse_until(p, len, r))
			return w->events;
		if (!first && !until && !parse_condition(p, len, r))
			return w->conditions;
		first = false;
	}
	*at = until && !r->ends ? (unsigned)(p - text) : 0;
	if (first)
		return begins;
	if (until && !r->ends)
		return w->events;
	wrong = check(r);
	fill_in(r);
	return wrong;
}

const char *ur_fault_rule_parse(const char *text, struct ur_fault_rule *r, unsigned *at)
{
	return parse(text, r, at, &of_host);
}

const char *ur_fault_rule_parse_cable(const char *text, struct ur_fault_rule *r, unsigned *at)
{
	return parse(text, r, at, &of_cable);
}

const char *ur_fault_rule_of_cables(const struct ur_fault_rule *r)
{
	if (r->action == UR_FAULT_TRIM)
		return "switches trim packets: only 'uroce between' does that";
	if (r->action == UR_FAULT_HOLD && r->ends == UR_FAULT_UNTIL_TOLD)
		return "only 'uroce between' can be told to release packets";
	if (r->action == UR_FAULT_CORRUPT && r->part)
		return "only 'uroce between' chooses what is corrupted: leave what= out";
	if (r->on.service || r->until.service)
		return "only 'uroce between' knows packets by service=: it sees both ends of a connection";
	return NULL;
}
