/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ports that the processes of one device are bound to: chains of entries by port space and port, so that binding costs the same
 * with one connection and with ten thousand. A process may be killed between any two stores: whatever it was about, every chain stays
 * whole, and at worst an entry is on none. The entries of the dead are taken back by whoever comes across them.
 */
#include <errno.h>
#include <stddef.h>

#include "engine/registry_priv.h"
#include "wire/gid_set.h"

#define EPHEMERAL_FIRST 32768
#define EPHEMERAL_COUNT 28232
#define ENTRIES_AT_ONCE 128 /* that the file is extended by: a page */

static uint32_t *chain_of(struct ur_registry *r, uint16_t ps, uint16_t port)
{
	return &r->f->chain[(port ^ ps * 0x9e5u) & (UR_REGISTRY_CHAINS - 1)];
}

/* Anybody may write to the file, so a number is checked before it is used. */
static struct ur_port_entry *entry(struct ur_registry *r, uint32_t number)
{
	return number && number <= UR_REGISTRY_PORTS ? &r->f->ports[number - 1] : NULL;
}

static void point(uint32_t *link, uint32_t number)
{
	__atomic_store_n(link, number, __ATOMIC_RELEASE);
}

/* Takes the entry that *link names, which is `e`, out of its chain. */
static void remove_entry(struct ur_registry *r, uint32_t *link, struct ur_port_entry *e)
{
	point(link, e->next);
	e->slot = 0;
	point(&e->next, r->f->ports_free);
	point(&r->f->ports_free, (uint32_t)(e - r->f->ports) + 1);
}

static bool entry_alive(const struct ur_registry *r, const struct ur_port_entry *e)
{
	return e->slot && e->lease == r->f->lease[e->slot] && ur_registry_alive(r, e->slot);
}

/* Along the chain of a port. `link` names the entry that it stands at. No chain is longer than the table, so no walk is either. */
struct walk {
	struct ur_registry *r;
	uint16_t ps, port;
	uint32_t *link;
	unsigned left;
};

/* What the link names; read once, since whoever writes to the file may do so at any time. */
static struct ur_port_entry *at_link(struct ur_registry *r, const uint32_t *link)
{
	return entry(r, __atomic_load_n(link, __ATOMIC_RELAXED));
}

/* The first entry of the port from here on that belongs to a live process, or NULL; those of the dead go. */
static struct ur_port_entry *find(struct walk *w)
{
	struct ur_port_entry *e;

	while (w->left-- && (e = at_link(w->r, w->link))) {
		if (e->port != w->port || e->port_space != w->ps)
			w->link = &e->next;
		else if (!entry_alive(w->r, e))
			remove_entry(w->r, w->link, e);
		else
			return e;
	}
	w->left = 0;
	return NULL;
}

static struct ur_port_entry *first(struct walk *w, struct ur_registry *r, uint16_t ps, uint16_t port)
{
	*w = (struct walk){.r = r, .ps = ps, .port = port, .link = chain_of(r, ps, port), .left = UR_REGISTRY_PORTS};
	return find(w);
}

static struct ur_port_entry *next(struct walk *w, struct ur_port_entry *e)
{
	w->link = &e->next;
	return w->left ? find(w) : NULL;
}

/* 0, or what Linux calls the conflict with another entry than `own`: EADDRNOTAVAIL when a wildcard has part in it. */
static int port_conflict(struct ur_registry *r, uint16_t ps, const struct ur_gid *gid, uint16_t port, bool reuse,
			 const struct ur_port_entry *own)
{
	struct walk w;

	for (struct ur_port_entry *e = first(&w, r, ps, port); e; e = next(&w, e))
		if (e != own && ur_gid_overlap(&e->gid, gid) && !(reuse && e->reuse))
			return ur_gid_is_wild(gid) || ur_gid_is_wild(&e->gid) ? EADDRNOTAVAIL : EADDRINUSE;
	return 0;
}

static int pick_ephemeral(struct ur_registry *r, uint16_t ps, const struct ur_gid *gid, uint16_t *port)
{
	for (unsigned i = 0; i < EPHEMERAL_COUNT; i++) {
		uint16_t p = (uint16_t)(EPHEMERAL_FIRST + (r->f->next_ephemeral + i) % EPHEMERAL_COUNT);

		if (port_conflict(r, ps, gid, p, false, NULL))
			continue;
		r->f->next_ephemeral = p - EPHEMERAL_FIRST + 1u;
		*port = p;
		return 0;
	}
	return EADDRNOTAVAIL;
}

static void release_if(struct ur_registry *r, bool (*gone)(const struct ur_registry *r, const struct ur_port_entry *e))
{
	for (unsigned c = 0; c < UR_REGISTRY_CHAINS; c++) {
		uint32_t *link = &r->f->chain[c];
		struct ur_port_entry *e;
		unsigned steps = 0;

		while ((e = at_link(r, link)) && steps++ < UR_REGISTRY_PORTS) {
			if (gone(r, e))
				remove_entry(r, link, e);
			else
				link = &e->next;
		}
	}
}

static bool is_dead(const struct ur_registry *r, const struct ur_port_entry *e)
{
	return !entry_alive(r, e);
}

static bool is_own(const struct ur_registry *r, const struct ur_port_entry *e)
{
	return e->slot == r->slot;
}

void ur_registry_release_all(struct ur_registry *r)
{
	release_if(r, is_own);
}

/*
 * An entry that was never used, or NULL. The pages of the file come into being when they are touched, which in a full /dev/shm would be the
 * end of the process (SIGBUS): they are asked for first.
 */
