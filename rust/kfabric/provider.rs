// SPDX-License-Identifier: GPL-2.0

//! What a provider implements, in safe Rust.
//!
//! A [`Provider`] opens [`Fabric`]s, a fabric opens [`Domain`]s, a domain registers [`Mr`]s. The
//! core owns the C objects, checks every argument once, counts children and pins modules; a
//! provider sees valid requests only. All of it is called in process context and may sleep, and
//! allocations made in it don't wait for I/O.

use crate::{
    counter::Counter,
    domain::DomainRequest,
    endpoint::Endpoint,
    errno::Errno,
    extension::Extension,
    offer::Offer,
    rawkey::RemotePiece,
    refusal::Refusal,
    request::{
        MrLimits,
        MrRequest, //
    }, //
};
use core::{
    any::Any,
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    dma::DataDirection,
    prelude::*,
    str::CStr,
    sync::Arc, //
};

/// A provider: the thing behind a `prov_name`.
///
/// There is one of each type, so its functions have no `self`.
pub trait Provider: 'static {
    /// `prov_name`, by which consumers ask for it.
    const NAME: &'static CStr;
    /// Its version, as `KFI_VERSION(major, minor)`.
    const VERSION: u32;

    /// Lists what the provider can offer right now, one entry per domain.
    fn offers() -> Result<KVec<Offer>, Errno>;

    /// Opens the fabric of this name; `ENODEV` if there is none.
    fn open_fabric(name: &CStr) -> Result<KBox<dyn Fabric>, Refusal>;
}

/// An open fabric. Dropped when the consumer closes it, after its domains.
pub trait Fabric: Send + Sync {
    /// Opens a domain.
    fn open_domain(&self, request: &DomainRequest<'_>) -> Result<KBox<dyn Domain>, Refusal>;
}

/// An open domain.
pub trait Domain: Any + Send + Sync {
    /// What one region can be; constant.
    fn mr_limits(&self) -> &MrLimits;

    /// The first half of a registration: checks the memory and maps it. All that can be refused at
    /// once is refused here. No peer can reach anything before [`Mr::enable`].
    fn create_mr(&self, request: &MrRequest<'_>) -> Result<KBox<dyn Mr>, Refusal>;

    /// Makes idle regions, of each of which [`Mr::create_again`] can make a region of up to so many
    /// pages and segments without holes, again and again, without taking any memory. Called once.
    fn reserve(&self, _count: usize, _pages: usize) -> Result<KVVec<KBox<dyn Mr>>, Refusal> {
        Err(Refusal::new(
            Errno::ENOSYS,
            c"the provider can't reserve anything",
        ))
    }

    /// Mapping of scatterlists for the domain's device (`KFI_DMA_OPS_1`).
    fn dma(&self) -> Option<&dyn Dma> {
        None
    }

    /// Can the core open endpoints in this domain? Nothing is transferred by them: they are there
    /// for regions to be bound to, and for the provider to let peers through (`Endpoint::enter`).
    fn endpoints(&self) -> bool {
        false
    }

    /// The provider's own extensions, for `kfi_open_ops` to be opened by their names. Where the core
    /// has one of a name itself, that is opened.
    ///
    /// The tables' functions get the domain's `struct kfid`; [`crate::domain::from_fid`] leads
    /// back here.
    fn extensions(&self) -> &[Extension] {
        &[]
    }

    /// Ends the domain. Called without open regions, and dropped next. `EBUSY` if others still use
    /// what is the domain's: then it stays open.
    ///
    /// Until this has returned, extensions may be called with the domain's fid.
    fn close(&self) -> Result<(), Refusal> {
        Ok(())
    }

    /// `self` as [`Any`], for [`crate::domain::from_fid`].
    fn as_any(&self) -> &dyn Any;
}

/// A region: created disabled, enabled at most once, closed once, then dropped; or, if it was
/// reserved, created again.
///
/// The core makes these calls one at a time and in that order, so there are no states to check.
/// May be called by different threads; all may sleep.
pub trait Mr: Send + Sync {
    /// As [`Domain::create_mr`], for one of [`Domain::reserve`], which is idle: new, closed, or not
    /// created because of an error.
    fn create_again(&mut self, _request: &MrRequest<'_>) -> Result<(), Refusal> {
        Err(Errno::ENOSYS.into())
    }

