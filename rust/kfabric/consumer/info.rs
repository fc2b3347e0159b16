// SPDX-License-Identifier: GPL-2.0

//! Offers of providers ([`Info`]), hints to select them ([`Hints`]), and the sets of flags in both.

use super::*;
use crate::{
    api::answer,
    support::{
        num::signed,
        sockaddr, //
    }, //
};
use core::ops::BitOr;
use kernel::{
    bindings,
    types::Opaque, //
};
use kfi_bindings::{
    kfi_domain_attr,
    kfi_fabric_attr, //
};

/// A list of offers, the best one first. It is never empty.
///
/// # Invariants
///
/// `first` is the first info of a list from the C API. This type owns all infos in the list.
pub struct InfoList {
    first: NonNull<kfi_info>,
}

// SAFETY: The list is memory that this type owns, and bound to no thread.
unsafe impl Send for InfoList {}
// SAFETY: A shared reference only reads the list.
unsafe impl Sync for InfoList {}

impl InfoList {
    /// Returns the offers that meet the hints: `kfi_getinfo()`. May sleep.
    ///
    /// # Safety
    ///
    /// `hints` is null, or valid with all that it points to.
    pub(super) unsafe fn get(hints: *mut kfi_info) -> Result<Self, Errno> {
        let mut first = ptr::null_mut();
        // SAFETY: `hints` is null or valid by this function's contract, and `first` is a local.
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
        // INVARIANT: kfi_getinfo() gives the list to its caller.
        handle::opened(ret, first).map(|first| Self { first })
    }

    /// Creates a list from one that a C function gave to its caller.
    ///
    /// # Safety
    ///
    /// `first` meets the invariant of this type.
    pub(super) unsafe fn from_raw(first: NonNull<kfi_info>) -> Self {
        // INVARIANT: `first` meets it by this function's contract.
        Self { first }
    }

    /// Returns all offers of all providers. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENODATA`: no provider offers anything.
    pub fn all() -> Result<Self, Errno> {
        // SAFETY: The hints are null.
        unsafe { Self::get(ptr::null_mut()) }
    }

    /// Creates a list of one empty info with all its attributes. May sleep.
    pub(super) fn blank() -> Result<Self, Errno> {
        // SAFETY: This is process context, the only requirement of the call.
        let first = unsafe { kfi_bindings::kfi_allocinfo() };
        // INVARIANT: kfi_allocinfo() gives the info to its caller.
        Ok(Self {
            first: NonNull::new(first).ok_or(Errno::ENOMEM)?,
        })
    }

    pub(super) fn as_ptr(&self) -> *mut kfi_info {
        self.first.as_ptr()
    }

    /// Returns the best offer.
    pub fn first(&self) -> &Info {
        // SAFETY: `first` is valid as long as `self` is borrowed, by the invariant.
        unsafe { Info::from_raw(self.first) }
    }

    /// Returns an iterator over the offers.
    pub fn iter(&self) -> Iter<'_> {
        Iter(Some(self.first()))
    }
}

impl Drop for InfoList {
    fn drop(&mut self) {
        // SAFETY: This type owns the list by its invariant.
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
        // SAFETY: `info` is part of a list that is borrowed for `'a`, so `next` is null or valid as
        // long.
        self.0 = unsafe { NonNull::new((*info.as_raw()).next).map(|next| Info::from_raw(next)) };
        Some(info)
    }
}

/// An offer: a domain that can be opened, with its true limits.
///
/// # Invariants
///
/// A valid `struct kfi_info` of the C API. Its attributes, names and addresses are null or valid.
#[repr(transparent)]
pub struct Info(Opaque<kfi_info>);

// SAFETY: A shared reference only reads the info.
unsafe impl Sync for Info {}

impl Info {
    /// Returns a reference to an info of the C API.
    ///
    /// # Safety
    ///
    /// `info` meets the invariant of this type for `'a`.
    unsafe fn from_raw<'a>(info: NonNull<kfi_info>) -> &'a Self {
        // SAFETY: `info` is valid for `'a` by this function's contract, and has the same layout.
        // INVARIANT: `info` meets it by this function's contract.
        unsafe { info.cast().as_ref() }
    }

