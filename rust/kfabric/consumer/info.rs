// SPDX-License-Identifier: GPL-2.0

//! Offers of providers ([`Info`]), hints to select them ([`Hints`]), and the sets of flags in both.

use super::call;
use crate::{
    api::address,
    support::{
        errno::Errno,
        num::{
            signed,
            widen_u32, //
        },
        sockaddr, //
    }, //
};
use core::{
    net::SocketAddr,
    ops::BitOr,
    ptr::{
        self,
        NonNull, //
    }, //
};
use kernel::{
    bindings,
    ffi::{
        c_char,
        c_int,
        c_void, //
    },
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
                crate::support::strings::API_VERSION,
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

/// Declares a set of flags with the names of the C API.
macro_rules! flags {
    ($(#[$doc:meta])* $set:ident($repr:ty) { $($(#[$flag_doc:meta])* $flag:ident = $value:expr;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $set($repr);

        impl $set {
            $($(#[$flag_doc])* pub const $flag: Self = Self::from_bits($value);)*

            /// The set as the C API has it.
            pub(super) const fn from_bits(bits: $repr) -> Self {
                Self(bits)
            }

            /// The bits as the C API has them.
            pub const fn bits(self) -> $repr {
                self.0
            }

            /// Are all the flags in `other` set?
            pub const fn has(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }
        }

        impl BitOr for $set {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }
    };
}

flags! {
    /// Capabilities (`kfi_info.caps`).
    Caps(u64) {
        /// Remote memory access (`KFI_RMA`).
        RMA = widen_u32(kfi_bindings::KFI_RMA);
        /// Messages (`KFI_MSG`).
        MSG = widen_u32(kfi_bindings::KFI_MSG);
        /// Tagged messages (`KFI_TAGGED`).
        TAGGED = widen_u32(kfi_bindings::KFI_TAGGED);
        /// Atomic operations (`KFI_ATOMIC`).
        ATOMIC = widen_u32(kfi_bindings::KFI_ATOMIC);
        /// A peer may read (`KFI_REMOTE_READ`).
        REMOTE_READ = widen_u32(kfi_bindings::KFI_REMOTE_READ);
        /// A peer may write (`KFI_REMOTE_WRITE`).
        REMOTE_WRITE = widen_u32(kfi_bindings::KFI_REMOTE_WRITE);
    }
}

flags! {
    /// What a consumer takes upon itself to make registration work (`kfi_domain_attr.mr_mode`).
    MrMode(c_int) {
        /// Memory for local use is registered, too (`KFI_MR_LOCAL`).
        LOCAL = signed(kfi_bindings::KFI_MR_LOCAL);
        /// Keys go as raw bytes (`KFI_MR_RAW`).
        RAW = signed(kfi_bindings::KFI_MR_RAW);
        /// A region starts at [`Mr::base`](super::Mr::base), not at 0 (`KFI_MR_VIRT_ADDR`).
        VIRT_ADDR = signed(kfi_bindings::KFI_MR_VIRT_ADDR);
        /// The provider chooses keys (`KFI_MR_PROV_KEY`).
        PROV_KEY = signed(kfi_bindings::KFI_MR_PROV_KEY);
        /// Regions that count accesses are bound and enabled (`KFI_MR_RMA_EVENT`).
        RMA_EVENT = signed(kfi_bindings::KFI_MR_RMA_EVENT);
        /// Regions are bound to an endpoint and enabled (`KFI_MR_ENDPOINT`).
        ENDPOINT = signed(kfi_bindings::KFI_MR_ENDPOINT);
    }
}

flags! {
    /// What a counter of an endpoint counts.
    Counts(u64) {
        /// Messages that were sent (`KFI_TRANSMIT`).
        SENDS = widen_u32(kfi_bindings::KFI_TRANSMIT);
        /// Messages that were received (`KFI_RECV`).
        RECVS = widen_u32(kfi_bindings::KFI_RECV);
        /// Reads of the peer's memory (`KFI_READ`).
        READS = widen_u32(kfi_bindings::KFI_READ);
        /// Writes to the peer's memory (`KFI_WRITE`).
        WRITES = widen_u32(kfi_bindings::KFI_WRITE);
    }
}

flags! {
    /// How a transfer is posted, besides what it does ([`MsgEndpoint::with`](super::MsgEndpoint::with)).
    TransferFlags(u64) {
        /// Another one is posted at once, so the device needn't be told of this one yet (`KFI_MORE`).
        MORE = widen_u32(kfi_bindings::KFI_MORE);
        /// It begins when all reads that were posted before have ended (`KFI_FENCE`).
        FENCE = widen_u32(kfi_bindings::KFI_FENCE);
        /// It has ended when the bytes are where they shall be (`KFI_DELIVERY_COMPLETE`).
        DELIVERY_COMPLETE = widen_u32(kfi_bindings::KFI_DELIVERY_COMPLETE);
    }
}
