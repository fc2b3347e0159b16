// SPDX-License-Identifier: GPL-2.0

//! The guard that pins the provider of an open fabric.
//!
//! Lock order: `HANDED_OUT` is a leaf; no provider is called under it.

pub(crate) mod open;
mod ops;

use crate::{
    api::registry::ProviderRef,
    object::fid::{
        Class,
        ClassTable, //
    }, //
};
use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    prelude::*,
    sync::{
        GlobalGuard,
        GlobalLockedBy, //
    }, //
};
use kfi_bindings::{
    kfi_ops,
    kfid,
    kfid_fabric, //
};

kernel::sync::global_lock! {
    // SAFETY: Initialized by `init`, which the module calls first.
    unsafe(uninit) static HANDED_OUT: Mutex<Guards> = Guards { first: None };
}

/// Initializes the lock of all guards.
///
/// # Safety
///
/// Called once, before anything else of this file.
pub(crate) unsafe fn init() {
    // SAFETY: By the requirements of this function.
    unsafe { HANDED_OUT.init() };
}

/// All guards.
///
/// # Invariants
///
/// `first` and those that follow it are the guards whose fabrics a consumer has, or is closing. None of them is
/// freed while the lock is held.
struct Guards {
    first: Option<NonNull<Guard>>,
}

// SAFETY: The guards may be used by any thread that holds the lock.
unsafe impl Send for Guards {}

/// The class of the tables of guards.
static GUARD: Class = Class::new(
    kfi_bindings::KFI_CLASS_UNSPEC,
    c"not an open fabric",
    c"a fabric is open",
);

/// Stands between its consumers and an open fabric, whichever language its provider is written in.
///
/// The fabric's fid points to `table` instead of the provider's table. So the code that runs last
/// when a fabric is closed is the core's, and the provider's module can be let go by it.
///
/// A provider may open one fabric several times, that is, give out the same fid again. It has one
/// guard then, which goes with the last of its consumers. When all of them are closing it, the fid
/// gets its own table back beforehand: it may be freed, or kept and given out anew.
///
/// # Invariants
///
/// `inner` is the table that the provider gave the fabric. While `HANDED_OUT` is locked, the fid
/// points to the guard if not all of its consumers are closing it.
#[repr(C)]
struct Guard {
    table: ClassTable<kfi_ops>,
    inner: *mut kfi_ops,
    fabric: *mut kfid,
    provider: ProviderRef,
    consumers: GlobalLockedBy<Consumers, HANDED_OUT>,
}

/// How often a fabric is open.
struct Consumers {
    open: usize,
    /// How many of them are in a call that closes it.
    closing: usize,
    /// The guard that follows.
    next: Option<NonNull<Guard>>,
}

// SAFETY: The guard that follows may be used by any thread that holds the lock.
unsafe impl Send for Consumers {}
// SAFETY: The guard that follows may be used by any thread that holds the lock.
unsafe impl Sync for Consumers {}

impl Guard {
    /// The guard of a fabric, if it has one. Called with `HANDED_OUT` locked, or for an open fabric
    /// that `kfi_fabric()` gave out.
    ///
    /// # Safety
    ///
    /// `fid` is an open fabric, and has a table.
    unsafe fn find(fid: *const kfid) -> Option<NonNull<Self>> {
        // SAFETY: By the requirements of this function.
        let ops = unsafe { (*fid).ops };
        // SAFETY: `ops` is the table of an open fabric, by the requirements of this function.
        let guarded = unsafe { ClassTable::is_of(ops, &GUARD) };
        // A table of this class is the first field of a guard.
        NonNull::new(ops.cast()).filter(|_| guarded)
    }

    /// The guard of an open fabric that `kfi_fabric()` gave out.
    ///
    /// # Safety
    ///
    /// `fid` is such a fabric.
    unsafe fn of(fid: *mut kfid) -> *mut Self {
        // SAFETY: The table is the first field of the guard that `kfi_fabric()` put there.
        unsafe { (*fid).ops }.cast()
    }

