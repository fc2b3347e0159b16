// SPDX-License-Identifier: GPL-2.0

//! A request of the block layer, and the rights to it.
//!
//! At most one value has a request: a [`Request`] when the transport may change it, a [`Sending`]
//! while the device has its capsule. Both count as users of the queue, so that stopping waits for
//! them.

use crate::{
    command::Command,
    data::Data,
    gate::QueueGate,
    pdu::{
        Answer,
        Pdu,
        Place, //
    },
    state::PduState,
    tag::TagParts, //
};
use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    ptr::NonNull, //
};
use kernel::{
    bindings::{
        self,
        bio_vec, //
    },
    prelude::*, //
};
use nvme_bindings as b;

/// The direction of a request's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The target writes the data.
    Read,
    /// The target reads the data.
    Write,
}

/// The exclusive right to a request that nvme-core has queued.
///
/// Dropping it leaves the request until its queue is stopped, or its timeout begins recovery.
///
/// # Invariants
///
/// - `raw` was started and has not ended. Its pdu is initialised.
/// - No other `Request` or [`Sending`] has it.
/// - This value is counted in `gate`, which the request is queued on, but for the one that
///   [`Transport::abandon`](crate::Transport::abandon) borrows.
pub struct Request<T: TagParts> {
    raw: NonNull<bindings::request>,
    gate: NonNull<QueueGate>,
    parts: PhantomData<fn() -> T>,
}

// SAFETY: A request may be used by any task. `T::Capsule` and `T::Slot` are `Send`.
unsafe impl<T: TagParts> Send for Request<T> {}
// SAFETY: A shared reference only reads fields that stay the same until the end.
unsafe impl<T: TagParts> Sync for Request<T> {}

impl<T: TagParts> Request<T> {
    /// Takes the right to a request.
    ///
    /// # Safety
    ///
    /// - `raw` must have been started, must not have ended, and no other value may have it.
    /// - The caller must give up a count of `gate`, which is that of the request's queue.
    pub(crate) unsafe fn new(raw: NonNull<bindings::request>, gate: NonNull<QueueGate>) -> Self {
        // INVARIANT: The caller promises all three.
        Self {
            raw,
            gate,
            parts: PhantomData,
        }
    }

    pub(crate) fn is(&self, raw: NonNull<bindings::request>) -> bool {
        self.raw == raw
    }

    fn state(&self) -> &PduState {
        // SAFETY: The pdu is initialised by the invariant.
        unsafe { Pdu::<T>::state(self.raw) }
    }

    /// Makes the tag idle.
    fn end(&self) {
        self.state().end();
        // SAFETY: The gate exists, since this value is counted in it, or its queue is being stopped.
        unsafe { self.gate.as_ref() }.put_place();
    }

    fn answer(&self) -> Answer {
        // SAFETY: The pdu is initialised by the invariant. Nobody writes the answer of a request
        // that a `Request` has.
        unsafe { Pdu::<T>::answer(self.raw).read() }
    }

    fn place_mut(&mut self) -> &mut Place<T> {
        // SAFETY: The pdu is initialised by the invariant. This value has the only right to it.
        unsafe { Pdu::<T>::place(self.raw).as_mut() }
    }

    /// Returns the command. Any context.
    pub fn command(&self) -> &Command {
        // SAFETY: The pdu is initialised by the invariant. This value has the right to it.
        unsafe { Pdu::<T>::command(self.raw).as_ref() }
    }

    /// Returns the command, whose data descriptor the transport must set. Any context.
    pub fn command_mut(&mut self) -> &mut Command {
        // SAFETY: The pdu is initialised by the invariant. This value has the only right to it.
        unsafe { Pdu::<T>::command(self.raw).as_mut() }
    }

    /// Returns the slot of the request's tag. Any context.
    pub fn slot(&mut self) -> &mut T::Slot {
        &mut self.place_mut().slot
    }

    /// Takes the capsule of the request's tag. Returns `None` if it did not come back. Any context.
    pub fn take_capsule(&mut self) -> Option<T::Capsule> {
        self.place_mut().capsule.take()
    }

    /// Gives the capsule back. Any context.
    pub fn put_capsule(&mut self, capsule: T::Capsule) {
        self.place_mut().capsule = Some(capsule);
    }

    /// Returns the length of the data in bytes. Any context.
    pub fn payload_bytes(&self) -> u32 {
        // SAFETY: The request has not ended by the invariant.
        unsafe { b::nvme_helper_payload(self.raw.as_ptr()) }
    }

    /// Checks whether the request has data. Any context.
    pub fn has_data(&self) -> bool {
        // SAFETY: The request has not ended by the invariant.
        unsafe { b::nvme_helper_segments(self.raw.as_ptr()) != 0 }
    }

    /// Returns the direction of the data. Any context.
    pub fn direction(&self) -> Direction {
        // SAFETY: The request has not ended by the invariant. Its flags do not change until then.
        let flags = unsafe { (*self.raw.as_ptr()).cmd_flags };
        // An operation with an odd number writes (`op_is_write()`).
        match flags & 1 {
            0 => Direction::Read,
            _ => Direction::Write,
        }
    }

    /// Checks whether this is a request of an I/O queue. Any context.
    pub fn is_io(&self) -> bool {
        // SAFETY: The gate exists, since this value is counted in it.
        unsafe { self.gate.as_ref() }.qid() != 0
    }

    /// Fills a list with the data of the request.
    fn list(&self, list: &mut KVec<bio_vec>) -> Result {
        loop {
            list.clear();
            let room = list.spare_capacity_mut();
            let space = u32::try_from(room.len())?;
            // SAFETY: The request has not ended by the invariant. `room` has `space` entries.
            let count =
                unsafe { b::nvme_helper_bvecs(self.raw.as_ptr(), room.as_mut_ptr().cast(), space) };
            let count = usize::try_from(count)?;
            if count <= list.capacity() {
                // SAFETY: The helper has written `count` entries.
                unsafe { list.inc_len(count) };
                return Ok(());
            }
            list.reserve(count, GFP_NOWAIT)?;
        }
    }

