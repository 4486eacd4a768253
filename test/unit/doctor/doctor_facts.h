/* SPDX-License-Identifier: BSD-3-Clause */
/* Facts of a host and a peer without fault, which tests spoil. */
#ifndef DOCTOR_FACTS_H
#define DOCTOR_FACTS_H

#include "doctor/doctor.h"

static inline void healthy(struct ur_doctor_facts *f)
{
	*f = (struct ur_doctor_facts){
		.net_raw = true,
		.net_admin = true,
		.dev = "eth0",
		.up = true,
		.carrier = true,
		.mtu = 9000,
		.addresses = 2,
		.v4 = true,
		.address = "192.0.2.2",
		.gro = true,
		.port_setting = "auto",
		.ports = {{.works = true}, {.works = true}, {.works = true}},
		.release = "6.1.0",
		.udp_segment = true,
		.udp_gro = true,
		.rmem_max = 212992,
		.holders_known = true,
		.firewall = {.verdict = UR_FIREWALL_PASSES},
		.processes_known = true,
		.memlock = 8 << 20,
		.cpus = 4,
		.spin_us = 100,
		.clock = "tsc",
		.clock_ns = 30,
		.with_peer = true,
		.peer = {.name = "host",
			 .address = "192.0.2.1",
			 .routed = true,
			 .dev = "eth0",
			 .ping = UR_DOCTOR_PING_ANSWERS,
			 .sized = true,
			 .bytes = 4192,
			 .cm = UR_DOCTOR_CM_ANSWERS,
			 .sent = 1000,
			 .answered = 1000,
			 .gid_count = 1,
			 .gids = {{.address = "192.0.2.1", .answers = true}}},
	};
}

#endif
