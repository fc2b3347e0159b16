// SPDX-License-Identifier: GPL-2.0

//! The memory at this side of a transfer, as the consumer gave it, and the limits for it.

use crate::{
    region::{
        memory::MappedAs,
        segments::SegmentList,
        source::Source, //
    },
    support::{
        errno::Errno,
        num::widen,
        refusal::Refusal, //
    }, //
};
use core::slice;
use kernel::ffi::c_void;
use kfi_bindings::{
    bio_vec,
    kfi_iov_type,
    kfi_iov_type_KFI_BVEC as BVEC,
    kfi_iov_type_KFI_KVEC as KVEC,
    kfi_iov_type_KFI_SGL as SGL,
    kvec,
    scatterlist, //
};

/// A list of buffers, and the descriptors that go with them.
///
/// # Invariants
///
/// There are no descriptors, or as many as segments.
pub(crate) struct Buffers<'a> {
    /// `None` for a transfer of nothing.
    source: Option<Source<'a>>,
    descs: &'a [*mut c_void],
}

/// A list that C gives, of any type.
#[derive(Clone, Copy)]
pub(crate) enum RawList {
    Kvec(*const kvec),
    Bvec(*const bio_vec),
    Sgl(*const scatterlist),
}

impl RawList {
    /// Makes a list whose type is a number.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: unknown type.
    pub(crate) fn of_type(kind: kfi_iov_type, list: *const c_void) -> Result<Self, Refusal> {
        match kind {
            KVEC => Ok(Self::Kvec(list.cast())),
            BVEC => Ok(Self::Bvec(list.cast())),
            SGL => Ok(Self::Sgl(list.cast())),
            other => Err(Refusal::new(Errno::EINVAL, c"unknown type of list").value(other.into())),
        }
    }
}

impl<'a> Buffers<'a> {
    /// Makes a list of one buffer with the descriptor `desc`. The caller keeps `kvec`, since lists
    /// are borrowed.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the buffer is NULL, but not empty.
    pub(crate) fn one(kvec: &'a kvec, desc: &'a *mut c_void) -> Result<Self, Refusal> {
        if kvec.iov_len == 0 {
            return Ok(Self::none());
        }
        // INVARIANT: One of each, or no descriptor.
        Ok(Self {
            source: Some(Source::buffer(kvec)?),
            descs: match desc.is_null() {
                true => &[],
                false => slice::from_ref(desc),
            },
        })
    }

    /// Makes a list of `count` segments, with their descriptors, if there are any.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the list is NULL, but not empty.
    ///
    /// # Safety
    ///
    /// Unless it is null, `list` has `count` entries that nobody changes for `'a`, and so has
    /// `descs`.
    pub(crate) unsafe fn list(
        list: RawList,
        descs: *const *mut c_void,
        count: usize,
    ) -> Result<Self, Refusal> {
        if count == 0 {
            return Ok(Self::none());
        }
        // SAFETY: The list is null or has `count` entries that nobody changes for `'a`, as the
        // caller promises.
        let source = unsafe {
            match list {
                RawList::Kvec(list) => Source::Kvec(SegmentList::from_raw(list, count)?),
                RawList::Bvec(list) => Source::Bvec(SegmentList::from_raw(list, count)?),
                RawList::Sgl(list) => Source::Sgl(SegmentList::from_raw(list, count)?),
            }
        };
        // INVARIANT: As many, or none.
        Ok(Self {
            source: Some(source),
            descs: match descs.is_null() {
                true => &[],
                // SAFETY: `descs` is not null, so it has `count` entries for `'a`, as the caller
                // promises. The slice has at most `MAX_PIECES + 1` of them. A longer list is
                // refused before its descriptors are read.
                false => unsafe { slice::from_raw_parts(descs, count.min(MAX_PIECES + 1)) },
            },
        })
    }

    /// Makes an empty list.
    pub(crate) const fn none() -> Self {
        // INVARIANT: None of either.
        Self {
            source: None,
            descs: &[],
        }
    }

    /// Returns the segments; `None` for no bytes.
    pub(super) fn source(&self) -> Option<&Source<'a>> {
        self.source.as_ref()
    }

    /// Returns the descriptor of a segment; `None` if it has none.
    pub(super) fn desc(&self, index: usize) -> Option<usize> {
        let desc = self.descs.get(index)?;
        (!desc.is_null()).then(|| desc.addr())
    }

    /// Checks whether no segment has a descriptor.
    pub(super) fn is_bare(&self) -> bool {
        self.descs.iter().all(|desc| desc.is_null())
    }

    /// Returns the number of segments.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there are more than `limit`.
    pub(crate) fn count_up_to(&self, limit: usize) -> Result<usize, Refusal> {
        let count = self.source.as_ref().map_or(0, Source::count);
        if count > limit {
            let refusal = Refusal::new(Errno::EINVAL, c"more segments than iov_limit");
            return Err(refusal.value(widen(count)));
        }
        Ok(count)
    }
}

/// Most pieces of one transfer.
pub(crate) const MAX_PIECES: usize = 16;

/// Most bytes that one transfer can inject.
pub const MAX_INJECT: usize = 64;

/// The rules of a domain for memory at this side; constant.
#[derive(Clone, Copy, Debug)]
pub struct LocalRules {
    /// A part of a region goes by the region's descriptor. Otherwise its memory is found each time.
    pub by_region: bool,
    /// The kind of addresses in a mapped scatterlist.
    pub mapped: MappedAs,
    /// The device may be able to reach memory of other PCI devices.
    pub peer_to_peer: bool,
    /// Most segments.
    pub segments: usize,
    /// Most pieces; at most 16.
    pub pieces: usize,
    /// Most bytes.
    pub bytes: u64,
}
