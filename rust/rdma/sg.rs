// SPDX-License-Identifier: GPL-2.0

//! Scatterlists for memory regions.
//!
//! C header: [`include/linux/scatterlist.h`](srctree/include/linux/scatterlist.h)
//!
//! The kernel's own abstraction (`kernel::scatterlist`) maps for a bound device, which software
//! RDMA devices don't have, and starts from vmalloc memory only. Here a list is
//!
//! - built from pages ([`SgList`]) and then mapped ([`MappedSg`]), or
//! - somebody else's, already mapped ([`BorrowedSg`]), and then copied ([`SpanList`]).
//!
//! Each step consumes the one before it. What both ends have in common is [`DmaList`]; a
//! [`Memory`] is either of them.

mod borrowed;
mod list;
mod mapped;
mod memory;
mod spans;
mod table;

pub use borrowed::{
    BorrowedSg,
    Segments, //
};
pub use list::{
    BuildError,
    Piece,
    SgList, //
};
pub use mapped::MappedSg;
pub use memory::Memory;
pub use spans::{
    SpanCursor,
    SpanList, //
};
pub use table::SpareTable;

use kernel::bindings;

use crate::device::Device;

/// A DMA mapped list of segments, from which a region can be made.
///
/// # Safety
///
/// - [`DmaList::as_raw`] must return a scatterlist of which at least [`DmaList::count`] entries,
///   not 0, are mapped for [`DmaList::device`], as long as `self` exists.
/// - They, and the memory behind them, must stay so until what [`DmaList::into_mapping`] returned
///   is dropped; if it is leaked, for ever.
pub unsafe trait DmaList: Sized {
    /// The device that the list is mapped for.
    fn device(&self) -> &Device;

    /// The first entry.
    fn as_raw(&self) -> *mut bindings::scatterlist;

    /// The number of mapped entries.
    fn count(&self) -> u32;

    /// Gives up the list for what keeps it mapped.
    fn into_mapping(self) -> Mapping;
}

/// What keeps memory mapped for a device while a region uses it.
///
/// Dropping it undoes the mapping, if it is one of this crate's ([`MappedSg`]). A mapping of
/// somebody else's is undone by them, after the region has been closed. Doesn't sleep.
#[must_use]
pub struct Mapping {
    list: Option<MappedSg>,
}

impl Mapping {
    /// The mapping of a list of this crate's, or of somebody else's if that is [`None`].
    fn of(list: Option<MappedSg>) -> Self {
        Self { list }
    }

    /// Leaves it mapped for good: the device may use it at any time. Only the device isn't held
    /// any more, which would keep it from going away.
    pub(crate) fn leak(self) {
        if let Some(list) = self.list {
            list.leak();
        }
    }
}
