/* SPDX-License-Identifier: BSD-3-Clause */
/* Hosts, and what is counted of each. */
#include "passive/passive.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/facts.h"
#include "analyze/forget.h"
#include "base/table.h"
#include "passive/table.h"
#include "wire/opcode.h"

#define TEXT 512
#define KIND_ROWS 48 /* of one finding or fact */
/* A recording may never end, so connections that have been over or idle for this long are forgotten. */
#define LOOK_NS (10 * UR_NS_PER_S)
#define IDLE_NS (60 * UR_NS_PER_S)
#define CLOSED_NS (2 * UR_NS_PER_S)
#define BUSY_FRAMES (1u << 20) /* a recording of many connections in a short time */

struct host {
	struct ur_table_node node;
	struct ur_gid gid;
	struct ur_pv_count *count; /* by rule */
};

struct linked { /* a row, and its rule's number */
	const struct ur_pv_row *row;
	unsigned rule;
};

struct kind { /* the rows of a finding or fact */
	struct linked row[KIND_ROWS];
	unsigned n;
};

struct ur_passive {
	struct ur_analysis *a;
	struct ur_table table;
	struct host *host[UR_PV_HOSTS], *newest[2];
	unsigned nhosts, nrules;
	uint64_t beyond;
	ur_time when, looked;
	uint32_t since; /* frames since the last search for such connections */
	struct kind kind[UR_FACT_END];
};

/* Rows and rules are in the same order; where they are not, the search starts again from the first rule. */
static void link_rows(struct ur_passive *v)
{
	const struct ur_pv_row *r = ur_pv_rows;
	const struct ur_cf_rule *rule;

	while (r->rule) {
		const struct ur_pv_row *first = r;

		for (unsigned i = 0; (rule = ur_cf_rule(i)); i++)
			for (; r->rule && strcmp(r->rule, rule->name) == 0; r++) {
				struct kind *k = &v->kind[r->kind];

				if (k->n < KIND_ROWS)
					k->row[k->n++] = (struct linked){r, i};
			}
		r += r == first; /* no rule has this name: a test says so */
	}
}

/* --- hosts --- */

static uint64_t hash_of(const struct ur_passive *v, const struct ur_gid *g)
{
	uint64_t w[2];

	memcpy(w, g->raw, sizeof(w));
	return ur_table_hash(v->table.salt, w[0], w[1]);
}

static struct host *find_host(const struct ur_passive *v, const struct ur_gid *g)
{
	struct host *h;

	ur_table_for_each (h, &v->table, hash_of(v, g), node)
		if (ur_gid_eq(&h->gid, g))
			return h;
	return NULL;
}

static struct host *add_host(struct ur_passive *v, const struct ur_gid *g)
{
	struct host *h = v->nhosts < UR_PV_HOSTS ? calloc(1, sizeof(*h)) : NULL;

	if (!h)
		return NULL;
	h->gid = *g;
	h->count = calloc(v->nrules, sizeof(*h->count));
	if (!h->count || !ur_table_add(&v->table, &h->node, hash_of(v, g))) {
		free(h->count);
		free(h);
		return NULL;
	}
	v->host[v->nhosts++] = h;
	return h;
}

static struct host *host_of(struct ur_passive *v, const struct ur_gid *g)
{
	struct host *h;

	for (unsigned i = 0; i < 2; i++)
		if (v->newest[i] && ur_gid_eq(&v->newest[i]->gid, g))
			return v->newest[i];
	h = find_host(v, g);
	h = h ? h : add_host(v, g);
	if (h) {
		v->newest[1] = v->newest[0];
		v->newest[0] = h;
	}
	return h;
}

/* --- findings and facts --- */

static void count(struct ur_pv_count *c, const struct ur_finding *f, unsigned enough)
{
	struct ur_finding proved = *f;
	char text[TEXT];

	if (f->rule > UR_RULE_COUNT && !f->excuse) {
		c->obeyed++;
		return;
	}
	if (f->excuse && (!enough || c->obeyed || c->aside + 1 < enough)) {
		c->why = c->aside++ ? c->why : f->excuse;
		return;
	}
	if (c->broken++)
		return;
	proved.excuse = NULL;
	ur_finding_text(&proved, text, sizeof(text));
	c->what = strdup(text);
	c->frame = f->frame;
}

