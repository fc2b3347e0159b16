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
    kfi_ops,
    kfid, //
};

/// Calls an operation of a table, `op_if_any!(table, type, operation(arguments))`, and gives what
/// it returned.
///
/// `None` if there is no table or no such operation, or if it lies behind the end of a table that
/// an older provider was built with. A size of 0 is that of a table whose provider doesn't tell it.
///
/// # Safety
///
/// The table is null or valid, and the arguments are what the operation asks for.
macro_rules! op_if_any {
    ($table:expr, $type:ty, $op:ident($($arg:expr),* $(,)?)) => {{
        let table: *const $type = $table;
        match table.is_null() {
            true => None,
            false => $crate::consumer::call::slot_if_any!(table, $type, $op)
                .map(|op| op($($arg),*)),
        }
    }};
}
pub(super) use op_if_any;

/// As [`op_if_any`], of a table that is there, and gives the operation.
///
/// # Safety
///
/// The table is valid as far as it says.
macro_rules! slot_if_any {
    ($table:expr, $type:ty, $op:ident) => {{
        let table: *const $type = $table;
        let end = core::mem::offset_of!($type, $op) + size_of::<*const ()>();
        match (*table).size {
            size if size == 0 || size >= end => (*table).$op,
            _ => None,
        }
    }};
}
pub(super) use slot_if_any;

/// The same for an operation without which it doesn't go on: `ENOSYS` if it isn't there.
///
/// # Safety
///
/// As for [`op_if_any`].
macro_rules! op {
    ($($call:tt)*) => {
        $crate::consumer::call::op_if_any!($($call)*)
            .ok_or_else($crate::consumer::call::missing)
    };
}
pub(super) use op;

/// An operation is missing, which is a refusal like others.
pub(super) fn missing() -> Errno {
    NO_SUCH_CALL.report();
    NO_SUCH_CALL.errno()
}

/// What a call that returns 0 on success returned.
pub(super) fn result(ret: c_int) -> Result<(), Errno> {
    match ret {
        0 => Ok(()),
        _ => Err(Errno::from_c(ret)),
    }
}

/// What a call that counts something returned: how many, or the error instead.
pub(super) fn count(ret: isize) -> Result<usize, Errno> {
    usize::try_from(ret).map_err(|_| Errno::from_c(c_int::try_from(ret).unwrap_or(0)))
}

/// What a call that opens something returned, and left behind. A provider that has succeeded but
/// opened nothing is not believed.
pub(super) fn opened<T>(ret: c_int, object: *mut T) -> Result<NonNull<T>, Errno> {
    result(ret)?;
    NonNull::new(object).ok_or(Errno::EIO)
}

/// `kfi_close()`. May sleep.
///
/// # Safety
///
/// `fid` is an open object. If it is closed, nobody uses it any more.
pub(super) unsafe fn close(fid: NonNull<kfid>) -> Result<(), Errno> {
    let fid = fid.as_ptr();
    // SAFETY: By the requirements of this function.
    result(unsafe { op!((*fid).ops, kfi_ops, close(fid)) }?)
}

/// `kfi_control()`.
///
/// # Safety
///
/// `fid` is an open object, and `arg` is what the command takes.
pub(super) unsafe fn control(fid: *mut kfid, command: u32, arg: *mut c_void) -> Result<(), Errno> {
    // SAFETY: By the requirements of this function.
    result(unsafe { op!((*fid).ops, kfi_ops, control(fid, signed(command), arg)) }?)
}

/// `kfi_bind()`, and what it is called for single kinds of objects.
///
/// # Safety
///
/// `fid` and `to` are open objects; `to` stays so as long as what it is bound to needs it.
pub(super) unsafe fn bind(fid: *mut kfid, to: *mut kfid, flags: u64) -> Result<(), Errno> {
    // SAFETY: By the requirements of this function.
    result(unsafe { op!((*fid).ops, kfi_ops, bind(fid, to, flags)) }?)
}

/// Says that an object stays open for good, with all that it uses, since its provider refused to
/// close it and nobody is left who could try again.
pub(super) fn leaked(what: &str, errno: Errno) {
    pr_warn!("{what} can't be closed and is leaked: {errno}\n");
}

/// Returns the address that a call puts where it is told, with room for any.
pub(super) fn address(
    call: impl FnOnce(*mut c_void, *mut usize) -> Result<c_int, Errno>,
) -> Result<SocketAddr, Errno> {
    let mut raw: sockaddr_storage = pin_init::zeroed();
    let mut len = size_of_val(&raw);
    let address: *mut c_void = (&raw mut raw).cast();
    result(call(address, &mut len)?)?;
    // SAFETY: The call has left an address there; there is more room than any address that is read needs.
    unsafe { sockaddr::read(address, None) }.map_err(|refusal| refusal.errno())
}
