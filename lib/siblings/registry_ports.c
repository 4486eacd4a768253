/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ports that the processes of one device are bound to. Each process has its own table, chains of entries by port space and port, so
 * that binding takes the same time with one connection and with ten thousand; the others read it. A process that binds a port first
 * publishes it and then checks the tables of the others: if two do so at the same time, at least one sees the other.
 *
 * A port with a listener has a name as well (names.h), which processes of other users see.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cm/cm.h"
#include "host/clock.h"
#include "host/device/names.h"
#include "siblings/keeper_start.h"
#include "siblings/registry_priv.h"
#include "wire/gid_set.h"

#define EPHEMERAL_FIRST 32768
#define EPHEMERAL_COUNT 28232
#define STEPS (1u << 20) /* in the tables of others, for one call: a few milliseconds */
#define NAPS 100         /* for one call, of 50 us: while another one decides, or changes its table */

static unsigned chain_of(uint16_t ps, uint16_t port)
{
	return (port ^ ps * 0x9e5u) & (UR_PORT_CHAINS - 1);
}

static void begin_call(struct ur_registry *r)
{
	ur_registry_join(r);
	ur_registry_meet(r);
	r->steps = STEPS;
	r->naps = NAPS;
}

/* --- our own table: nobody else writes to it --- */

static struct ur_port_table *own(struct ur_registry *r)
{
	return &r->own.page->ports;
}

static struct ur_port_entry *entry(struct ur_registry *r, uint32_t number)
{
	return number ? &own(r)->entry[number - 1] : NULL;
}

static uint32_t number_of(struct ur_registry *r, const struct ur_port_entry *e)
{
	return (uint32_t)(e - own(r)->entry) + 1;
}

/* Others read meanwhile: they look again when they find the number odd or changed. */
static void change(struct ur_registry *r)
{
	atomic_fetch_add(&own(r)->changes, 1);
}

static struct ur_port_entry *new_entry(struct ur_registry *r)
{
	struct ur_port_table *t = own(r);
	struct ur_port_entry *e = entry(r, t->free);

	if (e)
		t->free = e->next;
	else if (t->used < UR_PORTS)
		e = &t->entry[t->used++];
	return e;
}

static struct ur_port_entry *add_entry(struct ur_registry *r, const struct ur_port_entry *what)
{
	uint32_t *head = &own(r)->chain[chain_of(what->port_space, what->port)];
	struct ur_port_entry *e;

	change(r);
	e = new_entry(r);
	if (e) {
		*e = *what;
		e->next = *head;
		*head = number_of(r, e);
	}
	change(r);
	return e;
}

static void drop_name(struct ur_registry *r, const struct ur_port_entry *e)
{
	int *name = &r->names[e - own(r)->entry];

	if (*name)
		close(*name - 1);
	*name = 0;
}

void ur_registry_drop_names(struct ur_registry *r)
{
	for (uint32_t i = 0; r->own.page && i < own(r)->used; i++)
		drop_name(r, &own(r)->entry[i]);
}

static void remove_entry(struct ur_registry *r, struct ur_port_entry *e)
{
	uint32_t *link = &own(r)->chain[chain_of(e->port_space, e->port)], number = number_of(r, e);

	drop_name(r, e);
	while (*link != number)
		link = &entry(r, *link)->next;
	change(r);
	*link = e->next;
	*e = (struct ur_port_entry){.next = own(r)->free};
	own(r)->free = number;
	change(r);
}

static struct ur_port_entry *find_own(struct ur_registry *r, uint16_t ps, const struct ur_gid *gid, uint16_t port)
{
	struct ur_port_entry *e = entry(r, own(r)->chain[chain_of(ps, port)]);

	while (e && !(e->port == port && e->port_space == ps && ur_gid_eq(&e->gid, gid)))
		e = entry(r, e->next);
	return e;
}

/* --- the tables of others: every word is read once, and may say anything --- */

struct search {
	uint16_t ps, port;
	const struct ur_gid *gid;
	bool reuse;
	bool (*matches)(const struct search *what, const struct ur_port_entry *e);
};

static bool conflicts(const struct search *what, const struct ur_port_entry *e)
{
	return ur_gid_overlap(&e->gid, what->gid) && !(what->reuse && e->reuse);
}

static bool listens(const struct search *what, const struct ur_port_entry *e)
{
	return e->listening && ur_gid_covers(&e->gid, what->gid);
}