    /// Returns the C object. It must only be read.
    pub(super) fn as_raw(&self) -> *mut kfi_info {
        self.0.get()
    }

    pub(super) fn fabric_attr(&self) -> Option<&kfi_fabric_attr> {
        // SAFETY: `fabric_attr` is null or valid by the invariant.
        unsafe { (*self.as_raw()).fabric_attr.as_ref() }
    }

    pub(super) fn domain_attr(&self) -> Option<&kfi_domain_attr> {
        // SAFETY: `domain_attr` is null or valid by the invariant.
        unsafe { (*self.as_raw()).domain_attr.as_ref() }
    }

    /// Returns the name, or an empty one for null.
    ///
    /// # Safety
    ///
    /// `name` is null, or a string that belongs to this info.
    unsafe fn name(&self, name: *const c_char) -> &CStr {
        if name.is_null() {
            c""
        } else {
            // SAFETY: `name` isn't null, so it is a string that lives as long as `self`.
            unsafe { CStr::from_char_ptr(name) }
        }
    }

    /// Returns the name of the provider.
    pub fn prov_name(&self) -> &CStr {
        let name = self
            .fabric_attr()
            .map_or(ptr::null_mut(), |attr| attr.prov_name);
        // SAFETY: `prov_name` is null or a string of this info by the invariant.
        unsafe { self.name(name) }
    }

    /// Returns the name of the fabric.
    pub fn fabric_name(&self) -> &CStr {
        let name = self.fabric_attr().map_or(ptr::null_mut(), |attr| attr.name);
        // SAFETY: `name` is null or a string of this info by the invariant.
        unsafe { self.name(name) }
    }

    /// Returns the name of the domain. The verbs provider uses the name of the device.
    pub fn domain_name(&self) -> &CStr {
        let name = self.domain_attr().map_or(ptr::null_mut(), |attr| attr.name);
        // SAFETY: `name` is null or a string of this info by the invariant.
        unsafe { self.name(name) }
    }

    /// Checks whether this offers connected endpoints (`KFI_EP_MSG`).
    pub fn is_msg(&self) -> bool {
        // SAFETY: `ep_attr` is null or valid by the invariant.
        let attr = unsafe { (*self.as_raw()).ep_attr.as_ref() };
        attr.is_some_and(|attr| attr.type_ == kfi_bindings::kfi_ep_type_KFI_EP_MSG)
    }

    /// Checks whether endpoints of this offer can share receives ([`SharedReceives`]).
    pub fn shares_receives(&self) -> bool {
        self.domain_attr()
            .is_some_and(|attr| attr.max_ep_srx_ctx > 0)
    }

    /// Calls `f` with a copy of this info that asks for an endpoint with shared receives.
    pub(super) fn with_shared_receives<R>(&self, f: impl FnOnce(*mut kfi_info) -> R) -> R {
        // SAFETY: The info is valid by the invariant. The copy and its pointers are only read.
        let mut info = unsafe { self.as_raw().read() };
        info.next = ptr::null_mut();
        // SAFETY: `ep_attr` is null or valid by the invariant.
        let attr = unsafe { info.ep_attr.as_ref() };
        // SAFETY: `attr` is a reference. The copy and its pointers are only read.
        let mut attr = attr.map(|attr| unsafe { ptr::from_ref(attr).read() });
        if let Some(attr) = &mut attr {
            attr.rx_ctx_cnt = kfi_bindings::KFI_SHARED_CONTEXT;
            info.ep_attr = attr;
        }
        f(&mut info)
    }

    /// Returns the local address, if the offer has one.
    pub fn source(&self) -> Option<SocketAddr> {
        let info = self.as_raw();
        // SAFETY: `src_addr` is null or has `src_addrlen` bytes by the invariant.
        unsafe { sockaddr::read_any((*info).src_addr, (*info).src_addrlen) }
            .ok()
            .flatten()
    }

