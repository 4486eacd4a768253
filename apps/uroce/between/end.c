/* SPDX-License-Identifier: BSD-3-Clause */
/* The kinds of ends, and which of them a name means. */
#include "apps/uroce/between/end.h"

#include <string.h>

static const struct ur_between_kind *kind_of(const char *name)
{
	return strncmp(name, ur_between_dpdk.prefix, strlen(ur_between_dpdk.prefix)) == 0 ? &ur_between_dpdk : &ur_between_packet;
}

/* The name of one with a prefix goes as far as its arguments. */
bool ur_between_name(struct ur_between_end *e, const char *text)
{
	e->kind = kind_of(text);
	e->what = text + strlen(e->kind->prefix);
	e->name = *e->kind->prefix ? strndup(e->what, strcspn(e->what, ",")) : text;
	return e->name;
}

bool ur_between_open(struct ur_between_end *e)
{
	if (!e->kind)
		e->kind = &ur_between_packet;
	if (!e->what)
		e->what = e->name;
	return e->kind->open(e);
}

/* What it has counted stays. */
void ur_between_close(struct ur_between_end *e)
{
	if (e->kind)
		e->kind->close(e);
	e->kind = NULL;
	e->state = NULL;
	e->fd = -1;
}

const char *ur_between_gone(const struct ur_between_end *e)
{
	return e->kind->gone ? e->kind->gone(e) : NULL;
}

void ur_between_statistics(struct ur_between_end *e)
{
	if (e->kind && e->kind->statistics)
		e->kind->statistics(e);
}
