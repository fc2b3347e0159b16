// SPDX-License-Identifier: GPL-2.0

//! What providers offer.

use super::{
    call,
    Caps,
    MrMode, //
};
use crate::support::{
    errno::Errno,
    sockaddr, //
};
use core::{
    net::SocketAddr,
    ptr::{
        self,
        NonNull, //
    }, //
};
use kernel::{
    ffi::c_char,
    str::{
        CStr,
        CStrExt, //
    },
    types::Opaque, //
};
use kfi_bindings::{
    kfi_domain_attr,
    kfi_fabric_attr,
    kfi_info, //
};

/// A list of offers, the best one first. It is never empty.
///
/// # Invariants
///
/// `first` is an info from the C API, which nobody else has, and so are those behind it.
pub struct InfoList {
    first: NonNull<kfi_info>,
}

// SAFETY: The list is plain memory that this type owns.
unsafe impl Send for InfoList {}
// SAFETY: A shared list is only read.
unsafe impl Sync for InfoList {}

impl InfoList {
    /// `kfi_getinfo()`. May sleep.
    ///
    /// # Safety
    ///
    /// `hints` is null, or valid with all that it points to.
    pub(super) unsafe fn get(hints: *mut kfi_info) -> Result<Self, Errno> {
        let mut first = ptr::null_mut();
        // SAFETY: The hints are null or valid by the requirements of this function, and `first` is
        // there for the call.
        let ret = unsafe {
            kfi_bindings::kfi_getinfo(
                crate::support::version::API_VERSION,
                ptr::null(),
                ptr::null(),
                0,
                hints,
                &mut first,
            )
        };
        // INVARIANT: What getinfo gives out is the caller's.
        call::opened(ret, first).map(|first| Self { first })
    }

    /// Takes over what a C function gave out.
    ///
    /// # Safety
    ///
    /// The caller guarantees the invariant of this type.
    pub(super) unsafe fn from_raw(first: NonNull<kfi_info>) -> Self {
        // INVARIANT: By the requirements of this function.
        Self { first }
    }

    /// All that there is, from all providers. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENODATA`: there is nothing.
    pub fn all() -> Result<Self, Errno> {
        // SAFETY: No hints.
        unsafe { Self::get(ptr::null_mut()) }
    }

    /// A single info with all its attributes, to be filled in. May sleep.
    pub(super) fn blank() -> Result<Self, Errno> {
        // SAFETY: May be called at any time in process context.
        let first = unsafe { kfi_bindings::kfi_allocinfo() };
        // INVARIANT: A new info is the caller's.
        Ok(Self {
            first: NonNull::new(first).ok_or(Errno::ENOMEM)?,
        })
    }

    pub(super) fn as_ptr(&self) -> *mut kfi_info {
        self.first.as_ptr()
    }

    /// The best offer.
    pub fn first(&self) -> &Info {
        // SAFETY: By the invariant.
        unsafe { Info::from_raw(self.first) }
    }

    /// Goes through the offers.
    pub fn iter(&self) -> Iter<'_> {
        Iter(Some(self.first()))
    }
}

impl Drop for InfoList {
    fn drop(&mut self) {
        // SAFETY: By the invariant, nobody else has the list.
        unsafe { kfi_bindings::kfi_freeinfo(self.first.as_ptr()) };
    }
}

impl<'a> IntoIterator for &'a InfoList {
    type Item = &'a Info;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Iterator over the offers of an [`InfoList`].
pub struct Iter<'a>(Option<&'a Info>);

impl<'a> Iterator for Iter<'a> {
    type Item = &'a Info;

    fn next(&mut self) -> Option<&'a Info> {
        let info = self.0?;
        // SAFETY: By the invariants of the list, for as long as it is borrowed.
        self.0 = unsafe { NonNull::new((*info.as_raw()).next).map(|next| Info::from_raw(next)) };
        Some(info)
    }
}

/// An offer: a domain that can be opened, with its true limits.
///
/// # Invariants
///
/// A valid `struct kfi_info` of the C API, whose attributes and names are null or valid.
#[repr(transparent)]
pub struct Info(Opaque<kfi_info>);

// SAFETY: A shared info is only read.
unsafe impl Sync for Info {}

impl Info {
    /// # Safety
    ///
    /// `info` is as the invariant of this type has it, for `'a`.
    unsafe fn from_raw<'a>(info: NonNull<kfi_info>) -> &'a Self {
        // SAFETY: By the requirements of this function, and the same layout.
        // INVARIANT: By the requirements of this function.
        unsafe { info.cast().as_ref() }
    }

    /// The info as C has it.
    pub(super) fn as_raw(&self) -> *mut kfi_info {
        self.0.get()
    }

