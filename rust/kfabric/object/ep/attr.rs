// SPDX-License-Identifier: GPL-2.0

//! What a consumer asks of a new endpoint.

use super::msg::OpFlags;
use crate::{
    object::domain::DomainObject,
    post::flags::PostFlags,
    provider::{
        msg_ep::MsgLimits,
        offer::EP_TYPE, //
    },
    region::auth_key::AuthKey,
    support::{
        errno::Errno,
        num::widen,
        refusal::Refusal,
        sockaddr, //
    }, //
};
use core::{
    net::SocketAddr,
    ptr, //
};
use kernel::prelude::*;
use kfi_bindings::{
    kfi_ep_type_KFI_EP_MSG as EP_MSG,
    kfi_ep_type_KFI_EP_UNSPEC as EP_UNSPEC,
    kfi_info, //
};

/// A kind of endpoint.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EpKind {
    /// It transfers nothing.
    Bare,
    /// It is connected.
    Msg,
}

/// Returns what kind of endpoint is asked for. Any context.
///
/// # Errors
///
/// - `ENODATA`: the domain has none of that kind.
/// - `ENOSYS`: it has none at all, or none of a kind that needn't be asked for.
pub(super) fn kind(domain: &DomainObject, info: &kfi_info) -> Result<EpKind, Refusal> {
    // SAFETY: As the C API demands, the attributes are null or valid for the call.
    let asked = unsafe { info.ep_attr.as_ref() }.map_or(EP_UNSPEC, |attr| attr.type_);
    let has_bare = domain.provider().endpoints();
    let has_msg = domain.provider().msg_limits().is_some();
    match asked {
        _ if !has_bare && !has_msg => Err(Refusal::new(
            Errno::ENOSYS,
            c"the provider has no endpoints",
        )),
        // It is to answer a request.
        EP_UNSPEC if has_msg && !info.handle.is_null() => Ok(EpKind::Msg),
        EP_UNSPEC | EP_TYPE if has_bare => Ok(EpKind::Bare),
        EP_MSG if has_msg => Ok(EpKind::Msg),
        // As it was offered.
        EP_UNSPEC => Err(Refusal::new(
            Errno::ENOSYS,
            c"the info is of an offer without endpoints",
        )),
        _ => {
            let refusal = Refusal::new(Errno::ENODATA, c"no endpoints of that kind");
            Err(refusal.value(u64::from(asked)))
        }
    }
}

/// A copy of the endpoint's authorization key or else of the domain's, empty if there is neither. May
/// sleep.
pub(super) fn auth_key(domain: &DomainObject, info: &kfi_info) -> Result<KVec<u8>, Refusal> {
    // SAFETY: As the C API demands, the attributes are null or valid for the call.
    let attr = unsafe { info.ep_attr.as_ref() };
    let (key, len) = attr.map_or((ptr::null_mut(), 0), |attr| {
        (attr.auth_key, attr.auth_key_size)
    });
    // SAFETY: As the C API demands, the key has that many bytes.
    let key = unsafe { AuthKey::from_raw(key, len) };
    let key = key.or(domain.auth_key()).parse(domain.mr_limits())?;
    let mut copy = KVec::new();
    copy.extend_from_slice(key.unwrap_or(&[]), GFP_KERNEL)?;
    Ok(copy)
}

/// What is asked of an endpoint that is to be connected.
pub(super) struct MsgAsked {
    pub(super) tx_size: usize,
    pub(super) rx_size: usize,
    /// Its receives are those of a context that it shares.
    pub(super) shares: bool,
    pub(super) op_flags: OpFlags,
    pub(super) source: Option<SocketAddr>,
    pub(super) peer: Option<SocketAddr>,
}

/// Reads what an info asks of an endpoint that is to be connected. Any context.
///
/// # Errors
///
/// - `ENODATA`: more than the domain can do.
/// - `EBADFLAGS`: default flags that make no sense.
/// - `EINVAL`: an address that is none.
pub(super) fn msg(limits: &MsgLimits, info: &kfi_info) -> Result<MsgAsked, Refusal> {
    // SAFETY: As the C API demands, the attributes are null or valid for the call.
    let (tx, rx) = unsafe { (info.tx_attr.as_ref(), info.rx_attr.as_ref()) };
    let op_flags = OpFlags {
        transmit: tx.map_or(0, |attr| attr.op_flags),
        receive: rx.map_or(0, |attr| attr.op_flags),
    };
    PostFlags::parse(op_flags.transmit, PostFlags::TRANSMIT)?;
    PostFlags::parse(op_flags.receive, PostFlags::RECEIVE)?;
    if let Some(tx) = tx {
        within(tx.inject_size, limits.inject_size)?;
        within(tx.iov_limit, limits.local.segments)?;
        within(tx.rma_iov_limit, limits.remote_pieces)?;
    }
    if let Some(rx) = rx {
        within(rx.iov_limit, limits.local.segments)?;
    }
    // SAFETY: As for the others.
    let contexts = unsafe { info.ep_attr.as_ref() }.map_or(0, |attr| attr.rx_ctx_cnt);
    let shares = contexts == usize::MAX;
    if shares && limits.shared_size == 0 {
        let why = c"endpoints share no receives";
        return Err(Refusal::new(Errno::ENODATA, why));
    }
    Ok(MsgAsked {
        shares,
        tx_size: within(tx.map_or(0, |attr| attr.size), limits.tx_size)?,
        rx_size: match shares {
            true => 0,
            false => within(rx.map_or(0, |attr| attr.size), limits.rx_size)?,
        },
        op_flags,
        // SAFETY: As the C API demands, addresses are null or as long as they are said to be.
        source: unsafe { sockaddr::read_any(info.src_addr, info.src_addrlen) }?,
        // SAFETY: As for the source.
        peer: unsafe { sockaddr::read_any(info.dest_addr, info.dest_addrlen) }?,
    })
}

/// How many a consumer gets who asks for so many: 0 asks for as many as there are.
pub(super) fn within(asked: usize, limit: usize) -> Result<usize, Refusal> {
    match asked {
        0 => Ok(limit),
        asked if asked <= limit => Ok(asked),
        asked => {
            let refusal = Refusal::new(Errno::ENODATA, c"more than an endpoint can do");
            Err(refusal.value(widen(asked)))
        }
    }
}
