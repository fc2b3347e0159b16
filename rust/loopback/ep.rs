// SPDX-License-Identifier: GPL-2.0

//! Connected endpoints, and the receive contexts that they share.

use crate::{
    listener::{
        self,
        Requester, //
    },
    side::{
        self,
        taken, //
    },
    *, //
};
use core::net::{
    IpAddr,
    Ipv4Addr, //
};
use kfabric::{
    provider::{
        self,
        cm::Bounds,
        cq::Delivery, //
    },
    LocalRules,
    MappedAs,
    MAX_INJECT,
    MAX_REMOTE, //
};

/// The limits of endpoints.
pub(crate) const LIMITS: MsgLimits = MsgLimits {
    local: LocalRules {
        by_region: false,
        mapped: MappedAs::Physical,
        peer_to_peer: false,
        segments: 16,
        pieces: 16,
        bytes: 1 << 30,
    },
    remote_pieces: MAX_REMOTE,
    atomics: Atomics {
        write: true,
        add: true,
        compare_swap: true,
    },
    tx_size: 1024,
    rx_size: 1024,
    shared_size: 1024,
    inject_size: MAX_INJECT,
    cq_data_size: size_of::<u32>(),
    // The sizes of verbs, so that a consumer developed here works there.
    cm_data_size: [56, 196, 148],
    // The peer is in the same machine.
    bounded: false,
};

/// An endpoint.
pub(crate) struct Ep {
    side: Arc<Side>,
    source: Option<SocketAddr>,
    peer: SetOnce<SocketAddr>,
    /// The connection request that the endpoint is to answer.
    answers: Pin<KBox<Mutex<Option<ConnRequest>>>>,
}

/// The failure of a connection whose one side was shut down.
const RESET: ConnFailed = ConnFailed {
    errno: Errno::ECONNRESET,
    prov_errno: -Errno::ECONNRESET.to_c(),
};

/// The source address of an endpoint that has asked for none.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

impl Ep {
    /// Makes an endpoint of a domain. May sleep.
    pub(crate) fn new(home: Arc<ExportedDomain>, asked: MsgEpRequest) -> Result<Self, Refusal> {
        let gone = Refusal::new(Errno::ENODEV, c"the provider is being unloaded");
        let queue = side::queue().ok_or(gone)?;
        let sizes = (asked.tx_size, asked.rx_size);
        let side = Side::new(home, asked.endpoint, asked.events, queue, sizes)?;
        let mut answers = asked.answers;
        let source = match &mut answers {
            Some(request) => {
                request.own::<Requester>()?;
                Some(request.local)
            }
            None => asked.source,
        };
        Ok(Self {
            side,
            source,
            peer: SetOnce::new(),
            answers: KBox::pin_init(new_mutex!(answers), GFP_KERNEL).map_err(|_| Errno::ENOMEM)?,
        })
    }
}

impl MsgEpOps for Ep {
    fn share(&self, context: &dyn provider::msg_ep::Srx) -> Result<(), Refusal> {
        let other = Refusal::new(Errno::EINVAL, c"a context of another provider");
        let context = context.as_any().downcast_ref::<Srx>().ok_or(other)?;
        self.side.share(context.pool())
    }

    fn enable(&self, _transmit: Delivery, _receive: Delivery) -> Result<(), Refusal> {
        Ok(())
    }

    fn connect(&self, peer: SocketAddr, data: &[u8], _bounds: &Bounds) -> Result<(), Refusal> {
        let source = self.source.unwrap_or(NOWHERE);
        let request = Requester::request(self.side.clone(), source, peer, data)?;
        self.peer.populate(peer);
        // A request that is dropped without an answer is rejected.
        match listener::find(&peer) {
            Some(incoming) => drop(incoming.request(request)),
            None => drop(request),
        }
        Ok(())
    }

    fn accept(&self, data: &[u8], _bounds: &Bounds) -> Result<(), Refusal> {
        let none = Refusal::new(Errno::EOPBADSTATE, c"made to answer no request");
        let mut request = self.answers.lock().take().ok_or(none)?;
        self.peer.populate(request.peer);
        let from = request.own::<Requester>()?.take().ok_or(none)?;
        match from.link(&self.side) && self.side.link(&from) {
            true => {
                self.side.events().connected(&[]);
                from.events().connected(data);
            }
            // Either side may have been shut down. Both are told, whichever it was.
            false => {
                for side in [&self.side, &from] {
                    side.events().failed(RESET, &[]);
                    side.shut_down();
                }
            }
        }
        Ok(())
    }

