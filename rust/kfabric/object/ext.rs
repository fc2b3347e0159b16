// SPDX-License-Identifier: GPL-2.0

//! Extensions of a domain: `kfi_open_ops()`.

pub(crate) mod batch;
pub(crate) mod dma;
pub(crate) mod raw;
pub(crate) mod reserve;

use crate::{
    object::domain::DomainObject,
    prelude::*,
    provider::DomainOps, //
};

/// Returns the table with this name. The core's tables precede the provider's.
fn table(domain: &dyn DomainOps, name: &CStr) -> Option<*mut c_void> {
    // A provider must not replace a table of the core, even if the domain doesn't have it.
    if name == dma::NAME {
        return domain.dma().map(|_| dma::OPS.as_ptr().cast());
    }
    if name == batch::NAME {
        return Some(batch::OPS.as_ptr().cast());
    }
    if name == raw::NAME {
        return Some(raw::OPS.as_ptr().cast());
    }
    if name == reserve::NAME {
        return Some(reserve::OPS.as_ptr().cast());
    }
    domain.extensions().iter().find_map(|own| own.table(name))
}

/// Opens an extension: the `ops_open` slot of a domain. May sleep.
///
/// # Safety
///
/// - `fid` is an open object.
/// - `name` is null or a string.
/// - `ops` is null or valid for writes.
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
    // SAFETY: Neither is null, so `ops` is valid for writes and `name` is a string.
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
    // SAFETY: `fid` is an open object.
    let domain = match unsafe { DomainObject::from_fid(fid) } {
        Ok(domain) => domain.provider(),
        Err(refusal) => return refusal.report(),
    };
    match table(domain, name) {
        Some(table) => {
            // SAFETY: `ops` isn't null, so it is valid for writes.
            unsafe { *ops = table };
            0
        }
        None => Refusal::new(Errno::ENOSYS, c"no extension of that name").report(),
    }
}
