/* SPDX-License-Identifier: BSD-3-Clause */
/* A recording that never ends: what is over makes room. */
#ifndef UR_AN_FORGET_H
#define UR_AN_FORGET_H

#include "analyze/analyze.h"

/* A connection whose end has come, for the last time; what its halves have as `mine` is to be freed. */
typedef void (*ur_forget_fn)(void *ctx, const struct ur_an_conn *c);

/*
 * Connections of which nothing has come since `idle`, and closed ones of which nothing has come since `closed`, are finished as at the end
 * of a recording, handed to `gone`, and forgotten; so are the connection manager's exchanges, and hosts, that no other belongs to. Returns
 * how many connections these were. What is held back until it has shown whether each packet is recorded twice is decided now.
 */
uint32_t ur_analysis_forget(struct ur_analysis *a, ur_time idle, ur_time closed, ur_forget_fn gone, void *ctx);

#endif
