// SPDX-License-Identifier: GPL-2.0

//! `kfi_getinfo()`, which asks every provider, and the allocation of infos.

use crate::{
    api::{
        guard,
        registry, //
    },
    object::{
        domain::DomainBody,
        info::{
            info_ref,
            InfoChain, //
        },
        instances, //
    },
    prelude::*,
    support::c_ref, //
};
use core::ptr;
use kfi_bindings::{
    kfi_info,
    kfid_fabric,
    KFI_NUMERICHOST,
    KFI_PROV_ATTR_ONLY,
    KFI_SOURCE, //
};

/// The arguments of one call, passed on to each provider as they came.
#[derive(Clone, Copy)]
struct Query {
    version: u32,
    node: *const c_char,
    service: *const c_char,
    flags: u64,
    hints: *mut kfi_info,
}

impl Query {
    /// Returns the version of the API that the consumer asks for.
    fn api_version(&self) -> u32 {
        match self.version {
            0 => crate::support::strings::API_VERSION,
            version => version,
        }
    }

    /// Collects the answers of all providers. A provider that fails or has nothing doesn't keep
    /// others from answering. Its failure is returned only if no provider has anything.
    fn ask(&self) -> Result<InfoChain, Refusal> {
        if self.version > crate::support::strings::API_VERSION {
            let refusal = Refusal::new(Errno::ENOSYS, c"version newer than this one");
            return Err(refusal.value(u64::from(self.version)));
        }
        let unknown = self.flags & !(KFI_NUMERICHOST | KFI_PROV_ATTR_ONLY | KFI_SOURCE);
        if unknown != 0 {
            return Err(Refusal::new(Errno::EBADFLAGS, c"flag not supported").value(unknown));
        }
        if !self.hints.is_null() {
            // SAFETY: Hints are null, an error pointer, or valid, as the C API demands.
            unsafe { info_ref(self.hints) }?;
        }
        // SAFETY: Hints are null or valid with all that they point to, as the C API demands.
        let (wanted, opened) = unsafe { (hinted_provider(self.hints), opened(self.hints)) };
        let mut found = InfoChain::none();
        let providers = registry::all()?;
        let named = |provider: &CStr| wanted.is_none_or(|name| name == provider);
        let why = match providers.iter().any(|provider| named(provider.name())) {
            true => c"no provider meets the hints",
            false => c"there is no such provider",
        };
        let mut failure = Refusal::new(Errno::ENODATA, why);
        for provider in providers.iter() {
            let Some(kgetinfo) = provider.kgetinfo() else {
                continue;
            };
            if !named(provider.name()) {
                continue;
            }
            let elsewhere = |fabric: &*mut _| !guard::is_of(*fabric, provider);
            if opened.iter().flatten().any(elsewhere) {
                continue;
            }
            let mut answer: *mut kfi_info = ptr::null_mut();
            // SAFETY: The provider is held for the call; the arguments are as the C API demands.
            let ret = unsafe {
                kgetinfo(
                    self.version,
                    self.node,
                    self.service,
                    self.flags,
                    self.hints,
                    &mut answer,
                )
            };
            match ret {
                0 => {
                    // SAFETY: On success, the provider has given the list to the caller.
                    let mut answer = unsafe { InfoChain::from_raw(answer) };
                    answer.set_api_version(self.api_version());
                    found.append(answer);
                }
                _ if Errno::from_c(ret) == Errno::ENODATA => (),
                _ => failure = Refusal::new(Errno::from_c(ret), c"a provider failed"),
            }
        }
        match found.is_none() {
            true => Err(failure),
            false => Ok(found),
        }
    }
}

/// Returns the provider that the hints name.
///
/// # Safety
///
/// `hints` is null or valid with all that it points to for `'a`.
unsafe fn hinted_provider<'a>(hints: *const kfi_info) -> Option<&'a CStr> {
    // SAFETY: `hints` is null or valid with its attributes and strings, as the caller promises.
    unsafe {
        let attr = hints.as_ref()?.fabric_attr.as_ref()?;
        c_ref::name(attr.prov_name)
    }
}

