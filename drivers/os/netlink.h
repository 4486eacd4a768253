/* SPDX-License-Identifier: BSD-3-Clause */
/* One request of netlink(7) and the whole of its answer: what the kernel lists, or whether it did what was asked. */
#ifndef UR_DRIVERS_NETLINK_H
#define UR_DRIVERS_NETLINK_H

#include <libmnl/libmnl.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A request of `type` with NLM_F_REQUEST | `flags`, which begins with the `len` bytes of `header`; attributes may be put after it
 * (mnl_attr_put), 4096 bytes at the most. To be given to ur_netlink_end, which frees it. NULL: there is no memory.
 */
struct nlmsghdr *ur_netlink_begin(uint16_t type, uint16_t flags, const void *header, size_t len);

/*
 * Sends the request over a socket of its own to `bus` (NETLINK_ROUTE, ...) and hands each message of the answer to `cb`, which may be NULL:
 * all messages of a list (NLM_F_DUMP), up to the acknowledgement (NLM_F_ACK), otherwise one datagram. 0 or an errno: ENOMEM when there is
 * no request, EINTR when something changed while it was listed, so that what `cb` has got is in part old; else what the kernel answers.
 */
int ur_netlink_end(int bus, struct nlmsghdr *request, mnl_cb_t cb, void *data);

/* Lists all of `type`. Errors as above. */
int ur_netlink_dump(int bus, uint16_t type, const void *header, size_t len, mnl_cb_t cb, void *data);

#endif
