/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An end that is an interface of the kernel: a packet socket. Each frame comes with the kernel's description of what is still to be done to
 * it (struct virtio_net_hdr): a checksum, or segmentation. It goes out with the same description, so that work is done where it would
 * have been done on a plain cable.
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

#include "apps/uroce/between/end.h"
#include "apps/uroce/cli/cmd.h"
#include "between/between.h"
#include "drivers/os/sock.h"
#include "host/clock.h"
#include "wire/frame.h"

#define ROOM (UR_BETWEEN_HEADROOM + UR_BETWEEN_FRAME)
#define QUEUE_BYTES (16 << 20)
#define SEND_MS 100 /* an interface that takes nothing for so long loses the frame, as a cable does */

/* The tag that the kernel has taken off, and when the frame came. */
struct control {
	_Alignas(struct cmsghdr) char bytes[CMSG_SPACE(sizeof(struct tpacket_auxdata)) + CMSG_SPACE(sizeof(struct timespec))];
};

struct receiving {
	struct mmsghdr msg[UR_BETWEEN_BATCH];
	struct iovec iov[UR_BETWEEN_BATCH][2];
	struct virtio_net_hdr vnet[UR_BETWEEN_BATCH];
	struct control control[UR_BETWEEN_BATCH];
	uint8_t bytes[UR_BETWEEN_BATCH][ROOM]; /* only what frames have been in costs memory */
};

struct sending {
	unsigned n;
	struct mmsghdr msg[UR_BETWEEN_BATCH];
	struct iovec iov[UR_BETWEEN_BATCH][3];
	uint8_t head[UR_BETWEEN_BATCH][UR_BETWEEN_HEAD];
	struct virtio_net_hdr vnet[UR_BETWEEN_BATCH];
};

struct packet {
	unsigned index; /* of the interface */
	struct sending sending;
	struct receiving receiving;
};

static bool cannot_join(const char *name, const char *why)
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
	       setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one)) == 0 &&
	       setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)) == 0 &&
	       setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all)) == 0 &&
	       setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) == 0;
}

static bool open_packet(struct ur_between_end *e)
{
	const unsigned index = if_nametoindex(e->name);
	const struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)index};

	if (!index)
		return cannot_join(e->name, "there is no such interface");
	e->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (e->fd < 0)
		return cannot_join(e->name, errno == EPERM ? "this needs CAP_NET_RAW: run it as root" : strerror(errno));
	if (!is_ethernet(e->fd, e->name))
		return cannot_join(e->name, "it is not an Ethernet interface");
	e->state = calloc(1, sizeof(struct packet));
	if (!e->state)
		return cannot_join(e->name, "out of memory");
	((struct packet *)e->state)->index = index;
	/* Nothing comes in before it is bound. */
	if (!set_options(e->fd, index) || bind(e->fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
		return cannot_join(e->name, strerror(errno));
	return true;
}

static const char *missing_interface(const struct ur_between_end *e)
{
	const struct packet *p = e->state;
	char name[IF_NAMESIZE];

	return if_indextoname(p->index, name) || errno != ENXIO ? NULL : e->name;
}

static void close_packet(struct ur_between_end *e)
{
	if (e->fd >= 0)
		close(e->fd);
	free(e->state);
}

static void read_statistics(struct ur_between_end *e)
{
	struct tpacket_stats s = {0};
	socklen_t n = sizeof(s);

	if (getsockopt(e->fd, SOL_PACKET, PACKET_STATISTICS, &s, &n) == 0)
		e->kernel_lost += s.tp_drops; /* since the last time */
}

/* --- receiving --- */

static void prepare(struct receiving *rx)
{
	for (unsigned i = 0; i < UR_BETWEEN_BATCH; i++) {
		rx->iov[i][0] = (struct iovec){&rx->vnet[i], sizeof(rx->vnet[i])};
		rx->iov[i][1] = (struct iovec){rx->bytes[i] + UR_BETWEEN_HEADROOM, UR_BETWEEN_FRAME};
		rx->msg[i].msg_hdr = (struct msghdr){
			.msg_iov = rx->iov[i], .msg_iovlen = 2, .msg_control = &rx->control[i], .msg_controllen = sizeof(rx->control[i])};
	}
}

/* The tag that the kernel has taken off goes back, and what the description counts from the beginning of the frame moves with it. */
static void put_tag_back(const struct cmsghdr *c, struct ur_between_frame *f)
{
	struct tpacket_auxdata aux;

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

/* The kernel uses the time of day, which may be set at any time: compared with the other clock at `now`. */
static ur_time time_of(const struct cmsghdr *c, ur_time now, uint64_t wall)
{
	struct timespec at;
	uint64_t ns;

	memcpy(&at, CMSG_DATA(c), sizeof(at));
	ns = (uint64_t)at.tv_sec * UR_NS_PER_S + (uint64_t)at.tv_nsec;
	return ns < wall && wall - ns < now ? now - (wall - ns) : now;
}

static bool is(const struct cmsghdr *c, int level, int type, size_t len)
{
	return c->cmsg_level == level && c->cmsg_type == type && c->cmsg_len >= CMSG_LEN(len);
}

static void read_control(struct msghdr *h, struct ur_between_frame *f, ur_time now, uint64_t wall)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		if (is(c, SOL_PACKET, PACKET_AUXDATA, sizeof(struct tpacket_auxdata)))
			put_tag_back(c, f);
		else if (is(c, SOL_SOCKET, SCM_TIMESTAMPNS, sizeof(struct timespec)))
			f->when = time_of(c, now, wall);
	}
}

