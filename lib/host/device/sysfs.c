/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of sysfs, from the device's state. One table; a GID brings files of its own. */
#include "host/device/sysfs.h"

#include <inttypes.h>
#include <stdio.h>

#include "wire/frame.h"

#define TEXT_MAX 96

static void node_guid(const struct ur_device_info *d, char *text)
{
	snprintf(text, TEXT_MAX, "%04x:%04x:%04x:%04x", (unsigned)(d->guid >> 48), (unsigned)(d->guid >> 32 & 0xffff),
		 (unsigned)(d->guid >> 16 & 0xffff), (unsigned)(d->guid & 0xffff));
}

static void node_desc(const struct ur_device_info *d, char *text)
{
	snprintf(text, TEXT_MAX, "uroce on %s", d->ifname);
}

static void state(const struct ur_device_info *d, char *text)
{
	snprintf(text, TEXT_MAX, "%s", d->link_up ? "4: ACTIVE" : "1: DOWN");
}

static void phys_state(const struct ur_device_info *d, char *text)
{
	snprintf(text, TEXT_MAX, "%s", d->link_up ? "5: LinkUp" : "3: Disabled");
}

/* The kernel adds lanes and their speed in InfiniBand's terms; programs read the number. */
static void rate(const struct ur_device_info *d, char *text)
{
	snprintf(text, TEXT_MAX, "%g Gb/sec", d->speed_mbps / 1000.0);
}

static const struct {
	const char *path, *text;
	void (*make)(const struct ur_device_info *d, char *text); /* where `text` is NULL */
} files[] = {
	{"node_type", "1: CA", NULL},
	{"node_guid", NULL, node_guid},
	{"sys_image_guid", NULL, node_guid},
	{"node_desc", NULL, node_desc},
	{"fw_ver", UR_VERSION, NULL},
	{"ports/1/state", NULL, state},
	{"ports/1/phys_state", NULL, phys_state},
	{"ports/1/rate", NULL, rate},
	{"ports/1/link_layer", "Ethernet", NULL},
	{"ports/1/lid", "0x0", NULL},
	{"ports/1/lid_mask_count", "0", NULL},
	{"ports/1/sm_lid", "0x0", NULL},
	{"ports/1/sm_sl", "0", NULL},
	{"ports/1/pkeys/0", "0xffff", NULL},
};

/* Entries of the GID table that hold nothing have no files; the kernel's cannot be read. */
static int each_of_gid(const struct ur_device_info *d, unsigned index, const struct ur_gid *gid, ur_sysfs_fn *fn, void *arg)
{
	char path[64], text[TEXT_MAX];
	int rc;

	snprintf(path, sizeof(path), "ports/1/gids/%u", index);
	ur_gid_text(gid, text);
	rc = fn(arg, path, text);
	if (rc)
		return rc;
	snprintf(path, sizeof(path), "ports/1/gid_attrs/types/%u", index);
	rc = fn(arg, path, "RoCE v2");
	if (rc || d->owned)
		return rc;
	snprintf(path, sizeof(path), "ports/1/gid_attrs/ndevs/%u", index);
	return fn(arg, path, d->ifname);
}

int ur_sysfs_each(const struct ur_device_info *d, const struct ur_net *net, ur_sysfs_fn *fn, void *arg)
{
	char text[TEXT_MAX];
	int rc = 0;

	for (unsigned i = 0; !rc && i < ur_array_size(files); i++) {
		if (files[i].make)
			files[i].make(d, text);
		rc = fn(arg, files[i].path, files[i].text ? files[i].text : text);
	}
	for (unsigned i = 0; !rc && i < UR_NET_GIDS; i++) {
		const struct ur_net_addr *a = ur_net_gid(net, i);

		if (a)
			rc = each_of_gid(d, i, &a->gid, fn, arg);
	}
	return rc;
}
