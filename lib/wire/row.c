/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/row.h"

#include "wire/crc/icrc.h"
#include "wire/crc/icrc_run.h"
#include "wire/frame.h"
#include "wire/ip.h"

#define ID_AT 4 /* in the IPv4 header */
#define SUM_AT 10

uint32_t ur_row_icrc(const struct ur_row *r, struct ur_row_headers *h)
{
	const struct ur_pkt *like = r->like;
	uint32_t state;

	if (!r->apart) {
		state = ur_icrc_begin_of(like, r->bth, UR_BTH_LEN, r->stride + UR_UDP_LEN, r->place);
	} else {
		memcpy(h->bytes, like->data, like->bth_off);
		memcpy(h->bytes + like->bth_off, r->bth, UR_BTH_LEN);
		ur_udp_put_lengths(h->bytes + like->l3_off, like->ip_version, r->stride + UR_UDP_LEN);
		state = ur_icrc_begin(h->bytes + like->l3_off, like->ip_version, like->bth_off - like->l3_off + UR_BTH_LEN);
	}
	return r->bth[UR_BTH_ACKREQ] & 0x80 ? state ^ UR_ICRC_ACKREQ : state;
}

/* Some devices count the IPv4 identification on, from packet to packet. */
bool ur_row_differs(const struct ur_row *r, const struct ur_row_headers *h, const struct ur_pkt *p, uint32_t *change)
{
	const unsigned len = r->like->bth_off, l3 = r->like->l3_off;
	const uint8_t *want = h->bytes, *have = p->data;
	const unsigned after_sum = l3 + SUM_AT + 2;

	if (r->like->ip_version != 4 || memcmp(want, have, l3 + ID_AT) != 0 || memcmp(want + l3 + ID_AT + 2, have + l3 + ID_AT + 2, 4) != 0)
		return false;
	if (memcmp(want + after_sum, have + after_sum, len - 2 - after_sum) != 0 || ur_csum_fold(ur_ip4_sum(have + l3, false)) != 0)
		return false;
	*change = ur_icrc_change(ur_get16(want + l3 + ID_AT) ^ ur_get16(have + l3 + ID_AT), ID_AT, len + UR_BTH_LEN - l3);
	return true;
}
