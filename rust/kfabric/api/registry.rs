// SPDX-License-Identifier: GPL-2.0

//! The providers that are registered, and keeping them while they are used.
//!
//! Lock order: `PROVIDERS` is a leaf; no provider is called under it.

pub(crate) mod register;

use crate::support::{
    errno::Errno,
    task::NoIo, //
};
use core::ptr::NonNull;
use kernel::{
    ffi::{
        c_char,
        c_int,
        c_void, //
    },
    prelude::*,
    str::CStr, //
};
use kfi_bindings::{
    kfi_fabric_attr,
    kfi_info,
    kfi_provider,
    kfid_fabric,
    module, //
};

kernel::sync::global_lock! {
    // SAFETY: Initialized by `init`, which the module calls first.
    unsafe(uninit) static PROVIDERS: Mutex<KVec<Entry>> = KVec::new();
}

/// Initializes the list.
///
/// # Safety
///
/// Called once, before anything else of this file.
pub(crate) unsafe fn init() {
    // SAFETY: By the requirements of this function.
    unsafe { PROVIDERS.init() };
}

/// Frees the list. To be called last; a static is never dropped.
pub(crate) fn exit() {
    let providers = core::mem::take(&mut *PROVIDERS.lock());
    drop(providers);
}

/// A registered provider.
///
/// Others count references in it at any time, so that there is never a Rust reference to it: its
/// fields are read by pointer, those that don't change while it is registered.
///
/// # Invariants
///
/// `provider` is valid while the entry is in the list, and longer while someone has a reference
/// counted in it; `owner` is null or the module that it belongs to.
#[derive(Clone, Copy)]
struct Entry {
    provider: NonNull<kfi_provider>,
    owner: *mut module,
}

// SAFETY: An entry only names things that any thread may use by the invariant.
unsafe impl Send for Entry {}

impl Entry {
    fn name(&self) -> &CStr {
        // SAFETY: `provider` is valid by the invariant; its name was checked at registration.
        unsafe { CStr::from_char_ptr((*self.provider.as_ptr()).name) }
    }

    fn version(&self) -> u32 {
        // SAFETY: `provider` is valid by the invariant.
        unsafe { (*self.provider.as_ptr()).version }
    }
}

/// `struct kfi_provider.kgetinfo`.
pub(crate) type GetInfo = unsafe extern "C" fn(
    version: u32,
    node: *const c_char,
    service: *const c_char,
    flags: u64,
    hints: *mut kfi_info,
    info: *mut *mut kfi_info,
) -> c_int;

/// `struct kfi_provider.kfabric`.
pub(crate) type OpenFabric = unsafe extern "C" fn(
    attr: *mut kfi_fabric_attr,
    fabric: *mut *mut kfid_fabric,
    context: *mut c_void,
) -> c_int;

/// A provider in use: neither it nor its module goes away.
///
/// # Invariants
///
/// Holds a reference to the provider and to its module.
pub(crate) struct ProviderRef(Entry);

// SAFETY: References may be dropped, and a provider called, from any thread.
unsafe impl Send for ProviderRef {}
// SAFETY: A provider may be called by several threads at once.
unsafe impl Sync for ProviderRef {}

impl ProviderRef {
    /// `None` if the module is on its way out.
    ///
    /// Called with the list locked, so that the entry is valid.
    fn new(entry: &Entry) -> Option<Self> {
        // SAFETY: `owner` is null or a module by the invariant of `Entry`.
        if !unsafe { kernel::bindings::try_module_get(entry.owner) } {
            return None;
        }
        // SAFETY: The provider is registered, so it has a reference that this one adds to.
        unsafe { kfi_bindings::kfi_helper_provider_get(entry.provider.as_ptr()) };
        // INVARIANT: Both were just taken.
        Some(Self(*entry))
    }

    /// Its slot for getinfo.
    pub(crate) fn kgetinfo(&self) -> Option<GetInfo> {
        // SAFETY: Valid by the invariant; it does not change while it is registered.
        unsafe { (*self.0.provider.as_ptr()).kgetinfo }
    }

    /// Its slot for opening fabrics.
    pub(crate) fn kfabric(&self) -> Option<OpenFabric> {
        // SAFETY: The provider is valid by the invariant; its slot does not change while it is
        // registered.
        unsafe { (*self.0.provider.as_ptr()).kfabric }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &CStr {
        self.0.name()
    }

    /// Returns its version.
    pub(crate) fn version(&self) -> u32 {
        self.0.version()
    }

    /// Is it this one?
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.0.provider == other.0.provider
    }
}

impl Drop for ProviderRef {
    fn drop(&mut self) {
        // SAFETY: By the invariant. The provider goes last: whoever deregisters it waits for this
        // reference, and with it keeps the module from going away here.
        unsafe {
            kernel::bindings::module_put(self.0.owner);
            kfi_bindings::kfi_helper_provider_put(self.0.provider.as_ptr());
        }
    }
}

/// The provider of this name: the one with the newest version. May sleep.
pub(crate) fn find(name: &CStr) -> Option<ProviderRef> {
    let providers = PROVIDERS.lock();
    let named = providers.iter().filter(|entry| entry.name() == name);
    ProviderRef::new(named.max_by_key(|entry| entry.version())?)
}

/// All providers that count, in the order of their registration. May sleep.
pub(crate) fn all() -> Result<KVec<ProviderRef>, Errno> {
    let _noio = NoIo::enter();
    let providers = PROVIDERS.lock();
    let mut all = KVec::with_capacity(providers.len(), GFP_KERNEL)?;
    for entry in providers.iter() {
        let newer =
            |other: &Entry| other.name() == entry.name() && other.version() > entry.version();
        if !providers.iter().any(newer) {
            if let Some(provider) = ProviderRef::new(entry) {
                all.push(provider, GFP_KERNEL)?;
            }
        }
    }
    Ok(all)
}
