/* SPDX-License-Identifier: BSD-3-Clause */
/* From the settings to a device: an interface shared with the kernel, or a port of our own with configured addresses. */
#include "host/device/device.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "drivers/os/fail.h"
#include "drivers/pmd/pmd.h"
#include "host/limits.h"
#include "wire/frame.h"

#define VLAN_MAX 4094

static uint64_t eui64(const struct ur_mac *m)
{
	return (uint64_t)(m->b[0] ^ 2) << 56 | (uint64_t)m->b[1] << 48 | (uint64_t)m->b[2] << 40 | 0xfffeull << 24 |
	       (uint64_t)m->b[3] << 16 | (uint64_t)m->b[4] << 8 | m->b[5];
}

/* --- the address of a PCI NIC --- */

/* The long form of the address at the start of "03:00.0,key=value". False when it is none. */
static bool pci_of_text(const char *text, char pci[UR_PCI_ADDR_TEXT])
{
	char copy[UR_CONFIG_STR];

	snprintf(copy, sizeof(copy), "%.*s", (int)strcspn(text, ","), text);
	return ur_pci_addr(copy, pci);
}

/* The PCI address after -a or --allow in the EAL arguments, in each way of writing them; false when there is none. */
static bool pci_of_eal(const char *args, char pci[UR_PCI_ADDR_TEXT])
{
	char copy[UR_CONFIG_STR], *save, *t;
	bool next = false;

	strcpy(copy, args);
	for (t = strtok_r(copy, " ", &save); t; t = strtok_r(NULL, " ", &save)) {
		const char *value = next ? t : !strncmp(t, "--allow=", 8) ? t + 8 : !strncmp(t, "-a", 2) && t[2] ? t + 2 : NULL;

		if (value)
			return pci_of_text(value, pci);
		next = !strcmp(t, "-a") || !strcmp(t, "--allow");
	}
	return false;
}

bool ur_device_pci(const struct ur_config *c, char pci[UR_PCI_ADDR_TEXT])
{
	return c->pci[0] ? pci_of_text(c->pci, pci) : pci_of_eal(c->eal, pci);
}

/* --- addresses from the settings --- */

static bool parse_addr(const char *text, struct ur_gid *gid, unsigned *bits)
{
	struct in_addr v4;

	if (inet_pton(AF_INET, text, &v4) == 1) {
		*gid = ur_gid_from_v4(v4.s_addr);
		*bits = 32;
		return true;
	}
	*bits = 128;
	return inet_pton(AF_INET6, text, gid->raw) == 1;
}

static bool parse_number(const char *text, unsigned least, unsigned most, unsigned *number)
{
	unsigned long n;
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	n = strtoul(text, &end, 10);
	*number = (unsigned)n;
	return !*end && n >= least && n <= most;
}

/* What stands after the sign, with which `item` ends from now on; NULL without it. */
static char *cut_at(char *item, char sign)
{
	char *at = strchr(item, sign);

	if (!at)
		return NULL;
	*at = '\0';
	return at + 1;
}

int ur_device_parse_ip(const char *text, struct ur_net_addr *a, char *err, size_t errlen)
{
	char item[UR_CONFIG_STR];
	const char *len_text, *vlan_text;
	unsigned bits, len, vlan = 0;

	memset(a, 0, sizeof(*a));
	snprintf(item, sizeof(item), "%s", text);
	vlan_text = cut_at(item, '@');
	len_text = cut_at(item, '/');
	if (!parse_addr(item, &a->gid, &bits) || ur_gid_is_mcast(&a->gid) || ur_gid_is_zero(&a->gid)) {
		snprintf(err, errlen, "'%s' is not an address: give --ip ADDRESS/LENGTH, such as 10.0.0.1/24", item);
		return EINVAL;
	}
	len = bits;
	if (len_text && !parse_number(len_text, 0, bits, &len)) {
		snprintf(err, errlen, "'%s' is not a prefix length of address %s: give a number from 0 to %u", len_text, item, bits);
		return EINVAL;
	}
	if (vlan_text && !parse_number(vlan_text, 1, VLAN_MAX, &vlan)) {
		snprintf(err, errlen, "'%s' is not a VLAN for address %s: give a number from 1 to %d", vlan_text, item, VLAN_MAX);
		return EINVAL;
	}
	a->prefix_len = (uint8_t)len;
	a->vlan = (uint16_t)vlan;
	return 0;
}

int ur_device_parse_gw(const char *text, struct ur_net_route *r, char *err, size_t errlen)
{
	unsigned bits;

	memset(r, 0, sizeof(*r));
	if (!parse_addr(text, &r->gateway, &bits) || ur_gid_is_mcast(&r->gateway)) {
		snprintf(err, errlen, "'%s' is not the address of a gateway: give --gw ADDRESS, such as 10.0.0.254", text);
		return EINVAL;
	}
	if (bits == 32)
		r->dst = ur_gid_from_v4(0);
	return 0;
}

