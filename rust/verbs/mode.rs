// SPDX-License-Identifier: GPL-2.0

//! The mode bits of a domain, and what each of them means here.

use crate::{
    pool::lines::MAX_PAGES,
    prelude::*, //
};
use kfabric::{
    raw_key_size,
    MAX_PIECES, //
};

/// The memory registration mode that a domain was opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The mode with only the bits that every domain needs.
    Plain,
    /// Keys go to peers as raw bytes, so that a region can consist of several device regions.
    Raw,
    /// Regions are bound to endpoints, and registered there.
    Endpoint,
}

/// Peers address regions by `kfid_mr.iova`, and the device chooses keys.
const NEEDED: i32 = num::signed(kfi_bindings::KFI_MR_VIRT_ADDR | kfi_bindings::KFI_MR_PROV_KEY);

/// Regions are bound to endpoints.
const ENDPOINT: i32 = num::signed(kfi_bindings::KFI_MR_ENDPOINT);

/// Keys go to peers as raw bytes.
const RAW: i32 = num::signed(kfi_bindings::KFI_MR_RAW);

impl Mode {
    /// The offered modes, in this order: the first acceptable one demands least of the consumer.
    pub(crate) const OFFERS: [Self; 2] = [Self::Plain, Self::Raw];

    /// The modes offered with connected endpoints, in this order.
    pub(crate) const ENDPOINT_OFFERS: [Self; 3] = [Self::Plain, Self::Raw, Self::Endpoint];

    /// Takes the `mr_mode` of a domain's attributes; `msg` if it is to have connected endpoints, which regions
    /// can be bound to.
    ///
    /// # Errors
    ///
    /// `ENODATA` if a bit is missing without which there is no domain.
    pub(crate) fn new(bits: i32, msg: bool) -> Result<Self, Refusal> {
        if NEEDED & !bits != 0 {
            let refusal = Refusal::new(Errno::ENODATA, c"mr_mode lacks a bit that is needed");
            return Err(refusal.value(num::widen_u32(NEEDED.unsigned_abs())));
        }
        // A region of several pieces takes more than one request, so a consumer that accepts both
        // binds nothing.
        Ok(match bits {
            bits if bits & RAW != 0 => Self::Raw,
            bits if bits & ENDPOINT != 0 && msg => Self::Endpoint,
            _ => Self::Plain,
        })
    }

    /// Returns the C bits.
    pub(crate) const fn bits(self) -> i32 {
        match self {
            Self::Plain => NEEDED,
            Self::Raw => NEEDED | RAW,
            Self::Endpoint => NEEDED | ENDPOINT,
        }
    }

    /// Checks whether regions are bound to endpoints.
    pub(crate) const fn by_endpoint(self) -> bool {
        matches!(self, Self::Endpoint)
    }

    /// Returns the size of a key in bytes. Devices have keys of 32 bits.
    pub(crate) fn key_size(self) -> usize {
        match self {
            Self::Raw => raw_key_size(MAX_PIECES),
            _ => size_of::<u32>(),
        }
    }

    /// Returns the limits of a region on a device.
    pub(crate) fn limits(self, limits: &Limits) -> MrLimits {
        let pages = limits.max_fast_reg_pages.min(MAX_PAGES);
        // Adding `KFI_MR_RAW` must not reduce the limits of an offer without it.
        let (segments, pieces) = match self {
            Self::Raw => (MAX_PIECES.max(num::index(pages)), MAX_PIECES),
            _ => (num::index(pages), 1),
        };
        MrLimits {
            regions: num::index(limits.max_mr),
            segments,
            pages: u64::from(pages),
            bytes: limits.max_mr_size,
            gaps: limits.sg_gaps,
            peer_to_peer: limits.peer_to_peer,
            pieces,
            ..MrLimits::NONE
        }
    }
}

#[kernel::macros::kunit_tests(kfi_verbs_mode)]
mod tests {
    use super::*;

    #[test]
    fn raw_keys_take_no_segments_away() {
        const LIMITS: Limits = Limits {
            max_mr: 1,
            max_mr_size: u64::MAX,
            max_fast_reg_pages: 0,
            page_size: None,
            page_sizes: 0,
            max_qp: 0,
            max_qp_wr: 0,
            max_cq: 0,
            max_cqe: 0,
            max_segments: 0,
            max_shared: 0,
            max_shared_segments: 0,
            fast_reg: true,
            sg_gaps: false,
            atomics: false,
            peer_to_peer: false,
        };
        let most = num::index(MAX_PAGES);
        for (pages, raw) in [(512, 4096), (4096, 4096), (65536, 65536), (u32::MAX, most)] {
            let limits = Limits {
                max_fast_reg_pages: pages,
                ..LIMITS
            };
            let (plain, by_hand) = (Mode::Plain.limits(&limits), Mode::Raw.limits(&limits));
            assert_eq!(plain.segments, num::index(pages).min(most));
            assert_eq!((by_hand.segments, by_hand.pieces), (raw, MAX_PIECES));
        }
    }

    #[test]
    fn a_bit_that_is_needed() {
        assert!(
            Mode::new(NEEDED, true).is_ok_and(|mode| mode == Mode::Plain && mode.bits() == NEEDED)
        );
        assert!(
            Mode::new(-1, true).is_ok_and(|mode| mode == Mode::Raw && mode.bits() == NEEDED | RAW)
        );
        let bound = Mode::new(NEEDED | ENDPOINT, true);
        assert!(bound.is_ok_and(|mode| mode.by_endpoint() && mode.bits() == NEEDED | ENDPOINT));
        let alone = Mode::new(NEEDED | ENDPOINT, false);
        assert!(alone.is_ok_and(|mode| !mode.by_endpoint()));
        for bit in [
            kfi_bindings::KFI_MR_VIRT_ADDR,
            kfi_bindings::KFI_MR_PROV_KEY,
        ] {
            let lacking = Mode::new(!num::signed(bit), true);
            assert!(lacking.is_err_and(|refusal| refusal.errno() == Errno::ENODATA));
        }
    }
}
