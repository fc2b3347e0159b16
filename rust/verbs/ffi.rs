// SPDX-License-Identifier: GPL-2.0

//! Consumers' memory and scatterlists on their way from the core to the RDMA abstractions.
//!
//! Both sides name the promise that a list is valid; here one becomes the other.

use core::ptr::NonNull;
use kernel::{
    dma::DataDirection,
    page::BorrowedPage,
    prelude::*,
    sync::aref::ARef, //
};
use kfabric::{
    provider::RawSgl,
    List,
    Piece,
    Refusal, //
};
use rdma::{
    dma,
    sg::{
        self,
        BorrowedSg, //
    },
    Device, //
};

use crate::refused;

/// An entry of a consumer's scatterlist.
pub(crate) type Entry = kfi_bindings::scatterlist;

/// Borrows a list that a consumer has mapped for the device.
pub(crate) fn borrow<'a>(
    device: &'a ARef<Device>,
    list: &List<'a, Entry>,
) -> Result<BorrowedSg<'a>, Refusal> {
    // SAFETY: The core's list has that many entries, valid for the call. By the contract of
    // kfi_mr_regsgl() it was mapped for this device, and stays so until the region is closed.
    unsafe { BorrowedSg::from_raw(device, list.as_ptr(), list.count()) }
        .map_err(refused::not_mapped)
}

/// A piece of a consumer's memory, to be mapped for a region.
///
/// What it becomes part of belongs to the region, which undoes it before its memory is the consumer's
/// again: when it is closed, refreshed, or not registered after all. If the device doesn't let go, the
/// consumer is told never to free the memory.
pub(crate) fn piece(piece: Piece<'_>) -> sg::Piece {
    // SAFETY: The piece has a page, whose pointer is not null. By the contract of kfi_mr(3) the
    // consumer keeps it until the region is closed, which is as long as the above needs it.
    let page = unsafe { BorrowedPage::from_raw(NonNull::new_unchecked(piece.page.as_ptr())) };
    sg::Piece {
        page,
        offset: piece.offset,
        len: piece.len,
    }
}

fn entries(list: &RawSgl<'_>) -> usize {
    usize::try_from(list.entries()).unwrap_or(0)
}

/// Maps a consumer's list.
pub(crate) fn map(device: &Device, list: RawSgl<'_>, direction: DataDirection) -> Result<usize> {
    // SAFETY: A `RawSgl` is a list of that many entries; by the contract of `struct kfi_dma_ops`
    // the consumer unmaps it before it or its memory goes.
    unsafe { dma::map_sg(device, list.as_ptr(), entries(&list), direction) }
}

/// Undoes [`map`].
pub(crate) fn unmap(device: &Device, list: RawSgl<'_>, direction: DataDirection) {
    // SAFETY: By the invariant of `RawSgl` the list was mapped like this.
    unsafe { dma::unmap_sg(device, list.as_ptr(), entries(&list), direction) };
}

/// Lets the processor see what the device wrote.
pub(crate) fn sync_for_cpu(device: &Device, list: RawSgl<'_>, direction: DataDirection) {
    // SAFETY: By the invariant of `RawSgl` the list was mapped like this.
    unsafe { dma::sync_for_cpu(device, list.as_ptr(), entries(&list), direction) };
}

/// Lets the device see what the processor wrote.
pub(crate) fn sync_for_device(device: &Device, list: RawSgl<'_>, direction: DataDirection) {
    // SAFETY: By the invariant of `RawSgl` the list was mapped like this.
    unsafe { dma::sync_for_device(device, list.as_ptr(), entries(&list), direction) };
}
