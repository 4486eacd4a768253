/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce doctor: which kinds of ports are available. */
#include <stdio.h>
#include <string.h>

#include "apps/uroce/cli/child.h"
#include "apps/uroce/doctor/doctor.h"
#include "uroce/uroce.h"

#define PORT_SECONDS 15 /* DPDK's EAL takes one or two on a slow machine */

static void try_port(const void *arg, void *result)
{
	struct ur_doctor_port *p = result;

	memset(p, 0, sizeof(*p));
	ur_child_plain_settings(arg);
	p->works = !uroce_start();
	if (!p->works)
		snprintf(p->why, sizeof(p->why), "%s", uroce_error());
}

void ur_doctor_try_ports(struct ur_doctor_facts *f)
{
	for (unsigned i = 0; i < UR_DOCTOR_PORTS; i++) {
		struct ur_doctor_port *p = &f->ports[i];

		if (ur_child_run(try_port, ur_doctor_port_names[i], p, sizeof(*p), PORT_SECONDS))
			continue;
		p->works = false;
		snprintf(p->why, sizeof(p->why), "a process that tried it died or had not finished after %d seconds", PORT_SECONDS);
	}
}
