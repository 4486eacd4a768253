/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Paths, and packets that wait for a neighbour. A path has the MAC address that its neighbour was believed last to have; a packet is
 * sent or dropped, once, within the time that a neighbour has to answer.
 */
#include <errno.h>
#include <stdlib.h>

#include "net_fuzz.h"

#define ASKED_MAX (UR_NS_PER_S + SLACK) /* an answer counts as one until the next question would have been sent */
#define PAYLOAD 24

static struct ur_mac dmac_of(const struct slot *s)
{
	struct ur_mac m;

	memcpy(m.b, s->path.wire.hdr, 6);
	return m;
}

static void choose(unsigned to, unsigned from, const struct fuzz *f, struct ur_net_path_attr *a)
{
	*a = (struct ur_net_path_attr){.sport = 0xc000};
	to %= HOSTS + REMOTES + 3;
	if (to < HOSTS)
		a->dgid = f->host[to].ip;
	else if (to < HOSTS + REMOTES)
		a->dgid = remotes[to - HOSTS];
	else if (to == HOSTS + REMOTES)
		a->dgid = addrs[from % ADDRS].gid;
	else
		a->dgid = member_gid(from);
	if (from & 0x80) /* and not what the route would choose */
		a->sgid = addrs[from % ADDRS].gid;
}

/* Which neighbour packets with these addresses go to; false when they need none. */
static bool next_hop(struct fuzz *f, const struct ur_net_path_attr *a, struct ur_gid *hop, uint16_t *vlan, uint8_t *host)
{
	struct ur_gid src;

	*host = HOSTS;
	if (f->routed || is_ours(f, &a->dgid) || ur_gid_is_mcast(&a->dgid) ||
	    ur_net_route_lookup(f->net, &a->dgid, ur_gid_is_zero(&a->sgid) ? NULL : &a->sgid, &src, hop))
		return false;
	*vlan = is_ours_on(f, &src, VLAN) ? VLAN : 0;
	*host = (uint8_t)host_find(f, hop, *vlan);
	return true;
}

/* --- paths --- */

/* The neighbour is asked anew before all his paths were told that he does not answer. */
static void asked_again(struct fuzz *f, const struct slot *s)
{
	for (unsigned i = 0; i < PATHS; i++) {
		struct slot *o = &f->slot[i];

		if (o->open && o->neigh && !o->orphan && o->until != UR_TIME_NEVER && o->vlan == s->vlan && ur_gid_eq(&o->hop, &s->hop))
			o->until = f->now + WAIT_MAX + SLACK;
	}
}

static void act(struct fuzz *f, struct slot *s)
{
	unsigned i = (unsigned)(s - f->slot), what = s->on_change & 7;

	s->on_change = 0;
	f->acted |= what > 3;
	switch (what) {
	case 4: path_close(f, i); break;
	case 5: path_close(f, (i + 1) % PATHS); break;
	case 6: path_open(f, i, i, 0, 0); break;
	case 7: path_send(f, s->host, 0); break;
	default: break;
	}
	if (what > 5)
		asked_again(f, s);
}

/* Before a neighbour is given up everybody is asked, so one who has another MAC address now is found. */
static void check_failed(struct fuzz *f, const struct slot *s)
{
	const struct host *h = s->neigh && !s->orphan && s->host < HOSTS ? &f->host[s->host] : NULL;
	ur_time asked = f->now - ASKED_MAX - SLACK;

	if (h && h->up && f->mac_known && h->since < asked && f->starved < asked && f->mac_since < asked)
		broke(f, "path %u fails, and its neighbour answers everybody", (unsigned)(s - f->slot));
}

static void changed(struct ur_net_path *p, int err, ur_time now)
{
	struct slot *s = p->owner;
	struct fuzz *f = s->f;
	bool outer = f->in_callback;

	trace(f, "path %u: error %d", (unsigned)(s - f->slot), err);
	if (!s->open || now != f->now)
		broke(f, "path %u is closed, or it is not the time that it is told", (unsigned)(s - f->slot));
	if (f->opening == s)
		broke(f, "path %u is told while it is opened", (unsigned)(s - f->slot));
	if ((err && err != EHOSTUNREACH) || p->wire.ready != !err)
		broke(f, "path %u is told error %d and is %sready", (unsigned)(s - f->slot), err, p->wire.ready ? "" : "not ");
	if (err)
		check_failed(f, s);
	s->until = UR_TIME_NEVER;
	f->in_callback = true;
	act(f, s);
	f->in_callback = outer;
}

