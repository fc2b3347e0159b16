// SPDX-License-Identifier: GPL-2.0

//! From a request to lists that are mapped for the device: one for each of its regions.

use crate::{
    lent,
    refused,
    resources::Resources, //
};
use kernel::prelude::*;
use kfabric::{
    num::widen,
    Errno,
    List,
    MrLimits,
    MrRequest,
    PageSlices,
    Piece,
    Refusal,
    Source, //
};
use rdma::{
    sg::{
        BuildError,
        Memory,
        SgList,
        SpareTable, //
    },
    Few, //
};

/// What each device region is to hold. `E2BIG` if there would be too many. May sleep.
pub(crate) fn runs(limits: &MrLimits, request: &MrRequest<'_>) -> Result<Few<Piece>, Refusal> {
    if limits.pieces <= 1 {
        let run = Piece {
            bytes: request.shape().bytes(),
            pages: request.shape().pages(),
        };
        let mut one = Few::new();
        // There is room.
        let _ = one.push_within_capacity(run);
        return Ok(one);
    }
    let cut = || request.pieces(limits.pages, limits.bytes);
    let count = cut().take(limits.pieces.saturating_add(1)).count();
    if count > limits.pieces {
        return Err(Refusal::new(Errno::E2BIG, c"too many pieces").value(widen(count)));
    }
    let mut runs = Few::with_capacity(count, GFP_KERNEL)?;
    for run in cut() {
        // There is room.
        let _ = runs.push_within_capacity(run);
    }
    Ok(runs)
}

/// Maps a request's memory, run by run. May sleep, and takes no memory where `spare` is enough.
pub(crate) fn map(
    resources: &Resources,
    request: &MrRequest<'_>,
    runs: &[Piece],
    spare: Option<&SpareTable>,
) -> Result<Few<Memory>, Refusal> {
    let mut lists = Few::with_capacity(runs.len(), GFP_KERNEL)?;
    if let Source::Sgl(list) = request.source() {
        check_list(resources, request, list)?;
        let list = lent::borrow(resources.device(), list)?;
        let mut cursor = list.cursor();
        for run in runs {
            let list = cursor.copy(run.bytes, spare).map_err(refused::not_mapped)?;
            // There is room.
            let _ = lists.push_within_capacity(Memory::Copied(list));
        }
    } else {
        let mut pieces = request.page_slices();
        for run in runs {
            let list = of_pages(resources, request, run, spare, &mut pieces)?;
            // There is room.
            let _ = lists.push_within_capacity(list);
        }
    }
    Ok(lists)
}

/// Maps the next pieces, as many as make up a run.
fn of_pages(
    resources: &Resources,
    request: &MrRequest<'_>,
    run: &Piece,
    spare: Option<&SpareTable>,
    pieces: &mut PageSlices<'_>,
) -> Result<Memory, Refusal> {
    let device = resources.device();
    let pieces = First {
        pieces,
        left: run.bytes,
    };
    let list = SgList::build(device, index_of(run.pages), spare, pieces).map_err(|e| match e {
        BuildError::Source(refusal) => refusal,
        BuildError::List(error) => refused::not_mapped(error),
    })?;
    list.map(device, request.access().direction())
        .map(Memory::Mapped)
        .map_err(refused::not_mapped)
}

fn index_of(pages: u64) -> usize {
    usize::try_from(pages).unwrap_or(usize::MAX)
}

/// The pieces that make up the next `left` bytes. A run ends where a piece does.
struct First<'a, 'b> {
    pieces: &'a mut PageSlices<'b>,
    left: u64,
}

impl Iterator for First<'_, '_> {
    type Item = Result<rdma::sg::Run, Refusal>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let piece = self.pieces.next()?;
        if let Ok(piece) = &piece {
            self.left = self.left.saturating_sub(widen(piece.len));
        }
        Some(piece.map(lent::run))
    }
}

/// Checks that every entry can be one of this device, as far as that can be told, and what is behind
/// it. May sleep.
fn check_list(
    resources: &Resources,
    request: &MrRequest<'_>,
    list: &List<'_, lent::Entry>,
) -> Result<(), Refusal> {
    for (index, span) in list.device_spans().enumerate() {
        let span = span.map_err(|e| e.at(index))?;
        if !rdma::dma::is_device_address(resources.device(), span.start(), span.bytes()) {
            let refusal = Refusal::new(Errno::EINVAL, c"no address of this device");
            return Err(refusal.at(index).value(span.start()));
        }
        // Other devices' addresses mean something to them only.
        if resources.device().is_software() {
            request.check_linear(index, span)?;
        }
    }
    Ok(())
}

/// Does what a registration would do with the memory, on a device that is gone: bad memory is
/// refused for what it is.
pub(crate) fn check_memory(request: &MrRequest<'_>) -> Result<(), Refusal> {
    request.page_slices().try_for_each(|piece| piece.map(drop))
}
