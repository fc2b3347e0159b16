// SPDX-License-Identifier: GPL-2.0

//! A queue of a controller.
//!
//! Stopping a queue closes its gate, stops the connection, and waits until the gate has no users. If
//! the device does not return a capsule, it is given up after a limit. Then stopping ends the keys of
//! all requests under way.

use crate::{
    ctrl::Ctrl,
    events::Events,
    failure::not_connected,
    gate::{
        Entered,
        QueueGate, //
    },
    pdu::{
        Answer,
        Pdu, //
    },
    prelude::*,
    request::Request,
    transport::{
        QueueConfig,
        Refusal,
        Transport,
        TransportQueue, //
    }, //
};
use kernel::{
    new_mutex,
    time::{
        delay::fsleep,
        Delta,
        Instant,
        Monotonic, //
    }, //
};

/// Time between two looks at a queue that stops.
const A_MOMENT: Delta = Delta::from_millis(1);

/// A queue of a controller.
///
/// # Invariants
///
/// `connection` is changed only with `life` locked, while the gate is closed and has no users.
#[pin_data]
pub(crate) struct HostQueue<T: Transport> {
    gate: Arc<QueueGate>,
    connection: UnsafeCell<Option<T::Queue>>,
    /// Locked while a queue is connected, stopped or freed.
    #[pin]
    life: Mutex<()>,
}

// SAFETY: `gate` and `life` guard `connection`. `T::Queue` is `Send` and `Sync`.
unsafe impl<T: Transport> Send for HostQueue<T> {}
// SAFETY: `gate` and `life` guard `connection`. `T::Queue` is `Send` and `Sync`.
unsafe impl<T: Transport> Sync for HostQueue<T> {}