static void copy_entry(struct ur_port_entry *to, const struct ur_port_entry *from)
{
	const uint32_t *word = (const void *)from;
	uint32_t copy[sizeof(*to) / sizeof(uint32_t)];

	for (unsigned i = 0; i < ur_array_size(copy); i++)
		copy[i] = __atomic_load_n(word + i, __ATOMIC_RELAXED);
	memcpy(to, copy, sizeof(*to));
}
_Static_assert(sizeof(struct ur_port_entry) % sizeof(uint32_t) == 0, "an entry is copied by words");

static bool search_chain(struct ur_registry *r, const struct ur_port_table *t, const struct search *what, struct ur_port_entry *found)
{
	uint32_t number = __atomic_load_n(&t->chain[chain_of(what->ps, what->port)], __ATOMIC_ACQUIRE);

	for (unsigned n = 0; number && number <= UR_PORTS && n < UR_PORTS && r->steps; n++) {
		r->steps--;
		copy_entry(found, &t->entry[number - 1]);
		if (found->state != UR_PORT_FREE && found->port == what->port && found->port_space == what->ps &&
		    what->matches(what, found))
			return true;
		number = found->next;
	}
	return false;
}

/* False when we have waited long enough in this call. */
static bool nap(struct ur_registry *r)
{
	const struct timespec ts = {.tv_nsec = 50000};

	if (!r->naps)
		return false;
	r->naps--;
	nanosleep(&ts, NULL);
	return true;
}

/* A chain that its owner changes meanwhile is looked at again, if not for ever. */
static bool search_table(struct ur_registry *r, const struct ur_port_table *t, const struct search *what, struct ur_port_entry *found)
{
	uint32_t before;
	bool is_there;

	do {
		before = atomic_load(&t->changes);
		is_there = search_chain(r, t, what, found);
	} while ((before & 1 || atomic_load(&t->changes) != before) && nap(r));
	return is_there;
}

/* The first other process that has such an entry, and lives, or NULL. */
static const struct ur_sibling *search_others(struct ur_registry *r, const struct search *what, struct ur_port_entry *found)
{
	for (unsigned s = 1; s < UR_SLOTS; s++) {
		const struct ur_sibling *sib = r->sibling[s];

		if (sib && search_table(r, &sib->page->ports, what, found) && ur_registry_alive(r, (uint8_t)s))
			return sib;
	}
	return NULL;
}

/* --- conflicts --- */

static bool conflicts_here(struct ur_registry *r, const struct ur_port_entry *mine)
{
	struct search what = {.gid = &mine->gid, .reuse = mine->reuse};

	for (struct ur_port_entry *e = entry(r, own(r)->chain[chain_of(mine->port_space, mine->port)]); e; e = entry(r, e->next))
		if (e != mine && e->port == mine->port && e->port_space == mine->port_space && conflicts(&what, e))
			return true;
	return false;
}

/* With what we want already shown. One with a higher slot that tries at the same time sees us and gives way, which we wait for. */
static bool conflicts_there(struct ur_registry *r, const struct ur_port_entry *mine)
{
	const struct search what = {mine->port_space, mine->port, &mine->gid, mine->reuse, conflicts};
	struct ur_port_entry found;
	const struct ur_sibling *s;

	atomic_thread_fence(memory_order_seq_cst);
	while ((s = search_others(r, &what, &found)) && found.state == UR_PORT_TRYING && s->slot > r->slot && nap(r))
		continue;
	return s;
}

static void publish_port(struct ur_registry *r, struct ur_port_entry *e, const struct ur_port_entry *what, enum ur_port_state state)
{
	change(r);
	e->gid = what->gid;
	e->reuse = what->reuse;
	e->listening = what->listening;
	e->state = (uint8_t)state;
	change(r);
}

/*
 * Makes an entry of ours say something else, or leaves it as it was. 0, or EADDRINUSE, as bind(2) calls it: where a wildcard is involved
 * Linux's RDMA CM says EADDRNOTAVAIL, and whoever starts a server twice reads that the requested address cannot be assigned.
 */
static int alter(struct ur_registry *r, struct ur_port_entry *e, const struct ur_port_entry *what)
{
	const struct ur_port_entry before = *e;
	bool taken;

	publish_port(r, e, what, UR_PORT_TRYING);
	taken = conflicts_here(r, e) || conflicts_there(r, e);
	publish_port(r, e, taken ? &before : what, UR_PORT_HELD);
	return taken ? EADDRINUSE : 0;
}

