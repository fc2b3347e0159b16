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

/// Memory in the shape in which a registration call takes it.
pub enum List<'a> {
    /// For `kfi_mr_reg()`.
    Buffer(kvec),
    /// For `kfi_mr_regv()`.
    Kvec(&'a [kvec]),
    /// For `kfi_mr_regbv()`.
    Bvec(&'a [bio_vec]),
    /// For `kfi_mr_regsgl()`: the first entry of a mapped scatterlist, and how many count.
    Sgl(NonNull<scatterlist>, usize),
}

/// Owned memory: what is behind [`Backing`].
///
/// # Safety
///
/// - The bytes belong to the value alone, or who else has them knows that devices do. They are initialized,
///   unless `is_readable` says `false`, and may have any values.
/// - They stay allocated, and where they are, until the value is dropped: moving it doesn't
///   matter, and forgetting it keeps them for good.
/// - `with_list` describes these bytes and no others, `len` of them, and they don't change in
///   number or place meanwhile. None of these functions makes a reference to the bytes.
/// - `with_stretch` does what it says.
pub unsafe trait Memory: Send + 'static {
    /// How many bytes there are.
    fn len(&self) -> usize;

    /// May it be written?
    fn is_writable(&self) -> bool {
        true
    }

    /// May it be read?
    fn is_readable(&self) -> bool {
        true
    }

    /// May it be registered in this domain, with these rights?
    fn fits(&self, _domain: &Arc<Domain>, _access: Access) -> bool {
        true
    }

    /// Calls `call` with the memory as a list.
    fn with_list<R>(&self, call: impl FnOnce(List<'_>) -> Result<R, Errno>) -> Result<R, Errno>;

    /// Calls `touch` once with the address of the byte at `offset`, and how many bytes can be
    /// reached from there on: one at least. They may be read and written until `touch` returns.
    ///
    /// Does nothing if there is no such byte.
    fn with_stretch(&self, offset: usize, touch: impl FnOnce(NonNull<u8>, usize));

    /// Called before the processor touches bytes that a device may have written.
    fn to_cpu(&self) {}

    /// Called after it, before a device touches them again.
    fn to_device(&self) {}
}

/// Memory that can be registered: a [`Buffer`](super::Buffer), [`Segments`](super::Segments),
/// [`Pages`](super::Pages), a [`BioVecList`](super::BioVecList) or a
/// [`MappedList`](super::MappedList).
///
/// It can be read and written before it is registered and after it was given back; in between the
/// [`Mr`](super::Mr) that owns it has the same methods. Nothing else needs to be unsafe: this trait
/// is sealed, and whoever has memory of their own implements [`Buffer`](super::Buffer).
pub trait Backing: Memory {
    /// Copies bytes from `offset` on until `to` is full.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there aren't that many, or they may not be read.
    fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), Errno> {
        readable(self)?;
        walk(self, offset, to.len(), |done, from, len| {
            if let Some(to) = to.get_mut(done..done + len) {
                // SAFETY: These bytes can be reached. Where they are registered, only devices
                // write to them, or C for those: `write` has exclusive access.
                unsafe { volatile::read(from, to) };
            }
            true
        })
    }

    /// Copies all bytes of `from` to `offset` and what follows.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there isn't enough room, or it may not be written.
    fn write(&mut self, offset: usize, from: &[u8]) -> Result<(), Errno> {
        writable(self)?;
        walk(self, offset, from.len(), |done, to, len| {
            if let Some(from) = from.get(done..done + len) {
                // SAFETY: These bytes can be reached. Where they are registered, only devices, or C for
                // those, read or write them meanwhile, since this is exclusive access.
                unsafe { volatile::write(to, from) };
            }
            true
        })
    }

    /// Sets all bytes to `value`.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: it may not be written.
    fn fill(&mut self, value: u8) -> Result<(), Errno> {
        writable(self)?;
        walk(self, 0, self.len(), |_, to, len| {
            // SAFETY: `len` bytes at `to` can be reached. Where they are registered, only devices, or C for
            // those, read or write them meanwhile, since this is exclusive access.
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
                // SAFETY: `len` bytes at `from` can be reached, and `at` is less. Where they are
                // registered, only devices write to them, or C for those.
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

impl<M: Memory> Backing for M {}

fn readable<M: Memory + ?Sized>(memory: &M) -> Result<(), Errno> {
    memory.is_readable().then_some(()).ok_or(Errno::EINVAL)
}

fn writable<M: Memory + ?Sized>(memory: &M) -> Result<(), Errno> {
    memory.is_writable().then_some(()).ok_or(Errno::EINVAL)
}

/// Calls `touch` with one run of memory after the other, `len` bytes in all from `offset` on:
/// how many came before it, its address and its length. Ends early where `touch` says `false`.
fn walk<M: Memory + ?Sized>(
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
        // So that it ends, whatever the memory does.
        more = false;
        memory.with_stretch(offset + done, |start, here| {
            let here = here.min(len - done);
            more = touch(done, start, here);
            done += here;
        });
    }
    memory.to_device();
    Ok(())
}
