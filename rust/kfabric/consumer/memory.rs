// SPDX-License-Identifier: GPL-2.0

//! Memory that can be registered: its traits, memory with contiguous kernel addresses ([`Buffer`]),
//! and lists of buffers ([`Segments`]).

use super::*;
use kernel::alloc::{
    Allocator,
    Vec, //
};

/// The memory list of a registration call.
pub enum MemoryList<'a> {
    /// For `kfi_mr_reg()`.
    Buffer(kvec),
    /// For `kfi_mr_regv()`.
    Kvec(&'a [kvec]),
    /// For `kfi_mr_regbv()`.
    Bvec(&'a [bio_vec]),
    /// For `kfi_mr_regsgl()`: the first entry of a mapped scatterlist, and the number of entries.
    Sgl(NonNull<scatterlist>, usize),
}

/// Owned memory, the base of [`Backing`].
///
/// # Safety
///
/// - The value owns its bytes, or other owners expect that devices access them. The bytes are
///   initialized, unless `is_readable` returns `false`, and may have any values.
/// - The bytes stay allocated, at the same address, until the value is dropped. Moving the value
///   has no effect on them. Forgetting the value leaks them.
/// - `with_list` lists these `len` bytes and no others. The list is valid until `call` returns. No
///   function creates a reference to the bytes.
/// - `with_extent` calls `touch` with bytes of the memory only.
pub unsafe trait OwnedMemory: Send + 'static {
    /// Returns the number of bytes.
    fn len(&self) -> usize;

    /// Checks whether the memory may be written.
    /// May it be written?
    fn is_writable(&self) -> bool {
        true
    }

    /// Checks whether the memory may be read.
    fn is_readable(&self) -> bool {
        true
    }

    /// Checks whether the memory may be registered in this domain with these rights.
    fn fits(&self, _domain: &Arc<Domain>, _access: Access) -> bool {
        true
    }

    /// Calls `call` with the memory as a list.
    fn with_list<R>(
        &self,
        call: impl FnOnce(MemoryList<'_>) -> Result<R, Errno>,
    ) -> Result<R, Errno>;

    /// Calls `touch` once with the address of the byte at `offset`, and the number of contiguous
    /// bytes from there, at least 1. `touch` may read and write them until it returns.
    ///
    /// Does nothing if `offset` is behind the end.
    fn with_extent(&self, offset: usize, touch: impl FnOnce(NonNull<u8>, usize));

    /// Prepares the bytes for accesses by the CPU, after a device may have written them.
    fn to_cpu(&self) {}

    /// Prepares the bytes for accesses by a device.
    fn to_device(&self) {}
}

/// Memory that can be registered: a [`Buffer`], [`Segments`], [`Pages`], a [`BioVecList`], a
/// [`MappedList`] or a [`Formed`].
///
/// The consumer can access the memory before its registration, and after the region has returned
/// it. In between, the [`Mr`] that owns the memory has the same methods. This trait is sealed. A
/// consumer with another type of memory implements [`Buffer`].
pub trait Backing: OwnedMemory {
    /// Copies bytes from `offset` into all of `to`.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the memory is too short, or may not be read.
    fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), Errno> {
        readable(self)?;
        walk(self, offset, to.len(), |done, from, len| {
            if let Some(to) = to.get_mut(done..done + len) {
                // SAFETY: The memory has `len` bytes at `from`. Only devices, or C for them, write
                // to the bytes, since `write` has exclusive access.
                unsafe { volatile::read(from, to) };
            }
            true
        })
    }

    /// Copies all bytes of `from` to `offset`.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the memory is too short, or may not be written.
    fn write(&mut self, offset: usize, from: &[u8]) -> Result<(), Errno> {
        writable(self)?;
        walk(self, offset, from.len(), |done, to, len| {
            if let Some(from) = from.get(done..done + len) {
                // SAFETY: The memory has `len` bytes at `to`. Only devices, or C for them, access
                // the bytes at the same time, since `self` is an exclusive reference.
                unsafe { volatile::write(to, from) };
            }
            true
        })
    }

    /// Sets all bytes to `value`.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the memory may not be written.
    fn fill(&mut self, value: u8) -> Result<(), Errno> {
        writable(self)?;
        walk(self, 0, self.len(), |_, to, len| {
            // SAFETY: The memory has `len` bytes at `to`. Only devices, or C for them, access the
            // bytes at the same time, since `self` is an exclusive reference.
            unsafe { volatile::fill(to, value, len) };
            true
        })
    }

    /// Compares the bytes from `offset` on with all bytes of `with`.
    ///
    /// Returns `None` if they are the same, else the index of the first in `with` that differs.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there aren't that many, or they may not be read.
    fn compare(&self, offset: usize, with: &[u8]) -> Result<Option<usize>, Errno> {
        readable(self)?;
        let mut differs = None;
        walk(self, offset, with.len(), |done, from, len| {
            let with = with.iter().enumerate().skip(done).take(len);
            for (at, (index, byte)) in with.enumerate() {
                // SAFETY: The memory has `len` bytes at `from`, and `at` is less. Only devices, or
                // C for them, write to the bytes, since `write` has exclusive access.
                if unsafe { from.add(at).read_volatile() } != *byte {
                    differs = Some(index);
                    return false;
                }
            }
            true
        })?;
        Ok(differs)
    }
}

impl<M: OwnedMemory> Backing for M {}

fn readable<M: OwnedMemory + ?Sized>(memory: &M) -> Result<(), Errno> {
    memory.is_readable().then_some(()).ok_or(Errno::EINVAL)
}

fn writable<M: OwnedMemory + ?Sized>(memory: &M) -> Result<(), Errno> {
    memory.is_writable().then_some(()).ok_or(Errno::EINVAL)
}

/// Calls `touch` for each extent in the `len` bytes from `offset`: with the number of bytes done,
/// the address and the length. Stops when `touch` returns `false`.
fn walk<M: OwnedMemory + ?Sized>(
    memory: &M,
    offset: usize,
    len: usize,
    mut touch: impl FnMut(usize, NonNull<u8>, usize) -> bool,
) -> Result<(), Errno> {
    match offset.checked_add(len) {
        Some(end) if end <= memory.len() => (),
        _ => return Err(Errno::EINVAL),
    }
    memory.to_cpu();
    let mut done = 0;
    let mut more = true;
    while more && done < len {
        // Ends the loop if the memory doesn't call `touch`.
        more = false;
        memory.with_extent(offset + done, |start, here| {
            let here = here.min(len - done);
            more = touch(done, start, here);
            done += here;
        });
    }
    memory.to_device();
    Ok(())
}

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

/// Several buffers, which [`regv`](crate::consumer::Domain::regv) registers as one region.
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