    /// Lends the data of the request to a region. The region must give them back before the request
    /// ends. Any context; allocates without waiting.
    ///
    /// # Errors
    ///
    /// - `EBUSY`: they are lent already.
    /// - `ENOMEM`.
    pub fn lend(&mut self) -> Result<Data> {
        let writable = self.direction() == Direction::Read;
        // SAFETY: The pdu is initialised by the invariant.
        let data = unsafe { Pdu::<T>::data(self.raw) };
        // SAFETY: This value has the only right to the request. Its pages stay in place until it
        // ends, and `complete` and `abandoned` leak them if the list is lent.
        unsafe { data.lend(writable, |list| self.list(list)) }
    }

    /// Leaks the pages of the request if they are lent.
    fn leak_lent(&self) {
        // SAFETY: The pdu is initialised by the invariant.
        let data = unsafe { Pdu::<T>::data(self.raw) };
        data.leak();
    }

    /// Copies from the start of the data until `to` is full. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the request has fewer bytes, or reads.
    pub fn copy_out(&self, to: &mut [u8]) -> Result {
        let len = u32::try_from(to.len())?;
        if self.direction() != Direction::Write {
            return Err(EINVAL);
        }
        // SAFETY: The request has not ended by the invariant. `to` has `len` bytes.
        let done =
            unsafe { b::nvme_helper_copy_out(self.raw.as_ptr(), to.as_mut_ptr().cast(), len) };
        (done == len).then_some(()).ok_or(EINVAL)
    }

    /// Marks the request as being sent. From here on the response may come. Any context.
    pub fn into_sending(self) -> Sending<T> {
        self.state().sending();
        let this = ManuallyDrop::new(self);
        // INVARIANT: The request and the count are handed over.
        Sending {
            raw: this.raw,
            gate: this.gate,
            parts: PhantomData,
        }
    }

    /// Ends the request with the status of its response, or with a path error if it has none. Any
    /// context.
    ///
    /// The target must not be able to reach the data any more.
    pub fn complete(self) {
        let this = ManuallyDrop::new(self);
        let Answer { status, result } = this.answer();
        this.leak_lent();
        this.end();
        // SAFETY: The request has not ended by the invariant, and this is the only value that has
        // it. The tag may be used again from here on.
        unsafe { b::nvme_helper_complete(this.raw.as_ptr(), status, result) };
        // SAFETY: The count of this value ends here.
        unsafe { QueueGate::leave(this.gate) };
    }

    /// Ends the transport's part of a request that nvme-core will cancel.
    pub(crate) fn abandoned(&mut self) {
        self.leak_lent();
        self.end();
    }

    /// Takes the request back from the transport, with its count.
    pub(crate) fn into_refused(self) -> NonNull<bindings::request> {
        let this = ManuallyDrop::new(self);
        this.end();
        // SAFETY: The count of this value ends here.
        unsafe { QueueGate::leave(this.gate) };
        this.raw
    }
}

impl<T: TagParts> Drop for Request<T> {
    fn drop(&mut self) {
        // SAFETY: The count of this value ends here.
        unsafe { QueueGate::leave(self.gate) };
    }
}

/// The right to a request whose capsule the device has.
///
/// Dropping it leaves the request until its queue is stopped.
///
/// # Invariants
///
/// - `raw` was started and has not ended. Its pdu is initialised.
/// - No other `Sending` has it, and no [`Request`].
/// - This value is counted in `gate`.
pub struct Sending<T: TagParts> {
    raw: NonNull<bindings::request>,
    gate: NonNull<QueueGate>,
    parts: PhantomData<fn() -> T>,
}

// SAFETY: A request may be used by any task. `T::Capsule` and `T::Slot` are `Send`.
unsafe impl<T: TagParts> Send for Sending<T> {}
// SAFETY: A shared reference has no methods.
unsafe impl<T: TagParts> Sync for Sending<T> {}

impl<T: TagParts> Sending<T> {
    /// Puts the capsule back into the pdu.
    fn put(&mut self, capsule: T::Capsule) {
        // SAFETY: The pdu is initialised by the invariant. This value has the only right to it.
        unsafe { Pdu::<T>::place(self.raw).as_mut() }.capsule = Some(capsule);
    }

    fn state(&self) -> &PduState {
        // SAFETY: The pdu is initialised by the invariant.
        unsafe { Pdu::<T>::state(self.raw) }
    }

    fn into_request(self) -> Request<T> {
        let this = ManuallyDrop::new(self);
        // INVARIANT: The request and the count are handed over. The caller has changed the state.
        Request {
            raw: this.raw,
            gate: this.gate,
            parts: PhantomData,
        }
    }

    /// Takes the request back because the device did not accept the capsule. Any context.
    pub fn refused(mut self, capsule: T::Capsule) -> Request<T> {
        self.put(capsule);
        self.state().refused();
        self.into_request()
    }

    /// Puts the capsule back when it was sent. Returns the request if its response is there already,
    /// for [`Transport::finish`](crate::Transport::finish). Any context.
    pub fn sent(mut self, capsule: T::Capsule) -> Option<Request<T>> {
        self.put(capsule);
        self.state().sent().then(|| self.into_request())
    }
}

impl<T: TagParts> Drop for Sending<T> {
    fn drop(&mut self) {
        // SAFETY: The count of this value ends here.
        unsafe { QueueGate::leave(self.gate) };
    }
}
