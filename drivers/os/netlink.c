/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/os/netlink.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define BUF 32768 /* what the kernel fills at the most for a list, whatever the page size */

struct nlmsghdr *ur_netlink_begin(uint16_t type, uint16_t flags, const void *header, size_t len)
{
	void *buf = malloc(BUF);
	struct nlmsghdr *nlh;

	if (!buf)
		return NULL;
	nlh = mnl_nlmsg_put_header(buf);
	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	nlh->nlmsg_seq = 1;
	memcpy(mnl_nlmsg_put_extra_header(nlh, len), header, len);
	return nlh;
}

/* The answers take the place of the request. */
static int converse(struct mnl_socket *nl, struct nlmsghdr *nlh, mnl_cb_t cb, void *data)
{
	const bool more = nlh->nlmsg_flags & (NLM_F_DUMP | NLM_F_ACK);
	ssize_t n;

	if (mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) || mnl_socket_sendto(nl, nlh, nlh->nlmsg_len) < 0)
		return errno;
	do {
		n = mnl_socket_recvfrom(nl, nlh, BUF);
		if (n > 0)
			n = mnl_cb_run(nlh, (size_t)n, 1, mnl_socket_get_portid(nl), cb, data);
	} while (more && n > 0);
	return n < 0 ? errno : 0;
}

int ur_netlink_end(int bus, struct nlmsghdr *request, mnl_cb_t cb, void *data)
{
	struct mnl_socket *nl;
	int rc = ENOMEM;

	if (!request)
		return rc;
	nl = mnl_socket_open2(bus, SOCK_CLOEXEC);
	rc = nl ? converse(nl, request, cb, data) : errno;
	if (nl)
		mnl_socket_close(nl);
	free(request);
	return rc;
}

int ur_netlink_dump(int bus, uint16_t type, const void *header, size_t len, mnl_cb_t cb, void *data)
{
	return ur_netlink_end(bus, ur_netlink_begin(type, NLM_F_DUMP, header, len), cb, data);
}
