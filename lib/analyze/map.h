/* SPDX-License-Identifier: BSD-3-Clause */
/* Hash to object. */
#ifndef UR_AN_MAP_H
#define UR_AN_MAP_H

#include "analyze/state.h"

bool an_map_add(struct an_map *m, struct an_node *node, uint64_t hash);
void an_map_del(struct an_map *m, struct an_node *node);
/* The first of those with this hash; the next one is found by an_map_next. */
struct an_node *an_map_first(const struct an_map *m, uint64_t hash);
struct an_node *an_map_next(const struct an_node *node);
void an_map_fini(struct an_map *m);
uint64_t an_hash(const struct ur_gid *a, const struct ur_gid *b, uint64_t c);

#endif
