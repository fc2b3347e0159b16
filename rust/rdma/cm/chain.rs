// SPDX-License-Identifier: GPL-2.0

//! Several send requests that are posted in one go, with one word to the device.

use kernel::{
    error::to_result,
    prelude::*,
    sync::Arc, //
};

use core::ptr::{
    null_mut,
    NonNull, //
};

use rdma_bindings as b;

use super::endpoint::Endpoint;
use crate::{
    errno,
    outstanding::Outstanding,
    request::{
        stage,
        NotPosted,
        Request, //
    },
    wr::WorkRequest, //
};

/// Send requests for an endpoint, one behind the other, that have a place in its queue but are not
/// posted yet.
///
/// Each that has been [pushed](Chain::push) ends exactly once: as others, or with
/// [`WrError::Post`](crate::WrError::Post). They needn't be of the same type. Dropping the chain
/// ends them all with ECANCELED.
///
/// # Invariants
///
/// `first` is null, or the beginning of a list of rooms up to `last`, each of a request that has a
/// slot of the endpoint's send queue and was neither posted nor refused.
///
/// # Examples
///
/// ```ignore
/// let mut chain = endpoint.begin_chain()?;
/// for request in requests {
///     chain.push(request).map_err(|refused| refused.error)?;
/// }
/// // One word to the device for all of them.
/// chain.post()?;
/// ```
pub struct Chain {
    endpoint: Arc<Endpoint>,
    first: *mut b::rdma_helper_room,
    last: *mut b::rdma_helper_room,
    tail: Option<Tail>,
}

/// Silent requests that nothing is behind yet which could tell how they have ended.
///
/// # Invariants
///
/// `last` is the `cqe` of the last of `count` silent requests of the endpoint `of`, each of which follows the one
/// before it. They have not ended, or nothing is posted there any more.
pub struct Tail {
    of: u64,
    last: NonNull<b::ib_cqe>,
    count: usize,
}

// SAFETY: Requests are not tied to a task.
unsafe impl Send for Tail {}

// SAFETY: There is nothing to do with a shared reference.
unsafe impl Sync for Tail {}

/// So many silent requests at most before one that isn't, or half of the queue if that is less: their places
/// come back with that.
const MAX_UNSIGNALED: usize = 16;

/// Requests of a chain that were not posted. Dropping it tells them why, in any context.
pub struct Unposted {
    chain: Chain,
    error: Error,
}

impl Unposted {
    /// What the driver says.
    pub fn error(&self) -> Error {
        self.error
    }
}

impl Drop for Unposted {
    fn drop(&mut self) {
        self.chain.refuse(self.error);
    }
}

// SAFETY: Requests are not tied to a task, nor is who is told of their end.
unsafe impl Send for Chain {}

// SAFETY: There is nothing to do with a shared reference.
unsafe impl Sync for Chain {}

impl Endpoint {
    /// Begins to post several send requests in one go. Any context.
    ///
    /// # Errors
    ///
    /// ENOTCONN if it isn't connected yet.
    pub fn begin_chain(self: &Arc<Self>) -> Result<Chain> {
        match self.is_open() {
            true => Ok(Chain::new(self.clone())),
            false => Err(errno::enotconn()),
        }
    }

    /// As [`begin_chain`](Self::begin_chain), behind the silent requests that were posted last, as
    /// [`Chain::post`] has returned them.
    pub fn begin_chain_behind(self: &Arc<Self>, tail: &mut Option<Tail>) -> Result<Chain> {
        let mut chain = self.begin_chain()?;
        // Others' are none of this one's.
        chain.tail = tail.take().filter(|tail| tail.of == self.id());
        Ok(chain)
    }
}

impl Chain {
    fn new(endpoint: Arc<Endpoint>) -> Self {
        // INVARIANT: There is none.
        Self {
            endpoint,
            first: null_mut(),
            last: null_mut(),
            tail: None,
        }
    }

    /// Puts a request behind the others. Any context.
    pub fn push<K, F>(
        &mut self,
        request: KBox<Request<WorkRequest<K>, F>>,
    ) -> Result<(), NotPosted<WorkRequest<K>, F>> {
        let cqe = self.add(request)?;
        if let Some(tail) = self.tail.take() {
            // SAFETY: Both have slots of this queue. It is posted behind those, by the invariant of `Tail`,
            // and ends with nothing else.
            unsafe { Outstanding::follow(cqe.as_ptr(), tail.last.as_ptr()) };
        }
        Ok(())
    }