static void check_open(struct fuzz *f, struct slot *s, int rc)
{
	const struct ur_path *w = &s->path.wire;
	const uint8_t *smac = w->hdr + 6;
	struct ur_mac dmac = dmac_of(s);

	if (!is_ours(f, &w->sgid) || !ur_gid_eq(&w->dgid, &s->attr.dgid))
		broke(f, "a path has other addresses than it was opened with");
	if (!ur_gid_is_zero(&s->attr.sgid) && !ur_gid_eq(&s->attr.sgid, &w->sgid))
		broke(f, "a path has another source than the one asked for");
	if (f->mac_known && !f->routed && memcmp(smac, f->mac.b, 6) != 0)
		broke(f, "a path has another MAC address than ours");
	if (w->ready && s->neigh && s->host < HOSTS && !(f->host[s->host].claimed & mac_bit(dmac.b)))
		broke(f, "a path is ready with a MAC address that nobody has named: ...%02x%02x", dmac.b[4], dmac.b[5]);
	if (!s->neigh && w->ready != f->mac_known)
		broke(f, "a path that needs no neighbour is %sready, error %d", w->ready ? "" : "not ", rc);
	if (w->local != is_ours(f, &w->dgid))
		broke(f, "a path is %slocal", w->local ? "" : "not ");
}

void path_open(struct fuzz *f, unsigned slot, unsigned to, unsigned from, uint8_t on_change)
{
	struct slot *s = &f->slot[slot % PATHS], *outer = f->opening;
	int rc;

	path_close(f, slot);
	s->f = f;
	s->path.owner = s;
	s->path.changed = changed;
	s->orphan = false;
	s->on_change = on_change;
	choose(to, from, f, &s->attr);
	s->neigh = next_hop(f, &s->attr, &s->hop, &s->vlan, &s->host);
	f->opening = s;
	rc = ur_net_path_open(f->net, &s->path, &s->attr, f->now);
	f->opening = outer;
	trace(f, "path %u to %u: error %d, %sready", slot % PATHS, to % (HOSTS + REMOTES + 3), rc, s->path.wire.ready ? "" : "not ");
	s->open = !rc;
	if (!rc)
		check_open(f, s, rc);
	else if (s->path.wire.ready)
		broke(f, "a path that could not be opened is ready");
	s->until = s->open && s->neigh && !s->path.wire.ready ? f->now + WAIT_MAX + SLACK : UR_TIME_NEVER;
}

void path_close(struct fuzz *f, unsigned slot)
{
	struct slot *s = &f->slot[slot % PATHS];

	ur_net_path_close(&s->path);
	if (s->path.wire.ready)
		broke(f, "a closed path is ready");
	s->open = false;
	s->moved = true;
	s->until = UR_TIME_NEVER;
}

void path_retry(struct fuzz *f, unsigned slot)
{
	struct slot *s = &f->slot[slot % PATHS];

	ur_net_path_retry(&s->path, f->now);
	if (s->open && s->neigh && !s->orphan && !s->path.wire.ready)
		s->until = f->now + WAIT_MAX + SLACK;
}

/* --- what a frame may do to them --- */

void paths_before(struct fuzz *f)
{
	for (unsigned i = 0; i < PATHS; i++) {
		struct slot *s = &f->slot[i];

		s->moved = false;
		s->was_ready = s->path.wire.ready;
		s->was_mac = dmac_of(s);
	}
	for (unsigned i = 0; i < HOSTS; i++)
		f->was_asked[i] = f->host[i].asked != UR_TIME_NEVER && f->now <= f->host[i].asked + ASKED_MAX;
}

/* Has the neighbour's own answer come meanwhile? */
static bool by_answer(const struct fuzz *f, const struct slot *s)
{
	struct ur_mac m = dmac_of(s);

	return f->acted || (f->at_once && s->host < HOSTS && s->path.wire.ready && mac_eq(&m, &f->host[s->host].mac));
}

