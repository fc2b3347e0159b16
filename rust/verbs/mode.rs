// SPDX-License-Identifier: GPL-2.0

//! The mode bits of a domain, and what each of them means here.

use crate::pool::size::MAX_PAGES;
use kfabric::{
    num,
    raw_key_size,
    Errno,
    MrLimits,
    Refusal,
    MAX_PIECES, //
};
use rdma::Limits;

/// The memory registration mode that a domain was opened with.
#[derive(Clone, Copy)]
pub(crate) struct Mode {
    /// Keys go to peers as raw bytes, so that a region can be several to the device.
    raw: bool,
}

/// Peers address regions by `kfid_mr.iova`, and the device chooses keys.
const NEEDED: i32 = num::signed(kfi_bindings::KFI_MR_VIRT_ADDR | kfi_bindings::KFI_MR_PROV_KEY);

/// Keys go to peers as raw bytes.
const RAW: i32 = num::signed(kfi_bindings::KFI_MR_RAW);

impl Mode {
    /// What is offered, in this order: the first that a consumer can agree to asks least of it.
    pub(crate) const OFFERS: [Self; 2] = [Self { raw: false }, Self { raw: true }];

    /// Takes the `mr_mode` of a domain's attributes.
    ///
    /// # Errors
    ///
    /// `ENODATA` if a bit is missing without which there is no domain.
    pub(crate) fn new(bits: i32) -> Result<Self, Refusal> {
        if NEEDED & !bits != 0 {
            let refusal = Refusal::new(Errno::ENODATA, c"mr_mode lacks a bit that is needed");
            return Err(refusal.value(num::widen_u32(NEEDED.unsigned_abs())));
        }
        let raw = bits & RAW != 0;
        Ok(Self { raw })
    }

    /// The bits as C has them.
    pub(crate) const fn bits(self) -> i32 {
        if self.raw {
            NEEDED | RAW
        } else {
            NEEDED
        }
    }

    /// The size of a key. Those of devices are 32 bits wide.
    pub(crate) fn key_size(self) -> usize {
        if self.raw {
            raw_key_size(MAX_PIECES)
        } else {
            size_of::<u32>()
        }
    }

    /// What a region can be on a device.
    pub(crate) fn limits(self, limits: &Limits) -> MrLimits {
        let pages = limits.max_fast_reg_pages.min(MAX_PAGES);
        let (segments, pieces) = if self.raw {
            (MAX_PIECES, MAX_PIECES)
        } else {
            (num::index(pages), 1)
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
    fn a_bit_that_is_needed() {
        assert!(Mode::new(NEEDED).is_ok_and(|mode| !mode.raw && mode.bits() == NEEDED));
        assert!(Mode::new(-1).is_ok_and(|mode| mode.raw && mode.bits() == NEEDED | RAW));
        for bit in [
            kfi_bindings::KFI_MR_VIRT_ADDR,
            kfi_bindings::KFI_MR_PROV_KEY,
        ] {
            let lacking = Mode::new(!num::signed(bit));
            assert!(lacking.is_err_and(|refusal| refusal.errno() == Errno::ENODATA));
        }
    }
}
