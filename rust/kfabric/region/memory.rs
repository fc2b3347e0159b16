// SPDX-License-Identifier: GPL-2.0

//! From kernel addresses and bio_vecs to runs of memory, refusing what must not be registered.
//!
//! Lists are walked through in C (`rust/helpers/runs.c`), run by run; what is to be said of what is
//! found there is said here.

mod kunit;

use crate::{
    region::{
        judge::Use,
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
    marker::PhantomData,
    mem::MaybeUninit,
    slice, //
};
use kernel::prelude::*;
use kfi_bindings::{
    kfi_helper_run,
    kfi_helper_stop_KFI_STOP_FACTS as FACTS,
    kfi_helper_stop_KFI_STOP_NONE as NONE,
    kfi_helper_stop_KFI_STOP_NOT_LINEAR as NOT_LINEAR,
    kfi_helper_stop_KFI_STOP_NO_PAGE as NO_PAGE,
    kfi_helper_stop_KFI_STOP_NULL as NULL,
    kfi_helper_stop_KFI_STOP_STACK as STACK,
    kfi_helper_walk, //
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

    /// The memory of a scatterlist that is mapped to addresses of the linear map. Other lists give
    /// none.
    fn linear_runs(&self, memory: Use) -> Runs<'a> {
        let mut runs = Runs::none(memory);
        if let Self::Sgl(list) = self {
            // INVARIANT: The list stays as it is.
            (runs.walk.sgl, runs.walk.count) = (list.as_ptr(), widen(list.count()));
        }
        runs
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
    _list: PhantomData<&'a Source<'a>>,
}

impl<'a> Runs<'a> {
    /// No list, and so no memory.
    #[inline]
    fn none(memory: Use) -> Self {
        // INVARIANT: There are no segments.
        Self {
            walk: kfi_helper_walk {
                writes: memory.writes(),
                ..Default::default()
            },
            memory,
            found: [const { MaybeUninit::uninit() }; index(MAX_FOUND)],
            _list: PhantomData,
        }
    }

    /// The next runs, of at most so many bytes together; none at the end. May sleep.
    ///
    /// # Errors
    ///
    /// - `EFAULT`: the next memory may not be registered.
    pub fn next_runs(&mut self, max_bytes: u64) -> Result<&[MemoryRun<'a>], Refusal> {
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
