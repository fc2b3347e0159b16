// SPDX-License-Identifier: GPL-2.0

//! Completions and their status.

use crate::prelude::*;
use core::ptr::null;
use kernel::fmt;

/// A completion during its callback.
///
/// # Invariants
///
/// `cq` is null, or valid for `'a`.
#[derive(Clone, Copy)]
pub(crate) struct RawCompletion<'a> {
    pub(crate) status: WcStatus,
    /// [`None`] for an unsignaled request.
    wc: Option<&'a rdma_bindings::ib_wc>,
    cq: *const rdma_bindings::ib_cq,
}

impl<'a> RawCompletion<'a> {
    /// Wraps a completion of the device.
    ///
    /// # Safety
    ///
    /// `cq` must be null, or valid for `'a`.
    pub(crate) unsafe fn new(
        cq: *const rdma_bindings::ib_cq,
        wc: &'a rdma_bindings::ib_wc,
    ) -> Self {
        // INVARIANT: `cq` is null or valid for `'a` by the function's contract.
        Self {
            status: WcStatus::from_raw(wc.status),
            wc: Some(wc),
            cq,
        }
    }

    /// Creates the completion of an unsignaled request.
    pub(crate) const fn bare(status: WcStatus) -> Self {
        // INVARIANT: `cq` is null.
        Self {
            status,
            wc: None,
            cq: null(),
        }
    }

    /// Returns the completion queue.
    pub(crate) fn at(self) -> CqId {
        // SAFETY: `cq` is null or valid by the type invariant.
        unsafe { CqId::of(self.cq) }
    }

    /// Returns the vendor's error code, or 0 without an error.
    pub(crate) fn vendor_error(self) -> u32 {
        match self.status {
            WcStatus::SUCCESS => 0,
            _ => self.wc.map_or(0, |wc| wc.vendor_err),
        }
    }

    /// Returns the data of a receive without an error, and the key that the device has invalidated
    /// for the peer.
    pub(crate) fn arrival(self) -> (Arrival, Option<Invalidated<'a>>) {
        let is_receive = |wc: &&rdma_bindings::ib_wc| {
            self.status == WcStatus::SUCCESS
                && wc.opcode & rdma_bindings::ib_wc_opcode_IB_WC_RECV != 0
        };
        let Some(wc) = self.wc.filter(is_receive) else {
            return (Arrival::default(), None);
        };
        let has = |flag: rdma_bindings::ib_wc_flags| wc.wc_flags.unsigned_abs() & flag != 0;
        let arrival = Arrival {
            bytes: wc.byte_len,
            imm: has(rdma_bindings::ib_wc_flags_IB_WC_WITH_IMM).then(|| {
                // SAFETY: This is the member that goes with the flag.
                u32::from_be(*unsafe { wc.ex.imm_data.as_ref() })
            }),
            invalidated: has(rdma_bindings::ib_wc_flags_IB_WC_WITH_INVALIDATE).then(|| {
                // SAFETY: This is the member that goes with the flag.
                *unsafe { wc.ex.invalidate_rkey.as_ref() }
            }),
            written: wc.opcode == rdma_bindings::ib_wc_opcode_IB_WC_RECV_RDMA_WITH_IMM,
        };
        // INVARIANT: The device wrote the completion.
        let invalidated = arrival.invalidated.map(|key| Invalidated {
            key,
            device: self.at().device,
            _now: PhantomData,
        });
        (arrival, invalidated)
    }
}

/// Identifies a completion queue among those that exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CqId {
    cq: usize,
    device: DeviceId,
}

/// Identifies a device among those that exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeviceId(usize);

impl DeviceId {
    /// No device.
    pub(crate) const NONE: Self = Self(0);

    /// Returns the identity of a device.
    pub(crate) fn of(device: &Device) -> Self {
        Self(device.as_raw().addr())
    }
}

impl CqId {
    /// Returns the identity of a completion queue.
    ///
    /// # Safety
    ///
    /// `cq` must be null or valid.
    pub(crate) unsafe fn of(cq: *const rdma_bindings::ib_cq) -> Self {
        // SAFETY: `cq` is null or valid by the function's contract.
        let device = unsafe { cq.as_ref() };
        Self {
            cq: cq.addr(),
            device: device.map_or(DeviceId::NONE, |cq| DeviceId(cq.device.addr())),
        }
    }
}

