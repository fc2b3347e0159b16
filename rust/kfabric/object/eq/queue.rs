// SPDX-License-Identifier: GPL-2.0

//! The queue of an event queue object: its entries, readers, writers and handler.
//!
//! Lock order: the lock of the queue is taken with interrupts off. Only locks of wait queues and workqueues are
//! inside of it. No handler runs and no code sleeps under the lock.

use crate::object::{
    eq::ring::{
        EqEvent,
        EqFailure,
        EqPosition,
        EqRing,
        PeerData, //
    },
    info::InfoChain,
    prelude::*,
    queues::{
        Handler,
        ReadResult, //
    }, //
};
use kernel::bindings;

/// The position of an event that the core may remove before it is read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unread {
    Event(EqPosition),
    Failure(EqPosition),
}

/// The events and the handler of an event queue. Bound objects and the handler's work item keep references, so
/// the queue may outlive its object.
#[pin_data]
pub(crate) struct EqCore {
    #[pin]
    pub(super) state: IrqLock<EqState>,
    /// Notified when the queue becomes readable.
    #[pin]
    pub(super) readable: CondVar,
    handler: Option<Handler<kfid_eq>>,
    #[pin]
    work: Work<EqCore>,
}

/// The state under the lock of a queue.
pub(super) struct EqState {
    pub(super) events: EqRing<EqEvent>,
    pub(super) failures: EqRing<EqFailure>,
    /// The data of the error event that was read last. The reader may access it until the next one is read.
    pub(super) shown: PeerData,
    handler: HandlerState,
    /// The address of the task that runs the handler, or 0.
    running: usize,
}

/// The state of a handler.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HandlerState {
    /// The next event calls the handler.
    Armed,
    /// The work item that calls the handler is queued.
    Due,
    /// The handler was called, and no reader has found the queue empty since then.
    Called,
    /// The queue is closed: it takes no events and never calls the handler again.
    Closed,
}

impl_has_work! {
    impl HasWork<Self> for EqCore { self.work }
}

impl EqCore {
    /// Creates a queue of `size` events and `size` error events. May sleep.
    pub(super) fn new(
        size: usize,
        handler: Option<Handler<kfid_eq>>,
    ) -> Result<Arc<Self>, Refusal> {
        let state = EqState {
            events: EqRing::new(size)?,
            failures: EqRing::new(size)?,
            shown: None,
            handler: HandlerState::Armed,
            running: 0,
        };
        let queue = pin_init!(Self {
            state <- new_irq_lock!(state, c"kfi_eq"),
            readable <- new_condvar!("kfi_eq"),
            handler,
            work <- new_work!("kfi_eq"),
        });
        Arc::pin_init(queue, GFP_KERNEL).map_err(|_| Refusal::from(Errno::ENOMEM))
    }

    /// Calls `put` to write an event, and wakes readers and the handler if it returns true. Returns `None` if the
    /// queue is closed.
    ///
    /// All of this happens under the lock, because a reader may close the queue as soon as the lock is free.
    fn put<R>(this: &Arc<Self>, put: impl FnOnce(&mut EqState) -> (R, bool)) -> Option<R> {
        this.state.with(|state| {
            if state.handler == HandlerState::Closed {
                return None;
            }
            let (result, came) = put(state);
            if !came {
                return Some(result);
            }
            let call = this.handler.is_some() && state.handler == HandlerState::Armed;
            if call {
                state.handler = HandlerState::Due;
            }
            this.readable.notify_all();
            if let Some(handlers) = workqueue::HANDLERS.get().filter(|_| call) {
                // A queued work item has not run yet, and will see the state.
                let _ = handlers.enqueue(this.clone());
            }
            Some(result)
        })
    }

    /// Writes an event. If the queue is full, the event is lost and the reader gets `EOVERRUN`. A closed queue
    /// drops the event. Any context.
    pub(super) fn push(this: &Arc<Self>, event: EqEvent) -> Option<Unread> {
        Self::put(this, |state| {
            (state.events.push(event).map(Unread::Event), true)
        })
        .flatten()
    }

    /// Writes an event. Returns false if the queue is full or closed. Any context.
    pub(super) fn try_push(this: &Arc<Self>, event: EqEvent) -> bool {
        let put = Self::put(this, |state| {
            let room = state.events.try_push(event).is_some();
            (room, room)
        });
        put.unwrap_or(false)
    }

    /// Writes an error event. If the queue is full, the event is lost and the reader gets `EOVERRUN`. A closed
    /// queue drops the event. Any context.
    pub(super) fn push_failure(this: &Arc<Self>, failure: EqFailure) -> Option<Unread> {
        Self::put(this, |state| {
            (state.failures.push(failure).map(Unread::Failure), true)
        })
        .flatten()
    }

