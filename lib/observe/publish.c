/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/publish.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host/sealed.h"
#include "observe/status.h"

#define AT_A_TIME 64 /* QPs that are looked at while others wait for the NIC: a few microseconds */

struct ur_publisher {
	struct ur_status *status;
	int memfd;
	uint32_t place, entry; /* of the current pass: where it goes on in the QP table, and where the next QP goes; 0, 0: none is */
	ur_time began;         /* the last pass; 0: there was none yet */
	ur_time next;
	uint64_t events; /* that had been counted then */
	bool touched;
};

/* --- what the port does with its device's help --- */

static bool segments(const struct ur_port *p)
{
	return p->queue->train_pkts > 1;
}

static bool reads_memory(const struct ur_port *p)
{
	return p->ops->map;
}

static bool interrupts(const struct ur_port *p)
{
	return p->queue->ops->arm;
}

static const struct {
	bool (*used)(const struct ur_port *p);
	const char *name; /* doc/debugging.md explains it */
} helps[] = {
	{segments, "segmentation offload"},
	{reads_memory, "registered memory in place"},
	{interrupts, "receive interrupt"},
};

static void describe(const struct ur_port *p, char text[UR_STATUS_USES])
{
	size_t n = 0;

	for (unsigned i = 0; i < ur_array_size(helps); i++)
		if (helps[i].used(p))
			n += (size_t)snprintf(text + n, UR_STATUS_USES - n, "%s%s", n ? ", " : "", helps[i].name);
}

int ur_publisher_open(const char *device, unsigned lane, const char *interface, const char *kind, const struct ur_port *port, ur_time now,
		      struct ur_publisher **out)
{
	struct ur_publisher *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return ENOMEM;
	p->status = ur_sealed_create(UR_STATUS_FILE, sizeof(*p->status), &p->memfd);
	if (!p->status) {
		err = errno;
		ur_publisher_close(p);
		return err;
	}
	ur_status_begin(p->status);
	snprintf(p->status->device, UR_STATUS_TEXT, "%s", device);
	snprintf(p->status->interface, UR_STATUS_TEXT, "%s", interface);
	snprintf(p->status->port, UR_STATUS_TEXT, "%s", kind);
	describe(port, p->status->uses);
	p->status->lane = lane;
	p->status->started = p->status->at = now;
	ur_status_init(p->status, getpid());
	ur_status_end(p->status);
	*out = p;
	return 0;
}

void ur_publisher_close(struct ur_publisher *p)
{
	if (p->status)
		munmap(p->status, sizeof(*p->status));
	if (p->memfd >= 0)
		close(p->memfd);
	free(p);
}

/* --- writing --- */

/* Packets, what they and timers led to, and posts: without any of it no QP changes. */
static uint64_t events(const struct ur_nic *nic)
{
	uint64_t sum = nic->doorbells;

	for (unsigned i = 0; i < UR_C_COUNT; i++)
		sum += nic->counters.v[i];
	return sum;
}

static void write_qp(struct ur_status_qp *s, const struct ur_qp *qp, ur_time now)
{
	struct ur_qp_snapshot l;

	ur_qp_snapshot(qp, &l);
	*s = (struct ur_status_qp){
		.qpn = l.qpn,
		.dqpn = l.dqpn,
		.type = (uint8_t)l.type,
		.state = (uint8_t)l.state,
		.connected = l.connected,
		.mtu = l.mtu,
		.local = l.local,
		.peer = l.peer,
		.at = now,
		.srtt = l.srtt,
		.rttvar = l.rttvar,
		.rtt_min = l.rtt_min,
		.window = l.window,
		.in_flight = l.in_flight,
		.unfinished = l.unfinished,
		.rate_kbps = l.rate_kbps,
		.n = *ur_qp_counters(qp),
	};
}

static void write_device(struct ur_status *s, const struct ur_nic *nic, ur_time now)
{
	for (unsigned i = 0; i < UR_C_COUNT; i++)
		s->counter[i].value = nic->counters.v[i];
	s->total = ur_tp_qp_count(nic->tp);
	s->at = now;
}

/* A part of a pass; true when it is the last one. QPs that come and go meanwhile may be missed, or stand there twice, until the next pass.
 */
static bool write_qps(struct ur_publisher *p, const struct ur_nic *nic, ur_time now)
{
	const struct ur_qp *qp = NULL;

	for (unsigned i = 0; i < AT_A_TIME && p->entry < UR_STATUS_QPS && (qp = ur_tp_next_qp(nic->tp, &p->place)); i++)
		write_qp(&p->status->qp[p->entry++], qp, now);
	return !qp || p->entry == UR_STATUS_QPS;
}

/* The parts of a long pass are spread over the time that one may take, so that it is over when the next one is due. */
static ur_time between_parts(uint32_t qps)
{
	return UR_STATUS_EVERY / (qps / AT_A_TIME + 1);
}

void ur_publisher_write(struct ur_publisher *p, const struct ur_nic *nic, ur_time now)
{
	struct ur_status *s = p->status;

	if (!p->entry) {
		p->began = now;
		p->events = events(nic);
		p->touched = false;
	}
	ur_status_begin(s);
	write_device(s, nic, now);
	if (write_qps(p, nic, now)) {
		s->qps = p->entry;
		p->place = p->entry = 0;
		p->next = UR_TIME_NEVER;
	} else {
		if (s->qps < p->entry)
			s->qps = p->entry;
		p->next = now + between_parts(ur_min_u32(s->total, UR_STATUS_QPS));
	}
	ur_status_end(s);
}

ur_time ur_publisher_next(const struct ur_publisher *p, const struct ur_nic *nic)
{
	if (!p->touched && events(nic) == p->events)
		return p->next;
	return p->began ? ur_min_time(p->next, p->began + UR_STATUS_EVERY) : 0;
}

void ur_publisher_touch(struct ur_publisher *p)
{
	p->touched = true;
}
