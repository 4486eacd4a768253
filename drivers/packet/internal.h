/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of drivers/packet share: port.c opens and closes, rx.c and tx.c move frames, train.c knows trains among them, buf.c has
 * the memory.
 */
#ifndef UR_PACKET_INTERNAL_H
#define UR_PACKET_INTERNAL_H

#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/pool.h"
#include "drivers/os/kif.h"
#include "drivers/os/sock.h"
#include "drivers/packet/packet.h"
#include "wire/frame.h"

#define UR_PACKET_PKTS 4096       /* packets that may be out at a time, received and to send; only those in use cost memory */
#define UR_PACKET_TRAINS 256      /* trains, likewise */
#define UR_PACKET_HEADROOM 64     /* the largest headers of a train, so that what lies after them is aligned */
#define UR_PACKET_TRAIN_MAX 128   /* packets in a received train: UDP_MAX_SEGMENTS since Linux 6.9 */
#define UR_PACKET_TRAIN_PKTS 64   /* and before, which every kernel takes */
#define UR_PACKET_TRAIN_BYTES 65000
#define UR_PACKET_LONGEST (UR_ETH_LEN + UR_VLAN_LEN + 65535) /* of a frame, offloaded or not */
#define UR_PACKET_TX_MSGS 64      /* frames and trains sent by one system call */
#define UR_PACKET_GSO_UDP_L4 5    /* VIRTIO_NET_HDR_GSO_UDP_L4; older headers lack it */
#define UR_PACKET_HDR_MAX (UR_ETH_LEN + UR_VLAN_LEN + UR_IP6_LEN + UR_UDP_LEN)

/* A packet. Received, it lies in its own bytes, or in a slot of the ring that goes back to the kernel with it. */
struct ur_ppkt {
	struct ur_pkt pkt;
	struct tpacket2_hdr *slot;
	_Alignas(64) uint8_t bytes[UR_PACKET_HEADROOM + UR_PKT_ROOM];
};

/* A train to send, or a long frame that was received. */
struct ur_ptrain {
	struct ur_pkt pkt;
	_Alignas(64) uint8_t bytes[UR_PACKET_HEADROOM + UR_PACKET_LONGEST];
};

struct ur_packet {
	struct ur_port port;
	struct ur_queue queue;
	struct ur_kif kif;
	int fd;
	bool vnet; /* each frame has a struct virtio_net_hdr in front */
	uint32_t max_frame;
	/* the ring, and where we are in it */
	uint8_t *ring;
	size_t ring_len;
	uint32_t slot_len, block_len, slots;
	uint32_t head, since_empty;
	/* buf.c */
	uint8_t *memory;
	struct ur_pool free_pkts;   /* struct ur_ppkt */
	struct ur_pool free_trains; /* struct ur_ptrain */
	unsigned nfree;           /* packets in it */
	/* train.c: what headers raised that are no train's; the NIC counts it when it has the frame */
	struct ur_counters not_trains;
	/* tx.c */
	struct mmsghdr tx_msg[UR_PACKET_TX_MSGS];
	struct virtio_net_hdr tx_vnet[UR_PACKET_TX_MSGS];
	uint8_t tx_head[UR_PACKET_TX_MSGS][UR_PACKET_HDR_MAX];
	struct iovec tx_iov[UR_PACKET_TX_MSGS * (UR_PKT_SEGS + 4)];
};

static inline struct ur_packet *ur_packet_of(struct ur_port *p)
{
	return ur_container_of(p, struct ur_packet, port);
}

static inline struct ur_packet *ur_packet_of_queue(struct ur_queue *q)
{
	return ur_container_of(q, struct ur_packet, queue);
}

/* buf.c */
int ur_packet_memory(struct ur_packet *s); /* 0 or ENOMEM */
void ur_packet_memory_free(struct ur_packet *s);
struct ur_pkt *ur_packet_get(struct ur_packet *s); /* an empty packet whose parsed fields mean nothing yet, or NULL */
struct ur_pkt *ur_packet_alloc_train(struct ur_queue *q);
unsigned ur_packet_alloc(struct ur_queue *q, struct ur_pkt **pkts, unsigned n);
void ur_packet_release(struct ur_queue *q, struct ur_pkt **pkts, unsigned n);

/*
 * train.c: makes a train of a frame that is one: sets `stride` and the fields of its headers. The kernel says that its packets have `size`
 * bytes after the UDP header, or 0 when it does not know.
 */
void ur_packet_see_train(struct ur_packet *s, struct ur_pkt *p, uint32_t size);

/* rx.c, tx.c */
unsigned ur_packet_rx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n);
unsigned ur_packet_tx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n);

#endif