    /// Returns the peer's address, if the offer has one.
    pub fn peer(&self) -> Option<SocketAddr> {
        let info = self.as_raw();
        // SAFETY: `dest_addr` is null or has `dest_addrlen` bytes by the invariant.
        unsafe { sockaddr::read_any((*info).dest_addr, (*info).dest_addrlen) }
            .ok()
            .flatten()
    }

    /// Returns the capabilities of the provider.
    pub fn caps(&self) -> Caps {
        // SAFETY: The info is valid by the invariant.
        Caps::from_bits(unsafe { (*self.as_raw()).caps })
    }

    /// Returns the modes of registration that the provider requires.
    pub fn mr_mode(&self) -> MrMode {
        MrMode::from_bits(self.domain_attr().map_or(0, |attr| attr.mr_mode))
    }

    /// Returns the size of a key in bytes.
    pub fn mr_key_size(&self) -> usize {
        self.domain_attr().map_or(0, |attr| attr.mr_key_size)
    }

    /// Returns the maximum number of segments of a region.
    pub fn mr_iov_limit(&self) -> usize {
        self.domain_attr().map_or(0, |attr| attr.mr_iov_limit)
    }

    /// Returns the maximum number of segments of a transfer.
    pub fn iov_limit(&self) -> usize {
        // SAFETY: The info is valid by the invariant.
        let attr = unsafe { (*self.as_raw()).tx_attr.as_ref() };
        attr.map_or(0, |attr| attr.iov_limit)
    }

    /// Returns the maximum numbers of transfers to the peer and of receives that are under way on an
    /// endpoint.
    pub fn queue_sizes(&self) -> (usize, usize) {
        // SAFETY: The info is valid by the invariant.
        let (tx, rx) = unsafe { ((*self.as_raw()).tx_attr, (*self.as_raw()).rx_attr) };
        // SAFETY: Both attributes are null or valid by the invariant.
        let (tx, rx) = unsafe { (tx.as_ref(), rx.as_ref()) };
        (
            tx.map_or(0, |attr| attr.size),
            rx.map_or(0, |attr| attr.size),
        )
    }

    /// Returns the maximum number of open regions.
    pub fn mr_cnt(&self) -> usize {
        self.domain_attr().map_or(0, |attr| attr.mr_cnt)
    }
}

/// Hints for [`getinfo`](Hints::getinfo): required features, and modes that the consumer supports.
///
/// New hints require nothing but a provider with thread-safe calls. Mode bits restrict the offers:
/// no offer requires a mode that the hints don't have.
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
/// The list has one info, with endpoint, transmit, receive, domain and fabric attributes. Its names and
/// addresses are null or kmalloc memory.
pub struct Hints(InfoList);

impl Hints {
    /// Creates hints that require nothing in particular. May sleep.
    pub fn new() -> Result<Self, Errno> {
        // INVARIANT: kfi_allocinfo() allocates all attributes, and sets no names.
        let mut hints = Self(InfoList::blank()?);
        hints.domain(|attr| attr.threading = kfi_bindings::kfi_threading_KFI_THREAD_SAFE);
        Ok(hints)
    }

    /// Requires a provider by its name. May sleep.
    pub fn prov_name(mut self, name: &CStr) -> Result<Self, Errno> {
        self.fabric(|attr| rename(&mut attr.prov_name, name))?;
        Ok(self)
    }

    /// Requires a fabric by its name. May sleep.
    pub fn fabric_name(mut self, name: &CStr) -> Result<Self, Errno> {
        self.fabric(|attr| rename(&mut attr.name, name))?;
        Ok(self)
    }

    /// Requires a domain by its name. The verbs provider uses the name of the device. May sleep.
    pub fn domain_name(mut self, name: &CStr) -> Result<Self, Errno> {
        self.domain(|attr| rename(&mut attr.name, name))?;
        Ok(self)
    }

    /// Requires capabilities.
    pub fn caps(mut self, caps: Caps) -> Self {
        self.info().caps = caps.bits();
        self
    }

