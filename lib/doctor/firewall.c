/* SPDX-License-Identifier: BSD-3-Clause */
/* Leads a RoCEv2 packet through the chains of a ruleset. */
#include <stdio.h>
#include <string.h>

#include "doctor/match.h"

#define DEPTH 16     /* of jumps: the kernel's own bound */
#define STEPS 500000 /* rules looked at: chains that jump to one another take exponentially many */

struct walk {
	struct ur_match m;
	const json_t *chains; /* by key_of: an array of the chain, and then its rules */
	enum ur_firewall_verdict worst;
	bool maybe_passed; /* a rule that may apply has accepted the packet */
	unsigned steps;
	char where[256];
};

enum walked { FELL_THROUGH, STOPPED };

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

/* --- verdicts --- */

static void take_drop(struct walk *w, bool certain, const json_t *chain, const json_t *rule)
{
	enum ur_firewall_verdict v = certain && !w->maybe_passed ? UR_FIREWALL_DROPS : UR_FIREWALL_MAY_DROP;
	char which[64] = "the policy";

	if (v <= w->worst)
		return;
	w->worst = v;
	if (rule)
		snprintf(which, sizeof(which), "the rule with handle %d", (int)json_integer_value(json_object_get(rule, "handle")));
	snprintf(w->where, sizeof(w->where), "%s in chain %.60s of nftables' table %.8s %.60s", which, text_of(chain, "name"),
		 text_of(chain, "family"), text_of(chain, "table"));
}

/* A rule names the chain that it is in, a chain has a name, a jump a target in the same table. */
static const char *key_of(const json_t *near, const char *chain, char *key, size_t len)
{
	snprintf(key, len, "%.16s %.128s %.128s", text_of(near, "family"), text_of(near, "table"), chain);
	return key;
}

static const json_t *find_chain(const struct walk *w, const json_t *near, const char *name)
{
	char key[300];

	return json_array_get(json_object_get(w->chains, key_of(near, name, key, sizeof(key))), 0);
}

static json_t *index_chains(const json_t *ruleset)
{
	json_t *chains = json_object(), *item;
	char key[300];
	size_t i;

	json_array_foreach(ruleset, i, item)
	{
		json_t *c = json_object_get(item, "chain");

		if (c)
			json_object_set_new(chains, key_of(c, text_of(c, "name"), key, sizeof(key)), json_pack("[O]", c));
	}
	json_array_foreach(ruleset, i, item)
	{
		json_t *r = json_object_get(item, "rule");

		if (r)
			json_array_append(json_object_get(chains, key_of(r, text_of(r, "chain"), key, sizeof(key))), r);
	}
	return chains;
}

static enum walked walk_chain(struct walk *w, const json_t *chain, bool certain, unsigned depth);

struct place {
	const json_t *chain, *rule;
	bool certain; /* the packet surely comes to this chain */
	unsigned depth;
};

/* What a verdict does that applies (UR_YES) or may apply. True when the chain ends here. */
static bool apply(struct walk *w, const struct place *at, const char *verdict, const json_t *arg, enum ur_tri cond, enum walked *end)
{
	bool sure = cond == UR_YES, goes = !strcmp(verdict, "goto");
	const json_t *target;
	enum walked r;

	*end = STOPPED;
	if (!strcmp(verdict, "accept")) {
		w->maybe_passed = w->maybe_passed || !sure || !at->certain;
		return sure;
	}
	if (!strcmp(verdict, "drop") || !strcmp(verdict, "reject")) {
		take_drop(w, sure && at->certain, at->chain, at->rule);
		return sure;
	}
	if (!strcmp(verdict, "queue")) {
		take_drop(w, false, at->chain, at->rule);
		w->maybe_passed = true;
		return sure;
	}
	if (!strcmp(verdict, "return")) {
		*end = FELL_THROUGH;
		return sure;
	}
	if (!goes && strcmp(verdict, "jump"))
		return false;
	target = at->depth < DEPTH ? find_chain(w, at->chain, text_of(arg, "target")) : NULL;
	r = target ? walk_chain(w, target, at->certain && sure, at->depth + 1) : FELL_THROUGH;
	if (!sure)
		return false;
	*end = r;
	return r == STOPPED || goes;
}

