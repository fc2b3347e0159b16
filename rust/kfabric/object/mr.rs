// SPDX-License-Identifier: GPL-2.0

//! The memory region as C has it.
//!
//! Lock order: a region's lock is taken with interrupts off, and before those of event queues, of wait
//! queues and of the table of descriptors. Who sleeps with a region's provider has its part
//! in hand, and not the lock.

mod asked;
mod bind;
mod close;
mod control;
mod enable;
pub(crate) mod fallen;
mod held;
mod kit;
pub(crate) mod later;
mod local;
pub(crate) mod many;
pub(crate) mod now;
mod open;
mod ops;
mod public;
mod ranges;
mod rawkey;
pub(crate) mod reference;
pub(crate) mod reg;
pub(crate) mod reserve;
mod state;
pub(crate) mod unsettled;

use self::{
    ranges::Ranges,
    state::State, //
};
use super::{
    descs::Local,
    eq::{
        EqObject,
        Unread, //
    },
    fid::Class,
    obj::Obj,
    ties::{
        Tie,
        Ties, //
    }, //
};
use crate::{
    provider::{
        cntr::Counter,
        Domain,
        Keys,
        Mr, //
    },
    region::lease::Lease,
    support::{
        cache::PartBox,
        irqlock::IrqLock, //
    }, //
};
use core::ptr::NonNull;
use kernel::{
    prelude::*,
    sync::{
        atomic::Atomic,
        Arc,
        Refcount, //
    }, //
};
use kfi_bindings::kfid_mr;

/// The class of regions.
static MR: Class = Class::new(
    kfi_bindings::KFI_CLASS_MR,
    c"not a memory region",
    c"a memory region is open in it",
);

/// A region as C has it.
///
/// C has a [reference](reference::MrRef) from [`open`](open::open) to [`close`](close::close); the work
/// that enables the region has another, and may have it for longer. So a region leaves its domain when it is closed,
/// and not when it is dropped.
pub(crate) type MrObject = Obj<MrBody>;

/// What the core keeps with a region.
///
/// # Invariants
///
/// - `eq` stays open until [`close`](close::close) has ended, since the queue is bound to the domain.
/// - `references` is how many [`MrRef`](reference::MrRef)s there are.
/// - `before` is null, or leads from one to the next in the list of the domain's
///   [`Unsettled`](super::unsettled::Unsettled).
#[pin_data]
pub(crate) struct MrBody {
    /// Where it is reported that the region is enabled; otherwise the call waits for it.
    eq: Option<NonNull<EqObject>>,
    /// Its length and rights, and what it is found by.
    local: Local,
    ranges: Ranges,
    /// Ties it to its endpoint while it is enabled.
    tie: Tie,
    /// What it is made of goes back to the domain's reserve.
    reserved: bool,
    #[pin]
    inner: IrqLock<Inner>,
    /// How many references there are to the object.
    references: Refcount,
    /// The one that was left to the core's workqueue before it, as long as both are.
    before: Atomic<*mut MrObject>,
}

// SAFETY: What the pointer leads to may be used by any thread, by the invariant; the addresses in
// `ranges` are only passed on.
unsafe impl Send for MrBody {}
// SAFETY: As for `Send`; what changes is behind a lock.
unsafe impl Sync for MrBody {}

/// What changes in a region's life.
struct Inner {
    state: State<Arc<Counter>, Arc<Ties>>,
    /// `None` while it is pending: then whoever enables it has it; or held.
    mr: Option<PartBox<dyn Mr>>,
    /// How peers reach it, once enabled.
    keys: Option<Keys>,
    /// The event that tells how enabling it ended.
    event: Option<Unread>,
    /// What the provider keeps of the memory may be used until this is dropped.
    lease: Option<Lease>,
    /// Somebody has the provider's part in hand, who sleeps.
    held: bool,
    /// Somebody waits until it isn't pending, held, or being closed, any more.
    awaited: bool,
}

impl MrBody {
    fn eq(&self) -> Option<&EqObject> {
        // SAFETY: Open by the invariant.
        self.eq.map(|eq| unsafe { eq.as_ref() })
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
    let object = unsafe { MrObject::from_fid(mr.cast()) }.ok()?;
    object.parent().provider().as_any().downcast_ref()
}
