/* SPDX-License-Identifier: BSD-3-Clause */
/* Hops on the way to a peer that carry less than our link, for the path MTU of connections to come. */
#include "net/internal.h"
#include "wire/path.h"

#define MEMORY (600 * UR_NS_PER_S)

static bool is_known(const struct ur_net_hop *h, const struct ur_gid *dst, ur_time now)
{
	return now < h->until && ur_gid_eq(&h->dst, dst);
}

bool ur_net_narrow(struct ur_net *net, const struct ur_gid *dst, uint16_t mtu, ur_time now)
{
	struct ur_net_hop *place = &net->narrow[0];
	bool news;

	for (unsigned i = 0; i < UR_NET_NARROW; i++) {
		struct ur_net_hop *h = &net->narrow[i];

		if (is_known(h, dst, now)) {
			place = h;
			break;
		}
		if (h->until < place->until)
			place = h;
	}
	if (is_known(place, dst, now) && place->mtu <= mtu)
		return false;
	news = !is_known(place, dst, now) || ur_max_path_mtu(mtu) < ur_max_path_mtu(place->mtu);
	*place = (struct ur_net_hop){.dst = *dst, .mtu = mtu, .until = now + MEMORY};
	return news;
}

uint16_t ur_net_narrow_mtu(const struct ur_net *net, const struct ur_gid *dst, ur_time now)
{
	for (unsigned i = 0; i < UR_NET_NARROW; i++)
		if (is_known(&net->narrow[i], dst, now))
			return net->narrow[i].mtu;
	return 0;
}
