/* SPDX-License-Identifier: BSD-3-Clause */
/* The figures of one direction of a connection, or of datagrams: one table, for text, CSV and JSON. */
#ifndef UR_PCAP_FIGURES_H
#define UR_PCAP_FIGURES_H

#include "analyze/analyze.h"
#include "apps/uroce/cli/json.h"

static inline uint64_t ur_pcap_mean(const struct ur_an_times *t)
{
	return t->n ? t->sum / t->n : 0;
}

uint64_t ur_pcap_sum(const uint64_t *v, unsigned n);
/* Bits each second of payload, from the first request to the last answer. */
uint64_t ur_pcap_goodput(const struct ur_an_half *h);

/* Times in ns, goodput in bit/s. Lost: request packets between sender and recorder, and after it. */
#define UR_PCAP_FIGURES(X)                                                                                                                 \
	X(messages, 8, h->messages)                                                                                                        \
	X(sends, 8, h->sends)                                                                                                              \
	X(writes, 8, h->writes)                                                                                                            \
	X(reads, 8, h->reads)                                                                                                              \
	X(atomics, 8, h->atomics)                                                                                                          \
	X(bytes, 12, h->bytes)                                                                                                             \
	X(goodput, 12, ur_pcap_goodput(h))                                                                                                 \
	X(packets, 9, h->packets)                                                                                                          \
	X(answers, 9, h->answers)                                                                                                          \
	X(lost_before, 11, h->lost[UR_AN_BEFORE])                                                                                          \
	X(lost_behind, 11, h->lost[UR_AN_BEHIND])                                                                                          \
	X(again, 8, ur_pcap_sum(h->repeated, UR_AN_CAUSES))                                                                                \
	X(again_nak, 9, h->repeated[UR_AN_SEQ_NAK])                                                                                        \
	X(again_sack, 10, h->repeated[UR_AN_SACK])                                                                                         \
	X(again_rnr, 9, h->repeated[UR_AN_RNR])                                                                                            \
	X(again_timeout, 13, h->repeated[UR_AN_TIMEOUT])                                                                                   \
	X(again_response, 14, h->repeated[UR_AN_IMPLIED])                                                                                  \
	X(again_needless, 14, h->repeated[UR_AN_SPURIOUS])                                                                                 \
	X(naks, 6, h->naks_seq)                                                                                                            \
	X(rnrs, 6, h->naks_rnr)                                                                                                            \
	X(reaction, 10, ur_pcap_mean(&h->nak_reaction))                                                                                    \
	X(rtt_min, 10, h->rtt.min)                                                                                                         \
	X(rtt_mean, 10, ur_pcap_mean(&h->rtt))                                                                                             \
	X(rtt_max, 10, h->rtt.max)                                                                                                         \
	X(depth, 6, h->depth)                                                                                                              \
	X(depth_psns, 10, h->depth_psns)                                                                                                   \
	X(marked, 8, h->marked)                                                                                                            \
	X(cnps, 8, h->cnps)

/* All of them. */
json_t *ur_pcap_half_json(const struct ur_an_half *h);

#endif
