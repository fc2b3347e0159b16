// SPDX-License-Identifier: GPL-2.0

//! Registering a region in one go.
//!
//! What is one region to the device, as most are, is in no state in between; and what is one run of memory needs
//! no list but one on the stack, on a device that takes kernel addresses. All else goes the long way, and so
//! does what the device refuses: that alone says why.

use super::{
    enable::keys,
    in_steps::InSteps,
    steps::{
        larger,
        BASE, //
    },
    Region, //
};
use crate::{
    lists,
    refused,
    resources::Resources, //
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
    sg::{
        DmaList,
        Memory, //
    },
    AccessFlags,
    PreparedMr,
    ValidMr,
    WrError, //
};

/// A region that is one to the device.
pub(crate) struct One {
    piece: Piece,
    access: AccessFlags,
    /// It is registered with others.
    together: bool,
}

impl One {
    /// That of a request, if it is one, and isn't to be registered on an endpoint. Any context.
    #[inline]
    pub(crate) fn of(
        resources: &Resources,
        limits: &MrLimits,
        request: &MrRequest<'_>,
    ) -> Option<Self> {
        let piece = Piece {
            bytes: request.shape().bytes(),
            pages: request.shape().pages(),
        };
        let fits = piece.pages <= limits.pages
            && piece.bytes <= limits.bytes
            && request.shape().gap().is_none();
        (fits && !resources.lends()).then(|| Self {
            piece,
            access: resources.rights().flags(request.access()),
            together: request.is_together(),
        })
    }

    /// Maps its memory, as far as that may be registered; it is one list. May sleep.
    #[inline]
    pub(crate) fn map(
        &self,
        resources: &Resources,
        request: &MrRequest<'_>,
    ) -> Result<Memory, Refusal> {
        lists::map_one(resources, request, &self.piece, None)
    }

    /// Maps what is no run, and registers it, as [`register`](Self::register).
    #[inline(never)]
    fn map_and_register(
        self,
        resources: &Resources,
        request: &MrRequest<'_>,
    ) -> Result<Option<ValidMr>, Refusal> {
        match lists::own(resources, request) {
            Some(list) => self.register(resources, list),
            None => {
                let list = lists::map_no_run(resources, request, &self.piece, None)?;
                self.register(resources, list)
            }
        }
    }

    /// Registers it; `None`, and nothing is left, if it should be tried the long way. Sleeps until the device is
    /// done.
    #[inline]
    fn register<L: DmaList>(
        self,
        resources: &Resources,
        list: L,
    ) -> Result<Option<ValidMr>, Refusal> {
        let Some(prepared) = self.prepare(resources, list) else {
            return Ok(None);
        };
        let queue = resources.queue_pair().map_err(refused::no_queue)?;
        match queue.register(prepared) {
            Ok(valid) => Ok(Some(valid)),
            Err(failed) => {
                let not_undone = failed.lists.err();
                not_registered(resources, failed.error, not_undone).map(|()| None)
            }
        }
    }

    /// Gives a device region to its list; `None`, and nothing is done, if the device won't have it, so that it should be
    /// tried the long way. May sleep.
    #[inline]
    pub(crate) fn prepare<L: DmaList>(
        &self,
        resources: &Resources,
        list: L,
    ) -> Option<PreparedMr<L>> {
        let pool = resources.pool();
        let take = |kind, pages| pool.take(kind, pages, self.access, self.together);
        // Where each page has an entry there are no larger ones.
        let layout = match u64::from(list.count()) < self.piece.pages {
            true => larger(resources, &list),
            false => None,
        };
        let mut prepared = match layout {
            Some((layout, kind)) => {
                let mr = take(kind, layout.pages()).ok()?;
                mr.map_larger(list, self.access, layout).ok()?
            }
            None => {
                let mr = take(Kind::Pages, u32::try_from(self.piece.pages).ok()?).ok()?;
                let mapped = mr.map(list, self.access).map_err(|failed| failed.mr);
                mapped.map_err(|mr| pool.put(mr)).ok()?
            }
        };
        (prepared.length() == self.piece.bytes && prepared.set_base(BASE).is_ok())
            .then_some(prepared)
    }

    /// The region that it is, of which the device has nothing, to be [prepared](Region::prepare_again). May sleep.
    pub(crate) fn unregistered(self) -> Result<Region, Refusal> {
        let region = InSteps::unregistered(self.piece, self.access, self.together);
        Ok(Region::InSteps(region?))
    }
}

impl Region {
    /// The region that a device region is when peers reach it, and how they do.
    #[inline]
    pub(crate) fn of_one(valid: ValidMr) -> (Self, Keys) {
        let keys = keys(slice::from_ref(&valid));
        (Self::AtOnce(valid), keys)
    }

    /// Creates a region and lets peers in, if it is [one to the device](Self::of_one); `None`, and nothing is
    /// done, if it isn't, or if it should be tried [in steps](Self::register_in_steps). Sleeps until the device
    /// is done.
    ///
    /// After an error there is no region. But `ENOTRECOVERABLE` says that the device won't let go of it.
    #[inline]
    pub(crate) fn register_one(
        resources: &Resources,
        limits: &MrLimits,
        request: &MrRequest<'_>,
    ) -> Result<Option<ValidMr>, Refusal> {
        let Some(one) = One::of(resources, limits, request) else {
            return Ok(None);
        };
        match lists::of_run(resources, request)? {
            Some(list) => one.register(resources, list),
            None => one.map_and_register(resources, request),
        }
    }

    /// Creates a region and lets peers in. Sleeps until the device is done.
    ///
    /// After an error there is no region. But `ENOTRECOVERABLE` says that the device won't let go of it.
    pub(crate) fn register_in_steps(
        resources: &Resources,
        limits: &MrLimits,
        request: &MrRequest<'_>,
    ) -> Result<(Self, Keys), Refusal> {
        let mut region = Self::idle(None)?;
        region.create(resources, limits, request)?;
        region.enabled(resources)
    }

    /// Lets peers in, and says how they reach it. Sleeps until the device is done.
    ///
    /// After an error there is no region. But `ENOTRECOVERABLE` says that the device won't let go of it.
    #[inline(never)]
    pub(crate) fn enabled(mut self, resources: &Resources) -> Result<(Self, Keys), Refusal> {
        match self.enable(resources, &Bindings::NONE) {
            Ok(keys) => Ok((self, keys)),
            Err(refusal) => Err(match self.release(resources, false) {
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