    /// The second half of a registration, the device's: peers can reach the region from the return
    /// on. After an error they can't, and it is closed next; if that fails as well, the caller gets
    /// `ENOTRECOVERABLE`, or is told by [`close`](Self::close).
    fn enable(&mut self, bindings: &Bindings) -> Result<Keys, Refusal>;

    /// The pages behind it have changed (`kfi_mr_refresh()`): `request` describes the whole region
    /// anew, with the same addresses, lengths and rights. Key and base stay. Called while enabled.
    ///
    /// After an error the region is as it was, or out of reach for peers for good. But
    /// `ENOTRECOVERABLE` says that the device won't let go of it: neither its old memory nor the new
    /// may ever be freed, and closing it fails.
    fn refresh(&mut self, _request: &MrRequest<'_>) -> Result<(), Refusal> {
        Err(Refusal::new(
            Errno::ENOSYS,
            c"the provider can't refresh regions",
        ))
    }

    /// Deregisters: when this has succeeded, no peer can reach the memory. Called once, last,
    /// whether the region was enabled or not.
    ///
    /// `EIO` if the device would not let go of the region: its memory must never be freed then.
    fn close(&mut self) -> Result<(), Refusal>;
}

/// What a region was bound to before it is enabled.
pub struct Bindings {
    /// What counts the writes of peers to the region. Counting goes on in vain once it is closed.
    pub counter: Option<Arc<Counter>>,
    /// The endpoint through which alone peers reach the region (`KFI_MR_ENDPOINT`), as long as it
    /// is open.
    pub endpoint: Option<Arc<Endpoint>>,
}

/// How peers reach a region.
pub struct Keys {
    /// The key that a peer needs (`kfi_mr_key`).
    pub key: u64,
    /// The address of the region's first byte for a peer (`kfid_mr.iova`).
    pub base: u64,
    /// The local descriptor (`kfi_mr_desc`), meaningful to the provider.
    pub desc: usize,
    /// The parts, in order, of a region that is several to the device (`KFI_MR_RAW`). Empty for one
    /// that is one.
    pub pieces: KVec<RemotePiece>,
}

/// Mapping of a consumer's scatterlists, for [`Domain::dma`].
pub trait Dma {
    /// Maps `list`; gives the number of mapped entries, at most as many as it has. `EIO` if it can't
    /// be mapped.
    fn map(&self, list: RawSgl<'_>, direction: DataDirection) -> Result<usize, Refusal>;
    /// Undoes [`map`](Self::map).
    fn unmap(&self, list: RawSgl<'_>, direction: DataDirection);
    /// Lets the processor see what the device wrote.
    fn sync_for_cpu(&self, list: RawSgl<'_>, direction: DataDirection);
    /// Lets the device see what the processor wrote.
    fn sync_for_device(&self, list: RawSgl<'_>, direction: DataDirection);
}

/// A consumer's scatterlist on its way through the core, for the length of a call: it can't be kept.
///
/// # Invariants
///
/// `first` points to a list of at least `entries` entries that is the callee's alone for `'a`, and
/// for unmapping and syncing was mapped for the same device and direction.
pub struct RawSgl<'a> {
    first: NonNull<kfi_bindings::scatterlist>,
    entries: i32,
    _list: PhantomData<&'a mut kfi_bindings::scatterlist>,
}

impl RawSgl<'_> {
    /// Takes a list from C.
    ///
    /// # Safety
    ///
    /// The caller guarantees the invariants of this type.
    pub(crate) unsafe fn from_raw(
        first: *mut kfi_bindings::scatterlist,
        entries: i32,
    ) -> Option<Self> {
        let first = NonNull::new(first)?;
        // INVARIANT: By the requirements of this function.
        (entries > 0).then_some(Self {
            first,
            entries,
            _list: PhantomData,
        })
    }

    /// The first entry.
    pub fn as_ptr(&self) -> *mut kfi_bindings::scatterlist {
        self.first.as_ptr()
    }

    /// How many entries; more than 0.
    pub fn entries(&self) -> i32 {
        self.entries
    }
}
