/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/train.h"

#include <string.h>

#include "wire/crc/icrc.h"
#include "wire/frame.h"
#include "wire/ip.h"

#define ID_AT 4 /* in the IPv4 header */

static void put_id(uint8_t *l3, uint8_t ip_version, uint16_t id)
{
	if (ip_version == 4)
		ur_put16(l3 + ID_AT, id);
}

static void set_id(struct ur_pkt *p, uint16_t place)
{
	p->place = place;
	put_id(p->data + p->l3_off, p->ip_version, place);
}

/* Of a packet of a train, in front of its `len` bytes from the BTH on. Those of the view before it, `from`, nothing has written over. */
static uint8_t *put_headers(const struct ur_pkt *t, const uint8_t *from, uint8_t *bth, uint32_t len, uint16_t id)
{
	uint8_t *to = memmove(bth - t->bth_off, from, t->bth_off);

	put_id(to + t->l3_off, t->ip_version, id);
	ur_udp_put_lengths(to + t->l3_off, t->ip_version, len + UR_UDP_LEN);
	return to;
}

bool ur_train_view(const struct ur_pkt *t, struct ur_train_cursor *c, struct ur_pkt *view)
{
	const uint16_t place = c->place;
	uint32_t len;
	uint8_t *bth = ur_train_next(t, c, &len);

	if (!bth)
		return false;
	if (!view->data) {
		ur_pkt_clear(view);
		view->data = t->data;
		view->when = t->when;
		ur_pkt_copy_fields(view, t);
	}
	view->data = t->flags & UR_PKT_BARE ? bth : put_headers(t, view->data, bth, len, place);
	view->len = view->room = t->bth_off + len;
	view->flags = t->flags & UR_PKT_BARE ? t->flags : UR_PKT_CUT;
	view->place = place;
	return true;
}

/* The train's headers with `len` of its bytes, `from`, behind them; what the headers say of themselves is the caller's to set. */
static void copy(const struct ur_pkt *t, const uint8_t *from, uint32_t len, struct ur_pkt *to)
{
	ur_pkt_copy_fields(to, t);
	to->len = t->bth_off + len;
	memcpy(to->data, t->data, t->bth_off);
	memcpy(to->data + t->bth_off, from, len);
	if (len >= UR_BTH_LEN)
		ur_bth_get(to->data + to->bth_off, &to->bth);
}

bool ur_train_cut(const struct ur_pkt *t, struct ur_train_cursor *c, struct ur_pkt *to)
{
	const uint16_t place = c->place;
	uint32_t len;
	const uint8_t *from = ur_train_next(t, c, &len);

	if (!from)
		return false;
	copy(t, from, len, to);
	set_id(to, place);
	ur_udp_put_lengths(to->data + to->l3_off, to->ip_version, len + UR_UDP_LEN);
	return true;
}

/* Packets that began with that place begin with 0. */
static void renumber(struct ur_pkt *p, uint16_t place)
{
	struct ur_train_cursor at = {0};
	uint32_t len, icrc;
	uint8_t *bth;

	p->place = 0;
	for (uint16_t i = 0; p->ip_version == 4 && (bth = ur_train_next(p, &at, &len)); i++) {
		uint8_t *end = bth + len - UR_ICRC_LEN;

		memcpy(&icrc, end, sizeof(icrc));
		icrc ^= ur_icrc_change((uint16_t)((place + i) ^ i), ID_AT, UR_IP4_LEN + UR_UDP_LEN + len - UR_ICRC_LEN);
		memcpy(end, &icrc, sizeof(icrc));
	}
}

void ur_train_part(const struct ur_pkt *t, struct ur_train_cursor at, unsigned n, bool anew, struct ur_pkt *to)
{
	const uint32_t len = ur_min_u32(n * t->stride, ur_train_left(t, &at));

	copy(t, t->data + t->bth_off + at.at, len, to);
	to->vlan = t->vlan;
	to->when = t->when;
	to->place = at.place;
	to->stride = n > 1 ? t->stride : 0;
	if (anew)
		renumber(to, at.place);
	if (t->flags & UR_PKT_BARE)
		return;
	if (!anew && n == 1)
		to->flags = UR_PKT_CUT;
	put_id(to->data + to->l3_off, to->ip_version, to->place);
	ur_udp_put_lengths(to->data + to->l3_off, to->ip_version, ur_min_u32(t->stride, len) + UR_UDP_LEN);
}

bool ur_train_append(struct ur_pkt *t, struct ur_pkt *p, unsigned max_pkts, uint32_t max_bytes)
{
	const uint32_t len = ur_pkt_frame_len(p) - p->bth_off, all = t->len ? t->len - t->bth_off : 0;
	const uint32_t stride = t->stride ? t->stride : all ? all : len, from = t->len ? p->bth_off : 0;
	const unsigned place = t->len ? ur_train_count(t) : 0;

	if (place >= max_pkts || all + len > max_bytes || t->len + len + p->bth_off > t->room || len > stride || all % stride)
		return false;
	ur_train_move(p, (uint16_t)place);
	if (!place)
		ur_pkt_copy_fields(t, p);
	t->len = (uint32_t)(ur_pkt_gather(p, from, t->data + t->len) - t->data);
	t->flags |= UR_PKT_COMPLETE;
	t->stride = place ? stride : 0;
	return true;
}

void ur_train_move(struct ur_pkt *p, uint16_t place)
{
	uint8_t *end = p->tail_len ? p->tail + p->tail_len : p->data + p->len;
	uint16_t bits = p->place ^ place;
	uint32_t icrc;

	set_id(p, place);
	if (p->ip_version != 4 || !bits)
		return;
	ur_ip4_finish_again(p->data + p->l3_off);
	memcpy(&icrc, end - UR_ICRC_LEN, sizeof(icrc));
	icrc ^= ur_icrc_change(bits, ID_AT, ur_pkt_frame_len(p) - p->l3_off - UR_ICRC_LEN);
	memcpy(end - UR_ICRC_LEN, &icrc, sizeof(icrc));
}
