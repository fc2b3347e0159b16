// SPDX-License-Identifier: GPL-2.0

//! What a consumer asks for.

use super::{
    Caps,
    InfoList,
    MrMode, //
};
use crate::{
    api::address,
    support::errno::Errno, //
};
use core::net::SocketAddr;
use kernel::{
    bindings,
    ffi::{
        c_char,
        c_void, //
    },
    str::{
        CStr,
        CStrExt, //
    }, //
};
use kfi_bindings::{
    kfi_domain_attr,
    kfi_fabric_attr,
    kfi_info, //
};

/// Hints for [`getinfo`](Hints::getinfo): what is needed, and what the consumer can live with.
///
/// They start out asking for nothing, from any provider that may be called from several threads at
/// once. Mode bits are different from the rest: an offer that needs one that the hints don't have
/// is not made.
///
/// # Examples
///
/// ```
/// use kfabric::consumer::{Caps, Hints, MrMode};
///
/// let offers = Hints::new()?
///     .prov_name(c"verbs")?
///     .caps(Caps::RMA | Caps::REMOTE_READ | Caps::REMOTE_WRITE)
///     .mr_mode(MrMode::VIRT_ADDR | MrMode::PROV_KEY)
///     .getinfo()?;
/// # Ok::<(), Error>(())
/// ```
///
/// # Invariants
///
/// The list has one info, with endpoint, domain and fabric attributes; names and addresses are null or
/// kmalloc memory.
pub struct Hints(InfoList);

impl Hints {
    /// Hints that ask for nothing in particular. May sleep.
    pub fn new() -> Result<Self, Errno> {
        // INVARIANT: A new info has all its attributes, and no names.
        let mut hints = Self(InfoList::blank()?);
        hints.domain(|attr| attr.threading = kfi_bindings::kfi_threading_KFI_THREAD_SAFE);
        Ok(hints)
    }

    /// Asks for a provider by its name. May sleep.
    pub fn prov_name(mut self, name: &CStr) -> Result<Self, Errno> {
        self.fabric(|attr| rename(&mut attr.prov_name, name))?;
        Ok(self)
    }

    /// Asks for a fabric by its name. May sleep.
    pub fn fabric_name(mut self, name: &CStr) -> Result<Self, Errno> {
        self.fabric(|attr| rename(&mut attr.name, name))?;
        Ok(self)
    }

    /// Asks for a domain by its name, which for verbs is that of the device. May sleep.
    pub fn domain_name(mut self, name: &CStr) -> Result<Self, Errno> {
        self.domain(|attr| rename(&mut attr.name, name))?;
        Ok(self)
    }

    /// Asks for capabilities.
    pub fn caps(mut self, caps: Caps) -> Self {
        self.info().caps = caps.bits();
        self
    }

    /// Says what the consumer can live with.
    pub fn mr_mode(mut self, mode: MrMode) -> Self {
        self.domain(|attr| attr.mr_mode = mode.bits());
        self
    }

    /// Asks for connected endpoints (`KFI_EP_MSG`).
    pub fn msg(mut self) -> Self {
        let attr = self.info().ep_attr;
        // SAFETY: By the invariant of this type.
        unsafe { (*attr).type_ = kfi_bindings::kfi_ep_type_KFI_EP_MSG };
        self
    }

    /// Asks for what has this address, to listen at it for instance. May sleep.
    pub fn source(mut self, address: SocketAddr) -> Result<Self, Errno> {
        let info = self.info();
        place(&mut info.src_addr, &mut info.src_addrlen, address)?;
        Ok(self)
    }

    /// Asks for what can be connected to a peer with this address. May sleep.
    pub fn peer(mut self, address: SocketAddr) -> Result<Self, Errno> {
        let info = self.info();
        place(&mut info.dest_addr, &mut info.dest_addrlen, address)?;
        Ok(self)
    }

    /// Asks for this many segments in one region at least.
    pub fn mr_iov_limit(mut self, segments: usize) -> Self {
        self.domain(|attr| attr.mr_iov_limit = segments);
        self
    }

    /// Asks for this many open regions at least.
    pub fn mr_cnt(mut self, regions: usize) -> Self {
        self.domain(|attr| attr.mr_cnt = regions);
        self
    }

    /// Asks for keys of this many bytes at least.
    pub fn mr_key_size(mut self, bytes: usize) -> Self {
        self.domain(|attr| attr.mr_key_size = bytes);
        self
    }

    /// `kfi_getinfo()`: what meets the hints, the best first. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENODATA`: nothing does.
    pub fn getinfo(&self) -> Result<InfoList, Errno> {
        // SAFETY: The list's info is ours by the invariant of its type, with all that it points to.
        unsafe { InfoList::get(self.as_raw()) }
    }

    pub(super) fn as_raw(&self) -> *mut kfi_info {
        self.0.as_ptr()
    }

    fn info(&mut self) -> &mut kfi_info {
        // SAFETY: The list is ours, and not empty.
        unsafe { &mut *self.0.as_ptr() }
    }

    fn domain<R>(&mut self, change: impl FnOnce(&mut kfi_domain_attr) -> R) -> R {
        // SAFETY: By the invariant of this type.
        change(unsafe { &mut *self.info().domain_attr })
    }

    fn fabric<R>(&mut self, change: impl FnOnce(&mut kfi_fabric_attr) -> R) -> R {
        // SAFETY: By the invariant of this type.
        change(unsafe { &mut *self.info().fabric_attr })
    }
}

/// Puts a copy of `name` where a name is, null or kmalloc memory, that belongs to the hints.
fn rename(place: &mut *mut c_char, name: &CStr) -> Result<(), Errno> {
    // SAFETY: `name` is a string.
    let copy = unsafe { bindings::kstrdup(name.as_char_ptr(), bindings::GFP_KERNEL) };
    if copy.is_null() {
        return Err(Errno::ENOMEM);
    }
    // SAFETY: By the invariant of `Hints`, which this function is for.
    unsafe { bindings::kfree(core::mem::replace(place, copy).cast()) };
    Ok(())
}

/// Puts a copy of `address` where an address is, null or kmalloc memory, that belongs to the hints.
fn place(at: &mut *mut c_void, len: &mut usize, address: SocketAddr) -> Result<(), Errno> {
    let (copy, new) = address::copy(Some(address))?;
    *len = new;
    let before = core::mem::replace(at, copy);
    // SAFETY: By the invariant of `Hints`, which this function is for.
    unsafe { bindings::kfree(before) };
    Ok(())
}
