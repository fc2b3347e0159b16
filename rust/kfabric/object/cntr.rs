// SPDX-License-Identifier: GPL-2.0

//! The counter as C has it.
//!
//! The core's own, on the domains of every provider written in Rust.
//!
//! C header: [`include/kfi_eq.h`](srctree/include/kfi_eq.h)

pub(crate) mod open;
mod ops;

use super::{
    domain::DomainObject,
    fid::{
        self,
        Class, //
    }, //
};
use crate::{
    provider::cntr::Counter,
    support::{
        errno::Errno,
        refusal::Refusal, //
    }, //
};
use core::ptr::NonNull;
use kernel::{
    ffi::c_int,
    prelude::*,
    sync::Arc,
    types::Opaque, //
};
use kfi_bindings::{
    kfid,
    kfid_cntr, //
};

/// The class of counters.
static CNTR: Class = Class::new(kfi_bindings::KFI_CLASS_CNTR);

/// A `struct kfid_cntr` and what the core keeps with it.
///
/// # Invariants
///
/// `c.fid` is what C points to; `domain` stays open, since it counts this counter as a child.
#[repr(C)]
pub(crate) struct CounterObject {
    // C may write to it: the context is the consumer's.
    c: Opaque<kfid_cntr>,
    counter: Arc<Counter>,
    can_wait: bool,
    domain: NonNull<DomainObject>,
}

impl CounterObject {
    /// What it counts with; whoever keeps it counts in vain once the object is closed.
    pub(crate) fn counter(&self) -> &Arc<Counter> {
        &self.counter
    }

    /// The domain that it was opened in.
    pub(crate) fn domain(&self) -> &DomainObject {
        // SAFETY: Open by the invariant.
        unsafe { self.domain.as_ref() }
    }
}

/// Closes a counter; `EBUSY` while somebody waits for it. Regions that it is bound to go on without
/// it. Any context.
///
/// # Safety
///
/// `fid` is an open counter of this core.
unsafe extern "C" fn close(fid: *mut kfid) -> c_int {
    let object = fid.cast::<CounterObject>();
    // SAFETY: `fid` is the first field of the object that `open` gave out.
    if let Err(errno) = unsafe { &(*object).counter }.close() {
        return Refusal::new(errno, c"somebody waits for the counter").report();
    }
    // SAFETY: As above; it is closed, so C does not use it any more.
    let object = unsafe { KBox::from_raw(object) };
    let domain = object.domain;
    drop(object);
    // SAFETY: By the invariant of the object, which counted as a child of the domain until here.
    unsafe { domain.as_ref() }.remove_child();
    0
}

/// The counter behind a fid.
///
/// # Safety
///
/// `fid` is null or an open object; the reference is not used after it was closed.
pub(crate) unsafe fn object<'a>(fid: *mut kfid) -> Result<&'a CounterObject, Refusal> {
    // SAFETY: By the requirements of this function.
    match unsafe { fid::is_of(fid, &CNTR) } {
        // SAFETY: The table tells that this is the first field of one of our objects.
        true => Ok(unsafe { &*fid.cast::<CounterObject>() }),
        false => Err(Refusal::new(Errno::EINVAL, c"not a counter")),
    }
}
