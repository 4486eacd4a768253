/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of pcapng (pcapng/writer.h) into a stream. */
#ifndef UR_PCAP_NG_H
#define UR_PCAP_NG_H

#include <stdio.h>

#include "pcapng/writer.h"

struct ur_ng_out {
	FILE *to;
	uint8_t *room; /* for a block, `size` bytes; freed by who uses it */
	size_t size;
};

/* Room for a block of `n` bytes. NULL: out of memory. */
uint8_t *ur_ng_out_room(struct ur_ng_out *o, size_t n);
void ur_ng_out_section(const struct ur_ng_out *o);
/* As ur_ng_put_interface. */
void ur_ng_out_interface(const struct ur_ng_out *o, uint16_t link, uint32_t snap, const char *name);
/* Begins the block of a frame, which has its bytes then, with room for so many bytes of options. False: out of memory. */
bool ur_ng_out_begin(struct ur_ng_out *o, struct ur_ng_block *b, const struct ur_ng_frame *f, size_t options);
void ur_ng_out_end(const struct ur_ng_out *o, struct ur_ng_block *b);

#endif
