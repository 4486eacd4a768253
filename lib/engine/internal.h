/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the engine proper (engine.c, progress.c, ending.c, nic.c, uroce_api.c) share with one another. */
#ifndef UR_ENGINE_PRIV_H
#define UR_ENGINE_PRIV_H

#include <pthread.h>

#include "capture/capture.h"
#include "engine/engine.h"
#include "engine/policy/coalesce.h"
#include "engine/policy/costs.h"
#include "engine/policy/poller.h"
#include "engine/policy/reply.h"
#include "engine/tracer.h"
#include "engine/trouble.h"
#include "fault/inject.h"
#include "host/device/device.h"
#include "observe/publish.h"
#include "siblings/farewells.h"
#include "siblings/local.h"
#include "siblings/registry.h"

/* A kind of port (port.c). */
struct ur_port_kind {
	const char *name;
	bool lanes;  /* a process may open several of them on an interface: one for each lane */
	bool frames; /* the kernel sees RoCEv2 packets as well, and would answer them */
	int (*open)(struct ur_engine *e, struct ur_port **out, char *err);
	void (*close)(struct ur_engine *e, struct ur_port *port);
	void (*listens)(struct ur_engine *e, struct ur_port *port); /* this process listens on another port; may be NULL */
};

struct ur_engine {
	struct ur_engine *next;   /* of the process: those of the devices in the order of the setting `dev`, then further lanes (lane.c) */
	unsigned index;           /* of the device in that order */
	unsigned lane;            /* 0: the device's first, which is the device for all others */
	pthread_mutex_t nic_lock; /* guards nic and everything below it */
	int cancel_state;         /* of the thread that holds `nic_lock` */
	atomic_bool taken;        /* a hint: somebody holds it. Those who poll read this, and leave the lock's cache line to its holder */
	atomic_uint misses;       /* times that a thread found it taken, until its next holder counts them */
	atomic_uint waiters;      /* threads that wait for `nic_lock`: the progress thread lets them pass */
	struct ur_nic *nic;
	struct ur_reply reply;                           /* under the lock */
	struct ur_coalesce coalesce[UR_COALESCE_PLACES]; /* of threads that post */
	struct ur_list watches;                          /* of struct ur_engine_watch; under the lock */

	/* Who polls (poller.h). Times are of ur_engine_now; the progress thread writes `wake_at`, everybody reads it. */
	_Atomic ur_time driven_at; /* when an application last drove the NIC; 0: it is about to block */
	_Atomic ur_time wake_at;   /* until when the progress thread sleeps; 0: it is awake */
	atomic_bool aside;         /* it sleeps because an application drives, not on the port's descriptor */
	atomic_bool owes;          /* the last drive left something to be sent */
	atomic_bool once_more;     /* it said that it is about to block: one more poll does not mean that it polls on */
	int wake_fd;               /* eventfd that ends its sleep */
	struct ur_costs costs;     /* as measured so far; beside what each post reads */

	struct ur_config cfg;
	struct ur_device_info info;
	bool is_nic;                     /* the device is a PCI NIC */
	pthread_mutex_t dma_lock;        /* held while its memory changes (dma.c); at the end of the process for good. The innermost lock */
	pthread_mutex_t info_lock;       /* of what starting and the interface change in `info`; held for a few instructions */
	struct ur_hostif hostif;         /* shared mode */
	struct ur_registry *registry;    /* under the lock; NULL when it could not be had */
	struct ur_local *local;          /* NULL without a registry */
	struct ur_farewells *farewells;  /* NULL: nobody speaks for us */
	struct ur_tracer *tracer;        /* under the lock; NULL: nobody wants to know */
	struct ur_publisher *publisher;  /* under the lock; NULL until the port is open, and when it could not be had */
	_Atomic ur_time steer_at;        /* when the progress thread tells the port again who listens; UR_TIME_NEVER: not to be told */
	_Atomic ur_time publish_at;      /* when the progress thread asks next whether that is due; UR_TIME_NEVER without one */
	int monitor_fd, silence_fd;      /* shared mode; -1 otherwise */
	const struct ur_port_kind *kind; /* of the port, once it is open */
	bool warned_of_scope;            /* under the lock */
	bool stderr_is_terminal;         /* when it was created */
	bool log_chosen;                 /* UROCE_LOG says how much, whatever stderr is */
	struct ur_troubles troubles;     /* under the lock */
	bool port_error;                 /* the port's descriptor reports an error that stays: the progress thread naps instead */

	pthread_mutex_t start_lock;
	pthread_cond_t start_cond;
	enum { UR_ENGINE_COLD, UR_ENGINE_STARTING, UR_ENGINE_RUNNING, UR_ENGINE_FAILED, UR_ENGINE_STOPPED } state;
	int start_err;
	char start_text[512]; /* the sentence of a start that failed */
	pthread_t progress;
	atomic_bool stop;
	atomic_bool ending_asked;  /* by a signal (ending.c) */
	atomic_bool foreign;       /* this is a forked child and the engine its parent's */
	struct ur_engine *parents; /* that of the parent's parent */

	struct ur_engine *device; /* its first lane */
	atomic_uint lanes;        /* of the first: those that there are; more are added under its lock */
	struct ur_engine *at[UR_LANES];
	bool lacks_lanes;              /* of the first: one could not be made, and no more are tried; under UR_FORK_LANES */
	struct ur_fault_spec *faults;  /* of the first: what is injected, also by lanes to come; NULL: nothing. Under its lock */
	struct { /* what a further lane has found of a hop, for the first one, whose connection manager chooses path MTUs */
		struct ur_errand errand;
		atomic_bool on_its_way;
		struct ur_gid dst;
		uint16_t hop_mtu;
	} narrow;
	_Atomic(struct ur_errand *) errands; /* of the first: from other lanes, newest first */
};