impl<T: Transport> HostQueue<T> {
    /// Makes a queue without a connection. May sleep.
    ///
    /// # Safety
    ///
    /// The contract of [`QueueGate::new`].
    pub(crate) unsafe fn new(
        ctrl: Ctrl,
        qid: u16,
        tags: *mut bindings::blk_mq_tag_set,
    ) -> Result<Arc<Self>> {
        // SAFETY: The caller keeps the contract.
        let gate = unsafe { QueueGate::new(ctrl, qid, tags) };
        let gate = Arc::new(gate, GFP_KERNEL)?;
        // INVARIANT: The gate is closed, and there is no connection.
        Arc::pin_init(
            pin_init!(Self {
                gate,
                connection: UnsafeCell::new(None),
                life <- new_mutex!((), "nvme_queue"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns the gate.
    pub(crate) fn gate(&self) -> &QueueGate {
        &self.gate
    }

    /// Allows nvme-core to send all commands. Sleeps.
    ///
    /// # Errors
    ///
    /// - `ENOTCONN`: the queue was stopped meanwhile.
    pub(crate) fn set_live(&self) -> Result {
        let _life = self.life.lock();
        if self.gate.is_closed() {
            return Err(not_connected());
        }
        self.gate.set_live(true);
        Ok(())
    }

    /// Enters the gate. Returns `None` if it is closed. Any context.
    pub(crate) fn enter(&self) -> Option<Inside<'_, T>> {
        let entered = self.gate.enter()?;
        // INVARIANT: Just entered.
        Some(Inside {
            queue: self,
            _entered: entered,
        })
    }

    /// Connects the queue, which is new or was [freed](Self::free). Sleeps.
    ///
    /// # Errors
    ///
    /// - `EBUSY`: the device has not returned the capsules of the last connection.
    /// - `ENOTCONN`: the connection broke at once.
    /// - The errors of `connect`.
    pub(crate) fn open(
        &self,
        config: &QueueConfig,
        connect: impl FnOnce(Events<T>) -> Result<T::Queue>,
    ) -> Result {
        if self.gate.sendings.count() != 0 {
            return Err(EBUSY);
        }
        self.gate.sendings.clear();
        self.gate.clear_broken();
        let connection = connect(Events::new(&self.gate))?;
        let life = self.life.lock();
        if !self.gate.is_closed() {
            return Err(EBUSY);
        }
        // SAFETY: The gate is closed and was left by all users when the queue was stopped. `life`
        // keeps others from changing that.
        let old = unsafe { (*self.connection.get()).replace(connection) };
        self.gate.open(config.sqsize.into());
        drop(life);
        drop(old);
        // An event before the gate was open found nobody to stop.
        if self.gate.is_broken() {
            return Err(not_connected());
        }
        Ok(())
    }

    /// Stops the queue, and ends the keys of all its requests, so that they can be cancelled. The
    /// connection stays until [`free`](Self::free). Sleeps.
    ///
    /// The caller has the controller.
    pub(crate) fn stop(&self) {
        let _life = self.life.lock();
        self.gate.set_live(false);
        if self.gate.is_closed() {
            return;
        }
        self.gate.close();
        // SAFETY: `life` keeps others from changing the connection.
        let Some(connection) = (unsafe { &*self.connection.get() }) else {
            return;
        };
        connection.stop();
        let begun = Instant::<Monotonic>::now();
        while self.gate.users() != 0 {
            // Nobody else may poll any more.
            if connection.poll() {
                continue;
            }
            if begun.elapsed() > T::STOP_LIMIT {
                self.give_up();
                break;
            }
            fsleep(A_MOMENT);
        }
        self.abandon_requests(connection);
    }

    /// Gives up the capsules that the device does not return. Their requests can be abandoned then. The
    /// gate is closed.
    fn give_up(&self) {
        let gate = &self.gate;
        gate.sendings.give_up();
        // Requests whose capsules came back in time. A capsule that comes back from here on is counted
        // less by `sendings` first, so the difference is not too small.
        while gate.users() > gate.sendings.count() {
            fsleep(A_MOMENT);
        }
        let left = gate.sendings.count();
        if left != 0 {
            pr_warn!(
                "queue {}: {left} capsules are leaked: a device does not return them\n",
                gate.qid()
            );
            // They refer to the gate.
            core::mem::forget(gate.clone());
        }
    }

    /// Ends the keys of all requests under way, and then the requests. The gate is closed, and has no
    /// users but capsules that were given up.
    fn abandon_requests(&self, connection: &T::Queue) {
        // SAFETY: The caller of `stop` has the controller.
        let ctrl = unsafe { self.gate.ctrl() };
        let (set, index) = self.gate.tags();
        // SAFETY: The set is that of the controller. Tags are freed after their queues stop.
        while let Some(rq) = unsafe { busy_request::<T>(set, index) } {
            // SAFETY: The tag is busy, so the request was started and has not ended. The gate has
            // no users but given-up capsules, so no other value has it. The count is not given up.
            let request = unsafe { Request::<T>::new(rq, NonNull::from(&*self.gate)) };
            let mut request = ManuallyDrop::new(request);
            connection.abandon(&mut request);
            request.abandoned();
            // SAFETY: The request has not ended, and the target can't reach its data.
            unsafe { b::nvme_cancel_request(rq.as_ptr(), ctrl.raw().cast()) };
        }
    }

    /// Frees the connection of a queue that was stopped. Sleeps.
    pub(crate) fn free(&self) {
        let life = self.life.lock();
        if !self.gate.is_closed() {
            return;
        }
        // SAFETY: The gate is closed, and was left by all users when the queue was stopped.
        let connection = unsafe { (*self.connection.get()).take() };
        drop(life);
        drop(connection);
        // No event comes any more. The next connection begins without the mark.
        self.gate.clear_broken();
    }
}

/// Returns a request of a hardware queue that is under way.
///
/// # Safety
///
/// `set` is a tag set with pdus of `T`, or zeroed.
unsafe fn busy_request<T: Transport>(
    set: *mut bindings::blk_mq_tag_set,
    index: u32,
) -> Option<NonNull<bindings::request>> {
    /// The search for a request.
    struct Search {
        index: u32,
        found: Option<NonNull<bindings::request>>,
    }
    /// Looks at one request. Returns true to see the next one.
    ///
    /// # Safety
    ///
    /// `rq` was started, and `data` is a [`Search`].
    unsafe extern "C" fn look<T: Transport>(
        rq: *mut bindings::request,
        data: *mut kernel::ffi::c_void,
    ) -> bool {
        // SAFETY: The caller promises that this is a search.
        let search = unsafe { &mut *data.cast::<Search>() };
        // The block layer ends the search of one map of tags, and goes on with the next one.
        if search.found.is_some() {
            return false;
        }
        // SAFETY: The block layer has a reference to the request, which was started.
        let index = unsafe { (*(*rq).mq_hctx).queue_num };
        search.found = NonNull::new(rq).filter(|rq| {
            // SAFETY: The request is one of the set, so its pdu is initialised.
            index == search.index && unsafe { Pdu::<T>::of(*rq) }.state.is_busy()
        });
        search.found.is_none()
    }
    let mut search = Search { index, found: None };
    // SAFETY: The caller promises that the set is allocated, if it has tags.
    unsafe {
        if !(*set).tags.is_null() {
            bindings::blk_mq_tagset_busy_iter(set, Some(look::<T>), (&raw mut search).cast());
        }
    }
    search.found
}

/// A user of a queue that is connected.
pub(crate) struct Inside<'a, T: Transport> {
    queue: &'a HostQueue<T>,
    _entered: Entered<'a>,
}

impl<T: Transport> Inside<'_, T> {
    /// Returns the connection.
    pub(crate) fn connection(&self) -> Option<&T::Queue> {
        // SAFETY: The gate has a user, so nobody changes the connection.
        unsafe { (*self.queue.connection.get()).as_ref() }
    }

    /// Gives a request to the transport.
    ///
    /// # Safety
    ///
    /// `raw` must be a request of this queue that was just started. No value may have it.
    pub(crate) unsafe fn queue(
        &self,
        raw: NonNull<bindings::request>,
        last: bool,
    ) -> Result<(), (Refusal, Request<T>)> {
        // SAFETY: The pdu of a request of the queue is initialised. No value has the request.
        unsafe {
            let pdu = Pdu::<T>::of(raw);
            *pdu.answer.get() = Answer::NONE;
            pdu.state.hold();
        }
        let gate = self.queue.gate();
        gate.count_again();
        let has_place = gate.take_place();
        // SAFETY: The request was started and has not ended. Its count is the one just added.
        let request = unsafe { Request::new(raw, NonNull::from(gate)) };
        match self.connection() {
            Some(connection) if has_place => connection.queue_rq(request, last),
            Some(connection) => {
                // Requests that wait for more must not wait for this one.
                connection.commit_rqs();
                Err((Refusal::Busy, request))
            }
            None => Err((Refusal::Broken, request)),
        }
    }
}
