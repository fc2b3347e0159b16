// SPDX-License-Identifier: GPL-2.0

//! Addresses that a consumer asks for, as names or as hints.

use crate::{
    object::info::bytes,
    provider::fabric::Ends,
    support::{
        c_ref::c_ref,
        errno::Errno,
        refusal::Refusal,
        sockaddr::{
            self,
            RawAddress, //
        }, //
    }, //
};
use core::{
    net::SocketAddr,
    ptr, //
};
use kernel::ffi::{
    c_char,
    c_void, //
};
use kfi_bindings::{
    __kernel_sockaddr_storage as sockaddr_storage,
    kfi_info,
    KFI_SOURCE, //
};

/// Reads a node and a service: an address in digits, and a port.
///
/// # Errors
///
/// - `ENODATA`: they are no such. Names are for user space to resolve.
///
/// # Safety
///
/// Each is null or a string.
unsafe fn parse(node: *const c_char, service: *const c_char) -> Result<SocketAddr, Refusal> {
    let mut raw: sockaddr_storage = pin_init::zeroed();
    // SAFETY: By the requirements of this function; there is room for any address.
    let ret = unsafe { kfi_bindings::kfi_helper_parse_address(node, service, &mut raw) };
    let unknown = Refusal::new(Errno::ENODATA, c"no address in digits, or no port");
    match ret {
        // SAFETY: It was just written.
        0 => unsafe { sockaddr::read((&raw const raw).cast(), None) },
        _ => Err(unknown),
    }
}

/// What a call of `kfi_getinfo()` says of addresses: node and service, else the hints.
///
/// # Errors
///
/// - `ENODATA`: node and service are no address.
/// - `EINVAL`: those of the hints are none.
///
/// # Safety
///
/// As the C API demands: each pointer is null or valid with all that it points to.
pub(super) unsafe fn ends(
    node: *const c_char,
    service: *const c_char,
    flags: u64,
    hints: *const kfi_info,
) -> Result<Ends, Refusal> {
    let mut ends = Ends::default();
    // SAFETY: `hints` is null or valid by the requirements of this function.
    if let Some(hints) = unsafe { c_ref(hints) } {
        // SAFETY: By the requirements of this function.
        unsafe {
            ends.source = sockaddr::read_any(hints.src_addr, hints.src_addrlen)?;
            ends.peer = sockaddr::read_any(hints.dest_addr, hints.dest_addrlen)?;
        }
    }
    if !node.is_null() || !service.is_null() {
        // SAFETY: By the requirements of this function.
        let named = Some(unsafe { parse(node, service) }?);
        match flags & KFI_SOURCE {
            0 => ends.peer = named,
            _ => ends.source = named,
        }
    }
    Ok(ends)
}

/// A copy of an address for an info, and its length; null of none.
pub(crate) fn copy(address: Option<SocketAddr>) -> Result<(*mut c_void, usize), Errno> {
    match address.map(RawAddress::new) {
        None => Ok((ptr::null_mut(), 0)),
        Some((raw, len)) => {
            // SAFETY: The address has so many bytes.
            Ok((unsafe { bytes((&raw const raw).cast(), len) }?, len))
        }
    }
}
