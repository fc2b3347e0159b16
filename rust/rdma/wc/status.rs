// SPDX-License-Identifier: GPL-2.0

//! How work requests end, and fail.

use kernel::{
    fmt,
    prelude::*, //
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
    /// It did not complete in time, and was flushed then, or the queue pair has been destroyed. It may have been
    /// carried out, but won't be any more.
    TimedOut,
    /// It did not complete in time, and the queue pair could not even be destroyed. The device may
    /// carry it out at any time.
    Lost,
}

impl From<WrError> for Error {
    fn from(error: WrError) -> Self {
        match error {
            WrError::Post(error) => error,
            WrError::TimedOut => ETIMEDOUT,
            WrError::Flushed | WrError::Failed(_) | WrError::Lost => EIO,
        }
    }
}

impl fmt::Display for WrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Post(err) => write!(f, "not posted ({})", err.to_errno()),
            Self::Flushed => f.write_str("flushed"),
            Self::Failed(status) => fmt::Display::fmt(status, f),
            Self::TimedOut => f.write_str("a work request did not complete in time"),
            Self::Lost => f.write_str("a work request did not complete in time, and may still"),
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
    /// The queue pair was in error (`IB_WC_WR_FLUSH_ERR`).
    pub const FLUSHED: Self = Self(rdma_bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR);

    /// The memory at this side was too short for what came, or is not as the request says (`IB_WC_LOC_LEN_ERR`).
    pub const LOCAL_LENGTH: Self = Self(rdma_bindings::ib_wc_status_IB_WC_LOC_LEN_ERR);
    /// The request makes no sense to the device (`IB_WC_LOC_QP_OP_ERR`).
    pub const LOCAL_OPERATION: Self = Self(rdma_bindings::ib_wc_status_IB_WC_LOC_QP_OP_ERR);
    /// The memory at this side may not be used like that (`IB_WC_LOC_PROT_ERR`).
    pub const LOCAL_PROTECTION: Self = Self(rdma_bindings::ib_wc_status_IB_WC_LOC_PROT_ERR);
    /// The peer could make nothing of the request: its receive was too short, for one (`IB_WC_REM_INV_REQ_ERR`).
    pub const REMOTE_INVALID: Self = Self(rdma_bindings::ib_wc_status_IB_WC_REM_INV_REQ_ERR);
    /// The peer's memory may not be used like that (`IB_WC_REM_ACCESS_ERR`).
    pub const REMOTE_ACCESS: Self = Self(rdma_bindings::ib_wc_status_IB_WC_REM_ACCESS_ERR);
    /// The peer could not carry it out (`IB_WC_REM_OP_ERR`).
    pub const REMOTE_OPERATION: Self = Self(rdma_bindings::ib_wc_status_IB_WC_REM_OP_ERR);
    /// The peer did not answer (`IB_WC_RETRY_EXC_ERR`).
    pub const NO_ANSWER: Self = Self(rdma_bindings::ib_wc_status_IB_WC_RETRY_EXC_ERR);
    /// The peer had no receive request (`IB_WC_RNR_RETRY_EXC_ERR`).
    pub const NO_RECEIVE: Self = Self(rdma_bindings::ib_wc_status_IB_WC_RNR_RETRY_EXC_ERR);

    /// The status with this C value.
    pub(crate) const fn from_raw(status: u32) -> Self {
        Self(status)
    }

    /// The failure with this C value, if there is one.
    pub fn failure(status: i32) -> Option<Self> {
        let status = u32::try_from(status).ok()?;
        let failures = Self::SUCCESS.0 + 1..=rdma_bindings::ib_wc_status_IB_WC_GENERAL_ERR;
        failures.contains(&status).then_some(Self(status))
    }

    /// The C value.
    pub const fn as_raw(self) -> u32 {
        self.0
    }

    /// The status in words, by the RDMA core. Any context.
    pub fn text(self) -> &'static CStr {
        // SAFETY: `ib_wc_status_msg` takes any value, and returns a string that is always there.
        unsafe { CStr::from_char_ptr(rdma_bindings::ib_wc_status_msg(self.0)) }
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

    /// How a request with this status ended.
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
        fmt::Display::fmt(self.text(), f)
    }
}

#[kernel::macros::kunit_tests(rdma_wc_status)]
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
