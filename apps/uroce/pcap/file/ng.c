/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/uroce/pcap/file/ng.h"

#include <stdlib.h>

uint8_t *ur_ng_out_room(struct ur_ng_out *o, size_t n)
{
	uint8_t *more = n > o->size ? realloc(o->room, n) : o->room;

	if (!more)
		return NULL;
	o->size = n > o->size ? n : o->size;
	return o->room = more;
}

void ur_ng_out_section(const struct ur_ng_out *o)
{
	uint8_t block[UR_NG_SECTION_BYTES];

	fwrite(block, 1, ur_ng_put_section(block), o->to);
}

void ur_ng_out_interface(const struct ur_ng_out *o, uint16_t link, uint32_t snap, const char *name)
{
	uint8_t block[UR_NG_INTERFACE_BYTES];

	fwrite(block, 1, ur_ng_put_interface(block, link, snap, name), o->to);
}

bool ur_ng_out_begin(struct ur_ng_out *o, struct ur_ng_block *b, const struct ur_ng_frame *f, size_t options)
{
	uint8_t *room = ur_ng_out_room(o, UR_NG_FRAME_BYTES + (size_t)ur_ng_padded(f->have) + options);

	if (!room)
		return false;
	*b = ur_ng_begin_frame(room, f);
	ur_ng_put(b, f->data, f->have);
	ur_ng_pad(b);
	return true;
}

void ur_ng_out_end(const struct ur_ng_out *o, struct ur_ng_block *b)
{
	fwrite(b->at, 1, ur_ng_end(b), o->to);
}
