// SPDX-License-Identifier: GPL-2.0

//! The mode bits of a domain, and their meaning here.

use kfabric::{
    num::signed,
    raw_key_size,
    MrLimits, //
};

/// The memory registration mode that a domain was opened with. Bits that mean nothing here have
/// been agreed to by the consumer without need, and are not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode(i32);

macro_rules! modes {
    ($($(#[$doc:meta])* $name:ident = $c:ident;)*) => {
        impl Mode {
            $($(#[$doc])* pub(crate) const $name: Self = Self(signed(kfi_bindings::$c));)*
            const ALL: i32 = 0 $(| Self::$name.0)*;
        }
    };
}

modes! {
    /// Local buffers are registered too, and have a descriptor.
    LOCAL = KFI_MR_LOCAL;
    /// Keys go to peers as raw bytes.
    RAW = KFI_MR_RAW;
    /// Peers count from an address of the region's own, not from 0.
    VIRT_ADDR = KFI_MR_VIRT_ADDR;
    /// The provider chooses keys.
    PROV_KEY = KFI_MR_PROV_KEY;
    /// Regions that are counted are bound before they are enabled.
    RMA_EVENT = KFI_MR_RMA_EVENT;
    /// Regions are bound to an endpoint before they are enabled.
    ENDPOINT = KFI_MR_ENDPOINT;
}

/// Maximum number of pieces of a region under [`Mode::RAW`]. No device needs any. Consumers can
/// test raw keys of several pieces with it.
pub(crate) const MAX_PIECES: usize = 16;

impl Mode {
    /// No bit: keys by the application, addresses from 0.
    pub(crate) const NONE: Self = Self(0);

    /// The offers, in this order: the first that a consumer agrees to requires least of it.
    pub(crate) const OFFERS: [Self; 5] = [
        Self::NONE,
        Self::VIRT_ADDR.and(Self::PROV_KEY),
        Self::RMA_EVENT,
        Self::ENDPOINT,
        Self::RAW.and(Self::VIRT_ADDR).and(Self::PROV_KEY),
    ];

    /// Takes the `mr_mode` of a domain's attributes.
    pub(crate) const fn new(bits: i32) -> Self {
        Self(bits & Self::ALL)
    }

    /// Returns the bits of both.
    const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the bits as C has them.
    pub(crate) const fn bits(self) -> i32 {
        self.0
    }

    /// Returns whether all bits of `other` are set.
    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the maximum number of pieces of a region. It is more than 1 if the provider may
    /// choose keys and the consumer takes raw ones.
    pub(crate) const fn pieces(self) -> usize {
        if self.has(Self::RAW.and(Self::PROV_KEY)) {
            MAX_PIECES
        } else {
            1
        }
    }

    /// Returns the size of a key in bytes.
    pub(crate) fn key_size(self) -> usize {
        if self.has(Self::RAW) {
            raw_key_size(self.pieces())
        } else {
            size_of::<u64>()
        }
    }

    /// Returns the limits of a region.
    pub(crate) const fn limits(self) -> MrLimits {
        MrLimits {
            regions: 1 << 24,
            segments: 1 << 16,
            pages: u64::MAX,
            bytes: 1 << 46,
            gaps: true,
            auth_keys: true,
            refresh: Ok(()),
            // The processor copies.
            peer_to_peer: false,
            pieces: self.pieces(),
            by_entries: false,
            leases: true,
            flags: kfi_bindings::KFI_RMA_EVENT,
        }
    }
}

#[kernel::macros::kunit_tests(kfi_loop_mode)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_kept_that_mean_something() {
        assert_eq!(Mode::new(-1), Mode(Mode::ALL));
        assert_eq!(Mode::new(1), Mode::NONE);
        assert!(Mode::new(-1).has(Mode::LOCAL.and(Mode::RAW)));
        assert!(!Mode::RAW.has(Mode::LOCAL.and(Mode::RAW)));
    }

    #[test]
    fn pieces_need_raw_keys_by_the_provider() {
        assert_eq!(Mode::RAW.pieces(), 1);
        assert_eq!(Mode::PROV_KEY.pieces(), 1);
        assert_eq!(Mode::RAW.and(Mode::PROV_KEY).pieces(), MAX_PIECES);
    }
}
