/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a context has in common with those that are imported from it, ibv_import_device(3): the objects that either may import, and the
 * file behind cmd_fd, by which they know one another. The file is an empty one in memory: there is no kernel device to send commands to,
 * but programs duplicate the descriptor, hand it on and bring it back. All of it is within one process, because the memory of an MR is: a
 * descriptor that comes from another process, or from before a fork, names nothing here.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/fork.h"
#include "verbs/device.h"

static struct ur_list all = {&all, &all}; /* under UR_FORK_SHARES */

int uv_share_new(struct uv_device *device, int *cmd_fd, struct uv_share **out)
{
	struct uv_share *s = calloc(1, sizeof(*s));
	struct stat st;
	int fd, err;

	if (!s)
		return ENOMEM;
	fd = memfd_create("uroce", MFD_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		err = errno;
		if (fd >= 0)
			close(fd);
		free(s);
		return err;
	}
	atomic_init(&s->refs, 1);
	pthread_mutex_init(&s->lock, NULL);
	for (unsigned i = 0; i < UV_PD_BUCKETS; i++)
		ur_list_init(&s->pds[i]);
	ur_list_init(&s->dms);
	uv_device_get(device);
	s->device = device;
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	ur_fork_lock(UR_FORK_SHARES);
	ur_list_add_tail(&all, &s->link);
	ur_fork_unlock(UR_FORK_SHARES);
	*cmd_fd = fd;
	*out = s;
	return 0;
}

void uv_share_put(struct uv_share *s)
{
	bool last;

	ur_fork_lock(UR_FORK_SHARES);
	last = atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1;
	if (last)
		ur_list_del(&s->link);
	ur_fork_unlock(UR_FORK_SHARES);
	if (!last)
		return;
	uv_device_put(s->device);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* The one behind that descriptor, with a reference for the caller, or NULL. */
static struct uv_share *find_share(const struct stat *st)
{
	struct uv_share *found = NULL;
	struct ur_list *pos, *tmp;

	ur_fork_lock(UR_FORK_SHARES);
	ur_list_for_each_safe (pos, tmp, &all) {
		struct uv_share *s = ur_container_of(pos, struct uv_share, link);

		if (s->dev == st->st_dev && s->ino == st->st_ino)
			found = s;
	}
	if (found)
		atomic_fetch_add_explicit(&found->refs, 1, memory_order_relaxed);
	ur_fork_unlock(UR_FORK_SHARES);
	return found;
}

struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct ibv_context *ctx;
	struct uv_share *s;
	struct stat st;

	if (fstat(cmd_fd, &st))
		return NULL; /* errno is EBADF */
	s = find_share(&st);
	if (!s)
		return uv_null(EOPNOTSUPP);
	if (ur_engine_foreign(s->device->engine)) {
		uv_share_put(s);
		return uv_null(EOPNOTSUPP);
	}
	ctx = uv_context_open(s->device, cmd_fd, s);
	if (!ctx)
		uv_share_put(s);
	return ctx;
}