/// Returns the fabrics that the hints name: by itself, and by an open domain of it. The pointers in hints may be
/// anything: they are looked up, and not followed. May sleep.
///
/// # Safety
///
/// `hints` is null or valid with its attributes.
unsafe fn opened(hints: *const kfi_info) -> [Option<*mut kfid_fabric>; 2] {
    // SAFETY: `hints` is null or valid, as the caller promises.
    let Some(hints) = (unsafe { hints.as_ref() }) else {
        return [None; 2];
    };
    // SAFETY: Each attribute is null or valid, as the caller promises.
    let (fabric, domain) = unsafe { (hints.fabric_attr.as_ref(), hints.domain_attr.as_ref()) };
    // Domains of providers in C are for these to recognize.
    let domain = domain.and_then(|attr| {
        instances::with::<DomainBody, _>(attr.domain, |domain| domain.parent().as_ptr())
    });
    [
        fabric
            .map(|attr| attr.fabric)
            .filter(|fabric| !fabric.is_null()),
        domain,
    ]
}

/// Implements `kfi_getinfo()`. May sleep.
///
/// # Safety
///
/// `hints` is null, an error pointer, or valid with all that it points to. Every other pointer is
/// null or valid.
#[no_mangle]
pub(crate) unsafe extern "C" fn kfi_getinfo(
    version: u32,
    node: *const c_char,
    service: *const c_char,
    flags: u64,
    hints: *mut kfi_info,
    info: *mut *mut kfi_info,
) -> c_int {
    if info.is_null() {
        return Refusal::new(Errno::EINVAL, c"output pointer is NULL").report();
    }
    let query = Query {
        version,
        node,
        service,
        flags,
        hints,
    };
    let _noio = NoIo::enter();
    let answer = query.ask();
    let (ret, found) = match answer {
        Ok(found) => (0, found.into_raw()),
        Err(refusal) => (refusal.report(), ptr::null_mut()),
    };
    // SAFETY: Not null, so valid.
    unsafe { *info = found };
    ret
}

crate::support::table::declared_in_c!(kfi_getinfo);

/// Implements `kfi_allocinfo()`. May sleep.
///
/// # Safety
///
/// None; it is unsafe since C declares it.
#[no_mangle]
pub(crate) unsafe extern "C" fn kfi_allocinfo() -> *mut kfi_info {
    InfoChain::new().map_or(ptr::null_mut(), InfoChain::into_raw)
}

/// Implements `kfi_dupinfo()`. May sleep.
///
/// # Safety
///
/// `info` is null, an error pointer, or valid with all that it points to.
#[no_mangle]
pub(crate) unsafe extern "C" fn kfi_dupinfo(info: *const kfi_info) -> *mut kfi_info {
    if Errno::is_in(info) {
        Refusal::new(Errno::EINVAL, c"info is an error pointer").report();
        return ptr::null_mut();
    }
    // SAFETY: `info` is no error pointer, so it is null or valid.
    match unsafe { info.as_ref() } {
        None => InfoChain::new().map_or(ptr::null_mut(), InfoChain::into_raw),
        Some(info) => {
            // SAFETY: Each pointer in `info` is null or valid, as the caller promises.
            unsafe { InfoChain::duplicate(info) }.map_or(ptr::null_mut(), InfoChain::into_raw)
        }
    }
}

/// Implements `kfi_freeinfo()`: frees the whole list. Process context.
///
/// # Safety
///
/// `info` is null, an error pointer, or came from one of the functions of this file.
#[no_mangle]
pub(crate) unsafe extern "C" fn kfi_freeinfo(info: *mut kfi_info) {
    if Errno::is_in(info) {
        Refusal::new(Errno::EINVAL, c"info is an error pointer").report();
        return;
    }
    // SAFETY: `info` is no error pointer, so it is null or a list that the caller owns.
    drop(unsafe { InfoChain::from_raw(info) });
}

crate::support::table::declared_in_c!(kfi_allocinfo, kfi_dupinfo, kfi_freeinfo);
