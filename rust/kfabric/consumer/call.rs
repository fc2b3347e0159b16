// SPDX-License-Identifier: GPL-2.0

//! Calls operations of an object's table, like the inline functions of the C headers.

use crate::support::{
    errno::Errno,
    num::signed,
    sockaddr,
    table::NO_SUCH_CALL, //
};
use core::{
    net::SocketAddr,
    ptr::NonNull, //
};
use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    pr_warn, //
};
use kfi_bindings::{
    __kernel_sockaddr_storage as sockaddr_storage,
    kfid, //
};

/// Calls an operation of a table and returns its result: `op_if_any!(table, type,
/// operation(arguments))`.
///
/// `None` if the table is null or does not have the operation. A provider that was built with an
/// older header has a shorter table. If a table has the size 0, its provider doesn't set the size.
///
/// # Safety
///
/// The table is null or valid. The arguments are valid for the operation.
macro_rules! op_if_any {
    ($table:expr, $op:ident($($arg:expr),* $(,)?)) => {{
        let table: *const _ = $table;
        match table.is_null() {
            true => None,
            false => $crate::consumer::call::slot_if_any!(table, $op)
                .map(|op| op($($arg),*)),
        }
    }};
}
pub(super) use op_if_any;

/// Returns an operation of a table that isn't null, or `None`.
///
/// # Safety
///
/// The table is valid for the size in it.
macro_rules! slot_if_any {
    ($table:expr, $op:ident) => {{
        let table: *const _ = $table;
        let offset = (&raw const (*table).$op).addr() - table.addr();
        let end = offset + size_of::<*const ()>();
        match (*table).size {
            size if size == 0 || size >= end => (*table).$op,
            _ => None,
        }
    }};
}
pub(super) use slot_if_any;

/// Calls an operation of a table and returns its result, or `ENOSYS` if the table does not have the
/// operation.
///
/// # Safety
///
/// The table is null or valid. The arguments are valid for the operation.
macro_rules! op {
    ($($call:tt)*) => {
        $crate::consumer::call::op_if_any!($($call)*)
            .ok_or_else($crate::consumer::call::missing)
    };
}
pub(super) use op;

/// Reports the refusal of a call that the provider doesn't have, and returns its errno.
pub(super) fn missing() -> Errno {
    NO_SUCH_CALL.report();
    NO_SUCH_CALL.errno()
}

/// Returns the result of a call that returns 0 on success.
pub(super) fn result(ret: c_int) -> Result<(), Errno> {
    match ret {
        0 => Ok(()),
        _ => Err(Errno::from_c(ret)),
    }
}

/// Returns the result of a call that returns a count on success.
pub(super) fn count(ret: isize) -> Result<usize, Errno> {
    usize::try_from(ret).map_err(|_| Errno::from_c(c_int::try_from(ret).unwrap_or(0)))
}

/// Returns the object that a call opened, or its error.
///
/// If the provider returned success without an object, the error is `EIO`.
pub(super) fn opened<T>(ret: c_int, object: *mut T) -> Result<NonNull<T>, Errno> {
    result(ret)?;
    NonNull::new(object).ok_or(Errno::EIO)
}

/// Returns a time limit for C, in milliseconds. `None` is no limit.
pub(super) fn timeout(msecs: Option<u32>) -> c_int {
    msecs.map_or(-1, |msecs| c_int::try_from(msecs).unwrap_or(c_int::MAX))
}

/// Closes an object: `kfi_close()`. May sleep.
///
/// # Safety
///
/// `fid` is an open object. If the call succeeds, the caller never uses the object again.
pub(super) unsafe fn close(fid: NonNull<kfid>) -> Result<(), Errno> {
    let fid = fid.as_ptr();
    // SAFETY: `fid` is open by this function's contract, so its table is valid.
    result(unsafe { op!((*fid).ops, close(fid)) }?)
}

/// Calls `kfi_control()`.
///
/// # Safety
///
/// `fid` is an open object. `arg` is valid for the command.
pub(super) unsafe fn control(fid: *mut kfid, command: u32, arg: *mut c_void) -> Result<(), Errno> {
    // SAFETY: `fid` is open and `arg` valid for the command, by this function's contract.
    result(unsafe { op!((*fid).ops, control(fid, signed(command), arg)) }?)
}

/// Calls `kfi_bind()`.
///
/// # Safety
///
/// `fid` and `to` are open objects. `to` stays open as long as `fid` needs it.
pub(super) unsafe fn bind(fid: *mut kfid, to: *mut kfid, flags: u64) -> Result<(), Errno> {
    // SAFETY: `fid` and `to` are open by this function's contract.
    result(unsafe { op!((*fid).ops, bind(fid, to, flags)) }?)
}

/// Logs that the provider refused to close an object, which stays open with all that it uses.
pub(super) fn leaked(what: &str, errno: Errno) {
    pr_warn!("{what} can't be closed and is leaked: {errno}\n");
}

/// Returns the address that `call` stores. `call` gets a buffer for any address, and its size.
pub(super) fn address(
    call: impl FnOnce(*mut c_void, *mut usize) -> Result<c_int, Errno>,
) -> Result<SocketAddr, Errno> {
    let mut raw: sockaddr_storage = pin_init::zeroed();
    let mut len = size_of_val(&raw);
    let address: *mut c_void = (&raw mut raw).cast();
    result(call(address, &mut len)?)?;
    // SAFETY: `call` succeeded, so it stored an address at `address`, which points to the local
    // `raw`.
    unsafe { sockaddr::read(address, None) }.map_err(|refusal| refusal.errno())
}
