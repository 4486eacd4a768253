/* SPDX-License-Identifier: BSD-3-Clause */
/* A UDP port on the loopback interface of a network namespace of its own, and what it sends to itself. */
#ifndef UR_TEST_UDP_UTIL_H
#define UR_TEST_UDP_UTIL_H

#include <CUnit/CUnit.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "drivers/udp/udp.h"
#include "wire/crc/icrc.h"
#include "wire/frame.h"
#include "wire/train.h"

#define MTU 1500
#define PAYLOAD 1024
#define QPN 0x090001

static int home_ns = -1;
static struct ur_port *port;
static struct ur_counters counters;
static uint8_t memory[64][PAYLOAD];
static struct ur_ref ref;

/* --- a world of its own --- */

static inline int set_up_lo(void)
{
	struct ifreq ifr = {.ifr_name = "lo"};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), r;

	ifr.ifr_flags = IFF_UP | IFF_RUNNING | IFF_LOOPBACK;
	r = ioctl(fd, SIOCSIFFLAGS, &ifr);
	ifr = (struct ifreq){.ifr_name = "lo", .ifr_mtu = MTU};
	r |= ioctl(fd, SIOCSIFMTU, &ifr);
	close(fd);
	return r;
}

/* Not root: the loopback interface that there is, as it is. */
static inline int init(void)
{
	home_ns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	return unshare(CLONE_NEWNET) == 0 ? set_up_lo() : 0;
}

static inline int clean(void)
{
	int r = setns(home_ns, CLONE_NEWNET) && errno != EPERM;

	close(home_ns);
	return r;
}

static inline struct ur_port *open_port(void)
{
	const struct ur_udp_config cfg = {.ifname = "lo", .mtu = MTU};
	struct ur_port *p = NULL;
	char err[400] = "";

	CU_ASSERT_EQUAL_FATAL(ur_udp_open(&cfg, &p, err, sizeof(err)), 0);
	CU_ASSERT_FATAL(p->queue->caps == (UR_QUEUE_BARE | UR_QUEUE_STEERED | UR_QUEUE_CALLS));
	return p;
}

static inline void setup(void)
{
	counters = (struct ur_counters){{0}};
	atomic_store(&ref.n, 0);
	for (unsigned i = 0; i < ur_array_size(memory); i++)
		memset(memory[i], (int)i + 1, PAYLOAD);
	port = open_port();
}

static inline void teardown(void)
{
	port->ops->close(port);
	CU_ASSERT_EQUAL(atomic_load(&ref.n), 0);
}

static inline struct ur_gid address(bool v4)
{
	struct ur_gid g = {{[15] = 1}};

	return v4 ? ur_gid_from_v4(htonl(INADDR_LOOPBACK)) : g;
}

/* A WRITE_MIDDLE of `len` bytes of memory[i], not finished. */
static inline struct ur_pkt *build(bool v4, unsigned i, uint32_t len, uint8_t tos)
{
	static const struct ur_mac none;
	struct ur_gid g = address(v4);
	struct ur_path path = {.hdr_len = 0};
	struct ur_pkt *p = NULL;

	CU_ASSERT_EQUAL_FATAL(ur_queue_alloc(port->queue, &p, 1), 1);
	ur_path_build(&path, &none, &none, 0, &g, &g, tos, 64, 0, UR_ROCE_PORT);
	memcpy(p->data, path.hdr, path.hdr_len);
	p->kind = UR_PKT_ROCE;
	p->ip_version = path.ip_version;
	p->l3_off = path.l3_off;
	p->bth_off = path.hdr_len;
	p->bth = (struct ur_bth){.opcode = UR_RC | UR_OP_WRITE_MIDDLE, .pkey = UR_PKEY_DEFAULT, .dqpn = QPN, .psn = i, .pad = -len & 3};
	ur_bth_put(p->data + p->bth_off, &p->bth);
	p->len = p->bth_off + UR_BTH_LEN;
	p->seg[0] = (struct ur_seg){memory[i], len, &ref};
	p->nseg = 1;
	ur_pkt_hold(p);
	return p;
}

static inline struct ur_pkt *build_finished(bool v4, unsigned i, uint32_t len, uint8_t tos)
{
	struct ur_pkt *p = build(v4, i, len, tos);

	ur_frame_finish(p, p->bth.pad);
	return p;
}

/* n packets, as a train if there are several; returns how many packets and trains the port took. */
static inline unsigned send_train(bool v4, unsigned n, uint32_t last_len, uint8_t tos)
{
	struct ur_queue *q = port->queue;
	struct ur_pkt *p, *t;

	if (n == 1) {
		p = build_finished(v4, 0, last_len, tos);
		return ur_queue_tx(q, &p, 1);
	}
	t = q->ops->alloc_train(q);
	for (unsigned i = 0; i < n; i++) {
		p = build_finished(v4, i, i + 1 < n ? PAYLOAD : last_len, tos);
		CU_ASSERT_TRUE_FATAL(ur_train_append(t, p, q->train_pkts, q->train_bytes));
		ur_pkts_release(&p, 1);
	}
	return ur_queue_tx(q, &t, 1);
}

static inline unsigned count(struct ur_pkt *const *p, unsigned n)
{
	unsigned all = 0;

	for (unsigned i = 0; i < n; i++)
		all += ur_train_count(p[i]);
	return all;
}

/* Waits for up to n packets in all; returns how many packets and trains they came in. */
static inline unsigned receive(struct ur_port *from, struct ur_pkt **p, unsigned n)
{
	struct pollfd fd = {.fd = ur_queue_wake_fd(from->queue), .events = POLLIN};
	unsigned got = 0;

	while (count(p, got) < n) {
		unsigned k = ur_queue_rx(from->queue, p + got, n - count(p, got));

		if (!k && poll(&fd, 1, 200) <= 0)
			break;
		got += k;
	}
	return got;
}

#endif
