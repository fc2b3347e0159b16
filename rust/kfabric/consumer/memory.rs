// SPDX-License-Identifier: GPL-2.0

//! Traits of all memory that can be registered.

use super::{
    volatile,
    Domain, //
};
use crate::{
    region::access::Access,
    support::errno::Errno, //
};
use core::ptr::NonNull;
use kernel::sync::Arc;
use kfi_bindings::{
    bio_vec,
    kvec,
    scatterlist, //
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

/// Memory that can be registered: a [`Buffer`](super::Buffer), [`Segments`](super::Segments),
/// [`Pages`](super::Pages), a [`BioVecList`](super::BioVecList) or a
/// [`MappedList`](super::MappedList).
///
/// The consumer can access the memory before its registration, and after the region has returned
/// it. In between, the [`Mr`](super::Mr) that owns the memory has the same methods. This trait is
/// sealed. A consumer with another type of memory implements [`Buffer`](super::Buffer).
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
