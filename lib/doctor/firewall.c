/* SPDX-License-Identifier: BSD-3-Clause */
#include "doctor/firewall.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH 16    /* of jumps: the kernel's own bound */
#define STEPS 50000 /* rules looked at: chains that jump to one another take exponentially many */

enum applies { NO, MAYBE, YES };

struct walk {
	const struct ur_firewall_packet *packet;
	char **lines;
	unsigned table, base; /* their first lines */
	bool inbound;
	const char *saved; /* the newest rule that may have let the packet pass, or sent it elsewhere; NULL: none */
	unsigned depth, steps;
	struct ur_firewall *out;
};

/* Words of rules: what they ask of the packet, which is to UDP port 4791, and what becomes of it. */
enum meaning { PORT, PROTOCOL, STATE, IN, OUT, ELSE, NOTHING, DROP, QUEUE, RETURN, JUMP, ACCEPT, UNKNOWN };
static const char *const words[][7] = {
	[PORT] = {"udp dport", "th dport"},
	[PROTOCOL] = {"meta l4proto", "ip protocol", "ip6 nexthdr"},
	[STATE] = {"ct state"},
	[IN] = {"iifname", "iif"},
	[OUT] = {"oifname", "oif"},
	[ELSE] = {"tcp", "icmp", "icmpv6", "igmp", "sctp", "esp", "ah"},
	[NOTHING] = {"counter", "packets", "bytes", "log", "prefix", "comment"},
	[DROP] = {"drop", "reject"},
	[QUEUE] = {"queue"},
	[RETURN] = {"return"},
	[JUMP] = {"jump", "goto"},
	[ACCEPT] = {"accept"},
};

static bool begins(const char *s, const char *text)
{
	const size_t n = strlen(text);

	return !strncmp(s, text, n) && (!s[n] || s[n] == ' ');
}

/* Behind a word, a string or a set. */
static const char *skip_word(const char *s)
{
	const char *last = *s == '"' ? strchr(s + 1, '"') : *s == '{' ? strchr(s, '}') : NULL;

	s = last ? last + 1 : s + strcspn(s, " ");
	return s + strspn(s, " ");
}

/* Skips it. A number or a string asks for nothing by itself. */
static enum meaning take_word(const char **s)
{
	const enum meaning other = isdigit((unsigned char)**s) || **s == '"' ? NOTHING : UNKNOWN;

	for (unsigned k = 0; k < ur_array_size(words); k++)
		for (unsigned i = 0; i < ur_array_size(words[k]) && words[k][i]; i++)
			if (begins(*s, words[k][i])) {
				*s += strlen(words[k][i]);
				*s += strspn(*s, " ");
				return k;
			}
	*s = skip_word(*s);
	return other;
}

static enum applies is_ours(const struct walk *w, enum meaning what, const char *value)
{
	char *rest;
	unsigned long low = strtoul(value, &rest, 10), high = *rest == '-' ? strtoul(rest + 1, &rest, 10) : low;

	if (!isalnum((unsigned char)*value) || (what == PORT && *rest))
		return MAYBE; /* a set that has a name, a comparison, several values in one */
	if (what == PORT)
		return low <= 4791 && 4791 <= high ? YES : NO;
	if (what == PROTOCOL)
		return strcmp(value, "udp") ? NO : YES;
	if (what == STATE) /* answers of UDP sockets come from port 4791, and so are of a known flow; those of a NIC are not */
		return strcmp(value, "new") && strcmp(value, "established") && strcmp(value, "untracked") ? NO : MAYBE;
	return (what == IN) == w->inbound && !fnmatch(value, w->packet->dev, 0) ? YES : NO;
}

/* `at`: the line that says so. */
static void take_drop(struct walk *w, unsigned at, const char *rule, bool surely)
{
	const enum ur_firewall_verdict v = surely && !w->saved ? UR_FIREWALL_DROPS : UR_FIREWALL_MAY_DROP;
	char family[16] = "", table[64] = "", chain[64] = "", base[64] = "";

	if (v <= w->out->verdict)
		return;
	w->out->verdict = v;
	while (!sscanf(w->lines[at], " chain %63s", chain))
		at--;
	sscanf(w->lines[w->base], " chain %63s", base);
	sscanf(w->lines[w->table], "table %15s %63s", family, table);
	snprintf(w->out->where, sizeof(w->out->where), "'%.200s' in chain %s of nftables' table %s %s%s%.140s%s", rule, chain, family,
		 table, w->saved ? " (after '" : "", w->saved ? w->saved : "", w->saved ? "')" : "");
	snprintf(w->out->remedy, sizeof(w->out->remedy), "nft insert rule %s %s %s udp dport 4791 accept", family, table, base);
}

static bool walk_chain(struct walk *w, unsigned at);

