// SPDX-License-Identifier: GPL-2.0

//! Requests about regions that are posted with one word to the device.

use crate::prelude::*;
use core::mem::MaybeUninit;
use rdma_bindings as b;

/// Maximum number of requests.
// CAST: A small number.
const MAX: usize = b::RDMA_HELPER_MAX_TOGETHER as usize;

/// A request about a region, which is there for `'a`.
pub(crate) struct RegionWr<'a> {
    opcode: b::ib_wr_opcode,
    region: b::rdma_helper_region_wr,
    _region: PhantomData<&'a ()>,
}

impl<'a> RegionWr<'a> {
    /// Makes a region valid.
    pub(crate) fn register<L: DmaList>(mr: &'a PreparedMr<L>) -> Self {
        Self {
            opcode: b::ib_wr_opcode_IB_WR_REG_MR,
            region: b::rdma_helper_region_wr {
                mr: mr.as_raw(),
                access: mr.access().into(),
                key: 0,
            },
            _region: PhantomData,
        }
    }

    /// Makes a region invalid.
    pub(crate) fn invalidate(mr: &'a ValidMr) -> Self {
        Self {
            opcode: b::ib_wr_opcode_IB_WR_LOCAL_INV,
            region: b::rdma_helper_region_wr {
                mr: null_mut(),
                access: 0,
                key: mr.rkey(),
            },
            _region: PhantomData,
        }
    }
}

/// Which of several requests the driver has refused, and its errno.
pub(crate) enum PostError {
    /// All of them: nothing was posted.
    All(Error),
    /// The last ones. The end of those before them is told.
    Rest(Error),
    /// The last ones. The end of those before them is told only when their queue pair has ended.
    RestUntold(Error),
}

/// Requests of one kind, each about a region, to be posted in one go.
pub(crate) struct WrBatch<'a> {
    opcode: b::ib_wr_opcode,
    /// The first `count` are filled.
    regions: [MaybeUninit<b::rdma_helper_region_wr>; MAX],
    count: u32,
    _regions: PhantomData<RegionWr<'a>>,
}

impl<'a> WrBatch<'a> {
    /// Maximum number of requests beside the first one.
    pub(crate) const MORE: u32 = b::RDMA_HELPER_MAX_TOGETHER - 1;

    /// Begins with one.
    pub(crate) fn new(first: RegionWr<'a>) -> Self {
        let mut this = Self {
            opcode: first.opcode,
            regions: [const { MaybeUninit::uninit() }; MAX],
            count: 0,
            _regions: PhantomData,
        };
        this.push(first);
        this
    }

    /// Adds one of the same kind, for which there must be room.
    pub(crate) fn push(&mut self, request: RegionWr<'a>) {
        let place = usize::try_from(self.count).ok();
        if let Some(region) = place.and_then(|at| self.regions.get_mut(at)) {
            region.write(request.region);
            self.count += 1;
        }
    }

    /// Returns the number of requests; not 0.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Posts them. The last one completes to `last`, the others to `quiet`, and only if they fail. If the driver
    /// refuses the last ones, an invalidation behind the others completes to `last`. Any context.
    ///
    /// # Safety
    ///
    /// - `qp` must be valid until the requests have completed or the queue pair has been destroyed.
    ///   Until then, the regions must stay valid.
    /// - `quiet` and `last` must stay valid as long, and until their callbacks have returned.
    pub(crate) unsafe fn post(
        &self,
        qp: *mut b::ib_qp,
        quiet: *mut b::ib_cqe,
        last: *mut b::ib_cqe,
    ) -> Result<(), PostError> {
        let mut posted = b::rdma_helper_posted_RDMA_HELPER_POSTED_NONE;
        // SAFETY: `qp`, both `cqe`s and the targets of the requests stay as this function demands.
        // `count` requests are filled, and no more than the helper takes.
        let ret = unsafe {
            b::rdma_helper_post_together(
                qp,
                self.opcode,
                self.regions.as_ptr().cast(),
                self.count,
                quiet,
                last,
                &mut posted,
            )
        };
        to_result(ret).map_err(|error| match posted {
            b::rdma_helper_posted_RDMA_HELPER_POSTED_NONE => PostError::All(error),
            b::rdma_helper_posted_RDMA_HELPER_POSTED_SOME => PostError::Rest(error),
            _ => PostError::RestUntold(error),
        })
    }
}
