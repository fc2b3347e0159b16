// SPDX-License-Identifier: GPL-2.0

//! One side of a connection: what is to be sent, where what comes goes, and doing it.
//!
//! Transfers are done by a work item of the side that has posted them, one after the other, in process
//! context; that is where the bytes are copied. A message that no receive is posted for waits for one.
//!
//! Lock order: the lock of a side is a leaf. It is taken with interrupts off; no ticket is ended and
//! nobody is told anything under it.
//!
//! Doing one transfer: copying its bytes, and telling how it ended.
//!
//! Taking what is posted.

use crate::{
    exported::ExportedDomain,
    fifo::Fifo,
    peer::{
        Initiator,
        Target, //
    },
    pool::Pool, //
};
use core::mem;
use kernel::{
    impl_has_work,
    new_condvar,
    new_work,
    prelude::*,
    sync::{
        Arc,
        CondVar,
        SetOnce, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};
use kfabric::{
    irqlock::IrqLock,
    new_irq_lock,
    provider::{
        cm::Events,
        cq::Context,
        kept::Kept,
        msg_ep::{
            Post,
            Refused,
            QueueSpace, //
        },
        ticket::{
            Failed,
            Received,
            Ticket, //
        }, //
    },
    workqueue::OwnedQueue,
    Access,
    AtomicOp,
    Endpoint,
    Errno,
    NoIo,
    Op,
    Refusal,
    RemotePiece, //
};

/// Whom a side is connected to.
enum Link {
    /// Nobody yet.
    None,
    /// This one.
    To(Arc<Side>),
    /// Nobody any more.
    Down,
}

/// What changes.
struct State {
    link: Link,
    sends: Fifo<Kept>,
    receives: Fifo<Kept>,
    /// How many transfers, its own or a peer's, are being done with what was taken out of it.
    busy: usize,
}

/// One side of a connection.
#[pin_data]
pub(crate) struct Side {
    home: Arc<ExportedDomain>,
    endpoint: Arc<Endpoint>,
    events: Arc<Events>,
    queue: Arc<OwnedQueue>,
    #[pin]
    state: IrqLock<State>,
    /// Where its receives come from, if it shares them.
    shared: SetOnce<Arc<Pool<Side>>>,
    /// Notified when nothing is being done any more.
    #[pin]
    idle: CondVar,
    #[pin]
    work: Work<Side>,
}

impl_has_work! {
    impl HasWork<Self> for Side { self.work }
}

/// What was taken out of a side that is down, to be ended outside of its lock.
struct Ended {
    _sends: Fifo<Kept>,
    _receives: Fifo<Kept>,
}

impl Side {
    /// A side that is connected to nobody, with room for so many sends and receives. May sleep.
    pub(crate) fn new(
        home: Arc<ExportedDomain>,
        endpoint: Arc<Endpoint>,
        events: Arc<Events>,
        queue: Arc<OwnedQueue>,
        sizes: (usize, usize),
    ) -> Result<Arc<Self>, Refusal> {
        let state = State {
            link: Link::None,
            sends: Fifo::new(sizes.0)?,
            receives: Fifo::new(sizes.1)?,
            busy: 0,
        };
        let side = pin_init!(Self {
            home,
            endpoint,
            events,
            queue,
            state <- new_irq_lock!(state, c"kfi_loop_side"),
            shared: SetOnce::new(),
            idle <- new_condvar!("kfi_loop_side"),
            work <- new_work!("kfi_loop_side"),
        });
        Arc::pin_init(side, GFP_KERNEL).map_err(|_| Errno::ENOMEM.into())
    }

    /// Has it take its receives from a pool. Process context.
    pub(crate) fn share(self: &Arc<Self>, pool: &Arc<Pool<Self>>) -> Result<(), Refusal> {
        pool.join(self.clone())?;
        self.shared.populate(pool.clone());
        Ok(())
    }

    /// A receive has come that a message of the peer's may have waited for. Any context.
    pub(crate) fn receive_came(&self) {
        if let Some(peer) = self.peer() {
            Self::kick(&peer);
        }
    }

    /// Who is told what becomes of the connection.
    pub(crate) fn events(&self) -> &Events {
        &self.events
    }

    /// Connects it, unless it was ended. Any context.
    pub(crate) fn link(&self, to: &Arc<Side>) -> bool {
        self.state.with(|state| match state.link {
            Link::None => {
                state.link = Link::To(to.clone());
                true
            }
            _ => false,
        })
    }

    /// Looks after what is to be sent. Any context.
    fn kick(this: &Arc<Self>) {
        // Work that is queued already has yet to run.
        let _ = this.queue.enqueue(this.clone());
    }

    fn peer(&self) -> Option<Arc<Side>> {
        self.state.with(|state| match &state.link {
            Link::To(peer) => Some(peer.clone()),
            _ => None,
        })
    }

    /// Was its connection taken down? Any context.
    pub(crate) fn is_down(&self) -> bool {
        self.state.with(|state| matches!(state.link, Link::Down))
    }

    /// How much more can be posted. Any context.
    pub(crate) fn room(&self) -> QueueSpace {
        self.state.with(|state| QueueSpace {
            sends: state.sends.room(),
            receives: state.receives.room(),
        })
    }

    /// Posts a receive; gives it back if there is no room. Any context.
    pub(crate) fn receive(&self, kept: Kept) -> Result<(), Kept> {
        self.state.with(|state| state.receives.push(kept))?;
        self.receive_came();
        Ok(())
    }

    /// Posts a transfer to the peer; gives it back if there is no room. Any context.
    pub(crate) fn send(this: &Arc<Self>, kept: Kept) -> Result<(), Kept> {
        this.state.with(|state| state.sends.push(kept))?;
        Self::kick(this);
        Ok(())
    }

    /// Ends a receive of this context that no message has come for. Any context.
    pub(crate) fn cancel(&self, context: Context) -> bool {
        let is = |kept: &Kept| kept.ticket().context() == context;
        let taken = self.state.with(|state| state.receives.take_if(is));
        // Ended by being dropped.
        taken.is_some()
    }

    /// Takes the connection down at this side, and tells if there was one. Everything that waits is
    /// cancelled. May sleep, but not for long.
    fn go_down(&self) -> Option<Arc<Side>> {
        let (link, ended) = self.state.with(|state| {
            // Who ends this side waits until these have ended.
            state.busy += 1;
            let ended = Ended {
                _sends: state.sends.take(),
                _receives: state.receives.take(),
            };
            (mem::replace(&mut state.link, Link::Down), ended)
        });
        let peer = match link {
            Link::To(peer) => {
                // First, so that nobody posts anything when it is told of the others.
                self.events.shut_down();
                Some(peer)
            }
            _ => None,
        };
        drop(ended);
        self.done();
        peer
    }

    /// Takes the connection down at both sides. May sleep, but not for long.
    pub(crate) fn shut_down(&self) {
        if let Some(peer) = self.go_down() {
            peer.go_down();
        }
    }

    /// As [`shut_down`](Self::shut_down), and sleeps until all that was posted here has ended.
    pub(crate) fn end(&self) {
        self.shut_down();
        self.state.with(|state| {
            while state.busy > 0 {
                self.idle.wait(state);
            }
        });
        if let Some(pool) = self.shared.as_ref() {
            pool.leave(self);
        }
    }

    /// It is done with something that was taken out. Any context.
    fn done(&self) {
        self.state.with(|state| {
            state.busy -= 1;
            if state.busy == 0 {
                self.idle.notify_all();
            }
        });
    }

    /// Takes a receive for a message of the peer's. Any context.
    fn take_receive(&self) -> Option<Kept> {
        let Some(pool) = self.shared.as_ref() else {
            return self.state.with(|state| {
                let kept = state.receives.pop()?;
                state.busy += 1;
                Some(kept)
            });
        };
        let is_down = self.state.with(|state| {
            state.busy += 1;
            matches!(state.link, Link::Down)
        });
        let kept = (!is_down).then(|| pool.take(self)).flatten();
        if kept.is_none() {
            self.done();
        }
        kept
    }

    /// Takes the first that is to be sent, with a receive of the peer's if it takes one; none if there
    /// is none. Any context.
    fn next(&self, peer: &Side) -> Option<(Kept, Option<Kept>)> {
        let takes = |sending: &Kept| {
            let op = sending.op();
            matches!(op, Op::Send { .. } | Op::Write { data: Some(_), .. })
        };
        let first = self.state.with(|state| state.sends.first().map(takes))?;
        let receive = match first {
            true => Some(peer.take_receive()?),
            false => None,
        };
        let sending = self.state.with(|state| {
            let sending = state.sends.pop()?;
            state.busy += 1;
            Some(sending)
        });
        if sending.is_none() && receive.is_some() {
            // It went down meanwhile; so does the peer, whose receive, begun by that, ends by being dropped.
            drop(receive);
            peer.done();
            return None;
        }
        sending.map(|sending| (sending, receive))
    }
}

impl WorkItem for Side {
    type Pointer = Arc<Self>;

    /// Does what is to be sent, as far as that goes. May sleep, but not for long.
    fn run(this: Arc<Self>) {
        let _noio = NoIo::enter();
        let Some(peer) = this.peer() else {
            return;
        };
        while let Some((sending, receive)) = this.next(&peer) {
            let takes = receive.is_some();
            let done = this.transfer(&peer, sending, receive);
            if takes {
                peer.done();
            }
            this.done();
            if let Err(refusal) = done {
                refusal.report();
                // As a queue pair does that has failed.
                this.shut_down();
            }
        }
    }
}

impl Side {
    /// Does one transfer. May sleep.
    fn transfer(&self, peer: &Side, sending: Kept, receive: Option<Kept>) -> Result<(), Refusal> {
        let bytes = usize::try_from(sending.bytes()).unwrap_or(usize::MAX);
        match (*sending.op(), receive) {
            (Op::Send { data, invalidates }, Some(receive)) => {
                if let Some(key) = invalidates {
                    let done = peer.target().invalidate(&self.initiator(), key);
                    if done.is_err() {
                        return end(sending.into_ticket(), done);
                    }
                }
                let tail = Received {
                    data,
                    invalidated: invalidates,
                    ..Received::default()
                };
                send(sending, receive, tail)
            }
            (Op::Read, None) => {
                let done = self.access(peer, &sending);
                end(sending.into_ticket(), done)
            }
            (Op::Write { data }, receive) => {
                let done = self.access(peer, &sending);
                if let (Some(receive), Some(data)) = (receive, data) {
                    let ticket = receive.into_ticket();
                    match done {
                        Ok(()) => ticket.written(bytes, data),
                        Err(_) => drop(ticket),
                    }
                }
                end(sending.into_ticket(), done)
            }
            (Op::Atomic { what, .. }, None) => {
                let done = self.atomic(peer, &sending, what);
                end(sending.into_ticket(), done)
            }
            _ => Err(Errno::EIO.into()),
        }
    }

    /// Does something with eight bytes of the peer's memory; this side gets what they were.
    fn atomic(&self, peer: &Side, sending: &Kept, what: AtomicOp) -> Result<(), Refusal> {
        let (target, initiator) = (peer.target(), self.initiator());
        let before = target.atomic(&initiator, only(sending)?, what)?;
        sending.write_from(&before.to_ne_bytes());
        Ok(())
    }

    /// As where a peer's accesses go to.
    fn target(&self) -> Target<'_> {
        Target {
            home: &self.home,
            endpoint: Some(self.endpoint.clone()),
        }
    }

    /// As whose accesses they are.
    fn initiator(&self) -> Initiator<'_> {
        Initiator {
            home: Some(&self.home),
            endpoint: Some(self.endpoint.clone()),
            mapped: None,
        }
    }

    /// Copies to the peer's memory, or from it.
    fn access(&self, peer: &Side, sending: &Kept) -> Result<(), Refusal> {
        let (target, initiator) = (peer.target(), self.initiator());
        let pieces = sending.remote().pieces();
        let needs = match sending.op() {
            Op::Read => Access::REMOTE_READ,
            _ => Access::REMOTE_WRITE,
        };
        target.access_whole(&initiator, pieces, needs, sending.transfers())
    }
}

