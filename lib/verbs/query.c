/* SPDX-License-Identifier: BSD-3-Clause */
/* What a device can do: ibv_query_device(3), ibv_query_port(3), ibv_query_gid(3), ibv_query_pkey(3). None of it starts anything. */
#include <endian.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>

#include "uroce/uroce.h"
#include "verbs/internal.h"
#include "verbs/newer.h"

#define PORT 1
#define DEFAULT_PKEY 0xffff
#define CLOCK_KHZ 1000000 /* timestamps are nanoseconds */

static int set_errno(int err)
{
	errno = err;
	return -1;
}

/* --- the device --- */

static void fill_device(struct uv_context *c, struct ibv_device_attr *a)
{
	*a = (struct ibv_device_attr){
		.node_guid = htobe64(c->device->guid),
		.sys_image_guid = htobe64(c->device->guid),
		.max_mr_size = UINT64_MAX,
		.page_size_cap = 0xfffff000,
		.vendor_id = 0xffffff, /* no IEEE vendor: as rdma_rxe says it */
		.max_qp = UR_MAX_QP,
		.max_qp_wr = UR_MAX_QP_WR,
		.device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |
				    IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
				    IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_XRC,
		.max_sge = UR_MAX_SGE,
		.max_sge_rd = UR_MAX_SGE,
		.max_cq = UR_MAX_CQ,
		.max_cqe = UR_MAX_CQE,
		.max_mr = UR_MAX_MR,
		.max_mw = UR_MAX_MW,
		.max_pd = UR_MAX_PD,
		.max_ah = UR_MAX_AH,
		.max_mcast_grp = UR_MAX_MCAST_GROUPS,
		.max_mcast_qp_attach = UR_MAX_MCAST_QPS,
		.max_total_mcast_qp_attach = UR_MAX_MCAST_GROUPS * UR_MAX_MCAST_QPS,
		.max_qp_rd_atom = UR_MAX_RD_ATOMIC,
		.max_res_rd_atom = UR_MAX_RD_ATOMIC * UR_MAX_QP,
		.max_qp_init_rd_atom = UR_MAX_RD_ATOMIC,
		.atomic_cap = IBV_ATOMIC_HCA, /* as other devices say; more in pci_atomic_caps */
		.max_srq = UR_MAX_SRQ,
		.max_srq_wr = UR_MAX_SRQ_WR,
		.max_srq_sge = UR_MAX_SGE,
		.max_pkeys = 1,
		.local_ca_ack_delay = 15, /* 134 ms: a host that is busy elsewhere */
		.phys_port_cnt = 1,
	};
	snprintf(a->fw_ver, sizeof(a->fw_ver), "%s", uroce_version());
}

#undef ibv_query_device
int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	fill_device(uv_context(ctx), attr);
	return 0;
}

/* What we have of annex A19, as the kernel's <rdma/ib_user_verbs.h> numbers it; <infiniband/verbs.h> from rdma-core 45 on. */
#define CAP_FLUSH_GLOBAL (1ull << 38)
#define CAP_FLUSH_PERSISTENT (1ull << 39)
#define CAP_ATOMIC_WRITE (1ull << 40)

/* `len` is the size of the struct that the program was built with. */
int uv_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *in, struct ibv_device_attr_ex *attr, size_t len)
{
	struct ibv_device_attr_ex all = {
		.completion_timestamp_mask = UINT64_MAX,
		.hca_core_clock = CLOCK_KHZ,
		.cq_mod_caps = {.max_cq_count = UINT16_MAX, .max_cq_period = UINT16_MAX},
		/* The CPU executes them, on memory that others may share. IBV_ATOMIC_GLOB would say so, too, and UCX takes it for none. */
		.pci_atomic_caps = {.fetch_add = IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP,
				    .compare_swap = IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP},
		.phys_port_cnt_ex = 1,
		.max_dm_size = UV_MAX_DM,
	};

	if (in && in->comp_mask)
		return EINVAL;
	if (len < sizeof(all.orig_attr))
		return EINVAL;
	fill_device(uv_context(ctx), &all.orig_attr);
	all.device_cap_flags_ex = all.orig_attr.device_cap_flags | CAP_FLUSH_GLOBAL | CAP_ATOMIC_WRITE;
	if (UR_FLUSH_PERSISTS)
		all.device_cap_flags_ex |= CAP_FLUSH_PERSISTENT;
	uv_odp_caps(&all);
	memset(attr, 0, len);
	memcpy(attr, &all, len < sizeof(all) ? len : sizeof(all));
	return 0;
}

