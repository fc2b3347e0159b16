/* SPDX-License-Identifier: GPL-2.0 */
/* How the cases of slots.h make their objects. */
#ifndef KFI_TEST_BARE_H
#define KFI_TEST_BARE_H

#include <linux/string.h>

#include <kfabric.h>

#include "slots.h"

/* Larger than any table of operations, and without pointers that could be called. */
union bare_ops {
	size_t size;
	void *slots[64];
};

/* Fill @ops as @how says, and return what an object's pointer to its table must be. */
static inline void *bare(union bare_ops *ops, unsigned int how, size_t size)
{
	if (how == NO_TABLE)
		return NULL;
	/* In a table that is too short, what is behind its end must not be touched. */
	memset(ops, how == SHORT_TABLE ? 0x11 : 0, sizeof(*ops));
	ops->size = how == SHORT_TABLE ? sizeof(size_t) : how == SIZED_TABLE ? size : 0;
	return ops;
}

#define BARE(ops, how, type)	((type *)bare(ops, how, sizeof(type)))

#endif /* KFI_TEST_BARE_H */
