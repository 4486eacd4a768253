/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze/frame/mirror.h"

/* From one stamp to another, which may be a little before it. */
static int64_t step(const struct an_stamp *from, const struct an_stamp *to)
{
	const uint64_t ahead = (to->ns + to->span - from->ns) % to->span;

	return ahead > to->span / 2 ? -(int64_t)(to->span - ahead) : (int64_t)ahead;
}

static void restart(struct an_mirror *m, const struct an_stamp *s, ur_time recorded, int state)
{
	*m = (struct an_mirror){.state = state, .newest = *s, .first = recorded, .n = 1};
}

/* Both clocks have run for long enough: do they agree? */
static bool agrees(const struct an_mirror *m, uint64_t recorded)
{
	const uint64_t passed = m->passed > 0 ? (uint64_t)m->passed : 0;

	return passed >= recorded / 2 && passed <= 2 * recorded;
}

static bool is_near(const struct an_mirror *m, uint64_t recorded)
{
	const uint64_t slack = UR_AN_MIRROR_SLACK_NS + recorded / 256;

	return (uint64_t)m->passed - recorded + slack <= 2 * slack;
}

ur_time an_mirror_time(struct an_mirror *m, const struct an_stamp *s, ur_time recorded)
{
	const uint64_t since = recorded > m->first ? recorded - m->first : 0;

	if (m->state == AN_MIRROR_OFF || (m->state == AN_MIRROR_NONE && !s->span))
		return recorded;
	if (m->state == AN_MIRROR_NONE) {
		restart(m, s, recorded, AN_MIRROR_TRIED);
		return recorded;
	}
	if (s->span != m->newest.span || s->source != m->newest.source) {
		m->state = AN_MIRROR_OFF;
		return recorded;
	}
	m->passed = (int64_t)((uint64_t)m->passed + (uint64_t)step(&m->newest, s)); /* stamps may say anything */
	m->newest = *s;
	m->n++;
	if (m->state == AN_MIRROR_USED) {
		if (is_near(m, since) && m->first >= UR_AN_MIRROR_SLACK_NS)
			return m->first + (uint64_t)m->passed;
		m->state = AN_MIRROR_OFF;
	} else if (m->n >= UR_AN_MIRROR_FRAMES && since >= UR_AN_MIRROR_NS) {
		if (agrees(m, since))
			restart(m, s, recorded, AN_MIRROR_USED);
		else
			m->state = AN_MIRROR_OFF;
	}
	return recorded;
}
