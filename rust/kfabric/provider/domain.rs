// SPDX-License-Identifier: GPL-2.0

//! Domains of a provider, and batches of registrations in them. An extension is a provider's own table of
//! functions. Consumers open it by its name.
//!
//! A domain maps scatterlists for its device ([`Dma`]). [`Direct`] is the mapping of providers without a device.

use crate::{
    prelude::*,
    provider::{
        ep::EpCore,
        mr::{
            BatchEntry,
            Bindings,
            Keys,
            ProviderMr, //
        },
        msg_ep::{
            MsgEpOps,
            MsgEpRequest,
            MsgLimits,
            Srx, //
        },
        reuse::ReusableMrOps, //
    },
    region::{
        limits::MrLimits,
        request::MrRequest, //
    },
    support::{
        child_list::ChildList,
        trace::DomainLabel, //
    }, //
};
use core::any::Any;
use kernel::dma::DataDirection;

/// The requested attributes of a new domain, from a `struct kfi_info` of getinfo. The core has checked the numbers
/// against the domain's limits.
pub struct DomainRequest<'a> {
    /// Name of the domain, if one was given.
    pub name: Option<&'a CStr>,
    /// The mode bits that the consumer agreed to.
    pub mr_mode: i32,
    /// The capabilities that it wants.
    pub caps: u64,
    /// The authorization key of all that is opened in the domain; empty for none.
    pub auth_key: &'a [u8],
    /// The names and the number of the domain, for [events](crate::trace::pool).
    pub label: &'a Arc<DomainLabel>,
    /// All that is going to be open in the domain, for a provider whose device may go away.
    pub children: &'a Arc<ChildList>,
}

/// An open domain.
pub trait DomainOps: Any + Send + Sync {
    /// Returns the limits of regions, which are constant. Any context.
    fn mr_limits(&self) -> &MrLimits;

    /// Creates a region: checks the memory and maps it. This refuses all that the provider can refuse without the
    /// device. No peer can access the region before [`MrOps::enable`](super::MrOps::enable). May sleep.
    fn create_mr(&self, request: &MrRequest<'_>) -> Result<ProviderMr, Refusal>;

    /// Creates and enables a region without bindings, as [`create_mr`](Self::create_mr) and
    /// [`MrOps::enable`](super::MrOps::enable) do. May sleep.
    ///
    /// After an error there is no region. But `ENOTRECOVERABLE` says that the device won't let go of it.
    fn register_mr(&self, request: &MrRequest<'_>) -> Result<(ProviderMr, Keys), Refusal> {
        enable_new(self.create_mr(request)?)
    }

    /// Begins up to `count` registrations that are bound to nothing and wait for the device once. Returns `None` without
    /// memory for that, or if the provider registers each by itself. May sleep.
    fn batch(&self, _count: usize) -> Option<KBox<dyn MrBatch + '_>> {
        None
    }

