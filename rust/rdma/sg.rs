// SPDX-License-Identifier: GPL-2.0

//! Scatterlists for memory regions.
//!
//! C header: [`include/linux/scatterlist.h`](srctree/include/linux/scatterlist.h)
//!
//! The abstraction of the kernel crate (`kernel::scatterlist`) maps for a bound device, which
//! software RDMA devices do not have, and takes vmalloc memory only. Here a list is
//!
//! - built from memory by a [`SgBuilder`] and then mapped, or
//! - [borrowed](BorrowedSg), already mapped, and then copied or passed on unchanged ([`WholeSg`]).
//!
//! All mapped lists implement [`DmaList`]. A [`Memory`] is one that can be kept.

mod borrowed;
mod builder;
mod layout;
mod memory;
mod table;

pub(crate) use self::memory::leak;
pub use self::{
    borrowed::{
        BorrowedSg,
        WholeSg, //
    },
    builder::{
        Run,
        SgBuilder, //
    },
    layout::{
        Layout,
        SegmentBoundaries, //
    },
    memory::{
        DmaList,
        MappedSg,
        Mapping,
        Memory,
        SingleSg, //
    },
    table::{
        Caches,
        SpareTable, //
    }, //
};
