/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/page.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
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

int ur_page_create(struct ur_own_page *own, uint8_t slot)
{
	*own = (struct ur_own_page){.slot = slot, .id = new_id(), .wake_fd = -1};
	own->page = ur_sealed_create_partly("uroce-page", sizeof(*own->page), UR_PAGE_SHOWN, &own->memfd);
	if (!own->page)
		return errno;
	own->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return own->wake_fd < 0 ? errno : 0;
}

bool ur_page_open_ring(const struct ur_own_page *own, uint8_t slot)
{
	return !mprotect(own->page->ring[slot], UR_MAILRING_BYTES, PROT_READ | PROT_WRITE);
}

void ur_page_close(struct ur_own_page *own)
{
	if (own->page)
		munmap(own->page, sizeof(*own->page));
	if (own->memfd >= 0)
		close(own->memfd);
	if (own->wake_fd >= 0)
		close(own->wake_fd);
	*own = (struct ur_own_page){.memfd = -1, .wake_fd = -1};
}

bool ur_page_is_sound(int memfd)
{
	const int size = F_SEAL_SHRINK | F_SEAL_GROW;
	int seals = fcntl(memfd, F_GET_SEALS);
	struct statfs fs;
	struct stat st;

	return seals >= 0 && (seals & size) == size && !fstatfs(memfd, &fs) && fs.f_type == TMPFS_MAGIC && !fstat(memfd, &st) &&
	       st.st_size == (off_t)sizeof(struct ur_page);
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
	void *ring = mmap(NULL, UR_MAILRING_BYTES, PROT_READ, MAP_SHARED, memfd, (off_t)offsetof(struct ur_page, ring[own->slot]));

	s->page = shown == MAP_FAILED ? NULL : shown;
	s->ring = ring == MAP_FAILED ? NULL : ring;
	return s->page && s->ring;
}

struct ur_sibling *ur_sibling_map(const struct ur_own_page *own, int memfd, int wake_fd, uint32_t id, uint8_t slot, pid_t pid)
{
	struct ur_sibling *s = calloc(1, sizeof(*s));
	bool sound = s && id && slot && slot != own->slot && ur_page_is_sound(memfd) && is_eventfd(own, wake_fd);

	if (s)
		*s = (struct ur_sibling){.wake_fd = wake_fd, .id = id, .slot = slot, .pid = pid};
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
		munmap((void *)(uintptr_t)s->ring, UR_MAILRING_BYTES);
	close(s->wake_fd);
	free(s);
}
