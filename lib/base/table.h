/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A chained hash table of intrusive nodes. The owner of the nodes computes the hash and compares keys; the table grows by doubling
 * when nodes are added, and stays as it is, only slower, when memory for that is short. A table of zeroes is an empty one.
 */
#ifndef UR_TABLE_H
#define UR_TABLE_H

#include "base/base.h"

struct ur_table_node {
	struct ur_table_node *next;
	uint64_t hash;
	bool in; /* on a table */
};

struct ur_table {
	struct ur_table_node **bucket;
	uint32_t size; /* a power of two */
	uint32_t used;
	uint64_t salt; /* makes the order of buckets unknown to peers */
};

/* 0 or ENOMEM. After it, ur_table_add does not fail. */
int ur_table_init(struct ur_table *t, uint64_t salt);
void ur_table_fini(struct ur_table *t);
/* Finishes the table, and hands each node that was on it to `gone`, which may free it. */
void ur_table_clear(struct ur_table *t, void (*gone)(struct ur_table_node *n));
/* The node must not be on a table. False when the table was all zeroes and there is no memory to begin it. */
bool ur_table_add(struct ur_table *t, struct ur_table_node *n, uint64_t hash);
/* Harmless for a node that is on no table. */
void ur_table_del(struct ur_table *t, struct ur_table_node *n);
/* Nodes with this hash, the one added last before the others: the first of them, or the next after `n`. NULL at the end. */
struct ur_table_node *ur_table_first(const struct ur_table *t, uint64_t hash);
struct ur_table_node *ur_table_next(const struct ur_table_node *n);
/* For each object with this hash: `obj` points to it, whose node is `member`. The table stays as it is until the loop is left. */
#define ur_table_for_each(obj, table, hash, member)                                                                                        \
	for (struct ur_table_node *n_ = ur_table_first(table, hash); n_ && ((obj) = ur_container_of(n_, __typeof__(*(obj)), member));      \
	     n_ = ur_table_next(n_))

/* Mixes two words (the finalizer of splitmix64 on each). */
uint64_t ur_table_hash(uint64_t salt, uint64_t a, uint64_t b);

#endif
