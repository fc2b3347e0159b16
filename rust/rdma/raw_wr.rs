// SPDX-License-Identifier: GPL-2.0

//! Work requests in the form of C, without the owner of their memory.

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
#[derive(Clone, Copy)]
pub(crate) struct RawWr {
    /// For the receive queue, where there is one opcode.
    pub(crate) receive: bool,
    pub(crate) opcode: b::ib_wr_opcode,
    /// Of `enum ib_send_flags`, beside that it is signalled.
    pub(crate) flags: u32,
    /// The region that it registers.
    pub(crate) mr: Option<NonNull<b::ib_mr>>,
    pub(crate) access: u32,
    /// The key that it invalidates, or immediate data as the wire has them.
    pub(crate) ex: u32,
    /// The key of the peer's memory.
    pub(crate) rkey: u32,
    pub(crate) remote_address: u64,
    /// The operands of an atomic operation.
    pub(crate) compare_add: u64,
    pub(crate) swap: u64,
    /// The segments of local memory.
    pub(crate) segments: *const [b::ib_sge],
}

#[expect(
    clippy::derivable_impls,
    reason = "a pointer to a slice has no default"
)]
impl Default for RawWr {
    fn default() -> Self {
        Self {
            receive: false,
            opcode: 0,
            flags: 0,
            mr: None,
            access: 0,
            ex: 0,
            rkey: 0,
            remote_address: 0,
            compare_add: 0,
            swap: 0,
            segments: &[],
        }
    }
}

// SAFETY: Neither regions nor memory are tied to a task.
unsafe impl Send for RawWr {}

// SAFETY: Pointers are not used but to be handed to the driver.
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
        let wr = self.to_helper(cqe)?;
        // SAFETY: `qp`, `cqe` and the memory of the request stay valid until it completes by the
        // function's contract. The call only reads `wr`.
        to_result(unsafe { b::rdma_helper_post(qp, &wr) })
    }

    /// Posts a receive that queue pairs share. An error means that it was not posted. Any context.
    ///
    /// # Safety
    ///
    /// The requirements of [`post`](Self::post), for `srq` and for all queue pairs that share it.
    pub(crate) unsafe fn post_shared(self, srq: *mut b::ib_srq, cqe: *mut b::ib_cqe) -> Result {
        let wr = self.to_helper(cqe)?;
        // SAFETY: `srq`, `cqe` and the memory of the request are valid by the function's contract.
        // The call only reads `wr`.
        to_result(unsafe { b::rdma_helper_post_shared(srq, &wr) })
    }

    /// Fills room for a send request.
    ///
    /// # Safety
    ///
    /// `room` must be valid for writes. The memory of the request and `cqe` must stay valid until
    /// the request has been posted and has completed.
    pub(crate) unsafe fn fill(self, room: *mut b::rdma_helper_room, cqe: *mut b::ib_cqe) -> Result {
        let wr = self.to_helper(cqe)?;
        // SAFETY: `room` is valid for writes by the function's contract. The call only reads `wr`.
        unsafe { b::rdma_helper_fill(room, &wr) };
        Ok(())
    }

    /// Returns the structure for the C helper.
    fn to_helper(self, cqe: *mut b::ib_cqe) -> Result<b::rdma_helper_wr> {
        Ok(b::rdma_helper_wr {
            cqe,
            receive: self.receive,
            opcode: self.opcode,
            flags: self.flags,
            mr: self.mr.map_or(null_mut(), NonNull::as_ptr),
            access: self.access,
            ex: self.ex,
            rkey: self.rkey,
            remote_addr: self.remote_address,
            compare_add: self.compare_add,
            swap: self.swap,
            sges: self.segments.cast(),
            num_sge: self.segments.len().try_into()?,
        })
    }
}

/// A request that can be posted.
pub(crate) trait Post {
    /// Posts it, signalled. An error means that it was not posted. Any context.
    ///
    /// # Safety
    ///
    /// - `qp` must be there, and stay until the request has completed or the queue pair has been
    ///   destroyed. Until then what the request refers to must stay too.
    /// - `cqe` must stay as long, and until the callback, if it runs, has returned.
    unsafe fn post(self, qp: *mut b::ib_qp, cqe: *mut b::ib_cqe) -> Result;
}

impl Post for RawWr {
    unsafe fn post(self, qp: *mut b::ib_qp, cqe: *mut b::ib_cqe) -> Result {
        // SAFETY: `qp`, `cqe` and the memory of the request stay valid until it completes by the
        // function's contract.
        unsafe { RawWr::post(self, qp, cqe) }
    }
}

/// The invalidation of a region by its key.
#[derive(Clone, Copy)]
pub(crate) struct InvWr {
    pub(crate) key: u32,
}

impl Post for InvWr {
    #[inline]
    unsafe fn post(self, qp: *mut b::ib_qp, cqe: *mut b::ib_cqe) -> Result {
        // SAFETY: `qp`, `cqe` and the region stay valid until the request completes by the
        // function's contract.
        to_result(unsafe { b::rdma_helper_post_inv(qp, self.key, cqe) })
    }
}

/// The registration of a region, which is what is posted most.
#[derive(Clone, Copy)]
pub(crate) struct RegWr {
    pub(crate) mr: *mut b::ib_mr,
    pub(crate) access: u32,
}

impl Post for RegWr {
    #[inline]
    unsafe fn post(self, qp: *mut b::ib_qp, cqe: *mut b::ib_cqe) -> Result {
        // SAFETY: `qp`, `cqe` and the region stay valid until the request completes by the
        // function's contract.
        to_result(unsafe { b::rdma_helper_post_reg(qp, self.mr, self.access, cqe) })
    }
}
