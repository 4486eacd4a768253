/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of the program's that the port's device reads by itself. Not under the NIC's lock, because the kernel takes its time to pin
 * gigabytes, and no packet should wait for that.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/internal.h"

/* Once for each reason: a program may register a thousand times. */
static void tell_why(struct ur_engine *e, int err, const char *sentence)
{
	static atomic_uint reported;
	unsigned bit = 1u << (err & 31);

	if (strcmp(e->cfg.log, "error") && !(atomic_fetch_or(&reported, bit) & bit))
		fprintf(stderr, "uroce: %s\n", sentence);
}

bool ur_engine_map(struct ur_engine *e, void *addr, size_t len, struct ur_dma *dma)
{
	struct ur_port *port;
	char sentence[400];
	int err = 0;

	*dma = (struct ur_dma){.mapped = false};
	/* Without its port nobody knows what the NIC can do. One that does not open says so when it is needed. */
	if (!e->is_nic || ur_engine_start(e))
		return true;
	pthread_mutex_lock(&e->dma_lock);
	port = ur_engine_foreign(e) ? NULL : e->nic->port;
	if (port && port->ops->map)
		err = port->ops->map(port, addr, len, dma, sentence, sizeof(sentence));
	pthread_mutex_unlock(&e->dma_lock);
	if (err)
		tell_why(e, err, sentence);
	return !err;
}

void ur_engine_unmap(struct ur_engine *e, void *addr, size_t len, const struct ur_dma *dma)
{
	struct ur_port *port;

	if (!dma->mapped)
		return;
	pthread_mutex_lock(&e->dma_lock);
	port = ur_engine_foreign(e) ? NULL : e->nic->port;
	if (port)
		port->ops->unmap(port, addr, len, dma);
	pthread_mutex_unlock(&e->dma_lock);
}

bool ur_engine_end_dma(struct ur_engine *e)
{
	return pthread_mutex_trylock(&e->dma_lock) == 0;
}