static unsigned receive_packets(struct ur_between_end *e, struct ur_between_frame *to)
{
	struct receiving *rx = &((struct packet *)e->state)->receiving;
	ur_time now = 0;
	uint64_t wall = 0;
	unsigned n = 0;
	int got;

	prepare(rx);
	got = recvmmsg(e->fd, rx->msg, UR_BETWEEN_BATCH, MSG_DONTWAIT, NULL);
	if (got < 0 && errno == EINVAL)
		e->refused++; /* such as trains before Linux 6.2: the frame is gone */
	if (got > 0) {
		now = ur_clock_now();
		wall = ur_clock_wall();
	}
	for (int i = 0; i < got; i++) {
		struct ur_between_frame *f = &to[n];

		if (rx->msg[i].msg_len < sizeof(f->vnet) || rx->msg[i].msg_hdr.msg_flags & MSG_TRUNC) {
			e->refused++;
			continue;
		}
		*f = (struct ur_between_frame){.data = rx->iov[i][1].iov_base,
					       .len = rx->msg[i].msg_len - (uint32_t)sizeof(f->vnet),
					       .vnet = rx->vnet[i],
					       .when = now};
		read_control(&rx->msg[i].msg_hdr, f, now, wall);
		n += f->len > 0;
	}
	return n;
}

/* --- sending --- */

static void flush_packets(struct ur_between_end *e)
{
	struct sending *s = &((struct packet *)e->state)->sending;
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

static void queue_packet(struct ur_between_end *e, const struct ur_between_out *o)
{
	struct sending *s = &((struct packet *)e->state)->sending;
	const unsigned i = s->n;

	s->vnet[i] = o->vnet;
	if (o->head_len)
		memcpy(s->head[i], o->head, o->head_len);
	s->iov[i][0] = (struct iovec){&s->vnet[i], sizeof(s->vnet[i])};
	s->iov[i][1] = (struct iovec){s->head[i], o->head_len};
	s->iov[i][2] = (struct iovec){(void *)(uintptr_t)o->data, o->len};
	s->msg[i].msg_hdr = (struct msghdr){.msg_iov = s->iov[i], .msg_iovlen = 3};
	if (++s->n == UR_BETWEEN_BATCH)
		flush_packets(e);
}

const struct ur_between_kind ur_between_packet = {
	.prefix = "",
	.open = open_packet,
	.close = close_packet,
	.receive = receive_packets,
	.queue = queue_packet,
	.flush = flush_packets,
	.gone = missing_interface,
	.statistics = read_statistics,
};
