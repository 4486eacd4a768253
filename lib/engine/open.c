/* SPDX-License-Identifier: BSD-3-Clause */
/* The engines of this process, one for each device: their making at the first call, and what a forked child does with its parent's. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/internal.h"

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static struct ur_engine *first;
static struct ur_port *inherited[UR_DEVICES][UR_LANES]; /* in a forked child: its parent's ports */
static struct ur_engine *parents;             /* and its parent's engines, which inherited objects refer to; for checkers of leaks alone */

/* --- making --- */

void ur_engine_free(struct ur_engine *e)
{
	if (e->tracer)
		ur_tracer_close(e->tracer);
	ur_nic_destroy(e->nic);
	if (e->local)
		ur_local_close(e->local);
	if (e->registry)
		ur_registry_close(e->registry);
	if (e->farewells)
		ur_farewells_close(e->farewells);
	if (e->publisher)
		ur_publisher_close(e->publisher);
	if (e->wake_fd >= 0)
		close(e->wake_fd);
	free(e->faults);
	free(e);
}

int ur_engine_name_file(char *path, size_t room, unsigned index)
{
	char all[PATH_MAX];
	const char *base = strrchr(path, '/'), *dot = strrchr(base ? base : path, '.');
	const size_t stem = dot ? (size_t)(dot - path) : strlen(path);
	struct stat st;

	if (!index || !*path || !strcmp(path, "-") || (stat(path, &st) == 0 && S_ISCHR(st.st_mode)))
		return 0;
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		ur_engine_set_error("'%s' is no regular file, and several devices cannot share another: name a file", path);
		return EINVAL;
	}
	snprintf(all, sizeof(all), "%s", path);
	if ((size_t)snprintf(path, room, "%.*s.uroce%u%s", (int)stem, all, index, all + stem) < room)
		return 0;
	ur_engine_set_error("'%s' is too long for a file of uroce%u beside it: choose a shorter name", all, index);
	return ENAMETOOLONG;
}

/* Of all devices: the interfaces of a pattern are those of this moment. */
static int load_settings(struct ur_config *c)
{
	char err[512];
	int r = ur_config_load(c, err, sizeof(err));

	r = r ? r : ur_device_expand(c, err, sizeof(err));
	if (r)
		ur_engine_set_error("%s", err);
	return r;
}

static int name_files(struct ur_engine *e)
{
	int r = ur_engine_name_file(e->cfg.capture, sizeof(e->cfg.capture), e->index);

	r = r ? r : ur_engine_name_file(e->cfg.trace, sizeof(e->cfg.trace), e->index);
	return r ? r : ur_engine_name_file(e->cfg.counters, sizeof(e->cfg.counters), e->index);
}

/* What a file would be named by is the first lane's. */
static void leave_files(struct ur_engine *e)
{
	e->cfg.capture[0] = e->cfg.trace[0] = e->cfg.counters[0] = 0;
}

int ur_engine_create(const struct ur_config *c, unsigned index, struct ur_engine *device, unsigned lane, struct ur_engine **out)
{
	struct ur_engine *e = aligned_alloc(64, sizeof(*e));
	int r;

	if (!e) {
		ur_engine_set_error("out of memory or address space: free some, or raise the limit with 'ulimit -v'");
		return ENOMEM;
	}
	memset(e, 0, sizeof(*e));
	e->index = index;
	e->cfg = *c;
	e->lane = lane;
	e->device = device ? device : e;
	e->at[0] = e;
	atomic_init(&e->lanes, 1);
	pthread_mutex_init(&e->nic_lock, NULL);
	pthread_mutex_init(&e->info_lock, NULL);
	pthread_mutex_init(&e->dma_lock, NULL);
	pthread_mutex_init(&e->start_lock, NULL);
	pthread_cond_init(&e->start_cond, NULL);
	ur_costs_init(&e->costs);
	ur_list_init(&e->watches);
	e->monitor_fd = e->silence_fd = -1;
	e->steer_at = e->publish_at = UR_TIME_NEVER;
	e->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = e->wake_fd < 0 ? errno : 0;
	if (r)
		ur_engine_set_error("no file descriptors are left: raise the limit with ulimit -n");
	if (lane)
		leave_files(e);
	else
		r = r ? r : name_files(e);
	r = r ? r : lane ? ur_engine_nic_join(e) : ur_engine_nic_open(e);
	e->log_chosen = ur_config_chosen("log");
	e->stderr_is_terminal = isatty(STDERR_FILENO);
	if (r) {
		ur_engine_free(e);
		return r;
	}
	*out = e;
	return 0;
}

