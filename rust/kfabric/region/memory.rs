// SPDX-License-Identifier: GPL-2.0

//! From kernel addresses and bio_vecs to runs of memory, refusing what must not be registered.
//!
//! Lists are walked through in C (`rust/helpers/runs.c`), run by run; what is to be said of what is
//! found there is said here.

mod kunit;

use crate::{
    region::{
        judge::{
            Judge,
            Use, //
        },
        shape::Span,
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
    ptr::null, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*, //
};
use kfi_bindings::{
    kfi_helper_run,
    kfi_helper_stop_KFI_STOP_FACTS as FACTS,
    kfi_helper_stop_KFI_STOP_NONE as NONE,
    kfi_helper_stop_KFI_STOP_NO_PAGE as NO_PAGE,
    kfi_helper_stop_KFI_STOP_NULL as NULL,
    kfi_helper_stop_KFI_STOP_STACK as STACK,
    kfi_helper_walk, //
};

const PAGE: u64 = widen(PAGE_SIZE);

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
        let (kvecs, bvecs, count) = match self {
            Self::Kvec(list) => {
                let list = list.entries(usize::MAX);
                (list.as_ptr(), null(), list.len())
            }
            Self::Bvec(list) => {
                let list = list.entries(usize::MAX);
                (null(), list.as_ptr(), list.len())
            }
            Self::Sgl(_) => (null(), null(), 0),
        };
        // INVARIANT: The list stays for `'a`, and no run has been found yet.
        Runs {
            walk: kfi_helper_walk {
                kvecs,
                bvecs,
                count: widen(count),
                writes: memory.writes(),
                ..Default::default()
            },
            memory,
            found: [const { NO_RUN }; index(MAX_FOUND)],
            _list: PhantomData,
        }
    }
}

/// So many runs are looked for at once.
const MAX_FOUND: u32 = 16;

const NO_RUN: MemoryRun<'static> = MemoryRun {
    raw: kfi_helper_run { phys: 0, len: 0 },
    _memory: PhantomData,
};

/// The memory of a request, see [`MrRequest::runs`](crate::MrRequest::runs).
///
/// # Invariants
///
/// `walk` is that of a list that stays as it is for `'a`.
pub struct Runs<'a> {
    walk: kfi_helper_walk,
    memory: Use,
    found: [MemoryRun<'a>; index(MAX_FOUND)],
    _list: PhantomData<&'a Source<'a>>,
}

impl<'a> Runs<'a> {
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
        // INVARIANT: So many were just found, and nothing speaks against registering them.
        Ok(self.found.get(..index(count)).unwrap_or(&[]))
    }

    /// Takes the page at which the walk has stopped after all, or says why not.
    fn judge(&mut self) -> Result<(), Refusal> {
        let why = match self.walk.stop {
            NULL => Err(c"address is NULL"),
            STACK => Err(c"memory of the caller's stack"),
            NO_PAGE => Err(c"no page of this machine"),
            FACTS => self.memory.allows(self.walk.facts),
            _ => Err(c"no memory that may be registered"),
        };
        why.map_err(|why| {
            let index = usize::try_from(self.walk.index).unwrap_or(usize::MAX);
            let refusal = Refusal::new(Errno::EFAULT, why).at(index);
            refusal.value(self.walk.value)
        })?;
        let len = self.walk.page.len.min(self.walk.limit);
        if let Some(first) = self.found.first_mut() {
            // INVARIANT: This page was just found to be allowed.
            first.raw = kfi_helper_run {
                phys: self.walk.page.phys,
                len,
            };
        }
        self.walk.done += len;
        self.walk.stop = NONE;
        Ok(())
    }
}

/// Checks that the memory at an address of the linear map may be registered, which is what the
/// scatterlist's entry with this index names on some devices; `EFAULT` if not. May sleep.
pub(crate) fn check_linear(memory: Use, index: usize, span: Span) -> Result<(), Refusal> {
    let start = usize::try_from(span.start()).map_err(|_| Errno::EINVAL)?;
    let phys = frame_at(index, start)? * PAGE + span.start() % PAGE;
    Judge::new(memory)
        .addresses(phys, span.bytes())
        .map_err(|no| {
            let at = no.good * PAGE + span.start();
            Refusal::new(Errno::EFAULT, no.why).at(index).value(at)
        })
}

/// The page frame behind a kernel address.
fn frame_at(index: usize, addr: usize) -> Result<u64, Refusal> {
    let mut frame = 0;
    // SAFETY: The helper takes any address and reads page tables only.
    match unsafe {
        kfi_bindings::kfi_helper_virt_pfn(core::ptr::without_provenance(addr), &mut frame)
    } {
        true => Ok(frame),
        false => {
            let refusal = Refusal::new(Errno::EFAULT, c"no memory that may be registered");
            Err(refusal.at(index).value(widen(addr)))
        }
    }
}
