// SPDX-License-Identifier: GPL-2.0

//! Connecting and stopping a queue of a controller.
//!
//! The gate in front of the connection counts its users: calls into the transport, and each
//! [`Request`](crate::Request) and [`Sending`](crate::Sending). Stopping a queue shuts the gate, stops
//! the connection, and waits until the gate has no users. If the device does not return a capsule, it
//! is given up after a limit. Then stopping ends the keys of all requests under way.

use crate::{
    events::Events,
    host_queue::{
        HostQueue,
        Phase, //
    },
    pdu::{
        Answer,
        Pdu, //
    },
    prelude::*,
    transport::{
        QueueConfig,
        Transport,
        TransportQueue, //
    }, //
};
use core::{
    iter,
    mem::ManuallyDrop, //
};
use kernel::time::{
    delay::fsleep,
    Delta,
    Instant, //
};

/// Time between two looks at a queue that stops.
const A_MOMENT: Delta = Delta::from_millis(1);

impl<T: Transport> HostQueue<T> {
    /// Allows nvme-core to send all commands. Sleeps.
    ///
    /// # Errors
    ///
    /// - `ENOTCONN`: the queue was stopped meanwhile.
    pub(crate) fn set_live(&self) -> Result {
        let phase = self.phase.lock();
        let is_open = matches!(*phase, Phase::Open);
        self.is_live.store(is_open, Release);
        is_open.then_some(()).ok_or(Errno::ENOTCONN.into())
    }

    /// Connects the queue, which is new or was [freed](Self::free). Sleeps.
    ///
    /// # Errors
    ///
    /// - `EBUSY`: the device has not returned the capsules of the last connection.
    /// - `ENOTCONN`: the connection broke at once.
    /// - The errors of `connect`.
    pub(crate) fn open(
        self: &Arc<Self>,
        config: &QueueConfig,
        connect: impl FnOnce(Events<T>) -> Result<T::Queue>,
    ) -> Result {
        if self.sendings.count() != 0 {
            return Err(EBUSY);
        }
        self.sendings.clear();
        let connection = connect(Events(self.clone()))?;
        let mut phase = self.phase.lock();
        // SAFETY: The caller has the controller. `queue_depth` is written before the first request,
        // which is later.
        let tags = unsafe { (*self.tags().0).queue_depth };
        let places = u32::from(config.sqsize);
        self.places
            .store(if places < tags { places } else { 0 }, Relaxed);
        self.taken.store(0, Relaxed);
        if !self.gate.open(connection) {
            return Err(Errno::ENOTCONN.into());
        }
        *phase = Phase::Open;
        // An event before the gate was open found nobody to stop.
        match self.is_broken() {
            true => Err(Errno::ENOTCONN.into()),
            false => Ok(()),
        }
    }

    /// Stops queues, and ends the keys of all their requests, so that they can be cancelled. The
    /// connections stay until [`free`](Self::free). The queues share the time that a device has to
    /// return capsules. Sleeps.
    ///
    /// The caller has the controller.
    pub(crate) fn stop_all<'a>(queues: impl Iterator<Item = &'a Self> + Clone) {
        // Tasks that free memory may wait for the requests of these queues.
        let _noio = NoIo::enter();
        queues.clone().for_each(Self::begin_stop);
        queues.for_each(Self::end_stop);
    }

    /// Stops this queue like [`stop_all`](Self::stop_all). Sleeps.
    pub(crate) fn stop(&self) {
        Self::stop_all(iter::once(self));
    }

    /// Shuts the gate, and ends the connection.
    fn begin_stop(&self) {
        let mut phase = self.phase.lock();
        self.is_live.store(false, Release);
        if !matches!(*phase, Phase::Open) {
            return;
        }
        *phase = Phase::Stopping(Instant::now());
        if let Some(shut) = self.gate.shut() {
            shut.get().stop();
            shut.leave();
        }
    }

    /// Waits for the users of the gate, and ends the keys of all requests, unless another task has done
    /// that.
    fn end_stop(&self) {
        let mut phase = self.phase.lock();
        let Phase::Stopping(begun) = *phase else {
            return;
        };
        *phase = Phase::Stopped;
        let Some(shut) = self.gate.resume() else {
            return;
        };
        let connection = shut.get();
        while shut.users() != 0 {
            // Nobody else may poll any more.
            if connection.poll() {
                continue;
            }
            if begun.elapsed() > T::STOP_LIMIT {
                self.give_up(&shut);
                break;
            }
            fsleep(A_MOMENT);
        }
        self.abandon_requests(connection);
        shut.leave();
    }

    /// Gives up the capsules that the device does not return. Their requests can be abandoned then.
    fn give_up(&self, shut: &Shut<'_, T::Queue, Shared>) {
        self.sendings.give_up();
        // Requests whose capsules came back in time. A capsule that comes back from here on is counted
        // less by `sendings` first, so the difference is not too small.
        while shut.users() > self.sendings.count() {
            fsleep(A_MOMENT);
        }
        let left = self.sendings.count();
        if left != 0 {
            let qid = self.qid;
            pr_warn!("queue {qid}: {left} capsules are leaked: a device does not return them\n");
            // They refer to this.
            // SAFETY: `new` has made an `Arc` of this value.
            let this = ManuallyDrop::new(unsafe { Arc::from_raw(self) });
            mem::forget(Arc::clone(&this));
            // The memory of an `Arc` begins with a count, which takes as much as the alignment here.
            let memory = ptr::from_ref(self).cast::<c_void>();
            // SAFETY: The function only looks the address up.
            unsafe { b::nvme_helper_not_leak(memory.wrapping_byte_sub(align_of::<Self>())) };
        }
    }

    /// Ends the keys of all requests under way, and then the requests. The gate is shut, and has no
    /// users but capsules that were given up.
    fn abandon_requests(&self, connection: &T::Queue) {
        let (set, index) = self.tags();
        // SAFETY: The set is that of the controller. Tags are freed after their queues stop.
        while let Some(rq) = unsafe { busy_request::<T>(set, index) } {
            // SAFETY: The tag is busy, so the request was started and has not ended. The gate has no
            // users but given-up capsules, so nobody else has it. The target can't reach its data when
            // it is cancelled.
            unsafe {
                let pdu = Pdu::<T>::of(rq);
                let place = &mut *pdu.place.get();
                connection.abandon(&mut place.capsule, &mut place.slot);
                if pdu.end() {
                    let Answer { status, result } = Answer::KEPT;
                    b::nvme_helper_complete(rq.as_ptr(), status, result);
                } else {
                    b::nvme_cancel_request(rq.as_ptr(), self.ctrl().raw().cast());
                }
            }
        }
    }

    /// Frees the connection of a queue that was stopped. Sleeps.
    pub(crate) fn free(&self) {
        let stopped = self.gate.resume();
        // SAFETY: `stop` has waited for all users but capsules that were given up, which do not use the
        // connection.
        drop(stopped.map(|shut| unsafe { shut.give_up() }.reset()));
        // No event comes any more. The next connection begins without the mark.
        self.is_broken.store(false, Relaxed);
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
