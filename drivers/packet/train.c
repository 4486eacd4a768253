/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which frames are trains: those with one set of headers, before the packets one after another from the BTH to the ICRC. Headers that a
 * train cannot have make a frame one packet, however long; the NIC judges those.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/psn.h"
#include "drivers/packet/internal.h"
#include "wire/train.h"

/* Is there a BTH for the same QP as the first one's, k packets later? */
static bool follows(const uint8_t *bth, const uint8_t *first, uint32_t k)
{
	return memcmp(bth + UR_BTH_PKEY, first + UR_BTH_PKEY, 2) == 0 && ur_get24(bth + UR_BTH_QPN) == ur_get24(first + UR_BTH_QPN) &&
	       ur_get24(bth + UR_BTH_PSN) == ((ur_get24(first + UR_BTH_PSN) + k) & UR_PSN_MASK);
}

/* The length of the packets of a train that begins with the BTH of its first packet, when the kernel does not say it; 0 when unknown. */
static uint32_t guess(const uint8_t *bth, uint32_t len, uint32_t most)
{
	for (uint32_t size = UR_BTH_LEN + UR_ICRC_LEN; size <= most && size + UR_BTH_LEN + UR_ICRC_LEN <= len; size += 4) {
		uint32_t k = 1, at = size;

		while (at + UR_BTH_LEN + UR_ICRC_LEN <= len && follows(bth + at, bth, k)) {
			at += size;
			k++;
		}
		if (at >= len)
			return size;
	}
	return 0;
}

/* More packets than any kernel merges, or such as can be none, are not worth to be taken apart. */
static bool makes_sense(const struct ur_pkt *t)
{
	return t->stride >= UR_BTH_LEN + UR_ICRC_LEN && t->len - t->bth_off > t->stride && ur_train_count(t) <= UR_PACKET_TRAIN_MAX;
}

void ur_packet_see_train(struct ur_packet *s, struct ur_pkt *p, uint32_t size)
{
	p->stride = size ? size : p->len;
	if (ur_frame_parse(p, &s->not_trains) && p->kind == UR_PKT_ROCE) {
		if (!size)
			p->stride = guess(p->data + p->bth_off, p->len - p->bth_off, s->port.mtu - (p->bth_off - p->l3_off));
		if (makes_sense(p))
			return;
	}
	p->stride = 0;
}
