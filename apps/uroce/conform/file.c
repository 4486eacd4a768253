/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce conform --file: which rules the hosts of a recording obey and break, as far as the wire shows it. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/cli/json.h"
#include "apps/uroce/conform/conform.h"
#include "apps/uroce/pcap/file/source.h"
#include "apps/uroce/pcap/read/read.h"
#include "passive/passive.h"
#include "wire/frame.h"

#define WIDTH 110 /* of lists */

struct judged {
	const struct ur_conform_file *c;
	struct ur_passive *v;
	bool one; /* host alone */
	struct ur_gid host;
	uint64_t broken, obeyed; /* rules, of all hosts that are judged */
};

enum verdict { NOT_SEEN, OBEYED, BROKEN, UNPROVEN, VERDICTS };
static const char *const verdicts[] = {"not seen", "obeyed", "broken", "unproven"};

static enum verdict verdict_of(const struct ur_pv_count *n)
{
	return !n ? NOT_SEEN : n->broken ? BROKEN : n->obeyed ? OBEYED : UNPROVEN;
}

static bool is_chosen(const struct judged *j, unsigned rule)
{
	return !j->c->pattern || strstr(ur_cf_rule(rule)->name, j->c->pattern);
}

static bool is_meant(const struct judged *j, unsigned host)
{
	return !j->one || ur_gid_eq(ur_passive_host(j->v, host), &j->host);
}

struct tally {
	unsigned of[VERDICTS];
};

static struct tally tally(const struct judged *j, unsigned host)
{
	struct tally t = {{0}};

	for (unsigned i = 0; i < ur_cf_rule_count(); i++)
		if (ur_passive_judges(i) && is_chosen(j, i))
			t.of[verdict_of(ur_passive_count(j->v, host, i))]++;
	return t;
}

static unsigned not_judged(const struct judged *j)
{
	unsigned n = 0;

	for (unsigned i = 0; i < ur_cf_rule_count(); i++)
		n += is_chosen(j, i) && !ur_passive_judges(i);
	return n;
}

/* --- text --- */

static void put_rule(const struct ur_cf_rule *r, const struct ur_pv_count *n)
{
	const enum verdict v = verdict_of(n);

	printf("%-8s %-3s %-28s %-22s", verdicts[v], ur_cf_service(r), r->name, r->clause);
	if (n->obeyed)
		printf(" %" PRIu64 " time%s", n->obeyed, ur_plural(n->obeyed));
	if (n->broken)
		printf("%s, broken %" PRIu64 " time%s", n->obeyed ? "" : " never obeyed", n->broken, ur_plural(n->broken));
	putchar('\n');
	if (v == BROKEN)
		printf("         %s\n         seen:     frame %u: %s\n", r->what, n->frame, n->what ? n->what : "");
	if (n->aside)
		printf("         set aside: %" PRIu64 ", because %s\n", n->aside, n->why);
}

static void put_unseen(const struct judged *j, unsigned host)
{
	size_t at = 0;

	for (unsigned i = 0; i < ur_cf_rule_count(); i++) {
		const char *name = ur_cf_rule(i)->name;

		if (!ur_passive_judges(i) || !is_chosen(j, i) || ur_passive_count(j->v, host, i))
			continue;
		if (at && at + strlen(name) + 2 <= WIDTH)
			at += (size_t)printf(", %s", name);
		else
			at = (size_t)printf(at ? ",\n         %s" : "not seen %s", name);
	}
	if (at)
		putchar('\n');
}

static void put_host(const struct judged *j, unsigned host)
{
	const struct tally t = tally(j, host);
	char name[UR_IP_TEXT];

	for (unsigned i = 0; i < ur_cf_rule_count(); i++)
		if (is_chosen(j, i) && ur_passive_count(j->v, host, i))
			put_rule(ur_cf_rule(i), ur_passive_count(j->v, host, i));
	put_unseen(j, host);
	printf("%s: %u obeyed, %u broken, %u unproven, %u not seen\n\n", ur_gid_ip(ur_passive_host(j->v, host), name), t.of[OBEYED],
	       t.of[BROKEN], t.of[UNPROVEN], t.of[NOT_SEEN]);
}

static void put_text(const struct judged *j)
{
	struct ur_an_totals t;

	ur_passive_totals(j->v, &t);
	for (unsigned i = 0; i < ur_passive_hosts(j->v); i++)
		if (is_meant(j, i))
			put_host(j, i);
	printf("%s: %" PRIu64 " frame%s, %" PRIu64 " RoCEv2 packet%s; %u rules need the judge's own packets: uroce conform PEER\n",
	       j->c->name, t.frames, ur_plural(t.frames), t.roce, ur_plural(t.roce), not_judged(j));
	if (ur_passive_beyond(j->v))
		printf("%s: more than %u hosts: the others are not judged\n", j->c->name, UR_PV_HOSTS);
}

/* --- JSON --- */

