/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two packet sockets. Each frame comes with the kernel's description of what is still to be done to it (struct virtio_net_hdr): a
 * checksum, or cutting into packets. It goes out with the same, so whatever passes is done by who would have done it on a plain cable.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "between.h"
#include "cmd.h"
#include "drivers/os/sock.h"
#include "wire/frame.h"

#define ROOM (UR_BETWEEN_HEADROOM + UR_BETWEEN_FRAME)
#define QUEUE_BYTES (16 << 20)
#define SEND_MS 100 /* an interface that takes nothing for so long loses the frame, as a cable does */

struct control {
	_Alignas(struct cmsghdr) char bytes[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
};

struct ur_between_rx {
	struct mmsghdr msg[UR_BETWEEN_BATCH];
	struct iovec iov[UR_BETWEEN_BATCH][2];
	struct virtio_net_hdr vnet[UR_BETWEEN_BATCH];
	struct control control[UR_BETWEEN_BATCH];
	uint8_t bytes[UR_BETWEEN_BATCH][ROOM];
};

struct ur_between_sending {
	unsigned n;
	struct mmsghdr msg[UR_BETWEEN_BATCH];
	struct iovec iov[UR_BETWEEN_BATCH][3];
	uint8_t head[UR_BETWEEN_BATCH][UR_BETWEEN_HEAD];
	struct virtio_net_hdr vnet[UR_BETWEEN_BATCH];
};

static bool fail(const char *name, const char *why)
{
	ur_cmd_fail(0, "cannot join interface %s: %s", name, why);
	return false;
}

/* --- opening --- */

static bool is_ethernet(int fd, const char *name)
{
	struct ifreq ifr = {0};

	strncpy(ifr.ifr_name, name, sizeof(ifr.ifr_name) - 1);
	return ioctl(fd, SIOCGIFHWADDR, &ifr) == 0 && ifr.ifr_hwaddr.sa_family == ARPHRD_ETHER;
}

static bool set_options(int fd, unsigned index)
{
	const struct packet_mreq all = {.mr_type = PACKET_MR_PROMISC, .mr_ifindex = (int)index};
	const struct timeval patience = {.tv_usec = SEND_MS * 1000};
	const int one = 1;

	ur_sock_widen(fd, SO_RCVBUFFORCE, SO_RCVBUF, QUEUE_BYTES);
	ur_sock_widen(fd, SO_SNDBUFFORCE, SO_SNDBUF, QUEUE_BYTES);
	return setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)) == 0 &&
	       setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &one, sizeof(one)) == 0 &&
	       setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)) == 0 &&
	       setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all)) == 0 &&
	       setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) == 0;
}

