// SPDX-License-Identifier: GPL-2.0

//! `kfi_query_atomic()`.

use super::DomainObject;
use crate::{
    post::atomic::Form,
    region::atomic::WORD,
    support::{
        errno::Errno,
        refusal::Refusal,
        table::NO_SUCH_CALL, //
    }, //
};
use kernel::ffi::c_int;
use kfi_bindings::{
    kfi_atomic_attr,
    kfi_datatype,
    kfi_op,
    kfid_domain,
    KFI_COMPARE_ATOMIC,
    KFI_FETCH_ATOMIC, //
};

/// The `query_atomic` slot of a domain. Any context.
///
/// # Safety
///
/// As the C API demands: `domain` is open, and of this core; `attr` is null or valid.
pub(super) unsafe extern "C" fn query(
    domain: *mut kfid_domain,
    datatype: kfi_datatype,
    op: kfi_op,
    attr: *mut kfi_atomic_attr,
    flags: u64,
) -> c_int {
    // SAFETY: By the requirements of this function; a domain begins with its fid.
    let domain = unsafe { DomainObject::from_fid(domain.cast()) };
    let found = domain.and_then(|domain| {
        let form = match flags {
            0 => Form::Plain,
            KFI_FETCH_ATOMIC => Form::Fetch,
            KFI_COMPARE_ATOMIC => Form::Compare,
            _ => return Err(Refusal::new(Errno::EBADFLAGS, c"unknown flag").value(flags)),
        };
        let limits = domain.provider().msg_limits().ok_or(NO_SUCH_CALL)?;
        limits.atomics.find(form, datatype, op)?;
        // SAFETY: By the requirements of this function.
        let attr = unsafe { attr.as_mut() }.ok_or(Refusal::NULL)?;
        (attr.count, attr.size) = (1, WORD);
        Ok(())
    });
    found.map_or_else(Refusal::report, |()| 0)
}
