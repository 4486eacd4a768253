/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The frames of a stream in pcap or pcapng format, of any byte order and resolution of time. In pcapng each interface has a type of link
 * and a clock of its own.
 */
#ifndef UR_PCAP_READER_H
#define UR_PCAP_READER_H

#include <stdio.h>

#include "analyze/analyze.h"

struct ur_pcap_reader;

/* Takes `in` with it, unless it is the standard input. NULL after `*why` has been set: it is no capture, or memory is short. */
struct ur_pcap_reader *ur_pcap_reader_open(FILE *in, const char **why);
/* The next frame, with its link, time and bytes, which are good until the next. False at the end, or with a reason in `*why`. */
bool ur_pcap_reader_next(struct ur_pcap_reader *r, struct ur_an_frame *f, const char **why);
/* The type of link of the newest frame, as tcpdump.org numbers them. */
uint16_t ur_pcap_reader_link(const struct ur_pcap_reader *r);
void ur_pcap_reader_close(struct ur_pcap_reader *r);

#endif