/* RFC 4861, 7.2.5: who is in use is replaced by one who says that he overrides, and is asked at once whether that is so. */
static void check_claimed(struct fuzz *f, struct slot *s, const struct claim *c)
{
	struct ur_mac m = dmac_of(s);
	bool believed = f->mac_known && c->mac_said && (!s->was_ready || c->override || mac_eq(&c->mac, &s->was_mac));
	bool is_new = !s->was_ready || !mac_eq(&c->mac, &s->was_mac);
	bool asked = (s->host < HOSTS && f->was_asked[s->host]) || f->now < f->starved + ASKED_MAX; /* or would have been */

	if (believed && (!s->path.wire.ready || !mac_eq(&m, &c->mac)) && !by_answer(f, s))
		broke(f, "path %u: its neighbour says which MAC address he has, and is not believed", (unsigned)(s - f->slot));
	if (!believed && (s->path.wire.ready != s->was_ready || (s->was_ready && !mac_eq(&m, &s->was_mac))) && !by_answer(f, s))
		broke(f, "path %u: a claim that must not take over its neighbour does", (unsigned)(s - f->slot));
	if (believed && is_new && !(c->solicited && asked) && !f->probes && !f->deaf && s->host < HOSTS)
		broke(f, "path %u: a MAC address that nobody asked for is not verified", (unsigned)(s - f->slot));
}

static void check_others(struct fuzz *f, struct slot *s)
{
	struct ur_mac m = dmac_of(s);

	if ((s->path.wire.ready != s->was_ready || !mac_eq(&m, &s->was_mac)) && !by_answer(f, s))
		broke(f, "path %u changes by a frame that says nothing of its neighbour", (unsigned)(s - f->slot));
}

void paths_after(struct fuzz *f, const struct claim *c)
{
	unsigned h = c->is ? host_find(f, &c->ip, c->vlan) : HOSTS;

	for (unsigned i = 0; i < PATHS; i++) {
		struct slot *s = &f->slot[i];

		if (!s->open || s->moved)
			continue;
		if (s->neigh && !s->orphan && c->is && s->vlan == c->vlan && ur_gid_eq(&s->hop, &c->ip))
			check_claimed(f, s, c);
		else
			check_others(f, s);
	}
	/* Who has no entry yet learns nothing from an answer without a MAC address (RFC 4861, 7.2.5), and goes on waiting. */
	if (h < HOSTS && c->mac_said && c->solicited && c->override && !f->probes)
		f->host[h].asked = UR_TIME_NEVER;
}

void paths_address_gone(struct fuzz *f, const struct ur_gid *gid)
{
	for (unsigned i = 0; i < PATHS; i++) {
		struct slot *s = &f->slot[i];
		const struct ur_path *w = &s->path.wire;

		if (!s->open || s->orphan || !(ur_gid_eq(&w->sgid, gid) || (w->local && ur_gid_eq(&w->dgid, gid))))
			continue;
		if (w->ready)
			broke(f, "path %u is ready with an address that is not ours any more", i);
		s->orphan = true;
		s->until = f->now + SLACK;
	}
}

void paths_mac_known(struct fuzz *f)
{
	for (unsigned i = 0; i < PATHS; i++) {
		struct slot *s = &f->slot[i];

		if (!s->open || s->orphan)
			continue;
		if (memcmp(s->path.wire.hdr + 6, f->mac.b, 6) != 0)
			broke(f, "path %u has another MAC address than ours", i);
		if (!s->neigh && !s->path.wire.ready)
			s->until = f->now + SLACK;
		else if (s->until != UR_TIME_NEVER)
			s->until = f->now + WAIT_MAX + SLACK;
	}
	for (unsigned i = 0; i < SENDS; i++)
		if (f->send[i].fate == FATE_WAITS)
			f->send[i].until = f->now + WAIT_MAX + SLACK;
}

/* --- packets --- */

static unsigned waiting_for(const struct fuzz *f, const struct send *s)
{
	unsigned n = 0;

	for (unsigned i = 0; i < SENDS; i++)
		n += f->send[i].fate == FATE_WAITS && f->send[i].vlan == s->vlan && ur_gid_eq(&f->send[i].hop, &s->hop);
	return n;
}

static struct ur_pkt *build(struct fuzz *f, const struct ur_net_path_attr *a, unsigned number)
{
	unsigned head = ur_net_headroom(f->net, a);
	struct ur_pkt *p = pkt_new(f);

	p->kind = UR_PKT_ROCE;
	p->bth = (struct ur_bth){.opcode = UR_UD | UR_OP_SEND_ONLY, .pkey = UR_PKEY_DEFAULT, .dqpn = 1, .psn = number};
	ur_bth_put(p->data + head, &p->bth);
	memset(p->data + head + UR_BTH_LEN, 0, PAYLOAD);
	p->len = head + UR_BTH_LEN + PAYLOAD;
	return p;
}

