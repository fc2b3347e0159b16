// SPDX-License-Identifier: GPL-2.0

//! The registration calls of a domain.
//!
//! Each of the five entry points names its list and calls [`register`].

use super::{
    open::open,
    prelude::*, //
};
use crate::object::{
    opening::Out,
    trace, //
};
use kfi_bindings::{
    kfi_iov_type_KFI_BVEC as BVEC,
    kfi_iov_type_KFI_KVEC as KVEC,
    kfi_iov_type_KFI_SGL as SGL, //
};

/// Checks the output pointer and the domain, then the request, and registers: the call of this name.
///
/// # Safety
///
/// `fid` and `mr` are null or valid for the call; `source` gives the list, borrowed for the call.
unsafe fn register<'a>(
    fid: *mut kfid,
    name: &CStr,
    source: impl FnOnce() -> Result<Source<'a>, Refusal>,
    arguments: Arguments<'a>,
    context: *mut c_void,
    mr: *mut *mut kfid_mr,
) -> c_int {
    let register = |domain: &DomainObject, out: Out<kfid_mr>| {
        let arguments = arguments.or_auth_key(&domain.auth_key);
        let open = |request: &MrRequest<'_>| open(domain, request, context);
        let opened = requested(source()?, arguments, domain, open)?;
        // Before there can be an event that names it.
        out.put(opened.as_ptr());
        opened.start();
        Ok(())
    };
    // SAFETY: `fid` and `mr` are null or valid for the call, as the caller promises.
    unsafe { opening::call(fid, name, mr, register) }
}

/// Parses a request and has `register` do something with it. If it was mistaken for a list of pages, and refused for
/// that, `register` gets the counted list. Fires the events of a registration that begins and of one that fails.
#[inline]
pub(crate) fn requested<'a, T>(
    source: Source<'a>,
    arguments: Arguments<'a>,
    domain: &DomainObject,
    mut register: impl FnMut(&MrRequest<'a>) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let limits = &domain.mr_limits;
    let request = MrRequest::parse(source, arguments, limits)?;
    trace::registers(domain, &request);
    let registered = register(&request).or_else(|refusal| match request.recount(limits)? {
        Some(counted) => register(&counted),
        None => Err(refusal),
    });
    registered.inspect_err(|refusal| trace::not_registered(domain, refusal.errno()))
}

fn arguments(access: u64, offset: u64, requested_key: u64, flags: u64) -> Arguments<'static> {
    Arguments {
        access,
        offset,
        requested_key,
        flags,
        auth_key: AuthKey::None,
        together: false,
    }
}

/// Implements the slot `reg`. Sleeps until the device is done.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
pub(crate) unsafe extern "C" fn reg(
    fid: *mut kfid,
    buf: *const c_void,
    len: usize,
    access: u64,
    offset: u64,
    requested_key: u64,
    flags: u64,
    mr: *mut *mut kfid_mr,
    context: *mut c_void,
) -> c_int {
    let kvec = kvec {
        iov_base: buf.cast_mut(),
        iov_len: len,
    };
    let arguments = arguments(access, offset, requested_key, flags);
    // SAFETY: As the C API demands; the list of one lives on this stack.
    unsafe {
        register(
            fid,
            c"reg",
            || Source::buffer(&kvec),
            arguments,
            context,
            mr,
        )
    }
}

/// The calls that take a list, which differ in its type only.
macro_rules! list_call {
    ($name:ident, $called:literal, $entry:ty, $source:path) => {
        /// Implements a slot that takes a list. Sleeps until the device is done.
        ///
        /// # Safety
        ///
        /// As the C API demands: every pointer is null or valid for the call.
        pub(crate) unsafe extern "C" fn $name(
            fid: *mut kfid,
            list: *const $entry,
            count: usize,
            access: u64,
            offset: u64,
            requested_key: u64,
            flags: u64,
            mr: *mut *mut kfid_mr,
            context: *mut c_void,
        ) -> c_int {
            // SAFETY: As the C API demands, the list is valid for the call.
            let source = || unsafe { SegmentList::from_raw(list, count) }.map($source);
            let arguments = arguments(access, offset, requested_key, flags);
            // SAFETY: `fid` and `mr` are null or valid for the call, as the caller promises.
            unsafe { register(fid, $called, source, arguments, context, mr) }
        }
    };
}

list_call!(regv, c"regv", kvec, Source::Kvec);
list_call!(regbv, c"regbv", bio_vec, Source::Bvec);
list_call!(regsgl, c"regsgl", scatterlist, Source::Sgl);

/// Implements the slot `regattr`. Sleeps until the device is done.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
pub(crate) unsafe extern "C" fn regattr(
    fid: *mut kfid,
    attr: *const kfi_mr_attr,
    flags: u64,
    mr: *mut *mut kfid_mr,
) -> c_int {
    let (attr, why) = match Errno::is_in(attr) {
        true => (ptr::null(), c"attr is an error pointer"),
        false => (attr, c"attr is NULL"),
    };
    // SAFETY: As the C API demands, the attributes are null or valid for the call.
    let attr = unsafe { attr.as_ref() };
    // SAFETY: As the C API demands, the attributes are valid.
    let arguments = attr.map_or(arguments(0, 0, 0, flags), |attr| unsafe {
        attr_arguments(attr, flags)
    });
    let context = attr.map_or(ptr::null_mut(), |attr| attr.context);
    let source = || {
        let attr = attr.ok_or(Refusal::new(Errno::EINVAL, why))?;
        // SAFETY: As the C API demands, the attributes are valid.
        unsafe { attr_source(attr) }
    };
    // SAFETY: `fid` and `mr` are null or valid for the call, as the caller promises.
    unsafe { register(fid, c"regattr", source, arguments, context, mr) }
}

/// Returns the arguments among attributes.
///
/// # Safety
///
/// As the C API demands: the authorization key has as many bytes as the attributes say.
pub(super) unsafe fn attr_arguments(attr: &kfi_mr_attr, flags: u64) -> Arguments<'_> {
    Arguments {
        access: attr.access,
        offset: attr.offset,
        requested_key: attr.requested_key,
        flags,
        // SAFETY: The key has `auth_key_size` bytes, as the caller promises.
        auth_key: unsafe { AuthKey::from_raw(attr.auth_key, attr.auth_key_size) },
        together: false,
    }
}

/// Returns the list among attributes.
///
/// # Safety
///
/// As the C API demands: `type` says which member is set, and the list is null or valid.
pub(super) unsafe fn attr_source(attr: &kfi_mr_attr) -> Result<Source<'_>, Refusal> {
    let (list, count) = (&attr.__bindgen_anon_1, attr.iov_count);
    // SAFETY: `type` says which member is set, as the caller promises. The list is null or has
    // `iov_count` entries.
    unsafe {
        match attr.type_ {
            KVEC => SegmentList::from_raw(list.mr_iov, count).map(Source::Kvec),
            BVEC => SegmentList::from_raw(list.mr_biov, count).map(Source::Bvec),
            SGL => SegmentList::from_raw(list.mr_sgl, count).map(Source::Sgl),
            other => Err(Refusal::new(Errno::EINVAL, c"unknown iov type").value(u64::from(other))),
        }
    }
}
