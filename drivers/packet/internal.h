/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of drivers/packet share: port.c opens and closes, rx.c and tx.c move frames, cut.c takes trains apart, buf.c has the
 * memory.
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
#define UR_PACKET_TRAINS 256      /* trains to send */
#define UR_PACKET_HEADROOM 64     /* the largest headers of a train, so that what lies after them is aligned */
#define UR_PACKET_TRAIN_MAX 128   /* packets in a train: UDP_MAX_SEGMENTS since Linux 6.9 */
#define UR_PACKET_TRAIN_PKTS 64   /* and before, which every kernel takes */
#define UR_PACKET_TRAIN_BYTES 65000
#define UR_PACKET_LONGEST 65536   /* of a frame, offloaded or not */
#define UR_PACKET_TX_MSGS 64      /* frames and trains sent by one system call */
#define UR_PACKET_GSO_UDP_L4 5    /* VIRTIO_NET_HDR_GSO_UDP_L4; older headers lack it */
#define UR_PACKET_HDR_MAX (UR_ETH_LEN + UR_VLAN_LEN + UR_IP6_LEN + UR_UDP_LEN)

/* A packet. Received, it lies in its own bytes, or in a slot of the ring that goes back to the kernel with it. */
struct ur_ppkt {
	struct ur_pkt pkt;
	struct tpacket2_hdr *slot;
	_Alignas(64) uint8_t bytes[UR_PACKET_HEADROOM + UR_PKT_ROOM];
};

/* A train to send. */
struct ur_ptrain {
	struct ur_pkt pkt;
	_Alignas(64) uint8_t bytes[UR_PACKET_HDR_MAX + UR_PACKET_TRAIN_BYTES];
};

/* The headers of a train that was received: each of its packets gets a copy. */
struct ur_packet_head {
	uint8_t bytes[UR_PACKET_HDR_MAX];
	uint8_t len, l3_off, ip_version;
	uint16_t id;      /* of the first packet, on IPv4 */
	uint32_t payload; /* after the UDP header; of all packets together */
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
	uint32_t slot_len, block_len, slots, slots_per_block;
	uint32_t head, since_empty;
	/* buf.c */
	uint8_t *memory;
	struct ur_pool free_pkts;   /* struct ur_ppkt */
	struct ur_pool free_trains; /* struct ur_ptrain */
	unsigned nfree;           /* packets in it */
	uint8_t *whole; /* where a frame of any length fits */
	/* rx.c: cut, and not handed out yet */
	struct ur_pkt *cut[UR_PACKET_TRAIN_MAX];
	unsigned ncut, cut_at;
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
struct ur_pkt *ur_packet_get(struct ur_packet *s); /* one of the s->nfree; an empty packet whose fields mean nothing yet */
struct ur_pkt *ur_packet_alloc_train(struct ur_queue *q);
unsigned ur_packet_alloc(struct ur_queue *q, struct ur_pkt **pkts, unsigned n);
void ur_packet_release(struct ur_queue *q, struct ur_pkt **pkts, unsigned n);

/* cut.c */
/*
 * Reads the headers of a frame that is `len` bytes long, of which `have` are at `frame`. False when they are not those of a UDP datagram
 * that can be a train: then the frame is one packet.
 */
bool ur_packet_head_get(struct ur_packet_head *h, const uint8_t *frame, uint32_t have, uint32_t len);
/* Puts a VLAN tag into the headers. */
void ur_packet_head_tag(struct ur_packet_head *h, uint16_t tpid, uint16_t tci);
/* Puts the headers of packet k of the train, which has `payload` bytes after them, into p, and sets its length. */
void ur_packet_head_put(const struct ur_packet_head *h, struct ur_pkt *p, unsigned k, uint32_t payload);
/* The length of the packets of a train that begins with the BTH of its first packet, when the kernel does not say it; 0 when unknown. */
uint32_t ur_packet_guess(const uint8_t *bth, uint32_t len, uint32_t most);

/* rx.c, tx.c */
unsigned ur_packet_rx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n);
unsigned ur_packet_tx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n);

#endif
