/* SPDX-License-Identifier: BSD-3-Clause */
/* What is no packet of the connection and belongs to its story, as lines of the picture; and what slows a sender down, with its rates. */
#include "apps/uroce/pcap/ladder/ladder.h"

#include <inttypes.h>
#include <string.h>

#include "apps/uroce/pcap/read/read.h"
#include "wire/frame.h"

#define TEXT UR_LAD_EVENT

static int put_mac(char *to, uint64_t mac)
{
	int n = 0;

	for (unsigned i = 6; i--;)
		n += snprintf(to + n, TEXT - (size_t)n, "%02x%s", (unsigned)(mac >> 8 * i & 0xff), i ? ":" : "");
	return n;
}

static int put_priorities(char *to, uint32_t bits)
{
	int n = 0;

	for (unsigned i = 0; i < 8; i++)
		if (bits >> i & 1)
			n += snprintf(to + n, TEXT - (size_t)n, "%s%u", n ? ", " : "", i);
	return n;
}

static int put_kind(char *to, const struct ur_aside *a)
{
	char who[UR_IP_TEXT], about[UR_IP_TEXT], what[64], mac[24];

	put_mac(mac, a->mac);
	ur_gid_ip(&a->from, who);
	ur_gid_ip(&a->about, about);
	switch (a->kind) {
	case UR_ASIDE_PAUSE: return snprintf(to, TEXT, "%u pause frame%s (802.3x) from %s", a->n, ur_plural(a->n), mac);
	case UR_ASIDE_PFC:
		put_priorities(what, a->priorities);
		return snprintf(to, TEXT, "%u pause frame%s (PFC) of priority %s from %s", a->n, ur_plural(a->n), what, mac);
	case UR_ASIDE_RESUME: return snprintf(to, TEXT, "%u frame%s from %s: the pause is over", a->n, ur_plural(a->n), mac);
	case UR_ASIDE_ICMP:
		return snprintf(to, TEXT, "%u ICMP error%s (type %u, code %u) from %s about packets to %s", a->n, ur_plural(a->n), a->type,
				a->code, who, about);
	case UR_ASIDE_ASKS: return snprintf(to, TEXT, "%s looks for %s (%s)", who, about, a->about.raw[0] ? "neighbour discovery" : "ARP");
	case UR_ASIDE_TELLS: return snprintf(to, TEXT, "%s is at %s", about, mac);
	case UR_ASIDE_NONE: break;
	}
	return 0;
}

static const char *rate(uint64_t bytes, char to[24])
{
	return ur_pcap_amount(bytes * 8 * (UR_NS_PER_S / UR_LADDER_RATE_NS), "bit/s", to);
}

int ur_lad_put_rate(const struct ur_lad *l, bool second, ur_time from, ur_time upto, char *to, size_t room)
{
	uint64_t before, after, unused;
	char a[24], b[24], addr[UR_IP_TEXT];

	if (!ur_ladder_rate(l->rows, l->nrows, second, from, &before, &unused) ||
	    !ur_ladder_rate(l->rows, l->nrows, second, upto, &unused, &after) || !before)
		return 0;
	return snprintf(to, room, "; %s sent %s in the 1 ms before, %s in the 1 ms after", ur_gid_ip(&l->c.half[second].from, addr),
			rate(before, a), rate(after, b));
}

/* Rows up to the packet of that frame. */
static uint32_t rows_upto(const struct ur_lad *l, uint32_t frame)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < l->nrows; i++)
		if (l->rows[i].frame && l->rows[i].frame <= frame)
			n = i + 1;
	return n;
}

bool ur_lad_add_asides(struct ur_lad *l, const struct ur_ladder *ladder)
{
	uint32_t n;
	const struct ur_ladder_aside *all = ur_ladder_asides(ladder, &n);

	for (uint32_t i = 0; i < n; i++) {
		const struct ur_aside *a = &all[i].aside;
		struct ur_lad_event *e = ur_lad_new_event(l);
		int k;

		if (!e)
			return false;
		*e = (struct ur_lad_event){.when = a->when, .after = rows_upto(l, a->frame), .path = true};
		k = put_kind(e->text, a);
		k += snprintf(e->text + k, TEXT - (size_t)k, a->n > 1 ? ", frames %u to %u" : ", frame %u", a->frame, a->last_frame);
		for (unsigned second = 0; second < 2 && (a->kind == UR_ASIDE_PAUSE || a->kind == UR_ASIDE_PFC); second++)
			k += ur_lad_put_rate(l, second, a->when, a->last, e->text + k, TEXT - (size_t)k);
	}
	return true;
}
