// SPDX-License-Identifier: GPL-2.0

//! Requests about regions that are posted with one word to the device.

use kernel::{
    error::to_result,
    prelude::*, //
};

use core::ptr::{
    null_mut,
    NonNull, //
};

use rdma_bindings as b;

use crate::raw_wr::RawWr;

/// So many at most.
// CAST: A small number.
const MAX: usize = b::RDMA_HELPER_MAX_TOGETHER as usize;

/// Requests of one kind, each about a region, to be posted in one go.
pub(crate) struct Together {
    opcode: b::ib_wr_opcode,
    regions: [b::rdma_helper_region_wr; MAX],
    count: u32,
}

impl Together {
    /// Begins with one.
    pub(crate) fn new(first: &RawWr) -> Self {
        let mut this = Self {
            opcode: first.opcode,
            regions: [const { NONE }; MAX],
            count: 0,
        };
        this.push(first);
        this
    }

    /// Adds one of the same kind, for which there must be room.
    pub(crate) fn push(&mut self, request: &RawWr) {
        let place = usize::try_from(self.count).ok();
        if let Some(region) = place.and_then(|at| self.regions.get_mut(at)) {
            *region = b::rdma_helper_region_wr {
                mr: request.mr.map_or(null_mut(), NonNull::as_ptr),
                access: request.access,
                key: request.ex,
            };
            self.count += 1;
        }
    }

    /// Is there no room for more?
    pub(crate) fn is_full(&self) -> bool {
        self.count >= b::RDMA_HELPER_MAX_TOGETHER
    }

    /// How many there are; not 0.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Posts them. The last one completes to `last`, the others to `quiet`, and only if they fail. An
    /// error says how many were posted. Any context.
    ///
    /// # Safety
    ///
    /// As for [`RawWr::post`], for each of them.
    pub(crate) unsafe fn post(
        &self,
        qp: *mut b::ib_qp,
        quiet: *mut b::ib_cqe,
        last: *mut b::ib_cqe,
    ) -> Result<(), (Error, u32)> {
        let mut posted = 0;
        // SAFETY: `qp`, both `cqe`s and what the requests refer to stay as this function demands; there
        // are so many, and no more than the helper takes.
        let ret = unsafe {
            b::rdma_helper_post_together(
                qp,
                self.opcode,
                self.regions.as_ptr(),
                self.count,
                quiet,
                last,
                &mut posted,
            )
        };
        to_result(ret).map_err(|error| (error, posted))
    }
}

const NONE: b::rdma_helper_region_wr = b::rdma_helper_region_wr {
    mr: null_mut(),
    access: 0,
    key: 0,
};
