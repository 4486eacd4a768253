/* SPDX-License-Identifier: BSD-3-Clause */
/* The pieces of a stream in pcap or pcapng format (pcapng/reader.h), and its frames. */
#ifndef UR_PCAP_READER_H
#define UR_PCAP_READER_H

#include <stdio.h>

#include "analyze/analyze.h"
#include "pcapng/reader.h"

struct ur_pcap_reader {
	FILE *in; /* stays with who opened it */
	struct ur_ng_reader *pieces;
	uint8_t *piece; /* the newest, `n` bytes; good until the next */
	size_t n, room;
	uint16_t link; /* type of link of the newest frame, as tcpdump.org numbers them */
};

/* False: out of memory. */
bool ur_pcap_reader_open(struct ur_pcap_reader *r, FILE *in);
/* The next piece; of a capture the first is UR_NG_OTHER. UR_NG_NONE: the end, or a reason in `*why`. */
enum ur_ng_piece ur_pcap_reader_piece(struct ur_pcap_reader *r, struct ur_ng_frame *f, const char **why);
/* The next frame, with its link, time and bytes, which are good until the next. False at the end, or with a reason in `*why`. */
bool ur_pcap_reader_next(struct ur_pcap_reader *r, struct ur_an_frame *f, const char **why);
void ur_pcap_reader_close(struct ur_pcap_reader *r);

#endif
