/* SPDX-License-Identifier: GPL-2.0 */
/* Input of bindgen for the kernel's NVMe core. */
#include <linux/blk-mq.h>
#include <linux/nvme.h>
#include <nvme.h>
#include <fabrics.h>
#include <nvme_helpers.h>
