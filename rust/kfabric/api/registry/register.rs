// SPDX-License-Identifier: GPL-2.0

//! Registering providers, and taking them back.

use super::{
    Entry,
    PROVIDERS, //
};
use crate::support::{
    errno::Errno,
    module::Owner,
    refusal::Refusal,
    table::declared_in_c,
    task::NoIo, //
};
use core::ptr::NonNull;
use kernel::{
    ffi::c_int,
    prelude::*, //
};
use kfi_bindings::{
    kfi_provider,
    module, //
};

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
            refusal.report();
        }
    }
}

/// Does something with a provider that a C function was given.
fn with(
    provider: *mut kfi_provider,
    f: impl FnOnce(NonNull<kfi_provider>) -> Result<(), Refusal>,
) -> c_int {
    NonNull::new(provider)
        .ok_or(Refusal::new(Errno::EINVAL, c"provider is NULL"))
        .and_then(f)
        .map_or_else(Refusal::report, |()| 0)
}

/// `kfi_provider_register()`. May sleep.
///
/// # Safety
///
/// `provider` is null or valid until it was deregistered, `owner` null or the calling module.
#[no_mangle]
pub(crate) unsafe extern "C" fn __kfi_provider_register(
    provider: *mut kfi_provider,
    owner: *mut module,
) -> c_int {
    with(provider, |provider| register(provider, owner))
}

/// `kfi_provider_deregister()`. Sleeps until no call into the provider is under way and none of
/// its fabrics is open.
///
/// # Safety
///
/// `provider` is null or was given to `kfi_provider_register()`.
#[no_mangle]
pub(crate) unsafe extern "C" fn kfi_provider_deregister(provider: *mut kfi_provider) -> c_int {
    with(provider, deregister)
}

declared_in_c!(__kfi_provider_register, kfi_provider_deregister);
