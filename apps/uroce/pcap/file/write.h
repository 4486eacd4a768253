/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames into a pcap file with times in nanoseconds ("-": standard output). */
#ifndef UR_PCAP_WRITE_H
#define UR_PCAP_WRITE_H

#include "analyze/analyze.h"

struct ur_pcap_out;
/* NULL after a sentence on stderr; also when it is the file `in`, which would be gone before it is read. */
struct ur_pcap_out *ur_pcap_create(const char *name, const char *in, enum ur_an_link link);
void ur_pcap_write(struct ur_pcap_out *o, const struct ur_an_frame *f);
/* False, after a sentence on stderr, when not all could be written. */
bool ur_pcap_finish(struct ur_pcap_out *o);
/* Leaves no file. */
void ur_pcap_give_up(struct ur_pcap_out *o);

#endif
