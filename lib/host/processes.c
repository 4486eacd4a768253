/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes that use a device, for an observer that does not: what the kernel says of each process, and what its page says. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/handshake.h"
#include "host/processes.h"

#define SHOWN offsetof(struct ur_page, with)
#define LOOKS 8 /* at a page that changes meanwhile */

/* Reads what is of use; nothing is mapped. */
static bool read_page(int memfd, struct ur_page *page)
{
	for (unsigned i = 0; i < LOOKS; i++) {
		uint32_t before;

		if (pread(memfd, &before, sizeof(before), offsetof(struct ur_page, ports.changes)) != sizeof(before) ||
		    pread(memfd, page, SHOWN, 0) != (ssize_t)SHOWN)
			return false;
		if (!(before & 1) && atomic_load(&page->ports.changes) == before)
			break;
	}
	return true;
}

static unsigned copy_ports(const struct ur_port_table *t, struct ur_process_port *out)
{
	unsigned used = ur_min_u32(t->used, UR_PORTS), n = 0;

	for (unsigned i = 0; i < used; i++) {
		const struct ur_port_entry *e = &t->entry[i];

		if (e->state == UR_PORT_HELD)
			out[n++] = (struct ur_process_port){
				.port_space = e->port_space, .port = e->port, .listening = e->listening, .gid = e->gid};
	}
	return n;
}

struct looking {
	struct ur_process process[UR_SLOTS];
	unsigned n;
	struct ur_process_port *port; /* of all of them */
	unsigned ports;
	struct ur_page *page; /* the one that is being read */
};

/* The reader may be root at a terminal: text of another process must not contain control characters. */
static void take_kind(char kind[UR_KIND], const char *page)
{
	for (unsigned i = 0; i < UR_KIND - 1 && page[i]; i++)
		kind[i] = page[i] >= ' ' && page[i] <= '~' ? page[i] : '?';
}

static int look_at_page(struct looking *l, int memfd, struct ur_process *p)
{
	struct ur_process_port *more;

	if (!read_page(memfd, l->page))
		return 0;
	more = realloc(l->port, (l->ports + ur_min_u32(l->page->ports.used, UR_PORTS) + 1) * sizeof(*more));
	if (!more)
		return ENOMEM;
	l->port = more;
	p->known = true;
	p->started = l->page->started;
	p->met = ur_min_u32(l->page->met, UR_SLOTS);
	p->fetched = ur_min_u32(l->page->fetched, p->met);
	take_kind(p->kind, l->page->kind);
	p->port_count = copy_ports(&l->page->ports, l->port + l->ports);
	l->ports += p->port_count;
	return 0;
}

static int add_process(struct looking *l, const struct ur_slot_user *user, uint8_t slot)
{
	struct ur_process *p = &l->process[l->n];
	int err = 0;

	if (user->pid < 0)
		return 0;
	*p = (struct ur_process){.pid = user->pid, .uid = user->uid, .slot = slot};
	l->n++;
	if (user->memfd >= 0) {
		err = look_at_page(l, user->memfd, p);
		close(user->memfd);
	}
	return err;
}

/* Each lane of a process has a slot, and one of them the ports. */
static void join_lane(struct ur_process *p, const struct ur_process *lane)
{
	if (p->lanes < UR_PROCESS_LANES)
		p->further[p->lanes++] = lane->slot;
	if (!lane->port_count)
		return;
	p->ports = lane->ports;
	p->port_count = lane->port_count;
}

static void join_lanes(struct ur_processes *v)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < v->count; i++) {
		struct ur_process *p = v->processes;

		while (p < &v->processes[kept] && (p->pid <= 0 || p->pid != v->processes[i].pid))
			p++;
		if (p < &v->processes[kept])
			join_lane(p, &v->processes[i]);
		else
			v->processes[kept++] = v->processes[i];
	}
	v->count = kept;
}

/* One piece of memory. */
static struct ur_processes *view_of(const struct looking *l)
{
	struct ur_processes *v = malloc(sizeof(*v) + l->n * sizeof(v->processes[0]) + l->ports * sizeof(*l->port));
	struct ur_process_port *port;

	if (!v)
		return NULL;
	v->count = l->n;
	memcpy(v->processes, l->process, l->n * sizeof(v->processes[0]));
	port = (struct ur_process_port *)&v->processes[l->n];
	if (l->ports)
		memcpy(port, l->port, l->ports * sizeof(*port));
	for (unsigned i = 0; i < l->n; port += v->processes[i++].port_count)
		v->processes[i].ports = port;
	join_lanes(v);
	return v;
}

int ur_processes_list(uint64_t key, struct ur_processes **out)
{
	struct ur_slot_user user[UR_SLOTS];
	struct looking *l = calloc(1, sizeof(*l));
	int err = 0;

	if (l)
		l->page = aligned_alloc(_Alignof(struct ur_page), SHOWN);
	if (!l || !l->page) {
		free(l);
		return ENOMEM;
	}
	ur_handshake_ask(key, user);
	for (unsigned s = 1; s < UR_SLOTS; s++) {
		int failed = add_process(l, &user[s], (uint8_t)s);

		err = err ? err : failed;
	}
	*out = err ? NULL : view_of(l);
	err = err ? err : *out ? 0 : ENOMEM;
	free(l->page);
	free(l->port);
	free(l);
	return err;
}
