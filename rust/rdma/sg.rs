// SPDX-License-Identifier: GPL-2.0

//! Scatterlists for memory regions.
//!
//! C header: [`include/linux/scatterlist.h`](srctree/include/linux/scatterlist.h)
//!
//! The kernel's own abstraction (`kernel::scatterlist`) maps for a bound device, which software
//! RDMA devices don't have, and starts from vmalloc memory only. Here a list is
//!
//! - built from pages ([`SgList`]) and then mapped ([`MappedSg`]), or
//! - somebody else's, already mapped ([`BorrowedSg`]), and then copied ([`CopiedSg`]), or handed on as it is
//!   ([`WholeSg`]).
//!
//! Each step consumes the one before it. What all ends have in common is [`DmaList`]; a
//! [`Memory`] is any of them that can be kept.

mod borrowed;
mod dma_list;
mod layout;
mod list;
mod memory;
mod table;

pub use self::{
    borrowed::{
        BorrowedSg,
        CopiedSg,
        Cursor,
        WholeSg, //
    },
    dma_list::{
        DmaList,
        MappedSg,
        Mapping,
        SingleSg, //
    },
    layout::Layout,
    list::{
        Run,
        SgBuilder,
        SgList, //
    },
    memory::Memory,
    table::{
        Caches,
        SpareTable, //
    }, //
};
