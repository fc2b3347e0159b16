// SPDX-License-Identifier: GPL-2.0

//! Connections of an endpoint: the slots of `struct kfi_ops_cm`.
//!
//! All slots may sleep.

use super::{
    msg::EpPhase,
    EndpointObject, //
};
use crate::{
    object::obj::Obj,
    prelude::*,
    support::{
        refusal::no_flags,
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
use kfi_bindings::{
    kfi_ops_cm,
    kfid,
    kfid_ep, //
};

/// The slots for connections.
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

/// Returns the private data for a peer.
///
/// # Errors
///
/// - `EINVAL`: `param` is NULL and `len` is not 0, or `len` exceeds 1024.
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
            // SAFETY: `param` isn't null, so it has `len` bytes for `'a`.
            Ok(unsafe { slice::from_raw_parts(param.cast(), len) })
        }
        _ => Err(Refusal::new(
            Errno::EINVAL,
            c"not the length of private data",
        )),
    }
}

/// Enables the endpoint if the consumer has not, and starts a connection. May sleep.
fn begin(
    endpoint: &EndpointObject,
    data: &[u8],
    most: usize,
    begin: impl FnOnce(&dyn crate::provider::msg_ep::MsgEpOps) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let msg = endpoint.transferring()?;
    if msg.phase.get() == EpPhase::New {
        // Another thread may have enabled the endpoint at the same time.
        endpoint.enable().or_else(|refusal| match msg.phase.get() {
            EpPhase::New => Err(refusal),
            _ => Ok(()),
        })?;
    }
    msg.begin(data, most, begin)
}

/// Connects to a peer: `kfi_connect()`.
///
/// # Safety
///
/// - `ep` is an open object.
/// - `addr` is null or a socket address.
/// - `param` is null or has `paramlen` bytes.
unsafe extern "C" fn connect(
    ep: *mut kfid_ep,
    addr: *const c_void,
    param: *const c_void,
    paramlen: usize,
) -> c_int {
    // SAFETY: `ep` is an open object, and begins with its fid. `addr` is null or an address, and `param` null or
    // `paramlen` bytes long.
    unsafe {
        Obj::call(ep.cast(), |endpoint: &EndpointObject| {
            let msg = endpoint.transferring()?;
            if msg.answers {
                let why = c"the endpoint was made to answer a request";
                return Err(Refusal::new(Errno::EOPBADSTATE, why));
            }
            let peer = match addr.is_null() {
                true => {
                    let none = Refusal::new(Errno::EINVAL, c"no address of the peer");
                    msg.peer.ok_or(none)?
                }
                false => sockaddr::read(addr, None)?,
            };
            let data = private_data(param, paramlen)?;
            let [most, _, _] = msg.limits.cm_data_size;
            let bounds = msg.options.bounds();
            begin(endpoint, data, most, |imp| imp.connect(peer, data, &bounds))
        })
    }
}

/// Accepts a connection request: `kfi_accept()`.
///
/// # Safety
///
/// - `ep` is an open object.
/// - `param` is null or has `paramlen` bytes.
unsafe extern "C" fn accept(ep: *mut kfid_ep, param: *const c_void, paramlen: usize) -> c_int {
    // SAFETY: `ep` is an open object, and begins with its fid. `param` is null or has
    // `paramlen` bytes.
    unsafe {
        Obj::call(ep.cast(), |endpoint: &EndpointObject| {
            let data = private_data(param, paramlen)?;
            let msg = endpoint.transferring()?;
            let [_, most, _] = msg.limits.cm_data_size;
            let bounds = msg.options.bounds();
            begin(endpoint, data, most, |imp| imp.accept(data, &bounds))
        })
    }
}

/// Shuts down the connection: `kfi_shutdown()`.
///
/// # Safety
///
/// `ep` is an open object.
unsafe extern "C" fn shutdown(ep: *mut kfid_ep, flags: u64) -> c_int {
    // SAFETY: `ep` is an open object, and begins with its fid.
    unsafe {
        Obj::call(ep.cast(), |endpoint: &EndpointObject| {
            let msg = endpoint.transferring()?;
            no_flags(flags)?;
            msg.shut_down()
        })
    }
}

/// Writes an address of an endpoint for C.
///
/// # Safety
///
/// - `fid` is an open object.
/// - `len` is null or valid for reads and writes.
/// - `addr` is null or valid for writes of `*len` bytes.
unsafe fn write_address(
    fid: *mut kfid,
    addr: *mut c_void,
    len: *mut usize,
    which: impl FnOnce(&EndpointObject) -> Result<SocketAddr, Refusal>,
) -> c_int {
    // SAFETY: `fid` is an open object. `len` is null or valid, and `addr` null or valid for `*len` bytes.
    unsafe { Obj::call(fid, |endpoint| sockaddr::write(which(endpoint)?, addr, len)) }
}

/// Returns the local address: `kfi_getname()`.
///
/// # Safety
///
/// - `fid` is an open object.
/// - `len` is null or valid for reads and writes.
/// - `addr` is null or valid for writes of `*len` bytes.
unsafe extern "C" fn getname(fid: *mut kfid, addr: *mut c_void, len: *mut usize) -> c_int {
    let which = |endpoint: &EndpointObject| {
        let none = Refusal::new(Errno::EADDRNOTAVAIL, c"the endpoint has no address yet");
        endpoint.transferring()?.imp.name().ok_or(none)
    };
    // SAFETY: `fid` is an open object. `len` is null or valid, and `addr` null or valid for `*len` bytes.
    unsafe { write_address(fid, addr, len, which) }
}

/// Returns the peer's address: `kfi_getpeer()`.
///
/// # Safety
///
/// - `ep` is an open object.
/// - `len` is null or valid for reads and writes.
/// - `addr` is null or valid for writes of `*len` bytes.
unsafe extern "C" fn getpeer(ep: *mut kfid_ep, addr: *mut c_void, len: *mut usize) -> c_int {
    let which = |endpoint: &EndpointObject| {
        let msg = endpoint.transferring()?;
        match msg.phase.get() {
            EpPhase::Connected => msg.imp.peer().ok_or(EpPhase::Enabled.refusal()),
            phase => Err(phase.refusal().with_errno(Errno::ENOTCONN)),
        }
    };
    // SAFETY: `ep` is an open object, and begins with its fid. `len` is null or valid, and `addr` null or valid
    // for `*len` bytes.
    unsafe { write_address(ep.cast(), addr, len, which) }
}
