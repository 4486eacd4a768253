/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which QPs serve which service, learnt from the REQs and REPs of the CM that pass: then packets of a connection are known by its service
 * id, in both directions. Memory is bounded: the oldest REQ makes room for a new one, and so does the oldest QP.
 */
#ifndef UR_FAULT_CONNS_H
#define UR_FAULT_CONNS_H

#include "fault/rule.h"

struct ur_fault_conns;

/* NULL when there is no memory. */
struct ur_fault_conns *ur_fault_conns_create(void);
void ur_fault_conns_destroy(struct ur_fault_conns *c); /* NULL is nothing */

/* Sees a whole frame, of which `f` was found. */
void ur_fault_conns_see(struct ur_fault_conns *c, const uint8_t *frame, const struct ur_fault_frame *f);
/* The service of the connection that a QP belongs to, or 0. */
uint64_t ur_fault_conns_service(const struct ur_fault_conns *c, const struct ur_gid *dst, uint32_t qpn);

#endif
