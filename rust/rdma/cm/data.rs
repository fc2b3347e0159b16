// SPDX-License-Identifier: GPL-2.0

//! Private data: what two peers tell each other while they connect.
//!
//! They arrive padded with zeros to the most that there may be. A peer who is to know their length
//! has to be told.

use kernel::prelude::*;

/// The most bytes in a request.
pub const REQUEST: usize = 56;
/// The most bytes in an acceptance.
pub const ACCEPTANCE: usize = 196;
/// The most bytes in a rejection.
pub const REJECTION: usize = 148;

/// The length of private data, of which there may be so much.
pub(super) fn checked_len(data: &[u8], most: usize) -> Result<u8> {
    if data.len() > most {
        return Err(EINVAL);
    }
    Ok(u8::try_from(data.len())?)
}

/// A copy of private data that have come. May sleep.
///
/// # Safety
///
/// `data` must point to so many bytes, or be null.
pub(super) unsafe fn came<'a>(data: *const c_void, len: u8) -> &'a [u8] {
    if data.is_null() {
        return &[];
    }
    // SAFETY: As the caller promises.
    unsafe { core::slice::from_raw_parts(data.cast(), len.into()) }
}

#[kernel::macros::kunit_tests(rdma_cm_data)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_fits() {
        assert_eq!(checked_len(&[0; 56], REQUEST), Ok(56));
        assert_eq!(checked_len(&[0; 57], REQUEST), Err(EINVAL));
        assert_eq!(checked_len(&[0; 196], ACCEPTANCE), Ok(196));
        assert_eq!(checked_len(&[0; 149], REJECTION), Err(EINVAL));
        assert_eq!(checked_len(&[], REJECTION), Ok(0));
    }
}
