/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/passive: which rules of lib/conform the hosts of a recording obey and break. lib/analyze follows the connections and reports
 * findings and facts (analyze/rules.h); a table says which rule one is about, and which host. A rule is called broken only where the
 * recording proves it; what could also be explained by a loss, a copy, the order of arrival or a gap in the recording is counted
 * separately, with the reason.
 *
 * Sans I/O. Memory is bounded by the hosts (UR_PV_HOSTS) and what the analysis holds: connections that are over are forgotten.
 */
#ifndef UR_PASSIVE_H
#define UR_PASSIVE_H

#include "analyze/analyze.h"
#include "conform/conform.h"

#define UR_PV_HOSTS 1024u

struct ur_passive;

struct ur_pv_count { /* of one rule, and one host */
	uint64_t obeyed, broken;
	uint64_t aside;   /* what looks broken, but the recording does not prove it */
	const char *why;  /* the first reason for that */
	const char *what; /* what was wrong at `frame`; NULL: out of memory. Both are of the first time */
	uint32_t frame;
};

/* NULL: out of memory. `salt`: as ur_analysis_create's. */
struct ur_passive *ur_passive_create(uint64_t salt);
void ur_passive_destroy(struct ur_passive *v);
/* Frames are numbered from 1. */
void ur_passive_frame(struct ur_passive *v, const struct ur_an_frame *f);
/* After the last frame, or at any time: nothing more may come. */
void ur_passive_finish(struct ur_passive *v);

/* Hosts in the order in which they appeared. */
unsigned ur_passive_hosts(const struct ur_passive *v);
const struct ur_gid *ur_passive_host(const struct ur_passive *v, unsigned host);
/* `rule` as in ur_cf_rule. NULL: nothing that concerns it was seen. */
const struct ur_pv_count *ur_passive_count(const struct ur_passive *v, unsigned host, unsigned rule);
/* Facts about hosts beyond UR_PV_HOSTS. */
uint64_t ur_passive_beyond(const struct ur_passive *v);
void ur_passive_totals(const struct ur_passive *v, struct ur_an_totals *t);

/* Whether a recording can show anything of the rule, and whether it can show that it is broken. */
bool ur_passive_judges(unsigned rule);
bool ur_passive_convicts(unsigned rule);

#endif
