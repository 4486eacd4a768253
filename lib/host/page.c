/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/page.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "host/sealed.h"

static uint32_t new_id(void)
{
	uint32_t id;

	if (getrandom(&id, sizeof(id), 0) != sizeof(id))
		id = (uint32_t)getpid();
	return id ? id : 1;
}

static const uint32_t ring_sizes[] = UR_MAILRING_SIZES;
#define SMALLEST (ur_array_size(ring_sizes) - 1)

/* Where address space is limited the program has a use for it, too. */
static bool is_modest(size_t len)
{
	enum { SHARE = 8 };
	struct rlimit space;

	return getrlimit(RLIMIT_AS, &space) || space.rlim_cur / SHARE >= len;
}

static void *create_page(uint32_t ring_bytes, int *memfd)
{
	return ur_sealed_create_partly("uroce-page", ur_page_bytes(ring_bytes), UR_PAGE_SHOWN, memfd);
}

int ur_page_create(struct ur_own_page *own, uint8_t slot)
{
	*own = (struct ur_own_page){.slot = slot, .id = new_id(), .memfd = -1, .wake_fd = -1};
	for (unsigned i = 0; i <= SMALLEST && !own->page; i++) {
		own->ring_bytes = ring_sizes[i];
		if (i == SMALLEST || is_modest(ur_page_bytes(own->ring_bytes)))
			own->page = create_page(own->ring_bytes, &own->memfd);
	}
	if (!own->page)
		return errno;
	own->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return own->wake_fd < 0 ? errno : 0;
}

bool ur_page_open_ring(const struct ur_own_page *own, uint8_t slot)
{
	return !mprotect(ur_page_ring(own, slot), own->ring_bytes, PROT_READ | PROT_WRITE);
}

void ur_page_close(struct ur_own_page *own)
{
	if (own->page)
		munmap(own->page, ur_page_bytes(own->ring_bytes));
	if (own->memfd >= 0)
		close(own->memfd);
	if (own->wake_fd >= 0)
		close(own->wake_fd);
	*own = (struct ur_own_page){.memfd = -1, .wake_fd = -1};
}

uint32_t ur_page_check(int memfd)
{
	const int size = F_SEAL_SHRINK | F_SEAL_GROW;
	int seals = fcntl(memfd, F_GET_SEALS);
	struct statfs fs;
	struct stat st;

	if (seals < 0 || (seals & size) != size || fstatfs(memfd, &fs) || fs.f_type != TMPFS_MAGIC || fstat(memfd, &st))
		return 0;
	for (unsigned i = 0; i <= SMALLEST; i++)
		if (st.st_size == (off_t)ur_page_bytes(ring_sizes[i]))
			return ring_sizes[i];
	return 0;
}

/* Writing to anything else might wait, or raise a signal. All descriptors of this kind share one inode. */
static bool is_eventfd(const struct ur_own_page *own, int fd)
{
	struct stat ours, st;

	return !fstat(own->wake_fd, &ours) && !fstat(fd, &st) && st.st_dev == ours.st_dev && st.st_ino == ours.st_ino;
}

static bool map(struct ur_sibling *s, const struct ur_own_page *own, int memfd)
{
	void *shown = mmap(NULL, UR_PAGE_SHOWN, PROT_READ, MAP_SHARED, memfd, 0);
	void *ring = mmap(NULL, s->ring_bytes, PROT_READ, MAP_SHARED, memfd, (off_t)(UR_PAGE_SHOWN + (size_t)own->slot * s->ring_bytes));

	s->page = shown == MAP_FAILED ? NULL : shown;
	s->ring = ring == MAP_FAILED ? NULL : ring;
	return s->page && s->ring;
}

struct ur_sibling *ur_sibling_map(const struct ur_own_page *own, int memfd, int wake_fd, uint32_t id, uint8_t slot, pid_t pid)
{
	struct ur_sibling *s = calloc(1, sizeof(*s));
	const uint32_t ring_bytes = ur_page_check(memfd);
	bool sound = s && id && slot && slot != own->slot && ring_bytes && is_eventfd(own, wake_fd);

	if (s)
		*s = (struct ur_sibling){.ring_bytes = ring_bytes, .wake_fd = wake_fd, .id = id, .slot = slot, .pid = pid};
	else
		close(wake_fd);
	sound = sound && map(s, own, memfd);
	close(memfd);
	if (sound)
		return s;
	if (s)
		ur_sibling_free(s);
	return NULL;
}

void ur_sibling_free(struct ur_sibling *s)
{
	if (s->page)
		munmap((void *)(uintptr_t)s->page, UR_PAGE_SHOWN);
	if (s->ring)
		munmap((void *)(uintptr_t)s->ring, s->ring_bytes);
	close(s->wake_fd);
	free(s);
}
