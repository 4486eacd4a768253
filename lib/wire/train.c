/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/train.h"

#include <string.h>

#include "wire/frame.h"
#include "wire/icrc.h"
#include "wire/ip.h"

#define ID_AT 4 /* in the IPv4 header */

/* What the kernel carries after the UDP header. */
static uint32_t datagram_len(const struct ur_pkt *p)
{
	return ur_pkt_frame_len(p) - p->bth_off;
}

/* The same before ur_frame_finish: pad and ICRC are missing. */
static uint32_t coming_len(const struct ur_pkt *p)
{
	return datagram_len(p) + p->bth.pad + UR_ICRC_LEN;
}

/*
 * Type of service, addresses, ports (of which a NIC that writes its own headers has one for each pair of QPs); not what differs between
 * packets: length, identification, checksum. The hop limit is the path's.
 */
static bool same_way(const struct ur_pkt *a, const struct ur_pkt *b)
{
	const uint8_t *x = a->data + a->l3_off, *y = b->data + b->l3_off;

	if (a->ip_version != b->ip_version || a->l3_off != b->l3_off)
		return false;
	if (ur_likely(a->ip_version == 4))
		return x[1] == y[1] && x[8] == y[8] && memcmp(x + 12, y + 12, 8 + 4) == 0;
	return memcmp(x, y, 4) == 0 && x[7] == y[7] && memcmp(x + 8, y + 8, 32 + 4) == 0;
}

static void set_id(struct ur_pkt *p, uint8_t place)
{
	p->place = place;
	if (p->ip_version == 4)
		ur_put16(p->data + p->l3_off + ID_AT, place);
}

void ur_train_mark(struct ur_pkt **pkts, unsigned n, unsigned max_pkts, uint32_t max_bytes)
{
	uint32_t bytes = 0, size = 0, last = 0;
	unsigned first = 0;

	for (unsigned i = 0; i < n; i++) {
		uint32_t len = coming_len(pkts[i]);

		bool room = i && i - first < max_pkts && bytes + len <= max_bytes;

		if (room && last == size && len <= size && same_way(pkts[first], pkts[i])) {
			set_id(pkts[i], (uint8_t)(i - first));
		} else {
			first = i;
			size = len;
			bytes = 0;
		}
		bytes += len;
		last = len;
	}
}

unsigned ur_train_length(struct ur_pkt *const *pkts, unsigned n, unsigned max_pkts, uint32_t max_bytes)
{
	uint32_t size, bytes, last, len;
	unsigned k = 1;

	if (n == 1 || max_pkts < 2 || pkts[0]->place || pkts[0]->kind != UR_PKT_ROCE)
		return 1;
	size = bytes = last = datagram_len(pkts[0]);
	for (; k < n && k < max_pkts && pkts[k]->place == k; k++) {
		len = datagram_len(pkts[k]);
		bytes += len;
		if (bytes > max_bytes || last != size || len > size || !same_way(pkts[0], pkts[k]))
			break;
		last = len;
	}
	return k;
}

void ur_train_move(struct ur_pkt *p, uint8_t place)
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
