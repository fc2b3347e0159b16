// SPDX-License-Identifier: GPL-2.0

//! The guard that pins the provider of an open fabric.
//!
//! Lock order: `HANDED_OUT` is a leaf; no provider is called under it.

mod open;

use crate::api::registry::ProviderRef;
use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    ffi::{
        c_char,
        c_int,
        c_void, //
    },
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
    unsafe(uninit) static HANDED_OUT: Mutex<()> = ();
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

/// Stands between its consumers and an open fabric, whichever language its provider is written in.
///
/// The fabric's fid points to `ops` instead of the provider's table. So the code that runs last
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
    ops: kfi_ops,
    inner: *mut kfi_ops,
    provider: ProviderRef,
    consumers: GlobalLockedBy<Consumers, HANDED_OUT>,
}

/// How often a fabric is open.
struct Consumers {
    open: usize,
    /// How many of them are in a call that closes it.
    closing: usize,
}

impl Guard {
    /// A guard of a fabric with this table, for one consumer.
    fn new(inner: *mut kfi_ops, provider: ProviderRef) -> Self {
        // INVARIANT: The caller passes what the provider gave, and puts the guard there.
        Self {
            ops: kfi_ops {
                size: size_of::<kfi_ops>(),
                close: Some(guard_close),
                bind: Some(guard_bind),
                control: Some(guard_control),
                ops_open: Some(guard_ops_open),
            },
            inner,
            provider,
            consumers: GlobalLockedBy::new(Consumers {
                open: 1,
                closing: 0,
            }),
        }
    }

    /// The guard of a fabric, if it has one. Called with `HANDED_OUT` locked, or for an open fabric
    /// that `kfi_fabric()` gave out.
    ///
    /// # Safety
    ///
    /// `fid` is an open fabric, and has a table.
    unsafe fn find(fid: *const kfid) -> Option<NonNull<Self>> {
        type Close = unsafe extern "C" fn(*mut kfid) -> c_int;
        // SAFETY: By the requirements of this function.
        let (ops, close) = unsafe { ((*fid).ops, (*(*fid).ops).close) };
        // The table with this function is the first field of a guard.
        NonNull::new(ops.cast())
            .filter(|_| close.is_some_and(|close| ptr::fn_addr_eq(close, guard_close as Close)))
    }

    /// The guard of an open fabric that `kfi_fabric()` gave out.
    ///
    /// # Safety
    ///
    /// `fid` is such a fabric.
    unsafe fn of(fid: *mut kfid) -> *mut Self {
        // SAFETY: `ops` is the first field of the guard that `kfi_fabric()` put there.
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

    /// The consumer has closed it. `true` if the guard is to go.
    fn end_close(&self) -> bool {
        let mut lock = HANDED_OUT.lock();
        let consumers = self.consumers.as_mut(&mut lock);
        consumers.closing -= 1;
        consumers.open -= 1;
        consumers.open == 0
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
                // SAFETY: As above. Nobody has opened it meanwhile, or it would have a guard.
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
                gone
            }
        }
    }
}

/// Was this fabric opened from this provider?
///
/// # Safety
///
/// `fabric` is an open fabric.
pub(crate) unsafe fn is_of(fabric: *const kfid_fabric, provider: &ProviderRef) -> bool {
    // SAFETY: By the requirements of this function; the fid is the first field.
    let guard = unsafe { Guard::find(fabric.cast()) };
    // SAFETY: The guard is there while the fabric is open.
    guard.is_some_and(|guard| unsafe { guard.as_ref() }.provider.is(provider))
}

/// Forwards a slot of a fabric's fid to the provider's table.
macro_rules! forward {
    ($guard:expr, $slot:ident($($arg:expr),*)) => {{
        // SAFETY: The guard is valid, and so is the provider's table, while the fabric is open.
        // The arguments are passed on as they came.
        unsafe {
            match (*(*$guard).inner).$slot {
                Some(op) => op($($arg),*),
                None => crate::support::table::NO_SUCH_CALL.report(),
            }
        }
    }};
}

/// The `close` slot of a fabric. May sleep.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn guard_close(fid: *mut kfid) -> c_int {
    // SAFETY: C calls this on an open fabric.
    let guard = unsafe { Guard::of(fid) };
    // SAFETY: As above; the guard has this consumer, so it is there until it goes below.
    unsafe { (*guard).begin_close(fid) };
    let ret = forward!(guard, close(fid));
    // SAFETY: As above. Closed, the fabric may not even be memory any more; otherwise it is open.
    let gone = unsafe {
        match ret {
            0 => (*guard).end_close(),
            _ => Guard::undo_close(guard, fid),
        }
    };
    if gone {
        // Nothing of the provider runs any more on behalf of this fabric.
        // SAFETY: `kfi_fabric()` made the guard as a box, and no fid points to it any more.
        drop(unsafe { KBox::from_raw(guard) });
    }
    ret
}

/// The `bind` slot of a fabric. May sleep, if the provider does.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn guard_bind(fid: *mut kfid, other: *mut kfid, flags: u64) -> c_int {
    // SAFETY: C calls this on an open fabric.
    let guard = unsafe { Guard::of(fid) };
    forward!(guard, bind(fid, other, flags))
}

/// The `control` slot of a fabric. May sleep, if the provider does.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn guard_control(fid: *mut kfid, command: c_int, arg: *mut c_void) -> c_int {
    // SAFETY: C calls this on an open fabric.
    let guard = unsafe { Guard::of(fid) };
    forward!(guard, control(fid, command, arg))
}

/// The `ops_open` slot of a fabric. May sleep, if the provider does.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn guard_ops_open(
    fid: *mut kfid,
    name: *const c_char,
    flags: u64,
    ops: *mut *mut c_void,
    context: *mut c_void,
) -> c_int {
    // SAFETY: C calls this on an open fabric.
    let guard = unsafe { Guard::of(fid) };
    forward!(guard, ops_open(fid, name, flags, ops, context))
}
