// SPDX-License-Identifier: GPL-2.0

//! `kfi_getinfo()`, which parses the hints and asks every provider, and the allocation of infos.

use super::{
    guard,
    needs::{
        first,
        KindNeed,
        Mismatch,
        Needs,
        Stage, //
    },
    registry, //
};
use crate::{
    object::{
        domain::{
            DomainBody,
            DomainObject, //
        },
        fabric::{
            FabricBody,
            FabricObject, //
        },
        info::{
            info_ref,
            InfoChain, //
        },
        instances, //
    },
    prelude::*,
    provider::{
        fabric::{
            Capabilities,
            Offer,
            EP_TYPE, //
        },
        msg_ep, //
    },
    support::{
        c_ref::{
            self,
            name, //
        },
        strings::API_VERSION, //
    }, //
};
use kfi_bindings as c;

/// Collects the offers of all providers. If a provider fails or has no offer, the others are still
/// asked. Returns the failure only if no provider has an offer.
///
/// # Safety
///
/// The arguments must meet the requirements of [`kfi_getinfo`].
unsafe fn ask(
    version: u32,
    node: *const c_char,
    service: *const c_char,
    flags: u64,
    hints: *mut kfi_info,
) -> Result<InfoChain, Refusal> {
    if version > API_VERSION {
        let refusal = Refusal::new(Errno::ENOSYS, c"version newer than this one");
        return Err(refusal.value(u64::from(version)));
    }
    let unknown = flags & !(c::KFI_NUMERICHOST | c::KFI_PROV_ATTR_ONLY | c::KFI_SOURCE);
    if unknown != 0 {
        return Err(Refusal::new(Errno::EBADFLAGS, c"flag not supported").value(unknown));
    }
    if !hints.is_null() {
        // SAFETY: Hints are null, an error pointer, or valid, as the C API demands.
        unsafe { info_ref(hints) }?;
    }
    // SAFETY: Hints are null or valid with all that they point to, as the C API demands.
    let (wanted, opened) = unsafe { (hinted_provider(hints), opened(hints)) };
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
        let ret = unsafe { kgetinfo(version, node, service, flags, hints, &mut answer) };
        match ret {
            0 => {
                // SAFETY: On success, the provider has given the list to the caller.
                let mut answer = unsafe { InfoChain::from_raw(answer) };
                answer.set_api_version(match version {
                    0 => API_VERSION,
                    version => version,
                });
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
        return Refusal::new(Errno::EINVAL, c"output pointer is NULL").report(c"kfi_getinfo");
    }
    let _noio = NoIo::enter();
    // SAFETY: The arguments meet the requirements: the caller promises that for this call.
    let (ret, found) = match unsafe { ask(version, node, service, flags, hints) } {
        Ok(found) => (0, found.into_raw()),
        Err(refusal) => (refusal.report(c"kfi_getinfo"), ptr::null_mut()),
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
        Refusal::new(Errno::EINVAL, c"info is an error pointer").report(c"kfi_dupinfo");
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
        Refusal::new(Errno::EINVAL, c"info is an error pointer").report(c"kfi_freeinfo");
        return;
    }
    // SAFETY: `info` is no error pointer, so it is null or a list that the caller owns.
    drop(unsafe { InfoChain::from_raw(info) });
}

crate::support::table::declared_in_c!(kfi_allocinfo, kfi_dupinfo, kfi_freeinfo);

/// Atomic operations, by peers too.
pub(super) const ATOMIC: u64 = widen_u32(kfi_bindings::KFI_ATOMIC);

/// The formats of addresses that there are.
const FORMATS: [u32; 4] = [
    kfi_bindings::KFI_FORMAT_UNSPEC,
    kfi_bindings::KFI_SOCKADDR,
    kfi_bindings::KFI_SOCKADDR_IN,
    kfi_bindings::KFI_SOCKADDR_IN6,
];

/// The hints of a consumer, by name and in numbers. The default asks for nothing.
#[derive(Default)]
pub(crate) struct InfoHints<'a> {
    fabric: Option<&'a CStr>,
    domain: Option<&'a CStr>,
    /// The oldest version of the provider that will do.
    prov_version: u32,
    /// The addresses of open objects. If set, the consumer wants only their offers. An address may
    /// be invalid, so each use looks it up. With a reference to the object instead, `kfi_close()`
    /// of another task would fail.
    pub(super) opened_fabric: Option<NonNull<kfid_fabric>>,
    pub(super) opened_domain: Option<NonNull<kfid_domain>>,
    /// Authorization keys, to be handed back in the answer, and their sizes.
    pub(super) auth_key: Option<(NonNull<u8>, usize)>,
    pub(super) ep_auth_key: Option<(NonNull<u8>, usize)>,
    /// `KFI_PROGRESS_MANUAL` for transfers, which the answer repeats.
    pub(super) manual: bool,
    pub(super) needs: Needs,
}

