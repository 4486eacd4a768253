/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that the hosts sent: sent again as they were, or changed by field, with their checksums made right or left as they are. */
#include "nic.h"
#include "wire/crc/icrc.h"
#include "wire/ip.h"

static void note_lookup(struct fuzz *f, const uint8_t *b, uint32_t len)
{
	uint32_t mad = UR_ETH_LEN + (f->fab.v6 ? UR_IP6_LEN : UR_IP4_LEN) + UR_UDP_LEN + UR_BTH_LEN + 8;

	if (len >= mad + 256 && b[mad + 1] == 7 && b[mad + 17] == 0x17) /* class CM, SIDR_REQ */
		f->asked = ur_get32(b + mad + 24);
}

void capture(struct fuzz *f, unsigned from, const uint8_t *b, uint32_t len)
{
	struct frame *fr = &f->seen[from][f->nseen[from] % SEEN];

	note_lookup(f, b, len);
	if (len > FRAME_MAX)
		return;
	fr->from = (uint8_t)from;
	fr->len = (uint16_t)len;
	memcpy(fr->b, b, len);
	f->nseen[from]++;
}

bool capture_choose(struct fuzz *f, uint8_t which)
{
	unsigned from = which < 0xe0 ? PEER : VICTIM, n = ur_min_u32(f->nseen[from], SEEN);

	if (!n)
		return false;
	f->out = f->seen[from][(f->nseen[from] - 1 - which % n) % SEEN];
	return true;
}

void capture_replay(struct fuzz *f)
{
	if (capture_choose(f, take(&f->in)))
		inject(f, true);
}

void mend(struct frame *fr, bool lengths)
{
	uint8_t *ip = fr->b + UR_ETH_LEN;
	bool v4 = ur_get16(fr->b + 12) == UR_ETHERTYPE_IP4;
	uint32_t head = v4 ? UR_IP4_LEN : UR_IP6_LEN, room = fr->len - UR_ETH_LEN;

	if (room < head + UR_UDP_LEN + UR_BTH_LEN + UR_ICRC_LEN || (v4 ? ip[0] != 0x45 : ip[0] >> 4 != 6))
		return;
	if (lengths && v4)
		ur_put16(ip + 2, (uint16_t)room);
	else if (lengths)
		ur_put16(ip + 4, (uint16_t)(room - head));
	if (lengths)
		ur_put16(ip + head + 4, (uint16_t)(room - head));
	if (v4)
		ur_ip4_finish_again(ip);
	ur_icrc_end(ur_icrc_begin(ip, v4 ? 4 : 6, room - UR_ICRC_LEN), ip + room - UR_ICRC_LEN);
}

/* Where fields begin, from the Ethernet, IP, UDP or base transport header on. */
struct field {
	uint8_t base, at, len;
};
enum { AT_ETH, AT_IP, AT_UDP, AT_BTH };
static const struct field fields[] = {
	{AT_ETH, 0, 6},  {AT_ETH, 12, 2}, {AT_IP, 0, 1},   {AT_IP, 1, 1},    {AT_IP, 4, 2},    {AT_IP, 6, 2},    {AT_IP, 8, 1},
	{AT_IP, 9, 1},   {AT_IP, 12, 4},  {AT_IP, 16, 4},  {AT_UDP, 0, 2},   {AT_UDP, 2, 2},   {AT_UDP, 4, 2},   {AT_UDP, 6, 2},
	{AT_BTH, 0, 1},  {AT_BTH, 1, 1},  {AT_BTH, 2, 2},  {AT_BTH, 4, 1},   {AT_BTH, 5, 3},   {AT_BTH, 8, 1},   {AT_BTH, 9, 3},
	{AT_BTH, 12, 4}, {AT_BTH, 16, 4}, {AT_BTH, 12, 8}, {AT_BTH, 20, 4},  {AT_BTH, 24, 4},  {AT_BTH, 28, 8},  {AT_BTH, 36, 8},
};

static void change(struct fuzz *f)
{
	const struct field *fd = &fields[take(&f->in) % ur_array_size(fields)];
	bool v4 = ur_get16(f->out.b + 12) == UR_ETHERTYPE_IP4;
	uint32_t l4 = UR_ETH_LEN + (v4 ? UR_IP4_LEN : UR_IP6_LEN);
	const uint32_t base[] = {[AT_ETH] = 0, [AT_IP] = UR_ETH_LEN, [AT_UDP] = l4, [AT_BTH] = l4 + UR_UDP_LEN};
	uint32_t at = base[fd->base] + fd->at;
	uint8_t how = take(&f->in), v = take(&f->in);

	if (at + fd->len > f->out.len)
		return;
	switch (how % 4) {
	case 0: f->out.b[at + fd->len - 1] = (uint8_t)(f->out.b[at + fd->len - 1] + v); break;
	case 1: f->out.b[at + (v >> 3) % fd->len] ^= (uint8_t)(1u << (v & 7)); break;
	case 2: memset(f->out.b + at, v & 1 ? 0xff : 0, fd->len); break;
	default: f->out.b[at] = v;
	}
}

void capture_mutate(struct fuzz *f)
{
	uint8_t how = take(&f->in);

	if (!capture_choose(f, take(&f->in)))
		return;
	for (unsigned n = 1 + (how & 3); n; n--)
		change(f);
	if (how & 4 && how & 8)
		f->out.len = (uint16_t)(f->out.len - ur_min_u32(f->out.len, how >> 4));
	else if (how & 4)
		f->out.len = (uint16_t)ur_min_u32(f->out.len + (how >> 4), FRAME_MAX);
	if (f->out.len < UR_ETH_LEN)
		return;
	if (how & 0x60)
		mend(&f->out, how & 0x40);
	inject(f, false);
}