static const char *const verdicts[] = {"accept", "drop", "reject", "queue", "return", "jump", "goto"};

static bool apply_any(struct walk *w, const struct place *at, const json_t *statement, enum ur_tri cond, enum walked *end)
{
	for (unsigned i = 0; i < ur_array_size(verdicts); i++) {
		const json_t *arg = json_object_get(statement, verdicts[i]);

		if (arg)
			return apply(w, at, verdicts[i], arg, cond, end);
	}
	return false;
}

/* A verdict map: the element that holds the packet's value says what happens; of those that may hold it, any. */
static bool apply_map(struct walk *w, const struct place *at, const json_t *map, enum ur_tri cond, enum walked *end)
{
	const json_t *elements = ur_match_elements(&w->m, at->chain, json_object_get(map, "data")), *e;
	const json_t *key = json_object_get(map, "key");
	size_t i;

	json_array_foreach(elements, i, e)
	{
		enum ur_tri t = ur_tri_and(cond, ur_match_value(&w->m, at->chain, key, "==", json_array_get(e, 0)));

		if (t != UR_NO && apply_any(w, at, json_array_get(e, 1), t, end))
			return true;
		if (t == UR_YES)
			return false;
	}
	return false;
}

/* --- rules --- */

/* Statements that neither ask nor decide anything. */
static bool is_neutral(const json_t *statement)
{
	static const char *const names[] = {"counter", "log",  "mangle",     "notrack",  "comment", "set", "secmark",
					    "snat",    "dnat", "masquerade", "redirect", "dup",     "flow"};

	for (unsigned i = 0; i < ur_array_size(names); i++)
		if (json_object_get(statement, names[i]))
			return true;
	return false;
}

static bool is_verdict(const json_t *statement)
{
	for (unsigned i = 0; i < ur_array_size(verdicts); i++)
		if (json_object_get(statement, verdicts[i]))
			return true;
	return false;
}

static bool walk_rule(struct walk *w, const struct place *at, enum walked *end)
{
	enum ur_tri cond = UR_YES;
	const json_t *statement;
	size_t i;

	json_array_foreach(json_object_get(at->rule, "expr"), i, statement)
	{
		const json_t *match = json_object_get(statement, "match"), *map = json_object_get(statement, "vmap");

		if (match)
			cond = ur_tri_and(cond, ur_match_value(&w->m, at->chain, json_object_get(match, "left"), text_of(match, "op"),
							       json_object_get(match, "right")));
		else if (map && apply_map(w, at, map, cond, end))
			return true;
		else if (!map && is_verdict(statement))
			return cond != UR_NO && apply_any(w, at, statement, cond, end);
		else if (!map && !is_neutral(statement))
			cond = ur_tri_and(cond, UR_MAYBE); /* a limit, or what we do not know */
		if (cond == UR_NO)
			return false;
	}
	return false;
}

static enum walked walk_chain(struct walk *w, const json_t *chain, bool certain, unsigned depth)
{
	struct place at = {.chain = chain, .certain = certain, .depth = depth};
	const json_t *list;
	char key[300];

	list = json_object_get(w->chains, key_of(chain, text_of(chain, "name"), key, sizeof(key)));
	for (size_t i = 1; i < json_array_size(list); i++) {
		enum walked end;

		if (++w->steps > STEPS)
			return STOPPED;
		at.rule = json_array_get(list, i);
		if (walk_rule(w, &at, &end))
			return end;
	}
	return FELL_THROUGH;
}

/* --- base chains --- */

