/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of an interface as they come, by a packet socket and a ring of blocks that the kernel fills. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <net/if_arp.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/pcap/file/source.h"

#define BLOCK (1u << 20)
#define BLOCKS 64
#define SLOT 2048       /* the kernel wants to know it, and does not use it */
#define RETIRE_MS 50    /* a block is given away when it is full, or so old */
#define PATIENCE_MS 200 /* to wait for a block */

struct ur_pcap_live {
	const char *name;
	int fd;
	uint8_t *ring; /* BLOCKS of BLOCK bytes */
	unsigned block, left;
	const struct tpacket3_hdr *next; /* frame of the block, while `left` */
	struct ur_an_frame frame;
	uint64_t lost;
};

static bool cannot_record(const char *name, const char *why)
{
	ur_cmd_fail(0, "cannot record interface %s: %s", name, why);
	return false;
}

/* What is certainly not RoCEv2 does not leave the kernel: TCP, in Ethernet frames without a tag. */
static bool set_filter(int fd)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 0, 2),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 23),
		BPF_JUMP(BPF_JMP | BPF_JA, 2, 0, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IPV6, 0, 3),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 20),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 6, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
	};
	const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0;
}

static bool make_ring(struct ur_pcap_live *l)
{
	const int version = TPACKET_V3;
	const struct tpacket_req3 req = {.tp_block_size = BLOCK,
					 .tp_block_nr = BLOCKS,
					 .tp_frame_size = SLOT,
					 .tp_frame_nr = BLOCK / SLOT * BLOCKS,
					 .tp_retire_blk_tov = RETIRE_MS};
	void *ring;

	if (setsockopt(l->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) < 0 ||
	    setsockopt(l->fd, SOL_PACKET, PACKET_RX_RING, &req, sizeof(req)) < 0)
		return false;
	ring = mmap(NULL, (size_t)BLOCK * BLOCKS, PROT_READ | PROT_WRITE, MAP_SHARED, l->fd, 0);
	l->ring = ring == MAP_FAILED ? NULL : ring;
	return l->ring;
}

/* Ethernet, or IP without a header of the link before it. */
static bool find_link(struct ur_pcap_live *l)
{
	struct ifreq ifr = {0};

	strncpy(ifr.ifr_name, l->name, sizeof(ifr.ifr_name) - 1);
	if (ioctl(l->fd, SIOCGIFHWADDR, &ifr) < 0)
		return cannot_record(l->name, strerror(errno));
	switch (ifr.ifr_hwaddr.sa_family) {
	case ARPHRD_ETHER:
	case ARPHRD_LOOPBACK: l->frame.link = UR_AN_ETHERNET; return true;
	case ARPHRD_NONE:
	case ARPHRD_TUNNEL:
	case ARPHRD_TUNNEL6: l->frame.link = UR_AN_RAW_IP; return true;
	}
	return cannot_record(l->name, "its frames are neither Ethernet nor IP");
}

static bool open_packet_socket(struct ur_pcap_live *l)
{
	struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	struct packet_mreq all = {.mr_type = PACKET_MR_PROMISC};

	at.sll_ifindex = (int)if_nametoindex(l->name);
	all.mr_ifindex = at.sll_ifindex;
	if (!at.sll_ifindex)
		return cannot_record(l->name, "there is no such interface");
	l->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (l->fd < 0)
		return cannot_record(l->name, errno == EPERM ? "this needs CAP_NET_RAW: run it as root, or read from tcpdump with '-'"
							     : strerror(errno));
	if (!find_link(l))
		return false;
	if ((l->frame.link == UR_AN_ETHERNET && !set_filter(l->fd)) || !make_ring(l) || bind(l->fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		return cannot_record(l->name, strerror(errno));
	setsockopt(l->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all)); /* without it: what is for this host */
	return true;
}

struct ur_pcap_live *ur_pcap_live_open(const char *interface)
{
	struct ur_pcap_live *l = calloc(1, sizeof(*l));

	if (!l) {
		cannot_record(interface, "out of memory");
		return NULL;
	}
	l->name = interface;
	l->fd = -1;
	if (open_packet_socket(l))
		return l;
	ur_pcap_live_close(l);
	return NULL;
}

static struct tpacket_block_desc *block_of(const struct ur_pcap_live *l)
{
	return (struct tpacket_block_desc *)(l->ring + (size_t)l->block * BLOCK);
}

/* 1 when there is a frame now; 0: not yet; -1 after a sentence. */
static int fetch_block(struct ur_pcap_live *l)
{
	struct pollfd fd = {.fd = l->fd, .events = POLLIN | POLLERR};
	struct tpacket_block_desc *b = block_of(l);
	int error = 0;
	socklen_t n = sizeof(error);

	if (!(__atomic_load_n(&b->hdr.bh1.block_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER)) {
		if (poll(&fd, 1, PATIENCE_MS) > 0 && fd.revents & POLLERR && getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &error, &n) == 0 &&
		    error && error != EINTR) {
			cannot_record(l->name, strerror(error));
			return -1;
		}
		return 0;
	}
	l->left = b->hdr.bh1.num_pkts;
	l->next = (const struct tpacket3_hdr *)((const uint8_t *)b + b->hdr.bh1.offset_to_first_pkt);
	return l->left > 0;
}

static void give_block_back(struct ur_pcap_live *l)
{
	__atomic_store_n(&block_of(l)->hdr.bh1.block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	l->block = (l->block + 1) % BLOCKS;
	l->next = NULL;
}

/* The frame before is gone then. */
int ur_pcap_live_next(struct ur_pcap_live *l, struct ur_an_frame *f)
{
	const struct tpacket3_hdr *h;
	int rc;

	if (l->next && !l->left)
		give_block_back(l);
	if (!l->next) {
		rc = fetch_block(l);
		if (rc <= 0)
			return rc;
	}
	h = l->next;
	l->frame.number++;
	l->frame.when = (ur_time)h->tp_sec * UR_NS_PER_S + h->tp_nsec;
	l->frame.data = (const uint8_t *)h + h->tp_mac;
	l->frame.have = h->tp_snaplen;
	l->frame.len = h->tp_len;
	*f = l->frame;
	if (--l->left)
		l->next = (const struct tpacket3_hdr *)((const uint8_t *)h + h->tp_next_offset);
	return 1;
}

uint64_t ur_pcap_live_lost(struct ur_pcap_live *l)
{
	struct tpacket_stats_v3 s = {0};
	socklen_t n = sizeof(s);

	if (getsockopt(l->fd, SOL_PACKET, PACKET_STATISTICS, &s, &n) == 0)
		l->lost += s.tp_drops; /* since the last time */
	return l->lost;
}

void ur_pcap_live_close(struct ur_pcap_live *l)
{
	if (!l)
		return;
	if (l->ring)
		munmap(l->ring, (size_t)BLOCK * BLOCKS);
	if (l->fd >= 0)
		close(l->fd);
	free(l);
}
