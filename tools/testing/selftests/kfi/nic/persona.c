// SPDX-License-Identifier: GPL-2.0
/*
 * The personalities: what a driver of the kernel says of its devices, and how these differ where a consumer
 * of verbs can see it. The figures are those of the drivers of Linux 7.3.
 */
#include <linux/sizes.h>

#include "nic.h"

#define PAGES_4K_UP	(~(u64)(SZ_4K - 1))
#define PAGES_UP_TO_2G	0x7ffff000
#define PAGES_UP_TO_128M 0xffff000

static const struct nic_persona personas[] = {
	{
		.name = "mlx5", .driver_id = RDMA_DRIVER_MLX5,
		.fast_reg = true, .local_inv = true, .inv_unchecked = true, .gaps = true,
		.own_drain = true, .last_wqe = true, .srq = true,
		.max_inline = 128, .max_pages = SZ_64K, .page_sizes = PAGES_4K_UP,
		.max_send_sge = 16, .max_recv_sge = 16, .max_read_sge = 16,
	}, {
		.name = "ib", .driver_id = RDMA_DRIVER_MLX5, .ib = true,
		.fast_reg = true, .local_inv = true, .inv_unchecked = true, .gaps = true,
		.own_drain = true, .last_wqe = true, .srq = true,
		.max_inline = 128, .max_pages = SZ_64K, .page_sizes = PAGES_4K_UP,
		.max_send_sge = 16, .max_recv_sge = 16, .max_read_sge = 16,
	}, {
		.name = "mlx4", .driver_id = RDMA_DRIVER_MLX4,
		.fast_reg = true, .local_inv = true, .all_memory_key = true,
		.own_drain = true, .last_wqe = true, .srq = true,
		.inline_over = NIC_INLINE_REDUCED,
		.max_inline = 0, .max_pages = 511, .page_sizes = PAGES_4K_UP,
		.max_send_sge = 16, .max_recv_sge = 16, .max_read_sge = 16,
	}, {
		.name = "bnxt_re", .driver_id = RDMA_DRIVER_BNXT_RE,
		.fast_reg = true, .local_inv = true, .all_memory_key = true,
		.last_wqe = true, .srq = true,
		.max_inline = 96, .max_pages = 512, .page_sizes = PAGES_UP_TO_2G,
		.max_send_sge = 6, .max_recv_sge = 6, .max_read_sge = 6,
	}, {
		.name = "irdma", .driver_id = RDMA_DRIVER_IRDMA, .iwarp = true,
		.fast_reg = true, .local_inv = true, .all_memory_key = true,
		.max_inline = 101, .max_pages = SZ_256K,
		.page_sizes = SZ_4K | SZ_2M | SZ_1G,
		.max_send_sge = 13, .max_recv_sge = 13, .max_read_sge = 13,
	}, {
		.name = "i40iw", .driver_id = RDMA_DRIVER_I40IW, .iwarp = true,
		.fast_reg = true, .local_inv = true, .all_memory_key = true,
		.max_inline = 48, .max_pages = SZ_256K, .page_sizes = SZ_4K | SZ_2M,
		.max_send_sge = 3, .max_recv_sge = 3, .max_read_sge = 1,
	}, {
		.name = "cxgb4", .driver_id = RDMA_DRIVER_CXGB4, .iwarp = true,
		.fast_reg = true, .local_inv = true, .all_memory_key = true,
		.last_wqe = true, .srq = true,
		.max_inline = 64, .max_pages = 128, .page_sizes = PAGES_UP_TO_128M,
		.max_send_sge = 4, .max_recv_sge = 4, .max_read_sge = 1,
	}, {
		.name = "hns", .driver_id = RDMA_DRIVER_HNS,
		.fast_reg = true,
		.own_drain = true, .last_wqe = true, .srq = true,
		.inline_over = NIC_INLINE_REDUCED,
		.max_inline = 32, .max_pages = 512, .page_sizes = PAGES_UP_TO_128M,
		.max_send_sge = 16, .max_recv_sge = 16, .max_read_sge = 16, .min_recv = 1,
	}, {
		.name = "erdma", .driver_id = RDMA_DRIVER_ERDMA,
		.fast_reg = true, .local_inv = true, .all_memory_key = true,
		.max_inline = 96, .max_pages = 512, .page_sizes = PAGES_UP_TO_2G,
		.max_send_sge = 6, .max_recv_sge = 1, .max_read_sge = 1, .min_recv = 1,
	}, {
		.name = "ionic", .driver_id = RDMA_DRIVER_IONIC,
		.fast_reg = true, .local_inv = true, .last_wqe = true, .srq = true,
		.max_inline = 64, .max_pages = 512, .page_sizes = PAGES_UP_TO_2G,
		.max_send_sge = 8, .max_recv_sge = 8, .max_read_sge = 8, .min_recv = 1,
	}, {
		.name = "qedr", .driver_id = RDMA_DRIVER_QEDR,
		.fast_reg = true, .local_inv = true, .all_memory_key = true, .srq = true,
		.max_inline = 128, .max_pages = SZ_8K, .page_sizes = PAGES_4K_UP,
		.max_send_sge = 4, .max_recv_sge = 4, .max_read_sge = 4,
	}, {
		.name = "pvrdma", .driver_id = RDMA_DRIVER_VMW_PVRDMA,
		.fast_reg = true, .local_inv = true, .last_wqe = true, .srq = true,
		.inline_over = NIC_INLINE_IGNORED,
		.max_inline = 0, .max_pages = 128, .page_sizes = PAGES_UP_TO_2G,
		.max_send_sge = 4, .max_recv_sge = 4, .max_read_sge = 4,
	}, {
		.name = "efa", .driver_id = RDMA_DRIVER_EFA,
		.max_inline = 32, .page_sizes = PAGES_4K_UP,
		.max_send_sge = 2, .max_recv_sge = 2, .max_read_sge = 1,
	},
};

/* Any context. */
const struct nic_persona *nic_persona_find(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(personas); i++)
		if (!strcmp(personas[i].name, name))
			return &personas[i];
	return NULL;
}
