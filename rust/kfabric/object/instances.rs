// SPDX-License-Identifier: GPL-2.0

//! The open fabrics and domains, in the order in which they were opened. Offers name them.
//!
//! Lock order: the lock is a leaf.

use super::prelude::*;

kernel::sync::global_lock! {
    // SAFETY: Initialized by `init`, which the module calls first.
    unsafe(uninit) static INSTANCES: Mutex<KVVec<Entry>> = KVVec::new();
}

/// An object in the list.
///
/// # Invariants
///
/// If it is `shown`, `fid` is an open object of the core's.
struct Entry {
    fid: *mut kfid,
    shown: bool,
}

// SAFETY: The object may be used by any thread.
unsafe impl Send for Entry {}

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
pub(crate) struct Instance(*mut kfid);

// SAFETY: The pointer is only compared.
unsafe impl Send for Instance {}
// SAFETY: The pointer is only compared.
unsafe impl Sync for Instance {}

impl Instance {
    /// Adds an entry for an object that is going to be at `fid`. [`show`] lets others find it. May sleep.
    pub(crate) fn new(fid: *mut kfid) -> Result<Self, AllocError> {
        // INVARIANT: It isn't shown.
        let entry = Entry { fid, shown: false };
        INSTANCES.lock().push(entry, GFP_KERNEL)?;
        Ok(Self(fid))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        INSTANCES.lock().retain(|entry| !ptr::eq(entry.fid, self.0));
    }
}

/// Lets others find an object. Does nothing for one that has no entry. May sleep.
///
/// # Safety
///
/// `fid` is an open object.
pub(crate) unsafe fn show(fid: *mut kfid) {
    for entry in INSTANCES.lock().iter_mut() {
        // INVARIANT: The object is open, as the caller promises, and its entry goes first.
        entry.shown |= ptr::eq(entry.fid, fid);
    }
}

/// Calls `f` with the open object of this kind at an address, and returns the result of `f`; `None` if there
/// is no object. The address may be anything: it is only compared. `f` runs under the lock, so nobody frees the
/// object before `f` returns, and `kfi_close()` waits instead of failing. May sleep; `f` takes no lock.
pub(crate) fn with<T: Object, R>(at: *const T::C, f: impl FnOnce(&Obj<T>) -> R) -> Option<R> {
    let all = INSTANCES.lock();
    let entry = all
        .iter()
        .find(|entry| entry.shown && ptr::addr_eq(entry.fid, at))?;
    // SAFETY: `fid` is an open object by the invariant of `Entry`. It stays while the lock is held.
    let object = unsafe { Obj::<T>::from_fid(entry.fid) }.ok()?;
    Some(f(object))
}

/// Returns the first object of this kind for which `is` holds, or null. The object may be closed at any
/// time. May sleep.
pub(crate) fn first<T: Object>(is: impl Fn(&Obj<T>) -> bool) -> *mut T::C {
    let all = INSTANCES.lock();
    let mut shown = all.iter().filter(|entry| entry.shown);
    let found = shown.find_map(|entry| {
        // SAFETY: `fid` is an open object by the invariant of `Entry`. It stays while the lock is held.
        unsafe { Obj::<T>::from_fid(entry.fid) }
            .ok()
            .filter(|object| is(object))
    });
    found.map_or(ptr::null_mut(), Obj::as_ptr)
}
