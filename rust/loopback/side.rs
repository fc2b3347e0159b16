// SPDX-License-Identifier: GPL-2.0

//! One side of a connection, and its transfers.
//!
//! A work item of the side that has posted a transfer carries it out, in process context: it copies
//! the bytes. The item runs on the module's workqueue. A message waits until the peer has posted a receive for it.
//!
//! Lock order: the lock of a side is a leaf. It is taken with interrupts off. No ticket is ended
//! and no handler is called under it.

use crate::{
    pool::Fifo,
    *, //
};
use kernel::{
    impl_has_work,
    new_work,
    workqueue::{
        Work,
        WorkItem, //
    }, //
};
use kfabric::{
    provider::{
        cm::ConnEvents,
        ticket::{
            Failed,
            Received,
            Ticket, //
        }, //
    },
    workqueue::OwnedQueue, //
};

/// The peer of a side.
enum Link {
    /// Not connected.
    None,
    /// Connected to this side.
    To(Arc<Side>),
    /// Disconnected.
    Down,
}

/// The state of a side, under its lock.
struct State {
    link: Link,
    sends: Fifo<Kept>,
    receives: Fifo<Kept>,
    /// Number of transfers, its own or the peer's, that use items taken out of the queues.
    busy: usize,
}

/// One side of a connection.
#[pin_data]
pub(crate) struct Side {
    home: Arc<ExportedDomain>,
    endpoint: Arc<EpCore>,
    events: Arc<ConnEvents>,
    queue: Arc<OwnedQueue>,
    #[pin]
    state: IrqLock<State>,
    /// The pool of its receives, if it shares them.
    shared: SetOnce<Arc<Pool<Side>>>,
    /// Notified when `busy` has become 0.
    #[pin]
    idle: CondVar,
    #[pin]
    work: Work<Side>,
}

impl_has_work! {
    impl HasWork<Self> for Side { self.work }
}

/// The queues of a disconnected side, to be dropped outside of its lock.
struct Ended {
    _sends: Fifo<Kept>,
    _receives: Fifo<Kept>,
}

