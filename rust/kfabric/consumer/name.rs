// SPDX-License-Identifier: GPL-2.0

//! Addresses that C tells.

use super::call;
use crate::support::{
    errno::Errno,
    sockaddr, //
};
use core::net::SocketAddr;
use kernel::ffi::{
    c_int,
    c_void, //
};
use kfi_bindings::__kernel_sockaddr_storage as sockaddr_storage;

/// Returns the address that a call puts where it is told, with room for any.
pub(super) fn of(
    call: impl FnOnce(*mut c_void, *mut usize) -> Result<c_int, Errno>,
) -> Result<SocketAddr, Errno> {
    let mut raw: sockaddr_storage = pin_init::zeroed();
    let mut len = size_of_val(&raw);
    let address: *mut c_void = (&raw mut raw).cast();
    call::result(call(address, &mut len)?)?;
    // SAFETY: The call has left an address there; there is more room than any address that is read needs.
    unsafe { sockaddr::read(address, None) }.map_err(|refusal| refusal.errno())
}
