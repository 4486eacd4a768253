/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce doctor: ICMP echo requests, which the peer's kernel answers whatever programs run there. They are sent unfragmented, as RoCEv2 is,
 * so their length shows the path MTU.
 */
#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apps/uroce/doctor/doctor.h"
#include "host/clock.h"

#define WAIT_MS 3600 /* for the first answer: a neighbour that does not exist is given up after 3 s */
#define SIZE_TRIES 3
#define SIZE_MS 300 /* for an answer of some length, and twice the time that the first took */
#define BYTES_MAX 9216

#ifndef IPV6_PMTUDISC_PROBE
#define IPV6_PMTUDISC_PROBE 3
#endif

struct ping {
	int fd;
	bool v6, raw;
	uint16_t id, seq;
};

/* Not bound to the interface: the kernel tells on lo that a neighbour does not exist. */
static bool open_ping(struct ping *p, const struct sockaddr_in6 *to)
{
	int family = p->v6 ? AF_INET6 : AF_INET, protocol = p->v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP;
	int probe = p->v6 ? IPV6_PMTUDISC_PROBE : IP_PMTUDISC_PROBE, one = 1;
	struct sockaddr_in to4 = {.sin_family = AF_INET};

	p->fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
	p->raw = p->fd < 0;
	if (p->raw)
		p->fd = socket(family, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
	if (p->fd < 0)
		return false;
	setsockopt(p->fd, p->v6 ? IPPROTO_IPV6 : IPPROTO_IP, p->v6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, &probe, sizeof(probe));
	setsockopt(p->fd, p->v6 ? IPPROTO_IPV6 : IPPROTO_IP, p->v6 ? IPV6_RECVERR : IP_RECVERR, &one, sizeof(one));
	memcpy(&to4.sin_addr, to->sin6_addr.s6_addr + 12, 4);
	p->id = (uint16_t)getpid();
	/* A failure shows when the first is sent. */
	return connect(p->fd, p->v6 ? (const struct sockaddr *)to : (struct sockaddr *)&to4, p->v6 ? sizeof(*to) : sizeof(to4)) == 0 ||
	       errno != EPERM;
}

static uint16_t checksum(const uint8_t *data, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)(data[i] << 8 | data[i + 1]);
	if (len % 2)
		sum += (uint32_t)(data[len - 1] << 8);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~((sum & 0xffff) + (sum >> 16));
}

/* An echo request that makes an IP packet of this number of bytes. 0 or an errno. */
static int send_echo(struct ping *p, unsigned ip_bytes)
{
	uint8_t m[BYTES_MAX] = {p->v6 ? ICMP6_ECHO_REQUEST : ICMP_ECHO};
	unsigned len = ip_bytes - (p->v6 ? 40 : 20);
	uint16_t sum;

	p->seq++;
	m[4] = (uint8_t)(p->id >> 8);
	m[5] = (uint8_t)p->id;
	m[6] = (uint8_t)(p->seq >> 8);
	m[7] = (uint8_t)p->seq;
	sum = checksum(m, len);
	if (!p->v6) { /* over IPv6 it is the kernel's to compute */
		m[2] = (uint8_t)(sum >> 8);
		m[3] = (uint8_t)sum;
	}
	return send(p->fd, m, len, 0) < 0 ? errno : 0;
}

/* The answer to the last request, all of it? A socket that is not raw has an id of the kernel's choice. */
static bool is_answer(const struct ping *p, const uint8_t *m, size_t n, unsigned ip_bytes)
{
	size_t skip = p->raw && !p->v6 && n ? (size_t)(m[0] & 15) * 4 : 0;

	if (n < skip + 8 || n - skip != ip_bytes - (p->v6 ? 40 : 20))
		return false;
	m += skip;
	return m[0] == (p->v6 ? ICMP6_ECHO_REPLY : ICMP_ECHOREPLY) && (m[6] << 8 | m[7]) == p->seq &&
	       (!p->raw || (m[4] << 8 | m[5]) == p->id);
}

/* 0 when the answer came, ETIMEDOUT, or what the network says. */
static int await_answer(const struct ping *p, unsigned ip_bytes, ur_time until)
{
	uint8_t m[BYTES_MAX + 64];

	for (;;) {
		struct pollfd f = {.fd = p->fd, .events = POLLIN};
		ur_time now = ur_clock_now();
		ssize_t n;

		if (now >= until || poll(&f, 1, (int)((until - now) / UR_NS_PER_MS) + 1) <= 0)
			return ETIMEDOUT;
		n = recv(p->fd, m, sizeof(m), 0);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return errno;
		if (n > 0 && is_answer(p, m, (size_t)n, ip_bytes))
			return 0;
	}
}

/* What neighbours and routers say; a rule of this host's firewall, for one, is EPERM. */
static bool is_the_networks(int err)
{
	return err == EHOSTUNREACH || err == ENETUNREACH || err == EHOSTDOWN || err == ECONNREFUSED;
}

static void first_answer(struct ping *p, struct ur_doctor_peer *peer)
{
	ur_time begin = ur_clock_now(), until = begin + WAIT_MS * UR_NS_PER_MS, sent;
	const unsigned bytes = 84; /* as ping(8) */
	int err;

	peer->ping = UR_DOCTOR_PING_SILENT;
	do {
		sent = ur_clock_now();
		err = send_echo(p, bytes);
		if (!err) {
			ur_time second = sent + UR_NS_PER_S;

			err = await_answer(p, bytes, second < until ? second : until);
		}
		if (!err) {
			peer->ping = UR_DOCTOR_PING_ANSWERS;
			peer->ping_us = (unsigned)((ur_clock_now() - sent) / UR_NS_PER_US);
			return;
		}
		if (err != ETIMEDOUT) {
			peer->ping = is_the_networks(err) ? UR_DOCTOR_PING_UNREACHABLE : UR_DOCTOR_PING_UNSENT;
			peer->ping_error = err;
			return;
		}
	} while (ur_clock_now() < until);
}

static bool answers_size(struct ping *p, const struct ur_doctor_peer *peer, unsigned bytes)
{
	ur_time wait = SIZE_MS * UR_NS_PER_MS + 2 * peer->ping_us * UR_NS_PER_US;
	int err = ETIMEDOUT;

	for (int i = 0; i < SIZE_TRIES && err && err != EMSGSIZE; i++) {
		err = send_echo(p, bytes);
		if (!err)
			err = await_answer(p, bytes, ur_clock_now() + wait);
	}
	return !err;
}

/* From the largest that this interface carries downwards. */
static void find_size(struct ping *p, struct ur_doctor_peer *peer, unsigned mtu)
{
	peer->sized = true;
	for (unsigned m = ur_doctor_path_mtu(mtu); m >= 256; m /= 2)
		if (answers_size(p, peer, ur_doctor_ip_bytes(m))) {
			peer->bytes = ur_doctor_ip_bytes(m);
			return;
		}
}

void ur_doctor_ping(struct ur_doctor_facts *f, const struct ur_doctor_targets *t)
{
	struct ur_doctor_peer *peer = &f->peer;
	struct ping p = {.v6 = peer->v6};

	if (open_ping(&p, &t->at[0].addr)) {
		first_answer(&p, peer);
		if (peer->ping == UR_DOCTOR_PING_ANSWERS)
			find_size(&p, peer, f->mtu);
	} else {
		peer->ping = UR_DOCTOR_PING_DENIED;
	}
	if (p.fd >= 0)
		close(p.fd);
}