    fn shutdown(&self) {
        self.side.shut_down();
    }

    fn name(&self) -> Option<SocketAddr> {
        self.source
    }

    fn peer(&self) -> Option<SocketAddr> {
        self.peer.as_ref().copied()
    }

    fn post(&self, post: Post<'_>) -> Result<(), PostRefusal> {
        let kept = taken(post)?;
        let full = Refusal::new(Errno::EAGAIN, c"the endpoint's queue is full");
        let over = Refusal::new(Errno::ENOTCONN, c"the connection has ended");
        let posted = match kept.op() {
            Op::Receive => self.side.receive(kept),
            _ => Side::send(&self.side, kept),
        };
        posted.map_err(|kept: Kept| {
            // A disconnected side has no queue.
            let why = if self.side.is_down() { over } else { full };
            let ticket = kept.into_ticket();
            PostRefusal::new(why, ticket)
        })
    }

    fn room(&self) -> QueueSpace {
        self.side.room()
    }

    fn cancel(&self, context: Context) -> Result<(), Refusal> {
        cancelled(self.side.cancel(context))
    }

    fn end(&self) {
        let unanswered = self.answers.lock().take();
        drop(unanswered);
        self.side.end();
    }
}

/// Returns the result of a call that cancels a receive.
fn cancelled(found: bool) -> Result<(), Refusal> {
    let none = Refusal::new(Errno::ENOENT, c"no such receive, or it has begun");
    found.then_some(()).ok_or(none)
}

/// A shared receive context.
pub(crate) struct Srx(Arc<Pool<Side>>);

impl Srx {
    /// Makes a context with space for `size` receives. May sleep.
    pub(crate) fn new(size: usize) -> Result<Self, Refusal> {
        Ok(Self(Pool::new(size)?))
    }

    /// Returns the receives of the context.
    pub(crate) fn pool(&self) -> &Arc<Pool<Side>> {
        &self.0
    }
}

impl provider::msg_ep::Srx for Srx {
    fn post(&self, post: Post<'_>) -> Result<(), PostRefusal> {
        let posted = self.0.post(taken(post)?, Side::receive_came);
        posted.map_err(|kept| {
            let why = Refusal::new(Errno::EAGAIN, c"the receive context is full");
            PostRefusal::new(why, kept.into_ticket())
        })
    }

    fn room(&self) -> usize {
        self.0.room()
    }

    fn cancel(&self, context: Context) -> Result<(), Refusal> {
        cancelled(self.0.cancel(context))
    }

    fn end(&self) {
        self.0.end();
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[kernel::macros::kunit_tests(kfi_loop_ep)]
mod tests {
    use super::*;
    use kfabric::provider::cm::ConnHandler;

    /// A handler that adds up the errors of failed connections.
    struct Failures(Arc<Atomic<i32>>);

    impl ConnHandler for Failures {
        fn connected(&self, _data: &[u8]) {}

        fn shut_down(&self) {}

        fn failed(&self, how: ConnFailed, _data: &[u8]) {
            self.0.fetch_add(how.errno.to_c(), Relaxed);
        }
    }

    /// Makes an endpoint, and the sum of its failures.
    fn endpoint(
        home: &Arc<ExportedDomain>,
        answers: Option<ConnRequest>,
    ) -> Result<(Ep, Arc<Atomic<i32>>)> {
        let failures = Arc::new(Atomic::new(0), GFP_KERNEL)?;
        let told = KBox::new(Failures(failures.clone()), GFP_KERNEL)?;
        let request = MsgEpRequest::of_kunit(told, answers)?;
        Ok((Ep::new(home.clone(), request)?, failures))
    }

    #[test]
    fn both_sides_hear_of_a_failed_accept() -> Result {
        let home = Arc::new(ExportedDomain::new(KVec::new(), false)?, GFP_KERNEL)?;
        let reset = Errno::ECONNRESET.to_c();
        for is_active_down in [false, true] {
            let (active, of_active) = endpoint(&home, None)?;
            let request = Requester::request(active.side.clone(), NOWHERE, NOWHERE, &[])?;
            let (passive, of_passive) = endpoint(&home, Some(request))?;
            match is_active_down {
                true => active.shutdown(),
                false => passive.shutdown(),
            }
            passive.accept(&[], &Bounds::default())?;
            assert_eq!(of_passive.load(Relaxed), reset);
            assert_eq!(of_active.load(Relaxed), reset);
            assert!(active.side.is_down() && passive.side.is_down());
            passive.end();
            active.end();
        }
        Ok(())
    }
}
