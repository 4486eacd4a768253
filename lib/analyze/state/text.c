/* SPDX-License-Identifier: BSD-3-Clause */
/* The rule table, and sentences from it: holes are filled, phrases may have holes of their own. */
#include "analyze/analyze.h"
#include "wire/frame.h"

const struct ur_rule_info ur_rules[UR_RULE_COUNT] = {
#define UR_RULE_ROW(id, name, severity, sentence, clause) [UR_RULE_##id] = {name, UR_##severity, sentence, clause},
	UR_RULES(UR_RULE_ROW)
#undef UR_RULE_ROW
};

const char *const ur_an_cause_names[UR_AN_CAUSES] = {
	[UR_AN_SEQ_NAK] = "sequence NAK",     [UR_AN_RNR] = "RNR NAK", [UR_AN_TIMEOUT] = "timeout",
	[UR_AN_IMPLIED] = "missing response", [UR_AN_SACK] = "SACK",   [UR_AN_SPURIOUS] = "without need",
};
const char *const ur_an_place_names[UR_AN_PLACES] = {
	[UR_AN_BEFORE] = "between the sender and the recorder",
	[UR_AN_BEHIND] = "between the recorder and the receiver",
	[UR_AN_FAR] = "on the other side of the recorder",
	[UR_AN_MISSED] = "missed by the recorder",
	[UR_AN_OVERTAKEN] = "overtaken",
};

struct out {
	char *to;
	size_t room, n;
};

static void put_char(struct out *o, char c)
{
	if (o->n + 1 < o->room)
		o->to[o->n++] = c;
}

static void put_text(struct out *o, const char *s)
{
	for (; s && *s; s++)
		put_char(o, *s);
}

static void put_number(struct out *o, uint64_t v, unsigned base)
{
	char digits[24];
	unsigned n = 0;

	do
		digits[n++] = "0123456789abcdef"[v % base];
	while (v /= base);
	while (n)
		put_char(o, digits[--n]);
}

/* Three digits that count, in the unit that suits. */
static void put_time(struct out *o, uint64_t ns)
{
	static const struct {
		uint64_t ns;
		const char *name;
	} units[] = {{UR_NS_PER_S, " s"}, {UR_NS_PER_MS, " ms"}, {UR_NS_PER_US, " us"}, {1, " ns"}};
	unsigned u = 0;
	uint64_t whole, part;

	while (u < 3 && ns < units[u].ns)
		u++;
	whole = ns / units[u].ns;
	part = ns % units[u].ns * 100 / units[u].ns;
	put_number(o, whole, 10);
	if (whole < 100 && u < 3) {
		put_char(o, '.');
		put_char(o, (char)('0' + part / 10));
		if (whole < 10)
			put_char(o, (char)('0' + part % 10));
	}
	put_text(o, units[u].name);
}

static void put_mac(struct out *o, uint64_t mac)
{
	for (int shift = 44; shift >= 0; shift -= 4) {
		put_number(o, mac >> shift & 15, 16);
		if (shift % 8 == 0 && shift)
			put_char(o, ':');
	}
}

static void put_bits(struct out *o, uint64_t v)
{
	const char *sep = "";

	for (unsigned i = 0; i < 64; i++) {
		if (!(v >> i & 1))
			continue;
		put_text(o, sep);
		put_number(o, i, 10);
		sep = ", ";
	}
}

static void put_phrase(struct out *o, const struct ur_finding *f, const char *s, unsigned depth);

static void put_hole(struct out *o, const struct ur_finding *f, const char *hole, unsigned depth)
{
	char addr[UR_IP_TEXT];
	unsigned i = (unsigned)(hole[1] - '0') & 3;

	switch (hole[0]) {
	case 'f':
		put_text(o, "frame ");
		put_number(o, f->seen[i % 3], 10);
		return;
	case 't': put_time(o, f->v[i]); return;
	case 'x':
		put_text(o, "0x");
		put_number(o, f->v[i], 16);
		return;
	case 'm': put_mac(o, f->v[i]); return;
	case 'b': put_bits(o, f->v[i]); return;
	case 'p': put_text(o, ur_plural(f->v[i])); return;
	case 'e':
		put_text(o, f->excuse ? ": " : "");
		put_text(o, f->excuse);
		return;
	case 'd': put_text(o, ur_gid_ip(&f->dst, addr)); return;
	case 's':
		if (hole[1] == 'r')
			put_text(o, ur_gid_ip(&f->src, addr));
		else if (depth)
			put_phrase(o, f, f->s[i & 1], depth - 1);
		return;
	default: put_number(o, f->v[(unsigned)(hole[0] - '0') & 3], 10);
	}
}

static void put_phrase(struct out *o, const struct ur_finding *f, const char *s, unsigned depth)
{
	for (; s && *s; s++) {
		if (*s != '{') {
			put_char(o, *s);
			continue;
		}
		put_hole(o, f, s + 1, depth);
		while (*s && *s != '}')
			s++;
		if (!*s)
			return;
	}
}

size_t ur_finding_text(const struct ur_finding *f, char *to, size_t room)
{
	struct out o = {to, room, 0};

	put_phrase(&o, f, ur_rules[f->rule].sentence, 2);
	to[o.n] = 0;
	return o.n;
}

const char *ur_an_nak_text(uint8_t syndrome)
{
	static const char *const codes[] = {
		[UR_NAK_PSN_SEQ] = "a packet is missing",
		[UR_NAK_INV_REQ] = "the request is invalid: its operation, its length or the number of READs exceeds what the QP accepts",
		[UR_NAK_REM_ACCESS] = "the key, the address or the length does not allow the access",
		[UR_NAK_REM_OP] = "its own operation failed",
		[UR_NAK_INV_RD] = "the RD request is invalid",
	};

	return ur_syndrome_value(syndrome) < ur_array_size(codes) ? codes[ur_syndrome_value(syndrome)] : "a reserved reason";
}
