// SPDX-License-Identifier: GPL-2.0

//! Providers written in Rust: their registration, and their answers to `kfi_getinfo()`.
//!
//! A consumer asks for addresses by node and service, or by the addresses of its hints.

use super::{
    getinfo::{
        InfoHints,
        ATOMIC, //
    },
    needs::{
        Mismatch,
        MsgNeeds, //
    },
    registry::{
        __kfi_provider_register,
        kfi_provider_deregister, //
    }, //
};
use crate::{
    object::{
        domain::DomainObject,
        fabric::{
            self,
            FabricObject, //
        },
        info::{
            bytes,
            string,
            InfoChain, //
        },
        instances, //
    },
    prelude::*,
    provider::{
        fabric::{
            Ends,
            MsgOffer,
            Offer,
            EP_TYPE, //
        },
        Provider, //
    },
    support::{
        c_ref::c_ref,
        module::{
            this_module,
            Owner, //
        },
        sockaddr::{
            self,
            RawAddress, //
        }, //
    }, //
};
use kernel::{
    error::to_result,
    types::Opaque, //
};
use kfi_bindings::{
    kfi_provider,
    KFI_PROV_ATTR_ONLY,
    KFI_SOURCE, //
};

/// Returns an offer as C has it.
fn answer<P: Provider>(
    offer: &Offer,
    wanted: &InfoHints<'_>,
    flags: u64,
) -> Result<InfoChain, Errno> {
    let mut info = InfoChain::new()?;
    let Some(fields) = info.fields_mut() else {
        return Err(Errno::ENOMEM);
    };
    // SAFETY: A new info has all its attributes, names are strings, and keys have their bytes.
    unsafe {
        let fabric = &mut *fields.fabric_attr;
        fabric.prov_name = string(P::NAME.as_char_ptr())?;
        fabric.prov_version = P::VERSION;
        if flags & KFI_PROV_ATTR_ONLY != 0 {
            return Ok(info);
        }
        fabric.name = string(offer.fabric.as_char_ptr())?;
        fabric.fabric = match wanted.opened_fabric {
            None => instances::first(|fabric: &FabricObject| fabric.is(P::NAME, &offer.fabric)),
            Some(named) => named.as_ptr(),
        };
        fields.caps = wanted.caps(offer);
        let domain = &mut *fields.domain_attr;
        domain.name = string(offer.domain.as_char_ptr())?;
        domain.domain = match wanted.opened_domain {
            None => {
                let atomic = fields.caps & ATOMIC;
                instances::first(|domain: &DomainObject| {
                    ptr::eq(domain.parent().as_ptr(), fabric.fabric)
                        && domain.is_named(&offer.domain)
                        && domain.is_offered(offer)
                        && domain.has_caps(atomic)
                })
            }
            Some(named) => named.as_ptr(),
        };
        domain.threading = kfi_bindings::kfi_threading_KFI_THREAD_SAFE;
        domain.control_progress = kfi_bindings::kfi_progress_KFI_PROGRESS_AUTO;
        domain.data_progress = match wanted.manual {
            true => kfi_bindings::kfi_progress_KFI_PROGRESS_MANUAL,
            false => kfi_bindings::kfi_progress_KFI_PROGRESS_AUTO,
        };
        domain.resource_mgmt = kfi_bindings::kfi_resource_mgmt_KFI_RM_ENABLED;
        domain.mr_mode = offer.mr_mode;
        domain.mr_key_size = offer.mr_key_size;
        domain.mr_iov_limit = offer.mr_iov_limit;
        domain.mr_cnt = offer.mr_cnt;
        domain.caps = fields.caps;
        domain.ep_cnt = offer.extras.endpoints;
        domain.cntr_cnt = offer.extras.counters;
        domain.cq_cnt = offer.extras.queues;
        if let Some((key, size)) = wanted.auth_key {
            domain.auth_key = bytes(key.as_ptr().cast(), size)?.cast();
            domain.auth_key_size = size;
        }
        if let Some(msg) = &offer.msg {
            answer_msg(fields, msg, &wanted.needs.msg)?;
        }
        if offer.extras.endpoints > 0 {
            let ep = &mut *fields.ep_attr;
            if offer.msg.is_none() {
                ep.type_ = EP_TYPE;
            }
            if let Some((key, size)) = wanted.ep_auth_key {
                ep.auth_key = bytes(key.as_ptr().cast(), size)?.cast();
                ep.auth_key_size = size;
            }
        }
    }
    Ok(info)
}

