// SPDX-License-Identifier: GPL-2.0

//! One side of a connection: what is to be sent, where what comes goes, and doing it.
//!
//! Transfers are done by a work item of the side that has posted them, one after the other, in process
//! context; that is where the bytes are copied. A message that no receive is posted for waits for one.
//!
//! Lock order: the lock of a side is a leaf. It is taken with interrupts off; no ticket is ended and
//! nobody is told anything under it.

mod transfer;

use crate::{
    fifo::Fifo,
    home::ExportedDomain,
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
        msg_ep::QueueSpace, //
    },
    workqueue::OwnedQueue,
    Endpoint,
    Errno,
    NoIo,
    Op,
    Refusal, //
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
