/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/uroce/pcap/read/figures.h"

uint64_t ur_pcap_sum(const uint64_t *v, unsigned n)
{
	uint64_t sum = 0;

	while (n--)
		sum += v[n];
	return sum;
}

uint64_t ur_pcap_goodput(const struct ur_an_half *h)
{
	ur_time end = h->last_answer > h->last ? h->last_answer : h->last;

	return end > h->first ? (uint64_t)((double)h->bytes * 8e9 / (double)(end - h->first)) : 0;
}

json_t *ur_pcap_half_json(const struct ur_an_half *h)
{
	json_t *o = json_object();

#define MEMBER(name, width, value) json_object_set_new(o, #name, ur_json_uint(value));
	UR_PCAP_FIGURES(MEMBER)
#undef MEMBER
	return o;
}