static json_t *rule_json(const struct ur_cf_rule *r, const struct ur_pv_count *n)
{
	const struct ur_pv_count none = {0}, *c = n ? n : &none;

	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:I, s:o}", "rule", r->name, "service", ur_cf_service(r), "clause",
			 r->clause, "sentence", r->what, "verdict", verdicts[verdict_of(n)], "obeyed", ur_json_uint(c->obeyed), "broken",
			 ur_json_uint(c->broken), "set_aside", ur_json_uint(c->aside), "because",
			 c->why ? ur_json_text(c->why) : json_null(), "frame", (json_int_t)c->frame, "seen",
			 c->what ? ur_json_text(c->what) : json_null());
}

static json_t *host_json(const struct judged *j, unsigned host)
{
	const struct tally t = tally(j, host);
	json_t *rules = json_array();
	char name[UR_IP_TEXT];

	for (unsigned i = 0; i < ur_cf_rule_count(); i++)
		if (ur_passive_judges(i) && is_chosen(j, i))
			json_array_append_new(rules, rule_json(ur_cf_rule(i), ur_passive_count(j->v, host, i)));
	return json_pack("{s:s, s:i, s:i, s:i, s:i, s:o}", "host", ur_gid_ip(ur_passive_host(j->v, host), name), "obeyed",
			 (int)t.of[OBEYED], "broken", (int)t.of[BROKEN], "unproven", (int)t.of[UNPROVEN], "not_seen", (int)t.of[NOT_SEEN],
			 "rules", rules);
}

static void put_json(const struct judged *j)
{
	json_t *hosts = json_array();
	struct ur_an_totals t;

	ur_passive_totals(j->v, &t);
	for (unsigned i = 0; i < ur_passive_hosts(j->v); i++)
		if (is_meant(j, i))
			json_array_append_new(hosts, host_json(j, i));
	ur_json_line(json_pack("{s:o, s:o, s:o, s:i, s:i, s:o}", "file", ur_json_text(j->c->name), "frames", ur_json_uint(t.frames),
			       "packets", ur_json_uint(t.roce), "total", (int)ur_cf_rule_count(), "not_judged", (int)not_judged(j), "hosts",
			       hosts),
		     stdout);
}

/* --- the whole --- */

static void judge_frame(void *ctx, const struct ur_an_frame *f)
{
	ur_passive_frame(ctx, f);
}

/* False when it could not be read to its end, or holds no RoCEv2 packet, after a sentence. */
static bool read_all(struct judged *j)
{
	struct ur_pcap_end end;
	bool ok = ur_pcap_each(j->c->name, judge_frame, j->v, &end);

	ok = ur_pcap_status(j->c->name, &end, 0) == 0 && ok;
	free(end.unreadable);
	return ok;
}

static bool parse_host(const char *text, struct ur_gid *to)
{
	struct in6_addr v6;
	struct in_addr v4;

	if (inet_pton(AF_INET, text, &v4) == 1)
		*to = ur_gid_from_v4(v4.s_addr);
	else if (inet_pton(AF_INET6, text, &v6) == 1)
		memcpy(to->raw, &v6, sizeof(to->raw));
	else
		return false;
	return true;
}

static bool is_there(const struct judged *j)
{
	for (unsigned i = 0; i < ur_passive_hosts(j->v); i++)
		if (is_meant(j, i))
			return true;
	return false;
}

static void sum_up(struct judged *j)
{
	for (unsigned i = 0; i < ur_passive_hosts(j->v); i++) {
		const struct tally t = tally(j, i);

		if (!is_meant(j, i))
			continue;
		j->broken += t.of[BROKEN];
		j->obeyed += t.of[OBEYED];
	}
}

int ur_conform_file(const struct ur_conform_file *c)
{
	struct judged j = {.c = c, .one = c->host != NULL};
	struct ur_an_totals t;
	bool whole;

	if (j.one && !parse_host(c->host, &j.host))
		return ur_cmd_fail(UR_EXIT_USAGE, "'%s' is not an address: give that of one host of the recording, or none to judge all",
				   c->host);
	j.v = ur_passive_create(ur_pcap_salt());
	if (!j.v)
		return ur_cmd_fail(UR_EXIT_FAIL, "out of memory: %s cannot be judged", c->name);
	if (strcmp(c->name, "-") == 0)
		ur_pcap_until_interrupted();
	whole = read_all(&j);
	ur_passive_finish(j.v);
	ur_passive_totals(j.v, &t);
	sum_up(&j);
	if (t.roce && c->json)
		put_json(&j);
	else if (t.roce)
		put_text(&j);
	if (whole && j.one && !is_there(&j))
		ur_cmd_fail(0, "%s shows nothing of %s that can be judged: give one of its hosts, or none to judge all", c->name, c->host);
	ur_passive_destroy(j.v);
	return !whole ? UR_EXIT_USAGE : j.broken || !j.obeyed ? UR_EXIT_FAIL : 0;
}