static bool hook_is(const json_t *chain, const char *const *hooks)
{
	for (; *hooks; hooks++)
		if (!strcmp(text_of(chain, "hook"), *hooks))
			return true;
	return false;
}

static bool sees_it(const struct ur_match *m, const json_t *chain)
{
	static const char *const in[] = {"ingress", "prerouting", "input", NULL}, *const out[] = {"output", "postrouting", "egress", NULL};
	const char *family = text_of(chain, "family"), *dev = text_of(chain, "dev");

	if (!hook_is(chain, m->outbound ? out : in))
		return false;
	if (!strcmp(family, "netdev"))
		return !*dev || !strcmp(dev, m->dev);
	return !strcmp(family, "inet") || !strcmp(family, m->v6 ? "ip6" : "ip");
}

/* An older nft does not say which interface a chain of the family netdev is for: then it may be this one. */
static bool surely_sees_it(const json_t *chain)
{
	return strcmp(text_of(chain, "family"), "netdev") || *text_of(chain, "dev");
}

static void judge_chain(struct walk *w, const json_t *chain, struct ur_firewall *out)
{
	bool certain = surely_sees_it(chain);

	w->worst = UR_FIREWALL_PASSES;
	w->maybe_passed = false;
	if (walk_chain(w, chain, certain, 0) == FELL_THROUGH && !strcmp(text_of(chain, "policy"), "drop"))
		take_drop(w, certain, chain, NULL);
	if (w->worst <= out->verdict)
		return;
	out->verdict = w->worst;
	snprintf(out->where, sizeof(out->where), "%s", w->where);
	snprintf(out->remedy, sizeof(out->remedy), "nft insert rule %.8s %.60s %.60s udp dport 4791 accept", text_of(chain, "family"),
		 text_of(chain, "table"), text_of(chain, "name"));
}

static void judge_packet(const json_t *ruleset, const json_t *chains, const struct ur_firewall_packet *p, bool v6, bool outbound,
			 struct ur_firewall *out)
{
	struct walk w = {.chains = chains, .m = {.ruleset = ruleset, .dev = p->dev, .peer = p->peer, .v6 = v6, .outbound = outbound}};
	const json_t *item;
	size_t i;

	json_array_foreach(ruleset, i, item)
	{
		const json_t *chain = json_object_get(item, "chain");

		if (chain && sees_it(&w.m, chain))
			judge_chain(&w, chain, out);
	}
	if (w.steps <= STEPS)
		return;
	*out = (struct ur_firewall){.verdict = UR_FIREWALL_UNKNOWN, .rules = out->rules};
	snprintf(out->where, sizeof(out->where), "the rules of nftables contain too many jumps to be followed");
	snprintf(out->remedy, sizeof(out->remedy), "nft list ruleset");
}

void ur_firewall_judge(const char *json, size_t len, const struct ur_firewall_packet *p, struct ur_firewall *out)
{
	json_t *root = json_loadb(json, len, 0, NULL), *item;
	const json_t *ruleset = json_object_get(root, "nftables");
	json_t *chains;
	size_t i;

	*out = (struct ur_firewall){.verdict = UR_FIREWALL_PASSES};
	if (!json_is_array(ruleset)) {
		out->verdict = UR_FIREWALL_UNKNOWN;
		snprintf(out->where, sizeof(out->where), "cannot parse the output of 'nft -j list ruleset'");
		snprintf(out->remedy, sizeof(out->remedy), "nft list ruleset");
		json_decref(root);
		return;
	}
	json_array_foreach(ruleset, i, item) out->rules += json_object_get(item, "rule") != NULL;
	chains = index_chains(ruleset);
	for (unsigned v6 = 0; v6 < 2; v6++)
		for (unsigned outbound = 0; outbound < 2 && (v6 ? p->v6 : p->v4); outbound++)
			if (out->verdict != UR_FIREWALL_UNKNOWN)
				judge_packet(ruleset, chains, p, v6, outbound, out);
	json_decref(chains);
	json_decref(root);
}
