// SPDX-License-Identifier: GPL-2.0

//! What a provider offers, what a consumer hints at, and whether the two go together.

use kernel::str::CString;

/// The one kind of endpoint that providers written in Rust can have.
pub(crate) const EP_TYPE: kfi_bindings::kfi_ep_type = kfi_bindings::kfi_ep_type_KFI_EP_RDM;

/// One domain that a provider can open, with its true limits.
pub struct Offer {
    /// Name of the fabric, unique within the provider.
    pub fabric: CString,
    /// Name of the domain.
    pub domain: CString,
    /// Capabilities.
    pub caps: u64,
    /// Mode bits for memory registration that a consumer must agree to.
    pub mr_mode: i32,
    /// Bytes of a key.
    pub mr_key_size: usize,
    /// Most segments of one region.
    pub mr_iov_limit: usize,
    /// Most regions.
    pub mr_cnt: usize,
    /// What there is besides regions.
    pub extras: Extras,
}

/// What a domain has besides regions. The default is nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extras {
    /// Most endpoints.
    pub endpoints: usize,
    /// Most counters.
    pub counters: usize,
    /// Most bytes of an authorization key.
    pub auth_key: usize,
}

/// The offer without its names, for negotiation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) caps: u64,
    pub(crate) mr_mode: i32,
    pub(crate) mr_key_size: usize,
    pub(crate) mr_iov_limit: usize,
    pub(crate) mr_cnt: usize,
    pub(crate) extras: Extras,
}

impl Offer {
    pub(crate) fn terms(&self) -> Terms {
        Terms {
            caps: self.caps,
            mr_mode: self.mr_mode,
            mr_key_size: self.mr_key_size,
            mr_iov_limit: self.mr_iov_limit,
            mr_cnt: self.mr_cnt,
            extras: self.extras,
        }
    }
}

/// What a consumer asks for. The default asks for nothing, and takes everything.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hints {
    /// Capabilities, of the info and of its attributes together.
    pub(crate) caps: u64,
    /// The mode bits that the consumer would agree to; `None` takes any.
    pub(crate) mr_mode: Option<i32>,
    pub(crate) mr_key_size: usize,
    pub(crate) mr_iov_limit: usize,
    pub(crate) mr_cnt: usize,
    /// Endpoints (of the kind [`EP_TYPE`]), counters and authorization keys.
    pub(crate) extras: Extras,
    /// Something that no provider written in Rust has yet: endpoints of another kind, what they
    /// would transfer with, completion queues, addresses.
    pub(crate) beyond: bool,
}

impl Hints {
    /// Can the offer meet the hints?
    pub(crate) fn met_by(&self, offer: &Terms) -> bool {
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
    }
}

#[kernel::macros::kunit_tests(kfabric_offer)]
mod tests {
    use super::*;

    const OFFER: Terms = Terms {
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
    };

    #[test]
    fn no_hints_take_everything() {
        assert!(Hints::default().met_by(&OFFER));
    }

    #[test]
    fn caps_must_be_offered() {
        assert!(Hints {
            caps: 0b101,
            ..Hints::default()
        }
        .met_by(&OFFER));
        assert!(!Hints {
            caps: 0b1001,
            ..Hints::default()
        }
        .met_by(&OFFER));
    }

    #[test]
    fn needed_modes_must_be_agreed_to() {
        let agreeing = |mr_mode| Hints {
            mr_mode: Some(mr_mode),
            ..Hints::default()
        };
        assert!(agreeing(0b11000).met_by(&OFFER));
        assert!(agreeing(0b11111).met_by(&OFFER));
        assert!(!agreeing(0b01000).met_by(&OFFER));
        assert!(!agreeing(0).met_by(&OFFER));
    }

    #[test]
    fn limits_must_be_met() {
        assert!(Hints {
            mr_key_size: 4,
            ..Hints::default()
        }
        .met_by(&OFFER));
        assert!(!Hints {
            mr_key_size: 5,
            ..Hints::default()
        }
        .met_by(&OFFER));
        assert!(!Hints {
            mr_iov_limit: 513,
            ..Hints::default()
        }
        .met_by(&OFFER));
        assert!(!Hints {
            mr_cnt: 1001,
            ..Hints::default()
        }
        .met_by(&OFFER));
        assert!(!Hints {
            beyond: true,
            ..Hints::default()
        }
        .met_by(&OFFER));
    }
    #[test]
    fn extras_must_be_there() {
        let asking = |endpoints, counters, auth_key| {
            Hints {
                extras: Extras {
                    endpoints,
                    counters,
                    auth_key,
                },
                ..Hints::default()
            }
            .met_by(&OFFER)
        };
        assert!(asking(1, 2, 3));
        assert!(!asking(2, 0, 0));
        assert!(!asking(0, 3, 0));
        assert!(!asking(0, 0, 4));
    }
}
