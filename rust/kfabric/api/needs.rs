// SPDX-License-Identifier: GPL-2.0

//! The numbers in a consumer's hints, and the first property that an offer lacks.
//!
//! If no offer meets the hints, the error names the property that the closest offer lacks.

use crate::{
    prelude::*,
    provider::{
        fabric::{
            Capabilities,
            Extras, //
        },
        msg_ep::MsgLimits, //
    },
    support::num::signed, //
};

/// The needs of a consumer. The default needs nothing: every offer meets it.
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
    /// The needs for connected endpoints.
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
    /// One that transfers nothing ([`EP_TYPE`](crate::provider::fabric::EP_TYPE)).
    Bare,
    /// One that is connected.
    Msg,
}

/// The needs for connected endpoints. The default is nothing.
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
    /// A traffic class, other than best effort.
    pub(super) tclass: Option<u32>,
}

impl MsgNeeds {
    /// Returns the maximum size of the receive queue, which may be that of a shared receive context.
    pub(super) fn rx_limit(&self, limits: &MsgLimits) -> usize {
        match (self.shared, limits.shared_size) {
            (1.., size @ 1..) => size,
            _ => limits.rx_size,
        }
    }

    /// Checks whether endpoints of these limits have everything. The error is the first property
    /// that they lack.
    fn check(&self, limits: &MsgLimits) -> Result<(), Mismatch> {
        let local = &limits.local;
        let bytes = widen(self.max_msg_size) > local.bytes;
        let shared = usize::from(limits.shared_size > 0);
        first(
            Stage::Endpoints,
            [
                less(limits.tx_size, self.tx_size, c"tx_attr->size"),
                less(self.rx_limit(limits), self.rx_size, c"rx_attr->size"),
                less(
                    local.segments,
                    self.iov_limit,
                    c"iov_limit of tx_attr or rx_attr",
                ),
                less(
                    limits.remote_pieces,
                    self.rma_iov_limit,
                    c"tx_attr->rma_iov_limit",
                ),
                less(
                    limits.inject_size,
                    self.inject_size,
                    c"tx_attr->inject_size",
                ),
                (bytes, c"ep_attr->max_msg_size", local.bytes),
                less(
                    limits.cq_data_size,
                    self.cq_data_size,
                    c"domain_attr->cq_data_size",
                ),
                less(shared, self.shared, c"domain_attr->max_ep_srx_ctx"),
                (
                    self.tclass.is_some() && !limits.bounded,
                    c"tx_attr->tclass",
                    0,
                ),
            ],
        )
    }
}

/// Reasons that name the bits of `mr_mode`. The first whose bits are all missing is given.
const AGREEMENTS: [(u32, &CStr); 7] = [
    (
        kfi_bindings::KFI_MR_VIRT_ADDR | kfi_bindings::KFI_MR_PROV_KEY,
        c"mr_mode: agreement to KFI_MR_VIRT_ADDR and KFI_MR_PROV_KEY",
    ),
    (
        kfi_bindings::KFI_MR_VIRT_ADDR,
        c"mr_mode: agreement to KFI_MR_VIRT_ADDR",
    ),
    (
        kfi_bindings::KFI_MR_PROV_KEY,
        c"mr_mode: agreement to KFI_MR_PROV_KEY",
    ),
    (
        kfi_bindings::KFI_MR_ENDPOINT,
        c"mr_mode: agreement to KFI_MR_ENDPOINT",
    ),
    (
        kfi_bindings::KFI_MR_LOCAL,
        c"mr_mode: agreement to KFI_MR_LOCAL",
    ),
    (
        kfi_bindings::KFI_MR_RAW,
        c"mr_mode: agreement to KFI_MR_RAW",
    ),
    (
        kfi_bindings::KFI_MR_RMA_EVENT,
        c"mr_mode: agreement to KFI_MR_RMA_EVENT",
    ),
];

/// Returns the property of an offer that these bits of its `mr_mode` are.
fn agreement(missing: i32) -> &'static CStr {
    AGREEMENTS
        .iter()
        .find(|(bits, _)| missing & signed(*bits) == signed(*bits))
        .map_or(c"mr_mode: agreement to a bit", |(_, reason)| reason)
}

