// SPDX-License-Identifier: GPL-2.0

//! `kfi_endpoint()`.

use super::{
    atomic,
    attr::{
        self,
        EpKind, //
    },
    cm,
    msg::{
        Known,
        Msg, //
    },
    ops,
    transfer,
    EndpointBody,
    EndpointObject, //
};
use crate::{
    object::{
        domain::DomainObject,
        info::info_ref,
        mr::fallen,
        opening,
        pep::requests,
        ties::Ties, //
    },
    provider::{
        cm::Events,
        ep::Endpoint,
        msg_ep::MsgEpRequest, //
    },
    support::{
        errno::Errno,
        refusal::Refusal, //
    }, //
};
use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*,
    sync::Arc, //
};
use kfi_bindings::{
    kfi_info,
    kfid_domain,
    kfid_ep, //
};

/// What there is to an endpoint that is going to be at `fid`, and to be connected.
fn make_msg(
    domain: &DomainObject,
    info: &kfi_info,
    ties: &Arc<Ties>,
    ep: *mut kfid_ep,
    context: *mut c_void,
) -> Result<Msg, Refusal> {
    let provider = domain.provider();
    let limits = provider.msg_limits().ok_or(Errno::ENOSYS)?;
    let asked = attr::msg(limits, info)?;
    let events = Arc::pin_init(Events::new(), GFP_KERNEL).map_err(|_| Errno::ENOMEM)?;
    let imp = provider.open_ep(MsgEpRequest {
        tx_size: asked.tx_size,
        rx_size: asked.rx_size,
        shares: asked.shares,
        source: asked.source,
        endpoint: ties.endpoint().clone(),
        answers: requests::take(info.handle)?,
        events: events.clone(),
    })?;
    let known = Known {
        fid: ep.cast(),
        context,
        op_flags: asked.op_flags,
        shares: asked.shares,
        peer: asked.peer,
        answers: !info.handle.is_null(),
    };
    Msg::new(imp, events, ties.clone(), *limits, known)
}

/// What there is to a new endpoint of a domain.
///
/// # Safety
///
/// As the C API demands: `info` is null or valid for the call, with all that it points to.
unsafe fn make(
    domain: &DomainObject,
    info: *const kfi_info,
    ep: *mut kfid_ep,
    context: *mut c_void,
) -> Result<(kfid_ep, EndpointBody), Refusal> {
    // SAFETY: `info` is null, an error pointer, or valid for the call, as the caller promises.
    let info = unsafe { info_ref(info) }?;
    let kind = attr::kind(domain, info)?;
    let auth_key = attr::auth_key(domain, info)?;
    let endpoint = Arc::pin_init(Endpoint::new(auth_key), GFP_KERNEL).map_err(|_| Errno::ENOMEM)?;
    let ties = Ties::new(&endpoint, fallen::take_down)?;
    let msg = match kind {
        EpKind::Msg => Some(make_msg(domain, info, &ties, ep, context)?),
        EpKind::Bare if !info.handle.is_null() => {
            return Err(Refusal::new(Errno::EINVAL, c"not a connection request"));
        }
        EpKind::Bare => None,
    };
    let c = kfid_ep {
        fid: EndpointObject::fid(context),
        ops: ops::EP.as_ptr(),
        cm: cm::CM.as_ptr(),
        msg: transfer::MSG.as_ptr(),
        rma: transfer::RMA.as_ptr(),
        tagged: ops::TAGGED.as_ptr(),
        atomic: atomic::ATOMIC.as_ptr(),
    };
    let body = EndpointBody {
        endpoint,
        ties,
        msg,
    };
    Ok((c, body))
}

/// The `endpoint` slot of a domain. May sleep.
///
/// # Safety
///
/// As the C API demands: each pointer is null or valid.
pub(crate) unsafe extern "C" fn open(
    domain: *mut kfid_domain,
    info: *mut kfi_info,
    ep: *mut *mut kfid_ep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: Each is null or valid as the C API demands; a domain begins with its fid.
    unsafe {
        opening::open(domain.cast(), ep, |domain, ep| {
            make(domain, info, ep, context)
        })
    }
}
