// SPDX-License-Identifier: GPL-2.0

//! `struct kfi_info`: allocating, copying and freeing it with everything it points to.
//!
//! Consumers put memory of their own in and take some out, so all of it is plain kmalloc memory.
//!
//! The memory of infos: of kmalloc, as C frees it.

use crate::support::{
    c_ref::c_ref,
    errno::Errno,
    refusal::Refusal, //
};
use core::ptr;
use kernel::{
    bindings,
    ffi::{
        c_char,
        c_void, //
    },
    prelude::*, //
};
use kfi_bindings::kfi_info;

/// An info that is freed when dropped, and all that follow it in its list.
///
/// # Invariants
///
/// The pointer is null or an info from `kfi_allocinfo()` or its like that nobody else frees.
pub(crate) struct Info(*mut kfi_info);

// SAFETY: An info is plain memory, which any thread may use and free.
unsafe impl Send for Info {}
// SAFETY: Shared, it only says where it is.
unsafe impl Sync for Info {}

/// Returns an info of C's. Any context.
///
/// # Errors
///
/// - `EINVAL`: the pointer, or one of the attributes, is an error pointer; or the pointer is null.
///
/// # Safety
///
/// `info` is null, an error pointer, or valid for `'a`.
pub(crate) unsafe fn info_ref<'a>(info: *const kfi_info) -> Result<&'a kfi_info, Refusal> {
    // SAFETY: `info` is null, an error pointer, or valid for `'a`, as the caller promises.
    let info = unsafe { c_ref(info) }.ok_or(Refusal::new(
        Errno::EINVAL,
        c"info is NULL or an error pointer",
    ))?;
    let bad = Errno::is_in(info.tx_attr)
        || Errno::is_in(info.rx_attr)
        || Errno::is_in(info.ep_attr)
        || Errno::is_in(info.domain_attr)
        || Errno::is_in(info.fabric_attr);
    match bad {
        true => Err(Refusal::new(
            Errno::EINVAL,
            c"attributes of an info are an error pointer",
        )),
        false => Ok(info),
    }
}

impl Info {
    /// The end of every list.
    pub(crate) const fn none() -> Self {
        Self(ptr::null_mut())
    }

    /// Is it the end of a list?
    pub(crate) fn is_none(&self) -> bool {
        self.0.is_null()
    }

    /// Takes over what a C function gave out.
    ///
    /// # Safety
    ///
    /// The caller guarantees the invariant of this type.
    pub(crate) unsafe fn from_raw(info: *mut kfi_info) -> Self {
        // INVARIANT: By the requirements of this function.
        Self(info)
    }

    /// Where it is; null for the end of a list.
    pub(crate) fn as_ptr(&self) -> *mut kfi_info {
        self.0
    }

    /// Gives it to C, which frees it by `kfi_freeinfo()`.
    pub(crate) fn into_raw(self) -> *mut kfi_info {
        core::mem::ManuallyDrop::new(self).0
    }

    /// An info with all its attributes, zeroed. May sleep.
    pub(crate) fn new() -> Result<Self, Errno> {
        // INVARIANT: A fresh info.
        let mut info = Self(zeroed()?);
        let fields = info.fields_mut().ok_or(Errno::ENOMEM)?;
        fields.tx_attr = zeroed()?;
        fields.rx_attr = zeroed()?;
        fields.ep_attr = zeroed()?;
        fields.domain_attr = zeroed()?;
        fields.fabric_attr = zeroed()?;
        Ok(info)
    }

    /// The fields, unless it is the end of a list.
    pub(crate) fn fields_mut(&mut self) -> Option<&mut kfi_info> {
        // SAFETY: Null or valid, and ours alone by the invariant.
        unsafe { self.0.as_mut() }
    }

    /// Says in every info of the list which version of the API was asked for.
    pub(crate) fn set_api_version(&mut self, version: u32) {
        let mut next = self.0;
        // SAFETY: Every info in the list is ours by the invariant, with what it points to.
        unsafe {
            while let Some(info) = next.as_mut() {
                if let Some(attr) = info.fabric_attr.as_mut() {
                    attr.api_version = version;
                }
                next = info.next;
            }
        }
    }

    /// Puts `rest` behind the last info of this list.
    pub(crate) fn append(&mut self, rest: Info) {
        let mut end: *mut *mut kfi_info = &mut self.0;
        // SAFETY: Every info in the list is ours by the invariant.
        unsafe {
            while !(*end).is_null() {
                end = &raw mut (**end).next;
            }
            *end = rest.into_raw();
        }
    }