/// Fills in the attributes of connected endpoints.
///
/// # Safety
///
/// The info has all its attributes.
unsafe fn answer_msg(fields: &mut kfi_info, msg: &MsgOffer, needs: &MsgNeeds) -> Result<(), Errno> {
    let limits = &msg.limits;
    // SAFETY: The attributes are valid, as the caller promises, and four different objects.
    let (ep, tx, rx, domain) = unsafe {
        (
            &mut *fields.ep_attr,
            &mut *fields.tx_attr,
            &mut *fields.rx_attr,
            &mut *fields.domain_attr,
        )
    };
    ep.type_ = kfi_bindings::kfi_ep_type_KFI_EP_MSG;
    ep.max_msg_size = usize::try_from(limits.local.bytes).unwrap_or(usize::MAX);
    (ep.tx_ctx_cnt, ep.rx_ctx_cnt) = (1, 1);
    tx.caps = fields.caps;
    let size_of = |needed, limit| if needed > 0 { needed } else { limit };
    tx.size = size_of(needs.tx_size, limits.tx_size);
    tx.tclass = needs.tclass.unwrap_or_default();
    tx.inject_size = limits.inject_size;
    tx.iov_limit = limits.local.segments;
    tx.rma_iov_limit = limits.remote_pieces;
    rx.caps = fields.caps;
    rx.size = size_of(needs.rx_size, needs.rx_limit(limits));
    rx.iov_limit = limits.local.segments;
    let order = widen_u32(kfi_bindings::KFI_ORDER_STRICT);
    (tx.msg_order, rx.msg_order) = (order, order);
    domain.cq_data_size = limits.cq_data_size;
    (domain.max_ep_tx_ctx, domain.max_ep_rx_ctx) = (1, 1);
    domain.max_ep_srx_ctx = usize::from(limits.shared_size > 0);
    let Ends { source, peer } = msg.ends;
    if let Some(known) = source.or(peer) {
        fields.addr_format = sockaddr::format_of(&known);
    }
    (fields.src_addr, fields.src_addrlen) = copy(source)?;
    (fields.dest_addr, fields.dest_addrlen) = copy(peer)?;
    Ok(())
}

/// Returns the reason why a provider has nothing: the property that its closest offer lacks, if
/// there is one.
fn nothing(ends: &Ends, closest: Option<Mismatch>) -> Refusal {
    let why = match ends.is_none() {
        true => c"the provider has no device",
        false => c"no device of the provider has that address, or leads there",
    };
    closest.map_or(Refusal::new(Errno::ENODATA, why), |lack| lack.refusal())
}

