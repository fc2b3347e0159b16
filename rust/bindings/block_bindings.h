/* SPDX-License-Identifier: GPL-2.0 */
/* Input of bindgen for the block layer's abstractions. */
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <block_helpers.h>