    /// Sets the modes that the consumer supports.
    pub fn mr_mode(mut self, mode: MrMode) -> Self {
        self.domain(|attr| attr.mr_mode = mode.bits());
        self
    }

    /// Requires connected endpoints (`KFI_EP_MSG`).
    pub fn msg(mut self) -> Self {
        let attr = self.info().ep_attr;
        // SAFETY: `ep_attr` is valid by the invariant, and `self` owns it.
        unsafe { (*attr).type_ = kfi_bindings::kfi_ep_type_KFI_EP_MSG };
        self
    }

    /// Requires a local address, for example to listen there. May sleep.
    pub fn source(mut self, address: SocketAddr) -> Result<Self, Errno> {
        let info = self.info();
        place(&mut info.src_addr, &mut info.src_addrlen, address)?;
        Ok(self)
    }

    /// Requires a provider that can connect to a peer with this address. May sleep.
    pub fn peer(mut self, address: SocketAddr) -> Result<Self, Errno> {
        let info = self.info();
        place(&mut info.dest_addr, &mut info.dest_addrlen, address)?;
        Ok(self)
    }

    /// Requires at least `segments` segments in one region.
    pub fn mr_iov_limit(mut self, segments: usize) -> Self {
        self.domain(|attr| attr.mr_iov_limit = segments);
        self
    }

    /// Requires at least `regions` open regions.
    pub fn mr_cnt(mut self, regions: usize) -> Self {
        self.domain(|attr| attr.mr_cnt = regions);
        self
    }

    /// Requires keys of at least `bytes` bytes.
    pub fn mr_key_size(mut self, bytes: usize) -> Self {
        self.domain(|attr| attr.mr_key_size = bytes);
        self
    }

    /// Lets transfers progress only when the consumer reads (`KFI_PROGRESS_MANUAL`). Then a completion
    /// queue that nobody can wait for is polled, without interrupts.
    pub fn manual_progress(mut self) -> Self {
        self.domain(|attr| attr.data_progress = kfi_bindings::kfi_progress_KFI_PROGRESS_MANUAL);
        self
    }

    /// Requires connections whose packets have this differentiated services code point, 0 to 63
    /// (`KFI_TC_DSCP`).
    pub fn dscp(mut self, dscp: u8) -> Self {
        let attr = self.info().tx_attr;
        // SAFETY: `tx_attr` is valid by the invariant, and `self` owns it.
        unsafe { (*attr).tclass = u32::from(dscp) | kfi_bindings::KFI_TC_DSCP };
        self
    }

    /// Sets the maximum numbers of transfers to the peer and of receives that are under way on an
    /// endpoint. The default, 0, is the provider's maximum.
    pub fn queue_sizes(mut self, transmit: usize, receive: usize) -> Self {
        let info = self.info();
        // SAFETY: Both attributes are valid by the invariant, and `self` owns them.
        unsafe {
            (*info.tx_attr).size = transmit;
            (*info.rx_attr).size = receive;
        }
        self
    }

    /// Returns the offers that meet the hints, the best one first: `kfi_getinfo()`. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENODATA`: no offer meets the hints.
    pub fn getinfo(&self) -> Result<InfoList, Errno> {
        // SAFETY: `self` owns the info and all that it points to.
        unsafe { InfoList::get(self.as_raw()) }
    }

    pub(super) fn as_raw(&self) -> *mut kfi_info {
        self.0.as_ptr()
    }

    fn info(&mut self) -> &mut kfi_info {
        // SAFETY: `self` owns the list, which isn't empty by its invariant.
        unsafe { &mut *self.0.as_ptr() }
    }

    fn domain<R>(&mut self, change: impl FnOnce(&mut kfi_domain_attr) -> R) -> R {
        // SAFETY: `domain_attr` is valid by the invariant, and `self` owns it.
        change(unsafe { &mut *self.info().domain_attr })
    }

    fn fabric<R>(&mut self, change: impl FnOnce(&mut kfi_fabric_attr) -> R) -> R {
        // SAFETY: `fabric_attr` is valid by the invariant, and `self` owns it.
        change(unsafe { &mut *self.info().fabric_attr })
    }
}

