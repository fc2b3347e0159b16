// SPDX-License-Identifier: GPL-2.0

//! Regions of a provider.

use super::{
    cntr::Counter,
    ep::Endpoint, //
};
use crate::{
    region::{
        rawkey::RemotePiece,
        request::MrRequest, //
    },
    support::{
        errno::Errno,
        refusal::Refusal, //
    }, //
};
use core::any::Any;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// A region: created disabled, enabled at most once, closed once, then dropped.
///
/// The core makes these calls one at a time and in that order, so there are no states to check.
/// May be called by different threads.
pub trait Mr: Any + Send + Sync {
    /// The second half of a registration, the device's: peers can reach the region from the return
    /// on, who have got the key in a documented way. After an error they can't, and it is closed next; if that
    /// fails as well, the caller gets `ENOTRECOVERABLE`, or is told by [`close`](Self::close). But after
    /// `EAGAIN` it may be called again. May sleep, but not if the region is bound to an endpoint that is
    /// connected, and one to the device: then any context.
    fn enable(&mut self, bindings: &Bindings) -> Result<Keys, Refusal>;

    /// How peers reach a region that is enabled: its parts, in order, each with a key of its own; most are one
    /// part. The first has the key and the base that [`enable`](Self::enable) gave. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENODEV`: the device is gone.
    /// - `EIO`: the region is out of reach for good.
    /// - `ENOMEM`
    fn pieces(&self) -> Result<KVec<RemotePiece>, Refusal>;

    /// The pages behind it have changed (`kfi_mr_refresh()`): `request` describes the whole region
    /// anew, with the same addresses, lengths and rights. Key and base stay. Called while enabled.
    /// May sleep.
    ///
    /// After an error the region is as it was, or out of reach for peers for good. But
    /// `ENOTRECOVERABLE` says that the device won't let go of it: neither its old memory nor the new
    /// may ever be freed, and closing it fails.
    fn refresh(&mut self, _request: &MrRequest<'_>) -> Result<(), Refusal> {
        Err(Refusal::new(
            Errno::ENOSYS,
            c"the provider can't refresh regions",
        ))
    }

    /// The device goes away ([`ChildList::end`](crate::ChildList::end)), or the region's endpoint has gone down:
    /// takes the region from the device, as [`close`](Self::close) does, which is called later and tells if
    /// that failed. Called whether the region was enabled or not, but never while that is under way, and
    /// perhaps again. May sleep.
    fn end(&mut self) {}

    /// Deregisters: when this has succeeded, no peer can reach the memory. Called once, last,
    /// whether the region was enabled or not. May sleep.
    ///
    /// `EIO` if the device would not let go of the region: its memory must never be freed then.
    fn close(&mut self) -> Result<(), Refusal>;

    /// As [`close`](Self::close), of a region that is enabled, if there is nothing to be waited for; returns
    /// whether it was closed. If it wasn't, `close` is called next, or this again. Any context.
    fn close_now(&mut self) -> bool {
        false
    }

    /// `self` as [`Any`], for the provider's domain that gets several. Any context.
    fn as_any(&mut self) -> &mut dyn Any;
}

/// One of several regions that are enabled together ([`Domain::enable_many`](super::Domain)).
pub struct Enabling<'a> {
    /// The region, for which [`Mr::enable`] would be called next.
    pub mr: &'a mut dyn Mr,
    /// What it is bound to.
    pub bindings: &'a Bindings,
    /// To be set to what `enable` would return.
    pub done: &'a mut Option<Result<Keys, Refusal>>,
}

/// One of several regions that are closed together ([`Domain::close_many`](super::Domain)).
pub struct Closing<'a> {
    /// The region, for which [`Mr::close`] would be called next.
    pub mr: &'a mut dyn Mr,
    /// To be set to what `close` would return.
    pub done: &'a mut Option<Result<(), Refusal>>,
}

/// What a region was bound to before it is enabled.
pub struct Bindings {
    /// What counts the writes of peers to the region. Counting goes on in vain once it is closed.
    pub counter: Option<Arc<Counter>>,
    /// The endpoint through which alone peers reach the region (`KFI_MR_ENDPOINT`), as long as it
    /// is open.
    pub endpoint: Option<Arc<Endpoint>>,
    /// Something that is posted on the endpoint follows at once (`KFI_MORE`).
    pub more: bool,
}

impl Bindings {
    /// To nothing.
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
