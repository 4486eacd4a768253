/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DCQCN, the reaction point (Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, section 5): the sending rate
 * of one QP, as arithmetic over the congestion notifications, bytes sent and time. Who paces by it is congest.c.
 *
 * A QP is limited from its first notification on, and no longer once its rate is back at that of the line.
 */
#ifndef UR_DCQCN_H
#define UR_DCQCN_H

#include "base/base.h"

#define UR_DCQCN_ONE (1u << 20) /* alpha is a fraction of this */

struct ur_dcqcn {
	bool active;
	uint8_t timer_stage, byte_stage; /* increases by either since the last notification; they stop at 255 */
	uint32_t line, rate, target;     /* kbit/s */
	uint32_t alpha;
	uint32_t bytes;                        /* sent since the byte counter last expired */
	ur_time cut_at, alpha_at, increase_at; /* the last cut; when the two timers expire */
};

/* The parameters, of all QPs. Those of the paper where it gives them, the usual ones of NICs for the rest. */
struct ur_dcqcn_params {
	unsigned g_shift;    /* alpha moves by 2^-g_shift of the way */
	ur_time alpha_ns;    /* without a notification for so long alpha decays */
	ur_time increase_ns; /* the rate increases this often, */
	uint32_t bytes;      /* and after this many bytes */
	uint8_t fast;        /* that many increases go half of the way to the target; then the target moves */
	uint32_t add, hyper; /* by this, or by multiples of that once both counters have passed `fast`; kbit/s */
	uint32_t min;        /* kbit/s */
	ur_time cut_ns;      /* notifications that come sooner than this after another are one with it */
};

extern const struct ur_dcqcn_params ur_dcqcn_params;

/* A congestion notification. `line` is the rate of the port in kbit/s, at least params.min. */
void ur_dcqcn_notified(struct ur_dcqcn *c, uint32_t line, ur_time now);
/* Lets the timers expire that are due. */
void ur_dcqcn_run(struct ur_dcqcn *c, ur_time now);
void ur_dcqcn_sent(struct ur_dcqcn *c, uint32_t bytes);
/* How long `bytes` take at the rate of now. */
ur_time ur_dcqcn_duration(const struct ur_dcqcn *c, uint32_t bytes);

#endif
