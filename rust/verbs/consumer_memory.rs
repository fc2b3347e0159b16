// SPDX-License-Identifier: GPL-2.0

//! Conversion of consumers' memory from the core's types to the RDMA abstractions.
//!
//! Both sides name the promise that memory and lists are valid; here one becomes the other.

use core::slice;
use kernel::{
    prelude::*,
    sync::aref::ARef, //
};
use kfabric::{
    Extent,
    Extents,
    PlainList,
    Refusal,
    SegmentList, //
};
use rdma::{
    sg::{
        self,
        BorrowedSg,
        SgBuilder,
        WholeSg, //
    },
    Device, //
};

use crate::refused;

/// An entry of a consumer's scatterlist.
pub(crate) type Entry = kfi_bindings::scatterlist;

/// Borrows a list that a consumer has mapped for the device.
pub(crate) fn borrow<'a>(
    device: &'a ARef<Device>,
    list: &SegmentList<'a, Entry>,
) -> Result<BorrowedSg<'a>, Refusal> {
    // SAFETY: The core's list has that many entries, valid for the call. By the contract of
    // kfi_mr_regsgl() it was mapped for this device, and stays so until the region is closed.
    unsafe { BorrowedSg::from_raw(device, list.as_ptr(), list.count()) }
        .map_err(refused::not_mapped)
}

/// Borrows a list that can be passed on unchanged, see [`borrow`]. Returns [`None`] also if it
/// cannot be mapped page by page.
pub(crate) fn whole<'a>(device: &'a ARef<Device>, list: &PlainList<'a>) -> Option<WholeSg<'a>> {
    let list = borrow(device, list.list()).ok()?;
    // SAFETY: By the invariant of `PlainList`, whose other part `WholeSg` sees to.
    unsafe { list.whole() }
}

/// Converts runs of a consumer's memory for a region.
///
/// The region unmaps the runs before the consumer gets its memory back: when it is closed,
/// refreshed, or not registered after all. If the device does not release them, the consumer is
/// told never to free the memory.
pub(crate) fn runs<'a>(runs: &'a [Extent<'_>]) -> &'a [sg::Run] {
    const { assert!(size_of::<Extent<'_>>() == size_of::<sg::Run>()) };
    // SAFETY: Both are an address and a length, in this order, as C has them. No run is empty, and
    // all of it has pages. By the contract of kfi_mr(3) the consumer keeps the memory until the
    // region is closed, which is as long as the above needs it.
    unsafe { slice::from_raw_parts(runs.as_ptr().cast(), runs.len()) }
}

/// Adds the next memory of a request to a list, as much as there is room for in one part of the list. Returns how
/// many bytes that were; none at the end. May sleep.
///
/// The list becomes part of a region, which lets go of the memory before that is the consumer's again, as
/// [`runs`] says.
pub(crate) fn fill(
    list: &mut SgBuilder,
    memory: &mut Extents<'_>,
    max_bytes: u64,
) -> Result<u64, Refusal> {
    let mut filled = Ok(0);
    let fill =
        |max_len, virt, room: &mut [_]| match memory.next_entries(max_bytes, max_len, virt, room) {
            Ok((count, bytes)) => {
                filled = Ok(bytes);
                count
            }
            Err(refusal) => {
                filled = Err(refusal);
                0
            }
        };
    // SAFETY: `next_entries` has written `filled` entries of registrable memory, not empty and not
    // longer than `max_len`. By the contract of kfi_mr(3) the consumer keeps the memory until the
    // region is closed.
    unsafe { list.fill(fill) }.map_err(refused::not_mapped)?;
    filled
}
