// SPDX-License-Identifier: GPL-2.0

//! Consumers' scatterlists on their way from the core to the RDMA abstractions.
//!
//! Both sides name the promise that a list is valid; here one becomes the other.

use kernel::{
    dma::DataDirection,
    prelude::*,
    sync::aref::ARef, //
};
use kfabric::{
    provider::RawSgl,
    List,
    Refusal, //
};
use rdma::{
    dma,
    sg::BorrowedSg,
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

fn entries(list: RawSgl) -> usize {
    usize::try_from(list.entries()).unwrap_or(0)
}

/// Maps a consumer's list.
pub(crate) fn map(device: &Device, list: RawSgl, direction: DataDirection) -> Result<usize> {
    // SAFETY: A `RawSgl` is a list of that many entries; by the contract of `struct kfi_dma_ops`
    // the consumer unmaps it before it or its memory goes.
    unsafe { dma::map_sg(device, list.as_ptr(), entries(list), direction) }
}

/// Undoes [`map`].
pub(crate) fn unmap(device: &Device, list: RawSgl, direction: DataDirection) {
    // SAFETY: By the invariant of `RawSgl` the list was mapped like this.
    unsafe { dma::unmap_sg(device, list.as_ptr(), entries(list), direction) };
}

/// Lets the processor see what the device wrote.
pub(crate) fn sync_for_cpu(device: &Device, list: RawSgl, direction: DataDirection) {
    // SAFETY: By the invariant of `RawSgl` the list was mapped like this.
    unsafe { dma::sync_for_cpu(device, list.as_ptr(), entries(list), direction) };
}

/// Lets the device see what the processor wrote.
pub(crate) fn sync_for_device(device: &Device, list: RawSgl, direction: DataDirection) {
    // SAFETY: By the invariant of `RawSgl` the list was mapped like this.
    unsafe { dma::sync_for_device(device, list.as_ptr(), entries(list), direction) };
}
