// SPDX-License-Identifier: GPL-2.0

//! Regions of a provider.

use super::{
    cntr::CntrCore,
    ep::EpCore, //
};
use crate::{
    prelude::*,
    region::{
        rawkey::RemotePiece,
        request::MrRequest, //
    }, //
};
use core::any::Any;

/// A region: created disabled, enabled at most once, closed once, then dropped.
///
/// The core makes these calls one at a time and in that order, so there are no states to check.
/// May be called by different threads.
pub trait MrOps: Any + Send + Sync {
    /// Registers the region with the device. Peers with the key can access the region after the return.
    ///
    /// After an error, peers can't access the region. After `EAGAIN`, the core may call this again. After any other error,
    /// the core closes the region next. If that fails, too, the caller gets `ENOTRECOVERABLE`, or the error of
    /// [`close`](Self::close).
    ///
    /// May sleep, except if the region is bound to a connected endpoint and is one region of the device: then any context.
    fn enable(&mut self, bindings: &Bindings) -> Result<Keys, Refusal>;

    /// Returns the pieces of an enabled region, in order, each with its own key. Most regions have one piece. The first
    /// piece has the key and the base that [`enable`](Self::enable) returned. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENODEV`: the device is removed.
    /// - `EIO`: no peer can access the region any more.
    /// - `ENOMEM`
    fn pieces(&self) -> Result<KVec<RemotePiece>, Refusal>;

    /// Replaces the pages of an enabled region (`kfi_mr_refresh()`). `request` describes the whole region, with the same
    /// addresses, lengths and rights. Key and base stay the same. May sleep.
    ///
    /// After an error, either the region is unchanged, or no peer can access it any more. `ENOTRECOVERABLE` means that the
    /// device keeps the region: the consumer must never free the old or the new memory, and the close fails.
    fn refresh(&mut self, _request: &MrRequest<'_>) -> Result<(), Refusal> {
        Err(Refusal::new(
            Errno::ENOSYS,
            c"the provider can't refresh regions",
        ))
    }

    /// Deregisters the region, because the device is removed ([`ChildList::end`](crate::ChildList::end)) or the region's
    /// endpoint is disconnected. [`close`](Self::close) follows and returns the error, if there is one. The core may call
    /// this more than once, also for a region that is not enabled, but never during [`enable`](Self::enable). May sleep.
    fn end(&mut self) {}

    /// Deregisters the region. On success, no peer can access the memory. The core calls this once, last, also for a
    /// region that is not enabled. May sleep.
    ///
    /// # Errors
    ///
    /// - `EIO`: the device keeps the region. The consumer must never free its memory.
    fn close(&mut self) -> Result<(), Refusal>;

    /// Closes an enabled region if that needs no wait, and returns whether it did. If it didn't, the core calls
    /// [`close`](Self::close) next, or this again. Any context.
    fn close_now(&mut self) -> bool {
        false
    }

    /// Returns `self` as [`Any`], for calls of the provider's domain with several regions. Any context.
    fn as_any(&mut self) -> &mut dyn Any;
}

/// An entry of a batch of regions that the provider enables ([`DomainOps::enable_many`](super::DomainOps::enable_many)) or
/// closes ([`DomainOps::close_many`](super::DomainOps::close_many)).
pub struct BatchEntry<'a, T> {
    /// The region.
    pub mr: &'a mut dyn MrOps,
    /// The bindings of a region that is enabled.
    pub bindings: &'a Bindings,
    /// The provider's answer: the result that [`MrOps::enable`] or [`MrOps::close`] would have.
    pub done: &'a mut Option<Result<T, Refusal>>,
}

/// The bindings of a region.
pub struct Bindings {
    /// The counter of writes of peers to the region. A closed counter ignores them.
    pub counter: Option<Arc<CntrCore>>,
    /// The endpoint through which alone peers reach the region (`KFI_MR_ENDPOINT`), as long as it
    /// is open.
    pub endpoint: Option<Arc<EpCore>>,
    /// Something that is posted on the endpoint follows at once (`KFI_MORE`).
    pub more: bool,
}

impl Bindings {
    /// No bindings.
    pub const NONE: Self = Self {
        counter: None,
        endpoint: None,
        more: false,
    };
}

/// How peers reach a region.
pub struct Keys {
    /// The key that a peer needs (`kfi_mr_key`).
    pub key: u64,
    /// The address of the region's first byte for a peer (`kfid_mr.iova`).
    pub base: u64,
    /// The local descriptor (`kfi_mr_desc`), meaningful to the provider.
    pub desc: usize,
    /// It is one region to the device, and not several (`KFI_MR_RAW`).
    pub whole: bool,
}
