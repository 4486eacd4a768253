/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that this process writes and others read: its page, what it publishes of itself, its farewells. */
#ifndef UR_SEALED_H
#define UR_SEALED_H

#include <stddef.h>

/*
 * `len` bytes of zeros, mapped for as long as the process wants them (munmap). A process that is given *fd, or finds it in /proc, can map
 * them to be read: the size is sealed, so that they do not vanish under a reader, and from Linux 5.1 on nothing else than this mapping
 * writes to them. Before, a process of the same user could. `name` is what memfd_create(2) calls them. NULL with errno, and *fd -1: EFBIG
 * where files may not be as long (ulimit -f).
 */
void *ur_sealed_create(const char *name, size_t len, int *fd);
/*
 * The same, of which the first `open` bytes can be used, and further ones, whole pages, after mprotect(2). What cannot be used has no
 * memory, whatever the program does: mlockall(2) makes all resident that can.
 */
void *ur_sealed_create_partly(const char *name, size_t len, size_t open, int *fd);

#endif
