// SPDX-License-Identifier: GPL-2.0

//! Passive endpoints of a provider.

use super::cm::{
    ConnRequest,
    Incoming, //
};
use crate::support::refusal::Refusal;
use core::net::SocketAddr;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// A passive endpoint: created, made to listen once, then dropped, whereupon nobody is told of a
/// request any more. Dropping it sleeps.
pub trait Pep: Send + Sync {
    /// Begins to listen at an address, which gets a port if it has none, and returns it; at most
    /// `backlog` requests wait for an answer. May sleep.
    ///
    /// # Errors
    ///
    /// - `EADDRINUSE`: somebody else listens there.
    /// - `EADDRNOTAVAIL`: that is no address of this machine.
    fn listen(
        &self,
        address: SocketAddr,
        backlog: u32,
        incoming: Arc<Incoming>,
    ) -> Result<SocketAddr, Refusal>;

    /// Rejects a request; the peer gets `data`. May sleep.
    ///
    /// # Errors
    ///
    /// It is over even so.
    ///
    /// - `ENOMEM`: the peer can't be told, and may ask again.
    fn reject(&self, request: KBox<dyn ConnRequest>, data: &[u8]) -> Result<(), Refusal>;
}
