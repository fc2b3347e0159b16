// SPDX-License-Identifier: GPL-2.0

//! `kfi_open_ops()` on a domain.

use crate::{
    dma,
    domain,
    errno::Errno,
    noio::NoIo,
    provider::Domain,
    raw,
    refusal::Refusal,
    reserve, //
};
use core::ptr;
use kernel::{
    ffi::{
        c_char,
        c_int,
        c_void, //
    },
    prelude::*,
    str::CStr, //
};
use kfi_bindings::kfid;

/// A table of functions in C's layout, which consumers know by a name.
///
/// # Safety
///
/// `Self` is laid out as those expect who open an extension of this name. Its functions may be called
/// as they are documented to them, by any thread, for as long as the domain is open.
pub unsafe trait ExtensionTable: Sync + 'static {
    /// The name.
    const NAME: &'static CStr;
}

/// An extension of a domain: a table with its name.
///
/// # Invariants
///
/// `table` is a table of that name, which is always there.
pub struct Extension {
    name: &'static CStr,
    table: *mut c_void,
}

// SAFETY: A table may be shared by all threads.
unsafe impl Send for Extension {}
// SAFETY: As above.
unsafe impl Sync for Extension {}

impl Extension {
    /// The extension that is this table.
    pub const fn new<T: ExtensionTable>(table: &'static T) -> Self {
        // INVARIANT: By the promise of the type, whose name this is.
        Self {
            name: T::NAME,
            table: ptr::from_ref(table).cast_mut().cast(),
        }
    }
}

/// The table of this name: one of the core's own, or else one of the provider's.
fn table(domain: &dyn Domain, name: &CStr) -> Option<*mut c_void> {
    // A consumer that opens one of these relies on the core's, be it there or not.
    if name == dma::NAME {
        return domain.dma().map(|_| dma::OPS.as_ptr().cast());
    }
    if name == raw::NAME {
        return Some(raw::OPS.as_ptr().cast());
    }
    if name == reserve::NAME {
        return Some(reserve::OPS.as_ptr().cast());
    }
    let named = domain.extensions().iter().find(|own| own.name == name);
    named.map(|own| own.table)
}

/// `kfi_open_ops` of a domain. May sleep.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
pub(crate) unsafe extern "C" fn open(
    fid: *mut kfid,
    name: *const c_char,
    flags: u64,
    ops: *mut *mut c_void,
    _context: *mut c_void,
) -> c_int {
    if ops.is_null() || name.is_null() {
        return Refusal::new(Errno::EINVAL, c"no name or no output pointer").report();
    }
    // SAFETY: Not null, so valid as the C API demands.
    let name = unsafe {
        *ops = ptr::null_mut();
        CStr::from_char_ptr(name)
    };
    if flags != 0 {
        return Refusal::new(Errno::EBADFLAGS, c"flag not supported")
            .value(flags)
            .report();
    }
    let _noio = NoIo::enter();
    // SAFETY: C calls this on an open object.
    let domain = match unsafe { domain::object(fid) } {
        Ok(domain) => domain.provider(),
        Err(refusal) => return refusal.report(),
    };
    match table(domain, name) {
        Some(table) => {
            // SAFETY: As above.
            unsafe { *ops = table };
            0
        }
        None => Refusal::new(Errno::ENOSYS, c"no extension of that name").report(),
    }
}
