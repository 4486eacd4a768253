/* SPDX-License-Identifier: BSD-3-Clause */
/* The rate arithmetic of DCQCN; see dcqcn.h. Names of the paper: RC is `rate`, RT `target`, T and BC are the two stages. */
#include "transport/control/dcqcn.h"

const struct ur_dcqcn_params ur_dcqcn_params = {
	.g_shift = 8,
	.alpha_ns = 55 * UR_NS_PER_US,
	.increase_ns = 55 * UR_NS_PER_US,
	.bytes = 10000000,
	.fast = 5,
	.add = 40000,
	.hyper = 400000,
	.min = 10000,
	.cut_ns = 4 * UR_NS_PER_US,
};

#define P ur_dcqcn_params

static void begin_at_line_rate(struct ur_dcqcn *c, uint32_t line)
{
	*c = (struct ur_dcqcn){.active = true, .line = line, .rate = line, .target = line, .alpha = UR_DCQCN_ONE};
}

void ur_dcqcn_notified(struct ur_dcqcn *c, uint32_t line, ur_time now)
{
	uint64_t cut;

	if (c->active)
		ur_dcqcn_run(c, now);
	if (!c->active)
		begin_at_line_rate(c, line);
	else if (now - c->cut_at < P.cut_ns)
		return;
	cut = (uint64_t)c->rate * c->alpha / (2 * (uint64_t)UR_DCQCN_ONE);
	c->target = c->rate;
	c->rate -= (uint32_t)cut;
	if (c->rate < P.min)
		c->rate = P.min;
	c->alpha += (UR_DCQCN_ONE - c->alpha) >> P.g_shift;
	c->cut_at = now;
	c->alpha_at = now + P.alpha_ns;
	c->increase_at = now + P.increase_ns;
	c->bytes = 0;
	c->timer_stage = c->byte_stage = 0;
}

static void increase(struct ur_dcqcn *c)
{
	uint8_t low = c->timer_stage < c->byte_stage ? c->timer_stage : c->byte_stage;
	uint8_t high = c->timer_stage < c->byte_stage ? c->byte_stage : c->timer_stage;
	uint64_t target = c->target;

	if (low > P.fast)
		target += (uint64_t)(low - P.fast) * P.hyper;
	else if (high > P.fast)
		target += P.add;
	c->target = target < c->line ? (uint32_t)target : c->line;
	c->rate = (uint32_t)(((uint64_t)c->rate + c->target) / 2);
	if (c->line - c->rate <= c->line / 1024) /* halving the way never arrives */
		c->active = false;
}

void ur_dcqcn_run(struct ur_dcqcn *c, ur_time now)
{
	/* Each round either moves alpha_at, which alpha bounds, or brings the rate nearer to the line, where it ends. */
	while (c->active && now >= c->increase_at) {
		c->increase_at += P.increase_ns;
		c->timer_stage += c->timer_stage < UINT8_MAX;
		increase(c);
	}
	for (; now >= c->alpha_at && c->alpha >> P.g_shift; c->alpha_at += P.alpha_ns)
		c->alpha -= c->alpha >> P.g_shift;
	if (now >= c->alpha_at)
		c->alpha_at = now + P.alpha_ns;
}

void ur_dcqcn_sent(struct ur_dcqcn *c, uint32_t bytes)
{
	c->bytes += bytes;
	if (c->bytes < P.bytes)
		return;
	c->bytes -= P.bytes;
	c->byte_stage += c->byte_stage < UINT8_MAX;
	increase(c);
}

ur_time ur_dcqcn_duration(const struct ur_dcqcn *c, uint32_t bytes)
{
	return (uint64_t)bytes * 8 * 1000000 / c->rate;
}
