// SPDX-License-Identifier: GPL-2.0

//! The memory region as C has it.
//!
//! Lock order: a region's lock is taken with interrupts off, and before those of event queues, of
//! wait queues and of the table of descriptors. A task that sleeps in a call of a region's provider
//! holds the provider's part, and not the lock.

mod bind;
mod bind_slots;
mod busy;
pub(crate) mod close;
mod control;
mod enable;
pub(crate) mod later;
pub(crate) mod many;
mod mr_ext;
mod open;
mod ops;
pub(crate) mod parts;
pub(crate) mod pending;
mod public;
mod ranges;
mod rawkey;
pub(crate) mod reference;
pub(crate) mod reg;
mod state;

use self::{
    mr_ext::MrExt,
    state::MrState, //
};
use super::{
    descs::DescEntry,
    eq::BoundEq,
    fid::Class,
    obj::Obj, //
};
use crate::{
    provider::{
        DomainOps,
        ProviderMr, //
    },
    support::{
        cache::MrExtBox,
        irqlock::IrqLock, //
    }, //
};
use kernel::prelude::*;
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

/// The core's part of a region.
#[pin_data]
pub(crate) struct MrBody {
    /// Its length and rights, and what it is found by.
    local: DescEntry,
    #[pin]
    inner: IrqLock<Inner>,
}

/// The state of a region that changes.
struct Inner {
    state: MrState,
    /// The fields that most regions don't need.
    rare: Option<Pin<MrExtBox<MrExt>>>,
    /// `None` while it is pending: then whoever enables it has it; or held.
    mr: Option<ProviderMr>,
    /// Somebody has the provider's part in hand, who sleeps.
    held: bool,
    /// Somebody waits until it isn't pending, held, or being closed, any more.
    awaited: bool,
    /// The domain's event queue tells that the region is enabled; otherwise the call waits for it. Only of what
    /// has [`MrExt`] things. It doesn't change.
    told: bool,
    /// The parts return to the domain's reserve when the region is closed. It doesn't change.
    reserved: bool,
}

impl MrObject {
    /// Returns the event queue that reports that the region is enabled; `None` also if that queue
    /// was closed. Called while its domain is open. Any context.
    fn eq(&self, inner: &Inner) -> Option<&BoundEq> {
        match inner.told {
            true => self.parent().eq(),
            false => None,
        }
    }
}

/// Returns the provider's domain that a region was registered in, if it is one of type `D`. For a
/// provider's extensions.
///
/// # Safety
///
/// `mr` is null or an open region; the reference is not used after it was closed.
pub unsafe fn domain_of<'a, D: DomainOps>(mr: *mut kfid_mr) -> Option<&'a D> {
    // SAFETY: `mr` is null or an open region, as the caller promises, and stays so for `'a`.
    let object = unsafe { MrObject::from_fid(mr.cast()) }.ok()?;
    object.parent().provider().as_any().downcast_ref()
}
