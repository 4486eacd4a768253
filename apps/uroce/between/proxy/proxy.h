/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce between --proxy: the ends of the cable are two hosts that send to an address of this machine, each of which takes it for its peer.
 * proxy.c finds out the addresses and opens the UDP ports, io.c moves packets.
 *
 * Everything else that comes to these ports is dropped, so this machine forwards nothing except between the two.
 */
#ifndef UR_APP_BETWEEN_PROXY_H
#define UR_APP_BETWEEN_PROXY_H

#include <net/if.h>

#include "apps/uroce/between/between.h"
#include "between/readdress.h"
#include "drivers/udp/udp.h"
#include "net/idents.h"
#include "wire/frame.h"
#include "wire/train.h"

#define UR_PROXY_BURST 32

/* Frames that have come in, until the loop has them, and while it has them. */
struct ur_proxy_bank {
	struct ur_between_frame frame[UR_BETWEEN_BATCH];
	uint8_t bytes[UR_BETWEEN_BATCH][UR_PKT_ROOM];
	unsigned n;
};

/* One of the hosts, and what it takes for its peer. The state of an end (struct ur_between_end). */
struct ur_proxy_side {
	struct ur_proxy *proxy;
	unsigned number;
	struct ur_gid host, addr; /* its address, and the address of this machine that it sends to */
	struct ur_gid as;         /* its address on the cable */
	char ifname[IFNAMSIZ];
	unsigned ifindex;
	unsigned port;           /* index of the port that leads to it */
	struct ur_readdress in;  /* what comes from it, on the cable */
	struct ur_readdress out; /* what is sent to it */
	struct ur_proxy_bank bank[2];
	unsigned filling; /* index of the bank that is being filled */
	struct ur_pkt *burst[UR_PROXY_BURST];
	unsigned nburst; /* the last may be a train that more packets find room in, if they are alike in these: */
	uint8_t tos, ttl;
	uint32_t flow_label;
};

struct ur_proxy_port {
	struct ur_port *port;
	struct ur_pkt *cur, view; /* a packet or train that has come in, as far as it has been looked at */
	struct ur_train_cursor at;
	bool more; /* it may have */
};

struct ur_proxy {
	struct ur_proxy_side side[2];
	struct ur_proxy_port port[2];
	unsigned nports;
	int fd, more; /* readable while there are frames; `more`: while there are some that were already read from the sockets */
	ur_time last; /* when the last one came */
	struct ur_idents idents;
	struct ur_between_proxied *seen;
	uint8_t scratch[UR_PKT_ROOM];
};

/* --- proxy.c --- */

/*
 * Has the ends of `r` be the hosts of these names, or addresses, that find one another at the addresses `listen`: "ADDR1[,ADDR2]", or NULL:
 * those from which the kernel sends to them. 0, or the exit status after a message.
 */
int ur_between_proxy(struct ur_between_run *r, char *const host[2], const char *listen);

/* --- io.c: of struct ur_between_kind --- */

unsigned ur_proxy_receive(struct ur_between_end *e, struct ur_between_frame *to);
void ur_proxy_queue(struct ur_between_end *e, const struct ur_between_out *o);
void ur_proxy_flush(struct ur_between_end *e);

#endif
