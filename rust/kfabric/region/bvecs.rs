// SPDX-License-Identifier: GPL-2.0

//! Where bio_vecs are in memory.

use core::slice;
use kfi_bindings::bio_vec;

/// So many are looked at at once.
const BATCH: usize = 16;

/// Iterator over bio_vecs: where they start in memory, and their length.
pub(crate) struct Bvecs<'a> {
    list: slice::Iter<'a, bio_vec>,
    /// Where the next ones start, from `done` on.
    starts: [u64; BATCH],
    done: usize,
}

impl<'a> Bvecs<'a> {
    pub(super) fn new(list: &'a [bio_vec]) -> Self {
        Self {
            list: list.iter(),
            starts: [0; BATCH],
            done: BATCH,
        }
    }
}

impl Iterator for Bvecs<'_> {
    type Item = (Option<u64>, u64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.done == BATCH {
            let next = self.list.as_slice();
            let count = next.len().min(BATCH);
            // SAFETY: So many bio_vecs are there, and there is room for where they start; a bad page
            // is found out without being read.
            unsafe {
                kfi_bindings::kfi_helper_bvec_starts(
                    next.as_ptr(),
                    u32::try_from(count).unwrap_or(0),
                    self.starts.as_mut_ptr(),
                )
            };
            self.done = 0;
        }
        let bvec = self.list.next()?;
        let start = *self.starts.get(self.done)?;
        self.done += 1;
        Some(((start != u64::MAX).then_some(start), u64::from(bvec.bv_len)))
    }
}
