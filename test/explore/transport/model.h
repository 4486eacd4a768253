/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What RDMA promises of the messages of a scenario, checked by what can be seen after each step: the memory and the completions. The bytes
 * of a message are known by its number, so memory tells which messages have been executed.
 *
 *   - A message is executed after all those before it, once: what a later one has written or counted never comes back. A READ may be
 *     executed again, and sees what has been written until then.
 *   - Completions come in the order of posting, a send's not before its message was executed, each with the right values.
 *   - Memory belongs to the program again once it has completed; it overwrites it, and whatever is done with it later shows.
 *   - Nothing beside is touched, and no QP fails.
 */
#ifndef UR_EXPLORE_MODEL_H
#define UR_EXPLORE_MODEL_H

#include "test/explore/transport/world.h"

/* After world_open. Exits when there is no such scenario. */
void model_open(void);
/* May that end post a message or a receive? */
bool model_can_post(unsigned q, unsigned node);
bool model_can_receive(unsigned q, unsigned node);
void model_post(unsigned q, unsigned node);
void model_receive(unsigned q, unsigned node);
/* A QP has failed where that may be: what comes then is of no interest. */
bool model_is_over(void);
/* After each step: takes completions, checks all. */
void model_check(void);
/* Nothing can happen any more: is everything complete? */
void model_check_end(void);
/* The letter of the message that is posted next, or was posted as the one before. */
char model_letter(unsigned q, unsigned node, unsigned message);

#endif
