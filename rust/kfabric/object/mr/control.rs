// SPDX-License-Identifier: GPL-2.0

//! `kfi_control()` on a region.

use super::{
    enable,
    mr_ext::MrExt,
    pending,
    ranges,
    rawkey::RawAttr,
    reference::MrRef,
    MrObject, //
};
use crate::{
    region::{
        request::MrRequest,
        segment_list::SegmentList, //
    },
    support::{
        errno::Errno,
        num::widen_u32,
        refusal::Refusal,
        task::NoIo, //
    }, //
};
use core::{
    ptr::NonNull,
    slice, //
};
use kernel::ffi::{
    c_int,
    c_void, //
};
use kfi_bindings::{
    kfi_iov_type_KFI_KVEC as KVEC,
    kfi_mr_modify,
    kfid,
    KFI_ENABLE,
    KFI_GET_RAW_MR,
    KFI_MORE,
    KFI_REFRESH, //
};

/// More requests follow on the endpoint.
const MORE: u64 = widen_u32(KFI_MORE);

/// Implements `kfi_mr_enable()`. Returns 0, or the number of an error that has been reported. May
/// sleep as the provider's [`MrOps::enable`](crate::provider::MrOps::enable) does. It doesn't if an event
/// queue reports that the region is enabled.
///
/// # Safety
///
/// `fid` is null or an open object, and `flags` null or valid.
unsafe fn enable(fid: *mut kfid, flags: *const u64) -> Result<c_int, Refusal> {
    // SAFETY: `fid` is null or an open object, as the caller promises.
    let object = unsafe { MrObject::from_fid(fid) }?;
    // SAFETY: C has a reference to what is open, and keeps it meanwhile.
    let object = unsafe { MrRef::another(NonNull::from(object)) };
    // SAFETY: `flags` is null or valid, as the caller promises.
    let flags = unsafe { flags.as_ref() }.copied().unwrap_or(0);
    if flags & !MORE != 0 {
        return Err(Refusal::new(Errno::EBADFLAGS, c"flag not supported").value(flags));
    }
    let told = object
        .inner
        .with(|inner| inner.begin().map(|()| inner.told))?;
    match told {
        true => {
            pending::leave(object);
            Ok(0)
        }
        false => Ok(enable::finish(object, flags & MORE != 0)),
    }
}

/// Implements the slot `control` of a region. May sleep, except to enable one.
///
/// # Safety
///
/// As the C API demands: `fid` is an open region, `arg` what the command says.
pub(super) unsafe extern "C" fn control(fid: *mut kfid, command: c_int, arg: *mut c_void) -> c_int {
    let _noio = NoIo::enter();
    // SAFETY: C calls this on an open object.
    let done = unsafe { MrObject::from_fid(fid) }.and_then(|mr| match u32::try_from(command) {
        // SAFETY: `fid` is an open region. `arg` is null or points to the flags of the command.
        Ok(KFI_ENABLE) => unsafe { enable(fid, arg.cast()) },
        // SAFETY: As the C API demands, the argument is null or valid.
        Ok(KFI_REFRESH) => match unsafe { arg.cast::<kfi_mr_modify>().as_ref() } {
            // SAFETY: As the C API demands, its list is null or valid.
            Some(modify) => unsafe { refresh(mr, modify) }.map(|()| 0),
            None => Err(Refusal::new(Errno::EINVAL, c"command without its argument")),
        },
        // SAFETY: As the C API demands, `arg` is null or valid, and so are the pointers in it.
        Ok(KFI_GET_RAW_MR) => unsafe { raw_attr(mr, arg) }.map(|()| 0),
        _ => Err(Refusal::new(
            Errno::ENOSYS,
            c"no such command on a memory region",
        )),
    });
    done.unwrap_or_else(Refusal::report)
}

/// Implements `kfi_mr_refresh()`: refreshes all of the region, whichever parts were named.
///
/// # Safety
///
/// As the C API demands: the list of `modify` is null or has `iov_count` entries.
unsafe fn refresh(mr: &MrObject, modify: &kfi_mr_modify) -> Result<(), Refusal> {
    let limits = &mr.parent().mr_limits;
    limits.refresh?;
    let mut held = mr.hold_enabled()?;
    let one = ranges::one(&mr.local);
    let ranges = match (&one, held.list.as_slice()) {
        (Some(one), _) => slice::from_ref(one),
        (None, []) => {
            return Err(Refusal::new(
                Errno::ENOSYS,
                c"only regions of kvecs can be refreshed",
            ))
        }
        (None, list) => list,
    };
    if modify.flags != 0 {
        return Err(Refusal::new(Errno::EBADFLAGS, c"flag not supported").value(modify.flags));
    }
    let attr = &modify.attr;
    if attr.type_ != KVEC {
        let refusal = Refusal::new(Errno::EINVAL, c"parts are not named by kvecs");
        return Err(refusal.value(u64::from(attr.type_)));
    }
    // SAFETY: The type says which member is set, and all have the same size.
    let parts = unsafe { attr.__bindgen_anon_1.mr_iov };
    if !(parts.is_null() && attr.iov_count == 0) {
        // SAFETY: The list is null or has `iov_count` entries, as the caller promises.
        let parts = unsafe { SegmentList::from_raw(parts, attr.iov_count) }?;
        ranges::contain(ranges, &parts)?;
    }
    let request = MrRequest::again(ranges, mr.local.access, limits)?;
    held.mr
        .as_mut()
        .ok_or(Errno::EOPBADSTATE)?
        .refresh(&request)?;
    let lease = request.take_lease();
    let old = mr.inner.with(|inner| MrExt::lease(&mut inner.rare, lease));
    // The provider's use of the old pages ends with the old lease.
    drop(old);
    Ok(())
}

/// Implements `kfi_mr_raw_attr()`.
///
/// # Safety
///
/// As the C API demands: `arg` is null or what the command says.
unsafe fn raw_attr(mr: &MrObject, arg: *mut c_void) -> Result<(), Refusal> {
    // SAFETY: `arg` is null or a `struct kfi_mr_raw_attr` whose pointers are null or valid, as the
    // caller promises.
    let attr = unsafe { RawAttr::from_raw(arg) }?;
    let held = mr.hold_enabled()?;
    attr.put(&held.mr.as_ref().ok_or(Errno::EOPBADSTATE)?.pieces()?)
}
