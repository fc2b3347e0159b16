// SPDX-License-Identifier: GPL-2.0

//! Requests for connections that nobody has answered yet.
//!
//! C has them by a handle, which is a number in the guise of a pointer: it leads nowhere, and is looked
//! up here. So one that was answered, or whose passive endpoint is gone, is recognized.
//!
//! Lock order: the lock is a leaf; requests are dropped outside of it.

use crate::{
    provider::cm::ConnRequest,
    support::{
        errno::Errno,
        num::widen,
        refusal::Refusal, //
    }, //
};
use core::{
    mem,
    ptr, //
};
use kernel::prelude::*;
use kfi_bindings::kfid;

kernel::sync::global_lock! {
    // SAFETY: Initialized by `init`, which the module calls first.
    unsafe(uninit) static WAITING: Mutex<Waiting> = Waiting::NONE;
}

/// All requests that wait.
struct Waiting {
    all: KVVec<One>,
    /// The handle of the last one.
    last: usize,
}

impl Waiting {
    const NONE: Self = Self {
        all: KVVec::new(),
        last: 0,
    };
}

/// A request that waits.
struct One {
    handle: usize,
    /// The passive endpoint that it came to, by its address.
    pep: usize,
    request: KBox<dyn ConnRequest>,
}

/// Initializes the list.
///
/// # Safety
///
/// Called once, before anything else of this file.
pub(crate) unsafe fn init() {
    // SAFETY: By the requirements of this function.
    unsafe { WAITING.init() };
}

/// Frees the list. To be called last; a static is never dropped.
pub(crate) fn exit() {
    let waiting = mem::replace(&mut *WAITING.lock(), Waiting::NONE);
    drop(waiting);
}

/// Puts in a request that came to a passive endpoint, of which `most` may wait, and returns its handle.
/// Gives the request back if there are too many, or no memory. May sleep.
pub(super) fn add(
    pep: *mut kfid,
    most: u32,
    request: KBox<dyn ConnRequest>,
) -> Result<*mut kfid, KBox<dyn ConnRequest>> {
    let pep = pep.addr();
    let mut waiting = WAITING.lock();
    let here = waiting.all.iter().filter(|one| one.pep == pep).count();
    if widen(here) >= u64::from(most) || waiting.all.reserve(1, GFP_KERNEL).is_err() {
        return Err(request);
    }
    // Odd, as no object's address is.
    waiting.last = waiting.last.wrapping_add(2) | 1;
    let handle = waiting.last;
    let one = One {
        handle,
        pep,
        request,
    };
    match waiting.all.push_within_capacity(one) {
        Ok(()) => Ok(ptr::without_provenance_mut(handle)),
        Err(full) => Err(full.0.request),
    }
}

fn take_if(is: impl Fn(&One) -> bool) -> Option<KBox<dyn ConnRequest>> {
    let mut waiting = WAITING.lock();
    let index = waiting.all.iter().position(is)?;
    let one = waiting.all.remove(index).ok()?;
    Some(one.request)
}

const UNKNOWN: Refusal = Refusal::new(Errno::EINVAL, c"no connection request that waits");

/// Takes out the request of an info's handle; `None` of none. May sleep.
///
/// # Errors
///
/// - `EINVAL`: it is no handle, or was answered.
pub(crate) fn take(handle: *mut kfid) -> Result<Option<KBox<dyn ConnRequest>>, Refusal> {
    let handle = handle.addr();
    if handle == 0 {
        return Ok(None);
    }
    let request = take_if(|one| one.handle == handle).ok_or(UNKNOWN)?;
    Ok(Some(request))
}

/// Takes out a request that came to a passive endpoint. May sleep.
///
/// # Errors
///
/// - `EINVAL`: it is none of this endpoint's, or was answered.
pub(super) fn take_of(pep: *mut kfid, handle: *mut kfid) -> Result<KBox<dyn ConnRequest>, Refusal> {
    let (pep, handle) = (pep.addr(), handle.addr());
    take_if(|one| one.handle == handle && one.pep == pep).ok_or(UNKNOWN)
}

/// Drops all requests that came to a passive endpoint. Sleeps.
pub(super) fn drop_all(pep: *mut kfid) {
    let pep = pep.addr();
    while let Some(request) = take_if(|one| one.pep == pep) {
        drop(request);
    }
}

/// Drops one that its consumer was not told of. Sleeps.
pub(crate) fn forget(handle: *mut kfid) -> Option<KBox<dyn ConnRequest>> {
    let handle = handle.addr();
    take_if(|one| one.handle == handle)
}
