// SPDX-License-Identifier: GPL-2.0

//! The local side of a transfer: parts of regions, by descriptor.

use super::MrObject;
use crate::{
    object::domain::DomainObject,
    provider::Keys,
    region::access::Access,
    support::{
        errno::Errno,
        num::widen,
        refusal::Refusal, //
    }, //
};
use kernel::ffi::c_void;
use kfi_bindings::kfid;

/// A part of a region that a transfer reads or writes at this side.
///
/// # Invariants
///
/// When it was made, the region of this descriptor had these bytes, and the rights for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalSegment {
    desc: usize,
    base: u64,
    len: u64,
    pieces: usize,
}

impl LocalSegment {
    /// Takes `len` bytes from `offset` on of the region that has a descriptor, for what `needs`
    /// says: [`Access::SEND`], [`Access::RECV`], [`Access::READ`] or [`Access::WRITE`]. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: it is no domain; no region in it has such a descriptor, or not so many bytes
    ///   there.
    /// - `EACCES`: the region was not registered for that.
    ///
    /// # Safety
    ///
    /// `fid` is null or an open object, and stays open meanwhile.
    pub unsafe fn parse(
        fid: *mut kfid,
        desc: *mut c_void,
        offset: u64,
        len: u64,
        needs: Access,
    ) -> Result<Self, Refusal> {
        // SAFETY: `fid` is null or open by the requirements of this function.
        let domain = unsafe { DomainObject::from_fid(fid) }?;
        let desc = desc.addr();
        let region = domain.descs().find(desc).ok_or(
            Refusal::new(Errno::EINVAL, c"no region has this descriptor").value(widen(desc)),
        )?;
        if region.access.bits() & needs.bits() != needs.bits() {
            let refusal = Refusal::new(Errno::EACCES, c"not registered for such a transfer");
            return Err(refusal.value(needs.bits()));
        }
        match offset.checked_add(len) {
            Some(end) if end <= region.len => Ok(Self {
                desc,
                base: region.base.wrapping_add(offset),
                len,
                pieces: region.pieces,
            }),
            _ => Err(Refusal::new(Errno::EINVAL, c"more than the region has").value(len)),
        }
    }

    /// Returns the region's descriptor. Any context.
    pub fn desc(&self) -> usize {
        self.desc
    }

    /// Returns the address of the first byte for the device. Any context.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Returns how many bytes it has. Any context.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns how many regions of the device its region is: a segment of one can be used as it is.
    /// Any context.
    pub fn pieces(&self) -> usize {
        self.pieces
    }

    /// Is there nothing in it? Any context.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// What is found of an enabled region, besides what it was registered with.
pub(super) struct Found {
    desc: usize,
    base: u64,
    pieces: usize,
}

impl Found {
    /// That of a region that peers reach like this. Any context.
    pub(super) fn new(keys: &Keys) -> Self {
        Self {
            desc: keys.desc,
            base: keys.base,
            pieces: keys.pieces.len().max(1),
        }
    }
}

impl MrObject {
    /// Lets the region be found by its descriptor, if it is enabled and has one. Called once. Any
    /// context.
    pub(super) fn reveal(&self, found: Option<Found>) {
        if let Some(Found { desc, base, pieces }) = found {
            let descs = self.parent().descs();
            // SAFETY: Enabled once, so not in the table yet; the object doesn't move, and is hidden
            // before it is dropped.
            unsafe { descs.insert(&self.local, desc, base, pieces) };
        }
    }

    /// Lets it not be found any more. Called when it is being closed. Any context.
    pub(super) fn hide(&self) {
        // SAFETY: If it is in a table, it is that of its domain; enabling it has ended.
        unsafe { self.parent().descs().remove(&self.local) };
    }
}
