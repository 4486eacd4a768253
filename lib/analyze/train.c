/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trains: packets that the kernel or a NIC will cut out of one, recorded before it does. Each has its BTH and its ICRC; of the headers in
 * front there is one set. Where the first one ends shows in a second BTH to the same QP, and the ICRC proves it.
 */
#include "analyze/internal.h"
#include "wire/frame.h"

#define HEADERS (UR_IP6_LEN + UR_UDP_LEN)

/* The IP and UDP headers of packet number `place` with `size` bytes of UDP payload; returns their length. */
static uint32_t put_headers(const struct an_pkt *p, uint32_t place, uint32_t size, uint8_t *to)
{
	const uint32_t ip = p->ip_version == 4 ? UR_IP4_LEN : UR_IP6_LEN;

	memcpy(to, p->l3, ip + UR_UDP_LEN);
	if (p->ip_version == 4) {
		ur_put16(to + 2, (uint16_t)(ip + UR_UDP_LEN + size));
		ur_put16(to + 4, (uint16_t)(ur_get16(p->l3 + 4) + place));
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

/* May a packet of the same train begin here? An answer may ride behind a request, so PSNs say nothing. */
static bool goes_on(const uint8_t *first, const uint8_t *at)
{
	return memcmp(first + 2, at + 2, 2) == 0 && memcmp(first + 5, at + 5, 3) == 0;
}

/* Bytes of UDP payload of each packet of a train, of which the last may have fewer; 0 when it is none. */
static uint32_t train_size(const struct an_pkt *p)
{
	if (p->icrc != AN_ICRC_WRONG || !p->udp)
		return 0;

	for (uint32_t size = UR_BTH_LEN + UR_ICRC_LEN; size + UR_BTH_LEN + UR_ICRC_LEN <= p->udp_len && size <= UR_PKT_ROOM; size += 4)
		if (goes_on(p->udp, p->udp + size) && icrc_fits(p, p->udp, 0, size))
			return size;
	return 0;
}

/* Packet number `place` as a frame of its own; false behind the last. */
static bool cut(struct an_train *t, struct ur_an_frame *out)
{
	const struct an_pkt *p = &t->whole;
	const uint32_t at = t->place * t->size, left = at < p->udp_len ? p->udp_len - at : 0, size = left < t->size ? left : t->size;
	uint32_t n;

	if (size < UR_BTH_LEN + UR_ICRC_LEN)
		return false;
	n = put_headers(p, t->place++, size, t->room);
	memcpy(t->room + n, p->udp + at, size);
	*out = (struct ur_an_frame){
		.number = p->frame, .when = p->when, .link = UR_AN_RAW_IP, .data = t->room, .have = n + size, .len = n + size};
	return true;
}

void an_train_first(struct an_train *t, const struct ur_an_frame *f)
{
	t->read = an_dissect(f, &t->whole);
	t->size = t->read ? train_size(&t->whole) : 0;
	t->place = 0;
}

const struct an_pkt *an_train_next(struct an_train *t)
{
	struct ur_an_frame f;

	if (!t->size)
		return t->place++ ? NULL : &t->whole;
	return cut(t, &f) && an_dissect(&f, &t->one) ? &t->one : NULL;
}
