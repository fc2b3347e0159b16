// SPDX-License-Identifier: GPL-2.0

//! What completions say.

mod status;

pub use self::status::{
    WcStatus,
    WrError, //
};

use crate::device::Device;
use core::{
    marker::PhantomData,
    ptr::null, //
};

/// What the completion of a request says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    pub(crate) status: WcStatus,
    /// What the vendor has to say of an error.
    pub(crate) vendor_error: u32,
    /// What has come, if it was a receive without an error.
    pub(crate) arrival: Arrival,
    /// Where it was.
    pub(crate) at: CqId,
}

/// A completion for as long as its callback takes, of which most say no more than their status.
///
/// # Invariants
///
/// `cq` is null, or there for `'a`.
#[derive(Clone, Copy)]
pub(crate) struct Told<'a> {
    status: WcStatus,
    /// Not of a silent request.
    wc: Option<&'a rdma_bindings::ib_wc>,
    cq: *const rdma_bindings::ib_cq,
}

impl<'a> Told<'a> {
    /// What the device has written.
    ///
    /// # Safety
    ///
    /// `cq` must be null, or there for `'a`.
    pub(crate) unsafe fn new(
        cq: *const rdma_bindings::ib_cq,
        wc: &'a rdma_bindings::ib_wc,
    ) -> Self {
        // INVARIANT: By the requirements of this function.
        Self {
            status: WcStatus::from_raw(wc.status),
            wc: Some(wc),
            cq,
        }
    }

    /// That of a silent request.
    pub(crate) const fn bare(status: WcStatus) -> Self {
        // INVARIANT: Null.
        Self {
            status,
            wc: None,
            cq: null(),
        }
    }

    /// How the request has ended.
    pub(crate) fn status(self) -> WcStatus {
        self.status
    }

    /// All of it.
    pub(crate) fn read(self) -> Completion {
        Completion {
            // SAFETY: By the type invariant.
            at: unsafe { CqId::of(self.cq) },
            ..self
                .wc
                .map_or(Completion::bare(self.status), Completion::read)
        }
    }
}

/// Which completion queue it is, of those that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CqId {
    cq: usize,
    device: DeviceId,
}

/// Which device it is, of those that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeviceId(usize);

impl DeviceId {
    /// None.
    pub(crate) const NONE: Self = Self(0);

    /// That of a device.
    pub(crate) fn of(device: &Device) -> Self {
        Self(device.as_raw().addr())
    }
}

impl CqId {
    /// None.
    const NONE: Self = Self {
        cq: 0,
        device: DeviceId::NONE,
    };

    /// That of a completion queue.
    ///
    /// # Safety
    ///
    /// It must be there, or null.
    pub(crate) unsafe fn of(cq: *const rdma_bindings::ib_cq) -> Self {
        // SAFETY: By the requirements of this function.
        let device = unsafe { cq.as_ref() }.map_or(0, |cq| cq.device.addr());
        Self {
            cq: cq.addr(),
            device: DeviceId(device),
        }
    }
}

/// What a receive has got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// How many bytes have come; if the peer has written, how many it wrote to the memory that it
    /// named.
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
    at: CqId,
    _now: PhantomData<&'a Completion>,
}

impl Invalidated<'_> {
    /// The key.
    pub fn key(self) -> u32 {
        self.key
    }

    /// The device.
    pub(crate) fn device(self) -> DeviceId {
        self.at.device
    }
}

impl Completion {
    /// The key that it says the device has invalidated for a peer.
    pub(crate) fn invalidated(&self) -> Option<Invalidated<'_>> {
        // INVARIANT: A completion is what the device says.
        let invalidated = |key| Invalidated {
            key,
            at: self.at,
            _now: PhantomData,
        };
        self.arrival.invalidated.map(invalidated)
    }
}

impl Completion {
    /// A completion that says no more than its status.
    const fn bare(status: WcStatus) -> Self {
        Self {
            status,
            vendor_error: 0,
            at: CqId::NONE,
            arrival: Arrival {
                bytes: 0,
                imm: None,
                invalidated: None,
                written: false,
            },
        }
    }

    /// Reads what there is, which after an error isn't much.
    fn read(wc: &rdma_bindings::ib_wc) -> Self {
        let status = WcStatus::from_raw(wc.status);
        if status != WcStatus::SUCCESS {
            return Self {
                vendor_error: wc.vendor_err,
                ..Self::bare(status)
            };
        }
        if wc.opcode & rdma_bindings::ib_wc_opcode_IB_WC_RECV == 0 {
            return Self::bare(status);
        }
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
        Self {
            arrival,
            ..Self::bare(status)
        }
    }
}

#[kernel::macros::kunit_tests(rdma_wc)]
mod tests {
    use super::*;

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
            Completion::read(&wc).arrival,
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
        assert_eq!(Completion::read(&wc).arrival, arrival);
        // Of a send nothing has come, whatever it says; of an error nothing is known.
        wc.opcode = b::ib_wc_opcode_IB_WC_SEND;
        assert_eq!(Completion::read(&wc).arrival, nothing);
        wc.opcode = b::ib_wc_opcode_IB_WC_RECV;
        wc.status = b::ib_wc_status_IB_WC_WR_FLUSH_ERR;
        let flushed = Completion::read(&wc);
        assert_eq!((flushed.arrival, flushed.vendor_error), (nothing, 3));
    }
}
