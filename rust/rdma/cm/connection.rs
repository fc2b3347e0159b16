// SPDX-License-Identifier: GPL-2.0

//! Connections.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use core::net::SocketAddr;

use super::{
    data,
    endpoint::Endpoint,
    event::{
        Events,
        Step, //
    },
    id::{
        Id,
        Target, //
    },
    line::Line,
    locked::Locked,
    patience::Patience,
    terms::Terms, //
};

/// What is proposed to a peer, or agreed to.
#[derive(Clone, Copy, Debug)]
pub struct Proposal<'a> {
    /// How the connection is to be; no more of it is asked for than the device can do, or the peer
    /// wants.
    pub terms: Terms,
    /// What the peer is told: no more than [`REQUEST`](data::REQUEST) or
    /// [`ACCEPTANCE`](data::ACCEPTANCE) bytes.
    pub private_data: &'a [u8],
    /// How long to try until it is there, in milliseconds. The connection manager itself gives up
    /// after 74 seconds.
    pub limit: u32,
    /// How long send requests may be under way on the connection without one of them ending, in
    /// milliseconds, or half of that longer; 0 is for ever.
    pub stall: u32,
}

/// A connection of an [`Endpoint`], from when it is begun.
///
/// Dropping it ends it without a word to its [`Events`]: what is posted gets flushed, the peer is
/// told. That sleeps until an event that is being told has been, so it must not be done there.
/// [`Connection::close`] waits for what was posted, too.
///
/// # What goes first
///
/// See to it that nobody posts any more; close the connection; drop the endpoint; drop its
/// completion queues. When the device goes all that has to be done in [`Client::remove`]: the
/// connection manager's own removal, which comes after that of its users, waits for all
/// connections, without a bound and without a word.
///
/// [`Client::remove`]: crate::client::Client::remove
///
/// # Examples
///
/// ```ignore
/// let endpoint = Endpoint::new(qp)?;
/// let proposal = Proposal {
///     terms: Terms::default(),
///     private_data: b"hello",
///     limit: 10_000,
///     stall: 60_000,
/// };
/// let connection = Connection::open(&endpoint, None, peer, &proposal, events)?;
/// ... // `events` are told that it is there
/// endpoint.post(request)?;
/// ...
/// connection.close(10);
/// ```
pub struct Connection {
    id: Id<Line>,
}

impl Connection {
    /// Begins to connect an endpoint to an address, from an own one if that is given. May sleep,
    /// but doesn't wait: `events` are told.
    ///
    /// # Errors
    ///
    /// After one the endpoint is of no more use, unless it is one of the first two.
    ///
    /// - `EBUSY` if the endpoint is or was another connection's.
    /// - `EINVAL` if there are too much private data.
    /// - What the connection manager says, of an address that there can't be for instance.
    pub fn open(
        endpoint: &Arc<Endpoint>,
        from: Option<SocketAddr>,
        to: SocketAddr,
        proposal: &Proposal<'_>,
        events: Arc<dyn Events>,
    ) -> Result<Self> {
        let line = line(endpoint, proposal, data::REQUEST, events, Step::Address)?;
        let this = Self {
            id: Id::new(line.clone())?,
        };
        line.begin(&this.id);
        // The first event may come at once.
        this.id.resolve(from, to, proposal.limit)?;
        Ok(this)
    }

    /// Begins to connect an identifier whose address is resolved.
    pub(super) fn request<T: Target>(
        id: Id<T>,
        endpoint: &Arc<Endpoint>,
        proposal: &Proposal<'_>,
        events: Arc<dyn Events>,
    ) -> Result<Self> {
        let line = line(endpoint, proposal, data::REQUEST, events, Step::Route)?;
        Self::with(id, line, |line, locked| line.resolve_route(locked))
    }

    /// Goes on with an identifier that is not new, as `first` does.
    pub(super) fn with<T: Target>(
        id: Id<T>,
        line: Arc<Line>,
        first: impl FnOnce(&Line, &Locked<'_>) -> Result,
    ) -> Result<Self> {
        let (id, begun) = id.retarget(line, |id, locked| {
            let line = id.target();
            line.begin(id);
            first(line, locked)
        });
        let this = Self { id };
        begun.map(|()| this)
    }

    /// The endpoint.
    pub fn endpoint(&self) -> &Arc<Endpoint> {
        self.id.target().endpoint()
    }

    /// The address on this side, once there is one. Any context.
    pub fn local(&self) -> Option<SocketAddr> {
        self.id.local()
    }

    /// The peer's address. Any context.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.id.peer()
    }

    /// Where it is just now. Any context.
    pub fn step(&self) -> Step {
        self.id.target().step()
    }

    /// Disconnects: what is posted gets flushed, and the peer is told. May sleep, but doesn't wait
    /// for the peer: [`Event::Disconnected`](super::Event::Disconnected) comes when it agrees, or
    /// after more than a minute if it doesn't answer.
    pub fn disconnect(&self) {
        self.id.target().disconnect(&self.id.lock());
    }

    /// Disconnects in so many milliseconds, unless the peer does before. May sleep, but doesn't wait.
    pub fn disconnect_later(&self, ms: u32) {
        self.id.target().doom(&self.id.lock(), ms);
    }

    /// Ends it, waits until all requests have ended, as [`Endpoint::drain`] does, and returns whether they have.
    /// Nobody may post any more.
    pub fn close(self, limit: u32) -> bool {
        let endpoint = self.endpoint().clone();
        self.id.target().leave(&self.id);
        let drained = endpoint.drain(limit);
        drop(self);
        drained
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Before the identifier goes.
        self.id.target().leave(&self.id);
    }
}

/// A connection of an endpoint, which becomes its, with so much private data at most.
pub(super) fn line(
    endpoint: &Arc<Endpoint>,
    proposal: &Proposal<'_>,
    most: usize,
    events: Arc<dyn Events>,
    step: Step,
) -> Result<Arc<Line>> {
    data::checked_len(proposal.private_data, most)?;
    let mut request = KVec::with_capacity(proposal.private_data.len(), GFP_KERNEL)?;
    request.extend_from_slice(proposal.private_data, GFP_KERNEL)?;
    let terms = proposal.terms.on(endpoint.device());
    let line = Line::new(
        endpoint.clone(),
        terms,
        request,
        (proposal.limit, Patience::new(proposal.stall)),
        events,
        step,
    )?;
    endpoint.take()?;
    Ok(line)
}
