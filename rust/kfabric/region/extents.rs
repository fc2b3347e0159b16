// SPDX-License-Identifier: GPL-2.0

//! From kernel addresses, bio_vecs and mapped scatterlists to memory that may be registered.
//!
//! A list is walked through once, in C (`rust/helpers/memory_walk.c`). The walk checks each page from its
//! `struct page` alone, and joins contiguous memory.

#[cfg(CONFIG_KUNIT = "y")]
mod kunit;

use super::segment_list::{
    PlainList,
    Source, //
};
use crate::prelude::*;
use core::{
    cell::Cell,
    mem::MaybeUninit, //
};
use kernel::bindings;
use kfi_bindings as c;

/// Contiguous memory of a region, which may be registered. It is valid as long as the request.
///
/// # Invariants
///
/// These are physical addresses, not none, whose pages all have a `struct page` and may be registered
/// with the rights of the request.
#[repr(transparent)]
pub struct Extent<'a> {
    pub(crate) raw: c::kfi_helper_run,
    _memory: PhantomData<&'a [u8]>,
}

impl Extent<'_> {
    /// Returns the physical address of the first byte.
    pub const fn phys(&self) -> u64 {
        self.raw.phys
    }

    /// Returns the length in bytes; not 0.
    pub const fn bytes(&self) -> u64 {
        self.raw.len
    }
}

/// The kind of addresses in a mapped scatterlist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappedAs {
    /// Physical addresses, as [`Direct`](crate::provider::Direct) makes them.
    Physical,
    /// Kernel addresses of the linear map, as devices in software have them.
    Linear,
    /// The device's own.
    Device,
}

impl<'a> Source<'a> {
    /// Returns the memory in the order of the region. A scatterlist whose addresses only the device knows has none.
    #[inline(always)]
    pub(crate) fn extents(&self, memory: PageUse, mapped: MappedAs) -> Extents<'a> {
        let mut walk = c::kfi_helper_walk {
            writes: memory.writes,
            peer_to_peer: memory.peer_to_peer,
            physical: mapped == MappedAs::Physical,
            ..NO_LIST
        };
        match self {
            Self::Kvec(list) => (walk.kvecs, walk.count) = (list.first.as_ptr(), widen(list.count)),
            Self::Bvec(list) => (walk.bvecs, walk.count) = (list.first.as_ptr(), widen(list.count)),
            Self::Sgl(_) if mapped == MappedAs::Device => (),
            Self::Sgl(list) => (walk.sgl, walk.count) = (list.first.as_ptr(), widen(list.count)),
        }
        // INVARIANT: The list stays as it is by the invariant of `List`.
        Extents {
            walk,
            found: [const { MaybeUninit::uninit() }; index(MAX_FOUND)],
            mistaken: None,
            _list: PhantomData,
        }
    }

    /// Returns all of the memory, if it is one segment of any length that is contiguous in memory:
    /// a page, or addresses of the linear map, also in a scatterlist. Returns [`None`] if it is
    /// more. May sleep.
    ///
    /// # Errors
    ///
    /// The errors of [`Extents::next_extents`].
    pub(crate) fn one_extent(&self, memory: PageUse) -> Result<Option<Extent<'a>>, Refusal> {
        let is_one = match self {
            Self::Kvec(list) => match list.entries(2) {
                // SAFETY: The function takes any address.
                [one] => !unsafe { bindings::is_vmalloc_addr(one.iov_base) },
                _ => false,
            },
            Self::Bvec(list) => list.count == 1,
            Self::Sgl(list) => list.count == 1,
        };
        if !is_one {
            return Ok(None);
        }
        let mut runs = self.extents(memory, MappedAs::Linear);
        let one = match runs.next_extents(u64::MAX)? {
            // INVARIANT: `one` has these addresses, and the list stays as it is for `'a`.
            [one] => Extent {
                raw: c::kfi_helper_run {
                    phys: one.phys(),
                    len: one.bytes(),
                },
                _memory: PhantomData,
            },
            _ => return Ok(None),
        };
        runs.refusal()?;
        Ok(Some(one))
    }

    /// Returns the list, if it is a scatterlist that may be handed on to a device that takes addresses of the linear
    /// map; see [`MrRequest::plain_list`](crate::MrRequest::plain_list).
    pub(crate) fn plain_list(&self) -> Option<PlainList<'a>> {
        let Self::Sgl(list) = self else {
            return None;
        };
        // SAFETY: The list has an entry and stays as it is, by the invariant of `List`.
        let is_plain =
            unsafe { kfi_bindings::kfi_helper_check_list(list.as_ptr(), widen(list.count())) };
        // SAFETY: The helper has just found that.
        is_plain.then(|| unsafe { PlainList::of(*list) })
    }
}

