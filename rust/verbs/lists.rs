// SPDX-License-Identifier: GPL-2.0

//! Mapping of a request's memory to one list for each device region.
//!
//! The types of `kfabric` and of `rdma` both promise that memory and lists are valid. This file turns
//! one promise into the other.

use crate::{
    prelude::*,
    region::MrSpec, //
};
use kfabric::{
    Extent,
    Extents,
    Piece,
    SegmentList,
    Source, //
};
use rdma::{
    sg::{
        self,
        BorrowedSg,
        SgBuilder,
        SingleSg,
        SpareTable,
        WholeSg, //
    },
    Device, //
};

/// Maps a request's memory to a list for each device region. May sleep.
pub(crate) fn map(
    resources: &Resources,
    request: &MrRequest<'_>,
    specs: &[MrSpec],
) -> Result<SmallVec<Memory>, Refusal> {
    match specs {
        [spec] => map_one(resources, request, &spec.piece).map(SmallVec::one),
        _ => map_several(resources, request, specs),
    }
}

/// Maps a request's memory to one list for [`map`].
pub(crate) fn map_one(
    resources: &Resources,
    request: &MrRequest<'_>,
    piece: &Piece,
) -> Result<Memory, Refusal> {
    match of_run(resources.pd.device(), request)? {
        Some(list) => Ok(Memory::Single(list)),
        None => map_no_run(resources, request, piece),
    }
}

/// Maps the bio_vecs of a request to one list, whose entries are those of `spare`, which is free and has one for each page
/// of the memory. Any context; does not allocate.
pub(crate) fn map_spare(
    device: &ARef<Device>,
    request: &MrRequest<'_>,
    spare: &SpareTable,
) -> Result<Memory, Refusal> {
    if let Some(list) = of_run(device, request)? {
        return Ok(Memory::Single(list));
    }
    let shape = request.shape();
    let piece = Piece {
        bytes: shape.bytes(),
        pages: shape.pages(),
    };
    let mut memory = memory(device, request);
    of_memory(device, request, &piece, Some(spare), &mut memory)
}

/// Maps a request's memory to several lists for [`map`].
fn map_several(
    resources: &Resources,
    request: &MrRequest<'_>,
    specs: &[MrSpec],
) -> Result<SmallVec<Memory>, Refusal> {
    let mut lists = SmallVec::with_capacity(specs.len(), GFP_KERNEL)?;
    if let Some(mut list) = mapped(resources, request)? {
        for spec in specs {
            let list = list.copy(spec.piece.bytes, None);
            lists.push_reserved(list.map_err(driver_errors::not_mapped)?);
        }
    } else {
        let device = resources.pd.device();
        let mut memory = memory(device, request);
        for spec in specs {
            let list = of_memory(device, request, &spec.piece, None, &mut memory)?;
            lists.push_reserved(list);
        }
    }
    Ok(lists)
}

/// Maps memory to one list for [`map_one`], if [`of_run`] does not apply.
#[inline]
pub(crate) fn map_no_run(
    resources: &Resources,
    request: &MrRequest<'_>,
    piece: &Piece,
) -> Result<Memory, Refusal> {
    let map = |spare: Option<&SpareTable>| match mapped(resources, request)? {
        Some(mut list) => list
            .copy(piece.bytes, spare)
            .map_err(driver_errors::not_mapped),
        None => {
            let device = resources.pd.device();
            let mut memory = memory(device, request);
            of_memory(device, request, piece, spare, &mut memory)
        }
    };
    match request.is_reserved() {
        true => resources.pool.with_table(map),
        false => map(None),
    }
}

/// Returns the consumer's own list, if it is mapped for a device with addresses of its own.
fn mapped<'a>(
    resources: &'a Resources,
    request: &MrRequest<'a>,
) -> Result<Option<BorrowedSg<'a>>, Refusal> {
    match request.source() {
        Source::Sgl(list) if !resources.pd.device().is_software() => {
            borrow(resources.pd.device(), list).map(Some)
        }
        _ => Ok(None),
    }
}