impl<'a> InfoHints<'a> {
    /// Reads hints; null hints want nothing special. May sleep.
    ///
    /// # Safety
    ///
    /// `info` is null or valid with all that it points to, for `'a`.
    pub(crate) unsafe fn read(info: *const kfi_info) -> Self {
        // SAFETY: `info` is null or valid with all that it points to, as the caller promises.
        let Some(info) = (unsafe { info.as_ref() }) else {
            return Self::default();
        };
        // SAFETY: Each attribute is null or valid for `'a`, as the caller promises.
        let (fabric, domain, ep, tx, rx) = unsafe {
            (
                info.fabric_attr.as_ref(),
                info.domain_attr.as_ref(),
                info.ep_attr.as_ref(),
                info.tx_attr.as_ref(),
                info.rx_attr.as_ref(),
            )
        };
        // SAFETY: Each name is null or a string for `'a`, as the caller promises.
        let (fabric_name, domain_name) = unsafe {
            (
                fabric.and_then(|attr| name(attr.name)),
                domain.and_then(|attr| name(attr.name)),
            )
        };
        let mut needs = Needs {
            caps: info.caps,
            beyond: !FORMATS.contains(&info.addr_format),
            ..Needs::default()
        };
        domain.inspect(|attr| add_domain(&mut needs, attr));
        ep.inspect(|attr| add_ep(&mut needs, attr));
        tx.inspect(|attr| add_tx(&mut needs, attr));
        rx.inspect(|attr| add_rx(&mut needs, attr));
        Self {
            fabric: fabric_name,
            domain: domain_name,
            prov_version: fabric.map_or(0, |attr| attr.prov_version),
            opened_fabric: fabric.and_then(|attr| NonNull::new(attr.fabric)),
            opened_domain: domain.and_then(|attr| NonNull::new(attr.domain)),
            auth_key: domain
                .and_then(|attr| Some((NonNull::new(attr.auth_key)?, attr.auth_key_size))),
            ep_auth_key: ep
                .and_then(|attr| Some((NonNull::new(attr.auth_key)?, attr.auth_key_size))),
            manual: domain
                .is_some_and(|attr| attr.data_progress == c::kfi_progress_KFI_PROGRESS_MANUAL),
            needs,
        }
    }

    /// Checks whether an offer has all that the hints want. The error is the first property that it lacks.
    pub(super) fn check(
        &self,
        provider: &CStr,
        version: u32,
        offer: &Offer,
    ) -> Result<(), Mismatch> {
        let of = |fabric: &FabricObject| fabric.is(provider, &offer.fabric);
        let offered = |domain: &DomainObject| of(domain.parent()) && domain.is_offered(offer);
        let fabric_fits = self.opened_fabric.is_none_or(|fabric| {
            instances::with::<FabricBody, _>(fabric.as_ptr(), of) == Some(true)
        });
        let domain_fits = self.opened_domain.is_none_or(|domain| {
            instances::with::<DomainBody, _>(domain.as_ptr(), offered) == Some(true)
        });
        let other = |name: Option<&CStr>, of: &CStr| name.is_some_and(|name| name != of);
        first(
            Stage::Names,
            [
                (
                    self.prov_version > version,
                    c"fabric_attr->prov_version",
                    version.into(),
                ),
                (!fabric_fits, c"fabric_attr->fabric", 0),
                (
                    other(self.fabric, &offer.fabric),
                    c"a fabric of that name",
                    0,
                ),
                (
                    other(self.domain, &offer.domain),
                    c"a domain of that name",
                    0,
                ),
                (!domain_fits, c"what domain_attr->domain was opened with", 0),
            ],
        )?;
        self.needs.check(&Capabilities {
            caps: self.caps(offer),
            ..offer.capabilities()
        })
    }

