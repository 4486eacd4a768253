/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE /* Linux 5.1 */
#define F_SEAL_FUTURE_WRITE 0x10
#endif

void *ur_sealed_create(const char *name, size_t len, int *fd)
{
	int memfd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING), err;
	void *m = MAP_FAILED;

	*fd = -1;
	if (memfd < 0)
		return NULL;
	if (!fchmod(memfd, 0400) && !ftruncate(memfd, (off_t)len) && !fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		m = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memfd, 0);
	if (m == MAP_FAILED) {
		err = errno;
		close(memfd);
		errno = err;
		return NULL;
	}
	fcntl(memfd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
	fcntl(memfd, F_ADD_SEALS, F_SEAL_SEAL);
	*fd = memfd;
	return m;
}
