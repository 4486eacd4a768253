/* SPDX-License-Identifier: BSD-3-Clause */
/* Declarations that the files of lib/doctor share: adding to a report, and which function judges what. */
#ifndef UR_DOCTOR_INTERNAL_H
#define UR_DOCTOR_INTERNAL_H

#include "doctor/doctor.h"

/* The finding is there to be given a command; a report that is full forgets it. */
__attribute__((format(printf, 3, 4))) struct ur_doctor_finding *ur_doctor_add(struct ur_doctor_report *r, enum ur_doctor_id id,
									      const char *fmt, ...);
__attribute__((format(printf, 2, 3))) void ur_doctor_remedy(struct ur_doctor_finding *f, const char *fmt, ...);

/* Its command is the same call of uroce doctor as root, whose environment is another. */
void ur_doctor_as_root(struct ur_doctor_finding *x, const struct ur_doctor_facts *f);

typedef void ur_doctor_judge_fn(const struct ur_doctor_facts *f, struct ur_doctor_report *r);

/* port.c */
ur_doctor_judge_fn ur_doctor_judge_device, ur_doctor_judge_port, ur_doctor_judge_holder;
/* host.c */
ur_doctor_judge_fn ur_doctor_judge_mtu, ur_doctor_judge_kernel, ur_doctor_judge_buffer, ur_doctor_judge_merge, ur_doctor_judge_firewall,
	ur_doctor_judge_processes, ur_doctor_judge_memlock, ur_doctor_judge_cpu, ur_doctor_judge_clock, ur_doctor_judge_copy,
	ur_doctor_judge_settings;
/* peer.c */
ur_doctor_judge_fn ur_doctor_judge_peer, ur_doctor_judge_peer_mtu, ur_doctor_judge_cm, ur_doctor_judge_loss, ur_doctor_judge_gids;

#endif
