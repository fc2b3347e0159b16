// SPDX-License-Identifier: GPL-2.0

//! The way of a registration: pages, mapping, fast region, registration queue.
//!
//! Each step consumes the one before it, so an error on the way undoes what was done by dropping
//! it.

use crate::{
    ffi,
    link::Resources,
    pool::Size,
    refused,
    rights, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*, //
};
use kfabric::{
    num::{
        self,
        widen, //
    },
    Errno,
    List,
    MrRequest,
    Piece,
    Refusal,
    Source, //
};
use rdma::{
    mr::{
        FastMr,
        Fence,
        Kind,
        RegisterError, //
    },
    sg::{
        BuildError,
        Memory,
        SgList, //
    },
    ValidMr, //
};

/// Where peers find the first page of any region: not where it is in memory.
const BASE: u64 = 1 << 32;

/// How often a registration is tried when others' failures take it down.
const ATTEMPTS: u32 = 8;

/// A region that peers can reach.
pub(crate) struct Region {
    valid: KVVec<ValidMr>,
    /// The class it goes back to, if it came from the pool.
    size: Option<Size>,
}

/// Why an attempt came to nothing.
enum Failure {
    /// It will not work another time either.
    Refused(Refusal),
    /// The registration queue failed, for which others may be to blame.
    Queue,
}

impl<R: Into<Refusal>> From<R> for Failure {
    fn from(refusal: R) -> Self {
        Self::Refused(refusal.into())
    }
}

impl Region {
    /// Registers memory. Sleeps until the device is done.
    pub(crate) fn register(
        resources: &Resources,
        request: &MrRequest<'_>,
    ) -> Result<Self, Refusal> {
        for _ in 0..ATTEMPTS {
            match Self::attempt(resources, request) {
                Ok(region) => return Ok(region),
                Err(Failure::Refused(refusal)) => return Err(refusal),
                Err(Failure::Queue) => (),
            }
        }
        Err(Refusal::new(
            Errno::EIO,
            c"the registration queue keeps failing",
        ))
    }

    fn attempt(resources: &Resources, request: &MrRequest<'_>) -> Result<Self, Failure> {
        match request.source() {
            Source::Sgl(list) => {
                let list = ffi::borrow(resources.device(), mapped(resources, list)?)?;
                let list = list
                    .cursor()
                    .copy(request.shape().bytes())
                    .map_err(refused::not_mapped)?;
                Self::with_list(resources, request, Memory::Spans(list))
            }
            _ => {
                let device = resources.device();
                let entries = usize::try_from(request.shape().pages()).unwrap_or(usize::MAX);
                let pieces = request.pieces().map(|piece| piece.map(to_rdma));
                let list = SgList::build(device, entries, pieces).map_err(|e| match e {
                    BuildError::Source(refusal) => refusal,
                    BuildError::List(error) => refused::not_mapped(error),
                })?;
                let list = list
                    .map(device, request.access().direction())
                    .map_err(refused::not_mapped)?;
                Self::with_list(resources, request, Memory::Mapped(list))
            }
        }
    }

    fn with_list(
        resources: &Resources,
        request: &MrRequest<'_>,
        list: Memory,
    ) -> Result<Self, Failure> {
        let pages = u32::try_from(request.shape().pages()).unwrap_or(u32::MAX);
        let (size, mr) = match request.shape().hole() {
            None => resources
                .pool()
                .take(pages)
                .map(|(size, mr)| (Some(size), mr)),
            // Regions with holes have their own kind, and are too rare to be kept.
            Some(_) => FastMr::alloc(resources.pd(), Kind::Gaps, pages).map(|mr| (None, mr)),
        }
        .map_err(refused::no_region)?;

        let mut prepared = match mr.map(list, rights::flags(request.access())) {
            Ok(prepared) => prepared,
            Err(failed) => {
                if let Some(size) = size {
                    resources.pool().put(size, failed.mr);
                }
                let refusal = refused::not_mapped(failed.error);
                return Err(refusal.at(num::index(failed.mapped)).into());
            }
        };
        if prepared.length() != request.shape().bytes() {
            return Err(Refusal::new(Errno::EIO, c"the device took another length").into());
        }
        prepared.set_base(BASE).map_err(refused::not_mapped)?;

        let queue = resources.queue().get().map_err(refused::no_queue)?;
        let mut all = KVVec::new();
        all.push(prepared, GFP_KERNEL)?;
        match queue.register_all(all) {
            Ok(valid) => Ok(Self { valid, size }),
            Err(RegisterError { lists: None, .. }) => {
                Err(Refusal::new(Errno::EIO, c"the device won't let go of the memory").into())
            }
            Err(_) => {
                if !queue.is_broken() {
                    // Nothing says why, so the queue pair is given up like one that failed.
                    let _ = queue.fail();
                }
                Err(Failure::Queue)
            }
        }
    }

    /// The key for peers.
    pub(crate) fn key(&self) -> u32 {
        self.valid.first().map_or(0, ValidMr::rkey)
    }

    /// The key for the domain's own work requests.
    pub(crate) fn lkey(&self) -> u32 {
        self.valid.first().map_or(0, ValidMr::lkey)
    }

    /// Where peers find the first byte.
    pub(crate) fn base(&self) -> u64 {
        self.valid.first().map_or(0, ValidMr::iova)
    }

    /// Takes the region from the device, and keeps what can be used again. Sleeps until no peer
    /// can reach the memory. `EIO` if the device won't let go of it.
    pub(crate) fn release(self, resources: &Resources, fence: Fence) -> Result<(), Refusal> {
        if !fence.invalidates() {
            return self.deregister();
        }
        let Ok(queue) = resources.queue().get() else {
            return self.deregister();
        };
        queue
            .revoke_all(self.valid, fence, |mr| {
                if let Some(size) = self.size {
                    resources.pool().put(size, mr);
                }
            })
            .map_err(|_| stuck())
    }

    /// Takes the region from the device by deregistering it, for which no queue is needed.
    pub(crate) fn deregister(self) -> Result<(), Refusal> {
        let mut result = Ok(());
        for mr in self.valid {
            result = result.and(mr.deregister());
        }
        result.map_err(|_| stuck())
    }
}

fn stuck() -> Refusal {
    Refusal::new(Errno::EIO, c"the device won't let go of the region")
}

fn to_rdma(piece: Piece) -> rdma::sg::Piece {
    rdma::sg::Piece {
        page: piece.page,
        offset: piece.offset,
        len: piece.len,
    }
}

/// Checks that every entry can be one of this device, as far as that can be told.
fn mapped<'a, 'b>(
    resources: &Resources,
    list: &'b List<'a, ffi::Entry>,
) -> Result<&'b List<'a, ffi::Entry>, Refusal> {
    for (index, span) in list.device_spans().enumerate() {
        let span = span.map_err(|e| e.at(index))?;
        if !rdma::dma::is_device_address(resources.device(), span.start(), span.bytes()) {
            let refusal = Refusal::new(Errno::EINVAL, c"no address of this device");
            return Err(refusal.at(index).value(span.start()));
        }
    }
    Ok(list)
}

/// Does what a registration would do with the memory, on a device that is gone: bad memory is
/// refused for what it is.
pub(crate) fn check_memory(request: &MrRequest<'_>) -> Result<(), Refusal> {
    request.pieces().try_for_each(|piece| piece.map(drop))
}

const _: () = assert!(BASE % widen(PAGE_SIZE) == 0);
