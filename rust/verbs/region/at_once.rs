// SPDX-License-Identifier: GPL-2.0

//! Registering a region in one go.
//!
//! What is registered most is one run of memory. On a device that takes kernel addresses that needs no list
//! but one on the stack, and the region is in no state in between. All else goes the long way, and so does a
//! run about which anything is remarkable.

use super::{
    enable::keys,
    larger,
    Region,
    State,
    BASE, //
};
use crate::{
    lent,
    refused,
    resources::Resources,
    rights, //
};
use core::slice;
use kernel::prelude::*;
use kfabric::{
    provider::{
        Bindings,
        Keys, //
    },
    Errno,
    MrLimits,
    MrRequest,
    Piece,
    Refusal, //
};
use rdma::{
    mr::Kind,
    sg::SingleSg,
    AccessFlags,
    Few,
    PreparedMr,
    ValidMr,
    WrError, //
};

/// A run of memory that peers reach by one region of the device.
pub(crate) struct Registered {
    valid: ValidMr,
    piece: Piece,
}

impl Registered {
    /// Registers a request's memory, if that is one run; `None`, and nothing is done, if it isn't, or if it
    /// should be tried the long way. Sleeps until the device is done.
    ///
    /// After an error there is no region. But `ENOTRECOVERABLE` says that the device won't let go of it.
    #[inline]
    pub(crate) fn run(
        resources: &Resources,
        limits: &MrLimits,
        request: &MrRequest<'_>,
    ) -> Result<Option<Self>, Refusal> {
        let piece = Piece {
            bytes: request.shape().bytes(),
            pages: request.shape().pages(),
        };
        if resources.lends() || piece.pages > limits.pages || piece.bytes > limits.bytes {
            return Ok(None);
        }
        let Some(list) = list_of_run(resources, request) else {
            return Ok(None);
        };
        let access = rights::flags(request.access(), resources.atomics());
        let Some(prepared) = prepare(resources, &list, access, piece) else {
            return Ok(None);
        };
        let queue = resources.queue_pair().map_err(refused::no_queue)?;
        let registered = queue.register(prepared);
        match registered {
            Ok(valid) => Ok(Some(Self { valid, piece })),
            Err(failed) => {
                let not_undone = failed.lists.err();
                not_registered(resources, failed.error, not_undone).map(|()| None)
            }
        }
    }

    /// How peers reach it.
    #[inline]
    pub(crate) fn keys(&self) -> Keys {
        keys(slice::from_ref(&self.valid), None)
    }

    /// The region that it is.
    #[inline]
    pub(crate) fn into_region(self, resources: &Resources, request: &MrRequest<'_>) -> Region {
        Region {
            runs: Few::one(self.piece),
            kind: Kind::Pages,
            access: rights::flags(request.access(), resources.atomics()),
            reserved: false,
            together: false,
            state: State::Valid(Few::one(self.valid)),
        }
    }
}

impl Region {
    /// Creates a region and lets peers in. Sleeps until the device is done.
    ///
    /// After an error there is no region. But `ENOTRECOVERABLE` says that the device won't let go of it.
    #[inline(never)]
    pub(crate) fn register(
        resources: &Resources,
        limits: &MrLimits,
        request: &MrRequest<'_>,
    ) -> Result<(Self, Keys), Refusal> {
        let mut region = Self::create(resources, limits, request, None)?;
        match region.enable(resources, &Bindings::NONE) {
            Ok(keys) => Ok((region, keys)),
            Err(refusal) => Err(match region.release(resources) {
                Ok(()) => refusal,
                Err(_) => refusal.with_errno(Errno::ENOTRECOVERABLE),
            }),
        }
    }
}

/// What there is to be said of a run that could not be registered; nothing if it should be tried again.
#[cold]
fn not_registered(
    resources: &Resources,
    why: WrError,
    not_undone: Option<Error>,
) -> Result<(), Refusal> {
    match (why, not_undone) {
        (_, Some(error)) => Err(refused::not_undone(error)),
        // Others are to blame.
        (WrError::Flushed, None) => Ok(()),
        (why, None) => Err(refused::not_registered(resources.device(), why)),
    }
}

/// The list of a request's memory, if that is one run and needs no more.
fn list_of_run<'a>(resources: &'a Resources, request: &MrRequest<'_>) -> Option<SingleSg<'a>> {
    if !resources.device().is_software() {
        return None;
    }
    let run = request.plain_run()?;
    let [run] = lent::runs(slice::from_ref(&run)) else {
        return None;
    };
    SingleSg::new(resources.device(), run)
}

/// Gives a device region to a list; `None` if the device won't have it.
fn prepare<'a, 'd>(
    resources: &Resources,
    list: &'a SingleSg<'d>,
    access: AccessFlags,
    piece: Piece,
) -> Option<PreparedMr<&'a SingleSg<'d>>> {
    let pool = resources.pool();
    let mut prepared = match larger(resources, &list) {
        Some(layout) => {
            let mr = pool.take(layout.pages(), access).ok()?;
            mr.map_larger(list, access, layout).ok()?
        }
        None => {
            let mr = pool.take(u32::try_from(piece.pages).ok()?, access).ok()?;
            let mapped = mr.map(list, access).map_err(|failed| failed.mr);
            mapped.map_err(|mr| pool.put(mr)).ok()?
        }
    };
    (prepared.length() == piece.bytes && prepared.set_base(BASE).is_ok()).then_some(prepared)
}