impl Side {
    /// Makes a side that is not connected, with space for `sizes` sends and receives. May sleep.
    pub(crate) fn new(
        home: Arc<ExportedDomain>,
        endpoint: Arc<EpCore>,
        events: Arc<ConnEvents>,
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

    /// Makes the side take its receives from a pool. Process context.
    pub(crate) fn share(self: &Arc<Self>, pool: &Arc<Pool<Self>>) -> Result<(), Refusal> {
        pool.join(self.clone())?;
        self.shared.populate(pool.clone());
        Ok(())
    }

    /// Wakes the peer: one of its messages may wait for the receive that has come. Any context.
    pub(crate) fn receive_came(&self) {
        if let Some(peer) = self.peer() {
            Self::kick(&peer);
        }
    }

    /// Returns the handler of connection events.
    pub(crate) fn events(&self) -> &ConnEvents {
        &self.events
    }

    /// Connects the side, unless it was shut down. Any context.
    pub(crate) fn link(&self, to: &Arc<Side>) -> bool {
        self.state.with(|state| match state.link {
            Link::None => {
                state.link = Link::To(to.clone());
                true
            }
            _ => false,
        })
    }

    /// Queues the work item that carries out transfers. Any context.
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

    /// Checks whether the side is disconnected. Any context.
    pub(crate) fn is_down(&self) -> bool {
        self.state.with(|state| matches!(state.link, Link::Down))
    }

    /// Returns the number of transfers and receives that there is space for. Any context.
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

    /// Disconnects this side and tells its handler. Cancels everything that waits. Returns the
    /// peer, if there was one. May sleep, but not for long.
    fn go_down(&self) -> Option<Arc<Side>> {
        let (link, ended) = self.state.with(|state| {
            // `end` waits until these have ended.
            state.busy += 1;
            let ended = Ended {
                _sends: state.sends.take(),
                _receives: state.receives.take(),
            };
            (mem::replace(&mut state.link, Link::Down), ended)
        });
        let peer = match link {
            Link::To(peer) => {
                // First, so that the handler posts nothing when it is told of the cancelled
                // requests.
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

    /// Shuts the connection down, and sleeps until everything that was posted here has ended.
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

    /// Counts one user of the queues less. Any context.
    fn done(&self) {
        self.state.with(|state| {
            state.busy -= 1;
            if state.busy == 0 {
                self.idle.notify_all();
            }
        });
    }

    /// Takes a receive for a message of the peer. Any context.
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

    /// Takes the first transfer, and a receive of the peer's if it needs one; `None` if either is
    /// missing. Any context.
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
            // The side was disconnected meanwhile, and so was the peer. The receive ends by being
            // dropped.
            drop(receive);
            peer.done();
            return None;
        }
        sending.map(|sending| (sending, receive))
    }
}

impl WorkItem for Side {
    type Pointer = Arc<Self>;

    /// Carries out transfers until one has to wait. May sleep, but not for long.
    fn run(this: Arc<Self>) {
        let _noio = NoIo::enter();
        let Some(peer) = this.peer() else {
            return;
        };
        while let Some((sending, receive)) = this.next(&peer) {
            let (call, takes) = (sending.op().name(), receive.is_some());
            let done = this.transfer(&peer, sending, receive);
            if takes {
                peer.done();
            }
            this.done();
            if let Err(refusal) = done {
                refusal.report(call);
                // A failed queue pair disconnects, too.
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

    /// Does an atomic operation on eight bytes of the peer's memory; this side gets their old
    /// value.
    fn atomic(&self, peer: &Side, sending: &Kept, what: AtomicOp) -> Result<(), Refusal> {
        let (target, initiator) = (peer.target(), self.initiator());
        let before = target.atomic(&initiator, only(sending)?, what)?;
        sending.write_from(&before.to_ne_bytes());
        Ok(())
    }

    /// Returns this side as the target of the peer's accesses.
    fn target(&self) -> Target<'_> {
        Target {
            home: &self.home,
            endpoint: Some(self.endpoint.clone()),
        }
    }

    /// Returns this side as the initiator of accesses.
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

/// Returns the only piece of the peer's memory.
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

/// Copies a message to the peer's receive, which completes with `with`.
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

/// Keeps a transfer, which the processor carries out. Any context.
///
/// # Errors
///
/// - `EINVAL`: its memory is given by the descriptor of a region.
pub(crate) fn taken(post: Post<'_>) -> Result<Kept, PostRefusal> {
    post.keep().map_err(|post| {
        let region = Refusal::new(Errno::EINVAL, c"memory by a descriptor");
        post.refuse(region)
    })
}

kernel::sync::global_lock! {
    // SAFETY: The module first calls `TransferQueue::new`, which initializes the lock.
    unsafe(uninit) static QUEUE: Mutex<Option<Arc<OwnedQueue>>> = None;
}

/// Maximum number of endpoints that transfer at a time. Each keeps a CPU busy.
const AT_ONCE: u8 = 16;

/// The module's workqueue, there from module init to exit.
pub(crate) struct TransferQueue;

impl TransferQueue {
    /// Allocates the workqueue. May sleep.
    ///
    /// # Safety
    ///
    /// The caller must call this once, before an endpoint is opened.
    pub(crate) unsafe fn new() -> Result<Self> {
        // SAFETY: The caller promises that this is the only call, and the first use of the lock.
        unsafe { QUEUE.init() };
        *QUEUE.lock() = Some(Arc::new(
            OwnedQueue::new(c"kfi_loop", AT_ONCE)?,
            GFP_KERNEL,
        )?);
        Ok(Self)
    }
}

impl Drop for TransferQueue {
    fn drop(&mut self) {
        // A static is never dropped.
        let queue = QUEUE.lock().take();
        if let Some(queue) = queue {
            // A queued item holds a reference to the queue, and would destroy it from within.
            queue.flush();
        }
    }
}

/// Returns the workqueue while it exists. May sleep.
pub(crate) fn queue() -> Option<Arc<OwnedQueue>> {
    QUEUE.lock().clone()
}