impl Needs {
    /// Checks whether an offer has everything. The error is the first property that it lacks. Its
    /// value is the missing bits, or the number that the offer has.
    pub(super) fn check(&self, offer: &Capabilities) -> Result<(), Mismatch> {
        let other_kind = match (&offer.msg, self.kind) {
            (Some(_), KindNeed::Bare) | (None, KindNeed::Msg) => true,
            (None, _) => self.msg != MsgNeeds::default(),
            (Some(_), _) => false,
        };
        let unasked = binds(offer) && !self.asks_for_connections();
        first(
            Stage::Kind,
            [
                (self.beyond, c"something that no provider has", 0),
                (other_kind, c"endpoints of that kind", 0),
                (
                    unasked,
                    c"connections: KFI_EP_MSG or KFI_MSG was not asked for",
                    0,
                ),
            ],
        )?;
        let missing = self.caps & !offer.caps;
        let disagreed = self.mr_mode.map_or(0, |agreed| offer.mr_mode & !agreed);
        let agreed = (
            disagreed != 0,
            agreement(disagreed),
            u64::try_from(disagreed).unwrap_or(0),
        );
        let (has, wanted) = (&offer.extras, &self.extras);
        first(
            Stage::Numbers,
            [
                (missing != 0, c"caps: these bits", missing),
                agreed,
                less(
                    offer.mr_key_size,
                    self.mr_key_size,
                    c"domain_attr->mr_key_size",
                ),
                less(
                    offer.mr_iov_limit,
                    self.mr_iov_limit,
                    c"domain_attr->mr_iov_limit",
                ),
                less(offer.mr_cnt, self.mr_cnt, c"domain_attr->mr_cnt"),
                less(has.endpoints, wanted.endpoints, c"domain_attr->ep_cnt"),
                less(has.counters, wanted.counters, c"domain_attr->cntr_cnt"),
                less(has.queues, wanted.queues, c"domain_attr->cq_cnt"),
                less(has.auth_key, wanted.auth_key, c"auth_key_size"),
            ],
        )?;
        match &offer.msg {
            Some(msg) => self.msg.check(&msg.limits),
            None => Ok(()),
        }
    }

    /// Does the consumer speak of connections, or take everything? Others that are ready to bind their
    /// regions know endpoints without one.
    fn asks_for_connections(&self) -> bool {
        self.mr_mode.is_none() || self.kind == KindNeed::Msg || self.caps & MSG != 0
    }
}

/// Checks whether regions are bound to connected endpoints.
fn binds(offer: &Capabilities) -> bool {
    offer.msg.is_some() && offer.mr_mode & signed(kfi_bindings::KFI_MR_ENDPOINT) != 0
}

const MSG: u64 = widen_u32(kfi_bindings::KFI_MSG);

/// How far an offer was looked at, from what it is of to what its endpoints can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Names,
    Kind,
    Numbers,
    Endpoints,
}

/// The first property that an offer lacks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mismatch {
    at: (Stage, usize),
    what: &'static CStr,
    value: u64,
}

impl Mismatch {
    /// Checks whether its offer came closer than another.
    pub(super) fn is_closer(&self, than: &Self) -> bool {
        self.at > than.at
    }

    /// Returns the refusal for the consumer.
    pub(super) fn refusal(&self) -> Refusal {
        Refusal::new(Errno::ENODATA, self.what).value(self.value)
    }
}

