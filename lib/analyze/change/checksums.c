/* SPDX-License-Identifier: BSD-3-Clause */
/* Lengths and checksums of packets that have been changed. */
#include "analyze/change/rewrite_priv.h"
#include "wire/ip.h"

void an_checksum_ip4(uint8_t *ip, uint32_t len)
{
	uint16_t sum;

	memset(ip + 10, 0, 2);
	sum = ur_csum_fold(ur_csum_add(0, ip, len));
	memcpy(ip + 10, &sum, 2);
}

void an_checksum_udp(const uint8_t *ip, uint8_t version, uint8_t *udp, uint32_t len)
{
	uint16_t out;

	if (!ur_get16(udp + 6))
		return;
	memset(udp + 6, 0, 2);
	out = ur_csum_fold(ur_csum_add(ur_udp_pseudo_sum(ip, version, len), udp, len));
	if (!out)
		out = 0xffff;
	memcpy(udp + 6, &out, 2);
}

void an_checksums(uint8_t *ip, uint8_t version, uint32_t len)
{
	const uint32_t head = version == 4 ? UR_IP4_LEN : UR_IP6_LEN;

	ur_put16(ip + head + 4, (uint16_t)(len - head));
	if (version == 4)
		ur_ip4_finish(ip, len);
	else
		ur_ip6_finish(ip, len - head);
	ur_put_le32(ip + len - UR_ICRC_LEN, an_icrc(ip, version, len - UR_ICRC_LEN));
	an_checksum_udp(ip, version, ip + head, len - head);
}
