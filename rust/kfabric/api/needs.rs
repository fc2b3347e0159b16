// SPDX-License-Identifier: GPL-2.0

//! The numbers in a consumer's hints, and whether an offer meets them.

use crate::{
    provider::{
        msg_ep::MsgLimits,
        offer::{
            Capabilities, //
            Extras,
        }, //
    },
    support::num::{
        signed,
        widen,
        widen_u32, //
    }, //
};

/// What a consumer needs. The default is nothing: then it takes everything.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Needs {
    /// Capabilities, of the info and of its attributes together.
    pub(super) caps: u64,
    /// The mode bits that the consumer would agree to; `None` takes any.
    pub(super) mr_mode: Option<i32>,
    pub(super) mr_key_size: usize,
    pub(super) mr_iov_limit: usize,
    pub(super) mr_cnt: usize,
    /// Endpoints, counters and authorization keys.
    pub(super) extras: Extras,
    /// The kind of endpoint.
    pub(super) kind: KindNeed,
    /// What connected endpoints must be able to do.
    pub(super) msg: MsgNeeds,
    /// Something that no provider written in Rust has yet.
    pub(super) beyond: bool,
}

/// The kind of endpoint that a consumer needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum KindNeed {
    /// Any, or none.
    #[default]
    Any,
    /// One that transfers nothing ([`EP_TYPE`](crate::provider::offer::EP_TYPE)).
    Bare,
    /// One that is connected.
    Msg,
}

/// What connected endpoints must be able to do. The default is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MsgNeeds {
    pub(super) tx_size: usize,
    pub(super) rx_size: usize,
    pub(super) iov_limit: usize,
    pub(super) rma_iov_limit: usize,
    pub(super) inject_size: usize,
    pub(super) max_msg_size: usize,
    pub(super) cq_data_size: usize,
    /// How many receive contexts an endpoint shares.
    pub(super) shared: usize,
}

impl MsgNeeds {
    /// Can these endpoints do that?
    fn met_by(&self, limits: &MsgLimits) -> bool {
        self.tx_size <= limits.tx_size
            && self.rx_size <= limits.rx_size
            && self.iov_limit <= limits.local.segments
            && self.rma_iov_limit <= limits.remote_pieces
            && self.inject_size <= limits.inject_size
            && widen(self.max_msg_size) <= limits.local.bytes
            && self.cq_data_size <= limits.cq_data_size
            && self.shared <= usize::from(limits.shared_size > 0)
    }
}

impl Needs {
    /// Does the offer meet them?
    pub(super) fn met_by(&self, offer: &Capabilities) -> bool {
        !self.beyond
            && self.caps & !offer.caps == 0
            && self
                .mr_mode
                .is_none_or(|agreed| offer.mr_mode & !agreed == 0)
            && self.mr_key_size <= offer.mr_key_size
            && self.mr_iov_limit <= offer.mr_iov_limit
            && self.mr_cnt <= offer.mr_cnt
            && self.extras.endpoints <= offer.extras.endpoints
            && self.extras.counters <= offer.extras.counters
            && self.extras.auth_key <= offer.extras.auth_key
            && match (&offer.msg, self.kind) {
                (Some(msg), KindNeed::Any | KindNeed::Msg) => self.msg.met_by(&msg.limits),
                (None, KindNeed::Any | KindNeed::Bare) => self.msg == MsgNeeds::default(),
                _ => false,
            }
            && (!binds(offer) || self.asks_for_connections())
    }

    /// Does the consumer speak of connections, or take everything? Others that are ready to bind their
    /// regions know endpoints without one.
    fn asks_for_connections(&self) -> bool {
        self.mr_mode.is_none() || self.kind == KindNeed::Msg || self.caps & MSG != 0
    }
}

/// Are regions bound to connected endpoints?
fn binds(offer: &Capabilities) -> bool {
    offer.msg.is_some() && offer.mr_mode & signed(kfi_bindings::KFI_MR_ENDPOINT) != 0
}

const MSG: u64 = widen_u32(kfi_bindings::KFI_MSG);

#[kernel::macros::kunit_tests(kfabric_offer)]
mod tests {
    use super::*;

    const OFFER: Capabilities = Capabilities {
        caps: 0b111,
        mr_mode: 0b11000,
        mr_key_size: 4,
        mr_iov_limit: 512,
        mr_cnt: 1000,
        extras: Extras {
            endpoints: 1,
            counters: 2,
            auth_key: 3,
        },
        msg: None,
    };

    #[test]
    fn no_hints_take_everything() {
        assert!(Needs::default().met_by(&OFFER));
    }

    #[test]
    fn caps_must_be_offered() {
        assert!(Needs {
            caps: 0b101,
            ..Needs::default()
        }
        .met_by(&OFFER));
        assert!(!Needs {
            caps: 0b1001,
            ..Needs::default()
        }
        .met_by(&OFFER));
    }

    #[test]
    fn needed_modes_must_be_agreed_to() {
        let agreeing = |mr_mode| Needs {
            mr_mode: Some(mr_mode),
            ..Needs::default()
        };
        assert!(agreeing(0b11000).met_by(&OFFER));
        assert!(agreeing(0b11111).met_by(&OFFER));
        assert!(!agreeing(0b01000).met_by(&OFFER));
        assert!(!agreeing(0).met_by(&OFFER));
    }

    #[test]
    fn limits_must_be_met() {
        assert!(Needs {
            mr_key_size: 4,
            ..Needs::default()
        }
        .met_by(&OFFER));
        assert!(!Needs {
            mr_key_size: 5,
            ..Needs::default()
        }
        .met_by(&OFFER));
        assert!(!Needs {
            mr_iov_limit: 513,
            ..Needs::default()
        }
        .met_by(&OFFER));
        assert!(!Needs {
            mr_cnt: 1001,
            ..Needs::default()
        }
        .met_by(&OFFER));
        assert!(!Needs {
            beyond: true,
            ..Needs::default()
        }
        .met_by(&OFFER));
    }
    #[test]
    fn extras_must_be_there() {
        let asking = |endpoints, counters, auth_key| {
            Needs {
                extras: Extras {
                    endpoints,
                    counters,
                    auth_key,
                },
                ..Needs::default()
            }
            .met_by(&OFFER)
        };
        assert!(asking(1, 2, 3));
        assert!(!asking(2, 0, 0));
        assert!(!asking(0, 3, 0));
        assert!(!asking(0, 0, 4));
    }
}
