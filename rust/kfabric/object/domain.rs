// SPDX-License-Identifier: GPL-2.0

//! Domains of providers written in Rust.

mod bind;
mod control;
pub(crate) mod open;
mod ops;
mod rawkey;

use super::{
    children::Children,
    eq::{
        bound::BoundEq,
        EqObject, //
    },
    fabric::FabricObject,
    fid::{
        self,
        Class, //
    }, //
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
        errno::Errno,
        noio::NoIo,
        num::signed,
        refusal::Refusal, //
    }, //
};
use core::{
    any::Any,
    ptr::NonNull, //
};
use kernel::{
    ffi::c_int,
    prelude::*,
    str::CString,
    sync::{
        Arc,
        SetOnce, //
    },
    types::Opaque, //
};
use kfi_bindings::{
    kfid,
    kfid_domain, //
};

/// The class of domains.
static DOMAIN: Class = Class::new(kfi_bindings::KFI_CLASS_DOMAIN);

/// What regions keep in their domain, which needn't know it.
pub(crate) type Kept = dyn Any + Send + Sync;

/// A domain.
///
/// # Invariants
///
/// `c.fid` is what C points to. `children` counts all that is open in the domain, `regions` the
/// regions among it. `fabric` stays open, since it counts this domain as a child.
#[repr(C)]
pub(crate) struct DomainObject {
    // C may write to it: the context is the consumer's.
    c: Opaque<kfid_domain>,
    /// What regions are made of that must not fail for want of memory. Goes before the provider's
    /// part, of which it is made.
    reserve: SetOnce<Arc<Kept>>,
    imp: KBox<dyn Domain>,
    children: Children,
    regions: Children,
    fabric: NonNull<FabricObject>,
    /// Its name, if it was opened by name.
    name: Option<CString>,
    mr_limits: MrLimits,
    mr_cnt: i32,
    mr_mode: i32,
    auth_key: KVec<u8>,
    keys: Pin<KBox<KeyMap>>,
    /// Where registrations report to, if they are asynchronous.
    eq: SetOnce<BoundEq>,
}

/// A new object counted in its domain; counted off again when dropped.
pub(crate) struct Child<'a> {
    domain: &'a DomainObject,
    remove: fn(&DomainObject),
}

impl Child<'_> {
    /// Leaves the object counted until [`DomainObject::remove_child`] or, for a region,
    /// [`DomainObject::remove_region`].
    pub(crate) fn keep(self) -> NonNull<DomainObject> {
        let domain = NonNull::from(self.domain);
        core::mem::forget(self);
        domain
    }
}

impl Drop for Child<'_> {
    fn drop(&mut self) {
        (self.remove)(self.domain);
    }
}

impl DomainObject {
    pub(crate) fn provider(&self) -> &dyn Domain {
        &*self.imp
    }

    /// The domain as C has it.
    pub(crate) fn as_ptr(&self) -> *mut kfid_domain {
        self.c.get()
    }

    /// The fabric that it belongs to.
    pub(crate) fn fabric(&self) -> &FabricObject {
        // SAFETY: Open by the invariant.
        unsafe { self.fabric.as_ref() }
    }

    /// Is it an offer of this domain, which needs no more of a consumer than has been agreed to?
    pub(crate) fn is_offered(&self, offer: &Offer) -> bool {
        self.name
            .as_ref()
            .is_none_or(|name| **name == *offer.domain)
            && offer.mr_mode & !self.mr_mode == 0
    }

    pub(crate) fn mr_limits(&self) -> &MrLimits {
        &self.mr_limits
    }

    /// Was it opened with this bit of `mr_mode`?
    pub(crate) fn has_mode(&self, bit: u32) -> bool {
        self.mr_mode & signed(bit) != 0
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

    /// The event queue that registrations report to from now on; open as long as the domain is.
    pub(crate) fn eq(&self) -> Option<&EqObject> {
        self.eq.as_ref().map(BoundEq::get)
    }

    /// The authorization key of what has none of its own; empty for none.
    pub(crate) fn auth_key(&self) -> &[u8] {
        &self.auth_key
    }

    /// Counts a new region; `ENOSPC` at `mr_cnt`. Any context.
    pub(crate) fn add_region(&self) -> Result<Child<'_>, Refusal> {
        let child = self.add_child()?;
        if !self.regions.add_below(self.mr_cnt)? {
            let refusal = Refusal::new(Errno::ENOSPC, c"mr_cnt regions are open");
            return Err(refusal.value(u64::from(self.mr_cnt.unsigned_abs())));
        }
        core::mem::forget(child);
        Ok(Child {
            domain: self,
            remove: Self::remove_region,
        })
    }

    /// Counts a region off. The domain may be gone afterwards. Any context.
    pub(crate) fn remove_region(&self) {
        self.regions.remove();
        self.children.remove();
    }

    /// Counts a new object that is no region. Any context.
    pub(crate) fn add_child(&self) -> Result<Child<'_>, Refusal> {
        self.children.add()?;
        Ok(Child {
            domain: self,
            remove: Self::remove_child,
        })
    }

    /// Counts an object off that is no region. The domain may be gone afterwards. Any context.
    pub(crate) fn remove_child(&self) {
        self.children.remove();
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

/// Closes a domain; `EBUSY` while objects are open in it, or others use what is the domain's.
/// Sleeps.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn close(fid: *mut kfid) -> c_int {
    let _noio = NoIo::enter();
    let object = fid.cast::<DomainObject>();
    // SAFETY: C calls this on an open domain, whose fid is the object's first field.
    let (children, imp) = unsafe { (&(*object).children, &(*object).imp) };
    if let Err(errno) = children.close() {
        return Refusal::new(errno, c"objects are open in the domain").report();
    }
    if let Err(refusal) = imp.close() {
        children.reopen();
        return refusal.report();
    }
    // SAFETY: As above; without children, and closed, nobody uses it any more.
    let object = unsafe { KBox::from_raw(object) };
    let fabric = object.fabric;
    drop(object);
    // SAFETY: By the invariant of the object, which counted as a child of the fabric until here.
    unsafe { fabric.as_ref() }.children().remove();
    0
}

/// The domain behind a fid.
///
/// # Safety
///
/// `fid` is null or an open object; the reference is not used after it was closed.
pub(crate) unsafe fn object<'a>(fid: *mut kfid) -> Result<&'a DomainObject, Refusal> {
    // The class tells our domains from those of C providers, and from other objects.
    // SAFETY: By the requirements of this function.
    match unsafe { fid::is_of(fid, &DOMAIN) } {
        // SAFETY: The fid is the first field of an object.
        true => Ok(unsafe { &*fid.cast::<DomainObject>() }),
        false => Err(Refusal::new(Errno::EINVAL, c"not a domain")),
    }
}

/// The provider's domain behind a fid, if it is one of type `D`. For a provider's extensions.
///
/// # Safety
///
/// `fid` is null or an open object; the reference is not used after it was closed.
pub unsafe fn from_fid<'a, D: Domain>(fid: *mut kfid) -> Option<&'a D> {
    // SAFETY: By the requirements of this function.
    let domain = unsafe { object(fid) }.ok()?;
    domain.provider().as_any().downcast_ref()
}
