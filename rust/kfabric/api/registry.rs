// SPDX-License-Identifier: GPL-2.0

//! The registered providers, and references to those in use.
//!
//! Lock order: `PROVIDERS` is a leaf; no provider is called under it.

use crate::{
    prelude::*,
    support::{
        module::Owner,
        slow_wait::SlowWait,
        table::declared_in_c, //
    }, //
};
use kfi_bindings::{
    kfi_fabric_attr,
    kfi_provider,
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
    // SAFETY: The caller promises that this is the only call, and the first use of the lock.
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
    /// Takes a reference; `None` if the module is being unloaded.
    ///
    /// The caller holds the lock of the list, so the entry is valid.
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

    /// Returns its slot for getinfo.
    pub(crate) fn kgetinfo(&self) -> Option<GetInfo> {
        // SAFETY: Valid by the invariant; it does not change while it is registered.
        unsafe { (*self.0.provider.as_ptr()).kgetinfo }
    }

    /// Returns its slot for opening fabrics.
    pub(crate) fn kfabric(&self) -> Option<OpenFabric> {
        // SAFETY: The provider is valid by the invariant; its slot does not change while it is
        // registered.
        unsafe { (*self.0.provider.as_ptr()).kfabric }
    }

    /// Returns its name.
    pub(crate) fn name(&self) -> &CStr {
        self.0.name()
    }

    /// Returns its version.
    pub(crate) fn version(&self) -> u32 {
        self.0.version()
    }

    /// Checks whether both are the same provider.
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

/// Returns the provider of this name with the newest version. May sleep.
pub(crate) fn find(name: &CStr) -> Option<ProviderRef> {
    let providers = PROVIDERS.lock();
    let named = providers.iter().filter(|entry| entry.name() == name);
    ProviderRef::new(named.max_by_key(|entry| entry.version())?)
}

/// Returns the newest version of each provider, in the order of registration. May sleep.
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

fn register(provider: NonNull<kfi_provider>, owner: *mut module) -> Result<(), Refusal> {
    let invalid = |why| Refusal::new(Errno::EINVAL, why);
    // INVARIANT: `provider` is valid until it is deregistered, which waits for all references.
    let entry = Entry { provider, owner };
    let c = provider.as_ptr();
    // SAFETY: The caller of the C function gave a valid provider, which may be registered already.
    let (name, version, kgetinfo, kfabric) =
        unsafe { ((*c).name, (*c).kfi_version, (*c).kgetinfo, (*c).kfabric) };
    // SAFETY: `name` is null or a string, since the provider is valid.
    if name.is_null() || unsafe { *name } == 0 {
        return Err(invalid(c"provider without a name"));
    }
    let (major, minor) = (version >> 16, version & 0xffff);
    if major != kfi_bindings::KFI_MAJOR_VERSION || minor > kfi_bindings::KFI_MINOR_VERSION {
        let refusal = Refusal::new(Errno::ENOSYS, c"provider of another version of the API");
        return Err(refusal.value(u64::from(version)));
    }
    if kgetinfo.is_none() || kfabric.is_none() {
        return Err(invalid(c"provider without kgetinfo or kfabric"));
    }
    let _noio = NoIo::enter();
    let mut providers = PROVIDERS.lock();
    // SAFETY: Null, or the module that calls this. Under the lock: either this sees that it goes, or
    // `module_gone` sees the provider.
    if !unsafe { Owner::from_raw(owner) }.is_none_or(Owner::is_live) {
        return Err(Refusal::new(
            Errno::EOPBADSTATE,
            c"the provider's module is unloaded",
        ));
    }
    let present =
        |other: &Entry| other.name() == entry.name() && other.version() >= entry.version();
    if providers.iter().any(present) {
        return Err(Refusal::new(
            Errno::EEXIST,
            c"provider of that name, as new or newer",
        ));
    }
    // SAFETY: `provider` is valid and not in use yet.
    unsafe { kfi_bindings::kfi_helper_provider_init(provider.as_ptr()) };
    providers.push(entry, GFP_KERNEL)?;
    Ok(())
}

fn deregister(provider: NonNull<kfi_provider>) -> Result<(), Refusal> {
    {
        let mut providers = PROVIDERS.lock();
        let before = providers.len();
        providers.retain(|entry| entry.provider != provider);
        if providers.len() == before {
            return Err(Refusal::new(Errno::ENODATA, c"provider isn't registered"));
        }
    }
    let _wait = SlowWait::begin(c"deregistering a provider");
    // SAFETY: It was registered, and nobody finds it any more.
    unsafe { kfi_bindings::kfi_helper_provider_drain(provider.as_ptr()) };
    // SAFETY: The provider is still the caller's, who waits for this.
    if let Some(cleanup) = unsafe { (*provider.as_ptr()).cleanup } {
        // SAFETY: The provider gave it for this moment.
        unsafe { cleanup() };
    }
    Ok(())
}

/// Deregisters the providers that a module has left registered. Sleeps until no call into them is
/// under way; none of their fabrics is open, since those keep the module.
pub(crate) fn module_gone(owner: Owner) {
    loop {
        let providers = PROVIDERS.lock();
        let left = providers
            .iter()
            .find(|entry| entry.owner == owner.as_ptr())
            .copied();
        drop(providers);
        let Some(left) = left else {
            return;
        };
        pr_warn!("a module goes that has left its provider registered\n");
        if let Err(refusal) = deregister(left.provider) {
            refusal.report(c"kfi_provider_deregister");
        }
    }
}

/// Does something with the provider that the C function `call` was given.
fn with(
    provider: *mut kfi_provider,
    call: &CStr,
    f: impl FnOnce(NonNull<kfi_provider>) -> Result<(), Refusal>,
) -> c_int {
    NonNull::new(provider)
        .ok_or(Refusal::new(Errno::EINVAL, c"provider is NULL"))
        .and_then(f)
        .map_or_else(|refusal| refusal.report(call), |()| 0)
}

/// Implements `kfi_provider_register()`. May sleep.
///
/// # Safety
///
/// `provider` is null or valid until it was deregistered, `owner` null or the calling module.
#[no_mangle]
pub(crate) unsafe extern "C" fn __kfi_provider_register(
    provider: *mut kfi_provider,
    owner: *mut module,
) -> c_int {
    with(provider, c"kfi_provider_register", |provider| {
        register(provider, owner)
    })
}

/// Implements `kfi_provider_deregister()`. Sleeps until no call into the provider is under way and
/// none of its fabrics is open.
///
/// # Safety
///
/// `provider` is null or was given to `kfi_provider_register()`.
#[no_mangle]
pub(crate) unsafe extern "C" fn kfi_provider_deregister(provider: *mut kfi_provider) -> c_int {
    with(provider, c"kfi_provider_deregister", deregister)
}

declared_in_c!(__kfi_provider_register, kfi_provider_deregister);
