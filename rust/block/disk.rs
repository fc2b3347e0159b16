// SPDX-License-Identifier: GPL-2.0

//! Disks.

use crate::{
    driver,
    Driver,
    Limits,
    TagSet, //
};
use block_bindings as b;
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
