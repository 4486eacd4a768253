/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which QPs belong together: by the messages of the connection manager, or by the PSNs of requests and their responses. 64 connections are
 * known; the one that is oldest makes room.
 */
#ifndef UR_BETWEEN_CONNECT_H
#define UR_BETWEEN_CONNECT_H

#include "base/base.h"

#define UR_ACCOUNT_CONNECTIONS 64

enum ur_account_known { UR_KNOWN_BY_PSN, UR_KNOWN_BY_CM };
enum ur_account_state {
	UR_CONNECTION_ASKED,  /* by a REQ */
	UR_CONNECTION_STANDS, /* by a REP, or because packets pass */
	UR_CONNECTION_REJECTED,
	UR_CONNECTION_CLOSED,
};

struct ur_account_side {
	struct ur_gid gid;
	uint32_t qpn; /* 0: not known yet */
	uint32_t id;  /* of the connection manager */
};

struct ur_account_connection {
	bool used;
	enum ur_account_known by;
	enum ur_account_state state;
	uint64_t number; /* in the order of their beginnings */
	ur_time began, ended;
	unsigned ended_by;            /* the side that rejected or closed it first */
	uint16_t reason;              /* of a rejection */
	uint8_t ack_timeout, retries; /* that the REQ names; ack_timeout 0: not known, or none */
	struct ur_account_side side[2];
};

struct ur_account_connections {
	struct ur_account_connection c[UR_ACCOUNT_CONNECTIONS];
	uint64_t number;   /* that have begun */
	uint64_t replaced; /* that made room for others */
	uint64_t rejected; /* by a REJ */
};

#endif
