/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce info: the processes that use the device, and the ports on which they listen or to which they are bound. */
#include "apps/uroce/info/info.h"

#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/cli/watch_find.h"
#include "host/processes.h"
#include "wire/gid_set.h"

static const char *port_space_text(uint16_t ps, char *buf, size_t len)
{
	static const struct {
		uint16_t ps;
		const char *name;
	} names[] = {{RDMA_PS_IPOIB, "ipoib"}, {RDMA_PS_TCP, "tcp"}, {RDMA_PS_UDP, "udp"}, {RDMA_PS_IB, "ib"}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].ps == ps)
			return names[i].name;
	snprintf(buf, len, "port space 0x%x", ps);
	return buf;
}

static void print_port(const struct ur_process_port *p)
{
	char addr[UR_IP_TEXT], ps[32];

	printf("        %s %s ", p->listening ? "listens on" : "bound to", port_space_text(p->port_space, ps, sizeof(ps)));
	if (ur_gid_is_zero(&p->gid))
		printf("*:%u\n", p->port);
	else if (ur_gid_eq(&p->gid, &ur_gid_all_v6))
		printf("[::]:%u\n", p->port);
	else
		printf(ur_gid_is_v4(&p->gid) ? "%s:%u\n" : "[%s]:%u\n", ur_gid_ip(&p->gid, addr), p->port);
}

static void print_uses(const struct ur_watch_sample *look, int pid, const char *interface)
{
	const struct ur_watch_process *p = ur_watch_process_find(look, pid, interface);

	if (p && p->status.uses[0])
		printf("        uses %s\n", p->status.uses);
}

static void print_copies(const struct ur_process *p)
{
	if (!p->met)
		return;
	if (p->fetched == p->met)
		puts("        copies long messages of the others straight from their memory");
	else
		printf("        copies long messages straight from the memory of %u of %u others, which send packets otherwise\n",
		       p->fetched, p->met);
}

int ur_info_processes(const struct ur_device *d)
{
	struct ur_processes *v;
	struct ur_watch_sample *look;
	int err = ur_processes_list(d->key, &v);

	if (err)
		return ur_cmd_fail(UR_EXIT_FAIL, "cannot query the processes that use the device: %s", strerror(err));
	look = v->count ? ur_watch_find() : NULL; /* without it there is a line less */
	puts(v->count ? "\nprocesses" : "\nno process uses it");
	for (unsigned i = 0; i < v->count; i++) {
		const struct ur_process *p = &v->processes[i];

		printf("  %d  slot %u", (int)p->pid, p->slot);
		for (unsigned k = 0; k < p->lanes; k++)
			printf(", %u", p->further[k]);
		printf("  ");
		if (p->known)
			printf("%s%s\n", p->started ? "port " : "not started", p->started ? p->kind : "");
		else if (p->uid == geteuid())
			puts("does not answer");
		else
			printf("of user %u\n", (unsigned)p->uid);
		if (p->known) {
			print_uses(look, (int)p->pid, d->info.ifname);
			ur_info_keeper(p->pid, d->info.ifname);
			print_copies(p);
		}
		for (unsigned k = 0; k < p->port_count; k++)
			print_port(&p->ports[k]);
	}
	ur_watch_free(look);
	free(v);
	return 0;
}
