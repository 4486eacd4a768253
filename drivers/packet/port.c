/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing: the socket, its filter and its ring. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "drivers/os/fail.h"
#include "drivers/os/sock.h"
#include "drivers/packet/internal.h"

#define OVERHEAD (UR_ETH_LEN + UR_VLAN_LEN)
#define SLOT_OVERHEAD (TPACKET_ALIGN(TPACKET2_HDRLEN) + 16 + sizeof(struct virtio_net_hdr)) /* kernel's header and address, alignment */
#define QUEUE_BYTES (8 << 20) /* trains that wait to be fetched, or to leave; the kernel doubles it for what it adds to each */
#define FEWEST_SLOTS 256

/*
 * Slots fill blocks without remainder, so that they are contiguous; blocks nearly fill a power of two pages, which the
 * kernel allocates.
 */
struct shape {
	unsigned slot, block, slots;
};

static const struct shape shape_small = {2048, 65536, 4096}, shape_full = {4608, 258048, 2240};

/* --- the device --- */

static int set_mcast(struct ur_port *p, const struct ur_mac *macs, unsigned n)
{
	return ur_kif_set_mcast(&ur_packet_of(p)->kif, macs, n);
}

static bool link_up(struct ur_port *p)
{
	return ur_kif_running(&ur_packet_of(p)->kif);
}

static int wake_fd(struct ur_queue *q)
{
	return ur_packet_of_queue(q)->fd;
}

static void port_close(struct ur_port *p)
{
	struct ur_packet *s = ur_packet_of(p);

	if (s->ring)
		munmap(s->ring, s->ring_len);
	if (s->fd >= 0)
		close(s->fd);
	ur_packet_memory_free(s);
	ur_kif_close(&s->kif);
	free(s);
}

static const struct ur_queue_ops queue_ops = {
	.rx = ur_packet_rx,
	.tx = ur_packet_tx,
	.alloc = ur_packet_alloc,
	.alloc_train = ur_packet_alloc_train,
	.release = ur_packet_release,
	.wake_fd = wake_fd,
};

static const struct ur_port_ops ops = {
	.set_mcast = set_mcast,
	.link_up = link_up,
	.close = port_close,
};

/* --- opening --- */

static bool kernel_has_trains(void)
{
	struct utsname u;
	unsigned major, minor;

	return uname(&u) == 0 && sscanf(u.release, "%u.%u", &major, &minor) == 2 && (major > 6 || (major == 6 && minor >= 2));
}

static int set_options(struct ur_packet *s, bool plain)
{
	int version = TPACKET_V2, one = 1;
	uint32_t room;

	if (setsockopt(s->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) ||
	    setsockopt(s->fd, SOL_PACKET, PACKET_COPY_THRESH, &one, sizeof(one)))
		return errno;
	s->vnet = !plain && kernel_has_trains() && setsockopt(s->fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)) == 0;
	room = ur_sock_widen(s->fd, SO_RCVBUFFORCE, SO_RCVBUF, QUEUE_BYTES);
	if (room < 2 * QUEUE_BYTES)
		s->queue.rx_bytes = room / 4 * 3; /* the kernel counts its own structures as well */
	ur_sock_widen(s->fd, SO_SNDBUFFORCE, SO_SNDBUF, QUEUE_BYTES);
	return ur_kif_filter(&s->kif, s->fd);
}

/* Fewer slots when memory is short. */
static int make_ring(struct ur_packet *s)
{
	const struct shape *shape = s->port.mtu + OVERHEAD + SLOT_OVERHEAD <= shape_small.slot ? &shape_small : &shape_full;
	unsigned per_block = shape->block / shape->slot, blocks = shape->slots / per_block;
	struct tpacket_req req = {.tp_block_size = shape->block, .tp_frame_size = shape->slot};
	void *m;
	int rc;

	do {
		req.tp_block_nr = blocks;
		req.tp_frame_nr = blocks * per_block;
		rc = setsockopt(s->fd, SOL_PACKET, PACKET_RX_RING, &req, sizeof(req)) ? errno : 0;
		blocks /= 2;
	} while (rc == ENOMEM && blocks * per_block >= FEWEST_SLOTS);
	if (rc)
		return rc;
	s->slot_len = req.tp_frame_size;
	s->slots = req.tp_frame_nr;
	s->ring_len = (size_t)req.tp_block_nr * req.tp_block_size;
	m = mmap(NULL, s->ring_len, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	if (m == MAP_FAILED)
		return errno;
	s->ring = m;
	return 0;
}

/* Nothing comes in before it is bound, and by then the filter is there. */
static int bind_here(const struct ur_packet *s)
{
	struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = s->kif.index};

	return bind(s->fd, (struct sockaddr *)&at, sizeof(at)) ? errno : 0;
}

static int open_socket(struct ur_packet *s, bool plain, char *err, size_t errlen)
{
	int rc;

	s->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (s->fd < 0)
		return ur_port_fail(err, errlen, errno, "cannot open a packet socket for %s: %s", s->kif.name, strerror(errno));
	rc = set_options(s, plain);
	if (rc)
		return ur_port_fail(err, errlen, rc, "cannot set up the packet socket of %s: %s", s->kif.name, strerror(rc));
	rc = make_ring(s);
	rc = rc ? rc : ur_packet_memory(s);
	if (rc)
		return ur_port_fail(err, errlen, rc, "out of memory for the packets of %s: %s", s->kif.name, strerror(rc));
	rc = bind_here(s);
	if (rc)
		return ur_port_fail(err, errlen, rc, "cannot start the packet socket on %s: %s", s->kif.name, strerror(rc));
	return 0;
}

static int settle_mtu(struct ur_packet *s, uint16_t mtu, char *err, size_t errlen)
{
	const uint32_t most = UR_PKT_ROOM - OVERHEAD;

	if (mtu > most)
		return ur_port_fail(err, errlen, EINVAL, "an MTU of %u is more than a packet buffer holds: at most %u", mtu, most);
	if (mtu > s->kif.mtu)
		return ur_port_fail(err, errlen, EINVAL, "%s has an MTU of %u, less than %u: ip link set %s mtu %u", s->kif.name,
				    s->kif.mtu, mtu, s->kif.name, mtu);
	s->port.mtu = (uint16_t)ur_min_u32(mtu ? mtu : s->kif.mtu, most);
	s->max_frame = s->port.mtu + UR_ETH_LEN;
	return 0;
}

static void describe(struct ur_packet *s)
{
	s->port.ops = &ops;
	s->port.queue = &s->queue;
	s->port.mac = s->kif.mac;
	s->port.speed_mbps = ur_kif_speed(&s->kif);
	snprintf(s->port.name, sizeof(s->port.name), "%s", s->kif.name);
	s->queue.ops = &queue_ops;
	s->queue.train_pkts = s->vnet ? UR_PACKET_TRAIN_PKTS : 1;
	s->queue.train_bytes = UR_PACKET_TRAIN_BYTES;
}

int ur_packet_open(const struct ur_packet_config *cfg, struct ur_port **out, char *err, size_t errlen)
{
	struct ur_packet *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return ur_port_fail(err, errlen, ENOMEM, "out of memory");
	s->fd = -1;
	rc = ur_kif_open(&s->kif, cfg->ifname, err, errlen);
	rc = rc ? rc : settle_mtu(s, cfg->mtu, err, errlen);
	rc = rc ? rc : open_socket(s, cfg->plain, err, errlen);
	if (rc) {
		port_close(&s->port);
		return rc;
	}
	describe(s);
	*out = &s->port;
	return 0;
}
