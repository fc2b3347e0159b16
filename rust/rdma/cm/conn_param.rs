// SPDX-License-Identifier: GPL-2.0

//! Parameters of a connection: `struct rdma_conn_param` and private data.
//!
//! Private data arrive padded with zeros to the maximum length of the message. Peers that need the
//! length must send it in the data.

use super::*;

/// Parameters of a connection: requests in flight and retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnParam {
    /// Maximum number of the peer's reads and atomic operations that this side serves at once. If
    /// it is 0, the peer cannot read.
    pub responder_resources: u8,
    /// Maximum number of reads and atomic operations that this side has in flight.
    pub initiator_depth: u8,
    /// Number of retries without an acknowledgement. 7 means unlimited on some devices, rxe among
    /// them. Both sides use the value of the connecting side, except that an accepting side of this
    /// crate uses its own.
    pub retry_count: u8,
    /// Number of retries if the peer has no receive request. 7 means unlimited.
    pub rnr_retry_count: u8,
    /// Timeout for an acknowledgement: 4.096 µs times two to the power of this. With [`None`] the
    /// connection manager chooses: half a second over Ethernet.
    pub ack_timeout: Option<u8>,
    /// Delay before a peer retries after "receiver not ready", in the encoding of the wire: 1 to 31
    /// are 10 µs to 492 ms, 0 is 655 ms.
    pub min_rnr_timer: u8,
    /// Type of service of the packets. Its upper six bits are the differentiated services code point. With
    /// [`None`], the connection manager chooses. Both sides use the value of the connecting side.
    pub tos: Option<u8>,
}

impl Default for ConnParam {
    fn default() -> Self {
        Self {
            responder_resources: 16,
            initiator_depth: 16,
            retry_count: 6,
            rnr_retry_count: 7,
            ack_timeout: None,
            min_rnr_timer: 12,
            tos: None,
        }
    }
}

impl ConnParam {
    /// Sets [`min_rnr_timer`](Self::min_rnr_timer) to the shortest delay of at least `us`
    /// microseconds.
    pub fn with_rnr_delay(self, us: u32) -> Self {
        // In units of 10 µs. The longest delay has the number 0.
        const DELAYS: [u32; 31] = [
            1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
            2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
        ];
        let number = (1..).zip(DELAYS).find(|(_, delay)| delay * 10 >= us);
        Self {
            min_rnr_timer: number.map_or(0, |(number, _)| number),
            ..self
        }
    }

    /// Reduces the parameters to the capabilities of a device.
    pub(super) fn on(self, device: &Device) -> Self {
        let attrs = device.attrs();
        self.at_most(
            attrs.max_qp_rd_atom.try_into().unwrap_or(u8::MAX),
            attrs.max_qp_init_rd_atom.try_into().unwrap_or(u8::MAX),
        )
    }

    /// Reduces the numbers of operations in flight.
    pub(super) fn at_most(self, responder_resources: u8, initiator_depth: u8) -> Self {
        Self {
            responder_resources: self.responder_resources.min(responder_resources),
            initiator_depth: self.initiator_depth.min(initiator_depth),
            ..self
        }
    }

    /// Returns the C structure for the queue pair `qp_num`. `shares` is true if it has a shared
    /// receive queue.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if `data` has more than `most` bytes.
    pub(super) fn raw(
        &self,
        (qp_num, shares): (u32, bool),
        data: &[u8],
        most: usize,
    ) -> Result<b::rdma_conn_param> {
        Ok(b::rdma_conn_param {
            private_data: data.as_ptr().cast(),
            private_data_len: checked_len(data, most)?,
            responder_resources: self.responder_resources,
            initiator_depth: self.initiator_depth,
            retry_count: self.retry_count,
            rnr_retry_count: self.rnr_retry_count,
            srq: shares.into(),
            qp_num,
            ..Default::default()
        })
    }
}

/// Maximum length of private data in a request, in bytes.
pub const MAX_REQUEST_DATA: usize = 56;
/// Maximum length of private data in an acceptance, in bytes.
pub const MAX_ACCEPT_DATA: usize = 196;
/// Maximum length of private data in a rejection, in bytes.
pub const MAX_REJECT_DATA: usize = 148;

/// Returns the length of `data`, or `EINVAL` if it is more than `most` bytes.
pub(super) fn checked_len(data: &[u8], most: usize) -> Result<u8> {
    if data.len() > most {
        return Err(EINVAL);
    }
    Ok(u8::try_from(data.len())?)
}

/// Returns the private data of an event.
///
/// # Safety
///
/// `data` must be null, or point to `len` bytes that are valid and unchanged for `'a`.
pub(super) unsafe fn private_data<'a>(data: *const c_void, len: u8) -> &'a [u8] {
    if data.is_null() {
        return &[];
    }
    // SAFETY: `data` is not null, so it points to `len` bytes valid for `'a` by the function's
    // contract.
    unsafe { core::slice::from_raw_parts(data.cast(), len.into()) }
}

#[kernel::macros::kunit_tests(rdma_cm_terms)]
mod tests {
    use super::*;

    #[test]
    fn delays_that_there_are() {
        let number = |us| ConnParam::default().with_rnr_delay(us).min_rnr_timer;
        assert_eq!([number(1), number(10), number(11)], [1, 1, 2]);
        assert_eq!([number(640), number(641)], [12, 13]);
        assert_eq!(
            [number(491_520), number(491_521), number(u32::MAX)],
            [31, 0, 0]
        );
    }

    #[test]
    fn as_the_c_side_has_it() -> Result {
        let terms = ConnParam::default().at_most(4, 200);
        let raw = terms.raw((17, false), &[1, 2, 3], MAX_REQUEST_DATA)?;
        assert_eq!(raw.srq, 0);
        assert_eq!(terms.raw((17, true), &[], MAX_REQUEST_DATA)?.srq, 1);
        assert_eq!((raw.responder_resources, raw.initiator_depth), (4, 16));
        assert_eq!((raw.qp_num, raw.private_data_len), (17, 3));
        // The default is limited: 7 would be unlimited.
        assert_eq!(raw.retry_count, 6);
        assert!(terms.raw((17, false), &[0; 57], MAX_REQUEST_DATA).is_err());
        Ok(())
    }

    #[test]
    fn no_more_than_fits() {
        assert_eq!(checked_len(&[0; 56], MAX_REQUEST_DATA), Ok(56));
        assert_eq!(checked_len(&[0; 57], MAX_REQUEST_DATA), Err(EINVAL));
        assert_eq!(checked_len(&[0; 196], MAX_ACCEPT_DATA), Ok(196));
        assert_eq!(checked_len(&[0; 149], MAX_REJECT_DATA), Err(EINVAL));
        assert_eq!(checked_len(&[], MAX_REJECT_DATA), Ok(0));
    }
}
