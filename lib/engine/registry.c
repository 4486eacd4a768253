/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/registry.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/registry_priv.h"

#define REGISTRY_VERSION 7 /* of the layout; in the name of the file */
#define REGISTRY_MAGIC (0x75726f636500ull + REGISTRY_VERSION)
#define FILE_PREFIX "uroce-"
#define SLOTS UR_REGISTRY_SLOTS

/* Bytes of the file that are locked; they need not exist. */
#define LOCK_TABLE 0
#define LOCK_SLOT(s) (1 + (off_t)(s))

/* --- locks --- */

static int lock_byte(int fd, off_t at, short type, int cmd)
{
	struct flock fl = {.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
	int r;

	do
		r = fcntl(fd, cmd, &fl);
	while (r && errno == EINTR);
	if (r)
		return errno;
	return cmd == F_OFD_GETLK && fl.l_type != F_UNLCK ? EBUSY : 0;
}

void ur_registry_lock(struct ur_registry *r)
{
	lock_byte(r->fd, LOCK_TABLE, F_WRLCK, F_OFD_SETLKW);
}

void ur_registry_unlock(struct ur_registry *r)
{
	lock_byte(r->fd, LOCK_TABLE, F_UNLCK, F_OFD_SETLK);
}

static bool slot_alive(const struct ur_registry *r, unsigned slot)
{
	return slot == r->slot || lock_byte(r->fd, LOCK_SLOT(slot), F_WRLCK, F_OFD_GETLK) == EBUSY;
}

/* --- opening --- */

static void file_path(uint64_t key, char *path, size_t len)
{
	snprintf(path, len, "/dev/shm/" FILE_PREFIX "%u-%016llx", REGISTRY_VERSION, (unsigned long long)key);
}

static int take_slot(struct ur_registry *r)
{
	for (unsigned i = 0; i < SLOTS - 1; i++) {
		unsigned s = 1 + (r->f->next_slot + i) % (SLOTS - 1);

		if (lock_byte(r->fd, LOCK_SLOT(s), F_WRLCK, F_OFD_SETLK))
			continue;
		r->slot = (uint8_t)s;
		__atomic_store_n(&r->f->mailbox[s].pid, 0,
				 __ATOMIC_RELEASE); /* before the lease: who sees the new one must not see the old pid */
		r->f->started[s] = false;
		r->f->owner[s] = getpid();
		__atomic_store_n(&r->f->lease[s], r->f->lease[s] + 1, __ATOMIC_RELEASE);
		r->f->next_slot = s;
		return 0;
	}
	return EAGAIN;
}

/* Opens and locks the file of that name; the last process out may remove it meanwhile, then it is opened anew. */
static int open_locked(struct ur_registry *r)
{
	struct stat st;

	for (unsigned tries = 0; tries < 2000; tries++) {
		/* Others come and go, each taking the file along: out of step with them, it will be there. */
		if (tries > 10)
			nanosleep(&(struct timespec){.tv_nsec = 20000 * (1 + tries % 50)}, NULL);
		r->fd = open(r->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
		if (r->fd < 0 && errno == ENOENT) { /* O_CREAT on a file of another user may be refused in /dev/shm */
			r->fd = open(r->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
			if (r->fd >= 0)
				fchmod(r->fd, 0666);
			else if (errno == EEXIST)
				continue;
		}
		if (r->fd < 0)
			return errno;
		ur_registry_lock(r);
		if (!fstat(r->fd, &st) && st.st_nlink)
			return 0;
		close(r->fd);
	}
	return EBUSY;
}

int ur_registry_reserve(struct ur_registry *r, size_t off, size_t len)
{
	int rc;

	do
		rc = fallocate(r->fd, 0, (off_t)off, (off_t)len) ? errno : 0;
	while (rc == EINTR);
	return rc == EOPNOTSUPP ? 0 : rc; /* not a tmpfs; then it is as good as a sparse file can be */
}

static int map_file(struct ur_registry *r)
{
	int err = ftruncate(r->fd, sizeof(*r->f)) ? errno : 0;
	void *m;

	err = err ? err : ur_registry_reserve(r, 0, offsetof(struct ur_registry_file, ports)); /* the rest entry by entry */
	if (err)
		return err;
	m = mmap(NULL, sizeof(*r->f), PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (m == MAP_FAILED)
		return errno;
	r->f = m;
	if (r->f->magic != REGISTRY_MAGIC) {
		memset(r->f, 0, offsetof(struct ur_registry_file, ports));
		r->f->magic = REGISTRY_MAGIC;
	}
	return 0;
}

/* Removes the files of devices that no live process uses any more: their last owners were killed. */
static void sweep(void)
{
	DIR *d = opendir("/dev/shm");
	struct dirent *de;

	while (d && (de = readdir(d))) {
		struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
		int fd;

		if (strncmp(de->d_name, FILE_PREFIX, strlen(FILE_PREFIX)))
			continue;
		fd = openat(dirfd(d), de->d_name, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW); /* anybody may put a link there */
		if (fd < 0)
			continue;
		if (!fcntl(fd, F_OFD_SETLK, &all))
			unlinkat(dirfd(d), de->d_name, 0); /* whoever waits for the lock finds the file gone, and makes a new one */
		close(fd);
	}
	if (d)
		closedir(d);
}

int ur_registry_open(uint64_t key, struct ur_registry **out)
{
	struct ur_registry *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return ENOMEM;
	r->key = key;
	sweep();
	file_path(key, r->path, sizeof(r->path));
	err = open_locked(r);
	if (err) {
		free(r);
		return err;
	}
	err = map_file(r);
	if (!err)
		err = take_slot(r);
	ur_registry_unlock(r);
	if (err) {
		ur_registry_abandon(r);
		return err;
	}
	*out = r;
	return 0;
}

void ur_registry_abandon(struct ur_registry *r)
{
	if (r->f)
		munmap(r->f, sizeof(*r->f));
	close(r->fd);
	free(r);
}

void ur_registry_close(struct ur_registry *r)
{
	bool last = true;

	ur_registry_lock(r);
	r->f->mailbox[r->slot].pid = 0;
	ur_registry_release_all(r);
	for (unsigned s = 1; s < SLOTS && last; s++)
		last = s == r->slot || !slot_alive(r, s);
	if (last)
		unlink(r->path);
	ur_registry_abandon(r); /* closing gives up every lock */
}

uint8_t ur_registry_slot(const struct ur_registry *r)
{
	return r->slot;
}

uint64_t ur_registry_key(const struct ur_registry *r)
{
	return r->key;
}

void ur_registry_started(struct ur_registry *r, const char *kind)
{
	ur_registry_lock(r);
	snprintf(r->f->kind[r->slot], UR_REGISTRY_KIND, "%s", kind);
	r->f->started[r->slot] = true;
	ur_registry_unlock(r);
}

/* --- mailboxes --- */

void ur_registry_announce(struct ur_registry *r, pid_t pid, int fd)
{
	ur_registry_lock(r);
	r->f->mailbox[r->slot].fd = fd;
	__atomic_store_n(&r->f->mailbox[r->slot].pid, pid, __ATOMIC_RELEASE);
	ur_registry_unlock(r);
}

/* --- who shares a socket's port --- */

/* The list is others' to write: no number in it is trusted. */
static void drop_sharer(struct ur_registry_file *f, uint32_t n, uint32_t i)
{
	f->sharer[i] = f->sharer[n - 1];
	f->sharers = n - 1;
}

unsigned ur_registry_sharers_begin(struct ur_registry *r, uint8_t slots[256])
{
	struct ur_registry_file *f = r->f;
	uint32_t n;

	ur_registry_lock(r);
	n = ur_min_u32(f->sharers, SLOTS - 1);
	for (uint32_t i = 0; i < n;) {
		if (f->sharer[i] != r->slot && slot_alive(r, f->sharer[i]))
			i++;
		else
			drop_sharer(f, n--, i);
	}
	f->sharers = n;
	memcpy(slots, f->sharer, n);
	return n;
}

void ur_registry_sharers_end(struct ur_registry *r, bool in)
{
	uint32_t n = ur_min_u32(r->f->sharers, SLOTS - 1);

	if (in) {
		r->f->sharer[n] = r->slot;
		r->f->sharers = n + 1;
	}
	ur_registry_unlock(r);
}

bool ur_registry_alive(const struct ur_registry *r, uint8_t slot)
{
	return slot_alive(r, slot);
}

bool ur_registry_find(const struct ur_registry *r, uint8_t slot, uint32_t *lease, pid_t *pid, int *fd)
{
	*lease = __atomic_load_n(&r->f->lease[slot], __ATOMIC_ACQUIRE);
	*pid = __atomic_load_n(&r->f->mailbox[slot].pid, __ATOMIC_ACQUIRE);
	*fd = __atomic_load_n(&r->f->mailbox[slot].fd, __ATOMIC_ACQUIRE);
	return *pid && __atomic_load_n(&r->f->lease[slot], __ATOMIC_ACQUIRE) == *lease; /* else the slot changes hands just now */
}

/* --- looking from outside --- */

/*
 * Copies the file, and which slots are held, under a shared lock of the table: no process can take or give up a slot or port meanwhile,
 * except by dying. A file that the last process out removed after we opened it is empty of processes, as the device was at that moment.
 */
static int snapshot(int fd, struct ur_registry_file *f, bool *held)
{
	int err = lock_byte(fd, LOCK_TABLE, F_RDLCK, F_OFD_SETLKW);
	ssize_t n;

	if (err)
		return err;
	n = pread(fd, f, sizeof(*f), 0);
	if (n < 0)
		return errno;
	if (n != (ssize_t)sizeof(*f) || f->magic != REGISTRY_MAGIC) /* its maker has not got the lock yet */
		memset(f, 0, sizeof(*f));
	for (unsigned s = 1; s < SLOTS; s++)
		held[s] = f->lease[s] && lock_byte(fd, LOCK_SLOT(s), F_RDLCK, F_OFD_GETLK) == EBUSY;
	return 0;
}

static int read_file(uint64_t key, struct ur_registry_file *f, bool *held)
{
	char path[64];
	int fd, err;

	file_path(key, path, sizeof(path));
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW); /* anybody may put a FIFO or a link there */
	if (fd < 0)
		return errno == ENOENT ? 0 : errno;
	err = snapshot(fd, f, held);
	close(fd); /* gives up the lock */
	return err;
}

static unsigned ports_used(const struct ur_registry_file *f)
{
	return f->ports_used < UR_REGISTRY_PORTS ? f->ports_used : UR_REGISTRY_PORTS;
}

/* Appends the ports of a slot; returns how many. */
static unsigned view_ports(const struct ur_registry_file *f, unsigned slot, struct ur_registry_port *out)
{
	unsigned used = ports_used(f), n = 0;

	for (unsigned i = 0; i < used; i++) {
		const struct ur_port_entry *e = &f->ports[i];

		if (e->slot == slot && e->lease == f->lease[slot])
			out[n++] = (struct ur_registry_port){
				.port_space = e->port_space, .port = e->port, .listening = e->listening, .gid = e->gid};
	}
	return n;
}

static struct ur_registry_view *view_of(const struct ur_registry_file *f, const bool *held)
{
	struct ur_registry_view *v = malloc(sizeof(*v) + SLOTS * sizeof(v->processes[0]) + ports_used(f) * sizeof(struct ur_registry_port));
	struct ur_registry_port *port;

	if (!v)
		return NULL;
	v->count = 0;
	port = (struct ur_registry_port *)&v->processes[SLOTS]; /* each entry of the table has one slot, so there is room for all */
	for (unsigned s = 1; s < SLOTS; s++) {
		struct ur_registry_process *p = &v->processes[v->count];

		if (!held[s])
			continue;
		*p = (struct ur_registry_process){.pid = f->owner[s], .slot = (uint8_t)s, .started = f->started[s], .ports = port};
		memcpy(p->kind, f->kind[s], UR_REGISTRY_KIND - 1);
		p->port_count = view_ports(f, s, port);
		port += p->port_count;
		v->count++;
	}
	return v;
}

int ur_registry_look(uint64_t key, struct ur_registry_view **out)
{
	struct ur_registry_file *f = calloc(1, sizeof(*f));
	bool held[SLOTS] = {false};
	int err;

	if (!f)
		return ENOMEM;
	err = read_file(key, f, held);
	if (!err) {
		*out = view_of(f, held);
		err = *out ? 0 : ENOMEM;
	}
	free(f);
	return err;
}
