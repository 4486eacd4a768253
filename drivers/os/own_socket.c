/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * socket(2) for liburoce itself and the DPDK that it loads. A library that is preloaded in order to replace a program's sockets, such as
 * librspreload of librdmacm, would otherwise replace ours too, and build on uroce what uroce is built on. It knows no descriptor that it
 * did not make, so this one call is enough. Both of our shared objects have it, and neither exports it.
 */
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int socket(int domain, int type, int protocol)
{
	return (int)syscall(SYS_socket, domain, type, protocol);
}
