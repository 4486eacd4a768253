/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/uroce/between/proxy/proxy.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/cli/near.h"

static struct ur_proxy *proxy;

/* --- addresses --- */

struct found {
	struct sockaddr_storage addr;
	socklen_t len;
	struct ur_gid gid;
};

static bool is_unspecified(const struct ur_gid *g)
{
	const struct ur_gid v4 = ur_gid_from_v4(0);

	return ur_gid_is_zero(g) || ur_gid_eq(g, &v4);
}

/* A name stands for its first address, one of `family` if it has any. 0, or the exit status after a message. */
static int resolve(const char *name, int family, struct found *to)
{
	struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_family = family}, *a;
	int e = getaddrinfo(name, "4791", &hints, &a);

	if (e) {
		hints.ai_family = AF_UNSPEC;
		e = getaddrinfo(name, "4791", &hints, &a);
	}
	if (e)
		return ur_cmd_fail(UR_EXIT_USAGE, "cannot resolve '%s': %s", name, gai_strerror(e));
	memcpy(&to->addr, a->ai_addr, a->ai_addrlen);
	to->len = a->ai_addrlen;
	to->gid = ur_near_gid(a->ai_addr);
	freeaddrinfo(a);
	if (is_unspecified(&to->gid))
		return ur_cmd_fail(UR_EXIT_USAGE, "%s is the address of no host: give that of one", name);
	if (ur_gid_is_mcast(&to->gid))
		return ur_cmd_fail(UR_EXIT_USAGE, "%s is the address of a multicast group: give the addresses of two hosts", name);
	return 0;
}

/* A link-local address may be that of several interfaces: then it has to say which one, as the kernel does. */
static bool find_interface(const struct found *local, char name[IFNAMSIZ])
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)&local->addr;
	const struct ur_gid gid = ur_near_gid((const struct sockaddr *)&local->addr);

	if (!ur_near_interface(&gid, name, IFNAMSIZ))
		return false;
	return local->addr.ss_family != AF_INET6 || !in6->sin6_scope_id || if_indextoname(in6->sin6_scope_id, name);
}

/* The address that the host sends to: `listen`, or the one from which the kernel sends to the host. And the interface that has it. */
static int find_addr(struct ur_proxy_side *s, const char *name, const struct found *host, const char *listen, struct found *local)
{
	char text[UR_IP_TEXT];

	if (listen && local->addr.ss_family != host->addr.ss_family)
		return ur_cmd_fail(UR_EXIT_USAGE,
				   "%s cannot send to %s, which is of another family: give an IPv4 and an IPv6 address, as in --listen "
				   "10.0.0.9,fd00::9",
				   name, listen);
	if (!listen && !ur_near_local((const struct sockaddr *)&host->addr, host->len, "", &local->addr))
		return ur_cmd_fail(UR_EXIT_FAIL, "there is no route to %s: check addresses and routes with 'ip route get %s'", name, name);
	s->addr = ur_near_gid((const struct sockaddr *)&local->addr);
	ur_gid_ip(&s->addr, text);
	if (!find_interface(local, s->ifname))
		return ur_cmd_fail(UR_EXIT_FAIL, "no interface has the address %s: give --listen an address of this machine", text);
	return 0;
}

static int find_side(struct ur_proxy_side *s, const char *name, const char *listen)
{
	struct found host = {.len = 0}, local = {.addr.ss_family = AF_UNSPEC};
	char own[IFNAMSIZ];
	int status = listen ? resolve(listen, AF_UNSPEC, &local) : 0;

	if (!status)
		status = resolve(name, local.addr.ss_family, &host);
	if (status)
		return status;
	s->host = host.gid;
	if (ur_near_interface(&s->host, own, sizeof(own)))
		return ur_cmd_fail(UR_EXIT_USAGE, "%s is this machine: give the addresses of two other hosts", name);
	return find_addr(s, name, &host, listen, &local);
}

/* Hosts of one family have their own addresses on the cable; otherwise an IPv4 host has the one that the other host takes for it. */
static void name_sides(struct ur_proxy *x)
{
	const bool mixed = ur_gid_is_v4(&x->side[0].host) != ur_gid_is_v4(&x->side[1].host);

	for (unsigned i = 0; i < 2; i++) {
		struct ur_proxy_side *s = &x->side[i];

		s->as = mixed && ur_gid_is_v4(&s->host) ? x->side[!i].addr : s->host;
	}
	for (unsigned i = 0; i < 2; i++) {
		struct ur_proxy_side *s = &x->side[i];

		s->in = (struct ur_readdress){.src = s->as, .dst = x->side[!i].as};
		s->out = (struct ur_readdress){.src = s->addr, .dst = s->host, .as_sent = true};
	}
}

/* --- of struct ur_between_kind --- */

