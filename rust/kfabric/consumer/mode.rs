// SPDX-License-Identifier: GPL-2.0

//! Sets of flags: capabilities, what registering memory asks of a consumer, what is counted, how
//! transfers are posted.

use crate::support::num::{
    signed,
    widen_u32, //
};
use core::ops::BitOr;
use kernel::ffi::c_int;

/// Declares a set of flags with the names of the C API.
macro_rules! flags {
    ($(#[$doc:meta])* $set:ident($repr:ty) { $($(#[$flag_doc:meta])* $flag:ident = $value:expr;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $set($repr);

        impl $set {
            $($(#[$flag_doc])* pub const $flag: Self = Self::from_bits($value);)*

            /// The set as the C API has it.
            pub(super) const fn from_bits(bits: $repr) -> Self {
                Self(bits)
            }

            /// The bits as the C API has them.
            pub const fn bits(self) -> $repr {
                self.0
            }

            /// Are all the flags in `other` set?
            pub const fn has(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }
        }

        impl BitOr for $set {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }
    };
}

flags! {
    /// Capabilities (`kfi_info.caps`).
    Caps(u64) {
        /// Remote memory access (`KFI_RMA`).
        RMA = widen_u32(kfi_bindings::KFI_RMA);
        /// Messages (`KFI_MSG`).
        MSG = widen_u32(kfi_bindings::KFI_MSG);
        /// Tagged messages (`KFI_TAGGED`).
        TAGGED = widen_u32(kfi_bindings::KFI_TAGGED);
        /// Atomic operations (`KFI_ATOMIC`).
        ATOMIC = widen_u32(kfi_bindings::KFI_ATOMIC);
        /// A peer may read (`KFI_REMOTE_READ`).
        REMOTE_READ = widen_u32(kfi_bindings::KFI_REMOTE_READ);
        /// A peer may write (`KFI_REMOTE_WRITE`).
        REMOTE_WRITE = widen_u32(kfi_bindings::KFI_REMOTE_WRITE);
    }
}

flags! {
    /// What a consumer takes upon itself to make registration work (`kfi_domain_attr.mr_mode`).
    MrMode(c_int) {
        /// Memory for local use is registered, too (`KFI_MR_LOCAL`).
        LOCAL = signed(kfi_bindings::KFI_MR_LOCAL);
        /// Keys go as raw bytes (`KFI_MR_RAW`).
        RAW = signed(kfi_bindings::KFI_MR_RAW);
        /// A region starts at [`Mr::base`](super::Mr::base), not at 0 (`KFI_MR_VIRT_ADDR`).
        VIRT_ADDR = signed(kfi_bindings::KFI_MR_VIRT_ADDR);
        /// The provider chooses keys (`KFI_MR_PROV_KEY`).
        PROV_KEY = signed(kfi_bindings::KFI_MR_PROV_KEY);
        /// Regions that count accesses are bound and enabled (`KFI_MR_RMA_EVENT`).
        RMA_EVENT = signed(kfi_bindings::KFI_MR_RMA_EVENT);
        /// Regions are bound to an endpoint and enabled (`KFI_MR_ENDPOINT`).
        ENDPOINT = signed(kfi_bindings::KFI_MR_ENDPOINT);
    }
}

flags! {
    /// What a counter of an endpoint counts.
    Counts(u64) {
        /// Messages that were sent (`KFI_TRANSMIT`).
        SENDS = widen_u32(kfi_bindings::KFI_TRANSMIT);
        /// Messages that were received (`KFI_RECV`).
        RECVS = widen_u32(kfi_bindings::KFI_RECV);
        /// Reads of the peer's memory (`KFI_READ`).
        READS = widen_u32(kfi_bindings::KFI_READ);
        /// Writes to the peer's memory (`KFI_WRITE`).
        WRITES = widen_u32(kfi_bindings::KFI_WRITE);
    }
}

flags! {
    /// How a transfer is posted, besides what it does ([`MsgEndpoint::with`](super::MsgEndpoint::with)).
    TransferFlags(u64) {
        /// Another one is posted at once, so the device needn't be told of this one yet (`KFI_MORE`).
        MORE = widen_u32(kfi_bindings::KFI_MORE);
        /// It begins when all reads that were posted before have ended (`KFI_FENCE`).
        FENCE = widen_u32(kfi_bindings::KFI_FENCE);
        /// It has ended when the bytes are where they shall be (`KFI_DELIVERY_COMPLETE`).
        DELIVERY_COMPLETE = widen_u32(kfi_bindings::KFI_DELIVERY_COMPLETE);
    }
}
