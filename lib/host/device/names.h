/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names that one process at a time can hold: abstract Unix sockets (unix(7)). The kernel keeps them for each network namespace,
 * independent of user, PID namespace and mount namespace of the holder, assigns them atomically, and releases them when the holder dies.
 * Nobody can send anything to the holder of a name: it only shows who was first.
 */
#ifndef UR_NAMES_H
#define UR_NAMES_H

#include "base/base.h"

#define UR_NAME_MAX 100

/* A descriptor that holds the name until it is closed, or -1 and errno: EADDRINUSE when somebody has it. */
int ur_name_hold(const char *name);
/* Does anybody hold it? `probe` is a descriptor of ur_name_probe. One system call. */
bool ur_name_held(int probe, const char *name);
/* A descriptor to ask with, or -1 and errno. */
int ur_name_probe(void);

/*
 * A socket of type SOCK_SEQPACKET with that name: bound where `hold`, else connected to the listener there; never blocking. -1 and
 * errno: EADDRINUSE; ECONNREFUSED when nobody listens, EAGAIN when too many wait there.
 */
int ur_name_socket(const char *name, bool hold);

#endif
