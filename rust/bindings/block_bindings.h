/* SPDX-License-Identifier: GPL-2.0 */
/* What bindgen reads for the block layer's abstractions. */
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <block_helpers.h>