/// The data that a receive got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Number of received bytes. If the peer wrote, the number of bytes written to the memory that
    /// it named.
    pub bytes: u32,
    /// The number that the peer has sent with them.
    pub imm: Option<u32>,
    /// The key of this side that the peer has had invalidated.
    pub invalidated: Option<u32>,
    /// The peer has written, and nothing came to the receive's own memory.
    pub written: bool,
}

/// A key that a peer has just had a device invalidate. It can't be kept for later, when another region may
/// have the key.
///
/// # Invariants
///
/// The device has said so.
#[derive(Clone, Copy, Debug)]
pub struct Invalidated<'a> {
    key: u32,
    device: DeviceId,
    _now: PhantomData<&'a rdma_bindings::ib_wc>,
}

impl Invalidated<'_> {
    /// Returns the key.
    pub fn key(self) -> u32 {
        self.key
    }

    /// Returns the device.
    pub(crate) fn device(self) -> DeviceId {
        self.device
    }
}

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
    /// The request did not complete in time, and was flushed or its queue pair destroyed after that. The device
    /// may have executed it, and will not execute it later.
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

    /// Returns the status with this C value.
    pub(crate) const fn from_raw(status: u32) -> Self {
        Self(status)
    }

    /// Returns the failure with this C value, or [`None`] if there is none.
    pub fn failure(status: i32) -> Option<Self> {
        let status = u32::try_from(status).ok()?;
        let failures = Self::SUCCESS.0 + 1..=rdma_bindings::ib_wc_status_IB_WC_GENERAL_ERR;
        failures.contains(&status).then_some(Self(status))
    }

    /// Returns the C value.
    pub const fn as_raw(self) -> u32 {
        self.0
    }

    /// Returns the RDMA core's text for the status. Any context.
    pub fn text(self) -> &'static CStr {
        // SAFETY: `ib_wc_status_msg` takes any value, and returns a string that is always there.
        unsafe { CStr::from_char_ptr(rdma_bindings::ib_wc_status_msg(self.0)) }
    }

    /// Combines the status of several requests: a failure takes precedence over the flushes that
    /// follow it.
    pub(crate) fn and(self, other: Self) -> Self {
        match self {
            Self::SUCCESS => other,
            Self::FLUSHED if other != Self::SUCCESS => other,
            failure => failure,
        }
    }

    /// Converts the status to a result.
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

#[kernel::macros::kunit_tests(rdma_wc)]
mod tests {
    use super::*;

    fn read(wc: &rdma_bindings::ib_wc) -> RawCompletion<'_> {
        // SAFETY: The queue is null.
        unsafe { RawCompletion::new(null(), wc) }
    }

    #[test]
    fn what_a_completion_says() {
        use rdma_bindings as b;
        let mut wc = b::ib_wc {
            opcode: b::ib_wc_opcode_IB_WC_RECV,
            byte_len: 9,
            vendor_err: 3,
            ..Default::default()
        };
        let nothing = Arrival::default();
        assert_eq!(
            read(&wc).arrival().0,
            Arrival {
                bytes: 9,
                ..nothing
            }
        );
        wc.opcode = b::ib_wc_opcode_IB_WC_RECV_RDMA_WITH_IMM;
        wc.wc_flags = 2;
        // SAFETY: The member may be set.
        *unsafe { wc.ex.imm_data.as_mut() } = 0x0102_0304u32.to_be();
        let (imm, written) = (Some(0x0102_0304), true);
        let (bytes, invalidated) = (9, None);
        let arrival = Arrival {
            bytes,
            imm,
            invalidated,
            written,
        };
        assert_eq!(read(&wc).arrival().0, arrival);
        // Of a send nothing has come, whatever it says; of an error nothing is known.
        wc.opcode = b::ib_wc_opcode_IB_WC_SEND;
        assert_eq!(read(&wc).arrival().0, nothing);
        wc.opcode = b::ib_wc_opcode_IB_WC_RECV;
        wc.status = b::ib_wc_status_IB_WC_WR_FLUSH_ERR;
        let flushed = read(&wc);
        assert_eq!((flushed.arrival().0, flushed.vendor_error()), (nothing, 3));
    }
}

#[kernel::macros::kunit_tests(rdma_wc_status)]
mod rdma_wc_status_tests {
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
