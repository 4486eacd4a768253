/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/pci/vfio.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/vfio.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define CONTAINER "/dev/vfio/vfio"
#define GROUPS "/dev/vfio/"
#define DEVICE "anon_inode:[vfio-device]"

/* --- descriptors --- */

static bool has(const struct ur_vfio_fds *fds, int fd)
{
	for (unsigned i = 0; fds && i < fds->n; i++)
		if (fds->fd[i] == fd)
			return true;
	return false;
}

void ur_vfio_find(const struct ur_vfio_fds *before, struct ur_vfio_fds *out)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;

	*out = (struct ur_vfio_fds){.container = -1};
	while (d && (e = readdir(d)) && out->n < UR_VFIO_FDS) {
		char to[64] = "";
		int fd = atoi(e->d_name);

		if (readlinkat(dirfd(d), e->d_name, to, sizeof(to) - 1) < 0 || has(before, fd))
			continue;
		if (strncmp(to, GROUPS, strlen(GROUPS)) && strcmp(to, DEVICE))
			continue;
		if (!strcmp(to, CONTAINER) && out->container < 0)
			out->container = fd;
		out->fd[out->n++] = fd;
	}
	if (d)
		closedir(d);
}

/* A child's copy of such a mapping would keep the device open. */
static void hide_registers(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		unsigned long from, to;

		if (strstr(line, DEVICE) && sscanf(line, "%lx-%lx", &from, &to) == 2)
			madvise((void *)from, to - from, MADV_DONTFORK);
	}
	if (f)
		fclose(f);
}

void ur_vfio_keep_private(const struct ur_vfio_fds *fds)
{
	for (unsigned i = 0; i < fds->n; i++)
		fcntl(fds->fd[i], F_SETFD, FD_CLOEXEC);
	hide_registers();
}

void ur_vfio_leave(const struct ur_vfio_fds *fds)
{
	for (unsigned i = 0; i < fds->n; i++)
		close(fds->fd[i]);
}

/* --- memory --- */

struct ur_vfio_memory {
	pthread_mutex_t lock; /* of `space`; the kernel has its own */
	struct ur_iova_space space;
	int container;
	uint64_t page;
};

#define INFO_MAX 4096
#define OLD_WIDTH 39 /* what may be counted on where the kernel does not say (before Linux 5.4) */

/* Which bus addresses there are; returns how many ranges. */
static size_t ranges_of(const struct vfio_iommu_type1_info *info, struct ur_iova_range *to, size_t max)
{
	const struct vfio_info_cap_header *h;
	const uint8_t *bytes = (const uint8_t *)info;
	size_t n = 0;

	for (uint32_t at = info->flags & VFIO_IOMMU_INFO_CAPS ? info->cap_offset : 0; at && at <= INFO_MAX - sizeof(*h); at = h->next) {
		const struct vfio_iommu_type1_info_cap_iova_range *cap;

		h = (const void *)(bytes + at);
		cap = (const void *)h;
		if (h->id != VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE || at > INFO_MAX - sizeof(*cap))
			continue;
		for (; n < cap->nr_iovas && n < max && (const uint8_t *)&cap->iova_ranges[n + 1] <= bytes + INFO_MAX; n++)
			to[n] = (struct ur_iova_range){cap->iova_ranges[n].start, cap->iova_ranges[n].end};
		return n;
	}
	to[0] = (struct ur_iova_range){0, (1ull << OLD_WIDTH) - 1};
	return 1;
}

static bool window_of(int container, uint64_t *begin, uint64_t *end)
{
	union {
		struct vfio_iommu_type1_info info;
		uint8_t room[INFO_MAX];
	} u = {.info = {.argsz = sizeof(u)}};
	struct ur_iova_range ranges[64];

	if (ioctl(container, VFIO_IOMMU_GET_INFO, &u.info))
		return false;
	return ur_iova_window(ranges, ranges_of(&u.info, ranges, sizeof(ranges) / sizeof(ranges[0])), begin, end);
}

int ur_vfio_open(int container, struct ur_vfio_memory **out)
{
	struct ur_vfio_memory *m;
	uint64_t begin, end;

	if (container < 0 || !window_of(container, &begin, &end))
		return EOPNOTSUPP;
	m = calloc(1, sizeof(*m));
	if (!m)
		return ENOMEM;
	pthread_mutex_init(&m->lock, NULL);
	ur_iova_init(&m->space, begin, end);
	m->container = container;
	m->page = (uint64_t)sysconf(_SC_PAGESIZE);
	*out = m;
	return 0;
}

static void take_away(const struct ur_vfio_memory *m, uint64_t iova, uint64_t size)
{
	struct vfio_iommu_type1_dma_unmap u = {.argsz = sizeof(u), .iova = iova, .size = size};

	ioctl(m->container, VFIO_IOMMU_UNMAP_DMA, &u);
}

void ur_vfio_close(struct ur_vfio_memory *m)
{
	for (size_t i = 0; i < m->space.n; i++) {
		const struct ur_iova_range *r = &m->space.used[i];

		if (r->last >= r->first)
			take_away(m, r->first, r->last - r->first + 1);
	}
	ur_iova_fini(&m->space);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

/* The whole pages that hold it. */
static void pages_of(const struct ur_vfio_memory *m, const void *addr, size_t len, uint64_t *from, uint64_t *size)
{
	*from = (uintptr_t)addr & ~(m->page - 1);
	*size = (((uintptr_t)addr + len + m->page - 1) & ~(m->page - 1)) - *from;
}

/*
 * Writable for the device, too, though nobody tells it to write there: the kernel then makes the pages this process's own (of one that was
 * only read so far, say), so that they are the ones that it writes to later.
 */
static int map_dma(const struct ur_vfio_memory *m, uint64_t from, uint64_t size, uint64_t iova)
{
	struct vfio_iommu_type1_dma_map d = {.argsz = sizeof(d),
					     .flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
					     .vaddr = from,
					     .iova = iova,
					     .size = size};

	return ioctl(m->container, VFIO_IOMMU_MAP_DMA, &d) ? errno : 0;
}

int ur_vfio_map(struct ur_vfio_memory *m, const void *addr, size_t len, uint64_t *shift)
{
	uint64_t from, size, iova;
	int rc;

	pages_of(m, addr, len, &from, &size);
	pthread_mutex_lock(&m->lock);
	rc = ur_iova_take(&m->space, from, size, &iova);
	pthread_mutex_unlock(&m->lock);
	if (rc)
		return rc;
	rc = map_dma(m, from, size, iova);
	if (rc) {
		pthread_mutex_lock(&m->lock);
		ur_iova_give(&m->space, iova);
		pthread_mutex_unlock(&m->lock);
	}
	*shift = iova - from;
	return rc;
}

void ur_vfio_unmap(struct ur_vfio_memory *m, const void *addr, size_t len, uint64_t shift)
{
	uint64_t from, size;

	pages_of(m, addr, len, &from, &size);
	take_away(m, from + shift, size);
	pthread_mutex_lock(&m->lock);
	ur_iova_give(&m->space, from + shift);
	pthread_mutex_unlock(&m->lock);
}
