/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/engine: the software RNIC of this process. nic.h composes the layers; engine.h adds threads, the lock, lazy start and the
 * configuration.
 *
 * One engine for each device of the process. Opening them reads the configuration and the interfaces' addresses and starts nothing: listing
 * and querying devices needs no more. ur_engine_start starts an engine's progress thread, which opens the port. After fork a child gets
 * engines of its own.
 *
 * Lock order: the engine's lock first; then any lock of the layers above (event channels, completion channels). Callbacks from the layers
 * below run under the engine's lock.
 */
#ifndef UR_ENGINE_H
#define UR_ENGINE_H

#include "config/config.h"
#include "host/device/info.h"
#include "nic/nic.h"

struct ur_engine;

/*
 * The process's engines, created at the first call (thread safe): the first of them, that of uroce0. 0, or an errno with one sentence in
 * ur_engine_error: an unknown interface, no address, a malformed setting. ENODEV when no device is configured and none can be chosen.
 */
int ur_engine_open(struct ur_engine **out);
/* The engine of the next device, or NULL. */
struct ur_engine *ur_engine_next(const struct ur_engine *e);
const char *ur_engine_error(void);
/*
 * Sets a setting in place of its environment variable, for the engine that is opened next. 0, EBUSY when it is open, or as ur_config_set.
 */
int ur_engine_configure(const char *name, const char *value);
/* The first engine if they have been opened, or NULL. */
struct ur_engine *ur_engine_current(void);
/* The device, with its link as the last event showed it; and as the port shows it now, which may be a system call. */
void ur_engine_info(struct ur_engine *e, struct ur_device_info *info);
void ur_engine_port_info(struct ur_engine *e, struct ur_device_info *info);

/* Starts the port and the progress thread and waits for them; later calls return at once. 0 or an errno, sentence in ur_engine_error and on
 * stderr. */
int ur_engine_start(struct ur_engine *e);
bool ur_engine_started(const struct ur_engine *e);
/* True in a child that forked from a process whose engine this was: its objects cannot be used here. */
bool ur_engine_foreign(const struct ur_engine *e);

/* Brings what is known of a shared interface up to date, where no monitor does so yet: before the engine has started. Not under the lock.
 */
void ur_engine_look_again(struct ur_engine *e);

/* A control call: takes the NIC. Before unlocking it is polled once, so what the call made ready is sent. Not recursive. */
struct ur_nic *ur_engine_lock(struct ur_engine *e);
void ur_engine_unlock(struct ur_engine *e);
/* Nanoseconds, CLOCK_MONOTONIC. */
ur_time ur_engine_now(void);

/*
 * Lanes. A device has one engine, its first lane, and as many further ones as the setting `lanes` says, each made when it is first asked
 * for: with a lock, a NIC with its slot, a port and a progress thread of its own. Connections (lib/cm) and datagrams are the first lane's.
 * Lock order: the first lane's lock, then those of the others in their order.
 */
unsigned ur_engine_lanes(const struct ur_engine *device);
/* That lane, running; the first one where it cannot be had. Not under a lock. */
struct ur_engine *ur_engine_lane(struct ur_engine *device, unsigned lane);
/* A further lane, or the device itself: its number, and the device. */
unsigned ur_engine_lane_number(const struct ur_engine *e);
struct ur_engine *ur_engine_device(struct ur_engine *e);
/* As ur_engine_lock and ur_engine_unlock, of all lanes that there are; the NIC is the first one's. */
struct ur_nic *ur_engine_lock_all(struct ur_engine *device);
void ur_engine_unlock_all(struct ur_engine *device);
/* How many there are, and one of them; its NIC, under its lock. How new QPs are spread: a word of the setting. */
unsigned ur_engine_running_lanes(const struct ur_engine *device);
struct ur_engine *ur_engine_at(struct ur_engine *device, unsigned lane);
struct ur_nic *ur_engine_nic(const struct ur_engine *e);
const char *ur_engine_spread(const struct ur_engine *device);

/*
 * What a lane has to tell the device's first one, whose lock it must not wait for: `run` is called under that, soon. An errand is the
 * caller's, who can have it done at once before it goes. Any thread, under a lane's lock or none; `settle` under none.
 */
