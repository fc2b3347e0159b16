// SPDX-License-Identifier: GPL-2.0

//! Conversions that lose nothing, for which the language has no `From`.

use kernel::str::CStr;

/// Converts `usize` to `u64`: the kernel runs on no machine with wider addresses.
pub const fn widen(n: usize) -> u64 {
    const { assert!(usize::BITS <= u64::BITS) };
    n as u64
}

/// Converts `u32` to `u64` in constants, where `From` can't be used.
pub const fn widen_u32(n: u32) -> u64 {
    n as u64
}

/// Converts `u32` to `usize`: the kernel crate runs on no smaller machine.
pub const fn index(n: u32) -> usize {
    const { assert!(usize::BITS >= u32::BITS) };
    n as usize
}

/// Converts `u32` to `i32` in constants. A number that is too large doesn't compile.
pub const fn signed(n: u32) -> i32 {
    assert!(n <= i32::MAX.unsigned_abs());
    n as i32
}

/// Converts `i32` to `isize`: the kernel crate runs on no smaller machine.
pub const fn signed_size(n: i32) -> isize {
    const { assert!(isize::BITS >= i32::BITS) };
    n as isize
}

/// Converts a string constant of a C header in constants. One that doesn't end with its only NUL
/// doesn't compile.
pub const fn c_str(bytes: &'static [u8]) -> &'static CStr {
    match CStr::from_bytes_with_nul(bytes) {
        Ok(string) => string,
        Err(_) => panic!("no string"),
    }
}
