/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ABI of API 1.7: values, the order of fields, sizes. A change here breaks existing consumers, so
 * lines may only be added to these files. They have no code.
 *
 * Sizes and offsets are in bytes. Objects begin with a struct kfid, which lock debugging enlarges,
 * so theirs are counted from its end.
 */
#ifndef KFI_LAYOUT_H
#define KFI_LAYOUT_H

#include <linux/build_bug.h>
#include <linux/stddef.h>

/* A constant has this value, or is this bit. */
#define VALUE(name, n)		static_assert((name) == (n))
#define FLAG(name, bit)		static_assert((name) == 1ULL << (bit))

/* A structure has this size, or a field at this place. */
#define SIZE(type, n)		static_assert(sizeof(struct type) == (n))
#define FIELD(type, field, n)	static_assert(offsetof(struct type, field) == (n))

/* The same for objects, from the end of their struct kfid. */
#define OBJECT(type, n)		SIZE(type, sizeof(struct kfid) + (n))
#define MEMBER(type, field, n)	FIELD(type, field, sizeof(struct kfid) + (n))

/* A table of operations: its size comes first, then @n slots, counted from 1. */
#define TABLE(type, n)		static_assert(!offsetof(struct type, size)); \
				SIZE(type, sizeof(size_t) + (n) * sizeof(void *))
#define SLOT(type, n, op)	FIELD(type, op, sizeof(size_t) + ((n) - 1) * sizeof(void *))

#endif /* KFI_LAYOUT_H */
