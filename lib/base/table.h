/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A chained hash table of intrusive nodes. The owner of the nodes computes the hash and compares keys; the table grows by doubling
 * when nodes are added, and stays as it is, only slower, when memory for that is short.
 */
#ifndef UR_CM_TABLE_H
#define UR_CM_TABLE_H

#include "base/base.h"

struct ur_cm_node {
	struct ur_cm_node *next;
	uint64_t hash;
	bool in; /* on a table */
};

struct ur_cm_table {
	struct ur_cm_node **bucket;
	uint32_t size; /* a power of two */
	uint32_t used;
	uint64_t salt; /* makes the order of buckets unknown to peers */
};

/* 0 or ENOMEM. */
int ur_cm_table_init(struct ur_cm_table *t, uint64_t salt);
void ur_cm_table_fini(struct ur_cm_table *t);
/* The node must not be on a table. */
void ur_cm_table_add(struct ur_cm_table *t, struct ur_cm_node *n, uint64_t hash);
/* Harmless for a node that is on no table. */
void ur_cm_table_del(struct ur_cm_table *t, struct ur_cm_node *n);
/* Nodes with this hash, in no certain order: the first of them, or the next after `n`. NULL at the end. */
struct ur_cm_node *ur_cm_table_first(const struct ur_cm_table *t, uint64_t hash);
struct ur_cm_node *ur_cm_table_next(const struct ur_cm_node *n);

/* Mixes two words (the finalizer of splitmix64 on each). */
uint64_t ur_cm_table_hash(uint64_t salt, uint64_t a, uint64_t b);

#endif
