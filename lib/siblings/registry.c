/* SPDX-License-Identifier: BSD-3-Clause */
#include "siblings/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "host/device/names.h"
#include "siblings/registry_priv.h"

#define TURN_BACKLOG 8
#define TURN_LOOKS 3 /* at a name that is held and on which nobody listens yet, or ever */

/* --- the slot --- */

bool ur_registry_alive(const struct ur_registry *r, uint8_t slot)
{
	char name[UR_NAME_MAX];

	if (slot == r->slot)
		return true;
	ur_slot_name(r->key, slot, name);
	return slot && ur_name_held(r->probe_fd, name);
}

/* The slot, and that others can greet us there. */
static int take_one(struct ur_registry *r, uint8_t slot)
{
	char name[UR_NAME_MAX];
	int err;

	ur_slot_name(r->key, slot, name);
	r->name_fd = ur_name_hold(name);
	if (r->name_fd < 0)
		return errno;
	r->listener = ur_name_socket(name, true);
	if (r->listener >= 0) {
		r->slot = slot;
		return 0;
	}
	err = errno;
	close(r->name_fd);
	r->name_fd = -1;
	return err;
}

/* One of n slots, from anywhere on: packets for the last owner of a slot are late for a while, and should seldom meet the next one. */
static int take_slot(struct ur_registry *r, unsigned from, unsigned n)
{
	uint8_t first = (uint8_t)getpid();
	int err = EADDRINUSE;

	(void)!getrandom(&first, sizeof(first), 0);
	for (unsigned i = 0; i < n && err == EADDRINUSE; i++)
		err = take_one(r, (uint8_t)(from + (first + i) % n));
	return err == EADDRINUSE ? EAGAIN : err;
}

/* --- opening and closing --- */

static int open_in(uint64_t key, unsigned from, unsigned n, struct ur_registry **out)
{
	struct ur_registry *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return ENOMEM;
	r->key = key;
	r->name_fd = r->listener = r->turn_fd = r->share_fd = r->own.memfd = r->own.wake_fd = -1;
	r->names = calloc(UR_PORTS, sizeof(*r->names));
	r->probe_fd = ur_name_probe();
	err = !r->names ? ENOMEM : r->probe_fd < 0 ? errno : take_slot(r, from, n);
	err = err ? err : ur_page_create(&r->own, r->slot);
	if (err) {
		ur_registry_abandon(r);
		return err;
	}
	*out = r;
	return 0;
}

int ur_registry_open(uint64_t key, struct ur_registry **out)
{
	return open_in(key, 1, UR_SLOTS - 1, out);
}

