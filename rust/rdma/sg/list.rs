// SPDX-License-Identifier: GPL-2.0

//! Building a scatterlist from memory.

use core::{
    mem::{
        self,
        MaybeUninit, //
    },
    ptr::{
        null_mut,
        NonNull, //
    }, //
};
use kernel::{
    bindings,
    prelude::*,
    sync::aref::ARef, //
};

use super::{
    filling::Filling,
    run::Run,
    table::{
        SpareTable,
        Table, //
    }, //
};
use crate::device::Device;

/// A scatterlist, not yet mapped.
///
/// # Invariants
///
/// As many entries of `table` as it has `used`, not 0, are filled, and the last of them is marked as the end.
/// If it is `virt`, they are as if they had been mapped for a device that takes kernel addresses. Its `device` is
/// null, or a reference to one.
pub struct SgList {
    table: Table,
}

/// A scatterlist that is being built.
pub struct SgBuilder {
    filling: Filling,
}

impl SgBuilder {
    /// Begins a list. The entries are allocated as they are needed, unless `spare` has them;
    /// `expected` is about how many. [`ENOMEM`] without memory for the first. May sleep.
    #[inline]
    pub fn new(device: &Device, expected: usize, spare: Option<&SpareTable>) -> Result<Self> {
        let virt = device.is_software();
        Ok(Self {
            filling: Filling::new(device.max_segment_size(), virt, expected, spare)?,
        })
    }

    /// Adds an entry for a run, which doesn't join with others. [`ENOMEM`] without memory for an entry. May
    /// sleep.
    pub fn push(&mut self, run: &Run) -> Result {
        self.filling.push(run)
    }

    /// Adds entries that `fill` fills. It gets the length that they have at most, whether they are to hold
    /// addresses of the linear map, as if mapped for the device, or pages, and room for them. It returns how many
    /// entries it has filled. [`ENOMEM`] without memory for an entry. May sleep.
    ///
    /// # Safety
    ///
    /// `fill` must have written so many, from the first on, no longer than it was told, and not empty. The
    /// memory must stay until each region made of it has been closed.
    pub unsafe fn fill(
        &mut self,
        fill: impl FnOnce(u32, bool, &mut [MaybeUninit<bindings::scatterlist>]) -> usize,
    ) -> Result {
        // SAFETY: By the requirements of this function.
        unsafe { self.filling.fill(fill) }
    }

    /// The list. [`EINVAL`] if it is empty.
    #[inline]
    pub fn done(self) -> Result<SgList> {
        // INVARIANT: Just filled.
        Ok(SgList {
            table: self.filling.done()?,
        })
    }
}

impl SgList {
    /// Are the entries as if they had been mapped for a device that takes kernel addresses?
    pub(super) fn is_virt(&self) -> bool {
        self.table.head().virt
    }

    /// The number of entries.
    pub fn count(&self) -> u32 {
        self.table.head().used
    }

    /// So many entries are mapped now, in this direction, as C has it.
    pub(super) fn set_mapped(&mut self, count: u32, dir: u32) {
        let head = self.table.head_mut();
        (head.mapped, head.dir) = (count, dir);
    }

    /// It is mapped for this device now.
    pub(super) fn set_device(&mut self, device: ARef<Device>) {
        // INVARIANT: The reference is the list's, which had none.
        self.table.head_mut().device = ARef::into_raw(device).as_ptr().cast();
    }

    /// The device that it is mapped for, if it has one.
    pub(super) fn device(&self) -> Option<&Device> {
        // SAFETY: By the type invariant it is null or a device, which stays as long as the reference.
        unsafe { self.table.head().device.cast::<Device>().as_ref() }
    }

    /// The same; it has none any more.
    pub(super) fn take_device(&mut self) -> Option<ARef<Device>> {
        let device = mem::replace(&mut self.table.head_mut().device, null_mut());
        // SAFETY: By the type invariant it is a reference, which was taken out.
        NonNull::new(device.cast()).map(|device| unsafe { ARef::from_raw(device) })
    }

    /// The direction in which it is mapped, as C has it.
    pub(super) fn direction(&self) -> u32 {
        self.table.head().dir
    }

    /// How many entries are mapped.
    pub(super) fn mapped(&self) -> u32 {
        self.table.head().mapped
    }

    /// The first entry.
    pub(super) fn as_raw(&self) -> *mut bindings::scatterlist {
        self.table.first()
    }
}
