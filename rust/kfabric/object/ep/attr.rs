// SPDX-License-Identifier: GPL-2.0

//! What a consumer asks of a new endpoint.

use crate::{
    object::domain::DomainObject,
    provider::offer::EP_TYPE,
    region::auth_key::AuthKey,
    support::{
        errno::Errno,
        refusal::Refusal, //
    }, //
};
use core::ptr;
use kernel::prelude::*;
use kfi_bindings::{
    kfi_ep_type_KFI_EP_UNSPEC as EP_UNSPEC,
    kfi_info, //
};

/// Checks what the info asks for. Gives a copy of the endpoint's authorization key or else of the
/// domain's, empty if there is neither. May sleep.
pub(super) fn parse(domain: &DomainObject, info: &kfi_info) -> Result<KVec<u8>, Refusal> {
    // SAFETY: As the C API demands, the attributes are null or valid for the call.
    let attr = unsafe { info.ep_attr.as_ref() };
    let (kind, key, len) = attr.map_or((EP_UNSPEC, ptr::null_mut(), 0), |attr| {
        (attr.type_, attr.auth_key, attr.auth_key_size)
    });
    if !matches!(kind, EP_UNSPEC | EP_TYPE) {
        let refusal = Refusal::new(Errno::ENODATA, c"no endpoints of that kind");
        return Err(refusal.value(u64::from(kind)));
    }
    if !info.handle.is_null() {
        return Err(Refusal::new(Errno::EINVAL, c"not a connection request"));
    }
    // SAFETY: As the C API demands, the key has that many bytes.
    let key = unsafe { AuthKey::from_raw(key, len) };
    let key = key.or(domain.auth_key()).parse(domain.mr_limits())?;
    let mut copy = KVec::new();
    copy.extend_from_slice(key.unwrap_or(&[]), GFP_KERNEL)?;
    Ok(copy)
}
