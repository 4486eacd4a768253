/* SPDX-License-Identifier: BSD-3-Clause */
#include "pcap_ng.h"

#include <string.h>

#include "pcap_format.h"

#define NAME_MOST 4096
#define NANOSECONDS 9

static void put_words(FILE *out, const uint32_t *words, unsigned n)
{
	fwrite(words, 4, n, out);
}

static void put_bytes(FILE *out, const void *data, uint32_t n)
{
	fwrite(data, 1, n, out);
	fwrite("\0\0\0", 1, ur_ng_padded(n) - n, out);
}

static void put_option(FILE *out, enum ur_ng_option code, const void *value, uint32_t n)
{
	put_words(out, (const uint32_t[]){(uint32_t)code | n << 16}, 1);
	put_bytes(out, value, n);
}

void ur_ng_put_section(FILE *out)
{
	put_words(out, (const uint32_t[]){UR_NG_SECTION, 28, UR_NG_ORDER, 1, UINT32_MAX, UINT32_MAX, 28}, 7); /* of no known length */
}

void ur_ng_put_interface(FILE *out, uint16_t link, uint32_t snap, const char *name)
{
	const uint32_t n = (uint32_t)strnlen(name, NAME_MOST), len = 20 + 4 + ur_ng_padded(n) + 8 + 4;
	const uint8_t unit = NANOSECONDS;

	put_words(out, (const uint32_t[]){UR_NG_INTERFACE, len, link, snap}, 4);
	put_option(out, UR_NG_IF_NAME, name, n);
	put_option(out, UR_NG_IF_TSRESOL, &unit, 1);
	put_words(out, (const uint32_t[]){0, len}, 2);
}

void ur_ng_put_frame(FILE *out, uint32_t interface, const struct ur_an_frame *f, const char *comment)
{
	const uint32_t n = (uint32_t)strlen(comment), options = n ? 4 + ur_ng_padded(n) + 4 : 0;
	const uint32_t len = 32 + ur_ng_padded(f->have) + options;

	put_words(out, (const uint32_t[]){UR_NG_PACKET, len, interface, (uint32_t)(f->when >> 32), (uint32_t)f->when, f->have, f->len}, 7);
	put_bytes(out, f->data, f->have);
	if (n) {
		put_option(out, UR_NG_COMMENT, comment, n);
		put_words(out, (const uint32_t[]){0}, 1);
	}
	put_words(out, &len, 1);
}