/// Returns the memory of a request of another form.
#[inline]
fn memory<'a>(device: &Device, request: &'a MrRequest<'_>) -> Extents<'a> {
    match device.is_software() {
        true => request.linear_extents(),
        false => request.extents(),
    }
}

/// Returns the list of a request's memory, if that is one segment that is contiguous in the linear map, and the
/// device needs no more. May sleep.
pub(crate) fn of_run(
    device: &Device,
    request: &MrRequest<'_>,
) -> Result<Option<SingleSg>, Refusal> {
    if !device.is_software() {
        return Ok(None);
    }
    let run = request.one_extent()?;
    Ok(match run.as_ref().map(slice::from_ref).map(runs) {
        Some([run]) => SingleSg::new(device, run),
        _ => None,
    })
}

/// Returns the consumer's own list, for use without a copy. When the consumer's call ends, the list
/// is the consumer's again, so the region must be registered by then. May sleep. Returns `None`
/// unless:
///
/// - The device takes the addresses of the list.
/// - Each page of the list may be registered.
/// - The list can be mapped page by page.
pub(crate) fn own<'a>(resources: &'a Resources, request: &MrRequest<'a>) -> Option<WholeSg<'a>> {
    let device = resources.pd.device();
    if !device.is_software() {
        return None;
    }
    let plain = request.plain_list()?;
    let list = borrow(device, plain.list()).ok()?;
    // SAFETY: Each page of the list may be registered by the invariant of `PlainList`. `whole`
    // checks the rest.
    unsafe { list.whole() }
}

/// Maps the next memory, as much as makes up a piece.
fn of_memory(
    device: &ARef<Device>,
    request: &MrRequest<'_>,
    piece: &Piece,
    spare: Option<&SpareTable>,
    memory: &mut Extents<'_>,
) -> Result<Memory, Refusal> {
    // Each segment may be an entry, but there are no more than pages.
    let pages = usize::try_from(piece.pages).unwrap_or(usize::MAX);
    let expected = request.shape().segments().min(pages);
    let mut list = SgBuilder::new(device, expected, spare).map_err(driver_errors::not_mapped)?;
    let mut left = piece.bytes;
    while left > 0 {
        match fill(&mut list, memory, left)? {
            0 => break,
            filled => left -= filled,
        }
    }
    list.map(device, request.access().direction())
        .map_err(driver_errors::not_mapped)
}

/// Does what a registration would do with the memory, on a device that is gone: bad memory is
/// refused for what it is.
pub(crate) fn check_memory(request: &MrRequest<'_>) -> Result<(), Refusal> {
    let mut memory = request.extents();
    while !memory.next_extents(u64::MAX)?.is_empty() {}
    Ok(())
}

/// An entry of a consumer's scatterlist.
type Entry = kfi_bindings::scatterlist;

/// Borrows a list that a consumer has mapped for the device.
fn borrow<'a>(
    device: &'a ARef<Device>,
    list: &SegmentList<'a, Entry>,
) -> Result<BorrowedSg<'a>, Refusal> {
    // SAFETY: The core's list has that many entries, valid for the call. By the contract of
    // kfi_mr_regsgl() it was mapped for this device, and stays so until the region is closed.
    unsafe { BorrowedSg::from_raw(device, list.as_ptr(), list.count()) }
        .map_err(driver_errors::not_mapped)
}

/// Converts runs of a consumer's memory for a region.
///
/// The region unmaps the runs before the consumer gets its memory back: when it is closed,
/// refreshed, or not registered after all. If the device does not release them, the consumer is
/// told never to free the memory.
fn runs<'a>(runs: &'a [Extent<'_>]) -> &'a [sg::Run] {
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
fn fill(list: &mut SgBuilder, memory: &mut Extents<'_>, max_bytes: u64) -> Result<u64, Refusal> {
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
    unsafe { list.fill(fill) }.map_err(driver_errors::not_mapped)?;
    filled
}
