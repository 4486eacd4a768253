/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process writes, and nobody reads before it is dead; so the memory has to be consistent after every store. The compiler is told to
 * keep the order of stores, and a dead process has no stores in flight.
 */
#include "siblings/farewells.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/spin.h"
#include "host/limits.h"
#include "host/sealed.h"
#include "host/thread.h"
#include "keeper/farewell_page.h"
#include "siblings/adopter.h"
#include "siblings/keeper_start.h"
#include "wire/last_ack.h"

#define NONE 0 /* places count from 1 */

struct ur_farewells {
	bool made;                     /* or tried in vain, with the first thing that is to be written */
	_Atomic(struct ur_farewell_page *) page; /* NULL: there is none */
	int err;                       /* why there is none */
	int memfd;                     /* until the keeper has it */
	int alive;                     /* the end of a pipe whose other end the keeper watches */
	int ifindex;
	char ifname[UR_FAREWELL_NAME];
	void (*first)(struct ur_engine *e);
	struct ur_engine *engine;
	atomic_bool due; /* there is something to say, and the keeper has not been started */
	uint32_t acks;   /* ever put; under its lock, because QPs of several lanes put some */
	struct ur_spin ack_lock;
	uint32_t free;   /* the first of the places that were given back */
	uint32_t next[UR_FAREWELL_MADS + 1];
};

int ur_farewells_open(const char *ifname, int ifindex, void (*first)(struct ur_engine *e), struct ur_engine *e, struct ur_farewells **out)
{
	struct ur_farewells *w = calloc(1, sizeof(*w));

	if (!w)
		return ENOMEM;
	w->memfd = w->alive = -1;
	w->ifindex = ifindex;
	w->first = first;
	w->engine = e;
	snprintf(w->ifname, sizeof(w->ifname), "%s", ifname);
	*out = w;
	return 0;
}

void ur_farewells_close(struct ur_farewells *w)
{
	if (w->page)
		munmap(w->page, sizeof(*w->page));
	if (w->memfd >= 0)
		close(w->memfd);
	if (w->alive >= 0)
		close(w->alive);
	free(w);
}

static struct ur_farewell_page *page_of(struct ur_farewells *w)
{
	if (w->made)
		return w->page;
	w->made = true;
	w->page = ur_sealed_create("uroce-farewells", sizeof(*w->page), &w->memfd);
	if (w->page) {
		w->page->ifindex = w->ifindex;
		memcpy(w->page->ifname, w->ifname, sizeof(w->ifname));
	} else {
		w->err = errno;
	}
	atomic_store(&w->due, true);
	w->first(w->engine);
	return w->page;
}

/* --- messages --- */

static void set(uint32_t *word, uint32_t value)
{
	atomic_signal_fence(memory_order_seq_cst);
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	atomic_signal_fence(memory_order_seq_cst);
}

static uint32_t take_place(struct ur_farewells *w)
{
	uint32_t place = w->free;

	if (place) {
		w->free = w->next[place];
	} else if (w->page->nmads < UR_FAREWELL_MADS) {
		place = w->page->nmads + 1;
		set(&w->page->nmads, place);
	}
	return place;
}

static void give_back(struct ur_farewells *w, uint32_t *place)
{
	set(&w->page->mad[*place - 1].kind, 0);
	w->next[*place] = w->free;
	w->free = *place;
	*place = NONE;
}

void ur_farewells_put_mad(struct ur_farewells *w, uint32_t *place, const struct ur_cm_addr *to, const uint8_t *mad)
{
	struct ur_farewell_mad *m;

	if (!mad) {
		if (*place)
			give_back(w, place);
		return;
	}
	if (!page_of(w) || (!*place && !(*place = take_place(w))))
		return;
	m = &w->page->mad[*place - 1];
	set(&m->kind, 0);
	m->ends = (struct ur_farewell_ends){.src = to->sgid, .dst = to->dgid, .tclass = to->tclass, .hop_limit = to->hop_limit};
	memcpy(m->mad, mad, sizeof(m->mad));
	set(&m->kind, 1);
}

/* --- acknowledgements --- */

static struct ur_farewell_ends ends_of(const struct ur_path *p)
{
	const uint8_t *ip = p->hdr + p->l3_off;
	const bool v4 = p->ip_version == 4;

	return (struct ur_farewell_ends){
		.src = p->sgid, .dst = p->dgid, .tclass = v4 ? ip[1] : (uint8_t)(ip[0] << 4 | ip[1] >> 4), .hop_limit = v4 ? ip[8] : ip[7]};
}

_Static_assert(UR_FAREWELL_ACK_LEN == UR_LAST_ACK_LEN, "as the keeper sends it");

/* The newest are kept. */
static void put_ack(struct ur_farewells *w, struct ur_farewell_page *page, const struct ur_last_ack *ack, ur_time now)
{
	const uint32_t place = w->acks % UR_FAREWELL_ACKS;
	struct ur_farewell_ack *a = &page->ack[place];

	set(&a->kind, 0);
	a->ends = ends_of(ack->path);
	a->at = now;
	memcpy(a->headers, ack->headers, sizeof(a->headers));
	set(&a->kind, 1);
	if (page->nacks == place)
		set(&page->nacks, place + 1);
	w->acks++;
}

void ur_farewells_put_ack(struct ur_farewells *w, const struct ur_last_ack *ack, ur_time now)
{
	struct ur_farewell_page *page = atomic_load_explicit(&w->page, memory_order_acquire);

	if (!page)
		return;
	ur_spin_lock(&w->ack_lock, ur_thread_yield);
	put_ack(w, page, ack, now);
	ur_spin_unlock(&w->ack_lock);
}

/* --- groups --- */

void ur_farewells_put_groups(struct ur_farewells *w, const struct ur_gid *groups, unsigned n)
{
	if ((!n && !w->page) || !page_of(w))
		return;
	n = ur_min_u32(n, UR_FAREWELL_GROUPS);
	set(&w->page->ngroups, 0);
	if (n)
		memcpy(w->page->group, groups, n * sizeof(*groups));
	set(&w->page->ngroups, n);
}

/* --- the keeper --- */

const char *ur_farewells_serve(struct ur_farewells *w)
{
	const char *why;
	int err;

	if (!atomic_exchange(&w->due, false))
		return NULL;
	if (w->memfd < 0)
		return ur_limit_reason(w->err);
	why = ur_adopter_objects();
	err = why ? 0 : ur_keeper_start(w->memfd, w->ifname, &w->alive);
	close(w->memfd);
	w->memfd = -1;
	return err ? ur_limit_reason(err) : why;
}