    /// Enables several regions of the domain, so that the device is waited for once. Each ends as
    /// [`MrOps::enable`](super::MrOps::enable) does. May sleep.
    fn enable_many(&self, mrs: &mut [BatchEntry<'_, Keys>]) {
        for one in mrs {
            *one.done = Some(one.mr.enable(one.bindings));
        }
    }

    /// Closes several regions of the domain, so that the device is waited for once. Each ends as
    /// [`MrOps::close`](super::MrOps::close) does. May sleep.
    fn close_many(&self, mrs: &mut [BatchEntry<'_, ()>]) {
        for one in mrs {
            *one.done = Some(one.mr.close());
        }
    }

    /// Reserves the provider's parts of `count` regions of up to `pages` pages and segments without gaps. A request
    /// that [is reserved](MrRequest::is_reserved) does not fail for lack of memory. Called once. May sleep.
    fn reserve(&self, _count: usize, _pages: usize) -> Result<(), Refusal> {
        Err(Refusal::new(
            Errno::ENOSYS,
            c"the provider can't reserve anything",
        ))
    }

    /// Creates an empty region for up to `pages` pages, which is within the limits, bound to an endpoint of the domain.
    /// May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOTCONN`: the endpoint is not enabled.
    fn reusable_mr(
        &self,
        _endpoint: &Arc<EpCore>,
        _pages: usize,
    ) -> Result<KBox<dyn ReusableMrOps>, Refusal> {
        Err(Refusal::new(
            Errno::ENOSYS,
            c"the provider has no regions that are filled again",
        ))
    }

    /// Notes that the core begins a region of the reserve, or that the region has ended. The core has at most as many
    /// of them at a time as it has reserved. May sleep, but not after [`MrOps::close_now`](super::MrOps::close_now).
    fn use_reserve(&self, _begins: bool) {}

    /// Returns how often the pool of the domain had a device region ready, and how often it had none. Any context.
    fn pool_counters(&self) -> (u64, u64) {
        (0, 0)
    }

    /// Returns the mapping of scatterlists for the domain's device (`KFI_DMA_OPS_1`). Any context.
    fn dma(&self) -> Option<&dyn Dma> {
        None
    }

    /// Returns whether the core can open bare endpoints in this domain. These transfer no data. Regions are bound to
    /// them, and the provider starts accesses of peers by `Endpoint::enter`. Any context.
    fn endpoints(&self) -> bool {
        false
    }

    /// Returns whether the consumer must bind regions to endpoints before it enables them, if it sets `KFI_MR_ENDPOINT`.
    /// Any context.
    fn binds_regions(&self) -> bool {
        self.endpoints()
    }

    /// Returns the text of a provider's error number of a failed transfer. Any context.
    fn words(&self, _prov_errno: i32) -> Option<&'static CStr> {
        None
    }

    /// Returns the limits of connected endpoints, if the domain has any. Any context.
    fn msg_limits(&self) -> Option<&MsgLimits> {
        None
    }

    /// Opens a connected endpoint. May sleep.
    fn open_ep(&self, _request: MsgEpRequest) -> Result<KBox<dyn MsgEpOps>, Refusal> {
        Err(Refusal::new(
            Errno::ENOSYS,
            c"the provider has no endpoints",
        ))
    }

    /// Opens a shared context of `size` receives, which is within the limits. May sleep.
    fn open_srx(&self, _size: usize) -> Result<KBox<dyn Srx>, Refusal> {
        Err(Refusal::new(Errno::ENOSYS, c"endpoints share no receives"))
    }

    /// Returns the provider's extensions for `kfi_open_ops()`. Extensions of the core with the same name precede them.
    /// Any context.
    ///
    /// The tables' functions get the domain's `struct kfid`; [`crate::object::domain::from_fid`] leads
    /// back here.
    fn extensions(&self) -> &[Extension] {
        &[]
    }

    /// Ends the domain. Called without open regions, and dropped next. `EBUSY` if others still use
    /// what is the domain's: then it stays open. May sleep.
    ///
    /// Until this has returned, extensions may be called with the domain's fid.
    fn close(&self) -> Result<(), Refusal> {
        Ok(())
    }

    /// Returns `self` as [`Any`], for [`crate::object::domain::from_fid`]. Any context.
    fn as_any(&self) -> &dyn Any;
}

/// A table of functions in C's layout, which consumers know by a name.
///
/// # Safety
///
/// `Self` is laid out as those expect who open an extension of this name. Its functions may be called
/// as they are documented to them, by any thread, for as long as the domain is open.
pub unsafe trait ExtensionTable: Sync + 'static {
    /// The name.
    const NAME: &'static CStr;
}

/// An extension of a domain: a table with its name.
///
/// # Invariants
///
/// `table` is a table of that name, which is always there.
pub struct Extension {
    name: &'static CStr,
    table: *mut c_void,
}

// SAFETY: The table is constant and `Sync`.
unsafe impl Send for Extension {}
// SAFETY: The table is constant and `Sync`.
unsafe impl Sync for Extension {}

impl Extension {
    /// Returns the extension with this table.
    pub const fn new<T: ExtensionTable>(table: &'static T) -> Self {
        // INVARIANT: `T::NAME` is the name of the table `T`, which is static.
        Self {
            name: T::NAME,
            table: ptr::from_ref(table).cast_mut().cast(),
        }
    }

    /// Returns the table if this is its name.
    pub(crate) fn table(&self, name: &CStr) -> Option<*mut c_void> {
        (self.name == name).then_some(self.table)
    }
}

