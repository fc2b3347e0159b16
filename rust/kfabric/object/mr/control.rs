// SPDX-License-Identifier: GPL-2.0

//! `kfi_control()` on a region.
//!
//! C header: [`include/kfi_domain.h`](srctree/include/kfi_domain.h)
//!
//! A region of one segment can be refreshed by its start and length ([`DescEntry`]). Only a region of several segments
//! keeps their addresses.

use super::{
    enable::{
        enable_later,
        finish, //
    },
    prelude::*, //
};
use crate::{
    object::descs::DescEntry,
    region::shape::AddrRange, //
};
use core::ptr::without_provenance_mut;

/// More requests follow on the endpoint.
const MORE: u64 = widen_u32(c::KFI_MORE);

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
    // SAFETY: C has a reference to the open region, and keeps it for the call.
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
            enable_later(object);
            Ok(0)
        }
        false => Ok(finish(object, flags & MORE != 0)),
    }
}

/// Implements the slot `control` of a region. May sleep, except to enable one.
///
/// # Safety
///
/// As the C API demands: `fid` must be an open region, and `arg` the argument of the command.
pub(super) unsafe extern "C" fn control(fid: *mut kfid, command: c_int, arg: *mut c_void) -> c_int {
    let _noio = NoIo::enter();
    // SAFETY: C calls this on an open object.
    let done = unsafe { MrObject::from_fid(fid) }.and_then(|mr| match u32::try_from(command) {
        // SAFETY: `fid` is an open region. `arg` is null or points to the flags of the command.
        Ok(c::KFI_ENABLE) => unsafe { enable(fid, arg.cast()) },
        // SAFETY: As the C API demands, the argument is null or valid.
        Ok(c::KFI_REFRESH) => match unsafe { arg.cast::<c::kfi_mr_modify>().as_ref() } {
            // SAFETY: As the C API demands, its list is null or valid.
            Some(modify) => unsafe { refresh(mr, modify) }.map(|()| 0),
            None => Err(Refusal::new(Errno::EINVAL, c"command without its argument")),
        },
        // SAFETY: As the C API demands, `arg` is null or valid, and so are the pointers in it.
        Ok(c::KFI_GET_RAW_MR) => unsafe { raw_attr(mr, arg) }.map(|()| 0),
        _ => Err(Refusal::new(
            Errno::ENOSYS,
            c"no such command on a memory region",
        )),
    });
    // SAFETY: `fid` is open for the call.
    unsafe { MrObject::answer(fid, c"control", done) }
}

