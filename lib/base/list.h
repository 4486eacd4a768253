/* SPDX-License-Identifier: BSD-3-Clause */
/* Intrusive doubly linked lists. A node that is on no list points to itself, so removing it twice does no harm. */
#ifndef UR_LIST_H
#define UR_LIST_H

#include "base/base.h"

struct ur_list {
	struct ur_list *next, *prev;
};

static inline void ur_list_init(struct ur_list *l)
{
	l->next = l->prev = l;
}

static inline bool ur_list_empty(const struct ur_list *l)
{
	return l->next == l;
}

static inline void ur_list_add_tail(struct ur_list *head, struct ur_list *node)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

static inline void ur_list_del(struct ur_list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	ur_list_init(node);
}

static inline struct ur_list *ur_list_pop(struct ur_list *head)
{
	struct ur_list *n = head->next;

	if (n == head)
		return NULL;
	ur_list_del(n);
	return n;
}

#define ur_list_for_each_safe(pos, tmp, head) \
	for ((pos) = (head)->next, (tmp) = (pos)->next; (pos) != (head); (pos) = (tmp), (tmp) = (pos)->next)

#endif
