/* SPDX-License-Identifier: BSD-3-Clause */
/* The number of packets that a QP may have unacknowledged, and its estimate of the round trip. It knows no QP:
 * test/unit/transport/control/test_window.c. */
#ifndef UR_WINDOW_H
#define UR_WINDOW_H

#include "base/base.h"

#define UR_RTT_MIN UR_NS_PER_US /* below it the clock is to blame: see ur_rtt_bounded */
#define UR_RTT_MAX UR_NS_PER_S

#define UR_RATE_NS (1u << 24) /* what rates are counted in */

struct ur_rtt {                    /* ns */
	uint32_t mean, var, least; /* of the samples; 0: there is none yet */
	uint32_t high;             /* what answers have taken at most of late, also those that tell no sample */
	uint32_t handshake;        /* what that of the connection took, at most; 0: it is not known */
	uint32_t last, samples;    /* the last one, and their number */
	uint32_t psn;              /* the packet that is timed, since `at`; 0: none is */
	ur_time at;
	uint32_t resent; /* a PSN before it may have been sent more than once: an acknowledgement of it times nothing */
};

struct ur_window { /* packets */
	uint32_t size, max;
	uint32_t ack_every; /* an acknowledgement is asked for at least this often */
	uint32_t grow_from; /* the oldest unacknowledged PSN when it last changed, or could have */
	uint8_t rd_shift;   /* log2 of the packets of pieces of READs that begin now; in slow start, as it will hold before long */
	bool slow_start;    /* it began small, and doubles until it is as large as others begin, or becomes smaller */
	/* The peer is known to go back, and has done so: */
	bool tight;
	uint32_t rate;          /* packets that the path carries within UR_RATE_NS */
	uint32_t back_offs;     /* how often it went back */
	uint32_t backed_off_at; /* the oldest unacknowledged PSN when it last went back */
	ur_time moved_at;       /* when something was last acknowledged; 0: not since something was last sent again */
	uint32_t n, ns;         /* packets that were acknowledged since the rate was measured, and within how long */
};

/*
 * `t` is a difference of the times of two rounds, which may be 0 (sent and answered in one) or less (the time of a thread that waited for
 * the NIC is older): it counts as a microsecond then, which no round trip is shorter than; and as a second at most.
 */
uint32_t ur_rtt_bounded(ur_time t);
void ur_rtt_sample(struct ur_rtt *t, ur_time sample);
/*
 * An answer has come that took that long, or less if it is one to a packet that was sent once more meanwhile: no sample (Karn's rule). But
 * timers last longer from now on, by a factor of 8 at most, until samples say by and by that they need not.
 */
void ur_rtt_late(struct ur_rtt *t, ur_time took);
/* There is no sample yet, and something was heard that tells about how long a round trip takes. */
void ur_rtt_guess(struct ur_rtt *t, ur_time guess);

/* A new one: of `fixed` packets for good, or (0) as `fit`, the packets that the path may hold, lets it begin. `una` as below. */
void ur_window_open(struct ur_window *w, uint32_t fit, uint32_t fixed, uint32_t una);
/* A new one, without `fixed`, begins with as many packets, if that is less. */
void ur_window_begin_small(struct ur_window *w, uint32_t size, uint32_t una);
/* The same as ur_window_open on a path that does not leave the host. */
void ur_window_open_local(struct ur_window *w, uint32_t fixed, uint32_t una);
/*
 * True when the window is another than before; `una` is the oldest unacknowledged PSN.
 * grow: something was acknowledged while it is below its maximum; `slow`: a round trip takes a large part of the ACK timer.
 */
bool ur_window_grow(struct ur_window *w, const struct ur_rtt *t, bool slow, uint32_t una, ur_time now);
/* The ACK timer expired. */
bool ur_window_halve(struct ur_window *w, uint32_t una);
/* A packet was lost, and all that is in flight is sent again; `tight`: so it will be each time, because the peer keeps nothing. */
bool ur_window_back_off(struct ur_window *w, struct ur_rtt *t, bool tight, uint32_t una);
/* To any size that another has found (cwnd.h). */
void ur_window_set(struct ur_window *w, uint32_t size, uint32_t una);

#endif
