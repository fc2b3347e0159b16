// SPDX-License-Identifier: GPL-2.0

//! A request of the block layer, and the rights to it.
//!
//! At most one value has a request: a [`Request`] when the transport may change it, a [`Sending`]
//! while the device has its capsule. Both count as users of the queue, so that stopping waits for
//! them. If the device does not return a capsule, stopping ends the request all the same, and the
//! `Sending` is of no use any more.

use crate::{
    command::Command,
    data::Data,
    host_queue::HostQueue,
    pdu::{
        Answer,
        Pdu,
        Place,
        TagParts, //
    },
    prelude::*, //
};
use kernel::bindings::bio_vec;

/// The one value that has a request, and a user of its queue.
///
/// Dropping it leaves the request until its queue is stopped.
///
/// # Invariants
///
/// - `raw` was started and has not ended. Its pdu is initialised. This is not so for a [`Sending`] that
///   was [given up](crate::sendings::Sendings::give_up).
/// - No other `Owner` has it.
/// - The request is queued on `queue`, whose connection is `connection`.
struct Owner<T: TagParts> {
    raw: NonNull<bindings::request>,
    queue: NonNull<HostQueue<T>>,
    connection: BusyGuard<T::Queue, Shared>,
}

// SAFETY: A request may be used by any task. `T::Capsule`, `T::Slot` and `T::Queue` are `Send`.
unsafe impl<T: TagParts> Send for Owner<T> {}
// SAFETY: A shared reference only reads fields that stay the same until the end.
unsafe impl<T: TagParts> Sync for Owner<T> {}

impl<T: TagParts> Owner<T> {
    fn pdu(&self) -> &Pdu<T> {
        // SAFETY: The pdu is initialised by the invariant.
        unsafe { Pdu::of(self.raw) }
    }

    fn queue(&self) -> &HostQueue<T> {
        // SAFETY: The queue exists, since its gate has counted `connection`.
        unsafe { self.queue.as_ref() }
    }

    fn place_mut(&mut self) -> &mut Place<T> {
        // SAFETY: The owner has the only right to the place.
        unsafe { &mut *self.pdu().place.get() }
    }
}

/// The exclusive right to a request that nvme-core has queued.
///
/// Dropping it leaves the request until its queue is stopped, or its timeout begins recovery.
pub struct Request<T: TagParts>(Owner<T>);

impl<T: TagParts> Request<T> {
    /// Takes the right to a request.
    ///
    /// # Safety
    ///
    /// - `raw` must have been started, must not have ended, and no other value may have it.
    /// - The request must be queued on `queue`, whose connection must be `connection`.
    pub(crate) unsafe fn new(
        raw: NonNull<bindings::request>,
        queue: &HostQueue<T>,
        connection: BusyGuard<T::Queue, Shared>,
    ) -> Self {
        // INVARIANT: The caller promises all three.
        Self(Owner {
            raw,
            queue: NonNull::from(queue),
            connection,
        })
    }

    pub(crate) fn is(&self, raw: NonNull<bindings::request>) -> bool {
        self.0.raw == raw
    }

    /// Makes the tag idle. Returns whether the data were leaked.
    fn end(&self) -> bool {
        let is_kept = self.0.pdu().end();
        self.0.queue().put_place();
        is_kept
    }

    /// Ends the request with this answer. Its tag is idle.
    fn answer(self, Answer { status, result }: Answer) {
        // SAFETY: The request has not ended by the invariant, and this is the only value that has
        // it. The tag may be used again from here on.
        unsafe { b::nvme_helper_complete(self.0.raw.as_ptr(), status, result) };
    }

    /// Returns the queue that the request is queued on. Any context.
    pub fn queue(&self) -> &T::Queue {
        self.0.connection.get()
    }

    /// Returns the command. Any context.
    pub fn command(&self) -> &Command {
        // SAFETY: This value has the right to the command.
        unsafe { &*self.0.pdu().command.get() }
    }

    /// Returns the command, whose data descriptor the transport must set. Any context.
    pub fn command_mut(&mut self) -> &mut Command {
        // SAFETY: This value has the only right to the command.
        unsafe { &mut *self.0.pdu().command.get() }
    }

    /// Returns the slot of the request's tag. Any context.
    pub fn slot(&mut self) -> &mut T::Slot {
        &mut self.0.place_mut().slot
    }

    /// Takes the capsule of the request's tag. Returns `None` if it did not come back. Any context.
    pub fn take_capsule(&mut self) -> Option<T::Capsule> {
        self.0.place_mut().capsule.take()
    }

    /// Gives the capsule back. Any context.
    pub fn put_capsule(&mut self, capsule: T::Capsule) {
        self.0.place_mut().capsule = Some(capsule);
    }

    /// Returns the length of the data in bytes. Any context.
    pub fn payload_bytes(&self) -> u32 {
        // SAFETY: The request has not ended by the invariant.
        unsafe { b::nvme_helper_payload(self.0.raw.as_ptr()) }
    }