/* --- names of ports that are listened on --- */

static void port_name(const struct ur_registry *r, uint16_t ps, uint16_t port, const struct ur_gid *gid, char *name)
{
	int n = snprintf(name, UR_NAME_MAX, "uroce-%016llx-%x-%u-", (unsigned long long)r->key, ps, port);

	for (unsigned i = 0; i < 16; i++)
		n += snprintf(name + n, UR_NAME_MAX - (size_t)n, "%02x", gid->raw[i]);
}

/* By another process, at the address itself or a wildcard that covers it. */
static bool named(struct ur_registry *r, uint16_t ps, uint16_t port, const struct ur_gid *dst)
{
	const struct ur_gid *at[] = {dst, &ur_gid_all, ur_gid_is_v4(dst) ? &ur_gid_all_v4 : &ur_gid_all_v6};
	char name[UR_NAME_MAX];

	for (unsigned i = 0; i < ur_array_size(at); i++) {
		const struct ur_port_entry *e = find_own(r, ps, at[i], port);

		port_name(r, ps, port, at[i], name);
		if (!(e && e->listening) && ur_name_held(r->probe_fd, name))
			return true;
	}
	return false;
}

/* 0, or EADDRINUSE when another user's process listens there, or one that we have not met. */
static int take_name(struct ur_registry *r, const struct ur_port_entry *e)
{
	char name[UR_NAME_MAX];
	int fd;

	if (named(r, e->port_space, e->port, &e->gid))
		return EADDRINUSE;
	port_name(r, e->port_space, e->port, &e->gid, name);
	fd = ur_name_hold(name);
	if (fd < 0 && errno == EADDRINUSE)
		return EADDRINUSE;
	r->names[e - own(r)->entry] = fd + 1; /* 0 without a descriptor to spare: then only our own processes know */
	return 0;
}

/*
 * A name that this process gave up a moment ago still exists while a keeper is being started, which has copies of our descriptors until it
 * runs. The second attempt is for one that has started between the first and the question.
 */
static int take_name_again(struct ur_registry *r, const struct ur_port_entry *e)
{
	int err = take_name(r, e);

	if (err != EADDRINUSE)
		return err;
	return ur_keeper_is_starting() ? EAGAIN : take_name(r, e);
}

/* --- ports that were listened on a moment ago --- */

static void show_left(struct ur_registry *r, const struct ur_port_entry *e)
{
	struct ur_ports_left *l = &r->own.page->left;
	unsigned i = l->n++ % UR_PORTS_LEFT;

	atomic_store(&l->last[i].at, 0);
	l->last[i].port = e->port;
	l->last[i].gid = e->gid;
	atomic_store(&l->last[i].at, ur_clock_now());
}

/* What is read while its owner writes another in its place is wrong for once: then the peer asks again, or is refused. */
static bool left_there(const struct ur_ports_left *l, uint16_t port, const struct ur_gid *dst, uint64_t now)
{
	for (unsigned i = 0; i < UR_PORTS_LEFT; i++) {
		uint64_t at = atomic_load(&l->last[i].at);
		struct ur_gid gid = l->last[i].gid;

		if (at && now - at < UR_CM_LEFT && l->last[i].port == port && ur_gid_covers(&gid, dst))
			return true;
	}
	return false;
}

bool ur_registry_left(const struct ur_registry *r, uint16_t port, const struct ur_gid *dst)
{
	uint64_t now = ur_clock_now();

	for (unsigned s = 1; s < UR_SLOTS; s++)
		if (r->sibling[s] && left_there(&r->sibling[s]->page->left, port, dst, now) && ur_registry_alive(r, (uint8_t)s))
			return true;
	return false;
}

/* --- ports that are listened on --- */

static void show_listened(struct ur_registry *r, uint16_t port, bool on)
{
	struct ur_ports_listened *l = &r->own.page->listened;
	uint32_t n = l->n, i = 0;

	while (i < n && (on || l->port[i] != port))
		i++;
	if (on && n < UR_PORTS_LISTENED) {
		l->port[n] = port;
		__atomic_store_n(&l->n, n + 1, __ATOMIC_RELEASE);
	} else if (!on && i < n) {
		l->port[i] = l->port[n - 1];
		__atomic_store_n(&l->n, n - 1, __ATOMIC_RELEASE);
	}
}

