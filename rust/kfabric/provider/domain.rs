// SPDX-License-Identifier: GPL-2.0

//! Domains of a provider.

use super::{
    dma::Dma,
    extension::Extension,
    mr::{
        Bindings,
        Closing,
        Enabling,
        Keys, //
    },
    msg_ep::{
        MsgEp,
        MsgEpRequest,
        MsgLimits,
        Srx, //
    },
    part::MrPart, //
};
use crate::{
    region::{
        limits::MrLimits,
        request::MrRequest, //
    },
    support::{
        errno::Errno,
        refusal::Refusal,
        roster::Roster, //
    }, //
};
use core::any::Any;
use kernel::{
    prelude::*,
    str::CStr,
    sync::Arc, //
};

/// What a consumer wants of a new domain, from the `struct kfi_info` that it got by getinfo.
///
/// Its numbers have been checked against the domain's limits by the core.
pub struct DomainRequest<'a> {
    /// Name of the domain, if one was given.
    pub name: Option<&'a CStr>,
    /// The mode bits that the consumer agreed to.
    pub mr_mode: i32,
    /// The capabilities that it wants.
    pub caps: u64,
    /// The authorization key of all that is opened in the domain; empty for none.
    pub auth_key: &'a [u8],
    /// All that is going to be open in the domain, for a provider whose device may go away.
    pub roster: &'a Arc<Roster>,
}

/// An open domain.
pub trait Domain: Any + Send + Sync {
    /// What one region can be; constant. Any context.
    fn mr_limits(&self) -> &MrLimits;

    /// The first half of a registration: checks the memory and maps it. All that can be refused at
    /// once is refused here. No peer can reach anything before [`Mr::enable`](super::Mr::enable).
    /// May sleep.
    fn create_mr(&self, request: &MrRequest<'_>) -> Result<MrPart, Refusal>;

    /// All of a registration, of a region that isn't bound to anything: as
    /// [`create_mr`](Self::create_mr) and [`Mr::enable`](super::Mr::enable). May sleep.
    ///
    /// After an error there is no region. But `ENOTRECOVERABLE` says that the device won't let go of it.
    fn register_mr(&self, request: &MrRequest<'_>) -> Result<(MrPart, Keys), Refusal> {
        let mut mr = self.create_mr(request)?;
        match mr.enable(&Bindings::NONE) {
            Ok(keys) => Ok((mr, keys)),
            // The reason why it could not be enabled says more than that it could not be closed; but
            // nobody has it, so nobody else tells that its memory must never be freed.
            Err(refusal) => Err(match mr.close() {
                Ok(()) => refusal,
                Err(_) => refusal.with_errno(Errno::ENOTRECOVERABLE),
            }),
        }
    }

    /// Enables several regions of the domain, so that the device is waited for once. Each ends as
    /// [`Mr::enable`](super::Mr::enable) does. May sleep.
    fn enable_many(&self, mrs: &mut [Enabling<'_>]) {
        for one in mrs {
            *one.done = Some(one.mr.enable(one.bindings));
        }
    }

    /// Closes several regions of the domain, so that the device is waited for once. Each ends as
    /// [`Mr::close`](super::Mr::close) does. May sleep.
    fn close_many(&self, mrs: &mut [Closing<'_>]) {
        for one in mrs {
            *one.done = Some(one.mr.close());
        }
    }

    /// Makes idle regions, of each of which [`Mr::create_again`](super::Mr::create_again) can make a region of up to so many
    /// pages and segments without gaps, again and again, without taking any memory. Called once.
    /// May sleep.
    fn reserve(&self, _count: usize, _pages: usize) -> Result<KVVec<MrPart>, Refusal> {
        Err(Refusal::new(
            Errno::ENOSYS,
            c"the provider can't reserve anything",
        ))
    }

    /// Mapping of scatterlists for the domain's device (`KFI_DMA_OPS_1`). Any context.
    fn dma(&self) -> Option<&dyn Dma> {
        None
    }

    /// Can the core open endpoints in this domain? Nothing is transferred by them: they are there
    /// for regions to be bound to, and for the provider to let peers through (`Endpoint::enter`).
    /// Any context.
    fn endpoints(&self) -> bool {
        false
    }

    /// Are its regions bound to endpoints before they are enabled, if it was opened with `KFI_MR_ENDPOINT`?
    /// Otherwise a consumer that is ready for that doesn't have to. Any context.
    fn binds_regions(&self) -> bool {
        self.endpoints()
    }

    /// What the `prov_errno` of a failed transfer means, if it is the provider's own number. Any context.
    fn words(&self, _prov_errno: i32) -> Option<&'static CStr> {
        None
    }

    /// What its connected endpoints can do, if it has any. Any context.
    fn msg_limits(&self) -> Option<&MsgLimits> {
        None
    }

    /// Opens an endpoint that is to be connected. May sleep.
    fn open_ep(&self, _request: MsgEpRequest) -> Result<KBox<dyn MsgEp>, Refusal> {
        Err(Refusal::new(
            Errno::ENOSYS,
            c"the provider has no endpoints",
        ))
    }

    /// Opens a receive context that endpoints share, with room for so many receives; within the limits. May
    /// sleep.
    fn open_srx(&self, _size: usize) -> Result<KBox<dyn Srx>, Refusal> {
        Err(Refusal::new(Errno::ENOSYS, c"endpoints share no receives"))
    }

    /// The provider's own extensions, for `kfi_open_ops` to be opened by their names. Where the core
    /// has one of a name itself, that is opened. Any context.
    ///
    /// The tables' functions get the domain's `struct kfid`; [`crate::object::domain::from_fid`] leads
    /// back here.
    fn extensions(&self) -> &[Extension] {
        &[]
    }

    /// Ends the domain. Called without open regions, and dropped next. `EBUSY` if others still use
    /// what is the domain's: then it stays open. May sleep.
    ///
    /// Until this has returned, extensions may be called with the domain's fid.
    fn close(&self) -> Result<(), Refusal> {
        Ok(())
    }

    /// `self` as [`Any`], for [`crate::object::domain::from_fid`]. Any context.
    fn as_any(&self) -> &dyn Any;
}
