/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets from one host to one QP of another, and which two of these belong together. */
#ifndef UR_AN_FLOW_H
#define UR_AN_FLOW_H

#include "analyze/state/state.h"

/* The flow of a packet; NULL when there are too many. */
struct an_flow *an_flow_of(struct ur_analysis *a, const struct an_pkt *p);
struct an_flow *an_flow_find(const struct ur_analysis *a, const struct ur_gid *src, const struct ur_gid *dst, uint32_t dqpn);
struct an_flow *an_flow_add(struct ur_analysis *a, const struct ur_gid *src, const struct ur_gid *dst, uint32_t dqpn, uint8_t service);
/* An answer whose flow has no peer: looks for the one. */
void an_flow_pair(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p);
void an_flow_join(struct ur_analysis *a, struct an_flow *first, struct an_flow *second);
/* Its number has been given to another QP: returns the flow of that, in a connection of its own; NULL when there are too many. */
struct an_flow *an_flow_renew(struct ur_analysis *a, struct an_flow *f);
void an_flow_retire(struct ur_analysis *a, struct an_flow *f);
bool an_conn_add(struct ur_analysis *a, struct an_flow *f);
/* Its requests begin with this PSN, by what is known of its start or by the first that came. */
void an_stream_begin(struct an_flow *f, uint32_t psn);
/* The same where the connection manager said; false when that is not known, or `psn`, which has been seen, is too far behind it. */
bool an_stream_begin_agreed(struct an_flow *f, uint32_t psn);
void an_set_mtu(struct ur_analysis *a, struct an_flow *f, uint32_t mtu);
/* With its peer; their place in the list of connections is the caller's. */
void an_flow_forget(struct ur_analysis *a, struct an_flow *f);
/* Pairs of hosts that no flow without a partner needs. */
void an_hosts_forget(struct ur_analysis *a);
void an_flows_fini(struct ur_analysis *a);

#endif
