// SPDX-License-Identifier: GPL-2.0

//! Scatterlists for memory regions.
//!
//! C header: [`include/linux/scatterlist.h`](srctree/include/linux/scatterlist.h)
//!
//! The abstraction of the kernel crate (`kernel::scatterlist`) maps for a bound device, which
//! software RDMA devices do not have, and takes vmalloc memory only. Here a list is
//!
//! - built from pages ([`SgList`]) and then mapped ([`MappedSg`]), or
//! - borrowed, already mapped ([`BorrowedSg`]), and then copied ([`CopiedSg`]) or passed on
//!   unchanged ([`WholeSg`]).
//!
//! Each step consumes the previous one. All mapped lists implement [`DmaList`]. A [`Memory`] is one
//! that can be kept.

mod borrowed;
mod dma_list;
mod layout;
mod list;
mod memory;
mod table;

pub(crate) use self::dma_list::leak;
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
