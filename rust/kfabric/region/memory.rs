// SPDX-License-Identifier: GPL-2.0

//! From kernel addresses and bio_vecs to runs of memory, refusing what must not be registered.
//!
//! Lists are walked through in C (`rust/helpers/runs.c`), run by run; what is to be said of what is
//! found there is said here.

mod kunit;

use crate::{
    region::{
        around::{
            Around,
            NOTHING, //
        },
        judge::Use,
        list::PlainList,
        source::Source, //
    },
    support::{
        errno::Errno,
        num::{
            index,
            widen, //
        },
        refusal::Refusal, //
    }, //
};
use core::{
    cell::Cell,
    marker::PhantomData,
    mem::{
        self,
        MaybeUninit, //
    },
    ptr,
    slice, //
};
use kernel::prelude::*;
use kfi_bindings::{
    kfi_helper_around,
    kfi_helper_run,
    kfi_helper_stop_KFI_STOP_FACTS as FACTS,
    kfi_helper_stop_KFI_STOP_NONE as NONE,
    kfi_helper_stop_KFI_STOP_NOT_LINEAR as NOT_LINEAR,
    kfi_helper_stop_KFI_STOP_NO_PAGE as NO_PAGE,
    kfi_helper_stop_KFI_STOP_NULL as NULL,
    kfi_helper_stop_KFI_STOP_STACK as STACK,
    kfi_helper_walk,
    scatterlist, //
};

/// Memory of a region that is contiguous and may be registered; it is there as long as the request.
///
/// # Invariants
///
/// These are physical addresses, not none, whose pages all have a `struct page` and may be registered
/// with the rights of the request.
#[repr(transparent)]
pub struct MemoryRun<'a> {
    raw: kfi_helper_run,
    _memory: PhantomData<&'a [u8]>,
}

impl MemoryRun<'_> {
    /// Physical address of its first byte.
    pub const fn phys(&self) -> u64 {
        self.raw.phys
    }

    /// Length in bytes; not 0.
    pub const fn bytes(&self) -> u64 {
        self.raw.len
    }
}