static struct ur_port_entry *untouched_entry(struct ur_registry *r)
{
	uint32_t used = r->f->ports_used;

	if (used >= UR_REGISTRY_PORTS)
		return NULL;
	if (used % ENTRIES_AT_ONCE == 0 &&
	    ur_registry_reserve(r, offsetof(struct ur_registry_file, ports[used]), ENTRIES_AT_ONCE * sizeof(struct ur_port_entry)))
		return NULL;
	r->f->ports_used = used + 1;
	return &r->f->ports[used];
}

/* One to fill, or NULL when all are taken. */
static struct ur_port_entry *new_entry(struct ur_registry *r)
{
	struct ur_port_entry *e = at_link(r, &r->f->ports_free);

	if (!e && (e = untouched_entry(r)))
		return e;
	if (!e) {
		release_if(r, is_dead);
		e = at_link(r, &r->f->ports_free);
	}
	if (e)
		point(&r->f->ports_free, e->next);
	return e;
}

static int add_entry(struct ur_registry *r, uint16_t ps, const struct ur_gid *gid, bool reuse, uint16_t port)
{
	uint32_t *head = chain_of(r, ps, port);
	struct ur_port_entry *e = new_entry(r);

	if (!e)
		return ENOSPC;
	*e = (struct ur_port_entry){
		.slot = r->slot, .reuse = reuse, .port_space = ps, .port = port, .lease = r->f->lease[r->slot], .next = *head, .gid = *gid};
	point(head, (uint32_t)(e - r->f->ports) + 1);
	return 0;
}

int ur_registry_bind(struct ur_registry *r, uint16_t ps, const struct ur_gid *gid, bool reuse, uint16_t *port)
{
	int err = 0;

	ur_registry_lock(r);
	if (!*port)
		err = pick_ephemeral(r, ps, gid, port);
	else
		err = port_conflict(r, ps, gid, *port, reuse, NULL);
	if (!err)
		err = add_entry(r, ps, gid, reuse, *port);
	ur_registry_unlock(r);
	return err;
}

/* The entry of this process, where the walk then stands, or NULL. */
static struct ur_port_entry *own_entry(struct walk *w, struct ur_registry *r, uint16_t ps, const struct ur_gid *gid, uint16_t port)
{
	struct ur_port_entry *e = first(w, r, ps, port);

	while (e && !(e->slot == r->slot && ur_gid_eq(&e->gid, gid)))
		e = next(w, e);
	return e;
}

void ur_registry_release(struct ur_registry *r, uint16_t ps, const struct ur_gid *gid, uint16_t port)
{
	struct ur_port_entry *e;
	struct walk w;

	ur_registry_lock(r);
	e = own_entry(&w, r, ps, gid, port);
	if (e)
		remove_entry(r, w.link, e);
	ur_registry_unlock(r);
}

/* A port that is listened on is its listener's alone, and stays so. */
static int start_listening(struct ur_registry *r, struct ur_port_entry *e)
{
	int err = e->reuse ? port_conflict(r, e->port_space, &e->gid, e->port, false, e) : 0;

	if (err)
		return err;
	e->reuse = false;
	e->listening = true;
	return 0;
}

int ur_registry_listen(struct ur_registry *r, uint16_t ps, const struct ur_gid *gid, uint16_t port, bool on)
{
	struct ur_port_entry *e;
	struct walk w;
	int err = 0;

	ur_registry_lock(r);
	e = own_entry(&w, r, ps, gid, port);
	if (e && on)
		err = start_listening(r, e);
	else if (e)
		e->listening = false;
	ur_registry_unlock(r);
	return err;
}

int ur_registry_move(struct ur_registry *r, uint16_t ps, const struct ur_gid *from, const struct ur_gid *to, bool reuse, uint16_t port)
{
	struct ur_port_entry *e;
	struct walk w;
	int err = 0;

	ur_registry_lock(r);
	e = own_entry(&w, r, ps, from, port);
	if (e) {
		err = port_conflict(r, ps, to, port, reuse, e);
		if (!err) {
			e->gid = *to;
			e->reuse = reuse;
		}
	}
	ur_registry_unlock(r);
	return err;
}

static bool listens_elsewhere(struct ur_registry *r, uint16_t ps, uint16_t port, const struct ur_gid *dst)
{
	struct walk w;

	for (struct ur_port_entry *e = first(&w, r, ps, port); e; e = next(&w, e))
		if (e->slot != r->slot && e->listening && ur_gid_covers(&e->gid, dst))
			return true;
	return false;
}

/* With the lock. A started process with a lower slot speaks for the device. */
static bool lower_one_started(struct ur_registry *r)
{
	for (unsigned s = 1; s < r->slot; s++)
		if (r->f->started[s] && ur_registry_alive(r, (uint8_t)s))
			return true;
	return false;
}

bool ur_registry_orphaned(struct ur_registry *r, uint8_t slot)
{
	bool orphaned;

	if (!slot || ur_registry_alive(r, slot)) /* nearly always */
		return false;
	ur_registry_lock(r);
	orphaned = !ur_registry_alive(r, slot) && !lower_one_started(r);
	ur_registry_unlock(r);
	return orphaned;
}

bool ur_registry_elsewhere(struct ur_registry *r, uint16_t ps, uint16_t port, const struct ur_gid *dst)
{
	bool elsewhere;

	ur_registry_lock(r);
	elsewhere = listens_elsewhere(r, ps, port, dst) || lower_one_started(r);
	ur_registry_unlock(r);
	return elsewhere;
}
