// SPDX-License-Identifier: GPL-2.0

//! `kfi_endpoint()` and `kfi_srx_context()`.

use super::{
    atomic,
    msg_ep::{
        Msg,
        MsgEpInit,
        OpFlags, //
    },
    msg_rma,
    ops,
    srx::{
        SrxBody,
        SrxObject, //
    },
    EndpointBody,
    EndpointObject, //
};
use crate::{
    object::{
        domain::DomainObject,
        endpoint_mrs::EndpointMrs,
        info::{
            info_ref,
            within, //
        },
        mr::close::take_down,
        pep::requests,
        prelude::*, //
    },
    provider::{
        fabric::EP_TYPE,
        msg_ep::{
            dscp,
            MsgEpRequest, //
        }, //
    }, //
};
use kfi_bindings::{
    kfi_ep_type_KFI_EP_MSG as EP_MSG,
    kfi_ep_type_KFI_EP_UNSPEC as EP_UNSPEC, //
};

/// Creates the connected part of an endpoint, which is going to be at `ep`. May sleep.
fn make_msg(
    domain: &DomainObject,
    info: &kfi_info,
    ties: &Arc<EndpointMrs>,
    ep: *mut kfid_ep,
    context: *mut c_void,
) -> Result<Msg, Refusal> {
    let provider = domain.provider();
    let limits = provider.msg_limits().ok_or(Errno::ENOSYS)?;
    let attr = msg_attr(limits, info)?;
    let events = Arc::pin_init(ConnEvents::new(), GFP_KERNEL).map_err(|_| Errno::ENOMEM)?;
    let imp = provider.open_ep(MsgEpRequest {
        tx_size: attr.tx_size,
        rx_size: attr.rx_size,
        shares: attr.shares,
        source: attr.source,
        endpoint: ties.endpoint.clone(),
        answers: requests::take(info.handle)?,
        events: events.clone(),
    })?;
    let init = MsgEpInit {
        fid: ep.cast(),
        context,
        op_flags: attr.op_flags,
        shares: attr.shares,
        dscp: attr.dscp,
        peer: attr.peer,
        answers: !info.handle.is_null(),
    };
    Msg::new(imp, events, ties.clone(), *limits, init)
}

/// Returns the C structure of an endpoint or of a shared receive context.
fn c_part(fid: kfid) -> kfid_ep {
    kfid_ep {
        fid,
        ops: ops::EP.as_ptr(),
        cm: ops::CM.as_ptr(),
        msg: msg_rma::MSG.as_ptr(),
        rma: msg_rma::RMA.as_ptr(),
        tagged: ops::TAGGED.as_ptr(),
        atomic: atomic::ATOMIC.as_ptr(),
    }
}

/// Creates an endpoint of a domain, which is going to be at `ep`. May sleep.
///
/// # Safety
///
/// `info` is null, an error pointer, or valid for the call with all that it points to.
unsafe fn make(
    domain: &DomainObject,
    info: *const kfi_info,
    ep: *mut kfid_ep,
    context: *mut c_void,
) -> Result<(kfid_ep, EndpointBody), Refusal> {
    // SAFETY: `info` is null, an error pointer, or valid for the call.
    let info = unsafe { info_ref(info) }?;
    let kind = kind(domain, info)?;
    let auth_key = auth_key(domain, info)?;
    let endpoint = Arc::pin_init(EpCore::new(auth_key), GFP_KERNEL).map_err(|_| Errno::ENOMEM)?;
    let ties = EndpointMrs::new(&endpoint, take_down)?;
    let msg = match kind {
        EpKind::Msg => Some(make_msg(domain, info, &ties, ep, context)?),
        EpKind::Bare if !info.handle.is_null() => {
            return Err(Refusal::new(Errno::EINVAL, c"not a connection request"));
        }
        EpKind::Bare => None,
    };
    let c = c_part(EndpointObject::fid(context));
    let body = EndpointBody {
        endpoint,
        ties,
        msg,
    };
    Ok((c, body))
}

/// Opens an endpoint: the `endpoint` slot of a domain. May sleep.
///
/// # Safety
///
/// - `domain` is null or an open object.
/// - `info` is null, an error pointer, or valid for the call with all that it points to.
/// - `ep` is null or valid for writes.
pub(crate) unsafe extern "C" fn open(
    domain: *mut kfid_domain,
    info: *mut kfi_info,
    ep: *mut *mut kfid_ep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: `domain` is null or open, and begins with its fid. `ep` is null or valid for writes. `info` is
    // null, an error pointer, or valid for the call.
    unsafe {
        opening::open(domain.cast(), c"endpoint", ep, |domain, ep| {
            make(domain, info, ep, context)
        })
    }
}

/// A kind of endpoint.
enum EpKind {
    /// An endpoint without a connection, which memory regions are bound to.
    Bare,
    /// A connected endpoint.
    Msg,
}