bool ur_between_open(struct ur_between_end *e)
{
	const unsigned index = if_nametoindex(e->name);
	const struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)index};

	if (!index)
		return fail(e->name, "there is no such interface");
	e->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (e->fd < 0)
		return fail(e->name, errno == EPERM ? "this needs CAP_NET_RAW: run it as root" : strerror(errno));
	if (!is_ethernet(e->fd, e->name))
		return fail(e->name, "it is not an Ethernet interface");
	e->sending = calloc(1, sizeof(*e->sending));
	if (!e->sending)
		return fail(e->name, "out of memory");
	/* Nothing comes in before it is bound. */
	if (!set_options(e->fd, index) || bind(e->fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
		return fail(e->name, strerror(errno));
	return true;
}

void ur_between_close(struct ur_between_end *e)
{
	if (e->fd >= 0)
		close(e->fd);
	free(e->sending);
}

void ur_between_statistics(struct ur_between_end *e)
{
	struct tpacket_stats s = {0};
	socklen_t n = sizeof(s);

	if (getsockopt(e->fd, SOL_PACKET, PACKET_STATISTICS, &s, &n) == 0)
		e->kernel_lost += s.tp_drops; /* since the last time */
}

/* --- receiving --- */

struct ur_between_rx *ur_between_rx_create(void)
{
	return calloc(1, sizeof(struct ur_between_rx));
}

void ur_between_rx_destroy(struct ur_between_rx *rx)
{
	free(rx);
}

static void prepare(struct ur_between_rx *rx)
{
	for (unsigned i = 0; i < UR_BETWEEN_BATCH; i++) {
		rx->iov[i][0] = (struct iovec){&rx->vnet[i], sizeof(rx->vnet[i])};
		rx->iov[i][1] = (struct iovec){rx->bytes[i] + UR_BETWEEN_HEADROOM, UR_BETWEEN_FRAME};
		rx->msg[i].msg_hdr = (struct msghdr){
			.msg_iov = rx->iov[i], .msg_iovlen = 2, .msg_control = &rx->control[i], .msg_controllen = sizeof(rx->control[i])};
	}
}

/* The tag that the kernel has taken off goes back, and what the description counts from the beginning of the frame moves with it. */
static void put_tag_back(struct msghdr *h, struct ur_between_frame *f)
{
	struct tpacket_auxdata aux;
	const struct cmsghdr *c = CMSG_FIRSTHDR(h);

	if (!c || c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA || c->cmsg_len < CMSG_LEN(sizeof(aux)))
		return;
	memcpy(&aux, CMSG_DATA(c), sizeof(aux));
	if (!(aux.tp_status & TP_STATUS_VLAN_VALID) || f->len < UR_ETH_LEN)
		return;
	f->data = ur_vlan_insert(f->data, aux.tp_status & TP_STATUS_VLAN_TPID_VALID ? aux.tp_vlan_tpid : ETH_P_8021Q, aux.tp_vlan_tci);
	f->len += UR_VLAN_LEN;
	if (f->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
		f->vnet.csum_start = (uint16_t)(f->vnet.csum_start + UR_VLAN_LEN);
	if (f->vnet.gso_type != VIRTIO_NET_HDR_GSO_NONE)
		f->vnet.hdr_len = (uint16_t)(f->vnet.hdr_len + UR_VLAN_LEN);
}

unsigned ur_between_receive(struct ur_between_end *e, struct ur_between_rx *rx, struct ur_between_frame *to)
{
	unsigned n = 0;
	int got;

	prepare(rx);
	got = recvmmsg(e->fd, rx->msg, UR_BETWEEN_BATCH, MSG_DONTWAIT, NULL);
	if (got < 0 && errno == EINVAL)
		e->refused++; /* such as trains before Linux 6.2: the frame is gone */
	for (int i = 0; i < got; i++) {
		struct ur_between_frame *f = &to[n];

		if (rx->msg[i].msg_len < sizeof(f->vnet) || rx->msg[i].msg_hdr.msg_flags & MSG_TRUNC) {
			e->refused++;
			continue;
		}
		*f = (struct ur_between_frame){
			.data = rx->iov[i][1].iov_base, .len = rx->msg[i].msg_len - (uint32_t)sizeof(f->vnet), .vnet = rx->vnet[i]};
		put_tag_back(&rx->msg[i].msg_hdr, f);
		n += f->len > 0;
	}
	return n;
}

/* --- sending --- */

void ur_between_flush(struct ur_between_end *e)
{
	struct ur_between_sending *s = e->sending;
	unsigned done = 0;

	while (done < s->n) {
		const int sent = sendmmsg(e->fd, s->msg + done, s->n - done, 0);

		if (sent > 0) {
			e->sent += (unsigned)sent;
			done += (unsigned)sent;
			continue;
		}
		if (errno == EINTR)
			continue;
		e->why = errno;
		e->unsent++;
		done++;
	}
	s->n = 0;
}

void ur_between_queue(struct ur_between_end *e, const uint8_t *head, uint32_t head_len, const uint8_t *data, uint32_t len,
		      const struct virtio_net_hdr *vnet)
{
	struct ur_between_sending *s = e->sending;
	const unsigned i = s->n;

	s->vnet[i] = *vnet;
	if (head_len)
		memcpy(s->head[i], head, head_len);
	s->iov[i][0] = (struct iovec){&s->vnet[i], sizeof(s->vnet[i])};
	s->iov[i][1] = (struct iovec){s->head[i], head_len};
	s->iov[i][2] = (struct iovec){(void *)(uintptr_t)data, len};
	s->msg[i].msg_hdr = (struct msghdr){.msg_iov = s->iov[i], .msg_iovlen = 3};
	if (++s->n == UR_BETWEEN_BATCH)
		ur_between_flush(e);
}
