// SPDX-License-Identifier: GPL-2.0

//! Registrations of a provider that wait for the device once.

use super::{
    mr::Keys,
    part::MrPart, //
};
use crate::{
    region::request::MrRequest,
    support::refusal::Refusal, //
};

/// Registrations in one domain that are bound to nothing and wait for the device once
/// ([`Domain::batch`](super::Domain::batch)). No peer reaches any before [`register`](Self::register).
pub trait MrBatch {
    /// Prepares one more registration, as [`Domain::create_mr`](super::Domain::create_mr). May sleep.
    ///
    /// # Errors
    ///
    /// The errors of `create_mr`. The batch is as before.
    fn prepare(&mut self, request: &MrRequest<'_>) -> Result<(), Refusal>;

    /// Registers all of them, as [`Domain::register_mr`](super::Domain::register_mr). `done` gets the result of each, in
    /// order. Called once, last. Sleeps until the device is done with all of them.
    fn register(&mut self, done: &mut dyn FnMut(Registered));
}

/// The result of a registration: a region, and how peers reach it.
pub type Registered = Result<(MrPart, Keys), Refusal>;