unsigned ur_registry_listened(const struct ur_registry *r, uint8_t slot, uint16_t port[UR_PORTS_LISTENED])
{
	const struct ur_page *page = slot == r->slot ? r->own.page : r->sibling[slot] ? r->sibling[slot]->page : NULL;
	unsigned n = page ? ur_min_u32(__atomic_load_n(&page->listened.n, __ATOMIC_ACQUIRE), UR_PORTS_LISTENED) : 0;

	for (unsigned i = 0; i < n; i++)
		port[i] = __atomic_load_n(&page->listened.port[i], __ATOMIC_RELAXED);
	return n;
}

/* --- binding and listening --- */

static int claim_port(struct ur_registry *r, const struct ur_port_entry *what)
{
	struct ur_port_entry *e = add_entry(r, what);
	int err;

	if (!e)
		return ENOSPC;
	err = alter(r, e, what);
	if (err)
		remove_entry(r, e);
	return err;
}

/* From anywhere on, so that processes seldom meet; one that may be shared begins with nobody to share it. */
static int claim_ephemeral_port(struct ur_registry *r, struct ur_port_entry *what)
{
	struct ur_port_entry alone = *what;
	uint64_t first = ur_clock_now() / 64;
	int err = EADDRNOTAVAIL;

	alone.reuse = false;
	for (unsigned i = 0; i < EPHEMERAL_COUNT && err && err != ENOSPC; i++) {
		what->port = alone.port = (uint16_t)(EPHEMERAL_FIRST + (first + i) % EPHEMERAL_COUNT);
		err = claim_port(r, &alone);
	}
	if (!err)
		publish_port(r, find_own(r, what->port_space, &what->gid, what->port), what, UR_PORT_HELD);
	return err == EADDRINUSE ? EADDRNOTAVAIL : err;
}

int ur_registry_bind(struct ur_registry *r, uint16_t ps, const struct ur_gid *gid, bool reuse, uint16_t *port)
{
	struct ur_port_entry what = {.port_space = ps, .port = *port, .state = UR_PORT_TRYING, .reuse = reuse, .gid = *gid};
	int err;

	begin_call(r);
	err = *port ? claim_port(r, &what) : claim_ephemeral_port(r, &what);
	if (!err)
		*port = what.port;
	return err;
}

void ur_registry_release(struct ur_registry *r, uint16_t ps, const struct ur_gid *gid, uint16_t port)
{
	struct ur_port_entry *e = find_own(r, ps, gid, port);

	if (e && e->listening)
		show_listened(r, port, false);
	if (e)
		remove_entry(r, e);
}

static int start_listening(struct ur_registry *r, struct ur_port_entry *e)
{
	struct ur_port_entry what = *e;
	int err = take_name_again(r, e);

	if (err)
		return err;
	what.listening = true;
	what.reuse = false; /* it is its listener's alone, and stays so */
	err = alter(r, e, &what);
	if (err)
		drop_name(r, e);
	else
		show_listened(r, e->port, true);
	return err;
}

int ur_registry_listen(struct ur_registry *r, uint16_t ps, const struct ur_gid *gid, uint16_t port, bool on)
{
	struct ur_port_entry *e = find_own(r, ps, gid, port), what;

	if (!e || e->listening == on)
		return 0;
	begin_call(r);
	if (on)
		return start_listening(r, e);
	show_left(r, e);
	show_listened(r, e->port, false);
	what = *e;
	what.listening = false;
	publish_port(r, e, &what, UR_PORT_HELD);
	drop_name(r, e);
	return 0;
}

int ur_registry_move(struct ur_registry *r, uint16_t ps, const struct ur_gid *from, const struct ur_gid *to, bool reuse, uint16_t port)
{
	struct ur_port_entry *e = find_own(r, ps, from, port), what;

	if (!e)
		return 0;
	begin_call(r);
	what = *e;
	what.gid = *to;
	what.reuse = reuse;
	return alter(r, e, &what);
}

bool ur_registry_listened_on(struct ur_registry *r, uint16_t ps, uint16_t port, const struct ur_gid *dst)
{
	const struct search what = {ps, port, dst, false, listens};
	struct ur_port_entry found;

	begin_call(r);
	return search_others(r, &what, &found) || named(r, ps, port, dst);
}
