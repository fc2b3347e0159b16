// SPDX-License-Identifier: GPL-2.0

//! That Rust sees what C sees: values, order of fields, sizes, of all that crosses the border.
//!
//! `rust/helpers/layout/` holds the same for C. Sizes and places are in bytes; those of objects
//! are counted from the end of their `struct kfid`, which lock debugging enlarges. No code.

use core::mem::offset_of;
use kfi_bindings::*;

/// A type has this size, and these fields in this order at these places.
macro_rules! layout {
    ($type:ty: $size:expr; $($field:ident = $place:expr),*) => {
        const _: () = {
            assert!(size_of::<$type>() == $size);
            $(assert!(offset_of!($type, $field) == $place);)*
        };
    };
}

/// A table of operations: its size, then these slots.
macro_rules! table {
    ($type:ty: $($slot:ident),*) => {
        const _: () = {
            let mut place = size_of::<usize>();
            assert!(offset_of!($type, size) == 0);
            $(
                assert!(offset_of!($type, $slot) == place);
                place += size_of::<usize>();
            )*
            assert!(size_of::<$type>() == place);
        };
    };
}

/// An object: a `struct kfid`, then these fields, counted from its end.
macro_rules! object {
    ($type:ty: $size:expr; $($field:ident = $place:expr),*) => {
        const _: () = {
            assert!(offset_of!($type, fid) == 0);
            assert!(size_of::<$type>() == size_of::<kfid>() + $size);
            $(assert!(offset_of!($type, $field) == size_of::<kfid>() + $place);)*
        };
    };
}

layout!(kfid: size_of::<kfid>(); fclass = 0, context = 8, ops = 16, comp = 24);
object!(kfid_fabric: 16; ops = 0, api_version = 8);
object!(kfid_domain: 16; ops = 0, mr = 8);
object!(kfid_mr: 24; mem_desc = 0, key = 8, iova = 16);
layout!(
    kfi_mr_attr: 72;
    type_ = 0, __bindgen_anon_1 = 8, iov_count = 16, access = 24, offset = 32,
    requested_key = 40, context = 48, auth_key_size = 56, auth_key = 64
);
layout!(
    kfi_fabric_attr: 32;
    fabric = 0, name = 8, prov_name = 16, prov_version = 24, api_version = 28
);
layout!(
    kfi_domain_attr: 192;
    name = 8, mr_mode = 36, mr_key_size = 40, cntr_cnt = 120, mr_iov_limit = 128, caps = 136,
    auth_key = 152, auth_key_size = 160, mr_cnt = 176, tclass = 184
);
layout!(
    kfi_info: 112;
    next = 0, caps = 8, mode = 16, addr_format = 24, src_addrlen = 32, dest_addrlen = 40,
    src_addr = 48, dest_addr = 56, handle = 64, tx_attr = 72, rx_attr = 80, ep_attr = 88,
    domain_attr = 96, fabric_attr = 104
);

table!(kfi_ops: close, bind, control, ops_open);
table!(kfi_ops_fabric: domain, passive_ep, eq_open, wait_open);
table!(
    kfi_ops_domain: av_open, cq_open, endpoint, scalable_ep, cntr_open, poll_open, stx_ctx, srx_ctx,
    query_atomic
);
table!(kfi_ops_mr: reg, regv, regbv, regattr, regsgl);
layout!(kfi_mr_raw_attr: 32; flags = 0, base_addr = 8, raw_key = 16, key_size = 24);
layout!(kfi_mr_map_raw: 40; flags = 0, base_addr = 8, raw_key = 16, key_size = 24, key = 32);
layout!(kfi_rma_iov: 24; addr = 0, len = 8, key = 16);
table!(kfi_raw_ops: resolve);
table!(kfi_batch_ops: regattr_many, close_many, close_later, close_now);
table!(kfi_reserve_ops: reserve);
table!(kfi_dma_ops: map_sg, unmap_sg, sync_sg_for_cpu, sync_sg_for_device);

const _: () = {
    assert!(KFI_READ == 1 << 8);
    assert!(KFI_WRITE == 1 << 9);
    assert!(KFI_RECV == 1 << 10);
    assert!(KFI_SEND == 1 << 11);
    assert!(KFI_REMOTE_READ == 1 << 12);
    assert!(KFI_REMOTE_WRITE == 1 << 13);
    assert!(KFI_MR_VIRT_ADDR == 1 << 3);
    assert!(KFI_MR_PROV_KEY == 1 << 4);
    assert!(crate::support::num::widen(KFI_KEY_NOTAVAIL) == u64::MAX);
    assert!(kfi_iov_type_KFI_KVEC == 1);
    assert!(kfi_iov_type_KFI_BVEC == 2);
    assert!(kfi_iov_type_KFI_SGL == 3);
    assert!(KFI_CLASS_FABRIC == 1);
    assert!(KFI_CLASS_DOMAIN == 2);
    assert!(KFI_CLASS_MR == 12);
    assert!(KFI_GET_RAW_MR == 8);
    assert!(KFI_MAP_RAW_MR == 9);
    assert!(KFI_UNMAP_KEY == 10);
    assert!(KFI_RAW_KEY_MAGIC == crate::region::rawkey::MAGIC);
    assert!(KFI_RAW_KEY_VERSION == 1 && crate::region::rawkey::VERSION == 1);
    assert!(crate::support::num::index(KFI_RAW_KEY_MOST) == crate::region::rawkey::MAX_PIECES);
    assert!(KFI_EBADFLAGS == 260);
    assert!(KFI_ENOKEY == 266);
};
