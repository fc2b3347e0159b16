// SPDX-License-Identifier: GPL-2.0

//! Several registrations of a provider, gathered to be waited for together.

use super::{
    mr::Keys,
    part::MrPart, //
};
use crate::{
    region::request::MrRequest,
    support::refusal::Refusal, //
};

/// Regions of a domain that aren't bound to anything, and are registered together
/// ([`Domain::gather`](super::Domain::gather)). No peer reaches any before [`register`](Self::register).
pub trait Gathering {
    /// The first half of one more registration, as [`Domain::create_mr`](super::Domain::create_mr). There is
    /// none after an error. May sleep.
    fn add(&mut self, request: &MrRequest<'_>) -> Result<(), Refusal>;

    /// The second half of all, as [`Mr::enable`](super::Mr::enable): `done` gets what has become of each, in their order. Called
    /// once, last. Sleeps until the device is done with all.
    ///
    /// After an error there is no such region. But `ENOTRECOVERABLE` says that the device won't let go of it.
    fn register(&mut self, done: &mut dyn FnMut(Registered));
}

/// What has become of a registration: a region, and how peers reach it.
pub type Registered = Result<(MrPart, Keys), Refusal>;
