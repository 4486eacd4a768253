/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of `uroce doctor` share: who reads which facts, and who prints what lib/doctor makes of them. */
#ifndef UR_APP_DOCTOR_H
#define UR_APP_DOCTOR_H

#include <netinet/in.h>

#include "doctor/doctor.h"

/* ports.c: opens the device as a program does and starts it with a port of that kind, in a child. */
void ur_doctor_try_ports(struct ur_doctor_facts *f);

/* host.c: this process, the kernel, limits, CPUs, clock, settings. */
void ur_doctor_read_host(struct ur_doctor_facts *f);
/* device.c: the interface, other processes, sockets on UDP port 4791, rdma_rxe. */
void ur_doctor_read_device(struct ur_doctor_facts *f);
/* firewall.c */
void ur_doctor_read_firewall(struct ur_doctor_facts *f);

/* The peer's addresses: that of its name, by which it is asked, and others that its host seems to have. */
struct ur_doctor_targets {
	unsigned count;
	struct {
		struct sockaddr_in6 addr; /* IPv4 as ::ffff:a.b.c.d */
		bool guessed;             /* it may be that nobody has it */
	} at[UR_DOCTOR_GIDS];
};

/* route.c: who the peer is, and the route to it. */
void ur_doctor_read_route(struct ur_doctor_facts *f, struct ur_doctor_targets *t);
/* Of a peer that did not answer the CM: what ICMP says to a datagram for UDP port 4791 there. */
void ur_doctor_read_refusal(struct ur_doctor_facts *f, const struct ur_doctor_targets *t);
/* The other addresses of the peer, as far as the kernel's table of neighbours shows them; after it was spoken to. */
void ur_doctor_read_neighbours(struct ur_doctor_targets *t);
/* ping.c */
void ur_doctor_ping(struct ur_doctor_facts *f, const struct ur_doctor_targets *t);
/* cm.c: by messages of the CM, over a port of our own. */
void ur_doctor_ask_cm(struct ur_doctor_facts *f, const struct ur_doctor_targets *t);

/* print.c */
void ur_doctor_print(const struct ur_doctor_facts *f, const struct ur_doctor_report *r);
void ur_doctor_print_json(const struct ur_doctor_facts *f, const struct ur_doctor_report *r);

#endif
