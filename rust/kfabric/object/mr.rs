// SPDX-License-Identifier: GPL-2.0

//! The memory region as C has it.
//!
//! Lock order: a region's lock is taken before anything of its provider, and before the locks of
//! event queues, counters and endpoints.

mod bind;
mod close;
mod control;
mod enable;
mod kit;
mod open;
mod ops;
mod public;
mod ranges;
mod rawkey;
pub(crate) mod reg;
pub(crate) mod reserve;
mod state;

use self::{
    ranges::Ranges,
    state::State, //
};
use super::{
    domain::DomainObject,
    eq::{
        EqObject,
        Unread, //
    },
    fid::{
        self,
        Class, //
    }, //
};
use crate::{
    provider::{
        cntr::Counter,
        ep::Endpoint,
        Domain,
        Keys,
        Mr, //
    },
    region::{
        access::Access,
        lease::Lease, //
    },
    support::{
        errno::Errno,
        refusal::Refusal, //
    }, //
};
use core::ptr::NonNull;
use kernel::{
    prelude::*,
    sync::{
        Arc,
        CondVar,
        Mutex, //
    },
    types::Opaque,
    workqueue::Work, //
};
use kfi_bindings::{
    kfid,
    kfid_mr, //
};

/// The class of regions.
static MR: Class = Class::new(kfi_bindings::KFI_CLASS_MR);

/// A `struct kfid_mr` and what the core keeps with it.
///
/// C has a reference from [`open`](open::open) to [`close`](close::close); the work that enables the region has another.
///
/// # Invariants
///
/// `c.fid` is what C points to; `domain` and `eq` stay open until [`close`](close::close) has ended, since the
/// domain counts this region as a child, and the queue is bound to the domain.
#[repr(C)]
#[pin_data]
pub(crate) struct MrObject {
    // C may write to it: the context is the consumer's.
    c: Opaque<kfid_mr>,
    domain: NonNull<DomainObject>,
    /// Where it is reported that the region is enabled; otherwise the call waits for it.
    eq: Option<NonNull<EqObject>>,
    access: Access,
    len: u64,
    ranges: Ranges,
    /// What it is made of goes back to the domain's reserve.
    reserved: bool,
    #[pin]
    inner: Mutex<Inner>,
    /// A region is no longer pending.
    #[pin]
    settled: CondVar,
    #[pin]
    work: Work<Self>,
}

// SAFETY: What the pointers lead to may be used by any thread, by the invariants; the addresses in
// `ranges` are only passed on.
unsafe impl Send for MrObject {}
// SAFETY: As above; `c` is not read but for what never changes.
unsafe impl Sync for MrObject {}

/// What changes in a region's life.
struct Inner {
    state: State<Arc<Counter>, Arc<Endpoint>>,
    /// `None` while it is pending: then whoever enables it has it.
    mr: Option<KBox<dyn Mr>>,
    /// How peers reach it, once enabled.
    keys: Option<Keys>,
    /// The event that tells how enabling it ended.
    event: Option<Unread>,
    /// What the provider keeps of the memory may be used until this is dropped.
    lease: Option<Lease>,
}

impl MrObject {
    /// The domain that it was registered in.
    pub(crate) fn domain(&self) -> &DomainObject {
        // SAFETY: Open by the invariant.
        unsafe { self.domain.as_ref() }
    }

    fn eq(&self) -> Option<&EqObject> {
        // SAFETY: Open by the invariant.
        self.eq.map(|eq| unsafe { eq.as_ref() })
    }

    fn fid(&self) -> *mut kfid {
        self.c.get().cast()
    }
}

/// The region behind a fid.
///
/// # Safety
///
/// `fid` is null or an open object; the reference is not used after it was closed.
pub(crate) unsafe fn object<'a>(fid: *mut kfid) -> Result<&'a MrObject, Refusal> {
    // SAFETY: By the requirements of this function.
    match unsafe { fid::is_of(fid, &MR) } {
        // SAFETY: The table tells that this is the first field of one of our objects.
        true => Ok(unsafe { &*fid.cast::<MrObject>() }),
        false => Err(Refusal::new(Errno::EINVAL, c"not a memory region")),
    }
}

/// The provider's domain that a region was registered in, if it is one of type `D`. For a
/// provider's extensions.
///
/// # Safety
///
/// `mr` is null or an open region; the reference is not used after it was closed.
pub unsafe fn domain_of<'a, D: Domain>(mr: *mut kfid_mr) -> Option<&'a D> {
    // SAFETY: By the requirements of this function.
    let object = unsafe { object(mr.cast()) }.ok()?;
    object.domain().provider().as_any().downcast_ref()
}
