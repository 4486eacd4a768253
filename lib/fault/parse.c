/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of a rule. */
#include "fault/rule.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "wire/opcode.h"

#define REORDER_NS (10 * UR_NS_PER_MS) /* a packet that nothing follows waits this long to be overtaken */

static bool is_word(const char *word, size_t len, const char *name)
{
	return strlen(name) == len && memcmp(word, name, len) == 0;
}

static bool parse_action(const char *word, size_t len, enum ur_fault_action *to)
{
	static const char *const names[] = {[UR_FAULT_DROP] = "drop",       [UR_FAULT_DUPLICATE] = "dup",   [UR_FAULT_DELAY] = "delay",
					    [UR_FAULT_REORDER] = "reorder", [UR_FAULT_CORRUPT] = "corrupt", [UR_FAULT_MARK] = "mark"};

	for (unsigned i = 0; i < ur_array_size(names); i++) {
		if (!is_word(word, len, names[i]))
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

/* By its whole name, or without the service: then it is that of any. */
static bool parse_opcode(const char *v, size_t len, struct ur_fault_rule *r)
{
	uint64_t number;

	r->any_service = false;
	if (parse_plain(v, len, 255, &number)) {
		r->opcode = (int)number;
		return true;
	}
	for (unsigned i = 0; i < 256; i++) {
		const char *name = ur_opcode((uint8_t)i)->name, *service = name ? strchr(name, '_') : NULL;

		if (!name)
			continue;
		r->any_service = service && is_word(v, len, service + 1);
		if (!r->any_service && !is_word(v, len, name))
			continue;
		r->opcode = (int)i;
		return true;
	}
	return false;
}

/* Absolute, or from the first of the flow: +N. */
static bool parse_psn(const char *v, size_t len, struct ur_fault_rule *r)
{
	uint64_t n;

	r->relative = len && *v == '+';
	if (!parse_plain(v + r->relative, len - r->relative, 0xffffff, &n))
		return false;
	r->psn = (int64_t)n;
	return true;
}

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

static bool parse_condition(const char *word, size_t len, struct ur_fault_rule *r)
{
	const struct {
		const char *key;
		bool (*parse)(const char *v, size_t len, struct ur_fault_rule *r);
		ur_time *time;
		uint32_t *number; /* from 1 */
		uint32_t most;
	} keys[] = {
		{"opcode", .parse = parse_opcode},
		{"psn", .parse = parse_psn},
		{"chance", .parse = parse_chance},
		{"burst", .parse = parse_burst},
		{"delay", .time = &r->delay},
		{"after", .time = &r->after},
		{"for", .time = &r->lasts},
		{"qpn", .number = &r->qpn, .most = 0xffffff},
		{"msg", .number = &r->msg, .most = UINT32_MAX},
		{"iteration", .number = &r->iteration, .most = UR_FAULT_ITERATIONS},
		{"nth", .number = &r->nth, .most = UINT32_MAX},
		{"times", .number = &r->times, .most = UINT32_MAX},
		{"by", .number = &r->by, .most = 1000},
	};
	const char *eq = memchr(word, '=', len), *v;
	uint64_t n;
	size_t rest;

	if (!eq)
		return false;
	v = eq + 1;
	rest = (size_t)(word + len - v);
	for (unsigned i = 0; i < ur_array_size(keys); i++) {
		if (!is_word(word, (size_t)(eq - word), keys[i].key))
			continue;
		if (keys[i].parse)
			return keys[i].parse(v, rest, r);
		if (keys[i].time)
			return ur_fault_parse_time(v, rest, keys[i].time) && (*keys[i].time || keys[i].time == &r->after);
		if (!parse_plain(v, rest, keys[i].most, &n) || !n)
			return false;
		*keys[i].number = (uint32_t)n;
		return true;
	}
	return false;
}

static const char begins[] = "a rule begins with drop, dup, delay, reorder, corrupt or mark";

const char *ur_fault_rule_parse(const char *text, struct ur_fault_rule *r, unsigned *at)
{
	const char *p = text;
	bool first = true;

	*r = (struct ur_fault_rule){.opcode = -1, .psn = -1};
	for (;;) {
		size_t len;

		p += strspn(p, " ");
		*at = (unsigned)(p - text);
		len = strcspn(p, " ");
		if (!len)
			break;
		if (first && !parse_action(p, len, &r->action))
			return begins;
		if (!first && !parse_dir(p, len, &r->dir) && !parse_condition(p, len, r))
			return "tx, rx or both and opcode=, qpn=, psn=, msg=, iteration=, nth=, times=, chance=, burst=, by=, and after=, "
			       "for= and "
			       "delay= "
			       "(with us, ms or s)";
		first = false;
		p += len;
	}
	*at = 0;
	if (first)
		return begins;
	/* The one that is named alone is one. */
	if (r->nth && !r->times)
		r->times = 1;
	if (r->action == UR_FAULT_DELAY && !r->delay)
		return "a delay needs its length, such as delay=5ms";
	if (r->action == UR_FAULT_REORDER && !r->by)
		r->by = 1;
	if (r->action == UR_FAULT_REORDER && !r->delay)
		r->delay = REORDER_NS;
	return NULL;
}