int ur_registry_open_further(uint64_t key, struct ur_registry **out)
{
	return open_in(key, UR_SLOTS / 2, UR_SLOTS / 2, out);
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void forget_all(struct ur_registry *r)
{
	for (unsigned s = 0; s < UR_SLOTS; s++)
		if (r->sibling[s])
			ur_sibling_free(r->sibling[s]);
	ur_registry_drop_names(r);
	close_one(&r->name_fd);
	close_one(&r->probe_fd);
	close_one(&r->turn_fd);
	close_one(&r->share_fd);
	if (!r->acceptor)
		close_one(&r->listener);
}

void ur_registry_abandon(struct ur_registry *r)
{
	forget_all(r);
	if (r->acceptor)
		ur_acceptor_abandon(r->acceptor);
	ur_page_close(&r->own);
	free(r->names);
	free(r);
}

/* Anybody can connect to its name and send there what lingers, and this is done under the NIC's lock. */
static void end_turn(struct ur_registry *r)
{
	if (r->turn_fd >= 0)
		ur_hang_up_waiting(&r->turn_guests, r->turn_fd);
	close_one(&r->turn_fd);
}

void ur_registry_close(struct ur_registry *r)
{
	atomic_store(&r->own.page->reads, false);
	atomic_store(&r->own.page->started, false);
	end_turn(r);
	ur_hang_ups_end(&r->turn_guests);
	forget_all(r);
	if (r->acceptor && !ur_acceptor_close(r->acceptor))
		return; /* it uses the page */
	ur_page_close(&r->own);
	free(r->names);
	free(r);
}

uint8_t ur_registry_slot(const struct ur_registry *r)
{
	return r->slot;
}

uint64_t ur_registry_key(const struct ur_registry *r)
{
	return r->key;
}

const struct ur_own_page *ur_registry_page(const struct ur_registry *r)
{
	return &r->own;
}

/* --- the others --- */

int ur_registry_join(struct ur_registry *r)
{
	int err;

	if (r->joined)
		return 0;
	r->joined = true;
	err = ur_acceptor_open(r->key, &r->own, r->listener, &r->acceptor);
	ur_registry_meet(r);
	return err;
}

void ur_registry_started(struct ur_registry *r, const char *kind)
{
	snprintf(r->own.page->kind, UR_KIND, "%s", kind);
	atomic_store(&r->own.page->started, true);
}

static void replace(struct ur_registry *r, unsigned slot, struct ur_sibling *s)
{
	if (r->sibling[slot])
		ur_sibling_free(r->sibling[slot]);
	r->sibling[slot] = s;
	r->changes++;
}

__attribute__((noinline)) static void meet_all(struct ur_registry *r)
{
	for (unsigned s = 1; s < UR_SLOTS; s++) {
		struct ur_sibling *came = ur_acceptor_take(r->acceptor, (uint8_t)s);

		if (came)
			replace(r, s, came);
	}
}

uint32_t ur_registry_meet(struct ur_registry *r)
{
	if (r->acceptor && ur_unlikely(ur_acceptor_changed(r->acceptor)))
		meet_all(r);
	return r->changes;
}

const struct ur_sibling *ur_registry_sibling(const struct ur_registry *r, uint8_t slot)
{
	return r->sibling[slot];
}

void ur_registry_forget(struct ur_registry *r, uint8_t slot)
{
	if (r->sibling[slot] && !ur_registry_alive(r, slot))
		replace(r, slot, NULL);
}

/* --- who shares a socket's port --- */

/* A process that shares has a name that says so; the names also show those that we have not met, because they are stopped. */
static void sharer_name(const struct ur_registry *r, uint8_t slot, char *name)
{
	snprintf(name, UR_NAME_MAX, "uroce-%016llx-shares-%u-%u", (unsigned long long)r->key, (unsigned)geteuid(), slot);
}

static bool shares(const struct ur_registry *r, uint8_t slot)
{
	char name[UR_NAME_MAX];

	if (slot == r->slot)
		return r->share_fd >= 0;
	sharer_name(r, slot, name);
	return ur_name_held(r->probe_fd, name);
}

/* Each process shows the list as it was when it joined, with the number of the turn: the highest number is the latest. */
static unsigned latest_list(const struct ur_registry *r, uint8_t slots[256], uint32_t *turn)
{
	const struct ur_page *latest = r->own.page;

	*turn = atomic_load(&latest->sharers.turn);
	for (unsigned s = 1; s < UR_SLOTS; s++) {
		uint32_t t = r->sibling[s] ? atomic_load(&r->sibling[s]->page->sharers.turn) : 0;

		if (t > *turn) {
			*turn = t;
			latest = r->sibling[s]->page;
		}
	}
	memcpy(slots, latest->sharers.slot, UR_SLOTS);
	return *turn ? ur_min_u32(__atomic_load_n(&latest->sharers.n, __ATOMIC_RELAXED), UR_SLOTS - 1) : 0;
}

/* Those of the list that still share, each once; as in the kernel, the last takes the place of one that has gone. */
static unsigned the_living(const struct ur_registry *r, uint8_t slots[256], unsigned n, bool listed[256])
{
	for (unsigned i = 0; i < n;) {
		if (!listed[slots[i]] && shares(r, slots[i]))
			listed[slots[i++]] = true;
		else
			slots[i] = slots[--n];
	}
	return n;
}

/* Whom no list has must have joined after those that we know. */
static unsigned list_sharers(const struct ur_registry *r, uint8_t slots[256], uint32_t *turn)
{
	bool listed[UR_SLOTS] = {false};
	unsigned n = the_living(r, slots, latest_list(r, slots, turn), listed);

	for (unsigned s = 1; s < UR_SLOTS && n < UR_SLOTS - 1; s++)
		if (!listed[s] && shares(r, (uint8_t)s))
			slots[n++] = (uint8_t)s;
	return n;
}

/* Who holds the name? The kernel says who listens there. */
enum holder { SIBLING, STRANGER, UNKNOWN };

static enum holder holder_of(const char *name)
{
	int fd = ur_name_socket(name, false);
	socklen_t len = sizeof(struct ucred);
	enum holder h = UNKNOWN;
	struct ucred c;

	if (fd < 0)
		return UNKNOWN; /* nobody listens there, or too many wait */
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &len))
		h = c.uid == geteuid() ? SIBLING : STRANGER;
	close(fd);
	return h;
}

