/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection as the messages of its connection manager describe it. */
#ifndef UR_AN_CM_FACTS_H
#define UR_AN_CM_FACTS_H

#include "analyze/state/state.h"
#include "wire/msg/cm_msg.h"

#define AN_SAID ", with the private data: "
#define AN_SAID_MAX 96 /* characters of private data that are kept */

struct an_cm_message { /* of one kind, in one direction */
	uint32_t frame, newest, n;
	ur_time when, newest_when;
};

struct an_cm {
	struct ur_table_node node, pair; /* by its own id; by this and that of the other end, 0 as long as that is unknown */
	struct an_cm *later;
	uint64_t number;        /* of those that came before it */
	struct ur_gid src, dst; /* of the active and of the passive side */
	uint32_t id, other_id;
	bool sidr;
	bool used; /* while it is decided what is forgotten */
	bool cut;  /* the end of its REQ was cut off */
	struct ur_cm_req req;
	uint32_t req_have;       /* bytes of it that were recorded */
	uint32_t qpn[2], psn[2]; /* of who began, and the other; the first PSN that each sends */
	uint8_t depth[2], rnr_retry[2];
	struct an_cm_message msg[2][UR_CM_APR - UR_CM_REQ + 1];
	uint16_t reason;
	uint32_t rej_frame;
	uint32_t repeated;                           /* messages that came again */
	char said[3][AN_SAID_MAX + sizeof(AN_SAID)]; /* private data of REQ, REP and REJ, where it is text: AN_SAID and the text */
	struct an_flow *flow[2];                     /* from the active side; to it */
};

/* Of side `from`: 0 for who connects. */
static inline const struct an_cm_message *an_cm_message(const struct an_cm *c, unsigned from, enum ur_cm_attr attr)
{
	return &c->msg[from][attr - UR_CM_REQ];
}

/* Was the REP answered? An MRA does not end it. */
static inline bool an_cm_rep_ended(const struct an_cm *c)
{
	return an_cm_message(c, 0, UR_CM_RTU)->n || an_cm_message(c, 0, UR_CM_REJ)->n;
}

/* What the messages of a connection say of it. */
void an_cm_facts(const struct an_cm *c, struct ur_an_conn *out);
enum ur_an_ending an_cm_ending(const struct an_cm *c);
uint32_t an_cm_depth(const struct an_cm *c, bool second);

#endif
