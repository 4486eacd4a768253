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

uint32_t an_train_size(const struct an_pkt *p)
{
	for (uint32_t size = UR_BTH_LEN + UR_ICRC_LEN; size + UR_BTH_LEN + UR_ICRC_LEN <= p->udp_len && size <= UR_PKT_ROOM; size += 4)
		if (goes_on(p->udp, p->udp + size) && icrc_fits(p, p->udp, 0, size))
			return size;
	return 0;
}

bool an_train_cut(const struct an_pkt *p, uint32_t place, uint32_t size, uint8_t *room, struct ur_an_frame *out)
{
	const uint32_t at = place * size, left = at < p->udp_len ? p->udp_len - at : 0;
	uint32_t n;

	size = left < size ? left : size;
	if (size < UR_BTH_LEN + UR_ICRC_LEN)
		return false;
	n = put_headers(p, place, size, room);
	memcpy(room + n, p->udp + at, size);
	*out = (struct ur_an_frame){
		.number = p->frame, .when = p->when, .link = UR_AN_RAW_IP, .data = room, .have = n + size, .len = n + size};
	return true;
}