/* The holder listens, so that others can see who it is. */
static int hold_turn(const char *name)
{
	int fd = ur_name_socket(name, true);

	if (fd >= 0)
		listen(fd, TURN_BACKLOG);
	return fd;
}

/*
 * A name of this user's makes those that join and leave do so one after another. Anybody can hold it: what another user holds, or somebody
 * who does not say who he is, keeps nobody waiting, and we go on without. Packets that go astray then are passed on.
 */
bool ur_registry_turn(struct ur_registry *r)
{
	char name[UR_NAME_MAX];

	if (r->turn_fd >= 0)
		return true;
	snprintf(name, sizeof(name), "uroce-%016llx-turn-%u", (unsigned long long)r->key, (unsigned)geteuid());
	r->turn_fd = hold_turn(name);
	if (r->turn_fd >= 0 || errno != EADDRINUSE)
		return true;
	switch (holder_of(name)) {
	case SIBLING: return false;
	case UNKNOWN: return ++r->turn_looks % TURN_LOOKS == 0;
	case STRANGER: break;
	}
	return true;
}

unsigned ur_registry_sharers_begin(struct ur_registry *r, uint8_t slots[256], bool leave)
{
	uint32_t turn;

	ur_registry_turn(r);
	ur_registry_meet(r);
	if (leave)
		close_one(&r->share_fd);
	return list_sharers(r, slots, &turn);
}

static void show_list(struct ur_registry *r)
{
	char name[UR_NAME_MAX];
	uint8_t slots[256];
	uint32_t turn;
	unsigned n;

	close_one(&r->share_fd);
	n = list_sharers(r, slots, &turn);
	slots[n++] = r->slot;
	memcpy(r->own.page->sharers.slot, slots, n);
	__atomic_store_n(&r->own.page->sharers.n, n, __ATOMIC_RELAXED);
	atomic_store(&r->own.page->sharers.turn, turn + 1);
	sharer_name(r, r->slot, name);
	r->share_fd = ur_name_hold(name);
}

void ur_registry_sharers_end(struct ur_registry *r, bool join)
{
	if (join)
		show_list(r);
	end_turn(r);
}

/* --- who speaks for the device --- */

/* Of this user's processes. */
static bool lower_one_started(const struct ur_registry *r)
{
	for (unsigned s = 1; s < r->slot; s++)
		if (r->sibling[s] && atomic_load(&r->sibling[s]->page->started) && ur_registry_alive(r, (uint8_t)s))
			return true;
	return false;
}

bool ur_registry_orphaned(struct ur_registry *r, uint8_t slot)
{
	if (!slot || ur_registry_alive(r, slot)) /* nearly always */
		return false;
	ur_registry_meet(r);
	return !lower_one_started(r);
}

bool ur_registry_other_answers(struct ur_registry *r, uint16_t ps, uint16_t port, const struct ur_gid *dst)
{
	return ur_registry_listened_on(r, ps, port, dst) || ur_registry_left(r, port, dst) || lower_one_started(r);
}
