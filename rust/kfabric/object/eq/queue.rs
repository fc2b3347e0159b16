// SPDX-License-Identifier: GPL-2.0

//! What is behind an event queue: the entries, putting them in, and the handler.
//!
//! Lock order: the queue's lock is taken with interrupts off, and before those of wait queues and
//! workqueues only. Neither handlers nor anything that could sleep runs under it.

use super::{
    event::{
        Event,
        Failure,
        PeerData, //
    },
    ring::{
        Place,
        Ring, //
    }, //
};
use crate::{
    new_irq_lock,
    support::{
        errno::Errno,
        irqlock::IrqLock,
        refusal::Refusal,
        task::{
            self,
            NoIo, //
        },
        workqueue, //
    }, //
};
use core::{
    mem,
    ptr, //
};
use kernel::{
    bindings,
    ffi::c_void,
    impl_has_work,
    new_condvar,
    new_work,
    prelude::*,
    sync::{
        Arc,
        CondVar, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};
use kfi_bindings::{
    kfid,
    kfid_eq, //
};

/// An entry that the core has put in and may want to take out again.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unread {
    /// An event.
    Event(Place),
    /// That an operation failed.
    Failure(Place),
}

/// A consumer's handler and what it is called with.
pub(super) struct Handler {
    pub(super) call: unsafe extern "C" fn(*mut kfid_eq, *mut c_void),
    pub(super) eq: *mut kfid_eq,
    pub(super) context: *mut c_void,
}

// SAFETY: C consumers let any thread call their handlers; the pointers are only handed through.
unsafe impl Send for Handler {}
// SAFETY: C consumers let several threads call their handlers at once.
unsafe impl Sync for Handler {}

/// An event queue without its C side. It outlives that while something is bound to it, or the handler's
/// work is still queued.
#[pin_data]
pub(super) struct Queue {
    #[pin]
    pub(super) state: IrqLock<State>,
    /// There is something to read.
    #[pin]
    pub(super) readable: CondVar,
    handler: Option<Handler>,
    #[pin]
    work: Work<Queue>,
}

/// What changes in a queue.
pub(super) struct State {
    pub(super) events: Ring<Event>,
    pub(super) failures: Ring<Failure>,
    /// What the failure that was read last points to.
    pub(super) shown: PeerData,
    handler: HandlerState,
    /// The task that runs the handler, by its address; 0 if none does.
    running: usize,
}

/// Whether the next event calls the handler.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HandlerState {
    /// It does.
    Armed,
    /// The handler is about to be called.
    Due,
    /// The handler was called, and nobody has found the queue empty since.
    Called,
    /// The queue was closed: it takes nothing, and the handler is never called again.
    Over,
}

impl_has_work! {
    impl HasWork<Self> for Queue { self.work }
}

impl Queue {
    /// Makes a queue of `size` entries of each kind. May sleep.
    pub(super) fn new(size: usize, handler: Option<Handler>) -> Result<Arc<Self>, Refusal> {
        let state = State {
            events: Ring::new(size)?,
            failures: Ring::new(size)?,
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

    /// Puts something in, and tells those who wait if `put` says that there is something to read.
    /// Returns `None` if the queue was closed.
    ///
    /// All of it under the lock: a reader may close the queue as soon as that is free.
    fn put<R>(this: &Arc<Self>, put: impl FnOnce(&mut State) -> (R, bool)) -> Option<R> {
        this.state.with(|state| {
            if state.handler == HandlerState::Over {
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
            if let Some(handlers) = workqueue::handlers().filter(|_| call) {
                // Work that is queued already has yet to run, and will see what was set above.
                let _ = handlers.enqueue(this.clone());
            }
            Some(result)
        })
    }

    /// Puts in an event; where there is no room, the reader will know. A closed queue drops it. Any
    /// context.
    pub(super) fn push(this: &Arc<Self>, event: Event) -> Option<Unread> {
        Self::put(this, |state| {
            (state.events.push(event).map(Unread::Event), true)
        })
        .flatten()
    }

    /// Puts in an event, and returns whether there was room; a closed queue has none. Any context.
    pub(super) fn try_push(this: &Arc<Self>, event: Event) -> bool {
        let put = Self::put(this, |state| {
            let room = state.events.try_push(event).is_some();
            (room, room)
        });
        put.unwrap_or(false)
    }

    /// Puts in that an operation failed; where there is no room, the reader will know. A closed queue
    /// drops it. Any context.
    pub(super) fn push_failure(this: &Arc<Self>, failure: Failure) -> Option<Unread> {
        Self::put(this, |state| {
            (state.failures.push(failure).map(Unread::Failure), true)
        })
        .flatten()
    }

    /// Takes out what was put in, unless it has been read. Any context.
    pub(super) fn forget(&self, unread: Unread) {
        self.state.with(|state| match unread {
            Unread::Event(place) => state.events.remove(place),
            Unread::Failure(place) => state.failures.remove(place),
        });
    }

    /// Takes out all that is about an object and hasn't been read. Any context.
    pub(super) fn forget_all(&self, fid: *mut kfid) {
        self.state.with(|state| {
            state.events.remove_if(|event| event.is_about(fid));
            state
                .failures
                .remove_if(|failure| ptr::eq(failure.fid, fid));
        });
    }

    /// Does the calling task run the handler? Process context.
    pub(super) fn in_handler(&self) -> bool {
        self.state.with(|state| state.running == task::current())
    }

    /// Returns whether the queue takes something. Any context.
    pub(super) fn is_open(&self) -> bool {
        self.state.with(|state| state.handler != HandlerState::Over)
    }

    /// Closes the queue: it takes nothing any more. Returns the events that nobody has read. When it
    /// returns, the handler doesn't run, and never will. Sleeps; not in the handler.
    pub(super) fn close(&self) -> Ring<Event> {
        let (events, failures, shown) = self.state.with(|state| {
            state.handler = HandlerState::Over;
            (
                mem::replace(&mut state.events, Ring::without_room()),
                mem::replace(&mut state.failures, Ring::without_room()),
                state.shown.take(),
            )
        });
        // Freed where interrupts are on.
        drop((failures, shown));
        // SAFETY: The work was initialised with the queue, which the caller's reference keeps.
        unsafe { bindings::flush_work(Work::raw_get(&raw const self.work)) };
        events
    }
}

impl WorkItem for Queue {
    type Pointer = Arc<Self>;

    /// Calls the handler. Process context; sleeps if the handler does.
    fn run(this: Arc<Self>) {
        let Some(handler) = &this.handler else {
            return;
        };
        // Storage may wait for what the handler does on the way of writing memory back.
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
        // SAFETY: The consumer gave it to be called with these while the queue is open, and closing
        // it waits for this work in `end`.
        unsafe { (handler.call)(handler.eq, handler.context) };
        this.state.with(|state| state.running = 0);
    }
}

impl State {
    /// A reader found nothing: the handler will tell when there is something.
    pub(super) fn found_empty(&mut self) {
        if self.handler == HandlerState::Called {
            self.handler = HandlerState::Armed;
        }
    }
}
