// SPDX-License-Identifier: GPL-2.0

//! Allocation, copies and frees of `struct kfi_info` with everything that it points to.
//!
//! All of the memory is kmalloc memory, because consumers replace and free parts of it. It is charged to the task,
//! because any user can get a list of offers over generic netlink.

use super::prelude::*;
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    bindings, //
};

/// A list of infos, which `drop` frees.
///
/// # Invariants
///
/// The pointer is null or an info of kmalloc memory that this owns, with all that follow it.
pub(crate) struct InfoChain(*mut kfi_info);

// SAFETY: An info is kmalloc memory, which any thread may use and free.
unsafe impl Send for InfoChain {}
// SAFETY: A shared reference gives only the address.
unsafe impl Sync for InfoChain {}

/// Returns the info that a C caller passes. Any context.
///
/// # Errors
///
/// - `EINVAL`: the pointer is null, or the pointer or one of the attributes is an error pointer.
///
/// # Safety
///
/// `info` is null, an error pointer, or valid for `'a`.
pub(crate) unsafe fn info_ref<'a>(info: *const kfi_info) -> Result<&'a kfi_info, Refusal> {
    // SAFETY: `info` is null, an error pointer, or valid for `'a`.
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

/// Returns the requested number, or `limit` if the consumer requests 0.
///
/// # Errors
///
/// - `ENODATA`: the consumer requests more than `limit`.
pub(super) fn within(asked: usize, limit: usize) -> Result<usize, Refusal> {
    match asked {
        0 => Ok(limit),
        asked if asked <= limit => Ok(asked),
        asked => {
            let refusal = Refusal::new(Errno::ENODATA, c"more than the domain can do");
            Err(refusal.value(widen(asked)))
        }
    }
}

impl InfoChain {
    /// Returns an empty list.
    pub(crate) const fn none() -> Self {
        Self(ptr::null_mut())
    }

    /// Returns whether the list is empty.
    pub(crate) fn is_none(&self) -> bool {
        self.0.is_null()
    }

    /// Takes over a list of infos.
    ///
    /// # Safety
    ///
    /// `info` is null or an info of kmalloc memory that the caller owns, with all that follow it.
    pub(crate) unsafe fn from_raw(info: *mut kfi_info) -> Self {
        // INVARIANT: `info` is null or a list that the caller owned.
        Self(info)
    }

    /// Returns the first info, or null if the list is empty.
    pub(crate) fn as_ptr(&self) -> *mut kfi_info {
        self.0
    }

    /// Passes the list to C, which frees it by `kfi_freeinfo()`.
    pub(crate) fn into_raw(self) -> *mut kfi_info {
        core::mem::ManuallyDrop::new(self).0
    }

    /// Creates a zeroed info with all its attributes. May sleep.
    pub(crate) fn new() -> Result<Self, Errno> {
        // INVARIANT: The info is new.
        let mut info = Self(zeroed()?);
        let fields = info.fields_mut().ok_or(Errno::ENOMEM)?;
        fields.tx_attr = zeroed()?;
        fields.rx_attr = zeroed()?;
        fields.ep_attr = zeroed()?;
        fields.domain_attr = zeroed()?;
        fields.fabric_attr = zeroed()?;
        Ok(info)
    }

    /// Returns the first info, unless the list is empty.
    pub(crate) fn fields_mut(&mut self) -> Option<&mut kfi_info> {
        // SAFETY: The pointer is null or an info that `self` owns.
        unsafe { self.0.as_mut() }
    }

    /// Sets the requested API version in each info of the list.
    pub(crate) fn set_api_version(&mut self, version: u32) {
        let mut next = self.0;
        // SAFETY: `self` owns each info of the list, and its attributes are null or valid.
        unsafe {
            while let Some(info) = next.as_mut() {
                if let Some(attr) = info.fabric_attr.as_mut() {
                    attr.api_version = version;
                }
                next = info.next;
            }
        }
    }

    /// Appends `rest` to the list.
    pub(crate) fn append(&mut self, rest: InfoChain) {
        let mut end: *mut *mut kfi_info = &mut self.0;
        // SAFETY: `self` owns each info of the list.
        unsafe {
            while !(*end).is_null() {
                end = &raw mut (**end).next;
            }
            *end = rest.into_raw();
        }
    }

    /// Copies an info and all that it points to, without the infos that follow it. May sleep.
    ///
    /// # Safety
    ///
    /// Each pointer of `info` is null or valid, with the length that `info` states.
    pub(crate) unsafe fn duplicate(info: &kfi_info) -> Result<Self, Errno> {
        // INVARIANT: The info is new, and its pointers are null.
        let mut copy = Self(zeroed()?);
        let to = copy.fields_mut().ok_or(Errno::ENOMEM)?;
        to.caps = info.caps;
        to.mode = info.mode;
        to.addr_format = info.addr_format;
        to.handle = info.handle;
        // The copy of a struct gets copies of its pointers at once, so that no memory has two owners.
        // SAFETY: Each pointer of `info` is null or valid, with the length that `info` states.
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

impl Drop for InfoChain {
    fn drop(&mut self) {
        let mut next = self.0;
        // SAFETY: `self` owns each info of the list. All its memory is kmalloc memory, also parts from consumers.
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

/// Frees all that an info points to.
///
/// # Safety
///
/// Each pointer is null or kmalloc memory, which no one uses after the call.
unsafe fn free_attributes(info: &kfi_info) {
    // SAFETY: Each pointer is null or kmalloc memory, which no one uses after the call.
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
/// `memory` is null or kmalloc memory, which no one uses after the call.
pub(crate) unsafe fn free<T>(memory: *mut T) {
    // SAFETY: `memory` is null or kmalloc memory, which no one uses after the call.
    unsafe { bindings::kfree(memory.cast()) };
}

/// Allocates zeroed kmalloc memory. May sleep.
pub(crate) fn zeroed<T: pin_init::Zeroable>() -> Result<*mut T, Errno> {
    Ok(KBox::into_raw(
        KBox::<T>::init(pin_init::init_zeroed(), GFP_KERNEL_ACCOUNT).map_err(|_| Errno::ENOMEM)?,
    ))
}

/// Copies a string. Returns null for null. May sleep.
///
/// # Safety
///
/// `from` is null or a string.
pub(crate) unsafe fn string(from: *const c_char) -> Result<*mut c_char, Errno> {
    // SAFETY: `from` is null, which kstrdup takes, or a string.
    let copy = unsafe { bindings::kstrdup(from, bindings::GFP_KERNEL_ACCOUNT) };
    match copy.is_null() && !from.is_null() {
        true => Err(Errno::ENOMEM),
        false => Ok(copy),
    }
}

/// Copies `len` bytes. Returns null if `from` is null or `len` is 0. May sleep.
///
/// # Safety
///
/// `from` is null or has `len` bytes.
pub(crate) unsafe fn bytes(from: *const c_void, len: usize) -> Result<*mut c_void, Errno> {
    if from.is_null() || len == 0 {
        return Ok(ptr::null_mut());
    }
    // SAFETY: `from` has `len` bytes.
    let copy = unsafe { bindings::kmemdup_noprof(from, len, bindings::GFP_KERNEL_ACCOUNT) };
    match copy.is_null() {
        true => Err(Errno::ENOMEM),
        false => Ok(copy),
    }
}

/// Copies a struct. Returns null for null. `disown` clears the pointers that the copy must not share. May sleep.
///
/// # Safety
///
/// `from` is null or valid.
pub(super) unsafe fn structure<T>(
    from: *const T,
    disown: impl FnOnce(&mut T),
) -> Result<*mut T, Errno> {
    // SAFETY: `from` is null or valid.
    let copy = unsafe { bytes(from.cast(), size_of::<T>()) }?.cast::<T>();
    // SAFETY: `copy` is null or a new copy of a valid value.
    if let Some(copy) = unsafe { copy.as_mut() } {
        disown(copy);
    }
    Ok(copy)
}
