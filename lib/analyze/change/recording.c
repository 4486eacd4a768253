/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames in memory, to be changed and rearranged. */
#include <stdlib.h>

#include "analyze/change/mutate.h"
#include "analyze/change/rewrite_priv.h"
#include "wire/frame.h"

static bool make_room(struct ur_recording *r)
{
	uint32_t room = r->room ? 2 * r->room : 64;
	struct ur_rec_frame *more;

	if (r->n < r->room)
		return true;
	if (room < r->room)
		return false;
	more = realloc(r->f, (size_t)room * sizeof(*more));
	if (!more)
		return false;
	r->f = more;
	r->room = room;
	return true;
}

static uint8_t *duplicate(const uint8_t *data, uint32_t n)
{
	uint8_t *copy = malloc(n ? n : 1);

	if (copy && n)
		memcpy(copy, data, n);
	return copy;
}

bool ur_recording_add(struct ur_recording *r, const struct ur_an_frame *f)
{
	struct ur_rec_frame new = {.have = f->have, .len = f->len, .when = f->when};

	if (!make_room(r))
		return false;
	new.data = duplicate(f->data, f->have);
	if (!new.data)
		return false;
	r->link = f->link;
	r->f[r->n++] = new;
	return true;
}

struct ur_an_frame ur_recording_frame(const struct ur_recording *r, uint32_t i)
{
	const struct ur_rec_frame *f = &r->f[i];

	return (struct ur_an_frame){.number = i + 1, .when = f->when, .link = r->link, .data = f->data, .have = f->have, .len = f->len};
}

struct ur_recording ur_recording_copy(const struct ur_recording *r)
{
	struct ur_recording c = {.name = r->name, .link = r->link};

	for (uint32_t i = 0; i < r->n; i++) {
		struct ur_an_frame f = ur_recording_frame(r, i);

		if (ur_recording_add(&c, &f))
			continue;
		ur_recording_free(&c);
		c = (struct ur_recording){.name = r->name, .link = r->link};
		break;
	}
	return c;
}

void ur_recording_free(struct ur_recording *r)
{
	for (uint32_t i = 0; i < r->n; i++)
		free(r->f[i].data);
	free(r->f);
}

bool ur_recording_pkt(const struct ur_recording *r, uint32_t i, struct an_pkt *p)
{
	struct ur_an_frame f = ur_recording_frame(r, i);

	return an_dissect(&f, p) && p->ext && p->icrc == AN_ICRC_OK;
}

uint8_t *ur_recording_bth(const struct ur_recording *r, uint32_t i)
{
	struct ur_an_frame f = ur_recording_frame(r, i);
	struct an_pkt p;

	an_dissect(&f, &p);
	return p.bth_at ? r->f[i].data + (p.bth_at - f.data) : NULL;
}

void ur_recording_fix_checksums(const struct ur_recording *r, uint32_t i, uint32_t less)
{
	struct ur_an_frame f = ur_recording_frame(r, i);
	uint32_t head, len;
	struct an_pkt p;

	an_dissect(&f, &p);
	if (!p.l4)
		return;
	head = (uint32_t)(p.ip - f.data);
	len = (uint32_t)(p.l4 - p.ip) + ur_get16(p.l4 + 4);
	if (len < less + UR_IP6_LEN + UR_UDP_LEN || len > f.have - head)
		return;
	r->f[i].have = r->f[i].len = head + len - less;
	an_checksums(r->f[i].data + head, p.ip_version, len - less);
}

void ur_recording_remove(struct ur_recording *r, uint32_t i)
{
	free(r->f[i].data);
	memmove(&r->f[i], &r->f[i + 1], (r->n - i - 1) * sizeof(*r->f));
	r->n--;
}

bool ur_recording_repeat(struct ur_recording *r, uint32_t i)
{
	uint8_t *data = duplicate(r->f[i].data, r->f[i].have);

	if (!data || !make_room(r)) {
		free(data);
		return false;
	}
	memmove(&r->f[i + 1], &r->f[i], (r->n - i) * sizeof(*r->f));
	r->n++;
	r->f[i + 1].data = data;
	return true;
}

void ur_recording_move(struct ur_recording *r, uint32_t i, uint32_t to)
{
	struct ur_rec_frame moved = r->f[i];

	for (; i < to; i++) {
		ur_time when = r->f[i].when;

		r->f[i] = r->f[i + 1];
		r->f[i].when = when;
	}
	moved.when = r->f[to].when;
	r->f[to] = moved;
	if (to)
		r->f[to].when = r->f[to - 1].when > moved.when ? r->f[to - 1].when : moved.when;
}
