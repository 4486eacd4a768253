/* SPDX-License-Identifier: BSD-3-Clause */
/* The verdict on a recording, in sentences. */
#ifndef UR_PCAP_VERDICT_H
#define UR_PCAP_VERDICT_H

#include "apps/uroce/cli/command.h"
#include "apps/uroce/pcap/read/read.h"

extern const struct ur_option ur_pcap_verdict_options[];
int ur_pcap_verdict(int argc, char **argv);
/* Of what has been read, once the analysis is finished. */
void ur_pcap_print_verdict(const struct ur_pcap_file *f);
/* The sentences of the verdict about one thing, each in a line. */
void ur_pcap_say_file(const struct ur_pcap_file *f, FILE *to);
void ur_pcap_say_connection(const struct ur_pcap_file *f, const struct ur_an_conn *c, uint32_t number, FILE *to);
void ur_pcap_say_datagrams(const struct ur_an_datagrams *d, FILE *to);

#endif
