// SPDX-License-Identifier: GPL-2.0
/* Domains, regions and extensions. See layout.h. */
#include <kfi_domain.h>
#include <kfi_batch_ext.h>
#include <kfi_dma_ext.h>
#include <kfi_raw_ext.h>
#include <kfi_reserve_ext.h>
#include <kfi_reuse_ext.h>
#include <kfi_verbs_ext.h>

#include "layout.h"

/* --- kfi_domain.h --------------------------------------------------------------------------- */

FLAG(KFI_SYNC_ERR, 58);
FLAG(KFI_SYMMETRIC, 59);
FLAG(KFI_REG_MR, 59);

VALUE(KFI_INT8, 0);
VALUE(KFI_UINT8, 1);
VALUE(KFI_INT16, 2);
VALUE(KFI_UINT16, 3);
VALUE(KFI_INT32, 4);
VALUE(KFI_UINT32, 5);
VALUE(KFI_INT64, 6);
VALUE(KFI_UINT64, 7);
VALUE(KFI_FLOAT, 8);
VALUE(KFI_DOUBLE, 9);
VALUE(KFI_FLOAT_COMPLEX, 10);
VALUE(KFI_DOUBLE_COMPLEX, 11);
VALUE(KFI_LONG_DOUBLE, 12);
VALUE(KFI_LONG_DOUBLE_COMPLEX, 13);
VALUE(KFI_DATATYPE_LAST, 14);

VALUE(KFI_MIN, 0);
VALUE(KFI_MAX, 1);
VALUE(KFI_SUM, 2);
VALUE(KFI_PROD, 3);
VALUE(KFI_LOR, 4);
VALUE(KFI_LAND, 5);
VALUE(KFI_BOR, 6);
VALUE(KFI_BAND, 7);
VALUE(KFI_LXOR, 8);
VALUE(KFI_BXOR, 9);
VALUE(KFI_ATOMIC_READ, 10);
VALUE(KFI_ATOMIC_WRITE, 11);
VALUE(KFI_CSWAP, 12);
VALUE(KFI_CSWAP_NE, 13);
VALUE(KFI_CSWAP_LE, 14);
VALUE(KFI_CSWAP_LT, 15);
VALUE(KFI_CSWAP_GE, 16);
VALUE(KFI_CSWAP_GT, 17);
VALUE(KFI_MSWAP, 18);
VALUE(KFI_ATOMIC_OP_LAST, 19);

TABLE(kfi_ops_av, 6);
SLOT(kfi_ops_av, 1, insert);
SLOT(kfi_ops_av, 2, insertsvc);
SLOT(kfi_ops_av, 3, insertsym);
SLOT(kfi_ops_av, 4, remove);
SLOT(kfi_ops_av, 5, lookup);
SLOT(kfi_ops_av, 6, straddr);

TABLE(kfi_ops_domain, 9);
SLOT(kfi_ops_domain, 1, av_open);
SLOT(kfi_ops_domain, 2, cq_open);
SLOT(kfi_ops_domain, 3, endpoint);
SLOT(kfi_ops_domain, 4, scalable_ep);
SLOT(kfi_ops_domain, 5, cntr_open);
SLOT(kfi_ops_domain, 6, poll_open);
SLOT(kfi_ops_domain, 7, stx_ctx);
SLOT(kfi_ops_domain, 8, srx_ctx);
SLOT(kfi_ops_domain, 9, query_atomic);

TABLE(kfi_ops_mr, 5);
SLOT(kfi_ops_mr, 1, reg);
SLOT(kfi_ops_mr, 2, regv);
SLOT(kfi_ops_mr, 3, regbv);
SLOT(kfi_ops_mr, 4, regattr);
SLOT(kfi_ops_mr, 5, regsgl);

/* --- kfi_batch_ext.h ------------------------------------------------------------------------ */
TABLE(kfi_batch_ops, 4);
SLOT(kfi_batch_ops, 1, regattr_many);
SLOT(kfi_batch_ops, 2, close_many);
SLOT(kfi_batch_ops, 3, close_later);
SLOT(kfi_batch_ops, 4, close_now);
SIZE(kfi_closing, 24);
FIELD(kfi_closing, done, 0);

/* --- kfi_dma_ext.h -------------------------------------------------------------------------- */

TABLE(kfi_dma_ops, 4);
SLOT(kfi_dma_ops, 1, map_sg);
SLOT(kfi_dma_ops, 2, unmap_sg);
SLOT(kfi_dma_ops, 3, sync_sg_for_cpu);
SLOT(kfi_dma_ops, 4, sync_sg_for_device);

