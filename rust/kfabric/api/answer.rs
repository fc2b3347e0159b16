// SPDX-License-Identifier: GPL-2.0

//! What providers written in Rust answer to `kfi_getinfo()`.

use super::{
    address,
    hints::{
        InfoHints,
        ATOMIC, //
    },
    lack::Mismatch, //
};
use crate::{
    object::{
        domain::DomainObject,
        fabric::FabricObject,
        info::{
            bytes,
            string,
            Info, //
        },
        instances, //
    },
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
        errno::Errno,
        num::widen_u32,
        refusal::Refusal,
        sockaddr, //
    }, //
};
use core::ptr;
use kernel::{
    ffi::{
        c_char,
        c_int, //
    },
    prelude::*, //
};
use kfi_bindings::{
    kfi_info,
    KFI_PROV_ATTR_ONLY, //
};

/// An offer as C has it.
fn answer<P: Provider>(offer: &Offer, wanted: &InfoHints<'_>, flags: u64) -> Result<Info, Errno> {
    let mut info = Info::new()?;
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
        fabric.fabric = match wanted.opened_fabric.as_ptr() {
            none if none.is_null() => {
                instances::first(|fabric: &FabricObject| fabric.is(P::NAME, &offer.fabric))
            }
            named => named,
        };
        fields.caps = wanted.caps(offer);
        let domain = &mut *fields.domain_attr;
        domain.name = string(offer.domain.as_char_ptr())?;
        domain.domain = match wanted.opened_domain.as_ptr() {
            none if none.is_null() => {
                let atomic = fields.caps & ATOMIC;
                instances::first(|domain: &DomainObject| {
                    ptr::eq(domain.parent().as_ptr(), fabric.fabric)
                        && domain.is_named(&offer.domain)
                        && domain.is_offered(offer)
                        && domain.has_caps(atomic)
                })
            }
            named => named,
        };
        domain.threading = kfi_bindings::kfi_threading_KFI_THREAD_SAFE;
        domain.control_progress = kfi_bindings::kfi_progress_KFI_PROGRESS_AUTO;
        domain.data_progress = kfi_bindings::kfi_progress_KFI_PROGRESS_AUTO;
        domain.resource_mgmt = kfi_bindings::kfi_resource_mgmt_KFI_RM_ENABLED;
        domain.mr_mode = offer.mr_mode;
        domain.mr_key_size = offer.mr_key_size;
        domain.mr_iov_limit = offer.mr_iov_limit;
        domain.mr_cnt = offer.mr_cnt;
        domain.caps = fields.caps;
        domain.ep_cnt = offer.extras.endpoints;
        domain.cntr_cnt = offer.extras.counters;
        domain.cq_cnt = offer.extras.queues;
        domain.auth_key = bytes(wanted.auth_key.key.cast(), wanted.auth_key.size)?.cast();
        if !domain.auth_key.is_null() {
            domain.auth_key_size = wanted.auth_key.size;
        }
        if let Some(msg) = &offer.msg {
            answer_msg(fields, msg)?;
        }
        if offer.extras.endpoints > 0 {
            let ep = &mut *fields.ep_attr;
            if offer.msg.is_none() {
                ep.type_ = EP_TYPE;
            }
            ep.auth_key = bytes(wanted.ep_auth_key.key.cast(), wanted.ep_auth_key.size)?.cast();
            if !ep.auth_key.is_null() {
                ep.auth_key_size = wanted.ep_auth_key.size;
            }
        }
    }
    Ok(info)
}

/// What connected endpoints are, as C has it.
///
/// # Safety
///
/// The info has all its attributes.
unsafe fn answer_msg(fields: &mut kfi_info, msg: &MsgOffer) -> Result<(), Errno> {
    let limits = &msg.limits;
    // SAFETY: By the requirements of this function.
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
    tx.size = limits.tx_size;
    tx.inject_size = limits.inject_size;
    tx.iov_limit = limits.local.segments;
    tx.rma_iov_limit = limits.remote_pieces;
    rx.caps = fields.caps;
    rx.size = limits.rx_size;
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
    (fields.src_addr, fields.src_addrlen) = address::copy(source)?;
    (fields.dest_addr, fields.dest_addrlen) = address::copy(peer)?;
    Ok(())
}

/// Why a provider has nothing: what the offer lacks that comes closest, if there is one.
fn nothing(ends: &Ends, closest: Option<Mismatch>) -> Refusal {
    let why = match ends.is_none() {
        true => c"the provider has no device",
        false => c"no device of the provider has that address, or leads there",
    };
    closest.map_or(Refusal::new(Errno::ENODATA, why), |lack| lack.refusal())
}

/// The `kgetinfo` slot of a Rust provider. One that has nothing says why.
///
/// # Safety
///
/// Called by `kfi_getinfo()` only, with its arguments.
pub(crate) unsafe extern "C" fn of_provider<P: Provider>(
    _version: u32,
    node: *const c_char,
    service: *const c_char,
    flags: u64,
    hints: *mut kfi_info,
    info: *mut *mut kfi_info,
) -> c_int {
    // SAFETY: Null or valid with all that they point to, as the C API demands.
    let (wanted, ends) = unsafe {
        (
            InfoHints::read(hints),
            address::ends(node, service, flags, hints),
        )
    };
    let ends = match ends {
        Ok(ends) => ends,
        Err(refusal) => return refusal.report(),
    };
    let mut found = Info::none();
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
        return nothing(&ends, closest).report();
    }
    // SAFETY: By the requirements of this function.
    unsafe { *info = found.into_raw() };
    0
}
