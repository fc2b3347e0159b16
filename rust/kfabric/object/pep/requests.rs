// SPDX-License-Identifier: GPL-2.0

//! Unanswered connection requests.
//!
//! A consumer gets a handle, which is a number in a pointer type. The core looks it up here, so it recognizes
//! handles of answered requests and of closed endpoints.
//!
//! Lock order: the lock is a leaf. Requests are dropped outside of it.

use crate::object::prelude::*;

kernel::sync::global_lock! {
    // SAFETY: The module calls `init` before any other function of this file.
    unsafe(uninit) static WAITING: Mutex<Waiting> = Waiting::NONE;
}

/// All unanswered requests.
struct Waiting {
    all: KVVec<PendingRequest>,
    /// The last handle.
    last: usize,
}

impl Waiting {
    const NONE: Self = Self {
        all: KVVec::new(),
        last: 0,
    };
}

/// An unanswered request.
struct PendingRequest {
    handle: usize,
    /// The address of the passive endpoint that received the request.
    pep: usize,
    request: ConnRequest,
}

/// Initializes the list.
///
/// # Safety
///
/// The caller calls this once, before any other function of this file.
pub(crate) unsafe fn init() {
    // SAFETY: This is the only call, before any lock of the list.
    unsafe { WAITING.init() };
}

/// Frees the list. The module calls this last, because a static is never dropped.
pub(crate) fn exit() {
    let waiting = mem::replace(&mut *WAITING.lock(), Waiting::NONE);
    drop(waiting);
}

/// Adds the request in `asked` to those of a passive endpoint, and returns its handle. Leaves it in `asked` if the
/// endpoint has `most` unanswered requests, or if there is no memory. May sleep.
pub(super) fn add(pep: *mut kfid, most: u32, asked: &mut Option<ConnRequest>) -> Option<*mut kfid> {
    let pep = pep.addr();
    let mut waiting = WAITING.lock();
    let here = waiting.all.iter().filter(|one| one.pep == pep).count();
    if widen(here) >= u64::from(most) || waiting.all.reserve(1, GFP_KERNEL).is_err() {
        return None;
    }
    // Handles are odd, and addresses of objects are even.
    waiting.last = waiting.last.wrapping_add(2) | 1;
    let handle = waiting.last;
    waiting.all.push_reserved(PendingRequest {
        handle,
        pep,
        request: asked.take()?,
    });
    Some(ptr::without_provenance_mut(handle))
}

fn take_if(is: impl Fn(&PendingRequest) -> bool) -> Option<ConnRequest> {
    let mut waiting = WAITING.lock();
    let index = waiting.all.iter().position(is)?;
    let one = waiting.all.remove(index).ok()?;
    Some(one.request)
}

const UNKNOWN: Refusal = Refusal::new(Errno::EINVAL, c"no connection request that waits");

/// Removes the request with this handle. Returns `None` for a null handle. May sleep.
///
/// # Errors
///
/// - `EINVAL`: no unanswered request has this handle.
pub(crate) fn take(handle: *mut kfid) -> Result<Option<ConnRequest>, Refusal> {
    let handle = handle.addr();
    if handle == 0 {
        return Ok(None);
    }
    let request = take_if(|one| one.handle == handle).ok_or(UNKNOWN)?;
    Ok(Some(request))
}

/// Removes a request of a passive endpoint. May sleep.
///
/// # Errors
///
/// - `EINVAL`: no unanswered request of the endpoint has this handle.
pub(super) fn take_of(pep: *mut kfid, handle: *mut kfid) -> Result<ConnRequest, Refusal> {
    let (pep, handle) = (pep.addr(), handle.addr());
    take_if(|one| one.handle == handle && one.pep == pep).ok_or(UNKNOWN)
}

/// Rejects all unanswered requests of a passive endpoint. Sleeps.
pub(super) fn drop_all(pep: *mut kfid) {
    let pep = pep.addr();
    while let Some(request) = take_if(|one| one.pep == pep) {
        drop(request);
    }
}

/// Removes a request whose event no consumer has read. May sleep.
pub(crate) fn forget(handle: *mut kfid) -> Option<ConnRequest> {
    let handle = handle.addr();
    take_if(|one| one.handle == handle)
}