    /// Makes one more consumer's fabric of one that the provider has opened again.
    fn add(&self, lock: &mut GlobalGuard<HANDED_OUT>) {
        self.consumers.as_mut(lock).open += 1;
    }

    /// A consumer is about to close the fabric.
    ///
    /// # Safety
    ///
    /// `fid` is the guard's fabric, open.
    unsafe fn begin_close(&self, fid: *mut kfid) {
        let mut lock = HANDED_OUT.lock();
        let consumers = self.consumers.as_mut(&mut lock);
        consumers.closing += 1;
        if consumers.closing == consumers.open {
            // SAFETY: By the requirements of this function; all who use the fabric are here.
            unsafe { (*fid).ops = self.inner };
        }
    }

    /// The consumer has closed it. `true` if the guard is to go, which nobody finds any more.
    fn end_close(&self) -> bool {
        let mut lock = HANDED_OUT.lock();
        let consumers = self.consumers.as_mut(&mut lock);
        consumers.closing -= 1;
        consumers.open -= 1;
        let gone = consumers.open == 0;
        if gone {
            self.unlist(&mut lock);
        }
        gone
    }

    /// Adds a guard to the list.
    fn list(this: NonNull<Self>, lock: &mut GlobalGuard<HANDED_OUT>) {
        // SAFETY: The guard was just made, and nobody else has it.
        let guard = unsafe { this.as_ref() };
        let next = lock.first;
        guard.consumers.as_mut(lock).next = next;
        lock.first = Some(this);
    }

    /// Takes the guard from the list.
    fn unlist(&self, lock: &mut GlobalGuard<HANDED_OUT>) {
        let next = self.consumers.as_ref(lock).next;
        let mut before: Option<NonNull<Self>> = None;
        let mut here = lock.first;
        while let Some(guard) = here {
            if ptr::eq(guard.as_ptr(), self) {
                match before {
                    // SAFETY: A guard of the list is there while the lock is held.
                    Some(before) => unsafe { before.as_ref() }.consumers.as_mut(lock).next = next,
                    None => lock.first = next,
                }
                return;
            }
            before = here;
            // SAFETY: A guard of the list is there while the lock is held.
            here = unsafe { guard.as_ref() }.consumers.as_ref(lock).next;
        }
    }

    /// The consumer has not closed it, after all. `true` if the guard is to go.
    ///
    /// # Safety
    ///
    /// `this` is the guard of `fid`, an open fabric.
    unsafe fn undo_close(this: *mut Self, fid: *mut kfid) -> bool {
        let mut lock = HANDED_OUT.lock();
        // SAFETY: By the requirements of this function; the guard has the caller for a consumer.
        let (guard, found) = unsafe { (&*this, Self::find(fid)) };
        let consumers = guard.consumers.as_mut(&mut lock);
        consumers.closing -= 1;
        match found {
            None => {
                // SAFETY: `fid` is an open fabric by the requirements of this function. Nobody has
                // opened it meanwhile, or it would have a guard.
                unsafe { (*fid).ops = this.cast() };
                false
            }
            Some(found) if found.as_ptr() == this => false,
            Some(newer) => {
                // Somebody has opened it meanwhile.
                consumers.open -= 1;
                let gone = consumers.open == 0;
                // SAFETY: A guard that a fid points to is there while the lock is held.
                unsafe { newer.as_ref() }.add(&mut lock);
                if gone {
                    guard.unlist(&mut lock);
                }
                gone
            }
        }
    }
}

/// Returns whether this is an open fabric that was opened from this provider. The pointer may be anything: it
/// is only compared. May sleep.
pub(crate) fn is_of(fabric: *const kfid_fabric, provider: &ProviderRef) -> bool {
    let lock = HANDED_OUT.lock();
    let mut here = lock.first;
    while let Some(guard) = here {
        // SAFETY: A guard of the list is there while the lock is held.
        let guard = unsafe { guard.as_ref() };
        let consumers = guard.consumers.as_ref(&lock);
        if ptr::addr_eq(guard.fabric, fabric) && consumers.closing < consumers.open {
            return guard.provider.is(provider);
        }
        here = consumers.next;
    }
    false
}
