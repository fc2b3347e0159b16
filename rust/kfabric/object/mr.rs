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
pub(crate) mod enable;
pub(crate) mod later;
pub(crate) mod many;
mod mr_ext;
mod open;
mod ops;
pub(crate) mod parts;
mod prelude;
pub(crate) mod reference;
pub(crate) mod reg;
mod state;

use self::{
    mr_ext::MrExt,
    state::MrState, //
};
use super::{
    descs::DescEntry,
    domain::DomainObject,
    eq::EqCore,
    prelude::*, //
};
use kernel::sync::atomic::Release;

/// The class of regions.
static MR: Class = Class::new(
    c::KFI_CLASS_MR,
    c"not a memory region",
    c"a memory region is open in it",
);

/// Maximum number of regions that wait for the device together. The list of their states has that
/// length.
pub(crate) const MAX_TOGETHER: usize = 64;

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
    fn eq(&self, inner: &Inner) -> Option<&Arc<EqCore>> {
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

/// The results of `kfi_mr_desc()` and `kfi_mr_key()`, and `iova`.
#[derive(Clone, Copy)]
struct Public {
    desc: usize,
    key: u64,
    base: u64,
}

impl Public {
    /// Makes that of a region by how peers reach it, if it is enabled. Any context.
    fn new(domain: &DomainObject, keys: Option<&Keys>) -> Self {
        const NO_KEY: u64 = widen(c::KFI_KEY_NOTAVAIL);
        match keys {
            Some(keys) => Self {
                desc: keys.desc,
                key: match domain.has_mode(c::KFI_MR_RAW) {
                    true => NO_KEY,
                    false => keys.key,
                },
                base: keys.base,
            },
            None => Self {
                desc: 0,
                key: NO_KEY,
                base: 0,
            },
        }
    }

    /// Makes the region that C gets, with one reference to it. Any context.
    fn to_c(self, fid: kfid) -> kfid_mr {
        kfid_mr {
            fid: kfid {
                ref_cnt: c::atomic_t { counter: 1 },
                ..fid
            },
            mem_desc: ptr::without_provenance_mut(self.desc),
            key: self.key,
            iova: self.base,
        }
    }
}

impl MrObject {
    /// Returns what C sees of the region. Any context.
    fn public(&self) -> Public {
        let c = self.as_ptr();
        // SAFETY: `c` is this object's. Others write these fields only in `publish`, word by word.
        unsafe {
            Public {
                key: Atomic::from_ptr(&raw mut (*c).key).load(Relaxed),
                desc: (&raw const (*c).mem_desc).read_volatile().addr(),
                base: (&raw const (*c).iova).read_volatile(),
            }
        }
    }

    /// Shows C what has changed since it got the region. Any context.
    fn publish(&self, public: Public) {
        let c = self.as_ptr();
        // SAFETY: `c` is this object's. C only reads these fields, and may do so meanwhile; who
        // sees the key sees them all, by `kfi_mr_key()`.
        unsafe {
            (&raw mut (*c).mem_desc).write_volatile(ptr::without_provenance_mut(public.desc));
            (&raw mut (*c).iova).write_volatile(public.base);
            Atomic::from_ptr(&raw mut (*c).key).store(public.key, Release);
        }
    }

    /// Lets transfers find the enabled region by its descriptor, if it has one. Called once. Any context.
    fn reveal(&self, keys: &Keys) {
        let descs = &self.parent().descs;
        // SAFETY: The region is enabled once, so it is not in the table. The object doesn't move, and is hidden
        // before it is dropped.
        unsafe { descs.insert(&self.local, keys.desc, keys.base, keys.whole) };
    }

    /// Lets it not be found any more. Called when it is being closed. Any context.
    fn hide(&self) {
        // SAFETY: If it is in a table, it is that of its domain; enabling it has ended.
        unsafe { self.parent().descs.remove(&self.local) };
    }
}
