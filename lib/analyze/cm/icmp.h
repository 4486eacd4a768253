/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP errors about RoCEv2 packets: nobody receives them, or they are too long for a hop. */
#ifndef UR_AN_ICMP_H
#define UR_AN_ICMP_H

#include "analyze/state/state.h"

/* This host has sent a packet. */
void an_speaks(struct ur_analysis *a, const struct ur_gid *host);
void an_speakers_fini(struct ur_analysis *a);
/* A packet without RoCEv2, as an_dissect left it. */
void an_icmp(struct ur_analysis *a, const struct an_pkt *p);
/* Is it an error about a RoCEv2 packet, and between which hosts did that go? */
bool an_icmp_quotes(const struct an_pkt *p, struct ur_gid *src, struct ur_gid *dst, uint8_t *type, uint8_t *code);

#endif