/// Replaces a name of the hints, which is null or kmalloc memory, by a copy of `name`.
fn rename(place: &mut *mut c_char, name: &CStr) -> Result<(), Errno> {
    // SAFETY: `name` is a string.
    let copy = unsafe { bindings::kstrdup(name.as_char_ptr(), bindings::GFP_KERNEL) };
    if copy.is_null() {
        return Err(Errno::ENOMEM);
    }
    // SAFETY: The old name is null or kmalloc memory by the invariant of `Hints`, and nobody else
    // has it.
    unsafe { bindings::kfree(core::mem::replace(place, copy).cast()) };
    Ok(())
}

/// Replaces an address of the hints, which is null or kmalloc memory, by a copy of `address`.
fn place(at: &mut *mut c_void, len: &mut usize, address: SocketAddr) -> Result<(), Errno> {
    let (copy, new) = answer::copy(Some(address))?;
    *len = new;
    let before = core::mem::replace(at, copy);
    // SAFETY: The old address is null or kmalloc memory by the invariant of `Hints`, and nobody
    // else has it.
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

            /// Creates a set from the bits of the C API.
            pub(super) const fn from_bits(bits: $repr) -> Self {
                Self(bits)
            }

            /// Returns the bits of the C API.
            pub const fn bits(self) -> $repr {
                self.0
            }

            /// Checks whether all flags of `other` are set.
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
    /// Duties that a consumer accepts for registration (`kfi_domain_attr.mr_mode`).
    MrMode(c_int) {
        /// The consumer registers local memory, too (`KFI_MR_LOCAL`).
        LOCAL = signed(kfi_bindings::KFI_MR_LOCAL);
        /// The consumer transmits keys as raw bytes (`KFI_MR_RAW`).
        RAW = signed(kfi_bindings::KFI_MR_RAW);
        /// A region starts at [`Mr::base`], not at 0 (`KFI_MR_VIRT_ADDR`).
        VIRT_ADDR = signed(kfi_bindings::KFI_MR_VIRT_ADDR);
        /// The provider chooses keys (`KFI_MR_PROV_KEY`).
        PROV_KEY = signed(kfi_bindings::KFI_MR_PROV_KEY);
        /// The consumer binds and enables regions that count accesses (`KFI_MR_RMA_EVENT`).
        RMA_EVENT = signed(kfi_bindings::KFI_MR_RMA_EVENT);
        /// The consumer binds regions to an endpoint and enables them (`KFI_MR_ENDPOINT`).
        ENDPOINT = signed(kfi_bindings::KFI_MR_ENDPOINT);
    }
}

flags! {
    /// Operations that a counter of an endpoint counts.
    Counts(u64) {
        /// Sent messages (`KFI_TRANSMIT`).
        SENDS = widen_u32(kfi_bindings::KFI_TRANSMIT);
        /// Received messages (`KFI_RECV`).
        RECVS = widen_u32(kfi_bindings::KFI_RECV);
        /// Reads of the peer's memory (`KFI_READ`).
        READS = widen_u32(kfi_bindings::KFI_READ);
        /// Writes to the peer's memory (`KFI_WRITE`).
        WRITES = widen_u32(kfi_bindings::KFI_WRITE);
    }
}

flags! {
    /// Flags of a posted transfer ([`MsgEndpoint::with`]).
    TransferFlags(u64) {
        /// Another request follows at once, so the provider may delay this one (`KFI_MORE`).
        MORE = widen_u32(kfi_bindings::KFI_MORE);
        /// The transfer starts when all reads that were posted earlier have completed
        /// (`KFI_FENCE`).
        FENCE = widen_u32(kfi_bindings::KFI_FENCE);
        /// The transfer completes when the bytes are in the peer's memory
        /// (`KFI_DELIVERY_COMPLETE`).
        DELIVERY_COMPLETE = widen_u32(kfi_bindings::KFI_DELIVERY_COMPLETE);
    }
}
