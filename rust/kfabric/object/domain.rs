// SPDX-License-Identifier: GPL-2.0

//! Domains of providers written in Rust.

pub(crate) mod open;
mod ops;

use super::{
    children::{
        Children,
        Counted,
        Share, //
    },
    closing::Close,
    descs::Descs,
    eq::BoundEq,
    fabric::FabricBody,
    fid::Class,
    instances::Instance,
    obj::Obj,
    place::{
        Child,
        Parent, //
    },
    unsettled::Unsettled, //
};
use crate::{
    provider::{
        offer::Offer,
        Domain, //
    },
    region::{
        limits::MrLimits,
        rawkey::{
            map::KeyMap,
            raw_key_size,
            MAX_PIECES, //
        }, //
    },
    support::{
        child_list::ChildList, //
        num::signed,
        refusal::Refusal,
    }, //
};
use core::any::Any;
use kernel::{
    prelude::*,
    str::{
        CStr,
        CString, //
    },
    sync::{
        Arc,
        SetOnce, //
    }, //
};
use kfi_bindings::kfid;

/// The class of domains.
static DOMAIN: Class = Class::new(
    kfi_bindings::KFI_CLASS_DOMAIN,
    c"not a domain",
    c"a domain is open in it",
);

/// What regions keep in their domain, which needn't know it.
pub(crate) type Kept = dyn Any + Send + Sync;

/// A domain.
pub(crate) type DomainObject = Obj<DomainBody>;

/// What the core keeps with a domain.
pub(crate) struct DomainBody {
    _instance: Instance,
    /// What regions are made of that must not fail for want of memory. Goes before the provider's
    /// part, of which it is made.
    reserve: SetOnce<Arc<Kept>>,
    imp: KBox<dyn Domain>,
    /// All that is open in the domain, with a limit of regions.
    children: Children,
    child_list: Arc<ChildList>,
    descs: Pin<KVBox<Descs>>,
    /// Its name, if it was opened by name.
    name: Option<CString>,
    mr_limits: MrLimits,
    mr_mode: i32,
    /// The capabilities that it was opened with.
    caps: u64,
    auth_key: KVec<u8>,
    keys: Pin<KBox<KeyMap>>,
    /// The regions that aren't settled yet.
    unsettled: Arc<Unsettled>,
    /// The regions that are to be closed.
    later: Arc<Unsettled>,
    /// Where registrations report to, if they are asynchronous.
    eq: SetOnce<BoundEq>,
}

impl Child for DomainBody {
    type Parent = FabricBody;
}

impl Parent for DomainBody {
    fn children(&self) -> &Children {
        &self.children
    }

    fn child_list(&self) -> &ChildList {
        &self.child_list
    }
}

impl Close for DomainBody {
    /// `EBUSY` while objects are open in it, or others use what is the domain's. Sleeps until everybody has
    /// returned who was told of a region that was closed later.
    fn close(&self) -> Result<(), Refusal> {
        self.close_to_children()?;
        // Who was told last that a region is closed may not have returned yet.
        self.later.finish();
        self.imp.close().inspect_err(|_| self.children.reopen())
    }
}

impl DomainBody {
    pub(crate) fn provider(&self) -> &dyn Domain {
        &*self.imp
    }

    /// Is it an offer of this domain, which needs no more of a consumer than has been agreed to?
    pub(crate) fn is_offered(&self, offer: &Offer) -> bool {
        self.name
            .as_ref()
            .is_none_or(|name| **name == *offer.domain)
            && offer.mr_mode & !self.mr_mode == 0
    }

    /// Returns whether it was opened by this name. Any context.
    pub(crate) fn is_named(&self, name: &CStr) -> bool {
        self.name.as_ref().is_some_and(|own| **own == *name)
    }

    pub(crate) fn mr_limits(&self) -> &MrLimits {
        &self.mr_limits
    }

    /// Was it opened with this bit of `mr_mode`?
    pub(crate) fn has_mode(&self, bit: u32) -> bool {
        self.mr_mode & signed(bit) != 0
    }

    /// Was it opened with this capability?
    pub(crate) fn has_caps(&self, caps: u64) -> bool {
        self.caps & caps == caps
    }

    /// What regions are made of that must not fail for want of memory.
    pub(crate) fn reserve(&self) -> Option<&Kept> {
        self.reserve.as_ref().map(|reserve| &**reserve)
    }

    /// Sets that, unless there is something.
    pub(crate) fn set_reserve(&self, reserve: Arc<Kept>) -> bool {
        self.reserve.populate(reserve)
    }

    /// Sets the event queue that registrations report to, unless there is one.
    fn set_eq(&self, eq: BoundEq) -> bool {
        self.eq.populate(eq)
    }

    /// Returns the event queue that registrations report to, unless the consumer has closed it. Any
    /// context.
    pub(crate) fn eq(&self) -> Option<&BoundEq> {
        self.eq.as_ref().filter(|eq| eq.is_open())
    }

    /// The authorization key of what has none of its own; empty for none.
    pub(crate) fn auth_key(&self) -> &[u8] {
        &self.auth_key
    }

    /// How many regions may be open at a time (`mr_cnt`).
    pub(crate) fn max_regions(&self) -> u32 {
        u32::try_from(self.mr_limits.regions).unwrap_or(u32::MAX)
    }

    /// Counts something new in it that is no object. Any context.
    pub(crate) fn count(&self) -> Result<Counted<'_>, Refusal> {
        Ok(self.children.count()?)
    }

    /// Counts something off that was [kept](Counted::keep). Any context.
    pub(crate) fn count_off(&self) {
        self.children.remove(Share::ONE);
    }

    /// The regions that aren't settled yet.
    pub(crate) fn unsettled(&self) -> &Arc<Unsettled> {
        &self.unsettled
    }

    /// The regions that are to be closed.
    pub(crate) fn later(&self) -> &Arc<Unsettled> {
        &self.later
    }

    /// The regions that have descriptors.
    pub(crate) fn descs(&self) -> &Descs {
        &self.descs
    }

    /// The raw keys that are mapped in it.
    pub(crate) fn keys(&self) -> &KeyMap {
        &self.keys
    }

    /// Length of the longest raw key that it takes: `mr_key_size` under `KFI_MR_RAW`; otherwise
    /// that is about other keys.
    pub(crate) fn longest_raw_key(&self) -> usize {
        raw_key_size(match self.has_mode(kfi_bindings::KFI_MR_RAW) {
            true => self.mr_limits.pieces,
            false => MAX_PIECES,
        })
    }
}

/// The provider's domain behind a fid, if it is one of type `D`. For a provider's extensions.
///
/// # Safety
///
/// `fid` is null or an open object; the reference is not used after it was closed.
pub unsafe fn from_fid<'a, D: Domain>(fid: *mut kfid) -> Option<&'a D> {
    // SAFETY: By the requirements of this function.
    let domain = unsafe { DomainObject::from_fid(fid) }.ok()?;
    domain.provider().as_any().downcast_ref()
}