/* Sets the sentence of ur_engine_error. */
__attribute__((format(printf, 1, 2))) void ur_engine_set_error(const char *fmt, ...);

/*
 * Files of one device are not those of another: "x.pcapng" is "x.uroce1.pcapng" for uroce1, in `room` bytes. "-" and character devices
 * stay. 0, or an errno with the sentence set: ENAMETOOLONG, EINVAL for a FIFO and the like.
 */
int ur_engine_name_file(char *path, size_t room, unsigned index);

/* In a forked child, once: the port that it inherited from its parent's engine of that device, to be closed before it opens its own. */
struct ur_port *ur_engine_take_inherited_port(const struct ur_engine *e);

/* open.c: an engine, to be filled: `device` is the engine of the first lane, NULL for the first. 0, or an errno with the sentence set. */
int ur_engine_create(const struct ur_config *c, unsigned index, struct ur_engine *device, unsigned lane, struct ur_engine **out);
/* It is never seen again. */
void ur_engine_free(struct ur_engine *e);
/* Behind all others, so that a fork and the end of the process find it. */
void ur_engine_append(struct ur_engine *e);

/* engine.c: the sums of a device's lanes. */
void ur_engine_sum_counters(const struct ur_engine *device, struct ur_counters *sum);
/* lane.c: all of them record into it from now on, NULL: none. Returns the one before. */
struct ur_capture *ur_engine_set_capture(struct ur_engine *device, struct ur_capture *c);
/* nic.c: the same for faults. 0 or ENOMEM. */
int ur_engine_set_faults(struct ur_engine *device, const struct ur_fault_spec *spec);

/* nic.c, port.c: which device the configuration means, and its addresses. 0, or an errno with the sentence set. */
int ur_engine_nic_open(struct ur_engine *e);
/* The same for a further lane. It gets the device's addresses and link; under both locks. */
int ur_engine_nic_join(struct ur_engine *e);
void ur_engine_mirror(struct ur_engine *lane);
/* Opens the port of the device; on the progress thread. 0, or an errno with the sentence set. */
int ur_engine_port_open(struct ur_engine *e, struct ur_port **out);
/* This process listens on another port: for ports that bring each process what is its own. Under the lock. */
void ur_engine_port_listens(struct ur_engine *e);
/* Closes it, at the end of the process. */
void ur_engine_port_close(struct ur_engine *e);
/* Takes over what the monitor says: changes of the kernel's addresses and routes, neighbours that do not answer. Not under the lock. */
void ur_engine_read_monitor(struct ur_engine *e);
/* Tells of an owned port's link when it has changed. From the progress thread alone; not under the lock. */
void ur_engine_check_link(struct ur_engine *e);

/* dma.c: from now on nobody maps memory. False when somebody is about to, and does not come to an end. */
bool ur_engine_end_dma(struct ur_engine *e);

/* What stands above the counters of a device on standard error; NULL when there is one device only. */
#define UR_ENGINE_TITLE 192
const char *ur_engine_counters_title(const struct ur_engine *e, char text[UR_ENGINE_TITLE]);

/* ending.c: at exit, in whichever thread; in the child of a fork; and a signal asks the progress thread to leave all groups. */
void ur_ending_exit(void);
void ur_ending_forked(void);
bool ur_ending_asked(const struct ur_engine *e);
void ur_ending_serve(struct ur_engine *e);

/* That of this thread. */
static inline struct ur_coalesce *ur_engine_coalesce(struct ur_engine *e)
{
	return &e->coalesce[ur_coalesce_place((uintptr_t)pthread_self())];
}

/* What waits, of all threads, is sent. */
static inline void ur_engine_flushed(struct ur_engine *e, ur_time now)
{
	for (unsigned i = 0; i < UR_COALESCE_PLACES; i++)
		ur_coalesce_flushed(&e->coalesce[i], &e->costs, now);
}

/*
 * Unlocks the NIC, all that its holder has entered being left. True when somebody rang who found it taken and went away: that is now the
 * business of who held it.
 */
static inline bool ur_engine_give_up(struct ur_engine *e)
{
	atomic_store_explicit(&e->taken, false, memory_order_relaxed);
	pthread_mutex_unlock(&e->nic_lock);
	atomic_thread_fence(memory_order_seq_cst);
	return ur_nic_rang(e->nic);
}

/* engine.c: as ur_engine_lock, but NULL when somebody holds the NIC. */
struct ur_nic *ur_engine_try(struct ur_engine *e);
/* Gives up the NIC after a round at `now`, of which a lazy one may leave something to be sent. */
void ur_engine_leave(struct ur_engine *e, ur_time now, bool lazy);

/* As ur_engine_unlock, but nothing is polled, because locks of other lanes are held: its progress thread does what there is to do. */
void ur_engine_drop(struct ur_engine *e);
/* Unlocks the lanes before that one. */
void ur_engine_unlock_lanes(struct ur_engine *device, unsigned lane);

/* When what this process publishes of itself is due next; the progress thread asks no later. Under the lock. */
ur_time ur_engine_publish_at(struct ur_engine *e);
/* Brings it up to date if that is due; on the progress thread, not under the lock. */
void ur_engine_publish(struct ur_engine *e, ur_time now);

/* progress.c */
/* Whether other threads were given the CPU that this one was using, since it last asked. */
bool ur_engine_lost_cpu(void);
/* Says on which CPUs all threads of ours run, before the first is started. 0 or an errno, with the engine's error set. */
int ur_progress_bind(struct ur_engine *e);
int ur_progress_start(struct ur_engine *e);
void ur_progress_wake(struct ur_engine *e);

#endif
