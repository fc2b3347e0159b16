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
    },
    support::hlist::{
        Head,
        Node, //
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
    //
    // Lists the guards whose fabrics a consumer has, or is closing. None of them is freed while the lock is held.
    unsafe(uninit) static HANDED_OUT: Mutex<Head> = Head::new();
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
    node: Node,
}

/// How often a fabric is open.
struct Consumers {
    open: usize,
    /// How many of them are in a call that closes it.
    closing: usize,
}

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
            // SAFETY: The guard is in the list until its last consumer has closed the fabric. The lock is held.
            unsafe { self.node.unlink() };
        }
        gone
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
                    // SAFETY: The guard is in the list until its last consumer has left it. The lock is held.
                    unsafe { guard.node.unlink() };
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
    // SAFETY: The lock is held.
    let mut here = unsafe { lock.first() };
    while let Some(node) = here {
        // SAFETY: The node is that of a guard, which is there while the lock is held.
        let (guard, next) = unsafe {
            let guard = &*kernel::container_of!(node.as_ptr(), Guard, node);
            (guard, guard.node.next())
        };
        let consumers = guard.consumers.as_ref(&lock);
        if ptr::addr_eq(guard.fabric, fabric) && consumers.closing < consumers.open {
            return guard.provider.is(provider);
        }
        here = next;
    }
    false
}
