/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A congestion window, as arithmetic over round trips, acknowledgements, losses and congestion marks. It knows no QP:
 * test/unit/transport/control/test_cwnd.c.
 */
#ifndef UR_CWND_H
#define UR_CWND_H

#include "base/base.h"

#define UR_CWND_ONE (1u << 16) /* a packet */
#define UR_CWND_MOST 32768u    /* packets: more than any window has */

enum ur_cwnd_growth {
	UR_CWND_DOUBLE, /* with each round trip: nothing is known of the path */
	UR_CWND_FAST,   /* by an eighth: nothing waits in queues */
	UR_CWND_ADD,    /* by a packet */
};

struct ur_cwnd {
	uint32_t size;               /* in 1/UR_CWND_ONE packets */
	uint32_t first, max;         /* likewise: where it begins; the limit */
	uint32_t base, last, delay;  /* ns: of the empty path; the last sample; that of now, without outliers. 0: there was no sample */
	uint32_t before[2];          /* ns: the samples before the last one; 0: there was none */
	uint32_t noise;              /* ns by which samples jump */
	int32_t slope;               /* between the last two of them */
	uint32_t lowest, samples;    /* the least sample since one last met no queue, and their number; 0: there was none */
	ur_time lowest_at;           /* that was when */
	uint32_t single, singles;    /* the shortest of the samples at windows of one packet, and their number, */
	ur_time single_at;           /* since then */
	uint32_t unmet;              /* samples since one was as short as the base */
	ur_time based_at, dipped_at; /* when a sample was last as short as the base; when the size was last small to see what the path is */
	uint32_t acked, lost;        /* packets of this period */
	uint32_t seen, seen_lost;    /* packets since the last sample: acknowledged; lost */
	uint32_t longest;            /* ns: the longest of late of two samples, the shorter one */
	uint32_t low_sent, low_lost; /* packets while the delay was too short for a full queue; the lost ones of them */
	uint8_t times;               /* round trips with such losses */
	bool chance;                 /* the path has jitter, and loses by itself */
	uint8_t growth;              /* enum ur_cwnd_growth */
	bool lossy, marked;          /* something was lost, or marked, since the last sample that counted */
	bool heavy;                  /* so was most of the period before */
	uint32_t kept;               /* while the base is measured anew: the size to return to; else 0 */
	ur_time period_at;           /* when this period began */
	ur_time cut_at;              /* what was sent before says nothing of the size of now */
	ur_time harm_at;             /* the last loss or mark by congestion; 0: never */
};

/* The parameters, of all QPs. */
struct ur_cwnd_params {
	uint32_t queue, small;   /* ns that may be waited in queues: by a window of many packets; so much more by one of one packet */
	uint32_t evidence, host; /* ns: what waits less has met no queue; the shortest base, below which hosts are measured, not paths */
	uint32_t noise;          /* ns of a path's noise that are taken for such */
	ur_time calm_ns;         /* for so long after harm the window follows delay */
	ur_time probe_ns;        /* after so long, and so many samples, that met a queue the base is measured anew */
	uint32_t stuck;
	ur_time dip_ns; /* after so long, and so many round trips, a base that may be too long is measured where harm was done of late */
	uint32_t dip_rtts;
	ur_time pause_ns; /* the longest interval, where a round trip is not longer */
};

extern const struct ur_cwnd_params ur_cwnd_params;

/* In packets: `first` to begin with, and at most `max`. */
void ur_cwnd_open(struct ur_cwnd *c, uint32_t first, uint32_t max);
/* A new one is told what was known before: the shortest round trip and the last one. */
void ur_cwnd_know(struct ur_cwnd *c, uint32_t least, uint32_t last);
/* `n` packets were acknowledged or reported, of `flight` that were in flight. */
void ur_cwnd_acked(struct ur_cwnd *c, uint32_t n, uint32_t flight);
/* The round trip of a packet that was sent once, now acknowledged. After ur_cwnd_acked. */
void ur_cwnd_sample(struct ur_cwnd *c, ur_time rtt, ur_time now);
void ur_cwnd_lost(struct ur_cwnd *c, uint32_t n, ur_time now);
/* A packet met congestion: a notification, or a mark on an answer. */
void ur_cwnd_marked(struct ur_cwnd *c);
/* No more than `n` packets, now and after what is being measured. */
void ur_cwnd_limit(struct ur_cwnd *c, uint32_t n);
/* The ACK timer expired: nothing came for that long. */
void ur_cwnd_expired(struct ur_cwnd *c, ur_time now);
/* It was idle for long enough that the path may be another. */
void ur_cwnd_idle(struct ur_cwnd *c);

/* Packets that may be in flight, at least one. */
static inline uint32_t ur_cwnd_packets(const struct ur_cwnd *c)
{
	return c->size < UR_CWND_ONE ? 1 : c->size / UR_CWND_ONE;
}

/* The time from one packet to the next where the window is less than one; else 0. */
ur_time ur_cwnd_interval(const struct ur_cwnd *c);

#endif
