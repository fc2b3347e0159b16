// SPDX-License-Identifier: GPL-2.0

//! Atomic operations on 8 bytes of a peer's memory.
//!
//! Context of all functions here: any.

use super::{
    call::{
        self,
        op, //
    },
    local::{
        Posting,
        Run, //
    },
    post::{
        Posted,
        Role,
        PEER, //
    },
    Connected,
    Local,
    MsgEndpoint,
    Remote,
    Request, //
};
use crate::{
    region::atomic::WORD,
    support::errno::Errno, //
};
use core::ptr::null_mut;
use kfi_bindings::{
    kfi_datatype_KFI_UINT64 as UINT64,
    kfi_op,
    kfi_op_KFI_ATOMIC_READ as READ,
    kfi_op_KFI_ATOMIC_WRITE as WRITE,
    kfi_op_KFI_CSWAP as CSWAP,
    kfi_op_KFI_SUM as SUM,
    kfi_ops_atomic, //
};

impl<B: Local, C: Send + 'static> MsgEndpoint<Connected, B, C> {
    /// `kfi_fetch_atomic()`, `KFI_SUM`: adds to eight bytes of the peer's. The request's memory, eight
    /// bytes at a multiple of eight, gets what they were before.
    ///
    /// # Errors
    ///
    /// With the request:
    ///
    /// - `EOPNOTSUPP`: the domain was opened without `Caps::ATOMIC`, or the provider can't do that.
    /// - `EINVAL`: the memory, or the peer's, is not eight bytes at a multiple of eight.
    /// - Others: as for [`read`](Self::read). Whether the peer lets it in is seen later.
    pub fn fetch_add(&self, result: Request<B, C>, at: Remote, by: u64) -> Posted<B, C> {
        self.fetch_atomic(result, at, by, SUM)
    }

    /// `kfi_fetch_atomic()`, `KFI_ATOMIC_READ`: fetches eight bytes of the peer's, at once.
    ///
    /// # Errors
    ///
    /// As for [`fetch_add`](Self::fetch_add).
    pub fn fetch(&self, result: Request<B, C>, at: Remote) -> Posted<B, C> {
        self.fetch_atomic(result, at, 0, READ)
    }

    /// `kfi_compare_atomic()`, `KFI_CSWAP`: sets eight bytes of the peer's, if they are as expected. The
    /// request's memory gets what they were before.
    ///
    /// # Errors
    ///
    /// As for [`fetch_add`](Self::fetch_add).
    pub fn compare_swap(
        &self,
        result: Request<B, C>,
        at: Remote,
        expected: u64,
        new: u64,
    ) -> Posted<B, C> {
        let (new, expected) = (&raw const new, &raw const expected);
        self.post(result, Role::Target, |ep, to, context| {
            let to = one_word(to)?;
            // SAFETY: The endpoint is open, and operands are copied before the call returns. The memory
            // is as `Local` promises, and nobody else has it until the transfer has ended.
            unsafe {
                op!(
                    (*ep).atomic,
                    kfi_ops_atomic,
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
                        UINT64,
                        CSWAP,
                        context
                    )
                )
            }
        })
    }

    /// `kfi_inject_atomic()`, `KFI_SUM`: adds to eight bytes of the peer's. Nothing comes back of it,
    /// unless it fails.
    ///
    /// # Errors
    ///
    /// As for [`fetch_add`](Self::fetch_add).
    pub fn inject_add(&self, at: Remote, by: u64) -> Result<(), Errno> {
        self.inject_atomic(at, by, SUM)
    }

    /// `kfi_inject_atomic()`, `KFI_ATOMIC_WRITE`: sets eight bytes of the peer's, at once.
    ///
    /// # Errors
    ///
    /// As for [`fetch_add`](Self::fetch_add).
    pub fn inject_set(&self, at: Remote, value: u64) -> Result<(), Errno> {
        self.inject_atomic(at, value, WRITE)
    }

    fn fetch_atomic(
        &self,
        result: Request<B, C>,
        at: Remote,
        operand: u64,
        op: kfi_op,
    ) -> Posted<B, C> {
        let operand = &raw const operand;
        self.post(result, Role::Target, |ep, to, context| {
            let to = one_word(to)?;
            // SAFETY: As for `compare_swap`.
            unsafe {
                op!(
                    (*ep).atomic,
                    kfi_ops_atomic,
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
                        UINT64,
                        op,
                        context
                    )
                )
            }
        })
    }

    fn inject_atomic(&self, at: Remote, operand: u64, op: kfi_op) -> Result<(), Errno> {
        let (ep, operand) = (self.as_raw(), &raw const operand);
        // SAFETY: The endpoint is open. The operand is copied before the call returns.
        let posted = unsafe {
            op!(
                (*ep).atomic,
                kfi_ops_atomic,
                inject(ep, operand.cast(), 1, PEER, at.addr, at.key, UINT64, op)
            )
        }?;
        call::count(posted).map(|_| ())
    }
}

/// Has a request as many bytes as come back?
fn one_word(memory: Posting<'_>) -> Result<Run, Errno> {
    let run = memory.one()?;
    match run.len == WORD {
        true => Ok(run),
        false => Err(Errno::EINVAL),
    }
}