    /// Returns the capabilities of an offer that the consumer gets.
    ///
    /// `KFI_ATOMIC` gives peers more than a registration asks for. So if the hints name an open
    /// domain, the consumer gets `KFI_ATOMIC` if that domain has it. Otherwise the consumer gets it
    /// if the hints name `KFI_ATOMIC`, or no capability.
    pub(crate) fn caps(&self, offer: &Offer) -> u64 {
        let named = self.opened_domain.and_then(|domain| {
            instances::with::<DomainBody, _>(domain.as_ptr(), |domain| domain.has_caps(ATOMIC))
        });
        match named.unwrap_or(self.needs.caps == 0 || self.needs.caps & ATOMIC != 0) {
            true => offer.caps,
            false => offer.caps & !ATOMIC,
        }
    }
}

fn add_domain(needs: &mut Needs, attr: &c::kfi_domain_attr) {
    needs.caps |= attr.caps;
    needs.mr_mode = Some(attr.mr_mode);
    needs.mr_key_size = attr.mr_key_size;
    needs.mr_iov_limit = attr.mr_iov_limit;
    needs.mr_cnt = attr.mr_cnt;
    needs.beyond |= attr.av_type != kfi_bindings::kfi_av_type_KFI_AV_UNSPEC
        || !matches!(
            attr.tclass,
            kfi_bindings::KFI_TC_UNSPEC | kfi_bindings::KFI_TC_BEST_EFFORT
        )
        || attr.max_ep_stx_ctx != 0
        || attr.max_ep_tx_ctx > 1
        || attr.max_ep_rx_ctx > 1;
    needs.msg.cq_data_size = attr.cq_data_size;
    needs.msg.shared = needs.msg.shared.max(attr.max_ep_srx_ctx);
    let extras = &mut needs.extras;
    extras.endpoints = extras.endpoints.max(attr.ep_cnt);
    extras.counters = attr.cntr_cnt;
    extras.queues = attr.cq_cnt;
    extras.auth_key = extras.auth_key.max(attr.auth_key_size);
}

fn add_ep(needs: &mut Needs, attr: &c::kfi_ep_attr) {
    let extras = &mut needs.extras;
    match attr.type_ {
        kfi_bindings::kfi_ep_type_KFI_EP_UNSPEC => (),
        EP_TYPE => {
            extras.endpoints = extras.endpoints.max(1);
            needs.kind = KindNeed::Bare;
        }
        kfi_bindings::kfi_ep_type_KFI_EP_MSG => needs.kind = KindNeed::Msg,
        _ => needs.beyond = true,
    }
    extras.auth_key = extras.auth_key.max(attr.auth_key_size);
    needs.msg.max_msg_size = attr.max_msg_size;
    needs.beyond |= attr.protocol != 0 || attr.tx_ctx_cnt > 1;
    match attr.rx_ctx_cnt {
        0 | 1 => (),
        // KFI_SHARED_CONTEXT
        usize::MAX => needs.msg.shared = needs.msg.shared.max(1),
        _ => needs.beyond = true,
    }
}

fn add_tx(needs: &mut Needs, attr: &c::kfi_tx_attr) {
    needs.caps |= attr.caps;
    let msg = &mut needs.msg;
    msg.inject_size = attr.inject_size;
    msg.tx_size = attr.size;
    msg.iov_limit = msg.iov_limit.max(attr.iov_limit);
    msg.rma_iov_limit = attr.rma_iov_limit;
    let dscp = msg_ep::dscp(attr.tclass);
    msg.tclass = dscp.ok().flatten().and(Some(attr.tclass));
    needs.beyond |= dscp.is_err();
}

fn add_rx(needs: &mut Needs, attr: &c::kfi_rx_attr) {
    needs.caps |= attr.caps;
    needs.beyond |= attr.total_buffered_recv != 0;
    needs.msg.rx_size = attr.size;
    needs.msg.iov_limit = needs.msg.iov_limit.max(attr.iov_limit);
}