/* Where they go, and where the sentence goes that says what is wrong with one. */
struct adding {
	struct ur_net *net;
	char *err;
	size_t errlen;
};

static int add_owned_addr(struct adding *to, const char *item)
{
	struct ur_net_addr a;
	int err = ur_device_parse_ip(item, &a, to->err, to->errlen);

	if (err)
		return err;
	err = ur_net_addr_add(to->net, &a);
	if (err)
		snprintf(to->err, to->errlen, "address %s cannot be used: %s", item, err == EEXIST ? "it is given twice" : strerror(err));
	return err;
}

static int add_owned_gateway(struct adding *to, const char *item)
{
	struct ur_net_route r;
	int err = ur_device_parse_gw(item, &r, to->err, to->errlen);

	if (err)
		return err;
	if (ur_net_route_add(to->net, &r)) {
		snprintf(to->err, to->errlen, "gateway %s cannot be used: it may be given twice", item);
		return EINVAL;
	}
	return 0;
}

static int for_each_item(struct adding *to, const char *list, int (*fn)(struct adding *to, const char *item))
{
	char copy[UR_CONFIG_STR], *save, *item;
	int err = 0;

	strcpy(copy, list);
	for (item = strtok_r(copy, ", ", &save); item && !err; item = strtok_r(NULL, ", ", &save))
		err = fn(to, item);
	return err;
}

/* --- which device --- */

/* What it is called: the word that names it, or a NIC's address. */
static void name_owned(const struct ur_config *c, struct ur_device_info *info)
{
	char pci[UR_PCI_ADDR_TEXT];
	const char *words = c->vdev[0] ? c->vdev : c->eal;

	if (!c->vdev[0] && ur_device_pci(c, pci))
		words = pci;
	snprintf(info->ifname, sizeof(info->ifname), "%.*s", (int)strcspn(words, ", "), words);
}

static int find_owned(const struct ur_config *c, struct ur_device *d, char *err, size_t errlen)
{
	struct ur_device_info *info = &d->info;
	char pci[UR_PCI_ADDR_TEXT];
	uint64_t h;

	if (!c->ip[0]) {
		snprintf(err, errlen, "an owned port has no address: give one with --ip ADDRESS/LENGTH");
		return EINVAL;
	}
	info->owned = true;
	d->is_nic = !c->vdev[0] && ur_device_pci(c, pci);
	name_owned(c, info);
	/* The port's MAC address is known once it is open; until then one of our own, the same in each run. */
	h = ur_hash_bytes(UR_HASH_BEGIN, c->ip, strlen(c->ip));
	memcpy(info->mac.b, &h, 6);
	info->mac.b[0] = 0x02;
	if (c->vdev[0])
		info->mtu = ur_pmd_vdev_mtu(c->vdev, (uint16_t)c->mtu);
	if (!info->mtu)
		info->mtu = (uint16_t)(c->mtu ? c->mtu : 1500);
	info->link_up = true;
	return 0;
}

/* Item `index` of the list in `dev`, "" where there is none. */
static void dev_item(const struct ur_config *c, unsigned index, char item[UR_CONFIG_STR])
{
	const char *at = c->dev;

	for (; index && *at; index--)
		at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',');
	at += strspn(at, " ");
	snprintf(item, UR_CONFIG_STR, "%.*s", (int)strcspn(at, ", "), at);
}

unsigned ur_device_count(const struct ur_config *c)
{
	unsigned n = 1;

	for (const char *at = strchr(c->dev, ','); at; at = strchr(at + 1, ','))
		n++;
	return n;
}

/* Where an item adds no interface, those that it means are there already. */
static int add_interfaces(const struct ur_config *c, const char *item, struct ur_hostif_names *to, char *err, size_t errlen)
{
	struct ur_hostif_names fit = {.n = 1};
	unsigned before = to->n;
	int r = 0;

	if (!*item) {
		snprintf(err, errlen, "--dev %s has an empty item: name interfaces, separated by commas", c->dev);
		return EINVAL;
	}
	if (ur_hostif_is_pattern(item))
		r = ur_hostif_match(item, &fit, err, errlen);
	else if ((size_t)snprintf(fit.name[0], IF_NAMESIZE, "%s", item) >= IF_NAMESIZE)
		r = ur_port_fail_no_interface(err, errlen, item);
	if (r)
		return r;
	for (unsigned i = 0; i < ur_min_u32(fit.n, UR_DEVICES); i++)
		ur_hostif_names_add(to, fit.name[i]);
	if (to->n == before && before <= UR_DEVICES) {
		snprintf(err, errlen, "--dev %s names interface '%s' twice: leave one of them out", c->dev, fit.name[0]);
		return EINVAL;
	}
	to->n = ur_max_u32(to->n, fit.n);
	return 0;
}

