// SPDX-License-Identifier: GPL-2.0

//! Memory with contiguous kernel addresses ([`Buffer`]), and lists of it ([`Segments`]).

use super::{
    memory::{
        List,
        Memory, //
    },
    RegisterError, //
};
use crate::support::errno::Errno;
use core::ptr::NonNull;
use kernel::{
    alloc::{
        Allocator,
        Vec, //
    },
    prelude::*, //
};
use kfi_bindings::kvec;

/// A buffer that owns its memory: vectors of bytes, by kmalloc or vmalloc.
///
/// # Examples
///
/// ```
/// use core::ptr::NonNull;
/// use kernel::prelude::*;
/// use kfabric::consumer::Buffer;
///
/// /// A buffer of words, which is registered as the bytes that they are.
/// struct Words(KVec<u64>);
///
/// // SAFETY: The elements are an allocation of the vector's own, which stays where it is and as
/// // long as it is, since nobody else gets at the vector.
/// unsafe impl Buffer for Words {
///     fn start(&self) -> NonNull<u8> {
///         NonNull::new(self.0.as_ptr().cast_mut()).map_or(NonNull::dangling(), NonNull::cast)
///     }
///
///     fn size(&self) -> usize {
///         size_of::<u64>() * self.0.len()
///     }
/// }
/// ```
///
/// # Safety
///
/// Whoever implements it for another type promises for the `size` bytes from `start` on:
///
/// - They are kernel memory that belongs to the value alone; they are initialized, and may have
///   any values. They may be read and written through the pointer.
/// - They stay allocated, and where they are, until the value is dropped: moving it doesn't
///   matter, and forgetting it keeps them for good. So they aren't a part of the value itself, nor
///   borrowed.
/// - `start` and `size` always give the same until something else is done to the value, and make no
///   reference to the bytes.
pub unsafe trait Buffer: Send + 'static {
    /// The address of the first byte.
    fn start(&self) -> NonNull<u8>;

    /// How many bytes there are.
    fn size(&self) -> usize;
}

// SAFETY: A vector's elements are an allocation of its own, which stays as it is as long as only
// its pointer and its length are asked for. It belongs to it until dropped.
unsafe impl<A: Allocator + 'static> Buffer for Vec<u8, A> {
    fn start(&self) -> NonNull<u8> {
        // A vector's pointer is never null, whether it has elements or not.
        NonNull::new(self.as_ptr().cast_mut()).unwrap_or(NonNull::dangling())
    }

    fn size(&self) -> usize {
        self.len()
    }
}

fn segment<B: Buffer>(buffer: &B) -> kvec {
    kvec {
        iov_base: buffer.start().as_ptr().cast(),
        iov_len: buffer.size(),
    }
}

// SAFETY: By the promises of `Buffer`.
unsafe impl<B: Buffer> Memory for B {
    fn len(&self) -> usize {
        self.size()
    }

    fn with_list<R>(&self, call: impl FnOnce(List<'_>) -> Result<R, Errno>) -> Result<R, Errno> {
        call(List::Buffer(segment(self)))
    }

    fn with_stretch(&self, offset: usize, touch: impl FnOnce(NonNull<u8>, usize)) {
        let left = self.size().saturating_sub(offset);
        if left > 0 {
            // SAFETY: `offset` is less than the size.
            touch(unsafe { self.start().add(offset) }, left);
        }
    }
}

/// A part of a buffer, to be registered without the rest.
pub struct Part<B> {
    buffer: B,
    offset: usize,
    len: usize,
}

impl<B: Buffer> Part<B> {
    /// Takes `len` bytes from `offset` on.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there aren't that many; the buffer comes back.
    pub fn new(buffer: B, offset: usize, len: usize) -> Result<Self, RegisterError<B>> {
        match offset.checked_add(len) {
            Some(end) if end <= buffer.size() => Ok(Self {
                buffer,
                offset,
                len,
            }),
            _ => Err(RegisterError::new(Errno::EINVAL, buffer)),
        }
    }

    /// The whole buffer.
    pub fn into_inner(self) -> B {
        self.buffer
    }
}

// SAFETY: The bytes are some of the buffer's, checked when it was made; the rest is as promised
// for them.
unsafe impl<B: Buffer> Buffer for Part<B> {
    fn start(&self) -> NonNull<u8> {
        // SAFETY: `offset` is at most the size.
        unsafe { self.buffer.start().add(self.offset) }
    }

    fn size(&self) -> usize {
        self.len
    }
}

/// Several buffers, to be registered as one region by [`regv`](super::Domain::regv).
///
/// Most devices take them only if each but the first begins, and each but the last ends, at a page
/// boundary.
pub struct Segments<B>(KVec<B>);

impl<B: Buffer> Segments<B> {
    /// Takes the buffers in the order in which the region shall have them.
    pub fn new(buffers: KVec<B>) -> Self {
        Self(buffers)
    }

    /// The buffers.
    pub fn into_inner(self) -> KVec<B> {
        self.0
    }
}

// SAFETY: By the promises of `Buffer`, for each of them. They can't be taken out or moved within
// the vector while they are a `Segments`, and moving them doesn't move their bytes anyway.
unsafe impl<B: Buffer> Memory for Segments<B> {
    fn len(&self) -> usize {
        let sizes = self.0.iter().map(Buffer::size);
        // All of it is in memory at once, so the sum can't overflow.
        sizes.fold(0, usize::saturating_add)
    }

    fn with_list<R>(&self, call: impl FnOnce(List<'_>) -> Result<R, Errno>) -> Result<R, Errno> {
        let mut list = KVec::with_capacity(self.0.len(), GFP_KERNEL)?;
        for buffer in self.0.iter() {
            list.push(segment(buffer), GFP_KERNEL)?;
        }
        call(List::Kvec(&list))
    }

    fn with_stretch(&self, offset: usize, touch: impl FnOnce(NonNull<u8>, usize)) {
        let mut offset = offset;
        for buffer in self.0.iter() {
            match offset.checked_sub(buffer.size()) {
                Some(left) => offset = left,
                None => return buffer.with_stretch(offset, touch),
            }
        }
    }
}
