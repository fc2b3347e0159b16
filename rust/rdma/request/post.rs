// SPDX-License-Identifier: GPL-2.0

//! Posting requests of their own.

use super::{
    NotPosted,
    Posted,
    Request, //
};
use crate::{
    credits::Credit,
    errno,
    outstanding::{
        Outstanding,
        Owner, //
    },
    qp::{
        Init,
        Qp,
        ReadyToReceive,
        ReadyToSend, //
    },
    raw_wr::RawWr,
    srq::Srq,
    wr::{
        Receive,
        WorkRequest, //
    },
};
use core::ptr::NonNull;
use kernel::prelude::*;

/// Posts a request. Any context.
///
/// # Safety
///
/// `qp` must be there, and its completions must end before `queue` goes.
pub(super) unsafe fn post<W: Posted, F>(
    qp: *mut rdma_bindings::ib_qp,
    queue: &Outstanding,
    request: KBox<Request<W, F>>,
) -> Result<(), NotPosted<W, F>> {
    give(queue, request, |given, credit, owner, raw, _room| {
        // SAFETY: `qp` is there as the caller promises. The box, and in it what the request refers
        // to, stays until the owner has been told, which takes it.
        unsafe { given.post(qp, credit, owner, raw) }
    })
}

/// Where a request is that is to be posted with others: its room, and what its completion leads to.
pub(crate) type Staged = (
    NonNull<rdma_bindings::rdma_helper_room>,
    NonNull<rdma_bindings::ib_cqe>,
);

/// Gets a request ready to be posted with others, in the room that is returned.
///
/// # Safety
///
/// It must then be posted to the queue, and `queue` stay until its completions have ended; or be
/// [refused](Outstanding::refuse).
pub(crate) unsafe fn stage<W: Posted, F>(
    queue: &Outstanding,
    request: KBox<Request<W, F>>,
) -> Result<Staged, NotPosted<W, F>> {
    let mut staged = (NonNull::dangling(), NonNull::dangling());
    give(queue, request, |queue, credit, owner, raw, room| {
        // SAFETY: The box, in which the owner is, stays until that has been told, which takes it.
        let cqe = unsafe { queue.reserve(credit, owner) }.ok_or(EBUSY)?;
        // SAFETY: The box stays, with the room and what the request refers to; so does the queue,
        // with the `cqe`, as the caller promises.
        let filled = unsafe { raw.fill(room.as_ptr(), cqe) };
        match (filled, NonNull::new(cqe)) {
            (Ok(()), Some(cqe)) => {
                staged = (room, cqe);
                Ok(())
            }
            (filled, _) => {
                // SAFETY: Just reserved, and nothing was posted with it.
                unsafe { Outstanding::unreserve(cqe) };
                filled.and(Err(EINVAL))
            }
        }
    })?;
    Ok(staged)
}

/// Gives a request away by `post`, after an error of which nobody may be told of it.
fn give<W: Posted, F>(
    queue: &Outstanding,
    request: KBox<Request<W, F>>,
    post: impl FnOnce(
        &Outstanding,
        &Credit<'_>,
        NonNull<Owner>,
        RawWr,
        NonNull<rdma_bindings::rdma_helper_room>,
    ) -> Result,
) -> Result<(), NotPosted<W, F>> {
    let refused = |error, request| Err(NotPosted { error, request });
    if queue.broken().is_some() {
        return refused(errno::enotconn(), request);
    }
    let Some(credit) = queue.credits().try_take() else {
        return refused(EAGAIN, request);
    };
    let request = KBox::into_raw(request);
    // SAFETY: `request` comes from a box, so it is there, and so are its members.
    let (raw, owner, room) = unsafe {
        (
            (*request).request.raw(),
            NonNull::new_unchecked(&raw mut (*request).owner),
            NonNull::new_unchecked((*request).room.get()),
        )
    };
    if let Err(error) = post(queue, &credit, owner, raw, room) {
        // SAFETY: The request was not given away, so nobody is told, and the box is ours again.
        return refused(error, unsafe { KBox::from_raw(request) });
    }
    credit.keep();
    Ok(())
}

impl Qp<ReadyToSend> {
    /// Posts a send request. Any context.
    pub fn post<K, F>(
        &self,
        request: KBox<Request<WorkRequest<K>, F>>,
    ) -> Result<(), NotPosted<WorkRequest<K>, F>> {
        self.post_send(request)
    }
}

impl<S> Qp<S> {
    /// As [`Qp::post`]; what the driver says if it isn't ready. Any context.
    pub(crate) fn post_send<K, F>(
        &self,
        request: KBox<Request<WorkRequest<K>, F>>,
    ) -> Result<(), NotPosted<WorkRequest<K>, F>> {
        if let Err(error) = self.check_inline(&request) {
            return Err(NotPosted { error, request });
        }
        // SAFETY: The queue pair is there as long as `self`; its completions end before what it
        // holds of its requests goes.
        unsafe { post(self.as_raw(), self.sends(), request) }
    }
}

impl<S> Qp<S> {
    /// Checks that the driver copies the bytes that it has to copy of a send request. Any context.
    ///
    /// pvrdma and mlx4 would have the device read them at their addresses of the processor.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if it copies fewer: the request was [made](crate::Gather::copied) for another queue pair.
    pub(crate) fn check_inline<K, F>(&self, request: &Request<WorkRequest<K>, F>) -> Result {
        match request.request.inline_bytes() <= self.inline_limit() {
            true => Ok(()),
            false => Err(EINVAL),
        }
    }
}

/// States of a queue pair in which it takes receive requests.
pub trait Receives {}

impl Receives for Init {}
impl Receives for ReadyToReceive {}
impl Receives for ReadyToSend {}

impl<S: Receives> Qp<S> {
    /// Posts a receive request. Any context.
    pub fn post_receive<K, F>(
        &self,
        request: KBox<Request<Receive<K>, F>>,
    ) -> Result<(), NotPosted<Receive<K>, F>> {
        // SAFETY: The queue pair is there as long as `self`; its completions end before what it
        // holds of its requests goes.
        unsafe { post(self.as_raw(), self.receives(), request) }
    }
}

impl Srq {
    /// Posts a receive request, for whichever queue pair takes it. Any context.
    pub fn post<K, F>(
        &self,
        request: KBox<Request<Receive<K>, F>>,
    ) -> Result<(), NotPosted<Receive<K>, F>> {
        give(self.queue(), request, |queue, credit, owner, raw, _room| {
            // SAFETY: The box, in which the owner is, stays until that has been told, which takes it.
            let cqe = unsafe { queue.reserve(credit, owner) }.ok_or(EBUSY)?;
            // SAFETY: The queue is there as long as `self`, and each queue pair that shares it has a
            // reference. The slot is `queue`'s, which all their completion queues keep; what the
            // request refers to stays in the box.
            unsafe { raw.post_shared(self.as_raw(), cqe) }.inspect_err(|_| {
                // SAFETY: Just reserved, and nothing was posted with it.
                unsafe { Outstanding::unreserve(cqe) }
            })
        })
    }
}