/// The piece of the peer's memory, which is one.
fn only(sending: &Kept) -> Result<RemotePiece, Refusal> {
    let piece = sending.remote().pieces().first();
    Ok(*piece.ok_or(Errno::EIO)?)
}

/// Ends an access.
fn end(ticket: Ticket, done: Result<(), Refusal>) -> Result<(), Refusal> {
    match done {
        Ok(()) => ticket.complete(),
        Err(refusal) => ticket.fail(refusal.errno().into()),
    }
    done
}

/// Copies a message to where the peer wants it, who gets what comes `with` it.
fn send(sending: Kept, receive: Kept, with: Received) -> Result<(), Refusal> {
    let bytes = sending.bytes();
    let room = receive.bytes();
    if bytes > room {
        let excess = usize::try_from(bytes - room).unwrap_or(usize::MAX);
        let failed = Failed {
            excess,
            ..Errno::ETRUNC.into()
        };
        receive.into_ticket().fail(failed);
        sending.into_ticket().fail(Errno::EREMOTEIO.into());
        let refusal = Refusal::new(Errno::ETRUNC, c"a message longer than the buffer for it");
        return Err(refusal.value(bytes));
    }
    sending.copy_to(&receive);
    let len = usize::try_from(bytes).unwrap_or(usize::MAX);
    receive.into_ticket().received(Received { len, ..with });
    sending.into_ticket().complete();
    Ok(())
}

/// Takes a transfer, which is to be done by the processor. Any context.
///
/// # Errors
///
/// - `EINVAL`: its memory goes by a region's descriptor.
pub(crate) fn taken(post: Post<'_>) -> Result<Kept, Refused> {
    post.keep().map_err(|post| {
        let region = Refusal::new(Errno::EINVAL, c"memory by a descriptor");
        post.refuse(region)
    })
}
