/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trains: packets that the kernel or a NIC will cut out of one, recorded before it does. Each has its BTH and its ICRC; of the headers in
 * front there is one set. Where the first one ends shows in a second BTH to the same QP, and the ICRC proves it; when the recorder has cut
 * it off, the length of the frame and the headers of the first packet do, if these say how long that is. For the others hidden.c has more
 * means.
 */
#include "analyze/frame/recorded_train.h"
#include "wire/crc/icrc.h"
#include "wire/frame.h"
#include "wire/msg/cm_msg.h"

#define HEADERS (UR_IP6_LEN + UR_UDP_LEN)

/* The IP and UDP headers of packet number `place` with `size` bytes of UDP payload; returns their length. */
static uint32_t put_headers(const struct an_pkt *p, uint32_t place, uint32_t size, uint8_t *to)
{
	const uint32_t ip = p->ip_version == 4 ? UR_IP4_LEN : UR_IP6_LEN;

	memcpy(to, p->ip, ip + UR_UDP_LEN);
	if (p->ip_version == 4) {
		ur_put16(to + 2, (uint16_t)(ip + UR_UDP_LEN + size));
		ur_put16(to + 4, (uint16_t)(ur_get16(p->ip + 4) + place));
	} else {
		ur_put16(to + 4, (uint16_t)(UR_UDP_LEN + size));
	}
	ur_put16(to + ip + 4, (uint16_t)(UR_UDP_LEN + size));
	return ip + UR_UDP_LEN;
}

static bool icrc_fits(const struct an_pkt *p, const uint8_t *bth, uint32_t place, uint32_t size)
{
	uint8_t head[HEADERS + UR_BTH_LEN], want[UR_ICRC_LEN];
	uint32_t n = put_headers(p, place, size, head), crc;

	memcpy(head + n, bth, UR_BTH_LEN);
	crc = ur_icrc_begin(head, p->ip_version, n + UR_BTH_LEN);
	ur_icrc_end(ur_icrc_add(crc, bth + UR_BTH_LEN, size - UR_BTH_LEN - UR_ICRC_LEN), want);
	return memcmp(want, bth + size - UR_ICRC_LEN, UR_ICRC_LEN) == 0;
}

/* May a packet of the same train begin here? An answer may follow a request in it, so PSNs say nothing. */
static bool goes_on(const uint8_t *first, const uint8_t *at)
{
	return memcmp(first + 2, at + 2, 2) == 0 && memcmp(first + 5, at + 5, 3) == 0;
}

/* Bytes of UDP payload of each packet of a train, of which the last may have fewer; 0 when the `have` that are here do not show it. */
static uint32_t shown_size(const struct an_pkt *p, uint32_t have)
{
	for (uint32_t size = AN_LEAST_LEN; size + UR_BTH_LEN <= have && size <= UR_PKT_ROOM; size += 4)
		if (goes_on(p->bth_at, p->bth_at + size) && icrc_fits(p, p->bth_at, 0, size))
			return size;
	return 0;
}

/* What the headers say of the length of their packet; 0 when that is nothing. */
static uint32_t size_by_headers(const struct an_pkt *p)
{
	const uint32_t flags = p->op->flags, ends = AN_LEAST_LEN + p->op->ext_len;
	struct ur_reth h;

	if (!(flags & UR_OPF_PAYLOAD))
		return ends;
	if (p->bth.dqpn == 1)
		return ends + UR_MAD_LEN;
	if (flags & UR_OPF_ATOMIC_WRITE || !(flags & UR_OPF_RETH) || !(flags & UR_OPF_LAST))
		return 0;
	ur_reth_get(p->ext + p->op->off_reth, &h);
	return h.len <= 4096 && p->bth.pad == (-h.len & 3) ? ends + h.len + p->bth.pad : 0;
}

static uint32_t cut_size(const struct an_train *t)
{
	const struct an_pkt *p = &t->whole;
	uint32_t size = shown_size(p, t->have);

	size = size ? size : size_by_headers(p);
	if (!size || size + AN_LEAST_LEN > t->all || (t->all % size && t->all % size < AN_LEAST_LEN))
		return 0;
	return size + UR_BTH_LEN > t->have || goes_on(p->bth_at, p->bth_at + size) ? size : 0;
}

static uint32_t train_size(const struct an_train *t)
{
	const struct an_pkt *p = &t->whole;

	if (p->icrc == AN_ICRC_WRONG && p->udp)
		return t->all >= 2 * AN_LEAST_LEN ? shown_size(p, t->all - UR_ICRC_LEN) : 0;
	if (!p->cut || !p->ext || p->l4 != p->ip + (p->ip_version == 4 ? UR_IP4_LEN : UR_IP6_LEN))
		return 0;
	return cut_size(t);
}

/* Is the header of packet number `place` here? */
static bool is_here(const struct an_train *t, uint32_t place)
{
	const uint8_t *first = t->whole.bth_at;
	const uint64_t at = (uint64_t)place * t->size, ends = at + UR_BTH_LEN;

	if (t->have == t->all)
		return at < t->all;
	return ends <= t->have && ends + ur_opcode(first[at])->ext_len <= t->have && goes_on(first, first + at);
}

/* Packet number `place` as a frame of its own; false after the last. */
static bool cut(struct an_train *t, struct ur_an_frame *out)
{
	const struct an_pkt *p = &t->whole;
	const uint32_t at = t->place * t->size, left = at < t->all ? t->all - at : 0, size = left < t->size ? left : t->size;
	uint32_t n, have;

	if (size < AN_LEAST_LEN || !is_here(t, t->place))
		return false;
	have = t->have - at < size ? t->have - at : size;
	n = put_headers(p, t->place++, size, t->room);
	memcpy(t->room + n, p->bth_at + at, have);
	*out = (struct ur_an_frame){
		.number = p->frame, .when = p->when, .link = UR_AN_RAW_IP, .data = t->room, .have = n + have, .len = n + size};
	return true;
}

/* The packet that was given last takes the rest of the frame upon itself. */
static void end_cut(struct an_train *t)
{
	struct an_pkt *p = &t->one;
	const uint32_t n = (t->all + t->size - 1) / t->size, at = (t->place - 1) * t->size;

	if (t->place >= n)
		return;
	p->behind = p->most = n - t->place;
	p->rest = t->all - t->place * t->size;
	p->tail = t->all - (n - 1) * t->size;
	p->ip_len = put_headers(&t->whole, t->place - 1, t->all - at, t->room) + t->all - at;
	p->cut = true;
	p->icrc = AN_ICRC_UNKNOWN;
	p->why = NULL;
	p->l3 = p->udp = NULL;
	t->place = n;
}

void an_train_first(struct an_train *t, const struct ur_an_frame *f)
{
	const struct an_pkt *p = &t->whole;

	t->read = an_dissect(f, &t->whole);
	t->size = t->place = 0;
	if (!t->read || (p->icrc != AN_ICRC_WRONG && !p->cut) || !p->bth_at || p->bad_opcode)
		return;
	t->all = p->ip_len - (uint32_t)(p->bth_at - p->ip);
	t->have = p->ip_have - (uint32_t)(p->bth_at - p->ip);
	t->size = train_size(t);
}

const struct an_pkt *an_train_next(struct an_train *t)
{
	struct ur_an_frame f;

	if (!t->size)
		return t->place++ ? NULL : &t->whole;
	if (!cut(t, &f) || !an_dissect(&f, &t->one))
		return NULL;
	if (t->have < t->all && !is_here(t, t->place))
		end_cut(t);
	return &t->one;
}
