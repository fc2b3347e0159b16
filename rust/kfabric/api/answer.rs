// SPDX-License-Identifier: GPL-2.0

//! What providers written in Rust answer to `kfi_getinfo()`.

use super::{
    hints::Hints,
    info::{
        memory::{
            bytes,
            string, //
        },
        Info, //
    }, //
};
use crate::{
    provider::{
        offer::{
            Offer,
            EP_TYPE, //
        },
        Provider, //
    },
    support::errno::Errno, //
};
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
fn answer<P: Provider>(offer: &Offer, wanted: &Hints<'_>, flags: u64) -> Result<Info, Errno> {
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
        fabric.fabric = wanted.opened_fabric.as_ptr();
        fields.caps = offer.caps;
        let domain = &mut *fields.domain_attr;
        domain.name = string(offer.domain.as_char_ptr())?;
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
        domain.auth_key = bytes(wanted.auth_key.key.cast(), wanted.auth_key.size)?.cast();
        if !domain.auth_key.is_null() {
            domain.auth_key_size = wanted.auth_key.size;
        }
        if offer.extras.endpoints > 0 {
            let ep = &mut *fields.ep_attr;
            ep.type_ = EP_TYPE;
            ep.auth_key = bytes(wanted.ep_auth_key.key.cast(), wanted.ep_auth_key.size)?.cast();
            if !ep.auth_key.is_null() {
                ep.auth_key_size = wanted.ep_auth_key.size;
            }
        }
    }
    Ok(info)
}

/// The `kgetinfo` slot of a Rust provider.
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
