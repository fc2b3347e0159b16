/* SPDX-License-Identifier: GPL-2.0 */
#ifndef KFI_RDMA_HELPERS_H
#define KFI_RDMA_HELPERS_H
#endif