/* --- kfi_raw_ext.h -------------------------------------------------------------------------- */

VALUE(KFI_RAW_KEY_MAGIC, 0x4b52464b);
VALUE(KFI_RAW_KEY_VERSION, 1);
VALUE(KFI_RAW_KEY_MOST, 4096);
VALUE(KFI_RAW_KEY_SIZE(0), sizeof(struct kfi_raw_key));
VALUE(KFI_RAW_KEY_SIZE(3), 96);
FLAG(KFI_RAW_KEY_MAPPED, 63);

FIELD(kfi_raw_key_piece, rkey, 0);
FIELD(kfi_raw_key_piece, base, 8);
FIELD(kfi_raw_key_piece, length, 16);
SIZE(kfi_raw_key_piece, 24);

FIELD(kfi_raw_key, magic, 0);
FIELD(kfi_raw_key, version, 4);
FIELD(kfi_raw_key, reserved, 6);
FIELD(kfi_raw_key, count, 8);
FIELD(kfi_raw_key, reserved2, 12);
FIELD(kfi_raw_key, total, 16);
FIELD(kfi_raw_key, piece, 24);

TABLE(kfi_raw_ops, 1);
SLOT(kfi_raw_ops, 1, resolve);

/* --- kfi_reserve_ext.h ---------------------------------------------------------------------- */

TABLE(kfi_reserve_ops, 1);
SLOT(kfi_reserve_ops, 1, reserve);

/* --- kfi_reuse_ext.h ------------------------------------------------------------------------ */

TABLE(kfi_reuse_ops, 5);
SLOT(kfi_reuse_ops, 1, open);
SLOT(kfi_reuse_ops, 2, fill);
SLOT(kfi_reuse_ops, 3, empty_now);
SLOT(kfi_reuse_ops, 4, empty);
SLOT(kfi_reuse_ops, 5, flush);

/* --- kfi_verbs_ext.h ------------------------------------------------------------------------ */

SIZE(kfi_verbs_dom_ops, 4 * sizeof(void *));
FIELD(kfi_verbs_dom_ops, get_ib_device, 0);
FIELD(kfi_verbs_dom_ops, get_pd, sizeof(void *));
FIELD(kfi_verbs_dom_ops, on_removal, 2 * sizeof(void *));
FIELD(kfi_verbs_dom_ops, get_lkey, 3 * sizeof(void *));

#ifdef CONFIG_64BIT

/* --- kfi_domain.h --------------------------------------------------------------------------- */

FIELD(kfi_av_attr, type, 0);
FIELD(kfi_av_attr, rx_ctx_bits, 4);
FIELD(kfi_av_attr, count, 8);
FIELD(kfi_av_attr, ep_per_node, 16);
FIELD(kfi_av_attr, name, 24);
FIELD(kfi_av_attr, map_addr, 32);
FIELD(kfi_av_attr, flags, 40);
SIZE(kfi_av_attr, 48);

FIELD(kfid_av, fid, 0);
MEMBER(kfid_av, ops, 0);
OBJECT(kfid_av, 8);

FIELD(kfid_mr, fid, 0);
MEMBER(kfid_mr, mem_desc, 0);
MEMBER(kfid_mr, key, 8);
MEMBER(kfid_mr, iova, 16);
OBJECT(kfid_mr, 24);

FIELD(kfi_mr_attr, type, 0);
FIELD(kfi_mr_attr, mr_iov, 8);
FIELD(kfi_mr_attr, mr_biov, 8);
FIELD(kfi_mr_attr, mr_sgl, 8);
FIELD(kfi_mr_attr, iov_count, 16);
FIELD(kfi_mr_attr, access, 24);
FIELD(kfi_mr_attr, offset, 32);
FIELD(kfi_mr_attr, requested_key, 40);
FIELD(kfi_mr_attr, context, 48);
FIELD(kfi_mr_attr, auth_key_size, 56);
FIELD(kfi_mr_attr, auth_key, 64);
SIZE(kfi_mr_attr, 72);

FIELD(kfi_mr_modify, flags, 0);
FIELD(kfi_mr_modify, attr, 8);
SIZE(kfi_mr_modify, 80);

FIELD(kfid_domain, fid, 0);
MEMBER(kfid_domain, ops, 0);
MEMBER(kfid_domain, mr, 8);
OBJECT(kfid_domain, 16);

#endif /* CONFIG_64BIT */