static int open_port(struct ur_proxy *x, struct ur_proxy_side *s)
{
	const struct ur_udp_config cfg = {.ifname = s->ifname, .alone = true, .hops = true};
	struct epoll_event readable = {.events = EPOLLIN};
	char err[400];
	int e;

	s->ifindex = if_nametoindex(s->ifname);
	if (s->number && strcmp(s->ifname, x->side[0].ifname) == 0)
		return 0;
	s->port = x->nports;
	e = ur_udp_open(&cfg, &x->port[s->port].port, err, sizeof(err));
	if (e == EADDRINUSE)
		return ur_cmd_fail(
			UR_EXIT_FAIL,
			"UDP port 4791 of interface %s is in use, by a program under uroce or by rdma_rxe: end that program or remove that "
			"device ('ss -uapn sport = :4791' and 'rdma link' show them), or choose an address of another interface",
			s->ifname);
	if (e)
		return ur_cmd_fail(UR_EXIT_FAIL, "%s", err);
	x->nports++;
	if (epoll_ctl(x->fd, EPOLL_CTL_ADD, ur_queue_wake_fd(x->port[s->port].port->queue), &readable))
		return ur_cmd_fail(UR_EXIT_FAIL, "cannot wait for packets: %s", strerror(errno));
	return 0;
}

static bool open_both(struct ur_proxy *x)
{
	struct epoll_event readable = {.events = EPOLLIN};

	x->fd = epoll_create1(EPOLL_CLOEXEC);
	x->more = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (x->fd < 0 || x->more < 0 || epoll_ctl(x->fd, EPOLL_CTL_ADD, x->more, &readable)) {
		ur_cmd_fail(0, "cannot wait for packets: %s", strerror(errno));
		return false;
	}
	if (open_port(x, &x->side[0]) || open_port(x, &x->side[1]))
		return false;
	return true;
}

/* The first end opens it for both, and the second end closes it. */
static bool open_end(struct ur_between_end *e)
{
	const struct ur_proxy_side *s = e->state;

	if (!s->number && !open_both(s->proxy))
		return false;
	e->fd = s->proxy->fd;
	return true;
}

static void close_end(struct ur_between_end *e)
{
	struct ur_proxy_side *s = e->state;
	struct ur_proxy *x = s->proxy;

	if (!s->number)
		return;
	for (unsigned i = 0; i < x->nports; i++)
		x->port[i].port->ops->close(x->port[i].port);
	if (x->fd >= 0)
		close(x->fd);
	if (x->more >= 0)
		close(x->more);
	free(x);
	proxy = NULL;
}

static const char *missing_interface(const struct ur_between_end *e)
{
	const struct ur_proxy_side *s = e->state;
	char name[IFNAMSIZ];

	return !s->ifindex || if_indextoname(s->ifindex, name) || errno != ENXIO ? NULL : s->ifname;
}

/* If both hosts use one interface, it is unknown whose packets were lost: they count as those of the first. */
static void read_statistics(struct ur_between_end *e)
{
	const struct ur_proxy_side *s = e->state;

	struct ur_port *port = s->port == s->number ? s->proxy->port[s->port].port : NULL;

	if (!port)
		return;
	ur_udp_missed(port);
	e->kernel_lost = port->queue->rx_missed;
}

static const struct ur_between_kind kind = {
	.prefix = "",
	.open = open_end,
	.close = close_end,
	.receive = ur_proxy_receive,
	.queue = ur_proxy_queue,
	.flush = ur_proxy_flush,
	.gone = missing_interface,
	.statistics = read_statistics,
};

int ur_between_proxy(struct ur_between_run *r, char *const host[2], const char *listen)
{
	char *const first = listen ? strdup(listen) : NULL, *const comma = first ? strchr(first, ',') : NULL;
	int status = 0;

	proxy = calloc(1, sizeof(*proxy));
	if (!proxy || (listen && !first)) {
		free(first);
		return ur_cmd_fail(UR_EXIT_FAIL, "out of memory: free some and try again");
	}
	if (comma)
		*comma = 0;
	proxy->fd = proxy->more = -1;
	proxy->seen = &r->proxied;
	for (unsigned i = 0; i < 2 && !status; i++) {
		struct ur_proxy_side *s = &proxy->side[i];

		s->proxy = proxy;
		s->number = i;
		status = find_side(s, host[i], i && comma ? comma + 1 : first);
		r->end[i] = (struct ur_between_end){.name = host[i], .kind = &kind, .state = s, .fd = -1};
		ur_gid_ip(&s->addr, r->proxied.address[i]);
	}
	free(first);
	if (!status && ur_gid_eq(&proxy->side[0].host, &proxy->side[1].host))
		status = ur_cmd_fail(UR_EXIT_USAGE,
				     "%s and %s are one host: give two hosts, because a proxy tells them apart by their addresses", host[0],
				     host[1]);
	if (status)
		return status;
	name_sides(proxy);
	r->proxied.is = true;
	return 0;
}