    /// Checks whether the request has data. Any context.
    pub fn has_data(&self) -> bool {
        // SAFETY: The request has not ended by the invariant.
        unsafe { b::nvme_helper_segments(self.0.raw.as_ptr()) != 0 }
    }

    /// Checks whether the target reads the data, instead of writing them. Any context.
    pub fn is_write(&self) -> bool {
        // SAFETY: The request has not ended by the invariant. Its flags do not change until then.
        let flags = unsafe { (*self.0.raw.as_ptr()).cmd_flags };
        // An operation with an odd number writes (`op_is_write()`).
        flags & 1 != 0
    }

    /// Fills a list with the data of the request.
    fn list(&self, list: &mut KVec<bio_vec>) -> Result {
        loop {
            list.clear();
            let room = list.spare_capacity_mut();
            let space = u32::try_from(room.len())?;
            // SAFETY: The request has not ended by the invariant. `room` has `space` entries.
            let count = unsafe {
                b::nvme_helper_bvecs(self.0.raw.as_ptr(), room.as_mut_ptr().cast(), space)
            };
            let count = usize::try_from(count)?;
            if count <= list.capacity() {
                // SAFETY: The helper has written `count` entries.
                unsafe { list.inc_len(count) };
                return Ok(());
            }
            list.reserve(count, GFP_ATOMIC)?;
        }
    }

    /// Lends the data of the request to a region. The region must give them back before the request
    /// ends. Any context. Allocates, without waiting, if the list of the tag is too short.
    ///
    /// # Errors
    ///
    /// - `EBUSY`: they are lent already.
    /// - `ENOMEM`.
    pub fn lend(&mut self) -> Result<Data> {
        let writable = !self.is_write();
        let data = &self.0.pdu().data;
        // SAFETY: This value has the only right to the request. Its pages stay in place until it
        // ends, and `Pdu::end` leaks them if the list is lent.
        unsafe { data.lend(writable, |list| self.list(list)) }
    }

    /// Marks the request as being sent. From here on the response may come. Any context.
    pub fn into_sending(self) -> Sending<T> {
        self.0.queue().sendings.begin();
        self.0.pdu().state.sending();
        Sending(Some(self.0))
    }

    /// Ends the request with the status of its response, or with a path error if it has none. Any
    /// context.
    ///
    /// The target must not be able to reach the data any more. If they are [lent](Self::lend)
    /// still, their pages are leaked, and the request fails without another attempt.
    pub fn complete(self) {
        // SAFETY: Nobody writes the answer of a request that a `Request` has.
        let answer = unsafe { *self.0.pdu().answer.get() };
        let is_kept = self.end();
        self.answer(if is_kept { Answer::KEPT } else { answer });
    }

    /// Has the block layer queue the request again after 3 ms, because the transport could not send it.
    /// If its data are lent still, it fails as by [`complete`](Self::complete). Any context.
    pub fn requeue(self) {
        if self.end() {
            return self.answer(Answer::KEPT);
        }
        let rq = self.0.raw.as_ptr();
        // SAFETY: The request was set up and has not ended, and this is the only value that has it.
        unsafe {
            b::nvme_cleanup_cmd(rq);
            b::nvme_helper_requeue(rq);
        }
    }

    /// Takes the request back from the transport.
    pub(crate) fn into_refused(self) -> NonNull<bindings::request> {
        // A transport that returns a request has ended its key.
        let _ = self.end();
        self.0.raw
    }
}

/// The right to a request whose capsule the device has.
///
/// Dropping it leaves the request until its queue is stopped.
///
/// # Invariants
///
/// The owner is counted in the queue's `sendings`.
pub struct Sending<T: TagParts>(Option<Owner<T>>);

impl<T: TagParts> Sending<T> {
    /// Returns the owner, unless the request has ended without its capsule.
    fn into_owner(mut self) -> Option<Owner<T>> {
        // The count ends here.
        self.0.take().filter(|owner| owner.queue().sendings.end())
    }

    /// Takes the request back because the device did not accept the capsule. Returns it, and true if
    /// a response was noted. Returns `None` if the request has ended meanwhile, as its queue was
    /// stopped. Any context.
    pub fn refused(self, capsule: T::Capsule) -> Option<(Request<T>, bool)> {
        let mut owner = self.into_owner()?;
        owner.place_mut().capsule = Some(capsule);
        let is_answered = owner.pdu().state.refused();
        // An ill-behaved target may have answered what was not sent.
        // SAFETY: Nobody writes the answer of a request that is held.
        unsafe { *owner.pdu().answer.get() = Answer::NONE };
        Some((Request(owner), is_answered))
    }

    /// Puts the capsule back when it was sent. Returns the request if its response is there already.
    /// The caller ends its key, and [completes](Request::complete) it. Any context.
    pub fn sent(self, capsule: T::Capsule) -> Option<Request<T>> {
        let mut owner = self.into_owner()?;
        owner.place_mut().capsule = Some(capsule);
        owner.pdu().state.sent().then(|| Request(owner))
    }
}

impl<T: TagParts> Drop for Sending<T> {
    fn drop(&mut self) {
        if let Some(owner) = &self.0 {
            owner.queue().sendings.end();
        }
    }
}