/// Registrations in one domain that are bound to nothing and wait for the device once
/// ([`DomainOps::batch`]). No peer reaches any before [`register`](Self::register).
pub trait MrBatch {
    /// Prepares one more registration, as [`DomainOps::create_mr`]. May sleep.
    ///
    /// # Errors
    ///
    /// The errors of `create_mr`. The batch is as before.
    fn prepare(&mut self, request: &MrRequest<'_>) -> Result<(), Refusal>;

    /// Registers all of them, as [`DomainOps::register_mr`]. `done` gets the result of each, in
    /// order. Called once, last. Sleeps until the device is done with all of them.
    fn register(&mut self, done: &mut dyn FnMut(Registered));
}

/// The result of a registration: a region, and how peers reach it.
pub type Registered = Result<(ProviderMr, Keys), Refusal>;

/// Enables a new region without bindings, or closes it. May sleep.
pub(crate) fn enable_new(mut mr: ProviderMr) -> Registered {
    match mr.enable(&Bindings::NONE) {
        Ok(keys) => Ok((mr, keys)),
        // The caller never gets the region. So the error says if its memory must never be freed, rather than why
        // the region was not enabled.
        Err(refusal) => Err(match mr.close() {
            Ok(()) => refusal,
            Err(_) => refusal.with_errno(Errno::ENOTRECOVERABLE),
        }),
    }
}

/// Mapping of a consumer's scatterlists, for `Domain::dma`.
pub trait Dma {
    /// Maps `list`, and returns the number of mapped entries, at most as many as it has. May sleep.
    ///
    /// # Errors
    ///
    /// - `EIO`: the list can't be mapped.
    fn map(&self, list: RawSgl<'_>, direction: DataDirection) -> Result<usize, Refusal>;
    /// Unmaps `list`. May sleep.
    fn unmap(&self, list: RawSgl<'_>, direction: DataDirection);
    /// Makes writes of the device visible to the processor. May sleep.
    fn sync_for_cpu(&self, list: RawSgl<'_>, direction: DataDirection);
    /// Makes writes of the processor visible to the device. May sleep.
    fn sync_for_device(&self, list: RawSgl<'_>, direction: DataDirection);
}

/// A consumer's scatterlist for the length of a call.
///
/// # Invariants
///
/// - `first` points to a list of at least `entries` entries that only the callee uses for `'a`.
/// - For unmaps and syncs, the list is mapped for the same device and direction.
pub struct RawSgl<'a> {
    first: NonNull<kfi_bindings::scatterlist>,
    entries: i32,
    _list: PhantomData<&'a mut kfi_bindings::scatterlist>,
}

impl RawSgl<'_> {
    /// Creates one from the arguments of a C caller. Returns `None` for an empty list.
    ///
    /// # Safety
    ///
    /// - `first` is null or has `entries` entries that only the callee uses for the lifetime of the result.
    /// - For unmaps and syncs, the list is mapped for the same device and direction.
    pub(crate) unsafe fn from_raw(
        first: *mut kfi_bindings::scatterlist,
        entries: i32,
    ) -> Option<Self> {
        let first = NonNull::new(first)?;
        // INVARIANT: `first` isn't null, so it has `entries` entries that only the callee uses.
        (entries > 0).then_some(Self {
            first,
            entries,
            _list: PhantomData,
        })
    }

    /// Returns the first entry.
    pub fn as_ptr(&self) -> *mut kfi_bindings::scatterlist {
        self.first.as_ptr()
    }

    /// Returns the number of entries, which is more than 0.
    pub fn entries(&self) -> i32 {
        self.entries
    }
}

/// DMA without a device: the addresses in a mapped list are the processor's physical ones, and
/// [`CpuMemory`](crate::region::cpu_memory::CpuMemory) reaches them.
pub struct Direct;

impl Dma for Direct {
    fn map(&self, list: RawSgl<'_>, _direction: DataDirection) -> Result<usize, Refusal> {
        // SAFETY: `list` has `entries` entries that only this call uses.
        if !unsafe { kfi_bindings::kfi_helper_sg_map_direct(list.as_ptr(), list.entries()) } {
            return Err(Refusal::new(
                Errno::EIO,
                c"a list with an entry without a page",
            ));
        }
        Ok(index(list.entries().unsigned_abs()))
    }

    // The processor always sees what the processor wrote.
    fn unmap(&self, _list: RawSgl<'_>, _direction: DataDirection) {}
    fn sync_for_cpu(&self, _list: RawSgl<'_>, _direction: DataDirection) {}
    fn sync_for_device(&self, _list: RawSgl<'_>, _direction: DataDirection) {}
}
