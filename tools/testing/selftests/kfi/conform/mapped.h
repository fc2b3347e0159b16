/* SPDX-License-Identifier: GPL-2.0 */
/* A raw key on its way to a peer, and accesses by the key that the peer has made of it. */
#ifndef KFI_CONFORM_MAPPED_H
#define KFI_CONFORM_MAPPED_H

#include <kfi_raw_ext.h>

#include "conform.h"

/* Room for a raw key, in bytes. */
#define MAPPED_ROOM	4096

/**
 * struct mapped - a raw key and what a peer has made of it
 * @peer: A domain of the peer's own.
 * @ops: Looks into mapped keys.
 * @raw: The bytes.
 * @size: How many.
 * @base: The base address of the pieces.
 * @key: The key that they were mapped to.
 * @open: Whether they are mapped.
 */
struct mapped {
	struct place *peer;
	const struct kfi_raw_ops *ops;
	u8 *raw;
	size_t size;
	u64 base;
	u64 key;
	bool open;
};

bool map_begin(struct kfi_test *t, struct mapped *m, struct place *p);
void map_end(struct kfi_test *t, struct mapped *m);
bool take_key(struct kfi_test *t, struct mapped *m, struct place *p, struct kfid_mr *mr);
bool map_key(struct kfi_test *t, struct mapped *m);
int access_by(struct place *p, struct mapped *m, u64 offset, u8 *buf, size_t len, bool write);
void whole_region(struct kfi_test *t, struct place *p, struct mapped *m, size_t total);

#endif /* KFI_CONFORM_MAPPED_H */
