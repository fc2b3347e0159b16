// SPDX-License-Identifier: GPL-2.0

//! A peer's buffer on its way into a region or out of it.

use crate::region::access::Access;
use core::marker::PhantomData;
use kernel::ffi::c_void;

/// Which way the bytes go, seen from the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    /// From the region to the buffer.
    Read,
    /// From the buffer to the region.
    Write,
}

/// Bytes of a peer that are to be copied into a region or out of it.
///
/// # Invariants
///
/// `buf` points to `len` bytes that are there for `'a`, may be read and, in the direction
/// `Direction::Read`, may be written. Others may change them meanwhile.
pub struct PeerBuffer<'a> {
    buf: *mut c_void,
    len: usize,
    direction: Direction,
    _buf: PhantomData<&'a [u8]>,
}

impl<'a> PeerBuffer<'a> {
    /// A peer writes `len` bytes to a region.
    ///
    /// # Safety
    ///
    /// `buf` points to `len` bytes that stay where they are for `'a`.
    pub unsafe fn write(buf: *const c_void, len: usize) -> Self {
        // INVARIANT: By the requirements of this function.
        Self {
            buf: buf.cast_mut(),
            len,
            direction: Direction::Write,
            _buf: PhantomData,
        }
    }

    /// A peer reads `len` bytes from a region.
    ///
    /// # Safety
    ///
    /// `buf` points to `len` bytes that stay where they are for `'a` and may be written to.
    pub unsafe fn read(buf: *mut c_void, len: usize) -> Self {
        // INVARIANT: By the requirements of this function.
        Self {
            buf,
            len,
            direction: Direction::Read,
            _buf: PhantomData,
        }
    }

    /// A peer writes these bytes.
    pub fn write_slice(bytes: &'a [u8]) -> Self {
        // SAFETY: A slice is what a write needs.
        unsafe { Self::write(bytes.as_ptr().cast(), bytes.len()) }
    }

    /// A peer reads into these bytes.
    pub fn read_slice(bytes: &'a mut [u8]) -> Self {
        // SAFETY: A mutable slice is what a read needs.
        unsafe { Self::read(bytes.as_mut_ptr().cast(), bytes.len()) }
    }

    /// How many bytes there are to copy.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Is there nothing to copy?
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The right that a region must have for it.
    pub const fn needs(&self) -> Access {
        match self.direction {
            Direction::Read => Access::REMOTE_READ,
            Direction::Write => Access::REMOTE_WRITE,
        }
    }

    /// The first `at` bytes, or all that there are, and the rest.
    pub fn split_at(self, at: usize) -> (Self, Self) {
        let at = at.min(self.len);
        // INVARIANT: Each has its part of the bytes.
        let rest = Self {
            buf: self.buf.wrapping_byte_add(at),
            len: self.len - at,
            ..self
        };
        (Self { len: at, ..self }, rest)
    }

    /// Copies everything, from or to the physical addresses from `phys` on. Any context.
    ///
    /// # Safety
    ///
    /// They are memory of this machine that may be read, and written to if this is a write.
    pub(crate) unsafe fn copy(self, phys: u64) {
        let writes = self.direction == Direction::Write;
        // SAFETY: By the invariant and the requirements of this function.
        unsafe { kfi_bindings::kfi_helper_copy(phys, self.buf, self.len, writes) };
    }
}

#[kernel::macros::kunit_tests(kfabric_transfer)]
mod tests {
    use super::*;

    #[test]
    fn splits_at_most_at_the_end() {
        let (part, rest) = PeerBuffer::write_slice(b"abc").split_at(2);
        assert_eq!((part.len(), rest.len()), (2, 1));
        assert_eq!(rest.needs(), Access::REMOTE_WRITE);
        let (part, rest) = rest.split_at(5);
        assert_eq!((part.len(), rest.len()), (1, 0));
        assert!(rest.is_empty());
    }
}
