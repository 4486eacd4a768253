/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes pcapng (draft-ietf-opsawg-pcapng): one section in the byte order of this machine, with times in nanoseconds. */
#ifndef UR_PCAP_NG_H
#define UR_PCAP_NG_H

#include <stdio.h>

#include "analyze/analyze.h"

void ur_ng_put_section(FILE *out);
/* They are counted from 0. `link` is the type as tcpdump.org numbers them; `snap` 0: frames may have any length. */
void ur_ng_put_interface(FILE *out, uint16_t link, uint32_t snap, const char *name);
/* Its bytes, lengths and time; a `comment` of no characters is none. */
void ur_ng_put_frame(FILE *out, uint32_t interface, const struct ur_an_frame *f, const char *comment);

#endif
