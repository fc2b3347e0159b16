// SPDX-License-Identifier: GPL-2.0

//! Memory with contiguous kernel addresses ([`Buffer`]), and lists of it ([`Segments`]).

use super::{
    memory::{
        MemoryList,
        OwnedMemory, //
    },
    RegisterError, //
};
use crate::prelude::*;
use kernel::alloc::{
    Allocator,
    Vec, //
};
use kfi_bindings::kvec;

/// A buffer that owns its memory, for example a vector of bytes by kmalloc or vmalloc.
///
/// # Examples
///
/// ```
/// use core::ptr::NonNull;
/// use kernel::prelude::*;
/// use kfabric::consumer::Buffer;
///
/// /// A buffer of words, which is registered as bytes.
/// struct Words(KVec<u64>);
///
/// // SAFETY: The vector owns its elements. They stay at their address until the vector is dropped,
/// // since nobody else can change the vector.
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
/// An implementation promises for the `size` bytes from `start`:
///
/// - The value owns the bytes, which are kernel memory. They are initialized, and may have any
///   values. The pointer may be used to read and write them.
/// - The bytes stay allocated, at the same address, until the value is dropped. Moving the value
///   has no effect on them. Forgetting the value leaks them. So the value doesn't contain or borrow
///   them.
/// - `start` and `size` return the same until the value is changed. They create no reference to the
///   bytes.
pub unsafe trait Buffer: Send + 'static {
    /// Returns the address of the first byte.
    fn start(&self) -> NonNull<u8>;

    /// Returns the number of bytes.
    fn size(&self) -> usize;
}

// SAFETY: A vector owns its elements. They stay at their address until it is dropped, since the
// calls here only read its pointer and length.
unsafe impl<A: Allocator + 'static> Buffer for Vec<u8, A> {
    fn start(&self) -> NonNull<u8> {
        // A vector's pointer is never null, even without elements.
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

// SAFETY: `Buffer` promises the same of the `size` bytes from `start`, which `with_list` lists.
unsafe impl<B: Buffer> OwnedMemory for B {
    fn len(&self) -> usize {
        self.size()
    }

    fn with_list<R>(
        &self,
        call: impl FnOnce(MemoryList<'_>) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        call(MemoryList::Buffer(segment(self)))
    }

    fn with_extent(&self, offset: usize, touch: impl FnOnce(NonNull<u8>, usize)) {
        let left = self.size().saturating_sub(offset);
        if left > 0 {
            // SAFETY: `offset` is less than the size.
            touch(unsafe { self.start().add(offset) }, left);
        }
    }
}

/// A part of a buffer, to be registered alone.
pub struct Part<B> {
    buffer: B,
    offset: usize,
    len: usize,
}

impl<B: Buffer> Part<B> {
    /// Selects `len` bytes from `offset`.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the buffer is too short. The error has it.
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

    /// Returns the whole buffer.
    pub fn into_inner(self) -> B {
        self.buffer
    }
}

// SAFETY: `new` checked that the bytes are a part of the buffer, and `Buffer` promises the rest.
unsafe impl<B: Buffer> Buffer for Part<B> {
    fn start(&self) -> NonNull<u8> {
        // SAFETY: `offset` is at most the size.
        unsafe { self.buffer.start().add(self.offset) }
    }

    fn size(&self) -> usize {
        self.len
    }
}

/// Several buffers, which [`regv`](super::Domain::regv) registers as one region.
///
/// Most devices require page boundaries between buffers: each but the first begins at one, and each
/// but the last ends at one.
pub struct Segments<B>(KVec<B>);

impl<B: Buffer> Segments<B> {
    /// Creates a list of buffers, in the order of the region.
    pub fn new(buffers: KVec<B>) -> Self {
        Self(buffers)
    }

    /// Returns the buffers.
    pub fn into_inner(self) -> KVec<B> {
        self.0
    }
}

// SAFETY: `Buffer` promises the same of each buffer, and nobody can change the vector until it is
// returned. `with_list` lists all buffers.
unsafe impl<B: Buffer> OwnedMemory for Segments<B> {
    fn len(&self) -> usize {
        let sizes = self.0.iter().map(Buffer::size);
        // All buffers are in memory at once, so the sum can't overflow.
        sizes.fold(0, usize::saturating_add)
    }

    fn with_list<R>(
        &self,
        call: impl FnOnce(MemoryList<'_>) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        let mut list = KVec::with_capacity(self.0.len(), GFP_KERNEL)?;
        for buffer in self.0.iter() {
            list.push(segment(buffer), GFP_KERNEL)?;
        }
        call(MemoryList::Kvec(&list))
    }

    fn with_extent(&self, offset: usize, touch: impl FnOnce(NonNull<u8>, usize)) {
        let mut offset = offset;
        for buffer in self.0.iter() {
            match offset.checked_sub(buffer.size()) {
                Some(left) => offset = left,
                None => return buffer.with_extent(offset, touch),
            }
        }
    }
}