/// A walk through no segments.
const NO_LIST: c::kfi_helper_walk = c::kfi_helper_walk {
    kvecs: ptr::null(),
    bvecs: ptr::null(),
    sgl: ptr::null_mut(),
    count: 0,
    index: 0,
    done: 0,
    limit: 0,
    writes: false,
    peer_to_peer: false,
    physical: false,
    pages: false,
    refused: c::kfi_helper_refused_KFI_REFUSED_NONE,
    value: 0,
};

/// Maximum number of runs that one step of the walk finds.
const MAX_FOUND: u32 = 16;

/// The memory of a request, see [`MrRequest::extents`](crate::MrRequest::extents).
///
/// # Invariants
///
/// `walk` is that of a list that stays as it is for `'a`.
pub struct Extents<'a> {
    walk: c::kfi_helper_walk,
    /// Written where something was found: clearing it would take longer than most regions need.
    found: [MaybeUninit<c::kfi_helper_run>; index(MAX_FOUND)],
    /// Set if the list was taken for one of pages, and is none or has bad memory.
    mistaken: Option<&'a Cell<bool>>,
    _list: PhantomData<&'a Source<'a>>,
}

impl<'a> Extents<'a> {
    /// Takes the list for one in which each segment is a page; `mistaken` is set if it is not.
    #[inline]
    pub(super) fn of_pages(&mut self, mistaken: &'a Cell<bool>) {
        self.walk.pages = true;
        self.mistaken = Some(mistaken);
    }

    /// Checks whether the walk has reached the end of the list. Any context.
    #[inline]
    pub(crate) fn is_at_end(&self) -> bool {
        self.walk.index >= self.walk.count
            && self.walk.refused == c::kfi_helper_refused_KFI_REFUSED_NONE
    }

    /// Returns the next extents, of at most `max_bytes` bytes together; none at the end. May sleep
    /// in process context.
    ///
    /// # Errors
    ///
    /// - `EFAULT`: the next memory may not be registered.
    /// - `EINVAL`: the next address of a scatterlist is none of the device.
    pub fn next_extents(&mut self, max_bytes: u64) -> Result<&[Extent<'a>], Refusal> {
        self.walk.limit = max_bytes;
        let found = self.found.as_mut_ptr().cast();
        let count = match self.walk.refused {
            // SAFETY: `walk` has a list that stays as it is, by the type invariant. `found` has
            // space for `MAX_FOUND` entries of the helper's layout.
            c::kfi_helper_refused_KFI_REFUSED_NONE => unsafe {
                kfi_bindings::kfi_helper_walk(&mut self.walk, found, MAX_FOUND)
            },
            _ => 0,
        };
        self.check_end(count)?;
        let count = index(count.min(MAX_FOUND));
        // INVARIANT: The walk has written `count` entries, and has checked their pages.
        // SAFETY: The walk has written `count` entries. An `Extent` has the layout of one.
        Ok(unsafe { slice::from_raw_parts(self.found.as_ptr().cast(), count) })
    }

    /// Fills entries of a scatterlist with the next memory, at most `max_bytes` bytes, as far as
    /// `room` has space. Each has at most `max_len` bytes. If `virt` is set, they have addresses of
    /// the linear map, as if mapped for a device that takes these. Otherwise they have pages.
    /// Memory that follows the memory before it is in the same entry, unless an earlier call filled
    /// that. May sleep in process context.
    ///
    /// Returns how many entries were filled, from the first on, and how many bytes they have; none at the end.
    ///
    /// # Errors
    ///
    /// The errors of [`next_extents`](Self::next_extents).
    pub fn next_entries(
        &mut self,
        max_bytes: u64,
        max_len: u32,
        virt: bool,
        room: &mut [MaybeUninit<scatterlist>],
    ) -> Result<(usize, u64), Refusal> {
        self.walk.limit = max_bytes;
        let max = u32::try_from(room.len()).unwrap_or(u32::MAX);
        let first = room.as_mut_ptr().cast();
        let count = match self.walk.refused {
            // SAFETY: `walk` has a list that stays as it is, by the type invariant. `room` has
            // space for `max` entries.
            c::kfi_helper_refused_KFI_REFUSED_NONE => unsafe {
                kfi_bindings::kfi_helper_walk_entries(&mut self.walk, first, max, max_len, virt)
            },
            _ => 0,
        };
        self.check_end(count)?;
        Ok((index(count), max_bytes - self.walk.limit))
    }

