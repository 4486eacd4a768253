/* SPDX-License-Identifier: BSD-3-Clause */
/* What is shown: samples, rows, and what is said of them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/cli/watch_find.h"
#include "apps/uroce/top/top.h"

int ur_top_sample(struct ur_top_view *v)
{
	struct ur_watch_sample *sample = ur_watch_find();

	if (!sample)
		return ur_cmd_fail(UR_EXIT_FAIL, "cannot list the processes of this host: %s", strerror(errno));
	ur_watch_free(v->before);
	v->before = v->now;
	v->now = sample;
	return 0;
}

bool ur_top_arrange(struct ur_top_view *v, const struct ur_top *t)
{
	free(v->rows);
	v->rows = calloc(ur_watch_row_count(v->now) + 1, sizeof(v->rows[0]));
	if (!v->rows)
		return false;
	v->all = ur_watch_rows(v->before, v->now, v->rows);
	v->count = ur_watch_select(v->rows, v->all, &t->filter);
	ur_watch_sort(v->rows, v->count, t->key, t->reverse);
	return true;
}

void ur_top_free(struct ur_top_view *v)
{
	ur_watch_free(v->before);
	ur_watch_free(v->now);
	free(v->rows);
	*v = (struct ur_top_view){.count = 0};
}

void ur_top_summary(const struct ur_top_view *v, char *line, size_t room)
{
	char tx[8], rx[8], retransmits[8];
	const unsigned processes = ur_watch_process_count(v->now, true);
	struct ur_watch_rates sum = {.known = true};
	size_t n;

	for (unsigned i = 0; i < v->count; i++) {
		sum.tx_bits += v->rows[i].rates.tx_bits;
		sum.rx_bits += v->rows[i].rates.rx_bits;
		sum.retransmits += v->rows[i].rates.retransmits;
	}
	n = (size_t)snprintf(line, room, "%u process%s, %u QP%s", processes, processes == 1 ? "" : "es", v->all, ur_plural(v->all));
	if (v->count != v->all && n < room)
		n += (size_t)snprintf(line + n, room - n, " (%u shown)", v->count);
	if (n < room)
		snprintf(line + n, room - n, "; TX %sb/s, RX %sb/s, %s retransmissions/s", ur_watch_short(sum.tx_bits, tx),
			 ur_watch_short(sum.rx_bits, rx), ur_watch_short(sum.retransmits, retransmits));
}

bool ur_top_remark(const struct ur_watch_process *p, const struct ur_watch_filter *f, char *line, size_t room)
{
	if (!ur_watch_wants(f, p))
		return false;
	if (p->unreadable)
		snprintf(line, room, "process %d (%s) runs uroce %s, which this command, %s, cannot read", p->pid, p->program,
			 p->status.version, UR_VERSION);
	else if (p->status.total > p->status.count)
		snprintf(line, room, "process %d (%s) has %u QPs, of which only %u can be shown", p->pid, p->program, p->status.total,
			 p->status.count);
	else
		return false;
	return true;
}
