/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers of the `block` crate for macros and static inlines of the block layer, one call for each
 * operation.
 */
#ifndef BLOCK_HELPERS_H
#define BLOCK_HELPERS_H

#include <linux/types.h>

struct bio_vec;
struct blk_mq_tag_set;
struct gendisk;
struct module;
struct request;

/* Limits of a disk. A maximum of 0 sectors means that the operation is not supported. */
struct block_helper_limits {
	u32 logical_block_size;
	u32 physical_block_size;
	u32 max_sectors;
	u32 max_segments;
	/* No segment but the first begins, and none but the last ends, elsewhere than here; or 0. */
	u64 virt_boundary;
	u32 max_discard_sectors;
	u32 discard_granularity;
	u32 max_write_zeroes_sectors;
	bool write_cache;
	bool fua;
};

struct gendisk *block_helper_new_disk(struct blk_mq_tag_set *set,
				      const struct block_helper_limits *limits,
				      const char *name, u64 sectors, void *data,
				      struct module *owner);
void block_helper_quiesce_disk(struct gendisk *disk);
int block_helper_add_disk(struct gendisk *disk);
u32 block_helper_begin_queueing(void);
void block_helper_end_queueing(u32 flags);
u32 block_helper_bvecs(struct request *rq, struct bio_vec *list, u32 room);
u32 block_helper_copy_out(struct request *rq, void *to, u32 len);
u32 block_helper_copy_in(struct request *rq, const void *from, u32 len);

#endif /* BLOCK_HELPERS_H */
