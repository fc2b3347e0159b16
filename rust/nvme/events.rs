// SPDX-License-Identifier: GPL-2.0

//! The events of a queue.

use crate::{
    command::ASYNC_EVENT_ID,
    host_queue::HostQueue,
    pdu::{
        Answer,
        Pdu,
        TagParts, //
    },
    prelude::*,
    request::Request, //
};

/// The bits of a command id that are the tag. The others are a generation.
const TAG: u16 = 0xfff;

/// A response that no command waits for, or that is too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedResponse;

/// The place where the connection of a queue reports events.
pub struct Events<T: TagParts>(pub(crate) Arc<HostQueue<T>>);

impl<T: TagParts> Events<T> {
    /// Returns the queue, if it is connected and not being stopped. Any context.
    pub fn queue(&self) -> Option<GateGuard<'_, T::Queue, Shared>> {
        self.0.gate.enter()
    }

    /// Takes a response, whose bytes are `bytes`. Returns the request if its capsule is back already.
    /// The caller ends its key, and [completes](Request::complete) it. Any context.
    ///
    /// # Errors
    ///
    /// The caller must report the connection as [broken](Self::broken).
    pub fn response(&self, bytes: &[u8]) -> Result<Option<Request<T>>, MalformedResponse> {
        let Some([r0, r1, r2, r3, r4, r5, r6, r7, _, _, _, _, id0, id1, s0, s1]) =
            bytes.first_chunk::<16>().copied()
        else {
            return Err(MalformedResponse);
        };
        let result = u64::from_le_bytes([r0, r1, r2, r3, r4, r5, r6, r7]);
        let id = u16::from_le_bytes([id0, id1]);
        let status = u16::from_le_bytes([s0, s1]);
        // A queue that is being stopped needs no responses: its requests are cancelled.
        let Some(connection) = self.0.gate.hold() else {
            return Ok(None);
        };
        // SAFETY: The gate has a user, so the controller is not freed.
        let ctrl = unsafe { self.0.ctrl() };
        if self.0.qid == 0 && id & TAG >= ASYNC_EVENT_ID {
            // SAFETY: The controller is valid, and its admin queue is not stopped.
            unsafe { b::nvme_helper_complete_async_event(ctrl.raw(), status, result) };
            return Ok(None);
        }
        let (set, index) = self.0.tags();
        // SAFETY: The gate has a user, so neither controller nor set is freed.
        let rq = unsafe { b::nvme_helper_find_rq(ctrl.works(), set, index, id) };
        let rq = NonNull::new(rq).ok_or(MalformedResponse)?;
        // SAFETY: The request is one of the set, so its pdu is initialised.
        let pdu = unsafe { Pdu::<T>::of(rq) };
        if !pdu.state.claim() {
            return Err(MalformedResponse);
        }
        // SAFETY: Only the task that has claimed the state writes this.
        unsafe { *pdu.answer.get() = Answer { status, result } };
        if !pdu.state.answered() {
            return Ok(None);
        }
        // SAFETY: The state says that the request is under way, and that its capsule is back. So no
        // other value has it. The request is one of this queue.
        Ok(Some(unsafe { Request::new(rq, &self.0, connection) }))
    }

    /// Reports that the connection is broken. Begins recovery. May be called more than once. Any
    /// context.
    pub fn broken(&self, error: Error) {
        self.0.set_broken();
        // Without an open gate the queue is being connected, which looks at the mark, or stopped.
        if let Some(_connection) = self.0.gate.enter() {
            // SAFETY: The gate has a user, so the controller is not freed.
            unsafe { self.0.ctrl() }.queue_broken(self.0.qid, error);
        }
    }
}