static void send_one(struct fuzz *f, const struct ur_net_path_attr *a)
{
	struct send *s = f->send;
	unsigned number, dropped = f->ndropped;
	int rc;

	while (s < f->send + SENDS && s->fate)
		s++;
	if (s == f->send + SENDS)
		broke(f, "more packets wait than may");
	number = (unsigned)(s - f->send);
	*s = (struct send){.fate = FATE_MINE, .number = f->nsent++, .until = f->now + WAIT_MAX + SLACK};
	if (!next_hop(f, a, &s->hop, &s->vlan, &s->host))
		s->hop = (struct ur_gid){{0}};
	s->pkt = build(f, a, number);
	rc = ur_net_send(f->net, s->pkt, a, f->now);
	if (rc && f->ndropped == dropped)
		broke(f, "a packet is refused with error %d, and not dropped", rc);
	if (s->fate != FATE_MINE)
		return;
	s->fate = FATE_WAITS;
	f->nwaiting++;
	if (waiting_for(f, s) > QUEUE_ONE_MAX)
		broke(f, "%u packets wait for one neighbour", waiting_for(f, s));
}

void path_send(struct fuzz *f, unsigned to, unsigned from)
{
	struct ur_net_path_attr a;

	choose(to, from, f, &a);
	send_one(f, &a);
}

void path_send_far(struct fuzz *f, uint16_t number)
{
	struct ur_net_path_attr a = {.dgid = {.raw = {0xfd, [13] = 1, (uint8_t)(number >> 8), (uint8_t)number}}, .sport = 0xc000};

	if (f->nfar < 1024)
		f->nfar++;
	send_one(f, &a);
}

/* To the MAC address that the path to the same neighbour has, and in the order in which they were handed over. */
static void check_sent(struct fuzz *f, const struct send *s)
{
	const uint8_t *dmac = s->pkt->data;

	if (ur_gid_is_zero(&s->hop))
		return;
	if (s->host < HOSTS && !(f->host[s->host].claimed & mac_bit(dmac)))
		broke(f, "a packet goes to a MAC address that nobody has named");
	for (unsigned i = 0; i < PATHS && !f->acted; i++) {
		const struct slot *o = &f->slot[i];

		if (o->open && o->neigh && !o->orphan && o->path.wire.ready && !o->moved && o->vlan == s->vlan &&
		    ur_gid_eq(&o->hop, &s->hop) && memcmp(o->path.wire.hdr, dmac, 6) != 0)
			broke(f, "a packet goes to another MAC address than those of the path to the same neighbour");
	}
	for (unsigned i = 0; i < SENDS && !f->acted; i++)
		if (f->send[i].fate == FATE_WAITS && f->send[i].vlan == s->vlan && ur_gid_eq(&f->send[i].hop, &s->hop) &&
		    f->send[i].number < s->number)
			broke(f, "a packet overtakes one that waits for the same neighbour");
}

void send_done(struct fuzz *f, struct ur_pkt *p, bool sent)
{
	struct send *s = &f->send[p->bth.psn % SENDS];

	if (p->kind != UR_PKT_ROCE)
		return; /* one that net has asked for itself */
	if (s->pkt != p || s->fate == FATE_NONE)
		broke(f, "a packet is %s that was sent or dropped before", sent ? "sent" : "dropped");
	if (sent)
		check_sent(f, s);
	f->ndropped += !sent;
	f->nwaiting -= s->fate == FATE_WAITS;
	s->fate = FATE_NONE;
	s->pkt = NULL;
}

/* --- in time --- */

void paths_overdue(struct fuzz *f)
{
	for (unsigned i = 0; i < PATHS; i++)
		if (f->slot[i].open && f->slot[i].until < f->now)
			broke(f, "path %u waits for too long to be told", i);
	for (unsigned i = 0; f->nwaiting && i < SENDS; i++)
		if (f->send[i].fate == FATE_WAITS && f->send[i].until < f->now)
			broke(f, "a packet waits for too long");
}

/* Nobody lies any more, and all hosts answer. */
void paths_at_end(struct fuzz *f)
{
	stage_run(f, HEAL_MAX);
	for (unsigned i = 0; i < PATHS; i++)
		path_retry(f, i);
	stage_run(f, WAIT_MAX + 2 * SLACK);
	if (f->nwaiting)
		broke(f, "%u packets wait for ever", f->nwaiting);
	for (unsigned i = 0; i < PATHS; i++) {
		const struct slot *s = &f->slot[i];
		struct ur_mac m = dmac_of(s);

		if (s->open && !s->orphan && s->neigh && s->host < HOSTS && !is_ours(f, &s->hop) &&
		    (!s->path.wire.ready || !mac_eq(&m, &f->host[s->host].mac)))
			broke(f, "path %u does not get back to its neighbour, who answers", i);
	}
}
