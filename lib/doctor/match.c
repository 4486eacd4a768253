/* SPDX-License-Identifier: BSD-3-Clause */
/* Expressions of nftables (libnftables-json(5)) in three-valued logic. */
#include <arpa/inet.h>
#include <string.h>

#include "doctor/match.h"

#define DEPTH 8 /* of sets in sets */

/* What the packet has where an expression looks. */
struct value {
	enum {
		UNKNOWN,
		ABSENT,
		NUMBER,
		WORD,
		ADDRESS,
		STATE
	} kind;            /* ABSENT: the packet is of another kind, so no rule that asks for it applies */
	const char *word;  /* of WORD and ADDRESS */
	json_int_t number; /* of NUMBER; of WORD a number that means the same, or -1 */
};

static const struct value unknown = {.kind = UNKNOWN}, absent = {.kind = ABSENT}, udp = {.kind = WORD, .word = "udp", .number = 17};

static struct value word(const char *w)
{
	return (struct value){.kind = WORD, .word = w, .number = -1};
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

/* --- what the packet has --- */

static struct value transport_value(const char *field)
{
	return strcmp(field, "dport") ? unknown : (struct value){.kind = NUMBER, .number = 4791};
}

static struct value ip_value(const struct ur_match *m, const char *field)
{
	if (!strcmp(field, "protocol") || !strcmp(field, "nexthdr"))
		return udp;
	if (m->peer && !strcmp(field, m->outbound ? "daddr" : "saddr"))
		return (struct value){.kind = ADDRESS, .word = m->peer};
	return unknown;
}

static struct value payload_value(const struct ur_match *m, const json_t *payload)
{
	static const char *const others[] = {"tcp", "icmp", "icmpv6", "igmp", "sctp", "dccp", "udplite", "esp", "ah", "comp", "arp"};
	const char *protocol = text_of(payload, "protocol"), *field = text_of(payload, "field");

	for (unsigned i = 0; i < ur_array_size(others); i++)
		if (!strcmp(protocol, others[i]))
			return absent;
	if (!strcmp(protocol, "udp") || !strcmp(protocol, "th"))
		return transport_value(field);
	if (!strcmp(protocol, "ip"))
		return m->v6 ? absent : ip_value(m, field);
	if (!strcmp(protocol, "ip6"))
		return m->v6 ? ip_value(m, field) : absent;
	return unknown;
}

static struct value meta_value(const struct ur_match *m, const char *key)
{
	if (!strcmp(key, "l4proto"))
		return udp;
	if (!strcmp(key, "nfproto"))
		return word(m->v6 ? "ipv6" : "ipv4");
	if (!strcmp(key, "protocol"))
		return word(m->v6 ? "ip6" : "ip");
	if (!strcmp(key, "iifname") || !strcmp(key, "iif"))
		return word(m->outbound ? "" : m->dev);
	if (!strcmp(key, "oifname") || !strcmp(key, "oif"))
		return word(m->outbound ? m->dev : "");
	return unknown;
}

static struct value value_of(const struct ur_match *m, const json_t *left)
{
	const json_t *payload = json_object_get(left, "payload"), *meta = json_object_get(left, "meta"), *ct = json_object_get(left, "ct");

	if (payload)
		return payload_value(m, payload);
	if (meta)
		return meta_value(m, text_of(meta, "key"));
	if (ct && !strcmp(text_of(ct, "key"), "state"))
		return (struct value){.kind = STATE};
	return unknown;
}

/* --- what a match asks for --- */

static enum ur_tri yes_if(bool b)
{
	return b ? UR_YES : UR_NO;
}

static enum ur_tri word_is(const struct value *v, const char *text)
{
	size_t n = strlen(text);

	/* An answer is of a known flow where its sender's port is 4791 as well, as that of UDP sockets is; a NIC takes others. */
	if (v->kind == STATE)
		return strcmp(text, "new") && strcmp(text, "established") ? UR_NO : UR_MAYBE;
	if (v->kind != WORD)
		return UR_MAYBE;
	if (n && text[n - 1] == '*')
		return yes_if(!strncmp(v->word, text, n - 1));
	return yes_if(!strcmp(v->word, text));
}

/* Bytes of an address in network order; 0 when it is none. */
static unsigned address_bytes(const char *text, uint8_t out[16])
{
	return text && inet_pton(AF_INET, text, out) == 1 ? 4 : text && inet_pton(AF_INET6, text, out) == 1 ? 16 : 0;
}

static enum ur_tri address_within(const struct value *v, const char *low, const char *high)
{
	uint8_t a[16], l[16], h[16];
	unsigned n = address_bytes(v->word, a);

	if (!n || address_bytes(low, l) != n || address_bytes(high, h) != n)
		return UR_MAYBE;
	return yes_if(memcmp(a, l, n) >= 0 && memcmp(a, h, n) <= 0);
}

static enum ur_tri address_in_prefix(const struct value *v, const json_t *prefix)
{
	json_int_t bits = json_integer_value(json_object_get(prefix, "len"));
	uint8_t a[16], net[16];
	unsigned n = address_bytes(v->word, a);