struct ur_errand {
	struct ur_errand *next;
	void (*run)(struct ur_errand *errand, ur_time now);
};
void ur_engine_errand(struct ur_engine *device, struct ur_errand *errand);
void ur_engine_settle(struct ur_engine *device);

/*
 * Watchers of an interface shared with the kernel, who are told of events: IBV_EVENT_PORT_ACTIVE, IBV_EVENT_PORT_ERR, IBV_EVENT_GID_CHANGE.
 * Called by the progress thread under the lock; a watch may be set before the engine starts and brings nothing until then.
 */
struct ur_engine_watch {
	struct ur_list link;
	void (*event)(struct ur_engine_watch *w, enum ibv_event_type type);
};

void ur_engine_watch(struct ur_engine *e, struct ur_engine_watch *w);
/* No call is in progress or comes when this returns. Harmless in a forked child. */
void ur_engine_unwatch(struct ur_engine *e, struct ur_engine_watch *w);

/*
 * After ur_qp_post_send: rings the doorbell when the QP asks for it, and transmits at once if the NIC is free. For receives nothing is to
 * be sent: after ur_qp_post_recv only those of a QP in the error state ring, to be flushed.
 */
void ur_engine_ring(struct ur_engine *e, struct ur_qp *qp);
/* An application found its CQ empty: drive the NIC if it is free. True when packets moved. */
bool ur_engine_drive(struct ur_engine *e);
/* An application armed a CQ or waits for an event: it will sleep, so the progress thread must not. */
void ur_engine_will_block(struct ur_engine *e);
/*
 * Memory that is about to be registered: *dma says whether the port's device reads it by itself from now on, until ur_engine_unmap, when no
 * frame refers to it any more. Not under the lock; starts the engine where the device is a NIC, and may take a tenth of a second for each
 * gigabyte. False when that could not be, though the device reads other memory by itself: what is sent from there is copied.
 */
bool ur_engine_map(struct ur_engine *e, void *addr, size_t len, struct ur_dma *dma);
/* Does nothing for memory that is not mapped. */
void ur_engine_unmap(struct ur_engine *e, void *addr, size_t len, const struct ur_dma *dma);
/* For a group that the program joins or sends to: says once on stderr when its datagrams do not leave the host. Under the lock. */
void ur_engine_check_group(struct ur_engine *e, const struct ur_gid *group);
/* For a request of the connection manager that fails: explains it on stderr where a human reads (engine/trouble.h). Under the lock. */
void ur_engine_trouble(struct ur_engine *e, const struct ur_cm_trouble *t);
/* Gives the NIC a chance to finish frames that refer to user memory; for retrying ur_mr_dereg. */
void ur_engine_reclaim(struct ur_engine *e);

/*
 * Has multicast groups left when SIGHUP, SIGINT or SIGTERM ends the process, as they are at exit; once a process, after it started. Only
 * signals whose action would be the default one (or the counters') are taken; a program that sets its own action later has that one alone.
 * Takes none where the groups are those of the kernel's sockets (port udp), which the kernel leaves.
 */
void ur_engine_leave_at_signals(struct ur_engine *e);

/*
 * Ports of the IP port spaces, shared with the other processes of this device: as the functions of registry.h. `gid` is an address or a
 * wildcard (wire/gid_set.h). *port 0 asks for an ephemeral one (host order). Call under the lock.
 */
int ur_engine_port_bind(struct ur_engine *e, uint16_t port_space, const struct ur_gid *gid, bool reuse, uint16_t *port);
void ur_engine_port_release(struct ur_engine *e, uint16_t port_space, const struct ur_gid *gid, uint16_t port);
int ur_engine_port_move(struct ur_engine *e, uint16_t port_space, const struct ur_gid *from, const struct ur_gid *to, bool reuse,
			uint16_t port);
/* Marks a bound port as listened on, so that REQs for it are answered by this process. EAGAIN as ur_registry_listen. */
int ur_engine_port_listen(struct ur_engine *e, uint16_t port_space, const struct ur_gid *gid, uint16_t port, bool on);

#endif
