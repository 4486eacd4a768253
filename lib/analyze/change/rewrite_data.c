/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replaces payload. Scrambled bytes are a key stream whose nonce is a digest of the bytes that they replace: without the key one can see
 * that two payloads were equal, and nothing else, and a packet that was sent twice stays the same.
 */
#include "analyze/change/rewrite_priv.h"
#include "base/hash.h"

void rewrite_data(const struct ur_rewrite *w, uint8_t *data, size_t len)
{
	uint8_t block[UR_CHACHA_BLOCK];
	uint64_t digest;
	uint32_t at[4];

	if (w->c.payload == UR_PAYLOAD_ZERO)
		memset(data, 0, len);
	if (w->c.payload != UR_PAYLOAD_SCRAMBLE)
		return;
	digest = ur_hash_bytes(UR_HASH_BEGIN ^ w->key, data, len);
	at[1] = (uint32_t)digest;
	at[2] = (uint32_t)(digest >> 32);
	at[3] = (uint32_t)len;
	for (size_t done = 0; done < len; done += sizeof(block)) {
		at[0] = (uint32_t)(done / sizeof(block));
		ur_chacha20_block(w->data_key, at, block);
		memcpy(data + done, block, len - done < sizeof(block) ? len - done : sizeof(block));
	}
}
