// SPDX-License-Identifier: GPL-2.0

//! Work requests, and how they end.

use kernel::{
    error::to_result,
    fmt,
    prelude::*, //
};

use core::marker::PhantomData;

use crate::{
    mr::{
        PreparedMr,
        ValidMr, //
    },
    sg::DmaList, //
};

/// How a work request failed.
#[derive(Clone, Copy, Debug)]
pub enum WrError {
    /// It was refused by the driver, and never reached the device. The queue pair goes on.
    Post(Error),
    /// The queue pair went into error before it was its turn, or while it was. It may have been
    /// carried out or not. rxe reports a request like that too whose own failure was the cause.
    Flushed,
    /// The device failed it, and the queue pair went into error. Of its effects nothing is known.
    Failed(WcStatus),
    /// It did not complete in time, and the queue pair has been destroyed. It may have been carried
    /// out, but won't be any more.
    TimedOut,
    /// It did not complete in time, and the queue pair could not even be destroyed. The device may
    /// carry it out at any time.
    Lost,
}

impl From<WrError> for Error {
    fn from(error: WrError) -> Self {
        match error {
            WrError::Post(error) => error,
            WrError::Flushed | WrError::Failed(_) | WrError::TimedOut | WrError::Lost => EIO,
        }
    }
}

impl fmt::Display for WrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Post(err) => write!(f, "not posted ({})", err.to_errno()),
            Self::Flushed => f.write_str("flushed"),
            Self::Failed(status) => fmt::Display::fmt(status, f),
            Self::TimedOut => f.write_str("did not complete"),
            Self::Lost => f.write_str("did not complete, and may still"),
        }
    }
}

/// The status of a completion.
///
/// Values are those of the C `enum ib_wc_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WcStatus(u32);

impl WcStatus {
    /// The request has been carried out.
    pub(crate) const SUCCESS: Self = Self(rdma_bindings::ib_wc_status_IB_WC_SUCCESS);
    /// The queue pair was in error.
    pub(crate) const FLUSHED: Self = Self(rdma_bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR);

    pub(crate) const fn from_raw(status: u32) -> Self {
        Self(status)
    }

    /// The C value.
    pub const fn as_raw(self) -> u32 {
        self.0
    }

    /// What this status is of several requests, with another's: a failure, of which there can be
    /// one, counts more than the flushes that follow it.
    pub(crate) fn and(self, other: Self) -> Self {
        match self {
            Self::SUCCESS => other,
            Self::FLUSHED if other != Self::SUCCESS => other,
            failure => failure,
        }
    }

    pub(crate) fn to_result(self) -> Result<(), WrError> {
        match self {
            Self::SUCCESS => Ok(()),
            Self::FLUSHED => Err(WrError::Flushed),
            failure => Err(WrError::Failed(failure)),
        }
    }
}

impl fmt::Display for WcStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: The function takes any value, and returns a string that is always there.
        let text = unsafe { CStr::from_char_ptr(rdma_bindings::ib_wc_status_msg(self.0)) };
        fmt::Display::fmt(text, f)
    }
}

/// A work request, not yet posted. What it is about is borrowed for `'a`.
///
/// # Invariants
///
/// A region that is to be registered is there for `'a`.
pub(crate) struct WorkRequest<'a>(Work, PhantomData<&'a ()>);

enum Work {
    Register {
        mr: *mut rdma_bindings::ib_mr,
        access: u32,
    },
    Invalidate {
        rkey: u32,
    },
    Drain,
}

impl<'a> WorkRequest<'a> {
    /// Makes a region valid.
    pub(crate) fn register<L: DmaList>(mr: &'a PreparedMr<L>) -> Self {
        let access = mr.access().into();
        let mr = mr.as_raw();
        // INVARIANT: It is borrowed for `'a`.
        Self(Work::Register { mr, access }, PhantomData)
    }

    /// Makes a region invalid.
    pub(crate) fn invalidate(mr: &'a ValidMr) -> Self {
        Self(Work::Invalidate { rkey: mr.rkey() }, PhantomData)
    }

    /// Does nothing, and does that only on a queue pair in error, where it is flushed.
    pub(crate) fn drain() -> Self {
        Self(Work::Drain, PhantomData)
    }

    /// Posts the request, signalled. An error means that it was not posted. Doesn't sleep.
    ///
    /// # Safety
    ///
    /// - The queue pair must be there, and stay until the request has completed or the queue pair
    ///   has been destroyed. Until then a region that is to be registered must stay too.
    /// - `cqe` must stay as long, and until the callback, if it runs, has returned.
    pub(crate) unsafe fn post(
        &self,
        qp: *mut rdma_bindings::ib_qp,
        cqe: *mut rdma_bindings::ib_cqe,
    ) -> Result {
        // SAFETY: The queue pair and the `cqe` are there by this function's requirements, and the
        // region by the type invariant.
        to_result(unsafe {
            match self.0 {
                Work::Register { mr, access } => {
                    rdma_bindings::rdma_helper_post_reg(qp, mr, access, cqe)
                }
                Work::Invalidate { rkey } => rdma_bindings::rdma_helper_post_inv(qp, rkey, cqe),
                Work::Drain => rdma_bindings::rdma_helper_post_drain(qp, cqe),
            }
        })
    }
}

#[kernel::macros::kunit_tests(rdma_wr)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_counts_more_than_flushes() {
        const FAILED: WcStatus = WcStatus::from_raw(rdma_bindings::ib_wc_status_IB_WC_LOC_PROT_ERR);
        let all = |statuses: &[WcStatus]| {
            let sum = |sum: WcStatus, &status| sum.and(status);
            statuses.iter().fold(WcStatus::SUCCESS, sum)
        };
        let (ok, flushed) = (WcStatus::SUCCESS, WcStatus::FLUSHED);
        assert!(all(&[ok, ok]).to_result().is_ok());
        assert_eq!(all(&[ok, flushed, ok]), flushed);
        assert_eq!(all(&[flushed, FAILED, flushed, ok]), FAILED);
        assert!(matches!(flushed.to_result(), Err(WrError::Flushed)));
        assert!(matches!(FAILED.to_result(), Err(WrError::Failed(FAILED))));
    }
}