/* One engine for each device that the settings name, in their order. */
static int create_all(struct ur_engine **out)
{
	struct ur_engine *all = NULL, **end = &all, *e;
	struct ur_config c;
	int r;

	ur_config_warn();
	r = load_settings(&c);
	for (unsigned i = 0; !r && i < ur_device_count(&c); i++) {
		r = ur_engine_create(&c, i, NULL, 0, end);
		if (!r)
			end = &(*end)->next;
	}
	while (r && (e = all)) {
		all = e->next;
		ur_engine_free(e);
	}
	*out = all;
	return r;
}

/* The child of a fork owns nothing of its parent's engine: neither its port nor its slot nor the locks that other threads held. */
static void forsake(struct ur_engine *e)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
	struct ur_port *port = e->nic->port, **kept = &inherited[e->index][e->lane];

	atomic_store(&e->foreign, true);
	e->info_lock = fresh;
	e->dma_lock = fresh;
	if (e->local)
		ur_local_abandon(e->local);
	if (e->registry)
		ur_registry_abandon(e->registry);
	if (e->farewells)
		ur_farewells_close(e->farewells);
	if (e->tracer)
		ur_tracer_forget(e->tracer);
	if (e->publisher)
		ur_publisher_close(e->publisher);
	e->publisher = NULL;
	e->publish_at = UR_TIME_NEVER;
	e->farewells = NULL;
	e->local = NULL;
	e->registry = NULL;
	ur_nic_leave_siblings(e->nic);
	if (port)
		*kept = port;
	if (*kept && (*kept)->ops->forsake)
		(*kept)->ops->forsake(*kept);
	e->nic->port = NULL;
	e->state = UR_ENGINE_STOPPED;
	e->parents = parents;
	parents = e;
}

static void forked_child(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	opening = fresh;
	ur_ending_forked();
	for (struct ur_engine *e = first, *next; e; e = next) {
		next = e->next;
		forsake(e);
	}
	first = NULL;
}

struct ur_port *ur_engine_take_inherited_port(const struct ur_engine *e)
{
	struct ur_port *port = inherited[e->index][e->lane];

	inherited[e->index][e->lane] = NULL;
	return port;
}

/* ur_engine_current reads `first` without the lock, so it is set once the engines are whole. */
int ur_engine_open(struct ur_engine **out)
{
	static bool hooked;
	struct ur_engine *e;
	int r = 0;

	pthread_mutex_lock(&opening);
	if (!hooked)
		hooked = pthread_atfork(NULL, NULL, forked_child) == 0;
	e = first;
	if (!e) {
		r = create_all(&e);
		__atomic_store_n(&first, e, __ATOMIC_RELEASE);
	}
	*out = e;
	pthread_mutex_unlock(&opening);
	return r;
}

int ur_engine_configure(const char *name, const char *value)
{
	char err[256];
	int r = EBUSY;

	pthread_mutex_lock(&opening);
	if (!first)
		r = ur_config_set(name, value, err, sizeof(err));
	else
		snprintf(err, sizeof(err), "setting %s comes too late: set it before the first verbs or rdmacm call", name);
	pthread_mutex_unlock(&opening);
	if (r)
		ur_engine_set_error("%s", err);
	return r;
}

struct ur_engine *ur_engine_current(void)
{
	return __atomic_load_n(&first, __ATOMIC_ACQUIRE);
}

struct ur_engine *ur_engine_next(const struct ur_engine *e)
{
	struct ur_engine *next = __atomic_load_n(&e->next, __ATOMIC_ACQUIRE);

	return next && !next->lane ? next : NULL; /* lanes stand behind all devices */
}

/* Under UR_FORK_LANES; others walk along the list meanwhile. */
void ur_engine_append(struct ur_engine *e)
{
	struct ur_engine *last = first;

	while (last->next)
		last = last->next;
	__atomic_store_n(&last->next, e, __ATOMIC_RELEASE);
}
