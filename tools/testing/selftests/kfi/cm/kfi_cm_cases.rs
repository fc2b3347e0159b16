// SPDX-License-Identifier: GPL-2.0

//! Tests of connections: each case connects, or fails to, over a device of this machine, and
//! verifies each byte that has gone over it.

mod basic;
mod chains;
mod check;
mod ends;
mod failed;
mod held;
mod memory;
mod quiet;
mod side;
mod told;
mod transfer;

use check::Case;
use kernel::{
    ffi::{
        c_char,
        c_int,
        c_uint, //
    },
    prelude::*, //
};

const __LOG_PREFIX: &[u8] = b"kfi_cm\0";

const CASES: &[&[Case]] = &[
    basic::CASES,
    transfer::CASES,
    chains::CASES,
    quiet::CASES,
    ends::CASES,
    failed::CASES,
];

fn case(number: c_uint) -> Option<&'static Case> {
    let number = usize::try_from(number).ok()?;
    CASES.iter().copied().flatten().nth(number)
}

/// Connects, and keeps all that there may be of connections. Returns 0, or an error.
#[no_mangle]
pub extern "C" fn kfi_cm_hold(client: bool) -> c_int {
    match held::hold(client) {
        Ok(()) => 0,
        Err(error) => error.to_errno(),
    }
}

/// Ends what is kept, if that hasn't been done.
#[no_mangle]
pub extern "C" fn kfi_cm_release() {
    held::release();
}

/// Returns the name of a case; null behind the last one.
#[no_mangle]
pub extern "C" fn kfi_cm_name(number: c_uint) -> *const c_char {
    case(number).map_or(core::ptr::null(), |(name, _)| name.as_char_ptr())
}

/// Implements `kfi_cm_run()`: runs a case. Returns 0 if it has passed.
#[no_mangle]
pub extern "C" fn kfi_cm_run(number: c_uint) -> c_int {
    match case(number).map(|(_, run)| run()) {
        Some(Ok(())) => 0,
        Some(Err(error)) => {
            crate::note!("{}", error.to_errno());
            error.to_errno()
        }
        None => EINVAL.to_errno(),
    }
}