    /// Returns the error for memory that the walk has refused, if this call of the walk has reported no memory.
    #[inline]
    fn check_end(&self, count: u32) -> Result<(), Refusal> {
        match count {
            0 if self.walk.limit > 0 => self.refusal(),
            _ => Ok(()),
        }
    }

    /// Returns the error for memory that the walk has refused, if it has.
    #[inline]
    fn refusal(&self) -> Result<(), Refusal> {
        match self.walk.refused {
            c::kfi_helper_refused_KFI_REFUSED_NONE => Ok(()),
            refused => Err(self.refused(refused)),
        }
    }

    #[cold]
    fn refused(&self, refused: c::kfi_helper_refused) -> Refusal {
        if let Some(mistaken) = self.mistaken {
            mistaken.set(true);
            // The core drops this error, counts the list, and walks again.
            return Errno::EINVAL.into();
        }
        let index = usize::try_from(self.walk.index).unwrap_or(usize::MAX);
        refusal(refused).at(index).value(self.walk.value)
    }
}

/// The use that a region makes of its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageUse {
    /// The device writes to them.
    pub(crate) writes: bool,
    /// The device may be able to reach memory of other PCI devices; its DMA mapping tells.
    pub(crate) peer_to_peer: bool,
}

/// Returns the error for memory that the walk has refused.
pub(super) fn refusal(refused: c::kfi_helper_refused) -> Refusal {
    let why = match refused {
        c::kfi_helper_refused_KFI_REFUSED_DEVICE_ADDRESS => {
            return Refusal::new(Errno::EINVAL, c"no address of this device")
        }
        c::kfi_helper_refused_KFI_REFUSED_NULL => c"address is NULL",
        c::kfi_helper_refused_KFI_REFUSED_STACK => c"memory of the caller's stack",
        c::kfi_helper_refused_KFI_REFUSED_ADDRESS => c"no memory that may be registered",
        c::kfi_helper_refused_KFI_REFUSED_PAGE_POINTER => c"no page of this machine",
        c::kfi_helper_refused_KFI_REFUSED_NO_PAGE => c"no memory of this machine",
        c::kfi_helper_refused_KFI_REFUSED_OFFLINE => c"memory that is offline",
        c::kfi_helper_refused_KFI_REFUSED_DEVICE_PRIVATE => {
            c"memory that a device keeps for itself"
        }
        c::kfi_helper_refused_KFI_REFUSED_PEER_TO_PEER => {
            c"memory of a PCI device, which this one can't reach"
        }
        c::kfi_helper_refused_KFI_REFUSED_RESERVED => c"reserved memory, as the kernel image is",
        c::kfi_helper_refused_KFI_REFUSED_ZERO => c"the zero page, to be written to",
        c::kfi_helper_refused_KFI_REFUSED_POISONED => c"memory with a hardware error",
        c::kfi_helper_refused_KFI_REFUSED_FREE => c"a free page or a page table",
        _ => c"memory that may not be registered",
    };
    Refusal::new(Errno::EFAULT, why)
}

#[kernel::macros::kunit_tests(kfabric_page_check)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_has_words_of_its_own() {
        let other = refusal(c::kfi_helper_refused::MAX);
        for refused in
            c::kfi_helper_refused_KFI_REFUSED_NULL..=c::kfi_helper_refused_KFI_REFUSED_FREE
        {
            assert_ne!(refusal(refused).why(), other.why());
            for before in c::kfi_helper_refused_KFI_REFUSED_NULL..refused {
                assert_ne!(refusal(refused).why(), refusal(before).why());
            }
        }
    }

    #[test]
    fn no_frame_is_so_large() {
        // SAFETY: Any page frame may be asked about.
        let refused = unsafe { kfi_bindings::kfi_helper_check_page(u64::MAX >> 12, false, false) };
        assert_eq!(refused, c::kfi_helper_refused_KFI_REFUSED_NO_PAGE);
    }
}
