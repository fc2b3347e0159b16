// SPDX-License-Identifier: GPL-2.0
/* Helpers of the `block` crate; see the header for what belongs here. */
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/err.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "block_helpers.h"

/*
 * A worker handles a request of an unknown task, which may be freeing memory. So the worker does not wait
 * for memory, but may use the reserves. The same task must pass the result to block_helper_end_queueing().
 */
u32 block_helper_begin_queueing(void)
{
	return current->flags & PF_WQ_WORKER ? memalloc_noreclaim_save() : 0;
}

void block_helper_end_queueing(u32 flags)
{
	memalloc_noreclaim_restore(flags);
}

/* Each disk has a table of its own, for it names the module that the disk is of. */
static void free_disk(struct gendisk *disk)
{
	kfree(disk->fops);
}

static struct gendisk *new_disk(struct blk_mq_tag_set *set,
				const struct block_helper_limits *limits,
				const char *name, u64 sectors, void *data, struct module *owner)
{
	struct queue_limits lim = {
		.logical_block_size = limits->logical_block_size,
		.physical_block_size = limits->physical_block_size,
		.max_hw_sectors = limits->max_sectors,
		.max_segments = limits->max_segments,
		.max_segment_size = UINT_MAX,
		.virt_boundary_mask = limits->virt_boundary,
		.max_hw_discard_sectors = limits->max_discard_sectors,
		.discard_granularity = limits->discard_granularity,
		.max_discard_segments = 1,
		.max_write_zeroes_sectors = limits->max_write_zeroes_sectors,
	};
	const struct block_device_operations table = {
		.owner = owner,
		.free_disk = free_disk,
	};
	const struct block_device_operations *ops;
	struct gendisk *disk;

	if (limits->write_cache)
		lim.features |= BLK_FEAT_WRITE_CACHE;
	if (limits->fua)
		lim.features |= BLK_FEAT_FUA;
	ops = kmemdup(&table, sizeof(table), GFP_KERNEL);
	if (!ops)
		return ERR_PTR(-ENOMEM);

	disk = blk_mq_alloc_disk(set, &lim, data);
	if (IS_ERR(disk)) {
		kfree(ops);
		return disk;
	}
	disk->fops = ops;
	strscpy(disk->disk_name, name);
	set_capacity(disk, sectors);
	return disk;
}

/*
 * Makes a disk, and a member of the set, but doesn't add it.  With a name of at most
 * DISK_NAME_LEN - 1 characters.  May sleep, but doesn't wait for I/O: that of the set may be held up.
 */
struct gendisk *block_helper_new_disk(struct blk_mq_tag_set *set,
				      const struct block_helper_limits *limits,
				      const char *name, u64 sectors, void *data,
				      struct module *owner)
{
	unsigned int flags = memalloc_noio_save();
	struct gendisk *disk = new_disk(set, limits, name, sectors, data, owner);

	memalloc_noio_restore(flags);
	return disk;
}

/* Has no request of one disk queued, until that is undone for all of its set.  May sleep. */
void block_helper_quiesce_disk(struct gendisk *disk)
{
	blk_mq_quiesce_queue(disk->queue);
}

/* Adds a disk, or puts it.  Sleeps until the disk has been read. */
int block_helper_add_disk(struct gendisk *disk)
{
	const struct block_device_operations *ops = disk->fops;
	int ret;

	ret = device_add_disk(NULL, disk, NULL);
	if (ret) {
		put_disk(disk);
		/* One that was never added is freed without its table being asked. */
		kfree(ops);
	}
	return ret;
}

/* A discard has a length, but no memory. */
static bool has_memory(struct request *rq)
{
	return rq->bio && bio_has_data(rq->bio);
}

/*
 * Lists the memory of a request, which stays as it is until that has ended. Any context.
 *
 * Returns how many bio_vecs there are, which may be more than there was room for.
 */
u32 block_helper_bvecs(struct request *rq, struct bio_vec *list, u32 room)
{
	struct req_iterator iter;
	struct bio_vec bv;
	u32 n = 0;

	if (!has_memory(rq))
		return 0;
	rq_for_each_bvec(bv, rq, iter) {
		if (n < room)
			list[n] = bv;
		n++;
	}
	return n;
}

/* Copies the first @len bytes of a request, out to or in from memory. */
static u32 copy(struct request *rq, void *to, const void *from, u32 len)
{
	struct req_iterator iter;
	struct bio_vec bv;
	u32 done = 0;

	if (!has_memory(rq))
		return 0;
	rq_for_each_segment(bv, rq, iter) {
		bv.bv_len = min(bv.bv_len, len - done);
		if (to)
			memcpy_from_bvec(to + done, &bv);
		else
			memcpy_to_bvec(&bv, from + done);
		done += bv.bv_len;
		if (done == len)
			break;
	}
	return done;
}

/* Copies the first @len bytes of a request. Any context. Returns how many there were. */
u32 block_helper_copy_out(struct request *rq, void *to, u32 len)
{
	return copy(rq, to, NULL, len);
}

/* Copies to the first @len bytes of a request. Any context. Returns how many there were. */
u32 block_helper_copy_in(struct request *rq, const void *from, u32 len)
{
	return copy(rq, NULL, from, len);
}
