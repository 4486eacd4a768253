/* SPDX-License-Identifier: BSD-3-Clause */
/* The hash table: growing, nodes with one hash, and objects by their keys. */
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"

void ur_suite_table(void);

static void table__grows_and_forgets(void)
{
	static struct ur_table_node node[1000];
	struct ur_table t;

	memset(node, 0, sizeof(node));
	CU_ASSERT_EQUAL_FATAL(ur_table_init(&t, 99), 0);
	for (unsigned i = 0; i < 1000; i++)
		ur_table_add(&t, &node[i], ur_table_hash(t.salt, i / 2, 0));
	CU_ASSERT_EQUAL(t.used, 1000);
	CU_ASSERT_EQUAL(t.size, 1024);
	for (unsigned i = 0; i < 1000; i += 2) {
		struct ur_table_node *n = ur_table_first(&t, node[i].hash), *m;

		CU_ASSERT(n == &node[i] || n == &node[i + 1]);
		m = ur_table_next(n);
		CU_ASSERT(m && m != n && (m == &node[i] || m == &node[i + 1]));
		CU_ASSERT_PTR_NULL(ur_table_next(m));
		ur_table_del(&t, &node[i]);
		ur_table_del(&t, &node[i]);
		CU_ASSERT_PTR_EQUAL(ur_table_first(&t, node[i].hash), &node[i + 1]);
		ur_table_del(&t, &node[i + 1]);
		CU_ASSERT_PTR_NULL(ur_table_first(&t, node[i].hash));
	}
	CU_ASSERT_EQUAL(t.used, 0);
	ur_table_fini(&t);
}

#define KEYS 97u

struct item {
	unsigned number;
	struct ur_table_node node;
};

/* Five items of each key, and of each pair of keys the same hash: all of a hash are visited, once each, and no other. */
static void for_each__visits_one_hash(void)
{
	static struct item item[5 * KEYS];
	bool seen[5 * KEYS];
	struct ur_table t;
	struct item *at;

	memset(item, 0, sizeof(item));
	CU_ASSERT_EQUAL_FATAL(ur_table_init(&t, 7), 0);
	for (unsigned i = 0; i < 5 * KEYS; i++) {
		item[i].number = i;
		ur_table_add(&t, &item[i].node, ur_table_hash(t.salt, i % KEYS / 2, 1));
	}
	for (unsigned key = 0; key < KEYS; key++) {
		unsigned n = 0;

		memset(seen, 0, sizeof(seen));
		ur_table_for_each (at, &t, ur_table_hash(t.salt, key / 2, 1), node) {
			CU_ASSERT(at == &item[at->number] && at->number % KEYS / 2 == key / 2 && !seen[at->number]);
			seen[at->number] = true;
			n++;
		}
		CU_ASSERT_EQUAL(n, key == KEYS - 1 ? 5 : 10);
	}
	at = NULL;
	ur_table_for_each (at, &t, ur_table_hash(t.salt, 0, 2), node)
		CU_FAIL("an item with another hash");
	CU_ASSERT_PTR_NULL(at);
	ur_table_fini(&t);
}

/* However often it has grown, of nodes with one hash the newest comes first. */
static void table__newest_first(void)
{
	static struct ur_table_node node[1000];
	struct ur_table t = {0};
	unsigned wrong = 0;

	memset(node, 0, sizeof(node));
	for (unsigned i = 0; i < 1000; i++) {
		CU_ASSERT_TRUE(ur_table_add(&t, &node[i], ur_table_hash(0, i % 200, 0)));
		wrong += ur_table_first(&t, node[i].hash) != &node[i];
		for (unsigned j = i; j >= 200; j -= 200)
			wrong += ur_table_next(&node[j]) != &node[j - 200];
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_EQUAL(t.size, 1024);
	ur_table_fini(&t);
}

static unsigned freed;

static void free_item(struct ur_table_node *n)
{
	free(ur_container_of(n, struct item, node));
	freed++;
}

/* A table of zeroes is empty: it can be asked, cleared and finished, and begins with the first node. */
static void table__of_zeroes(void)
{
	struct ur_table t = {0};

	CU_ASSERT_PTR_NULL(ur_table_first(&t, 0));
	CU_ASSERT_PTR_NULL(ur_table_first(&t, 12345));
	freed = 0;
	ur_table_clear(&t, free_item);
	CU_ASSERT_EQUAL(freed, 0);
	for (unsigned i = 0; i < 200; i++) {
		struct item *one = calloc(1, sizeof(*one));

		CU_ASSERT_PTR_NOT_NULL_FATAL(one);
		CU_ASSERT_TRUE(ur_table_add(&t, &one->node, i / 3));
	}
	ur_table_clear(&t, free_item);
	CU_ASSERT_EQUAL(freed, 200);
	CU_ASSERT_PTR_NULL(ur_table_first(&t, 0));
	ur_table_fini(&t);
}

void ur_suite_table(void)
{
	CU_pSuite s = CU_add_suite("table", NULL, NULL);

	CU_ADD_TEST(s, table__grows_and_forgets);
	CU_ADD_TEST(s, for_each__visits_one_hash);
	CU_ADD_TEST(s, table__newest_first);
	CU_ADD_TEST(s, table__of_zeroes);
}