/* --- the port --- */

enum { WIDTH_1X = 1, WIDTH_4X = 2 };
enum { SPEED_SDR = 1, SPEED_DDR = 2, SPEED_FDR10 = 8, SPEED_EDR = 32, SPEED_HDR = 64, SPEED_NDR = 128 };
enum { PHYS_DISABLED = 3, PHYS_LINK_UP = 5 };

/* Ethernet speeds in InfiniBand's terms, as the kernel's RoCE drivers translate them. */
static const struct {
	uint32_t mbps;
	uint8_t width, speed;
} speeds[] = {
	{1000, WIDTH_1X, SPEED_SDR},   {10000, WIDTH_1X, SPEED_FDR10}, {20000, WIDTH_4X, SPEED_DDR},
	{25000, WIDTH_1X, SPEED_EDR},  {40000, WIDTH_4X, SPEED_FDR10}, {50000, WIDTH_1X, SPEED_HDR},
	{100000, WIDTH_4X, SPEED_EDR}, {200000, WIDTH_4X, SPEED_HDR},  {UINT32_MAX, WIDTH_4X, SPEED_NDR},
};

static void fill_speed(uint32_t mbps, struct ibv_port_attr *a)
{
	unsigned i = 0;

	while (mbps > speeds[i].mbps)
		i++;
	a->active_width = speeds[i].width;
	a->active_speed = speeds[i].speed;
}

static void fill_port(struct uv_context *c, struct ibv_port_attr *a)
{
	struct ur_device_info info;

	ur_engine_port_info(c->engine, &info);
	*a = (struct ibv_port_attr){
		.state = info.link_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = ur_max_path_mtu(info.mtu),
		.gid_tbl_len = UR_NET_GIDS,
		.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS,
		.max_msg_sz = UR_MAX_MSG,
		.pkey_tbl_len = 1,
		.max_vl_num = 1,
		.phys_state = info.link_up ? PHYS_LINK_UP : PHYS_DISABLED,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
		.flags = IBV_QPF_GRH_REQUIRED,
	};
	fill_speed(info.speed_mbps, a);
}

int uv_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr, size_t len)
{
	struct ibv_port_attr all;

	if (port != PORT)
		return uv_errno(EINVAL);
	fill_port(uv_context(ctx), &all);
	memset(attr, 0, len);
	memcpy(attr, &all, len < sizeof(all) ? len : sizeof(all));
	return 0;
}

/* Programs built before rdma-core 19 bring a struct that ends before `flags`. */
int ibv_query_port(struct ibv_context *ctx, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	return uv_query_port(ctx, port, (struct ibv_port_attr *)attr, offsetof(struct ibv_port_attr, flags));
}

#define SPEED_UNIT 100   /* Mbit/s */
#define SPEED_UNKNOWN 25 /* 2.5 Gbit/s, as width and speed of ibv_query_port say */

int ibv_query_port_speed(struct ibv_context *ctx, uint32_t port, uint64_t *speed)
{
	struct ur_device_info info;

	if (port != PORT)
		return uv_errno(EINVAL);
	ur_engine_info(uv_context(ctx)->engine, &info);
	*speed = info.speed_mbps ? info.speed_mbps / SPEED_UNIT : SPEED_UNKNOWN;
	return 0;
}

/* --- the GID table --- */

/* Reads entries [first, first + n) into gids; an empty one is zero. */
static int read_gids(struct uv_context *c, unsigned first, unsigned n, union ibv_gid *gids)
{
	struct ur_nic *nic;

	memset(gids, 0, n * sizeof(*gids));
	nic = uv_enter(c);
	if (!nic)
		return EIO;
	for (unsigned i = 0; i < n; i++) {
		const struct ur_net_addr *a = ur_net_gid(nic->net, first + i);

		if (a)
			memcpy(gids[i].raw, a->gid.raw, sizeof(gids[i].raw));
	}
	uv_leave(c);
	return 0;
}

