/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/file_limit.h"

#ifndef F_SEAL_FUTURE_WRITE /* Linux 5.1 */
#define F_SEAL_FUTURE_WRITE 0x10
#endif

/* Nothing of it can be read when it is mapped, so that a program whose memory is locked (MCL_FUTURE) gets no more than it opens. */
static void *map(int memfd, size_t len, size_t open)
{
	void *m = mmap(NULL, len, PROT_NONE, MAP_SHARED | MAP_NORESERVE, memfd, 0);

	if (m == MAP_FAILED || !mprotect(m, open, PROT_READ | PROT_WRITE))
		return m;
	munmap(m, len);
	return MAP_FAILED;
}

static int set_length(int fd, size_t len)
{
	struct ur_file_limit limit;
	int r;

	ur_file_limit_begin(&limit);
	r = ftruncate(fd, (off_t)len);
	ur_file_limit_end(&limit);
	return r;
}

void *ur_sealed_create(const char *name, size_t len, int *fd)
{
	return ur_sealed_create_partly(name, len, len, fd);
}

void *ur_sealed_create_partly(const char *name, size_t len, size_t open, int *fd)
{
	int memfd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING), err;
	void *m = MAP_FAILED;

	*fd = -1;
	if (memfd < 0)
		return NULL;
	if (!fchmod(memfd, 0400) && !set_length(memfd, len) && !fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		m = map(memfd, len, open);
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