/// Implements `kfi_mr_refresh()`: refreshes all of the region, whichever parts were named.
///
/// # Safety
///
/// As the C API demands: the list of `modify` is null or has `iov_count` entries.
unsafe fn refresh(mr: &MrObject, modify: &c::kfi_mr_modify) -> Result<(), Refusal> {
    let limits = &mr.parent().mr_limits;
    limits.refresh?;
    let mut held = mr.hold_enabled()?;
    let one = range(&mr.local);
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
    if attr.type_ != c::kfi_iov_type_KFI_KVEC {
        let refusal = Refusal::new(Errno::EINVAL, c"parts are not named by kvecs");
        return Err(refusal.value(u64::from(attr.type_)));
    }
    // SAFETY: The type says which member is set, and all have the same size.
    let parts = unsafe { attr.__bindgen_anon_1.mr_iov };
    if !(parts.is_null() && attr.iov_count == 0) {
        // SAFETY: The list is null or has `iov_count` entries, as the caller promises.
        let parts = unsafe { SegmentList::from_raw(parts, attr.iov_count) }?;
        check_within(ranges, &parts)?;
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

/// Implements `kfi_mr_raw_attr()`: writes the raw key of a region, and the base address of its
/// first piece. Sleeps.
///
/// # Safety
///
/// `arg` must be null or a `struct kfi_mr_raw_attr`. The pointers in the structure must be null or
/// valid for the call.
unsafe fn raw_attr(mr: &MrObject, arg: *mut c_void) -> Result<(), Refusal> {
    // SAFETY: `arg` is null or a `struct kfi_mr_raw_attr`.
    let attr = unsafe { arg.cast::<c::kfi_mr_raw_attr>().as_ref() }.ok_or(Refusal::NULL)?;
    no_flags(attr.flags)?;
    // SAFETY: The pointers in `attr` are null or valid for the call.
    let (size, base_addr) = unsafe { (attr.key_size.as_mut(), attr.base_addr.as_mut()) };
    let (size, base_addr) = (size.ok_or(Refusal::NULL)?, base_addr.ok_or(Refusal::NULL)?);
    let room = *size;
    if room != 0 && attr.raw_key.is_null() {
        return Err(Refusal::NULL);
    }
    let held = mr.hold_enabled()?;
    let pieces = held.mr.as_ref().ok_or(Errno::EOPBADSTATE)?.pieces()?;
    *size = rawkey::raw_key_size(pieces.len());
    if room < *size {
        let refusal = Refusal::new(Errno::ETOOSMALL, c"raw key is longer");
        return Err(refusal.value(widen(*size)));
    }
    let raw = rawkey::encode(&pieces)?;
    *base_addr = pieces.first().map_or(0, |first| first.base);
    // SAFETY: `room` is at least the length of `raw`, which is not 0. So `raw_key` isn't null, and
    // is valid for `room` bytes.
    unsafe {
        attr.raw_key
            .copy_from_nonoverlapping(raw.as_ptr(), raw.len())
    };
    Ok(())
}

/// Returns the range of a region of one segment.
fn range(local: &DescEntry) -> Option<kvec> {
    Some(kvec {
        iov_base: without_provenance_mut(usize::try_from(local.start()?).ok()?),
        iov_len: usize::try_from(local.len).ok()?,
    })
}

/// Checks that each part lies within one of the ranges.
fn check_within(ranges: &[kvec], parts: &SegmentList<'_, kvec>) -> Result<(), Refusal> {
    for (index, part) in parts.entries(usize::MAX).iter().enumerate() {
        let part = span(part).map_err(|e| e.at(index))?;
        let holds = |range: &kvec| {
            span(range)
                .is_ok_and(|range| range.start() <= part.start() && part.end() <= range.end())
        };
        if !ranges.iter().any(holds) {
            let refusal = Refusal::new(Errno::EINVAL, c"not within what was registered");
            return Err(refusal.at(index).value(part.start()));
        }
    }
    Ok(())
}

fn span(kvec: &kvec) -> Result<AddrRange, Refusal> {
    AddrRange::new(widen(kvec.iov_base.addr()), widen(kvec.iov_len))
}

#[kernel::macros::kunit_tests(kfabric_mr_ranges)]
mod tests {
    use super::*;
    use crate::region::{
        access::Access,
        segment_list::Source, //
    };

    fn at(base: usize, len: usize) -> kvec {
        kvec {
            iov_base: without_provenance_mut(base),
            iov_len: len,
        }
    }

    fn contained(ranges: &[kvec], part: kvec) -> bool {
        match &Source::kvecs(slice::from_ref(&part)) {
            Source::Kvec(list) => check_within(ranges, list).is_ok(),
            _ => false,
        }
    }

    #[test]
    fn parts_lie_within_one_range() {
        let list = [at(0x1000, 0x100), at(0x5000, 0x2000)];
        for good in [at(0x1000, 0x100), at(0x10ff, 1), at(0x5001, 0x1fff)] {
            assert!(contained(&list, good));
        }
        for bad in [
            at(0xfff, 2),
            at(0x10ff, 2),
            at(0x4fff, 1),
            at(0x5000, 0x2001),
            at(0x1000, 0),
            at(usize::MAX, 2),
        ] {
            assert!(!contained(&list, bad));
        }
        assert!(!contained(&[], at(0x1000, 1)));
    }

    #[test]
    fn one_range_needs_no_list() -> Result {
        let region = DescEntry::new(0x1000, 0x100, Access::SEND);
        let range = super::range(&region).ok_or(EINVAL)?;
        assert!(contained(&[range], at(0x1000, 0x100)));
        assert!(!contained(&[range], at(0x1000, 0x101)) && !contained(&[range], at(0xfff, 1)));
        assert!(super::range(&DescEntry::new(0, 0x100, Access::SEND)).is_none());
        Ok(())
    }
}