    /// Writes an event of the core about `fid`, as [`push`](Self::push) does. Any context.
    pub(crate) fn complete(
        self: &Arc<Self>,
        event: u32,
        fid: *mut kfid,
        context: *mut c_void,
        data: u64,
    ) -> Option<Unread> {
        Self::push(self, EqEvent::new(event, fid, context, data))
    }

    /// Writes an error event about `fid`, as [`push_failure`](Self::push_failure) does. `err` and `prov_errno` of the
    /// entry are the positive errno. Any context.
    pub(crate) fn fail(
        self: &Arc<Self>,
        fid: *mut kfid,
        context: *mut c_void,
        refusal: Refusal,
    ) -> Option<Unread> {
        let errno = -refusal.errno().to_c();
        let failure = EqFailure {
            fid,
            context,
            errno,
            prov_errno: errno,
            data: None,
        };
        Self::push_failure(self, failure)
    }

    /// Returns a writer of events about one object. The writer may outlive the object.
    pub(crate) fn writer(self: &Arc<Self>, fid: *mut kfid, context: *mut c_void) -> Writer {
        Writer {
            queue: self.clone(),
            fid,
            context,
        }
    }

    /// Removes an event, unless a reader has it. Any context.
    pub(crate) fn forget(&self, unread: Unread) {
        self.state.with(|state| match unread {
            Unread::Event(place) => state.events.remove(place),
            Unread::Failure(place) => state.failures.remove(place),
        });
    }

    /// Removes all unread events about an object. Any context.
    pub(crate) fn forget_all(&self, fid: *mut kfid) {
        self.state.with(|state| {
            state.events.remove_if(|event| event.is_about(fid));
            state
                .failures
                .remove_if(|failure| ptr::eq(failure.fid, fid));
        });
    }

    /// Returns whether the calling task runs the handler. Process context.
    pub(crate) fn in_handler(&self) -> bool {
        self.state.with(|state| state.running == task::current())
    }

    /// Returns whether the queue is open. Any context.
    pub(crate) fn is_open(&self) -> bool {
        self.state
            .with(|state| state.handler != HandlerState::Closed)
    }

    /// Closes the queue, and returns the unread events. The handler doesn't run after the return. Sleeps. The
    /// handler must not call this.
    pub(super) fn close(&self) -> EqRing<EqEvent> {
        let (events, failures, shown) = self.state.with(|state| {
            state.handler = HandlerState::Closed;
            (
                mem::replace(&mut state.events, EqRing::without_room()),
                mem::replace(&mut state.failures, EqRing::without_room()),
                state.shown.take(),
            )
        });
        // Free the memory with interrupts on.
        drop((failures, shown));
        // SAFETY: `self.work` is initialized, and `self` keeps it.
        unsafe { bindings::flush_work(Work::raw_get(&raw const self.work)) };
        events
    }
}

impl WorkItem for EqCore {
    type Pointer = Arc<Self>;

    /// Calls the handler. Process context; sleeps if the handler does.
    fn run(this: Arc<Self>) {
        let Some(handler) = &this.handler else {
            return;
        };
        // Writeback may wait for the handler, so its allocations must not wait for writeback.
        let _noio = NoIo::enter();
        let due = this.state.with(|state| {
            let due = state.handler == HandlerState::Due;
            if due {
                state.handler = HandlerState::Called;
                state.running = task::current();
            }
            due
        });
        if !due {
            return;
        }
        // SAFETY: The handler was due under the lock, so the queue was open, and `close` waits for this work.
        unsafe { handler.call() };
        this.state.with(|state| state.running = 0);
    }
}

impl EqState {
    /// Arms the handler, because a reader found the queue empty.
    pub(super) fn found_empty(&mut self) {
        if self.handler == HandlerState::Called {
            self.handler = HandlerState::Armed;
        }
    }
}

impl EqCore {
    /// Passes the next event to `out`, which returns its length. Removes the event if `out`
    /// succeeds and `peek` is false. Any context. The other results are:
    ///
    /// - `EAGAIN`: the queue is empty.
    /// - `EAVAIL`: the reader must read an error event first.
    /// - `EOVERRUN`: events were lost at this position.
    ///
    /// # Errors
    ///
    /// - The errors of `out`.
    pub(super) fn read(
        &self,
        peek: bool,
        out: impl FnOnce(&EqEvent) -> Result<usize, Refusal>,
    ) -> Result<ReadResult, Refusal> {
        self.state.with(|state| {
            let read = state.read(peek, out);
            if matches!(read, Ok(Err(Errno::EAGAIN))) {
                state.found_empty();
            }
            read
        })
    }

