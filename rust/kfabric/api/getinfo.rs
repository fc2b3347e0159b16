// SPDX-License-Identifier: GPL-2.0

//! `kfi_getinfo()`: asking every provider, and answering for those written in Rust.

use crate::{
    api::{
        guard,
        hints::Hints,
        info::{
            self,
            Info, //
        },
        registry, //
    },
    object::domain,
    provider::{
        offer::{
            Offer,
            EP_TYPE, //
        },
        Provider, //
    },
    support::{
        cstr,
        errno::Errno,
        noio::NoIo,
        refusal::Refusal, //
    }, //
};
use core::ptr;
use kernel::{
    ffi::{
        c_char,
        c_int, //
    },
    prelude::*,
    str::CStr, //
};
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
    /// The version of the API that the consumer asks for.
    fn api_version(&self) -> u32 {
        match self.version {
            0 => crate::support::version::API_VERSION,
            version => version,
        }
    }

    /// All that the providers answer. A provider that has nothing, or fails, doesn't keep the
    /// others from answering; its failure is told only if nobody has anything.
    fn ask(&self) -> Result<Info, Refusal> {
        if self.version > crate::support::version::API_VERSION {
            let refusal = Refusal::new(Errno::ENOSYS, c"version newer than this one");
            return Err(refusal.value(u64::from(self.version)));
        }
        let unknown = self.flags & !(KFI_NUMERICHOST | KFI_PROV_ATTR_ONLY | KFI_SOURCE);
        if unknown != 0 {
            return Err(Refusal::new(Errno::EBADFLAGS, c"flag not supported").value(unknown));
        }
        // SAFETY: Hints are null or valid with all that they point to, as the C API demands.
        let (wanted, opened) = unsafe { (hinted_provider(self.hints), opened(self.hints)) };
        let mut found = Info::none();
        let mut failure = Refusal::new(Errno::ENODATA, c"no provider meets the hints");
        for provider in registry::all()?.iter() {
            let Some(kgetinfo) = provider.kgetinfo() else {
                continue;
            };
            if wanted.is_some_and(|name| name != provider.name()) {
                continue;
            }
            // SAFETY: As above; so the fabric is open.
            let elsewhere = |fabric: &*mut _| unsafe { !guard::is_of(*fabric, provider) };
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
                    // SAFETY: What a provider gives out on success is the caller's.
                    let mut answer = unsafe { Info::from_raw(answer) };
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

/// The provider that the hints name.
///
/// # Safety
///
/// `hints` is null or valid with all that it points to for `'a`.
unsafe fn hinted_provider<'a>(hints: *const kfi_info) -> Option<&'a CStr> {
    // SAFETY: By the requirements of this function.
    unsafe {
        let attr = hints.as_ref()?.fabric_attr.as_ref()?;
        cstr::name(attr.prov_name)
    }
}

/// The open fabrics that the hints name: by itself, and by a domain of it.
///
/// # Safety
///
/// `hints` is null or valid with all that it points to.
unsafe fn opened(hints: *const kfi_info) -> [Option<*mut kfid_fabric>; 2] {
    // SAFETY: By the requirements of this function.
    let Some(hints) = (unsafe { hints.as_ref() }) else {
        return [None; 2];
    };
    // SAFETY: As above; objects that hints name are open.
    unsafe {
        let fabric = hints.fabric_attr.as_ref().map(|attr| attr.fabric);
        let domain = hints.domain_attr.as_ref().map(|attr| attr.domain);
        // Domains of providers in C are for these to recognize.
        let domain = domain.and_then(|domain| domain::object(domain.cast()).ok());
        [
            fabric.filter(|fabric| !fabric.is_null()),
            domain.map(|domain| domain.fabric().as_ptr()),
        ]
    }
}

/// `kfi_getinfo()`. May sleep.
///
/// # Safety
///
/// As the C API demands: each pointer is null or valid.
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

/// An offer as C has it.
fn answer<P: Provider>(offer: &Offer, wanted: &Hints<'_>, flags: u64) -> Result<Info, Errno> {
    let mut info = Info::new()?;
    let Some(fields) = info.fields_mut() else {
        return Err(Errno::ENOMEM);
    };
    // SAFETY: A new info has all its attributes, names are strings, and keys have their bytes.
    unsafe {
        let fabric = &mut *fields.fabric_attr;
        fabric.prov_name = info::string(P::NAME.as_char_ptr())?;
        fabric.prov_version = P::VERSION;
        if flags & KFI_PROV_ATTR_ONLY != 0 {
            return Ok(info);
        }
        fabric.name = info::string(offer.fabric.as_char_ptr())?;
        fabric.fabric = wanted.opened_fabric.as_ptr();
        fields.caps = offer.caps;
        let domain = &mut *fields.domain_attr;
        domain.name = info::string(offer.domain.as_char_ptr())?;
        domain.domain = wanted.opened_domain.as_ptr();
        domain.threading = kfi_bindings::kfi_threading_KFI_THREAD_SAFE;
        domain.control_progress = kfi_bindings::kfi_progress_KFI_PROGRESS_AUTO;
        domain.data_progress = kfi_bindings::kfi_progress_KFI_PROGRESS_AUTO;
        domain.resource_mgmt = kfi_bindings::kfi_resource_mgmt_KFI_RM_ENABLED;
        domain.mr_mode = offer.mr_mode;
        domain.mr_key_size = offer.mr_key_size;
        domain.mr_iov_limit = offer.mr_iov_limit;
        domain.mr_cnt = offer.mr_cnt;
        domain.caps = offer.caps;
        domain.ep_cnt = offer.extras.endpoints;
        domain.cntr_cnt = offer.extras.counters;
        domain.auth_key = info::bytes(wanted.auth_key.key.cast(), wanted.auth_key.size)?.cast();
        if !domain.auth_key.is_null() {
            domain.auth_key_size = wanted.auth_key.size;
        }
        if offer.extras.endpoints > 0 {
            let ep = &mut *fields.ep_attr;
            ep.type_ = EP_TYPE;
            ep.auth_key =
                info::bytes(wanted.ep_auth_key.key.cast(), wanted.ep_auth_key.size)?.cast();
            if !ep.auth_key.is_null() {
                ep.auth_key_size = wanted.ep_auth_key.size;
            }
        }
    }
    Ok(info)
}

/// The `kgetinfo` slot of a Rust provider. May sleep.
///
/// # Safety
///
/// Called by [`Query::ask`] only, with the arguments of `kfi_getinfo()`.
pub(crate) unsafe extern "C" fn of_provider<P: Provider>(
    _version: u32,
    node: *const c_char,
    service: *const c_char,
    flags: u64,
    hints: *mut kfi_info,
    info: *mut *mut kfi_info,
) -> c_int {
    // No provider written in Rust has addresses.
    if !node.is_null() || !service.is_null() {
        return Errno::ENODATA.to_c();
    }
    // SAFETY: Null or valid with all that it points to, as the C API demands.
    let wanted = unsafe { Hints::read(hints) };
    let mut found = Info::none();
    let collected = P::offers().and_then(|offers| {
        for offer in offers.iter().filter(|offer| wanted.met_by(P::NAME, offer)) {
            found.append(answer::<P>(offer, &wanted, flags)?);
            if flags & KFI_PROV_ATTR_ONLY != 0 {
                break;
            }
        }
        Ok(())
    });
    if let Err(errno) = collected {
        return errno.to_c();
    }
    if found.is_none() {
        return Errno::ENODATA.to_c();
    }
    // SAFETY: By the requirements of this function.
    unsafe { *info = found.into_raw() };
    0
}

crate::support::table::declared_in_c!(kfi_getinfo);
