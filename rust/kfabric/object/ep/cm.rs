// SPDX-License-Identifier: GPL-2.0

//! Connections of an endpoint: the calls of `struct kfi_ops_cm`.
//!
//! All of them may sleep.

use super::{
    msg::Phase,
    EndpointObject, //
};
use crate::{
    object::obj::Obj,
    support::{
        errno::Errno,
        refusal::{
            no_flags,
            Refusal, //
        },
        sockaddr,
        table::{
            OpsSlot,
            Table, //
        }, //
    }, //
};
use core::{
    net::SocketAddr,
    slice, //
};
use kernel::ffi::{
    c_int,
    c_void, //
};
use kfi_bindings::{
    kfi_ops_cm,
    kfid,
    kfid_ep, //
};

/// Connections.
pub(super) static CM: Table<kfi_ops_cm> = Table(kfi_ops_cm {
    size: size_of::<kfi_ops_cm>(),
    setname: OpsSlot::NOSYS,
    getname: Some(getname),
    getpeer: Some(getpeer),
    connect: Some(connect),
    listen: OpsSlot::NOSYS,
    accept: Some(accept),
    reject: OpsSlot::NOSYS,
    shutdown: Some(shutdown),
    join: OpsSlot::NOSYS,
});

/// Private data for a peer.
///
/// # Errors
///
/// - `EINVAL`: NULL, but not empty; or too long for any.
///
/// # Safety
///
/// `param` is null or has `len` bytes for `'a`.
pub(crate) unsafe fn private_data<'a>(
    param: *const c_void,
    len: usize,
) -> Result<&'a [u8], Refusal> {
    match (param.is_null(), len) {
        (_, 0) => Ok(&[]),
        (false, 1..=1024) => {
            // SAFETY: By the requirements of this function.
            Ok(unsafe { slice::from_raw_parts(param.cast(), len) })
        }
        _ => Err(Refusal::new(
            Errno::EINVAL,
            c"not the length of private data",
        )),
    }
}

/// Begins to get a connection, after enabling the endpoint if nobody has.
fn begin(
    endpoint: &EndpointObject,
    data: &[u8],
    most: usize,
    begin: impl FnOnce(&dyn crate::provider::msg_ep::MsgEp) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let msg = endpoint.transferring()?;
    if msg.phase().get() == Phase::New {
        // Somebody else may have done so meanwhile.
        endpoint
            .enable()
            .or_else(|refusal| match msg.phase().get() {
                Phase::New => Err(refusal),
                _ => Ok(()),
            })?;
    }
    msg.begin(data, most, begin)
}

/// # Safety
///
/// As the C API demands: `ep` is an open endpoint; `addr` is null or an address, `param` null or that
/// long.
unsafe extern "C" fn connect(
    ep: *mut kfid_ep,
    addr: *const c_void,
    param: *const c_void,
    paramlen: usize,
) -> c_int {
    // SAFETY: `ep` is open by the requirements of this function, and begins with its fid.
    unsafe {
        Obj::call(ep.cast(), |endpoint: &EndpointObject| {
            let msg = endpoint.transferring()?;
            if msg.answers() {
                let why = c"the endpoint was made to answer a request";
                return Err(Refusal::new(Errno::EOPBADSTATE, why));
            }
            let peer = match addr.is_null() {
                true => {
                    let none = Refusal::new(Errno::EINVAL, c"no address of the peer");
                    msg.wanted_peer().ok_or(none)?
                }
                false => sockaddr::read(addr, None)?,
            };
            let data = private_data(param, paramlen)?;
            let [most, _, _] = msg.limits().cm_data_size;
            let bounds = msg.options().bounds();
            begin(endpoint, data, most, |imp| imp.connect(peer, data, &bounds))
        })
    }
}

/// # Safety
///
/// As the C API demands: `ep` is an open endpoint; `param` is null or that long.
unsafe extern "C" fn accept(ep: *mut kfid_ep, param: *const c_void, paramlen: usize) -> c_int {
    // SAFETY: `ep` is open by the requirements of this function, and begins with its fid.
    unsafe {
        Obj::call(ep.cast(), |endpoint: &EndpointObject| {
            let data = private_data(param, paramlen)?;
            let msg = endpoint.transferring()?;
            let [_, most, _] = msg.limits().cm_data_size;
            let bounds = msg.options().bounds();
            begin(endpoint, data, most, |imp| imp.accept(data, &bounds))
        })
    }
}

/// # Safety
///
/// As the C API demands: `ep` is an open endpoint.
unsafe extern "C" fn shutdown(ep: *mut kfid_ep, flags: u64) -> c_int {
    // SAFETY: `ep` is open by the requirements of this function, and begins with its fid.
    unsafe {
        Obj::call(ep.cast(), |endpoint: &EndpointObject| {
            let msg = endpoint.transferring()?;
            no_flags(flags)?;
            msg.shut_down()
        })
    }
}

/// Gives C an address of an endpoint.
///
/// # Safety
///
/// As the C API demands: `fid` is an open endpoint, `len` null or valid, `addr` with as much room.
unsafe fn give(
    fid: *mut kfid,
    addr: *mut c_void,
    len: *mut usize,
    which: impl FnOnce(&EndpointObject) -> Result<SocketAddr, Refusal>,
) -> c_int {
    // SAFETY: By the requirements of this function.
    unsafe { Obj::call(fid, |endpoint| sockaddr::write(which(endpoint)?, addr, len)) }
}

/// # Safety
///
/// As for [`give`].
unsafe extern "C" fn getname(fid: *mut kfid, addr: *mut c_void, len: *mut usize) -> c_int {
    let which = |endpoint: &EndpointObject| {
        let none = Refusal::new(Errno::EADDRNOTAVAIL, c"the endpoint has no address yet");
        endpoint.transferring()?.imp().name().ok_or(none)
    };
    // SAFETY: By the requirements of this function.
    unsafe { give(fid, addr, len, which) }
}

/// # Safety
///
/// As for [`give`].
unsafe extern "C" fn getpeer(ep: *mut kfid_ep, addr: *mut c_void, len: *mut usize) -> c_int {
    let which = |endpoint: &EndpointObject| {
        let msg = endpoint.transferring()?;
        match msg.phase().get() {
            Phase::Connected => msg.imp().peer().ok_or(Phase::Enabled.refusal()),
            phase => Err(phase.refusal().with_errno(Errno::ENOTCONN)),
        }
    };
    // SAFETY: By the requirements of this function; an endpoint begins with its fid.
    unsafe { give(ep.cast(), addr, len, which) }
}
