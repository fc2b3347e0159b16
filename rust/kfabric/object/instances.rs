// SPDX-License-Identifier: GPL-2.0

//! The open fabrics and domains, in the order in which they were opened. Offers and listings name them.
//!
//! Lock order: the lock is taken before those of lists of children. Tasks that free memory take it: an allocation
//! under the lock must not wait for I/O.

use super::prelude::*;
use crate::support::child_list::seconds;

kernel::sync::global_lock! {
    // SAFETY: Initialized by `init`, which the module calls first.
    unsafe(uninit) static INSTANCES: Mutex<KVVec<InstanceEntry>> = KVVec::new();
}

/// An object in the list.
///
/// # Invariants
///
/// If it is `shown`, `fid` is an open object of the core's.
pub(super) struct InstanceEntry {
    fid: *mut kfid,
    shown: bool,
    /// When it was opened, in seconds since the machine was started.
    since: u32,
    /// The module that opened it; empty if it was none.
    owner: ModuleName,
}

/// The name of a module, which ends with a NUL.
type ModuleName = [c_char; 56];

// SAFETY: The object may be used by any thread.
unsafe impl Send for InstanceEntry {}

/// Initializes the list.
///
/// # Safety
///
/// Called once, before anything else of this file.
pub(crate) unsafe fn init() {
    // SAFETY: The caller calls this once, and before anybody locks the list.
    unsafe { INSTANCES.init() };
}

/// Frees the list. To be called last; a static is never dropped.
pub(crate) fn exit() {
    let all = mem::take(&mut *INSTANCES.lock());
    drop(all);
}

/// The entry of an object. The object's body has it as its first field, so that the entry goes before the
/// rest of the object.
pub(crate) struct Instance {
    fid: *mut kfid,
    number: u64,
}

// SAFETY: The pointer is only compared.
unsafe impl Send for Instance {}
// SAFETY: The pointer is only compared.
unsafe impl Sync for Instance {}

/// The number of the last object.
static LAST: Atomic<u64> = Atomic::new(0);

impl Instance {
    /// Adds an entry for an object that is going to be at `fid`. [`show`] lets others find it. May sleep.
    pub(crate) fn new(fid: *mut kfid) -> Result<Self, AllocError> {
        // INVARIANT: It isn't shown.
        let entry = InstanceEntry {
            fid,
            shown: false,
            since: seconds(),
            owner: [0; _],
        };
        INSTANCES.lock().push(entry, GFP_KERNEL)?;
        let number = LAST.fetch_add(1, Relaxed).wrapping_add(1);
        Ok(Self { fid, number })
    }

    /// Returns the number of the object, which is not used again.
    pub(super) fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        INSTANCES
            .lock()
            .retain(|entry| !ptr::eq(entry.fid, self.fid));
    }
}

/// Lets others find an object, whose owner is the module that has called the core. Does nothing for one that has no
/// entry. May sleep.
///
/// # Safety
///
/// `fid` is an open object.
pub(crate) unsafe fn show(fid: *mut kfid) {
    let mut owner: ModuleName = [0; _];
    // SAFETY: `owner` is valid for writes of its length.
    unsafe { c::kfi_helper_calling_module(owner.as_mut_ptr(), owner.len()) };
    for entry in INSTANCES.lock().iter_mut() {
        if ptr::eq(entry.fid, fid) && !entry.shown {
            // INVARIANT: The object is open, as the caller promises, and its entry goes first.
            entry.shown = true;
            entry.owner = owner;
        }
    }
}

impl InstanceEntry {
    /// Returns the object, if it is of this kind.
    pub(super) fn object<T: Object>(&self) -> Option<&Obj<T>> {
        // SAFETY: `fid` is an open object by the invariant: `each` passes on what is shown. It stays while the caller of
        // `each` has `self`, since the list is locked until then.
        unsafe { Obj::from_fid(self.fid) }.ok()
    }

    /// Returns the module that opened it, if it was one.
    pub(super) fn owner(&self) -> Option<&CStr> {
        // SAFETY: The name ends with a NUL.
        let owner = unsafe { CStr::from_char_ptr(self.owner.as_ptr()) };
        (!owner.is_empty()).then_some(owner)
    }

    /// Returns how many seconds it has been open.
    pub(super) fn age(&self) -> u32 {
        seconds().saturating_sub(self.since)
    }
}

/// Calls `each` with each open object. `each` runs under the lock. May sleep.
pub(super) fn each(each: impl FnMut(&InstanceEntry)) {
    let all = INSTANCES.lock();
    all.iter().filter(|entry| entry.shown).for_each(each);
}

/// Calls `f` with the open object of this kind at an address, and returns the result of `f`; `None` if there
/// is no object. The address may be anything: it is only compared. `f` runs under the lock, so nobody frees the
/// object before `f` returns, and `kfi_close()` waits instead of failing. May sleep; `f` takes no lock.
pub(crate) fn with<T: Object, R>(at: *const T::C, f: impl FnOnce(&Obj<T>) -> R) -> Option<R> {
    let all = INSTANCES.lock();
    let entry = all
        .iter()
        .find(|entry| entry.shown && ptr::addr_eq(entry.fid, at))?;
    // SAFETY: `fid` is an open object by the invariant of `InstanceEntry`. It stays while the lock is held.
    let object = unsafe { Obj::<T>::from_fid(entry.fid) }.ok()?;
    Some(f(object))
}

/// Returns the first object of this kind for which `is` holds, or null. The object may be closed at any
/// time. May sleep.
pub(crate) fn first<T: Object>(is: impl Fn(&Obj<T>) -> bool) -> *mut T::C {
    let all = INSTANCES.lock();
    let mut shown = all.iter().filter(|entry| entry.shown);
    let found = shown.find_map(|entry| {
        // SAFETY: `fid` is an open object by the invariant of `InstanceEntry`. It stays while the lock is held.
        unsafe { Obj::<T>::from_fid(entry.fid) }
            .ok()
            .filter(|object| is(object))
    });
    found.map_or(ptr::null_mut(), Obj::as_ptr)
}