int ur_device_expand(struct ur_config *c, char *err, size_t errlen)
{
	const unsigned items = *c->dev ? ur_device_count(c) : 0;
	struct ur_hostif_names all = {.n = 0};
	char item[UR_CONFIG_STR];
	size_t at = 0;
	int r = 0;

	for (unsigned i = 0; i < items && !r; i++) {
		dev_item(c, i, item);
		r = add_interfaces(c, item, &all, err, errlen);
	}
	if (r)
		return r;
	if (all.n > UR_DEVICES) {
		snprintf(err, errlen, "--dev %s names more than %d interfaces: a process can have %d devices at most", c->dev, UR_DEVICES,
			 UR_DEVICES);
		return EINVAL;
	}
	for (unsigned i = 0; i < all.n; i++)
		at += (size_t)snprintf(c->dev + at, sizeof(c->dev) - at, "%s%s", i ? "," : "", all.name[i]);
	return 0;
}

/* Interfaces before that have the same MAC address, as VLANs of one have. */
static unsigned earlier_twins(const struct ur_config *c, unsigned index, const struct ur_hostif *h)
{
	char item[UR_CONFIG_STR], err[256];
	struct ur_hostif other;
	unsigned n = 0;

	for (unsigned i = 0; i < index; i++) {
		dev_item(c, i, item);
		n += !ur_hostif_find(item, &other, err, sizeof(err)) && !memcmp(&other.mac, &h->mac, sizeof(h->mac));
	}
	return n;
}

static int find_shared(const struct ur_config *c, unsigned index, struct ur_device *d, char *err, size_t errlen)
{
	char item[UR_CONFIG_STR];
	int r;

	dev_item(c, index, item);
	r = ur_hostif_find(item, &d->hostif, err, errlen);
	if (r)
		return r;
	d->twins = earlier_twins(c, index, &d->hostif);
	snprintf(d->info.ifname, sizeof(d->info.ifname), "%s", d->hostif.name);
	d->info.mac = d->hostif.mac;
	d->info.mtu = d->hostif.mtu;
	d->info.link_up = d->hostif.up;
	d->info.speed_mbps = d->hostif.speed_mbps;
	return 0;
}

static uint64_t key_of(const struct ur_config *c, const struct ur_device_info *info)
{
	uint64_t h = ur_hash_bytes(UR_HASH_BEGIN, info->ifname, strlen(info->ifname));

	if (info->owned)
		return ur_hash_bytes(ur_hash_bytes(h, c->vdev, strlen(c->vdev)), c->ip, strlen(c->ip));
	return ur_hash_bytes(h, info->mac.b, 6);
}

int ur_device_find(const struct ur_config *c, unsigned index, struct ur_device *d, char *err, size_t errlen)
{
	int r;

	memset(d, 0, sizeof(*d));
	if (c->dev[0] && (c->vdev[0] || c->pci[0] || c->ip[0])) {
		snprintf(err, errlen, "an interface shared with the kernel (--dev %s) has its own addresses: omit --vdev, --pci and --ip",
			 c->dev);
		return EINVAL;
	}
	if (c->vdev[0] && c->pci[0]) {
		snprintf(err, errlen, "--vdev and --pci name two devices: omit one of them");
		return EINVAL;
	}
	if (c->vdev[0] || c->pci[0] || (c->eal[0] && !c->dev[0]))
		r = find_owned(c, d, err, errlen);
	else
		r = find_shared(c, index, d, err, errlen);
	if (r)
		return r;
	snprintf(d->info.name, sizeof(d->info.name), "uroce%u", index);
	/* Programs tell devices by their GUIDs. */
	d->info.guid = eui64(&d->info.mac) ^ (uint64_t)d->twins << 24;
	d->key = key_of(c, &d->info);
	return 0;
}

bool ur_device_has_address(const struct ur_net *net)
{
	for (unsigned i = 0; i < UR_NET_GIDS; i++)
		if (ur_net_gid(net, i))
			return true;
	return false;
}

bool ur_device_obstacle(const struct ur_device_info *info, const struct ur_hostif *h, const struct ur_net *net, char *text, size_t len)
{
	const char *dev = h->name;

	if (info->owned)
		return false;
	if (!h->enabled)
		snprintf(text, len, "interface '%s' is down: nothing can be sent or received until 'ip link set dev %s up'", dev, dev);
	else if (!h->up)
		snprintf(text, len, "interface '%s' is up but has no carrier: check the other end of its cable", dev);
	else if (!ur_device_has_address(net))
		snprintf(text, len, "interface '%s' has no IP address, and so no GID: 'ip address add ADDRESS/LENGTH dev %s' adds one", dev,
			 dev);
	else
		return false;
	return true;
}

int ur_device_addresses(const struct ur_config *c, const struct ur_device *d, struct ur_net *net, char *err, size_t errlen)
{
	struct adding to = {net, err, errlen};
	int r;

	if (d->info.owned) {
		r = for_each_item(&to, c->ip, add_owned_addr);
		return r ? r : for_each_item(&to, c->gw, add_owned_gateway);
	}
	r = ur_hostif_sync(&d->hostif, net);
	if (r)
		snprintf(err, errlen, "cannot read the addresses of interface '%s': %s", d->hostif.name, ur_limit_reason(r));
	return r;
}
