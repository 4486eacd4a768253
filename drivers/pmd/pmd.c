/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "drivers/pmd/pmd.h"

#define MTU_FULL (UR_PKT_ROOM - UR_ETH_OVERHEAD)

/*
 * Devices that are not listed are treated like hardware: one contiguous buffer from DPDK's memory per frame.
 * memif's zero-copy mode reads our memory from another process: code that asks for COPIES checks that argument, too.
 */
static const struct ur_pmd pmds[] = {
	{.name = "net_af_packet", .flags = UR_PMD_COPIES | UR_PMD_KERNEL_IF},
	{.name = "net_memif",
	 .flags = UR_PMD_COPIES | UR_PMD_ALL_FRAMES | UR_PMD_SERVICE | UR_PMD_MEETS,
	 .mtu = MTU_FULL,
	 .args = "bsize=4608",
	 .limit = "bsize"},
	{.name = "net_tap", .flags = UR_PMD_COPIES | UR_PMD_SERVICE | UR_PMD_SIGNALS},
	{.name = "net_pcap", .flags = UR_PMD_COPIES | UR_PMD_ALL_FRAMES, .mtu = MTU_FULL},
	{.name = "net_ring", .flags = UR_PMD_COPIES | UR_PMD_ALL_FRAMES, .mtu = MTU_FULL},
	{.name = "net_null", .flags = UR_PMD_COPIES | UR_PMD_ALL_FRAMES, .mtu = MTU_FULL},
	{.name = "net_e1000_em", .flags = UR_PMD_PAGES | UR_PMD_WAKES},
	{.name = "net_e1000_igb", .flags = UR_PMD_PAGES},
	{.name = "net_vmxnet3", .flags = UR_PMD_PAGES},
	{.name = "net_af_xdp", .flags = UR_PMD_SHARED_MEM},
	{.name = "net_virtio_user", .flags = UR_PMD_SERVICE | UR_PMD_SHARED_MEM, .mtu = MTU_FULL},
	{.name = "net_vhost", .flags = UR_PMD_ALL_FRAMES | UR_PMD_SERVICE | UR_PMD_SHARED_MEM, .mtu = MTU_FULL},
	/* eth_vhost0 and virtio_user0 are the old names of the same devices */
	{.name = "eth_vhost", .flags = UR_PMD_ALL_FRAMES | UR_PMD_SERVICE | UR_PMD_SHARED_MEM, .mtu = MTU_FULL},
	{.name = "virtio_user", .flags = UR_PMD_SERVICE | UR_PMD_SHARED_MEM, .mtu = MTU_FULL},
};

const struct ur_pmd *ur_pmd_find(const char *driver_or_device)
{
	for (unsigned i = 0; i < ur_array_size(pmds); i++)
		if (strncmp(driver_or_device, pmds[i].name, strlen(pmds[i].name)) == 0)
			return &pmds[i];
	return NULL;
}

/* Where the value of `key` starts in "key=value,key=value", or NULL. */
static const char *arg_value(const char *args, const char *key)
{
	size_t n = strlen(key);

	for (const char *p = args; p && *p; p = strchr(p, ',')) {
		p += *p == ',';
		if (strncmp(p, key, n) == 0 && p[n] == '=')
			return p + n + 1;
	}
	return NULL;
}

bool ur_pmd_arg_is(const char *args, const char *key, const char *value)
{
	const char *v = arg_value(args, key);
	size_t n = strlen(value);

	return v && strncmp(v, value, n) == 0 && (v[n] == ',' || v[n] == 0);
}

unsigned long ur_pmd_arg_num(const char *args, const char *key, unsigned long none)
{
	const char *v = arg_value(args, key);

	return v ? strtoul(v, NULL, 0) : none;
}

bool ur_pmd_arg_text(const char *args, const char *key, char *out, size_t len)
{
	const char *v = arg_value(args, key);

	if (v)
		snprintf(out, len, "%.*s", (int)strcspn(v, ","), v);
	return v != NULL;
}

int ur_pmd_args(const struct ur_pmd *pmd, const char *given, char *out, size_t outlen)
{
	size_t n = (size_t)snprintf(out, outlen, "%s", given);
	const char *p = pmd ? pmd->args : NULL;

	for (size_t len; p && *p && n < outlen; p += len + (p[len] == ',')) {
		size_t key = strcspn(p, "=");
		char name[32];

		len = strcspn(p, ",");
		snprintf(name, sizeof(name), "%.*s", (int)key, p);
		if (!arg_value(out, name))
			n += (size_t)snprintf(out + n, outlen - n, "%s%.*s", n ? "," : "", (int)len, p);
	}
	return n < outlen ? 0 : EINVAL;
}

uint16_t ur_pmd_mtu(const struct ur_pmd *pmd, const char *args, uint16_t mtu)
{
	uint32_t limit = pmd && pmd->limit ? (uint32_t)ur_pmd_arg_num(args, pmd->limit, UR_PKT_ROOM) : UR_PKT_ROOM;

	limit = ur_min_u32(limit, UR_PKT_ROOM);
	return (uint16_t)ur_min_u32(mtu, limit < UR_ETH_OVERHEAD ? 0 : limit - UR_ETH_OVERHEAD);
}

uint16_t ur_pmd_vdev_mtu(const char *vdev, uint16_t mtu)
{
	const struct ur_pmd *pmd = ur_pmd_find(vdev);

	if (pmd && pmd->mtu && !mtu)
		mtu = pmd->mtu;
	return ur_pmd_mtu(pmd, strchr(vdev, ','), mtu);
}

bool ur_pmd_is_client(const struct ur_pmd *pmd, const char *args)
{
	return pmd && (pmd->flags & UR_PMD_MEETS) && !ur_pmd_arg_is(args, "role", "server") && !ur_pmd_arg_is(args, "role", "master");
}

bool ur_pmd_shares_memory(const char *vdev)
{
	const struct ur_pmd *pmd = ur_pmd_find(vdev);

	return !pmd || (pmd->flags & UR_PMD_SHARED_MEM) || ur_pmd_arg_is(strchr(vdev, ','), "zero-copy", "yes");
}

void ur_pmd_unlink_stale(const char *args)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	const char *path = arg_value(args, "socket");
	size_t n = path ? strcspn(path, ",") : 0;
	int s;

	if (!n || n >= sizeof(sun.sun_path) || !ur_pmd_arg_is(args, "socket-abstract", "no"))
		return;
	if (!ur_pmd_arg_is(args, "role", "server") && !ur_pmd_arg_is(args, "role", "master"))
		return;
	memcpy(sun.sun_path, path, n);
	s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (s < 0)
		return;
	if (connect(s, (struct sockaddr *)&sun, sizeof(sun)) && errno == ECONNREFUSED)
		unlink(sun.sun_path);
	close(s);
}
