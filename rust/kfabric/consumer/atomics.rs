// SPDX-License-Identifier: GPL-2.0

//! Atomic operations on 8 bytes of a peer's memory.
//!
//! Context of all functions here: any.

use super::{
    local::{
        Posting,
        Run, //
    },
    post::{
        post,
        Posted,
        Role,
        PEER, //
    },
    *, //
};
use crate::region::cpu_memory::WORD;
use core::ptr::null_mut;

impl<B: Local, C: Send + 'static> MsgEndpoint<Connected, B, C> {
    /// Adds `by` to 8 bytes of the peer: `kfi_fetch_atomic()` with `KFI_SUM`. The request gets
    /// their previous value.
    ///
    /// # Errors
    ///
    /// - `EOPNOTSUPP`: the domain was opened without `Caps::ATOMIC`, or the provider has no atomic
    ///   operations.
    /// - `EINVAL`: the memory of the request or the peer isn't 8 bytes at a multiple of 8.
    /// - Others: the errors of [`read`](Self::read). If the peer refuses the access, the transfer
    ///   fails later.
    pub fn fetch_add(&self, result: Request<B, C>, at: Remote, by: u64) -> Posted<B, C> {
        self.fetch_atomic(result, at, by, c::kfi_op_KFI_SUM)
    }

    /// Reads 8 bytes of the peer atomically: `kfi_fetch_atomic()` with `KFI_ATOMIC_READ`.
    ///
    /// # Errors
    ///
    /// The errors of [`fetch_add`](Self::fetch_add).
    pub fn fetch(&self, result: Request<B, C>, at: Remote) -> Posted<B, C> {
        self.fetch_atomic(result, at, 0, c::kfi_op_KFI_ATOMIC_READ)
    }

    /// Sets 8 bytes of the peer to `new` if they are `expected`: `kfi_compare_atomic()` with
    /// `KFI_CSWAP`. The request gets their previous value.
    ///
    /// # Errors
    ///
    /// The errors of [`fetch_add`](Self::fetch_add).
    pub fn compare_swap(
        &self,
        result: Request<B, C>,
        at: Remote,
        expected: u64,
        new: u64,
    ) -> Posted<B, C> {
        let (new, expected) = (&raw const new, &raw const expected);
        post(result, Role::Target, |to, context| {
            let (ep, to) = (self.as_raw(), one_word(to)?);
            // SAFETY: The endpoint is open. The call copies the operands. `Local` promises that the
            // memory stays until the transfer has completed, and the request owns it.
            unsafe {
                op!(
                    (*ep).atomic,
                    compwrite(
                        ep,
                        new.cast(),
                        1,
                        null_mut(),
                        expected.cast(),
                        null_mut(),
                        to.start.as_ptr().cast(),
                        to.desc,
                        PEER,
                        at.addr,
                        at.key,
                        c::kfi_datatype_KFI_UINT64,
                        c::kfi_op_KFI_CSWAP,
                        context
                    )
                )
            }
        })
    }

    /// Adds `by` to 8 bytes of the peer: `kfi_inject_atomic()` with `KFI_SUM`. Has no completion
    /// unless it fails.
    ///
    /// # Errors
    ///
    /// The errors of [`fetch_add`](Self::fetch_add).
    pub fn inject_add(&self, at: Remote, by: u64) -> Result<(), Errno> {
        self.inject_atomic(at, by, c::kfi_op_KFI_SUM)
    }

    /// Sets 8 bytes of the peer: `kfi_inject_atomic()` with `KFI_ATOMIC_WRITE`. Has no completion
    /// unless it fails.
    ///
    /// # Errors
    ///
    /// The errors of [`fetch_add`](Self::fetch_add).
    pub fn inject_set(&self, at: Remote, value: u64) -> Result<(), Errno> {
        self.inject_atomic(at, value, c::kfi_op_KFI_ATOMIC_WRITE)
    }

    fn fetch_atomic(
        &self,
        result: Request<B, C>,
        at: Remote,
        operand: u64,
        op: c::kfi_op,
    ) -> Posted<B, C> {
        let operand = &raw const operand;
        post(result, Role::Target, |to, context| {
            let (ep, to) = (self.as_raw(), one_word(to)?);
            // SAFETY: The endpoint is open. The call copies the operand. `Local` promises that the
            // memory stays until the transfer has completed, and the request owns it.
            unsafe {
                op!(
                    (*ep).atomic,
                    readwrite(
                        ep,
                        operand.cast(),
                        1,
                        null_mut(),
                        to.start.as_ptr().cast(),
                        to.desc,
                        PEER,
                        at.addr,
                        at.key,
                        c::kfi_datatype_KFI_UINT64,
                        op,
                        context
                    )
                )
            }
        })
    }

    fn inject_atomic(&self, at: Remote, operand: u64, op: c::kfi_op) -> Result<(), Errno> {
        let (ep, operand) = (self.as_raw(), &raw const operand);
        // SAFETY: The endpoint is open. The call copies the operand.
        let posted = unsafe {
            op!(
                (*ep).atomic,
                inject(
                    ep,
                    operand.cast(),
                    1,
                    PEER,
                    at.addr,
                    at.key,
                    c::kfi_datatype_KFI_UINT64,
                    op
                )
            )
        }?;
        handle::count(posted).map(|_| ())
    }
}

/// Returns the memory if it has the size of the operand.
fn one_word(memory: Posting<'_>) -> Result<Run, Errno> {
    let run = memory.one()?;
    match run.len == WORD {
        true => Ok(run),
        false => Err(Errno::EINVAL),
    }
}
