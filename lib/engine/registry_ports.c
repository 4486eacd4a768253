/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ports that the processes of one device are bound to: chains of entries by port space and port, so that binding costs the same
 * with one connection and with ten thousand. A process may be killed between any two stores: whatever it was about, every chain stays
 * whole, and at worst an entry is on none. The entries of the dead are taken back by whoever comes across them.
 */
#include <errno.h>

#include "engine/registry_priv.h"
#include "wire/gid_set.h"

#define EPHEMERAL_FIRST 32768
#define EPHEMERAL_COUNT 28232

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

/* Takes the entry that *link names out of its chain. */
static void remove_entry(struct ur_registry *r, uint32_t *link)
{
	uint32_t number = *link;
	struct ur_port_entry *e = entry(r, number);

	point(link, e->next);
	e->slot = 0;
	point(&e->next, r->f->ports_free);
	point(&r->f->ports_free, number);
}

static bool entry_alive(const struct ur_registry *r, const struct ur_port_entry *e)
{
	return e->slot && e->lease == r->f->lease[e->slot] && ur_registry_alive(r, e->slot);
}

/*
 * The first entry of this port from *link on that belongs to a live process; those of the dead go. *link is left at it. No chain is longer
 * than the table.
 */
static struct ur_port_entry *find(struct ur_registry *r, uint32_t **link, uint16_t ps, uint16_t port)
{
	struct ur_port_entry *e;
	unsigned steps = 0;

	while ((e = entry(r, **link)) && steps++ < UR_REGISTRY_PORTS) {
		if (e->port != port || e->port_space != ps)
			*link = &e->next;
		else if (!entry_alive(r, e))
			remove_entry(r, *link);
		else
			return e;
	}
	return NULL;
}

/* 0, or what Linux calls the conflict with another entry than `own`: EADDRNOTAVAIL when a wildcard has part in it. */
static int port_conflict(struct ur_registry *r, uint16_t ps, const struct ur_gid *gid, uint16_t port, bool reuse,
			 const struct ur_port_entry *own)
{
	uint32_t *link = chain_of(r, ps, port);
	const struct ur_port_entry *e;

	for (; (e = find(r, &link, ps, port)); link = &r->f->ports[*link - 1].next)
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

		while ((e = entry(r, *link)) && steps++ < UR_REGISTRY_PORTS) {
			if (gone(r, e))
				remove_entry(r, link);
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

/* The number of an entry to fill, or 0 when all are taken. */
static uint32_t new_entry(struct ur_registry *r)
{
	struct ur_port_entry *e = entry(r, r->f->ports_free);
	uint32_t number = r->f->ports_free;

	if (!e && r->f->ports_used < UR_REGISTRY_PORTS)
		return ++r->f->ports_used;
	if (!e) {
		release_if(r, is_dead);
		number = r->f->ports_free;
		e = entry(r, number);
	}
	if (!e)
		return 0;
	point(&r->f->ports_free, e->next);
	return number;
}

static int add_entry(struct ur_registry *r, uint16_t ps, const struct ur_gid *gid, bool reuse, uint16_t port)
{
	uint32_t *head = chain_of(r, ps, port), number = new_entry(r);

	if (!number)
		return ENOSPC;
	r->f->ports[number - 1] = (struct ur_port_entry){
		.slot = r->slot, .reuse = reuse, .port_space = ps, .port = port, .lease = r->f->lease[r->slot], .next = *head, .gid = *gid};
	point(head, number);
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

/* Where an entry of this process is linked, or NULL. */
static uint32_t *own_link(struct ur_registry *r, uint16_t ps, const struct ur_gid *gid, uint16_t port)
{
	uint32_t *link = chain_of(r, ps, port);
	const struct ur_port_entry *e;

	for (; (e = find(r, &link, ps, port)); link = &r->f->ports[*link - 1].next)
		if (e->slot == r->slot && ur_gid_eq(&e->gid, gid))
			return link;
	return NULL;
}

void ur_registry_release(struct ur_registry *r, uint16_t ps, const struct ur_gid *gid, uint16_t port)
{
	uint32_t *link;

	ur_registry_lock(r);
	link = own_link(r, ps, gid, port);
	if (link)
		remove_entry(r, link);
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
	uint32_t *link;
	int err = 0;

	ur_registry_lock(r);
	link = own_link(r, ps, gid, port);
	if (link && on)
		err = start_listening(r, entry(r, *link));
	else if (link)
		entry(r, *link)->listening = false;
	ur_registry_unlock(r);
	return err;
}

int ur_registry_move(struct ur_registry *r, uint16_t ps, const struct ur_gid *from, const struct ur_gid *to, bool reuse, uint16_t port)
{
	struct ur_port_entry *e;
	uint32_t *link;
	int err = 0;

	ur_registry_lock(r);
	link = own_link(r, ps, from, port);
	if (link) {
		e = entry(r, *link);
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
	uint32_t *link = chain_of(r, ps, port);
	const struct ur_port_entry *e;

	for (; (e = find(r, &link, ps, port)); link = &r->f->ports[*link - 1].next)
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
