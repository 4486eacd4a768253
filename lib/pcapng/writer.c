/* SPDX-License-Identifier: BSD-3-Clause */
#include "pcapng/writer.h"

#include "pcapng/reader.h"

#define NAME_MAX_BYTES 255
#define NANOSECONDS 9

size_t ur_ng_put_section(void *to)
{
	struct ur_ng_block b = ur_ng_begin(to, UR_NG_SECTION);

	ur_ng_put32(&b, UR_NG_ORDER);
	ur_ng_put32(&b, 1);          /* version 1.0 */
	ur_ng_put32(&b, UINT32_MAX); /* of no known length */
	ur_ng_put32(&b, UINT32_MAX);
	ur_ng_put_option(&b, UR_NG_PROGRAM, "uroce", 5);
	return ur_ng_end(&b);
}

size_t ur_ng_put_interface(void *to, uint16_t link, uint32_t snap, const char *name)
{
	struct ur_ng_block b = ur_ng_begin(to, UR_NG_INTERFACE);
	const uint8_t resolution = NANOSECONDS;

	ur_ng_put32(&b, link);
	ur_ng_put32(&b, snap);
	if (name)
		ur_ng_put_option(&b, UR_NG_IF_NAME, name, (uint16_t)ur_min_u32((uint32_t)strlen(name), NAME_MAX_BYTES));
	ur_ng_put_option(&b, UR_NG_IF_TSRESOL, &resolution, 1);
	return ur_ng_end(&b);
}

struct ur_ng_block ur_ng_copy_frame(void *to, const uint8_t *block, const struct ur_ng_frame *f)
{
	const uint32_t size = ur_ng_get32(block + 4, f->swapped);
	struct ur_ng_options o = {.at = block + f->options, .n = size - 4 - f->options};
	struct ur_ng_block b = {.at = to, .end = to, .swapped = f->swapped};

	while (ur_ng_next_option(&o, f->swapped))
		;
	ur_ng_put(&b, block, (size_t)(o.at - block));
	return b;
}
