// SPDX-License-Identifier: GPL-2.0

//! Domains of providers written in Rust.

pub(crate) mod open;

use super::{
    children::Counted,
    counters::{
        self,
        DomainCounters, //
    },
    descs::Descs,
    eq::EqCore,
    fabric::FabricBody,
    instances::Instance,
    pending_regs::PendingRegs,
    prelude::*,
    queues::Words, //
};
use crate::{
    provider::fabric::Offer,
    region::rawkey::{
        raw_key_size,
        MAX_PIECES, //
    },
    support::trace::DomainLabel, //
};
use core::any::Any;

/// The class of domains.
static DOMAIN: Class = Class::new(
    c::KFI_CLASS_DOMAIN,
    c"not a domain",
    c"a domain is open in it",
);

/// The reserve of regions in a domain, whose type the domain doesn't know.
pub(crate) type DomainReserve = dyn Any + Send + Sync;

/// An open domain.
pub(crate) type DomainObject = Obj<DomainBody>;

/// The core's part of a domain.
pub(crate) struct DomainBody {
    pub(super) instance: Instance,
    /// Preallocated parts for regions (`kfi_reserve_ops_v1`). Dropped before `imp`, which they belong to.
    pub(super) reserve: SetOnce<Arc<DomainReserve>>,
    pub(super) imp: KBox<dyn DomainOps>,
    /// The number of open objects, with a limit for regions.
    children: Children,
    child_list: Arc<ChildList>,
    pub(crate) descs: Pin<KVBox<Descs>>,
    /// The names, and the number of the instance.
    pub(super) label: Arc<DomainLabel>,
    pub(super) mr_limits: MrLimits,
    mr_mode: i32,
    /// The requested capabilities.
    caps: u64,
    manual: bool,
    pub(super) auth_key: KVec<u8>,
    pub(super) keys: Pin<KBox<KeyMap>>,
    /// The regions whose registration is pending.
    pub(super) unsettled: Arc<PendingRegs>,
    /// The regions whose close is pending.
    pub(super) later: Arc<PendingRegs>,
    /// The event queue of asynchronous registrations.
    eq: SetOnce<Arc<EqCore>>,
    pub(super) counters: DomainCounters,
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

impl Words for DomainBody {
    fn words(&self, prov_errno: c_int) -> Option<&'static CStr> {
        self.provider().words(prov_errno)
    }
}

impl Close for DomainBody {
    /// Closes the domain. Sleeps until each `done` function of `kfi_close_later()` has returned.
    ///
    /// # Errors
    ///
    /// - `EBUSY`: objects are open in the domain, or a provider uses it.
    fn close(object: &Obj<Self>) -> Result<(), Refusal> {
        object.close_to_children()?;
        // The last `done` function may not have returned yet.
        object.later.finish();
        object.imp.close().inspect_err(|_| object.children.reopen())
    }
}

impl DomainBody {
    /// Returns the provider's domain.
    pub(crate) fn provider(&self) -> &dyn DomainOps {
        &*self.imp
    }

    /// Returns the name, if the domain was opened by name.
    pub(super) fn name(&self) -> Option<&CStr> {
        self.label.domain.as_deref()
    }

    /// Adds the counters of the domain to a listing. Any context.
    pub(super) fn describe_counters(&self, about: &mut c::kfi_helper_object) {
        let (hits, misses) = self.imp.pool_counters();
        let (opened, open) = (self.counters.opened(), self.children.limited());
        counters::show([opened, open, hits, misses, self.counters.retries()], about);
    }

    /// Returns whether an offer is of this domain, and requires no more `mr_mode` bits than the consumer set.
    pub(crate) fn is_offered(&self, offer: &Offer) -> bool {
        self.name().is_none_or(|name| *name == *offer.domain) && offer.mr_mode & !self.mr_mode == 0
    }

    /// Returns whether the domain was opened by this name. Any context.
    pub(crate) fn is_named(&self, name: &CStr) -> bool {
        self.name().is_some_and(|own| *own == *name)
    }

    /// Returns whether the consumer set this bit of `mr_mode`.
    pub(crate) fn has_mode(&self, bit: u32) -> bool {
        self.mr_mode & signed(bit) != 0
    }

    /// Returns whether the consumer requested these capabilities.
    pub(crate) fn has_caps(&self, caps: u64) -> bool {
        self.caps & caps == caps
    }

    /// Returns whether transfers need to progress only when the consumer reads (`KFI_PROGRESS_MANUAL`). Any context.
    pub(super) fn is_manual(&self) -> bool {
        self.manual
    }

    /// Returns the event queue of registrations, if it is open. Any context.
    pub(crate) fn eq(&self) -> Option<&Arc<EqCore>> {
        self.eq.as_ref().filter(|eq| eq.is_open())
    }

    /// Counts a user of the domain that is no object. Any context.
    pub(crate) fn count(&self) -> Result<Counted<'_>, Refusal> {
        Ok(self.children.count()?)
    }

    /// Removes a user whose count was [kept](Counted::keep). Any context.
    pub(crate) fn count_off(&self) {
        self.children.remove(Share::ONE);
    }

    /// Returns the length of the longest raw key that the domain takes, in bytes. With `KFI_MR_RAW`, this is
    /// `mr_key_size`.
    pub(crate) fn longest_raw_key(&self) -> usize {
        raw_key_size(match self.has_mode(c::KFI_MR_RAW) {
            true => self.mr_limits.pieces,
            false => MAX_PIECES,
        })
    }
}

/// Returns the provider's domain behind a fid, for extensions of a provider. `None` if its type is not `D`.
///
/// # Safety
///
/// `fid` is null or an object that stays open for `'a`.
pub unsafe fn from_fid<'a, D: DomainOps>(fid: *mut kfid) -> Option<&'a D> {
    // SAFETY: `fid` is null or an object that stays open for `'a`.
    let domain = unsafe { DomainObject::from_fid(fid) }.ok()?;
    domain.provider().as_any().downcast_ref()
}

/// Returns the C result of the call with this name on the domain behind a fid. Counts and reports a refusal. A provider
/// calls this in its extensions. Any context.
///
/// # Safety
///
/// `fid` is null or an object that is open for the call.
pub unsafe fn answer(fid: *mut kfid, call: &CStr, done: Result<(), Refusal>) -> c_int {
    // SAFETY: `fid` is null or open for the call.
    unsafe { DomainObject::answer(fid, call, done.map(|()| 0)) }
}
