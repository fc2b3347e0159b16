// SPDX-License-Identifier: GPL-2.0

//! What is posted, without what keeps it there.

use kernel::{
    error::to_result,
    prelude::*, //
};

use core::ptr::{
    null_mut,
    NonNull, //
};

use rdma_bindings as b;

/// A work request in plain figures, for either queue.
#[derive(Clone, Copy, Default)]
pub(crate) struct RawWr {
    /// For the receive queue, where there is one opcode.
    pub(crate) receive: bool,
    pub(crate) opcode: b::ib_wr_opcode,
    /// The region that it registers.
    pub(crate) mr: Option<NonNull<b::ib_mr>>,
    pub(crate) access: u32,
    /// The key that it invalidates, or of the peer's memory.
    pub(crate) rkey: u32,
    pub(crate) remote_address: u64,
    /// The segment of local memory; none if it has no length.
    pub(crate) address: u64,
    pub(crate) len: u32,
    pub(crate) lkey: u32,
}

// SAFETY: A region is not tied to a task.
unsafe impl Send for RawWr {}

// SAFETY: `mr` is not used but to be handed to the driver.
unsafe impl Sync for RawWr {}

impl RawWr {
    /// Posts the request, signalled. An error means that it was not posted. Any context.
    ///
    /// # Safety
    ///
    /// - `qp` must be there, and stay until the request has completed or the queue pair has been
    ///   destroyed. Until then what the request refers to must stay too.
    /// - `cqe` must stay as long, and until the callback, if it runs, has returned.
    pub(crate) unsafe fn post(self, qp: *mut b::ib_qp, cqe: *mut b::ib_cqe) -> Result {
        let wr = b::rdma_helper_wr {
            cqe,
            receive: self.receive,
            opcode: self.opcode,
            mr: self.mr.map_or(null_mut(), NonNull::as_ptr),
            access: self.access,
            rkey: self.rkey,
            remote_addr: self.remote_address,
            addr: self.address,
            len: self.len,
            lkey: self.lkey,
        };
        // SAFETY: `qp`, `cqe` and what the request refers to stay as this function demands; `wr` is
        // read during the call only.
        to_result(unsafe { b::rdma_helper_post(qp, &wr) })
    }
}