/// Whether something is lacking, what, and a value.
pub(super) type Check = (bool, &'static CStr, u64);

/// Checks a number against the wanted one; the value is the number that there is.
pub(super) fn less(has: usize, wanted: usize, what: &'static CStr) -> Check {
    (wanted > has, what, widen(has))
}

/// Returns an error for the first property that is lacking.
pub(super) fn first<const N: usize>(stage: Stage, checks: [Check; N]) -> Result<(), Mismatch> {
    let lacking = checks.iter().enumerate().find(|(_, (lacks, ..))| *lacks);
    match lacking {
        Some((index, &(_, what, value))) => Err(Mismatch {
            at: (stage, index),
            what,
            value,
        }),
        None => Ok(()),
    }
}

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
            queues: 4,
            auth_key: 3,
        },
        msg: None,
    };

    /// Checks whether the offer meets the needs that `add` sets, and no others.
    fn is_met(add: impl FnOnce(&mut Needs)) -> bool {
        let mut needs = Needs::default();
        add(&mut needs);
        needs.check(&OFFER).is_ok()
    }

    #[test]
    fn no_hints_take_everything() {
        assert!(is_met(|_| ()));
    }

    #[test]
    fn caps_must_be_offered() {
        assert!(is_met(|needs| needs.caps = 0b101));
        assert!(!is_met(|needs| needs.caps = 0b1001));
    }

    #[test]
    fn needed_modes_must_be_agreed_to() {
        let agreeing = |mr_mode| is_met(|needs| needs.mr_mode = Some(mr_mode));
        assert!(agreeing(0b11000));
        assert!(agreeing(0b11111));
        assert!(!agreeing(0b01000));
        assert!(!agreeing(0));
    }

    #[test]
    fn limits_must_be_met() {
        assert!(is_met(|needs| needs.mr_key_size = 4));
        assert!(!is_met(|needs| needs.mr_key_size = 5));
        assert!(!is_met(|needs| needs.mr_iov_limit = 513));
        assert!(!is_met(|needs| needs.mr_cnt = 1001));
        assert!(!is_met(|needs| needs.beyond = true));
    }

    #[test]
    fn the_first_that_is_lacking_is_named() {
        let lack = |needs: Needs| needs.check(&OFFER).err().map(|lack| lack.refusal());
        let needs = Needs {
            caps: 0b1101,
            mr_cnt: 1001,
            ..Needs::default()
        };
        let refusal = Refusal::new(Errno::ENODATA, c"caps: these bits");
        assert_eq!(lack(needs), Some(refusal.value(0b1000)));
        let needs = Needs {
            mr_mode: Some(0b01000),
            ..Needs::default()
        };
        let refusal = Refusal::new(Errno::ENODATA, c"mr_mode: agreement to KFI_MR_PROV_KEY");
        assert_eq!(lack(needs), Some(refusal.value(0b10000)));
        let needs = Needs {
            mr_mode: Some(0),
            ..Needs::default()
        };
        let why = lack(needs).map(|refusal| refusal.why());
        assert!(why == Some(c"mr_mode: agreement to KFI_MR_VIRT_ADDR and KFI_MR_PROV_KEY"));
    }

    #[test]
    fn extras_must_be_there() {
        let asking = |endpoints, counters, queues, auth_key| {
            is_met(|needs| {
                needs.extras = Extras {
                    endpoints,
                    counters,
                    queues,
                    auth_key,
                };
            })
        };
        assert!(asking(1, 2, 4, 3));
        assert!(!asking(2, 0, 0, 0));
        assert!(!asking(0, 3, 0, 0));
        assert!(!asking(0, 0, 5, 0));
        assert!(!asking(0, 0, 0, 4));
    }

    #[test]
    fn the_first_counts_and_the_last_is_closest() -> Result<(), Errno> {
        let lacks = |stage, checks| first::<2>(stage, checks).err().ok_or(Errno::EINVAL);
        let (yes, no) = ((true, c"this", 1), (false, c"that", 2));
        assert!(first(Stage::Kind, [no, no]).is_ok());
        let early = lacks(Stage::Names, [no, yes])?;
        let late = lacks(Stage::Numbers, [yes, yes])?;
        let later = lacks(Stage::Numbers, [no, yes])?;
        assert!(late.is_closer(&early) && !early.is_closer(&late));
        assert!(later.is_closer(&late) && !late.is_closer(&late));
        let why = Refusal::new(Errno::ENODATA, c"this").value(1);
        assert_eq!(late.refusal(), why);
        Ok(())
    }
}