    /// Waits for an event and [reads](Self::read) it. `left` is the timeout, if there is one. The
    /// result is `EINTR` if the queue is empty and a signal has ended the wait. Sleeps.
    pub(super) fn wait_and_read(
        &self,
        peek: bool,
        mut left: Option<Jiffies>,
        mut out: impl FnMut(&EqEvent) -> Result<usize, Refusal>,
    ) -> Result<ReadResult, Refusal> {
        self.state.with(|state| {
            let mut signal = false;
            loop {
                match state.read(peek, &mut out)? {
                    Err(Errno::EAGAIN) if signal => return Ok(Err(Errno::EINTR)),
                    Err(Errno::EAGAIN) if left == Some(0) => {
                        state.found_empty();
                        return Ok(Err(Errno::EAGAIN));
                    }
                    Err(Errno::EAGAIN) => {
                        signal = irqlock::wait(&self.readable, state, &mut left);
                    }
                    read => return Ok(read),
                }
            }
        })
    }

    /// Returns the next error event, and removes it unless `peek` is true. Any context.
    ///
    /// # Errors
    ///
    /// The errors of [`EqRing::first`].
    pub(super) fn read_failure(&self, peek: bool) -> Result<EqFailure, Errno> {
        self.state.with(|state| {
            let read = state.failures.first().cloned();
            if let Ok(failure) = &read {
                // The reader may access the data until the next error event is read.
                state.shown.clone_from(&failure.data);
            }
            if !peek {
                state.failures.advance();
            }
            read
        })
    }
}

impl EqState {
    /// Reads an event as [`EqCore::read`] does, but doesn't arm the handler.
    fn read(
        &mut self,
        peek: bool,
        out: impl FnOnce(&EqEvent) -> Result<usize, Refusal>,
    ) -> Result<ReadResult, Refusal> {
        if !self.failures.is_empty() {
            return Ok(Err(Errno::EAVAIL));
        }
        let read = match self.events.first() {
            Ok(event) => Ok(out(event)?),
            Err(errno) => Err(errno),
        };
        if !peek {
            if let Some(event) = self.events.advance() {
                event.given();
            }
        }
        Ok(read)
    }
}

/// A writer of events about the connections of one object. It may outlive the object: it keeps only its address.
pub(crate) struct Writer {
    queue: Arc<EqCore>,
    fid: *mut kfid,
    context: *mut c_void,
}

// SAFETY: The pointers are passed to the reader, and never dereferenced here. `Arc<EqCore>` is `Send`.
unsafe impl Send for Writer {}
// SAFETY: The pointers are passed to the reader, and never dereferenced here. `Arc<EqCore>` is `Sync`.
unsafe impl Sync for Writer {}

impl Writer {
    /// Returns the address of the object.
    pub(crate) fn fid(&self) -> *mut kfid {
        self.fid
    }

    /// Writes an event about a connection, with the peer's data. A connection request has an info for the
    /// reader. If the queue is full, the event is lost and the reader gets `-KFI_EOVERRUN`. May sleep.
    pub(crate) fn connection(&self, number: u32, info: InfoChain, data: &[u8]) {
        let event = EqEvent::connection(number, self.fid, info, copy(data));
        EqCore::push(&self.queue, event);
    }

    /// Writes an event about a connection. If the queue is full, frees the info and returns false. May sleep.
    pub(crate) fn try_connection(&self, number: u32, info: InfoChain, data: &[u8]) -> bool {
        let event = EqEvent::connection(number, self.fid, info, copy(data));
        EqCore::try_push(&self.queue, event)
    }

    /// Writes that connecting failed, with the peer's data. If the queue is full, the event is lost and the reader
    /// gets `-KFI_EOVERRUN`. May sleep.
    pub(crate) fn fail(&self, errno: Errno, prov_errno: c_int, data: &[u8]) {
        let failure = EqFailure {
            fid: self.fid,
            context: self.context,
            errno: -errno.to_c(),
            prov_errno,
            data: copy(data),
        };
        EqCore::push_failure(&self.queue, failure);
    }
}

/// Returns a copy of a peer's data. Returns `None` if it is empty or there is no memory. May sleep.
fn copy(data: &[u8]) -> PeerData {
    if data.is_empty() {
        return None;
    }
    let mut copy = KVec::new();
    copy.extend_from_slice(data, GFP_KERNEL).ok()?;
    Arc::new(copy, GFP_KERNEL).ok()
}
