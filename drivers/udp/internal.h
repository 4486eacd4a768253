/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of drivers/udp share: port.c opens and closes, path_mtu.c asks the kernel for path MTUs, steer.c steers, rx.c and tx.c
 * move packets, buf.c has the memory.
 */
#ifndef UR_UDP_INTERNAL_H
#define UR_UDP_INTERNAL_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/pool.h"
#include "drivers/os/sock.h"
#include "drivers/udp/udp.h"
#include "wire/hdr.h"

#define UR_UDP_ROOM 65536      /* of a long buffer: the longest datagram, or train */
#define UR_UDP_BUFS 512        /* long buffers; only those in use cost memory */
#define UR_UDP_PKTS 2048       /* short ones that may be out at a time */
#define UR_UDP_RX_MSGS 8       /* datagrams and trains fetched by one system call */
#define UR_UDP_TX_MSGS 32      /* and sent */
#define UR_UDP_TRAIN_PKTS 64   /* UDP_MAX_SEGMENTS before Linux 6.9 */
#define UR_UDP_TRAIN_BYTES 65000
#define UR_UDP_HOPS 64         /* the kernel's default */

/* Of <linux/in6.h>, which libc's headers exclude. */
#define UR_IPV6_FLOWINFO 11
#define UR_IPV6_FLOWINFO_SEND 33

/* A datagram or train that was received, or is to be sent, and its memory. */
struct ur_udp_buf {
	struct ur_pkt pkt;
	uint8_t bytes[UR_UDP_ROOM] __attribute__((aligned(64)));
	uint8_t colour[320]; /* so that the beginnings of buffers do not all meet in the same lines of a cache */
};

/* A packet that is no train. */
struct ur_udp_pkt {
	struct ur_pkt pkt;
	uint8_t bytes[UR_PKT_ROOM];
};

/* Room for what is asked of the kernel beside each datagram. */
union ur_udp_control {
	struct cmsghdr align;
	uint8_t bytes[256];
};

/* Which packet's way, by its IP header, a message to send is told to go; version 0: none. */
struct ur_udp_way {
	uint8_t ip[40];
	uint8_t ip_version;
	size_t controllen; /* of msg_control, that says so */
};

struct ur_udp {
	struct ur_port port;
	struct ur_queue queue;
	int fd, ifindex;
	bool v6;   /* the socket's family is AF_INET6, for both */
	bool hops; /* the kernel says what packets have left, and is told it of each: its default may be another than ours */
	struct ur_gid groups[1024];
	unsigned ngroups;
	/* buf.c */
	uint8_t *memory; /* all of it, one mapping */
	size_t memory_len;
	struct ur_udp_buf *bufs;
	struct ur_udp_pkt *pkts;
	struct ur_pool free_bufs, free_pkts;
	/* rx.c */
	struct ur_pkt *got[UR_UDP_RX_MSGS]; /* fetched, in order; handed out up to got[given] */
	unsigned ngot, given;
	unsigned ask_more;                        /* the next call asks for one packet and this many more */
	struct ur_pkt *armed[UR_UDP_RX_MSGS]; /* where the next ones go */
	struct mmsghdr rx_msg[UR_UDP_RX_MSGS];
	struct iovec rx_iov[UR_UDP_RX_MSGS];
	struct sockaddr_in6 rx_name[UR_UDP_RX_MSGS];
	union ur_udp_control rx_control[UR_UDP_RX_MSGS];
	uint32_t kernel_drops; /* as the kernel last said; wraps */
	bool stamping;         /* the kernel has been asked when datagrams come */
	/* tx.c */
	struct mmsghdr tx_msg[UR_UDP_TX_MSGS];
	struct iovec tx_iov[UR_UDP_TX_MSGS * (UR_PKT_SEGS + 2)];
	struct sockaddr_in6 tx_name[UR_UDP_TX_MSGS];
	union ur_udp_control tx_control[UR_UDP_TX_MSGS];
	struct ur_udp_way tx_way[UR_UDP_TX_MSGS];
	uint8_t tx_lost[UR_UDP_TX_MSGS]; /* packets of each that the kernel does not send: all or none */
};

static inline struct ur_udp *ur_udp_of(struct ur_port *p)
{
	return ur_container_of(p, struct ur_udp, port);
}

static inline struct ur_udp *ur_udp_of_queue(struct ur_queue *q)
{
	return ur_container_of(q, struct ur_udp, queue);
}

/* buf.c */
int ur_udp_memory(struct ur_udp *u); /* 0 or ENOMEM */
struct ur_pkt *ur_udp_alloc_train(struct ur_queue *q);
unsigned ur_udp_alloc(struct ur_queue *q, struct ur_pkt **pkts, unsigned n);
void ur_udp_release(struct ur_queue *q, struct ur_pkt **pkts, unsigned n);

/* steer.c: of struct ur_port_ops */
int ur_udp_steer(struct ur_port *p, const struct ur_port_sharing *s);

/* path_mtu.c: of struct ur_port_ops */
uint16_t ur_udp_path_mtu(struct ur_port *p, const struct ur_gid *dst);

/* rx.c, tx.c: what stays the same from call to call. */
void ur_udp_rx_init(struct ur_udp *u);
void ur_udp_tx_init(struct ur_udp *u);
unsigned ur_udp_rx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n);
unsigned ur_udp_tx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n);
/* Empties the socket's queue of errors, and tells the port's owner which addresses ICMP errors concern. Were there any of these? */
bool ur_udp_errors(struct ur_udp *u);

#endif