    /// Puts a request behind the others that completes only if it fails; how it has ended is told with one
    /// behind it, also of a later chain, or when the queue pair is drained. Any context.
    pub fn push_unsignaled<K, F>(
        &mut self,
        request: KBox<Request<WorkRequest<K>, F>>,
    ) -> Result<(), NotPosted<WorkRequest<K>, F>> {
        let count = self.tail.as_ref().map_or(0, |tail| tail.count);
        if count >= MAX_UNSIGNALED.min(self.endpoint.qp().sends().depth() / 2) {
            return self.push(request);
        }
        let last = self.add(request)?;
        // SAFETY: It has just been given a slot, and is not posted yet; its room is the last one, and there
        // as long. What is before it is silent, by the invariant of `Tail`.
        unsafe {
            Outstanding::silence(last.as_ptr());
            b::rdma_helper_signal(self.last, false);
            if let Some(before) = self.tail.take() {
                Outstanding::follow(last.as_ptr(), before.last.as_ptr());
            }
        }
        // INVARIANT: It is the last one, and follows the one that was.
        let count = count + 1;
        let of = self.endpoint.id();
        self.tail = Some(Tail { of, last, count });
        Ok(())
    }

    /// Puts a request behind the others, and returns its `cqe`.
    fn add<K, F>(
        &mut self,
        request: KBox<Request<WorkRequest<K>, F>>,
    ) -> Result<NonNull<b::ib_cqe>, NotPosted<WorkRequest<K>, F>> {
        if let Err(error) = self.endpoint.qp().check_inline(&request) {
            return Err(NotPosted { error, request });
        }
        let queue = self.endpoint.qp().sends();
        // SAFETY: It is posted or refused at the end of the chain. The endpoint, which the chain
        // has, keeps its queue until completions have ended.
        let (room, cqe) = unsafe { stage(queue, request) }?;
        let room = room.as_ptr();
        // INVARIANT: It has a slot, and is the last one now.
        if self.first.is_null() {
            self.first = room;
        } else {
            // SAFETY: Both are there by the type invariant.
            unsafe { b::rdma_helper_link(self.last, room) };
        }
        self.last = room;
        Ok(cqe)
    }

    /// Puts the requests of another chain behind those that there are; those of another endpoint are given up.
    /// Any context.
    pub fn append(&mut self, mut other: Self) {
        if other.is_empty() || !Arc::ptr_eq(&self.endpoint, &other.endpoint) {
            return;
        }
        if let Some(tail) = self.tail.take() {
            // SAFETY: By the type invariants, both have slots of this queue. The first of the others is
            // posted behind those, and ends with nothing else.
            unsafe {
                Outstanding::follow(b::rdma_helper_cqe(other.first), tail.last.as_ptr());
            }
        }
        self.tail = other.tail.take();
        // INVARIANT: The others are behind the last one of these, and this chain's alone.
        if self.first.is_null() {
            self.first = other.first;
        } else {
            // SAFETY: Both are there by the type invariant.
            unsafe { b::rdma_helper_link(self.last, other.first) };
        }
        self.last = other.last;
        other.first = null_mut();
    }

    /// Whether there is no request.
    pub fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Posts them all; returns the silent ones at the end, which the next chain has to begin
    /// [behind](Endpoint::begin_chain_behind). Any context.
    ///
    /// # Errors
    ///
    /// What the driver says. Those behind the last one that it has taken have been told.
    pub fn post(self) -> Result<Option<Tail>> {
        self.try_post().map_err(|unposted| unposted.error())
    }

    /// As [`Chain::post`]; on an error, gives back those behind the last one that the driver has
    /// taken, which haven't been told yet. Any context.
    pub fn try_post(mut self) -> Result<Option<Tail>, Unposted> {
        if self.is_empty() {
            return Ok(self.tail.take());
        }
        let qp = self.endpoint.qp().as_raw();
        let mut bad = null_mut();
        // SAFETY: The queue pair is there as long as the endpoint. The requests stay until the device
        // knows of them, and what they refer to until they have completed; their rooms aren't looked
        // at after that.
        let posted = to_result(unsafe { b::rdma_helper_post_chain(qp, self.first, &mut bad) });
        // INVARIANT: What has been posted is the chain's no more.
        self.first = if posted.is_ok() { null_mut() } else { bad };
        match posted {
            Ok(()) => Ok(self.tail.take()),
            Err(error) => Err(Unposted { chain: self, error }),
        }
    }

    /// Refuses those that there are.
    fn refuse(&mut self, error: Error) {
        while !self.first.is_null() {
            // SAFETY: By the type invariant the room is there, and of a request with a slot of a
            // queue that the endpoint has. It goes when that is told.
            unsafe {
                let (room, last) = (self.first, self.first == self.last);
                let cqe = b::rdma_helper_cqe(room);
                // INVARIANT: The others are still there.
                self.first = if last {
                    null_mut()
                } else {
                    b::rdma_helper_next(room)
                };
                Outstanding::refuse(cqe, error);
            }
        }
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        self.refuse(errno::ecanceled());
    }
}