/* What follows from the opcode of the request. */
static uint32_t with_of(uint8_t opcode)
{
	static const struct {
		uint32_t flag, with;
	} table[] = {
		{UR_OPF_SEND, UR_AN_SEND},     {UR_OPF_WRITE, UR_AN_WRITE}, {UR_OPF_READ, UR_AN_READ},
		{UR_OPF_ATOMIC, UR_AN_ATOMIC}, {UR_OPF_FLUSH, UR_AN_FLUSH}, {UR_OPF_ATOMIC_WRITE, UR_AN_ATOMIC_WRITE},
		{UR_OPF_FIRST, UR_AN_BEGINS},  {UR_OPF_LAST, UR_AN_ENDS},   {UR_OPF_RWQE, UR_AN_RECEIVES},
	};
	const uint32_t flags = ur_opcode(opcode)->flags, service = opcode & UR_SERVICE_MASK;
	uint32_t with = service == UR_XRC ? UR_AN_ON_XRC : service == UR_UC ? UR_AN_ON_UC : service == UR_RC ? UR_AN_ON_RC : 0;

	for (unsigned i = 0; i < ur_array_size(table); i++)
		with |= flags & table[i].flag ? table[i].with : 0;
	return with | ((opcode & UR_OP_MASK) == UR_OP_FETCH_ADD ? UR_AN_ADDS : 0);
}

static void count_finding(void *ctx, const struct ur_finding *f)
{
	struct ur_passive *v = ctx;
	const struct kind *k = &v->kind[f->rule];
	const uint32_t with = f->with | (k->n ? with_of(f->opcode) : 0);

	for (unsigned i = 0; i < k->n; i++) {
		const struct ur_pv_row *r = k->row[i].row;
		struct host *h;

		if (!ur_pv_row_fits(r, f, with))
			continue;
		h = host_of(v, r->by_dst ? &f->dst : &f->src);
		if (!h) {
			v->beyond++;
			return;
		}
		count(&h->count[k->row[i].rule], f, r->enough);
	}
}

/* --- the whole --- */

struct ur_passive *ur_passive_create(uint64_t salt)
{
	struct ur_passive *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->table.salt = salt;
	v->nrules = ur_cf_rule_count();
	v->a = ur_analysis_create(count_finding, v, salt);
	if (!v->a) {
		free(v);
		return NULL;
	}
	link_rows(v);
	ur_analysis_facts(v->a);
	return v;
}

void ur_passive_destroy(struct ur_passive *v)
{
	if (!v)
		return;
	ur_analysis_destroy(v->a);
	for (unsigned i = 0; i < v->nhosts; i++) {
		for (unsigned r = 0; r < v->nrules; r++)
			free((void *)(uintptr_t)v->host[i]->count[r].what);
		free(v->host[i]->count);
		free(v->host[i]);
	}
	ur_table_fini(&v->table);
	free(v);
}

static void ignore_forgotten(void *ctx, const struct ur_an_conn *c)
{
	(void)ctx;
	(void)c;
}

/* Times of a recording may begin at 0. */
static void forget(struct ur_passive *v)
{
	const ur_time idle = v->when > IDLE_NS ? v->when - IDLE_NS : 0, closed = v->when > CLOSED_NS ? v->when - CLOSED_NS : 0;

	v->looked = v->when;
	v->since = 0;
	ur_analysis_forget(v->a, idle, closed, ignore_forgotten, v);
}

void ur_passive_frame(struct ur_passive *v, const struct ur_an_frame *f)
{
	v->when = f->when > v->when ? f->when : v->when;
	v->looked = v->looked ? v->looked : v->when;
	ur_analysis_frame(v->a, f);
	if (ur_unlikely(++v->since == BUSY_FRAMES || v->when - v->looked > LOOK_NS))
		forget(v);
}

void ur_passive_finish(struct ur_passive *v)
{
	ur_analysis_finish(v->a);
}

unsigned ur_passive_hosts(const struct ur_passive *v)
{
	return v->nhosts;
}

const struct ur_gid *ur_passive_host(const struct ur_passive *v, unsigned host)
{
	return &v->host[host]->gid;
}

const struct ur_pv_count *ur_passive_count(const struct ur_passive *v, unsigned host, unsigned rule)
{
	const struct ur_pv_count *c = &v->host[host]->count[rule];

	return c->obeyed || c->broken || c->aside ? c : NULL;
}

uint64_t ur_passive_beyond(const struct ur_passive *v)
{
	return v->beyond;
}

void ur_passive_totals(const struct ur_passive *v, struct ur_an_totals *t)
{
	ur_analysis_totals(v->a, t);
}

static bool has_row(unsigned rule, bool proves)
{
	const char *name = ur_cf_rule(rule)->name;

	for (const struct ur_pv_row *r = ur_pv_rows; r->rule; r++)
		if (strcmp(r->rule, name) == 0 && (!proves || (r->kind < UR_RULE_COUNT && !r->doubt)))
			return true;
	return false;
}

bool ur_passive_judges(unsigned rule)
{
	return has_row(rule, false);
}

bool ur_passive_convicts(unsigned rule)
{
	return has_row(rule, true);
}