static bool gid_is_zero(const union ibv_gid *g)
{
	return !g->global.subnet_prefix && !g->global.interface_id;
}

/* The kernel interface, when the port is shared with it. */
static uint32_t ifindex_of(struct uv_context *c)
{
	struct ur_device_info info;

	ur_engine_info(c->engine, &info);
	return info.owned ? 0 : if_nametoindex(info.ifname);
}

/* An entry of the table that is empty reads as the zero GID, as on kernel devices. */
int ibv_query_gid(struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid)
{
	int err;

	if (port != PORT || index < 0 || index >= UR_NET_GIDS)
		return set_errno(EINVAL);
	err = read_gids(uv_context(ctx), (unsigned)index, 1, gid);
	return err ? set_errno(err) : 0;
}

int ibv_query_gid_type(struct ibv_context *ctx, uint8_t port, unsigned int index, enum uv_gid_type_sysfs *type)
{
	(void)ctx;
	if (port != PORT || index >= UR_NET_GIDS)
		return set_errno(EINVAL);
	*type = UV_GID_TYPE_SYSFS_ROCE_V2;
	return 0;
}

static void fill_entry(struct ibv_gid_entry *e, const union ibv_gid *gid, uint32_t index, uint32_t ifindex)
{
	*e = (struct ibv_gid_entry){
		.gid = *gid, .gid_index = index, .port_num = PORT, .gid_type = IBV_GID_TYPE_ROCE_V2, .ndev_ifindex = ifindex};
}

int _ibv_query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t index, struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
	struct uv_context *c = uv_context(ctx);
	struct ibv_gid_entry e;
	union ibv_gid gid;
	int err;

	if (flags)
		return uv_errno(EOPNOTSUPP);
	if (port != PORT || index >= UR_NET_GIDS)
		return uv_errno(EINVAL);
	err = read_gids(c, index, 1, &gid);
	if (!err && gid_is_zero(&gid))
		err = ENODATA;
	if (err)
		return uv_errno(err);
	fill_entry(&e, &gid, index, ifindex_of(c));
	memset(entry, 0, size);
	memcpy(entry, &e, size < sizeof(e) ? size : sizeof(e));
	return 0;
}

/* A table that does not fit is an error, as it is in the kernel: a program would take a part for the whole. */
ssize_t _ibv_query_gid_table(struct ibv_context *ctx, struct ibv_gid_entry *entries, size_t max, uint32_t flags, size_t size)
{
	struct uv_context *c = uv_context(ctx);
	union ibv_gid gids[UR_NET_GIDS];
	uint8_t *out = (uint8_t *)entries;
	uint32_t ifindex;
	size_t n = 0;
	int err;

	if (flags)
		return -uv_errno(EOPNOTSUPP);
	err = read_gids(c, 0, UR_NET_GIDS, gids);
	if (err)
		return -uv_errno(err);
	ifindex = ifindex_of(c);
	for (uint32_t i = 0; i < UR_NET_GIDS; i++) {
		struct ibv_gid_entry e;

		if (gid_is_zero(&gids[i]))
			continue;
		if (n == max)
			return -uv_errno(EINVAL);
		fill_entry(&e, &gids[i], i, ifindex);
		memset(out + n * size, 0, size);
		memcpy(out + n * size, &e, size < sizeof(e) ? size : sizeof(e));
		n++;
	}
	return (ssize_t)n;
}

/* --- partitions: the default one alone (IBTA annex A17.4.4) --- */

int ibv_query_pkey(struct ibv_context *ctx, uint8_t port, int index, __be16 *pkey)
{
	(void)ctx;
	if (port != PORT || index != 0)
		return set_errno(EINVAL);
	*pkey = htobe16(DEFAULT_PKEY);
	return 0;
}

int ibv_get_pkey_index(struct ibv_context *ctx, uint8_t port, __be16 pkey)
{
	(void)ctx;
	if (port != PORT || pkey != htobe16(DEFAULT_PKEY))
		return set_errno(EINVAL);
	return 0;
}