/// Returns the kind of endpoint that an info requests. Any context.
///
/// # Errors
///
/// - `ENODATA`: the domain has no endpoints of that kind.
/// - `ENOSYS`: the domain has no endpoints, or the info requests no kind and the domain has no bare ones.
fn kind(domain: &DomainObject, info: &kfi_info) -> Result<EpKind, Refusal> {
    // SAFETY: The attributes are null or valid for the call, as `info` is.
    let asked = unsafe { info.ep_attr.as_ref() }.map_or(EP_UNSPEC, |attr| attr.type_);
    let has_bare = domain.provider().endpoints();
    let has_msg = domain.provider().msg_limits().is_some();
    match asked {
        _ if !has_bare && !has_msg => Err(Refusal::new(
            Errno::ENOSYS,
            c"the provider has no endpoints",
        )),
        // The endpoint is going to accept a connection request.
        EP_UNSPEC if has_msg && !info.handle.is_null() => Ok(EpKind::Msg),
        EP_UNSPEC | EP_TYPE if has_bare => Ok(EpKind::Bare),
        EP_MSG if has_msg => Ok(EpKind::Msg),
        // The info describes an offer without endpoints.
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

/// Returns a copy of the authorization key of the endpoint, or else of the domain. The copy is empty if
/// neither has a key. May sleep.
fn auth_key(domain: &DomainObject, info: &kfi_info) -> Result<KVec<u8>, Refusal> {
    // SAFETY: The attributes are null or valid for the call, as `info` is.
    let attr = unsafe { info.ep_attr.as_ref() };
    let (key, len) = attr.map_or((ptr::null_mut(), 0), |attr| {
        (attr.auth_key, attr.auth_key_size)
    });
    // SAFETY: `key` is null or has `len` bytes for the call.
    let key = unsafe { AuthKey::from_raw(key, len) };
    let key = key.or(&domain.auth_key).parse(&domain.mr_limits)?;
    let mut copy = KVec::new();
    copy.extend_from_slice(key.unwrap_or(&[]), GFP_KERNEL)?;
    Ok(copy)
}

/// The requested attributes of a connected endpoint.
struct MsgEpAttr {
    tx_size: usize,
    rx_size: usize,
    /// The endpoint takes its receives from a shared context.
    shares: bool,
    op_flags: OpFlags,
    source: Option<SocketAddr>,
    peer: Option<SocketAddr>,
    dscp: Option<u8>,
}

/// Reads the attributes of a connected endpoint from an info. Any context.
///
/// # Errors
///
/// - `ENODATA`: an attribute exceeds a limit of the domain.
/// - `EBADFLAGS`: the default flags are unknown or contradict each other.
/// - `EINVAL`: an address is malformed.
fn msg_attr(limits: &MsgLimits, info: &kfi_info) -> Result<MsgEpAttr, Refusal> {
    // SAFETY: Both attributes are null or valid for the call, as `info` is.
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
    // SAFETY: The endpoint attributes are null or valid for the call, as `info` is.
    let contexts = unsafe { info.ep_attr.as_ref() }.map_or(0, |attr| attr.rx_ctx_cnt);
    let shares = contexts == usize::MAX;
    if shares && limits.shared_size == 0 {
        let why = c"endpoints share no receives";
        return Err(Refusal::new(Errno::ENODATA, why));
    }
    let dscp = tx.map_or(Ok(None), |attr| dscp(attr.tclass))?;
    if dscp.is_some() && !limits.bounded {
        let why = c"endpoints have no traffic class";
        return Err(Refusal::new(Errno::ENODATA, why));
    }
    Ok(MsgEpAttr {
        shares,
        dscp,
        tx_size: within(tx.map_or(0, |attr| attr.size), limits.tx_size)?,
        rx_size: match shares {
            true => 0,
            false => within(rx.map_or(0, |attr| attr.size), limits.rx_size)?,
        },
        op_flags,
        // SAFETY: `src_addr` is null or has `src_addrlen` bytes.
        source: unsafe { sockaddr::read_any(info.src_addr, info.src_addrlen) }?,
        // SAFETY: `dest_addr` is null or has `dest_addrlen` bytes.
        peer: unsafe { sockaddr::read_any(info.dest_addr, info.dest_addrlen) }?,
    })
}

/// Creates a shared receive context of a domain. May sleep.
fn make_srx(
    domain: &DomainObject,
    attr: Option<&c::kfi_rx_attr>,
    context: *mut c_void,
) -> Result<(kfid_ep, SrxBody), Refusal> {
    let provider = domain.provider();
    let limits = provider.msg_limits().ok_or(NO_SUCH_CALL)?;
    if limits.shared_size == 0 {
        return Err(NO_SUCH_CALL);
    }
    let op_flags = attr.map_or(0, |attr| attr.op_flags);
    PostFlags::parse(op_flags, PostFlags::RECEIVE)?;
    within(attr.map_or(0, |attr| attr.iov_limit), limits.local.segments)?;
    let size = within(attr.map_or(0, |attr| attr.size), limits.shared_size)?;
    let c = c_part(SrxObject::fid(context));
    let imp = provider.open_srx(size)?;
    Ok((c, SrxBody::new(imp, *limits, op_flags)?))
}

/// Opens a shared receive context: the `srx_ctx` slot of a domain. May sleep.
///
/// # Safety
///
/// - `domain` is null or an open object.
/// - `attr` is null, an error pointer, or valid for the call.
/// - `srx` is null or valid for writes.
pub(crate) unsafe extern "C" fn open_srx(
    domain: *mut kfid_domain,
    attr: *mut c::kfi_rx_attr,
    srx: *mut *mut kfid_ep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: `domain` is null or open, and begins with its fid. `srx` is null or valid for writes. `attr` is
    // null, an error pointer, or valid for the call.
    unsafe {
        opening::open(domain.cast(), c"srx_ctx", srx, |domain, _| {
            make_srx(domain, c_ref(attr), context)
        })
    }
}
