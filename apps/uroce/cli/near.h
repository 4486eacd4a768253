/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of this machine, and those of hosts that programs here talk to over UDP sockets. */
#ifndef UR_APP_NEAR_H
#define UR_APP_NEAR_H

#include <stdbool.h>
#include <sys/socket.h>

#include "wire/pkt.h"

/* An IPv4 or IPv6 address as a GID, and as text. */
struct ur_gid ur_near_gid(const struct sockaddr *a);
bool ur_near_text(const struct sockaddr *a, socklen_t len, char *to, size_t room);
/* The address that the kernel would use towards a peer, from interface `dev` unless that is empty. */
bool ur_near_local(const struct sockaddr *peer, socklen_t len, const char *dev, struct sockaddr_storage *local);
/* The interface that has the address; false: none has. */
bool ur_near_interface(const struct ur_gid *local, char *name, size_t room);

#endif
