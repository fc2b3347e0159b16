// SPDX-License-Identifier: GPL-2.0

//! Disks and their limits.

use crate::{
    driver,
    Driver,
    TagSet, //
};
use block_bindings as b;
use block_bindings::block_helper_limits;
use core::ptr::NonNull;
use kernel::{
    bindings,
    error::{
        from_err_ptr,
        to_result, //
    },
    prelude::*,
    sync::Arc,
    types::Opaque, //
};

/// A disk that programs can open.
///
/// Dropping it removes the disk: that writes dirty data in memory, and sleeps until every request
/// has ended. A program that has the disk open gets errors then. The driver's module isn't unloaded
/// as long as one of its disks is open.
///
/// # Invariants
///
/// `disk` was added, with `tags`, and with a reference of `data`'s.
pub struct Disk<D: Driver> {
    disk: NonNull<bindings::gendisk>,
    data: *const D::Disk,
    _tags: Arc<TagSet<D>>,
}

// SAFETY: Disks are not tied to a task, nor is what they have.
unsafe impl<D: Driver> Send for Disk<D> {}
// SAFETY: The calls on a shared disk do their own locking.
unsafe impl<D: Driver> Sync for Disk<D> {}

impl<D: Driver> Disk<D> {
    /// Adds a disk of `sectors` sectors of 512 bytes. The kernel reads the disk for partitions, so
    /// requests come before this returns. Sleeps.
    ///
    /// Generic, so that the disk is of the module that the driver is part of.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: limits that make no sense, or a name that is too long.
    /// - `EEXIST`: there is one of that name.
    /// - `ENOMEM`.
    pub fn add(
        tags: &Arc<TagSet<D>>,
        name: &CStr,
        limits: &Limits,
        sectors: u64,
        data: Arc<D::Disk>,
    ) -> Result<Self> {
        unsafe extern "C" {
            // A `struct module`. Only its address is used.
            static __this_module: Opaque<u8>;
        }
        if name.to_bytes_with_nul().len() > NAME {
            return Err(EINVAL);
        }
        let owner = (&raw const __this_module).cast_mut().cast();
        let data = driver::into_raw(data);
        let disk = tags.joined_by(|| {
            // SAFETY: The disk has a reference to the tag set, which stays as long. Limits and name
            // are valid for the call. The target of `data` goes after the disk.
            let disk = from_err_ptr(unsafe {
                b::block_helper_new_disk(
                    tags.as_ptr(),
                    &limits.raw(),
                    name.as_char_ptr(),
                    sectors,
                    data,
                    owner,
                )
            })?;
            NonNull::new(disk).ok_or(ENOMEM)
        });
        let data = data.cast_const().cast();
        let added = disk.and_then(|disk| {
            // SAFETY: Just made, and nobody else's.
            to_result(unsafe { b::block_helper_add_disk(disk.as_ptr()) })?;
            Ok(disk)
        });
        match added {
            // INVARIANT: Just added.
            Ok(disk) => Ok(Self {
                disk,
                data,
                _tags: tags.clone(),
            }),
            Err(error) => {
                // SAFETY: There is no disk that has it.
                drop(unsafe { Arc::from_raw(data) });
                Err(error)
            }
        }
    }

    /// Sets the size of the disk, in sectors of 512 bytes. May sleep.
    pub fn set_sectors(&self, sectors: u64) {
        // SAFETY: `disk` is valid until `drop`, by the type invariant.
        unsafe { bindings::set_capacity_and_notify(self.disk.as_ptr(), sectors) };
    }

    /// Says that the disk is gone: what is written from now on fails at once, and taking the disk away
    /// doesn't try to write anything. Sleeps.
    pub fn mark_dead(&self) {
        // SAFETY: `disk` is valid until `drop`, by the type invariant.
        unsafe { bindings::blk_mark_disk_dead(self.disk.as_ptr()) };
    }
}

/// Room for a name, with the byte that ends it.
const NAME: usize = 32;

impl<D: Driver> Drop for Disk<D> {
    fn drop(&mut self) {
        let disk = self.disk.as_ptr();
        // SAFETY: By the type invariant it was added, and this is the only one to take it away.
        unsafe {
            bindings::del_gendisk(disk);
            bindings::put_disk(disk);
        }
        // SAFETY: No request is queued any more, so nobody asks for it.
        drop(unsafe { Arc::from_raw(self.data) });
    }
}

/// The limits of a disk for one request. Sectors have 512 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The smallest unit, in bytes: a power of two from 512 to the size of a page.
    pub logical_block_size: u32,
    /// The unit that the disk writes at once, in bytes.
    pub physical_block_size: u32,
    /// How many sectors are read or written.
    pub max_sectors: u32,
    /// How many pieces of memory they are in.
    pub max_segments: u16,
    /// Each piece but the first begins, and each but the last ends, at a multiple of this, which is a
    /// power of two; if it is given.
    pub virt_boundary: Option<u32>,
    /// How many sectors are discarded; 0 if none can be.
    pub max_discard_sectors: u32,
    /// The unit that the disk discards at once, in bytes.
    pub discard_granularity: u32,
    /// How many sectors are zeroed; 0 if none can be.
    pub max_write_zeroes_sectors: u32,
    /// Flushing does something.
    pub write_cache: bool,
    /// A write may ask to be on the disk when it ends.
    pub fua: bool,
}

impl Default for Limits {
    /// Returns the limits of a disk that can read and write.
    fn default() -> Self {
        Self {
            logical_block_size: 512,
            physical_block_size: 512,
            max_sectors: 256,
            max_segments: 128,
            virt_boundary: None,
            max_discard_sectors: 0,
            discard_granularity: 0,
            max_write_zeroes_sectors: 0,
            write_cache: false,
            fua: false,
        }
    }
}

impl Limits {
    pub(crate) fn raw(&self) -> block_helper_limits {
        block_helper_limits {
            logical_block_size: self.logical_block_size,
            physical_block_size: self.physical_block_size,
            max_sectors: self.max_sectors,
            max_segments: self.max_segments.into(),
            virt_boundary: self
                .virt_boundary
                .map_or(0, |size| u64::from(size.saturating_sub(1))),
            max_discard_sectors: self.max_discard_sectors,
            discard_granularity: self.discard_granularity,
            max_write_zeroes_sectors: self.max_write_zeroes_sectors,
            write_cache: self.write_cache,
            fua: self.fua,
        }
    }
}
