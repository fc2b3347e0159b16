// SPDX-License-Identifier: GPL-2.0

//! Connections of a passive endpoint: the calls of `struct kfi_ops_cm`.
//!
//! All of them may sleep.

use super::{
    requests,
    PepObject, //
};
use crate::{
    object::{
        ep::private_data,
        obj::Obj, //
    },
    support::{
        errno::Errno,
        num::widen,
        refusal::Refusal,
        sockaddr,
        table::{
            OpsSlot,
            Table, //
        }, //
    }, //
};
use kernel::ffi::{
    c_int,
    c_void, //
};
use kfi_bindings::{
    kfi_ops_cm,
    kfid,
    kfid_pep, //
};

/// Connections.
pub(super) static CM: Table<kfi_ops_cm> = Table(kfi_ops_cm {
    size: size_of::<kfi_ops_cm>(),
    setname: Some(setname),
    getname: Some(getname),
    getpeer: OpsSlot::NOSYS,
    connect: OpsSlot::NOSYS,
    listen: Some(listen),
    accept: OpsSlot::NOSYS,
    reject: Some(reject),
    shutdown: OpsSlot::NOSYS,
    join: OpsSlot::NOSYS,
});

/// # Safety
///
/// As the C API demands: `fid` is an open passive endpoint, `addr` null or that long.
unsafe extern "C" fn setname(fid: *mut kfid, addr: *mut c_void, len: usize) -> c_int {
    // SAFETY: By the requirements of this function.
    unsafe {
        Obj::call(fid, |pep: &PepObject| {
            let address = sockaddr::read(addr, Some(len))?;
            pep.set_address(address)
        })
    }
}

/// # Safety
///
/// As the C API demands: `fid` is an open passive endpoint, `len` null or valid, and `addr` has as much
/// room.
unsafe extern "C" fn getname(fid: *mut kfid, addr: *mut c_void, len: *mut usize) -> c_int {
    // SAFETY: By the requirements of this function.
    unsafe {
        Obj::call(fid, |pep: &PepObject| {
            sockaddr::write(pep.address(), addr, len)
        })
    }
}

/// # Safety
///
/// As the C API demands: `pep` is an open passive endpoint.
unsafe extern "C" fn listen(pep: *mut kfid_pep) -> c_int {
    // SAFETY: By the requirements of this function; a passive endpoint begins with its fid.
    unsafe { Obj::call(pep.cast(), |pep: &PepObject| pep.listen()) }
}

/// # Safety
///
/// As the C API demands: `pep` is an open passive endpoint, `param` null or that long.
unsafe extern "C" fn reject(
    pep: *mut kfid_pep,
    handle: *mut kfid,
    param: *const c_void,
    paramlen: usize,
) -> c_int {
    // SAFETY: By the requirements of this function; a passive endpoint begins with its fid.
    unsafe {
        Obj::call(pep.cast(), |object: &PepObject| {
            let data = private_data(param, paramlen)?;
            let [_, _, most] = object.limits.cm_data_size;
            if data.len() > most {
                let why = c"more private data than there is room for";
                return Err(Refusal::new(Errno::EINVAL, why).value(widen(data.len())));
            }
            let request = requests::take_of(pep.cast(), handle)?;
            object.imp().reject(request, data)
        })
    }
}