impl<'a> Source<'a> {
    /// The memory in the order of the region. A scatterlist has been mapped by its owner, and gives
    /// none.
    #[inline(always)]
    pub(crate) fn runs(&self, memory: Use) -> Runs<'a> {
        let mut runs = Runs::none(memory);
        // INVARIANT: The list stays as it is.
        match self {
            Self::Kvec(list) => {
                let list = list.entries(usize::MAX);
                (runs.walk.kvecs, runs.walk.count) = (list.as_ptr(), widen(list.len()));
            }
            Self::Bvec(list) => {
                let list = list.entries(usize::MAX);
                (runs.walk.bvecs, runs.walk.count) = (list.as_ptr(), widen(list.len()));
            }
            Self::Sgl(_) => (),
        }
        runs
    }

    /// As [`runs`](Self::runs), and that of a scatterlist too, which is mapped to addresses of the
    /// linear map.
    #[inline(always)]
    pub(crate) fn linear_runs(&self, memory: Use) -> Runs<'a> {
        let mut runs = self.runs(memory);
        if let Self::Sgl(list) = self {
            // INVARIANT: The list stays as it is.
            (runs.walk.sgl, runs.walk.count) = (list.as_ptr(), widen(list.count()));
        }
        runs
    }

    /// All of the memory, if it is one run of the linear map about which there is nothing to be said;
    /// `None` if it isn't as simple: then [`linear_runs`](Self::linear_runs) says what there is to be said.
    /// What is found of its surroundings is left to others of the same call. May sleep.
    pub(crate) fn plain_run(&self, memory: Use, around: Option<&Around>) -> Option<MemoryRun<'a>> {
        let writes = memory.writes();
        let mut nothing = NOTHING;
        let around = around.map_or(&raw mut nothing, |around| around.of(memory).as_ptr());
        // SAFETY: The lists stay as they are by the invariant of `List`, and have an entry each; `around` is
        // of this call, or in a cell, which nobody looks into meanwhile.
        let (phys, len) = unsafe {
            match self {
                Self::Kvec(list) => match list.entries(2) {
                    [one] => (
                        kfi_bindings::kfi_helper_plain_kvec(one, writes, around),
                        widen(one.iov_len),
                    ),
                    _ => return None,
                },
                Self::Bvec(list) => match list.entries(2) {
                    [one] => {
                        let len = u64::from(one.bv_len);
                        let phys = kfi_bindings::kfi_helper_plain_bvec(one, writes, around);
                        (phys, len)
                    }
                    _ => return None,
                },
                Self::Sgl(list) if list.count() == 1 => {
                    let mut len = 0;
                    let first = list.as_ptr();
                    (
                        kfi_bindings::kfi_helper_plain_entry(first, writes, around, &mut len),
                        len,
                    )
                }
                Self::Sgl(_) => return None,
            }
        };
        // INVARIANT: Just found to be so; the list is that of a valid request.
        (phys != u64::MAX).then_some(MemoryRun {
            raw: kfi_helper_run { phys, len },
            _memory: PhantomData,
        })
    }

    /// The list, if it is a scatterlist that can be handed on to a device that takes addresses of the linear map;
    /// `None` if it isn't as simple, as for [`plain_run`](Self::plain_run). May sleep.
    pub(crate) fn plain_list(&self, memory: Use, around: Option<&Around>) -> Option<PlainList<'a>> {
        let Self::Sgl(list) = self else {
            return None;
        };
        let (first, count) = (list.as_ptr(), widen(list.count()));
        let mut nothing = NOTHING;
        let around = around.map_or(&raw mut nothing, |around| around.of(memory).as_ptr());
        // SAFETY: The list stays as it is by the invariant of `List`, and isn't empty; `around` is of this call, or
        // in a cell, which nobody looks into meanwhile.
        let is_plain =
            unsafe { kfi_bindings::kfi_helper_plain_list(first, count, memory.writes(), around) };
        // SAFETY: That was just found.
        is_plain.then(|| unsafe { PlainList::of(*list) })
    }

    /// Checks the entries of a scatterlist for a device whose addresses are those of the linear map.
    /// May sleep.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: an address is not of the linear map.
    /// - `EFAULT`: what is there may not be registered.
    pub(crate) fn check_linear(&self, memory: Use) -> Result<(), Refusal> {
        let mut runs = self.linear_runs(memory);
        while !runs.next_runs(u64::MAX)?.is_empty() {}
        Ok(())
    }
}

/// No segments.
const NO_LIST: kfi_helper_walk = kfi_helper_walk {
    kvecs: ptr::null(),
    bvecs: ptr::null(),
    sgl: ptr::null_mut(),
    count: 0,
    index: 0,
    done: 0,
    limit: 0,
    writes: false,
    stop: NONE,
    facts: 0,
    value: 0,
    page: kfi_helper_run { phys: 0, len: 0 },
    around: NOTHING,
};

/// So many runs are looked for at once.
const MAX_FOUND: u32 = 16;

/// The memory of a request, see [`MrRequest::runs`](crate::MrRequest::runs).
///
/// # Invariants
///
/// `walk` is that of a list that stays as it is for `'a`.
pub struct Runs<'a> {
    walk: kfi_helper_walk,
    memory: Use,
    /// Written where something was found: clearing it would take longer than most regions need.
    found: [MaybeUninit<kfi_helper_run>; index(MAX_FOUND)],
    /// Where others of the same call have left what they have found.
    around: Option<&'a Cell<kfi_helper_around>>,
    /// To be set if the list isn't one of pages, for which it was taken.
    mistaken: Option<&'a Cell<bool>>,
    _list: PhantomData<&'a Source<'a>>,
}

impl Drop for Runs<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(around) = self.around {
            around.set(mem::take(&mut self.walk.around));
        }
    }
}

impl<'a> Runs<'a> {
    /// No list, and so no memory.
    #[inline(always)]
    fn none(memory: Use) -> Self {
        // INVARIANT: There are no segments.
        Self {
            walk: kfi_helper_walk {
                writes: memory.writes(),
                ..NO_LIST
            },
            memory,
            found: [const { MaybeUninit::uninit() }; index(MAX_FOUND)],
            around: None,
            mistaken: None,
            _list: PhantomData,
        }
    }

