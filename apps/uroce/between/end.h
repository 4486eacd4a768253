/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce between: what is at either end of the cable. A kind of end (struct ur_between_kind) is a table of what it does with frames, and the
 * loop in move.c does not know which kind it has.
 */
#ifndef UR_APP_BETWEEN_END_H
#define UR_APP_BETWEEN_END_H

#include <linux/virtio_net.h>

#include "base/base.h"

#define UR_BETWEEN_HEADROOM 16 /* before a received frame, for a tag that the kernel has taken off */
#define UR_BETWEEN_BATCH 16    /* of trains of 64 KiB, about what a CPU keeps in its cache */
#define UR_BETWEEN_HEAD 128    /* bytes of headers */

struct ur_between_end;

/* A frame that was received. It may be changed, and stays until the next batch of the same end. */
struct ur_between_frame {
	uint8_t *data;
	uint32_t len;
	struct virtio_net_hdr vnet; /* what is still to be done to it; zero: nothing */
	ur_time when;               /* it came, by ur_clock_now() */
};

/* A frame to be sent: two pieces, one after the other. */
struct ur_between_out {
	const uint8_t *head; /* at most UR_BETWEEN_HEAD bytes, copied at once */
	uint32_t head_len;
	const uint8_t *data; /* stays until the flush */
	uint32_t len;
	struct virtio_net_hdr vnet;
};

struct ur_between_kind {
	const char *prefix; /* of the names of its ends, with the colon; "": all others */
	/* Opens e->what. False after a message; `close` follows in any case. */
	bool (*open)(struct ur_between_end *e);
	void (*close)(struct ur_between_end *e);
	/* The frames that are there, at most UR_BETWEEN_BATCH, in the order in which they came. It does not wait. */
	unsigned (*receive)(struct ur_between_end *e, struct ur_between_frame *to);
	/* The frame is sent with the next flush, or before. */
	void (*queue)(struct ur_between_end *e, const struct ur_between_out *o);
	void (*flush)(struct ur_between_end *e);
	/* The name of the interface when the system has it no more, which no descriptor tells for sure. NULL: it is there. */
	const char *(*gone)(const struct ur_between_end *e);
	/* Brings the counters of the end up to date. NULL: they always are. */
	void (*statistics)(struct ur_between_end *e);
};

struct ur_between_end {
	const char *name;                   /* in reports */
	const char *what;                   /* what the command line has after the prefix; NULL: the name */
	const struct ur_between_kind *kind; /* NULL: that of all others */
	void *state;                        /* of its kind */
	int fd;                             /* readable while frames are there; -1: the end has to be polled */
	uint64_t kernel_lost;               /* frames that were not fetched in time */
	uint64_t refused;                   /* frames that the kernel could not hand over */
	uint64_t sent, unsent;              /* frames and trains */
	int why;                            /* errno of the last that could not be sent */
};

extern const struct ur_between_kind ur_between_packet; /* io.c: an interface of the kernel, by a packet socket */
extern const struct ur_between_kind ur_between_dpdk;   /* dpdk.c: a DPDK port, which this process opens */

/* --- end.c --- */

/* What the command line says. False: out of memory. */
bool ur_between_name(struct ur_between_end *e, const char *text);
bool ur_between_open(struct ur_between_end *e);
void ur_between_close(struct ur_between_end *e);
void ur_between_statistics(struct ur_between_end *e);
const char *ur_between_gone(const struct ur_between_end *e);

static inline unsigned ur_between_receive(struct ur_between_end *e, struct ur_between_frame *to)
{
	return e->kind->receive(e, to);
}

static inline void ur_between_queue(struct ur_between_end *e, const struct ur_between_out *o)
{
	e->kind->queue(e, o);
}

static inline void ur_between_flush(struct ur_between_end *e)
{
	e->kind->flush(e);
}

#endif