    pub(super) fn fabric_attr(&self) -> Option<&kfi_fabric_attr> {
        // SAFETY: By the invariant.
        unsafe { (*self.as_raw()).fabric_attr.as_ref() }
    }

    pub(super) fn domain_attr(&self) -> Option<&kfi_domain_attr> {
        // SAFETY: By the invariant.
        unsafe { (*self.as_raw()).domain_attr.as_ref() }
    }

    /// # Safety
    ///
    /// `name` is null, or a string that belongs to this info.
    unsafe fn name(&self, name: *const c_char) -> &CStr {
        if name.is_null() {
            c""
        } else {
            // SAFETY: `name` is a string by the requirements of this function, as it isn't null.
            unsafe { CStr::from_char_ptr(name) }
        }
    }

    /// The provider's name.
    pub fn prov_name(&self) -> &CStr {
        let name = self
            .fabric_attr()
            .map_or(ptr::null_mut(), |attr| attr.prov_name);
        // SAFETY: By the invariant.
        unsafe { self.name(name) }
    }

    /// The fabric's name.
    pub fn fabric_name(&self) -> &CStr {
        let name = self.fabric_attr().map_or(ptr::null_mut(), |attr| attr.name);
        // SAFETY: By the invariant.
        unsafe { self.name(name) }
    }

    /// The domain's name; for verbs that of the device.
    pub fn domain_name(&self) -> &CStr {
        let name = self.domain_attr().map_or(ptr::null_mut(), |attr| attr.name);
        // SAFETY: By the invariant.
        unsafe { self.name(name) }
    }

    /// Returns whether it offers connected endpoints (`KFI_EP_MSG`).
    pub fn is_msg(&self) -> bool {
        // SAFETY: By the invariant.
        let attr = unsafe { (*self.as_raw()).ep_attr.as_ref() };
        attr.is_some_and(|attr| attr.type_ == kfi_bindings::kfi_ep_type_KFI_EP_MSG)
    }

    /// Returns whether its endpoints can share receives ([`SharedReceives`](super::SharedReceives)).
    pub fn shares_receives(&self) -> bool {
        self.domain_attr()
            .is_some_and(|attr| attr.max_ep_srx_ctx > 0)
    }

    /// Calls `f` with a copy of it that asks for an endpoint which shares its receives.
    pub(super) fn with_shared_receives<R>(&self, f: impl FnOnce(*mut kfi_info) -> R) -> R {
        // SAFETY: By the invariant; a copy of its numbers and pointers, to be read only.
        let mut info = unsafe { self.as_raw().read() };
        info.next = ptr::null_mut();
        // SAFETY: By the invariant, the attributes are null or valid.
        let attr = unsafe { info.ep_attr.as_ref() };
        // SAFETY: As for the info.
        let mut attr = attr.map(|attr| unsafe { ptr::from_ref(attr).read() });
        if let Some(attr) = &mut attr {
            attr.rx_ctx_cnt = kfi_bindings::KFI_SHARED_CONTEXT;
            info.ep_attr = attr;
        }
        f(&mut info)
    }

    /// The address at this side, if there is one.
    pub fn source(&self) -> Option<SocketAddr> {
        let info = self.as_raw();
        // SAFETY: By the invariant, the address is null or has so many bytes.
        unsafe { sockaddr::read_any((*info).src_addr, (*info).src_addrlen) }
            .ok()
            .flatten()
    }

    /// The peer's address, if there is one.
    pub fn peer(&self) -> Option<SocketAddr> {
        let info = self.as_raw();
        // SAFETY: By the invariant, the address is null or has so many bytes.
        unsafe { sockaddr::read_any((*info).dest_addr, (*info).dest_addrlen) }
            .ok()
            .flatten()
    }

    /// What the provider can do.
    pub fn caps(&self) -> Caps {
        // SAFETY: By the invariant.
        Caps::from_bits(unsafe { (*self.as_raw()).caps })
    }

    /// What the provider needs the consumer to do.
    pub fn mr_mode(&self) -> MrMode {
        MrMode::from_bits(self.domain_attr().map_or(0, |attr| attr.mr_mode))
    }

    /// Bytes of a key.
    pub fn mr_key_size(&self) -> usize {
        self.domain_attr().map_or(0, |attr| attr.mr_key_size)
    }

    /// Most segments of one region.
    pub fn mr_iov_limit(&self) -> usize {
        self.domain_attr().map_or(0, |attr| attr.mr_iov_limit)
    }

    /// Most regions that can be open at once.
    pub fn mr_cnt(&self) -> usize {
        self.domain_attr().map_or(0, |attr| attr.mr_cnt)
    }
}