    /// A copy of an info and all that it points to, without those that follow it. May sleep.
    ///
    /// # Safety
    ///
    /// `info` and all that it points to are valid.
    pub(crate) unsafe fn duplicate(info: &kfi_info) -> Result<Self, Errno> {
        // INVARIANT: A fresh info, made to own nothing first.
        let mut copy = Self(zeroed()?);
        let to = copy.fields_mut().ok_or(Errno::ENOMEM)?;
        to.caps = info.caps;
        to.mode = info.mode;
        to.addr_format = info.addr_format;
        to.handle = info.handle;
        // SAFETY: Everything is valid, by the requirements of this function. A copy of a struct
        // gets copies of what it points to at once, so that nothing is ever owned twice.
        unsafe {
            to.src_addr = bytes(info.src_addr, info.src_addrlen)?;
            to.src_addrlen = info.src_addrlen;
            to.dest_addr = bytes(info.dest_addr, info.dest_addrlen)?;
            to.dest_addrlen = info.dest_addrlen;
            to.tx_attr = structure(info.tx_attr, |_| ())?;
            to.rx_attr = structure(info.rx_attr, |_| ())?;
            to.ep_attr = structure(info.ep_attr, |attr| attr.auth_key = ptr::null_mut())?;
            if let (Some(to), Some(from)) = (to.ep_attr.as_mut(), info.ep_attr.as_ref()) {
                to.auth_key = bytes(from.auth_key.cast(), from.auth_key_size)?.cast();
            }
            to.domain_attr = structure(info.domain_attr, |attr| {
                attr.name = ptr::null_mut();
                attr.auth_key = ptr::null_mut();
            })?;
            if let (Some(to), Some(from)) = (to.domain_attr.as_mut(), info.domain_attr.as_ref()) {
                to.name = string(from.name)?;
                to.auth_key = bytes(from.auth_key.cast(), from.auth_key_size)?.cast();
            }
            to.fabric_attr = structure(info.fabric_attr, |attr| {
                attr.name = ptr::null_mut();
                attr.prov_name = ptr::null_mut();
            })?;
            if let (Some(to), Some(from)) = (to.fabric_attr.as_mut(), info.fabric_attr.as_ref()) {
                to.name = string(from.name)?;
                to.prov_name = string(from.prov_name)?;
            }
        }
        Ok(copy)
    }
}

impl Drop for Info {
    fn drop(&mut self) {
        let mut next = self.0;
        // SAFETY: By the invariant, the list is ours; C uses kmalloc memory for what it puts in.
        unsafe {
            while let Some(info) = next.as_ref() {
                let this = next;
                next = info.next;
                free_attributes(info);
                free(this);
            }
        }
    }
}

/// Frees what an info points to.
///
/// # Safety
///
/// Nobody uses any of it any more.
unsafe fn free_attributes(info: &kfi_info) {
    // SAFETY: By the requirements of this function.
    unsafe {
        free(info.src_addr);
        free(info.dest_addr);
        free(info.tx_attr);
        free(info.rx_attr);
        if let Some(attr) = info.ep_attr.as_ref() {
            free(attr.auth_key);
        }
        free(info.ep_attr);
        if let Some(attr) = info.domain_attr.as_ref() {
            free(attr.name);
            free(attr.auth_key);
        }
        free(info.domain_attr);
        if let Some(attr) = info.fabric_attr.as_ref() {
            free(attr.name);
            free(attr.prov_name);
        }
        free(info.fabric_attr);
    }
}

/// Frees kmalloc memory.
///
/// # Safety
///
/// `memory` is null or kmalloc memory that nobody uses any more.
pub(crate) unsafe fn free<T>(memory: *mut T) {
    // SAFETY: By the requirements of this function.
    unsafe { bindings::kfree(memory.cast()) };
}

/// Zeroed memory, which is C's to free.
pub(crate) fn zeroed<T: pin_init::Zeroable>() -> Result<*mut T, Errno> {
    Ok(KBox::into_raw(
        KBox::<T>::init(pin_init::init_zeroed(), GFP_KERNEL).map_err(|_| Errno::ENOMEM)?,
    ))
}

/// A copy of a string, null of null.
///
/// # Safety
///
/// `from` is null or a string.
pub(crate) unsafe fn string(from: *const c_char) -> Result<*mut c_char, Errno> {
    // SAFETY: By the requirements of this function; kstrdup takes null.
    let copy = unsafe { bindings::kstrdup(from, bindings::GFP_KERNEL) };
    match copy.is_null() && !from.is_null() {
        true => Err(Errno::ENOMEM),
        false => Ok(copy),
    }
}

/// A copy of `len` bytes, null of null or none.
///
/// # Safety
///
/// `from` is null or has `len` bytes.
pub(crate) unsafe fn bytes(from: *const c_void, len: usize) -> Result<*mut c_void, Errno> {
    if from.is_null() || len == 0 {
        return Ok(ptr::null_mut());
    }
    // SAFETY: By the requirements of this function.
    let copy = unsafe { bindings::kmemdup_noprof(from, len, bindings::GFP_KERNEL) };
    match copy.is_null() {
        true => Err(Errno::ENOMEM),
        false => Ok(copy),
    }
}

/// A copy of a struct, null of null. `disown` clears what the copy must not share.
///
/// # Safety
///
/// `from` is null or valid.
pub(super) unsafe fn structure<T>(
    from: *const T,
    disown: impl FnOnce(&mut T),
) -> Result<*mut T, Errno> {
    // SAFETY: By the requirements of this function.
    let copy = unsafe { bytes(from.cast(), size_of::<T>()) }?.cast::<T>();
    // SAFETY: Null, or a fresh copy of a valid value.
    if let Some(copy) = unsafe { copy.as_mut() } {
        disown(copy);
    }
    Ok(copy)
}