/// Implements the slot `kgetinfo` of a Rust provider. A provider without an offer says why.
///
/// # Safety
///
/// Only `kfi_getinfo()` may call this, with its own arguments.
pub(crate) unsafe extern "C" fn of_provider<P: Provider>(
    _version: u32,
    node: *const c_char,
    service: *const c_char,
    flags: u64,
    hints: *mut kfi_info,
    info: *mut *mut kfi_info,
) -> c_int {
    // SAFETY: Null or valid with all that they point to, as the C API demands.
    let (wanted, ends) = unsafe { (InfoHints::read(hints), ends(node, service, flags, hints)) };
    let ends = match ends {
        Ok(ends) => ends,
        Err(refusal) => return refusal.report_of(c"kfi_getinfo", P::NAME),
    };
    let mut found = InfoChain::none();
    let mut closest: Option<Mismatch> = None;
    let collected = P::offers(&ends).and_then(|offers| {
        for offer in offers.iter() {
            if let Err(lack) = wanted.check(P::NAME, P::VERSION, offer) {
                if closest.is_none_or(|closest| lack.is_closer(&closest)) {
                    closest = Some(lack);
                }
                continue;
            }
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
        return nothing(&ends, closest).report_of(c"kfi_getinfo", P::NAME);
    }
    // SAFETY: `kfi_getinfo()` passes a valid `info`.
    unsafe { *info = found.into_raw() };
    0
}

/// A provider written in Rust, registered as long as this lives.
///
/// Open fabrics keep the provider's module. If this was forgotten, the provider is deregistered when
/// its module has been unloaded but for its code, and the log says so.
///
/// # Invariants
///
/// `c` is registered and stays where it is.
pub struct Registration<P: Provider> {
    // Opaque, since the registry and other modules count references in it.
    c: KBox<Opaque<kfi_provider>>,
    _provider: PhantomData<fn() -> P>,
}

// SAFETY: Deregistering may be done by any thread.
unsafe impl<P: Provider> Send for Registration<P> {}
// SAFETY: There is nothing to do with a shared one.
unsafe impl<P: Provider> Sync for Registration<P> {}

impl<P: Provider> Registration<P> {
    /// Registers the provider, which belongs to the module that calls this. May sleep.
    ///
    /// Fails with `EEXIST` if there is one of that name, as new or newer.
    pub fn new() -> Result<Self> {
        let c = KBox::new(
            Opaque::new(kfi_provider {
                version: P::VERSION,
                kfi_version: crate::support::strings::API_VERSION,
                name: P::NAME.as_char_ptr(),
                kgetinfo: Some(of_provider::<P>),
                kfabric: Some(fabric::open::of_provider::<P>),
                ..pin_init::zeroed()
            }),
            GFP_KERNEL,
        )?;
        may_be_forgotten(&c);
        // The two functions were made of the provider's type here, so this is where they are.
        let owner = this_module!().map_or(ptr::null_mut(), Owner::as_ptr);
        // SAFETY: `c` lives, where it is, until `drop` has deregistered it.
        let ret = unsafe { __kfi_provider_register(c.get(), owner) };
        to_result(ret)?;
        // INVARIANT: Just registered.
        Ok(Self {
            c,
            _provider: PhantomData,
        })
    }
}

/// Has kmemleak not report a provider. The core forgets one whose registration was forgotten, but
/// its memory is not the core's to free. Here, and not in what other modules compile, since only
/// the core has the helper.
#[inline(never)]
fn may_be_forgotten(c: &KBox<Opaque<kfi_provider>>) {
    // SAFETY: A box is an allocation of its own.
    unsafe { kfi_bindings::kfi_helper_not_leak(c.get().cast()) };
}

impl<P: Provider> Drop for Registration<P> {
    fn drop(&mut self) {
        // SAFETY: Registered, by the invariant.
        unsafe { kfi_provider_deregister(self.c.get()) };
    }
}

/// Returns the addresses that a call of `kfi_getinfo()` asks for: node and service, else the hints.
///
/// # Errors
///
/// - `ENODATA`: node and service are no address.
/// - `EINVAL`: the hints have an invalid address.
///
/// # Safety
///
/// Each pointer is null or valid with all that it points to.
pub(super) unsafe fn ends(
    node: *const c_char,
    service: *const c_char,
    flags: u64,
    hints: *const kfi_info,
) -> Result<Ends, Refusal> {
    let mut ends = Ends::default();
    // SAFETY: `hints` is null or valid, as the caller promises.
    if let Some(hints) = unsafe { c_ref(hints) } {
        // SAFETY: The addresses of the hints are null or have their lengths, as the caller
        // promises.
        unsafe {
            ends.source = sockaddr::read_any(hints.src_addr, hints.src_addrlen)?;
            ends.peer = sockaddr::read_any(hints.dest_addr, hints.dest_addrlen)?;
        }
    }
    if !node.is_null() || !service.is_null() {
        let unknown = Refusal::new(Errno::ENODATA, c"no address in digits, or no port");
        // SAFETY: `node` and `service` are null or strings, as the caller promises.
        let named = Some(unsafe { sockaddr::parse(node, service) }.ok_or(unknown)?);
        match flags & KFI_SOURCE {
            0 => ends.peer = named,
            _ => ends.source = named,
        }
    }
    Ok(ends)
}

/// Copies an address for an info; returns null and 0 for none.
pub(crate) fn copy(address: Option<SocketAddr>) -> Result<(*mut c_void, usize), Errno> {
    match address.map(RawAddress::new) {
        None => Ok((ptr::null_mut(), 0)),
        Some((raw, len)) => {
            // SAFETY: `raw` has `len` bytes.
            Ok((unsafe { bytes((&raw const raw).cast(), len) }?, len))
        }
    }
}