	if (v->kind != ADDRESS || !n || address_bytes(json_string_value(json_object_get(prefix, "addr")), net) != n || bits < 0 ||
	    bits > 8 * (json_int_t)n)
		return UR_MAYBE;
	for (unsigned i = 0; i < (unsigned)bits; i++)
		if ((a[i / 8] ^ net[i / 8]) & (0x80 >> i % 8))
			return UR_NO;
	return UR_YES;
}

static enum ur_tri in_range(const struct value *v, const json_t *range)
{
	const json_t *low = json_array_get(range, 0), *high = json_array_get(range, 1);

	if (v->kind == ADDRESS)
		return address_within(v, json_string_value(low), json_string_value(high));
	if (v->kind != NUMBER || !json_is_integer(low) || !json_is_integer(high))
		return UR_MAYBE;
	return yes_if(v->number >= json_integer_value(low) && v->number <= json_integer_value(high));
}

static enum ur_tri holds(const struct ur_match *m, const json_t *near, const struct value *v, const json_t *right, unsigned depth);

static enum ur_tri in_any(const struct ur_match *m, const json_t *near, const struct value *v, const json_t *list, unsigned depth)
{
	enum ur_tri t = UR_NO;
	const json_t *e;
	size_t i;

	json_array_foreach(list, i, e)
	{
		enum ur_tri one = holds(m, near, v, e, depth + 1);

		t = one > t ? one : t;
	}
	return t;
}

static enum ur_tri text_holds(const struct ur_match *m, const json_t *near, const struct value *v, const json_t *right, unsigned depth)
{
	const char *text = json_string_value(right);

	if (text[0] == '@')
		return in_any(m, near, v, ur_match_elements(m, near, right), depth);
	return v->kind == ADDRESS ? address_within(v, text, text) : word_is(v, text);
}

static enum ur_tri object_holds(const struct ur_match *m, const json_t *near, const struct value *v, const json_t *right, unsigned depth)
{
	const json_t *inner;

	if ((inner = json_object_get(right, "set")))
		return in_any(m, near, v, inner, depth);
	if ((inner = json_object_get(right, "range")))
		return in_range(v, inner);
	if ((inner = json_object_get(right, "prefix")))
		return address_in_prefix(v, inner);
	if ((inner = json_object_get(right, "elem"))) /* with a counter or a time limit of its own */
		return holds(m, near, v, json_object_get(inner, "val"), depth + 1);
	return UR_MAYBE;
}

static enum ur_tri holds(const struct ur_match *m, const json_t *near, const struct value *v, const json_t *right, unsigned depth)
{
	if (depth > DEPTH || !right)
		return UR_MAYBE;
	if (json_is_string(right))
		return text_holds(m, near, v, right, depth);
	if (json_is_integer(right))
		return v->kind == NUMBER || (v->kind == WORD && v->number >= 0) ? yes_if(json_integer_value(right) == v->number) : UR_MAYBE;
	if (json_is_array(right))
		return in_any(m, near, v, right, depth);
	return object_holds(m, near, v, right, depth);
}

static enum ur_tri compare(const struct value *v, const char *op, const json_t *right)
{
	json_int_t n = json_integer_value(right);

	if (v->kind != NUMBER || !json_is_integer(right))
		return UR_MAYBE;
	if (!strcmp(op, "<"))
		return yes_if(v->number < n);
	if (!strcmp(op, ">"))
		return yes_if(v->number > n);
	if (!strcmp(op, "<="))
		return yes_if(v->number <= n);
	return !strcmp(op, ">=") ? yes_if(v->number >= n) : UR_MAYBE;
}

enum ur_tri ur_match_value(const struct ur_match *m, const json_t *near, const json_t *left, const char *op, const json_t *right)
{
	struct value v = value_of(m, left);

	if (v.kind == ABSENT)
		return UR_NO;
	if (v.kind == UNKNOWN)
		return UR_MAYBE;
	if (!strcmp(op, "==") || !strcmp(op, "in"))
		return holds(m, near, &v, right, 0);
	if (!strcmp(op, "!="))
		return ur_tri_not(holds(m, near, &v, right, 0));
	return compare(&v, op, right);
}

const json_t *ur_match_elements(const struct ur_match *m, const json_t *near, const json_t *set)
{
	const char *name = json_string_value(set);
	const json_t *item;
	size_t i;

	if (!name)
		return json_object_get(set, "set");
	json_array_foreach(m->ruleset, i, item)
	{
		const json_t *s = json_object_get(item, "set");

		s = s ? s : json_object_get(item, "map");
		if (s && *name == '@' && !strcmp(text_of(s, "name"), name + 1) && !strcmp(text_of(s, "table"), text_of(near, "table")) &&
		    !strcmp(text_of(s, "family"), text_of(near, "family")))
			return json_object_get(s, "elem");
	}
	return NULL;
}