/* True: the packet's way ends here. */
static bool obey(struct walk *w, unsigned at, const char *verdict, enum applies t)
{
	const enum meaning m = take_word(&verdict);
	char name[257] = "";

	if (t == NO || m < DROP || m == UNKNOWN)
		return false;
	if (m == DROP || m == QUEUE)
		take_drop(w, at, w->lines[at] + 2, t == YES && m == DROP);
	if (m != DROP && (m == RETURN || t == MAYBE))
		w->saved = w->lines[at] + 2;
	for (unsigned i = w->table; m == JUMP && w->lines[i] && *w->lines[i] != '}'; i++)
		if (begins(w->lines[i], "\tchain") && sscanf(w->lines[i] + 7, "%256s", name) == 1 && begins(verdict, name))
			return walk_chain(w, i) && t == YES;
	return m != RETURN && m != JUMP && t == YES;
}

/* The values at *s, which it skips; in a map each has a verdict. True: the packet's way ends here. */
static bool ask(struct walk *w, unsigned at, enum meaning m, const char **s, enum applies *t)
{
	const bool map = begins(*s, "vmap"), other = begins(*s, "!=");
	const char *values = map || other ? skip_word(*s) : *s;
	char set[2048], *save, *verdict;
	enum applies any, here;

	*s = skip_word(values);
	any = (size_t)(*s - values) < sizeof(set) ? NO : MAYBE;
	snprintf(set, sizeof(set), "%.*s", (int)(*s - values), values);
	for (char *v = strtok_r(set, "{,}", &save); v && any != YES; v = strtok_r(NULL, "{,}", &save)) {
		verdict = strstr(v, " : ");
		v += strspn(v, " \"");
		v[strcspn(v, " \"")] = 0;
		here = *v ? is_ours(w, m, v) : NO;
		any = here > any ? here : any;
		if (map && obey(w, at, verdict ? verdict + 3 : "queue", here < *t ? here : *t))
			return true;
	}
	any = other ? YES - any : any;
	*t = any < *t ? any : *t;
	return false;
}

static bool walk_rule(struct walk *w, unsigned at)
{
	enum applies t = YES;

	for (const char *s = w->lines[at] + 2, *was = s; *s && t != NO; was = s) {
		const enum meaning m = take_word(&s);

		if (m >= DROP && m != UNKNOWN)
			return obey(w, at, was, t);
		if (m < ELSE && ask(w, at, m, &s, &t))
			return true;
		if (m == ELSE || (m == UNKNOWN && t == YES))
			t = m == ELSE ? NO : MAYBE;
	}
	return false;
}

static bool walk_chain(struct walk *w, unsigned at)
{
	bool ends = w->depth++ >= DEPTH;

	while (!ends && w->lines[++at] && !strncmp(w->lines[at], "\t\t", 2) && w->steps++ < STEPS)
		ends = walk_rule(w, at);
	w->depth--;
	return ends;
}

/* `at`: the line of a base chain that says which packets it sees. */
static void judge_base(struct walk *w, unsigned at)
{
	const char *type = w->lines[at], *device = strstr(type, "device");

	if (strstr(type, "hook forward") || (device && !strstr(device, w->packet->dev)))
		return;
	w->inbound = strstr(type, "hook in") || strstr(type, "hook pre");
	w->saved = device; /* one with a longer name, perhaps */
	if (!walk_chain(w, w->base) && strstr(type, "policy drop"))
		take_drop(w, at, "policy drop", true);
}

static bool concerns(const char *table, const struct ur_firewall_packet *p)
{
	return begins(table, "table inet") || begins(table, "table netdev") || (begins(table, "table ip") && p->v4) ||
	       (begins(table, "table ip6") && p->v6);
}

void ur_firewall_judge(char *text, const struct ur_firewall_packet *p, struct ur_firewall *out)
{
	struct walk w = {.packet = p, .out = out, .lines = calloc(strlen(text) / 2 + 2, sizeof(char *))};
	char *save = text;

	*out = (struct ur_firewall){.verdict = UR_FIREWALL_PASSES};
	for (unsigned n = 0; w.lines && (w.lines[n] = strtok_r(NULL, "\n", &save)); n++)
		;
	for (unsigned i = 0; w.lines && w.lines[i]; i++) {
		if (begins(w.lines[i], "table"))
			w.table = i;
		else if (strncmp(w.lines[i], "\t\t", 2))
			w.base = concerns(w.lines[w.table], p) && begins(w.lines[i], "\tchain") ? i : 0;
		else if (w.base && begins(w.lines[i], "\t\ttype"))
			judge_base(&w, i);
		else if (w.base)
			out->rules++;
	}
	if (!w.lines || w.steps >= STEPS)
		*out = (struct ur_firewall){UR_FIREWALL_UNKNOWN, "the rules of nftables are too many to be followed", "nft list ruleset",
					    0};
	free(w.lines);
}