    /// The same, of a list that was taken for one of pages, if there is where to say that it isn't; and
    /// as one of several, if there is what was found around.
    #[inline]
    pub(super) fn set_of(&mut self, mistaken: Option<&'a Cell<bool>>, around: Option<&'a Around>) {
        self.mistaken = mistaken;
        if let Some(around) = around {
            let around = around.of(self.memory);
            self.walk.around = around.take();
            self.around = Some(around);
        }
    }

    /// The next runs, of at most so many bytes together; none at the end. May sleep.
    ///
    /// # Errors
    ///
    /// - `EFAULT`: the next memory may not be registered.
    pub fn next_runs(&mut self, max_bytes: u64) -> Result<&[MemoryRun<'a>], Refusal> {
        if let Some(mistaken) = self.mistaken {
            mistaken.set(true);
            // Not told to anybody.
            return Err(Errno::EINVAL.into());
        }
        let mut count = 0;
        self.walk.limit = max_bytes;
        if self.walk.stop == NONE && self.walk.index < self.walk.count {
            let found = self.found.as_mut_ptr().cast();
            // SAFETY: `walk` is of a list that is there, by the type invariant; `found` has room for
            // so many runs, which are laid out as the helper has them.
            count = unsafe { kfi_bindings::kfi_helper_walk(&mut self.walk, found, MAX_FOUND) };
        }
        if count == 0 && self.walk.stop != NONE {
            self.judge()?;
            count = 1;
        }
        let count = index(count.min(MAX_FOUND));
        // INVARIANT: So many were just found, and nothing speaks against registering them.
        // SAFETY: So many were just written; a `MemoryRun` is laid out as what the helper writes.
        Ok(unsafe { slice::from_raw_parts(self.found.as_ptr().cast(), count) })
    }

    /// The next memory, of at most so many bytes, as entries of a scatterlist, as they would be mapped
    /// for a device that takes kernel addresses: as far as it is whole pages about which there is
    /// nothing to be said, and there is room. Returns how many entries were written, and how many bytes
    /// they have. May sleep.
    ///
    /// What follows on what is before it is one entry, unless that was written by an earlier call.
    pub fn next_entries(
        &mut self,
        max_bytes: u64,
        room: &mut [MaybeUninit<scatterlist>],
    ) -> (usize, u64) {
        if self.walk.stop != NONE {
            return (0, 0);
        }
        self.walk.limit = max_bytes;
        let (first, max) = (room.as_mut_ptr().cast(), u32::try_from(room.len()));
        // SAFETY: `walk` is of a list that is there, by the type invariant, and has not stopped; there
        // is room for so many.
        let count = unsafe {
            kfi_bindings::kfi_helper_fill(&mut self.walk, first, max.unwrap_or(u32::MAX))
        };
        (index(count), max_bytes - self.walk.limit)
    }

    /// Takes the page at which the walk has stopped after all, or says why not.
    fn judge(&mut self) -> Result<(), Refusal> {
        let mut errno = Errno::EFAULT;
        let why = match self.walk.stop {
            NULL => Err(c"address is NULL"),
            STACK => Err(c"memory of the caller's stack"),
            NO_PAGE => Err(c"no page of this machine"),
            NOT_LINEAR => {
                errno = Errno::EINVAL;
                Err(c"no address of this device")
            }
            FACTS => self.memory.allows(self.walk.facts),
            _ => Err(c"no memory that may be registered"),
        };
        why.map_err(|why| {
            let index = usize::try_from(self.walk.index).unwrap_or(usize::MAX);
            let refusal = Refusal::new(errno, why).at(index);
            refusal.value(self.walk.value)
        })?;
        let len = self.walk.page.len.min(self.walk.limit);
        if let Some(first) = self.found.first_mut() {
            // This page was just found to be allowed.
            first.write(kfi_helper_run {
                phys: self.walk.page.phys,
                len,
            });
        }
        self.walk.done += len;
        self.walk.stop = NONE;
        Ok(())
    }
}
