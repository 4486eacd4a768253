/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows of received messages that are one packet each: WRITE ONLY, SEND ONLY. They are executed as rx_run.c says of the middle of a message,
 * but for one thing: programs look at the end of a message, so no byte is written before the ICRC of its packet is known to be right.
 */
#ifndef UR_RX_ONLY_H
#define UR_RX_ONLY_H

#include "transport/transport.h"

/* A packet with this BTH may be one of such a row. */
bool ur_rx_only_may(const uint8_t *bth);
/* Executes those that the QP, an RC one in RTR or RTS, waits for, from the first on: returns how many. */
unsigned ur_rx_only(struct ur_qp *qp, const struct ur_row *row, ur_time now);

#endif
