/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What stands in files of the formats pcap and pcapng, of any byte order and resolution of time. In pcapng each interface has a type of
 * link and a clock of its own. A file is a row of pieces: blocks, or in pcap a header and records. The caller brings them into memory; what
 * they say of lengths, interfaces and times is hostile.
 */
#ifndef UR_NG_READER_H
#define UR_NG_READER_H

#include "pcapng/format.h"

#define UR_NG_BLOCK_MAX (16u << 20) /* bytes of a block or frame; libpcap takes no more either */
#define UR_NG_INTERFACES_MAX 4096   /* of a section */

struct ur_ng_reader;

/* To be freed with free(3). NULL: out of memory. */
struct ur_ng_reader *ur_ng_reader_create(void);
/*
 * `n` bytes of the next piece are at `at`. Returns how many it has: n when it is whole; more when so many are needed to see more, or all;
 * never more than UR_NG_BLOCK_MAX and 24. 0: it is impossible, and `*why` says what is.
 */
size_t ur_ng_piece_bytes(const struct ur_ng_reader *r, const uint8_t *at, size_t n, const char **why);
/* The file ends with `n` bytes of the next piece: what it lacks. NULL: nothing. */
const char *ur_ng_cut_off(const struct ur_ng_reader *r, size_t n);

enum ur_ng_piece { UR_NG_NONE, UR_NG_OTHER, UR_NG_FRAME };
/* Takes a whole piece. UR_NG_FRAME: `f` is set, with bytes within the piece. UR_NG_NONE: it is impossible, and `*why` says what is. */
enum ur_ng_piece ur_ng_take(struct ur_ng_reader *r, const uint8_t *at, struct ur_ng_frame *f, const char **why);
/* Whether its pieces are blocks. After the first. */
bool ur_ng_has_blocks(const struct ur_ng_reader *r);

struct ur_ng_options {     /* of a block */
	const uint8_t *at; /* what has not been looked at, `n` bytes */
	uint32_t n;
	const uint8_t *value; /* of the newest option, `len` bytes */
	uint16_t code, len;
};

/* False when there is no other, or it is longer than what is left. */
bool ur_ng_next_option(struct ur_ng_options *o, bool swapped);

#endif
