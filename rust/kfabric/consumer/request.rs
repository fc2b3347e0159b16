// SPDX-License-Identifier: GPL-2.0

//! Requests: transfers with the memory that they are for.

use super::{
    Local,
    Pieces,
    Run, //
};
use crate::support::{
    errno::Errno,
    noio::NoIo, //
};
use core::ptr;
use kernel::{
    ffi::c_void,
    prelude::*, //
};

/// A request: memory for a transfer, and a context of the consumer's own.
///
/// Posting it to an endpoint gives it away, and it comes back with the end of the transfer, from the
/// endpoint's [`RequestQueue`](super::RequestQueue). It can be posted again then, to any endpoint of
/// that queue: one that is there needs no memory, so it can be posted in any context.
///
/// # Soundness
///
/// While a transfer is under way, its memory may be read and written by the device, so nobody else may
/// have it, nor a reference into it, and it may not be freed:
///
/// - Who posts a request has none any more. It is on the heap, and the provider has its address, as the
///   transfer's context; what the queue gives back is made of that.
/// - A transfer ends once, so the request comes back once. As long as its end hasn't come, or isn't read,
///   nobody has it. If the endpoint or the queue is forgotten, the request is never freed. Nor is it if
///   the device won't let go of it.
/// - A queue has requests of one type only, as all endpoints that are bound to it.
///
/// # Examples
///
/// ```
/// use kernel::prelude::*;
/// use kfabric::consumer::Request;
///
/// let mut request = Request::new(KVec::from_elem(0, 4096, GFP_KERNEL)?, "the context")?;
/// request.memory_mut()[..5].copy_from_slice(b"hello");
/// request.set_part(0, 5)?;
/// # Ok::<(), Error>(())
/// ```
pub struct Request<B, C = ()>(KBox<Inner<B, C>>);

struct Inner<B, C> {
    memory: B,
    context: C,
    /// Where the bytes of the transfer begin, and how many they are, if not all.
    part: Option<(usize, usize)>,
}

/// Which request it is, for [taking it back](super::MsgEndpoint::cancel). Another one may have it when that one
/// isn't there any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId(usize);

impl RequestId {
    /// The context of its transfer.
    pub(super) fn context(self) -> *mut c_void {
        // It is compared with others, and never followed.
        ptr::without_provenance_mut(self.0)
    }
}

impl<B: Local, C: Send + 'static> Request<B, C> {
    /// A request for all of the memory. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`.
    pub fn new(memory: B, context: C) -> Result<Self, Errno> {
        let _noio = NoIo::enter();
        let inner = Inner {
            memory,
            context,
            part: None,
        };
        Ok(Self(KBox::new(inner, GFP_KERNEL)?))
    }

    /// Takes only `len` bytes from `offset` on, until the next such call. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there aren't that many.
    pub fn set_part(&mut self, offset: usize, len: usize) -> Result<(), Errno> {
        let end = offset.checked_add(len);
        let is_there = end.is_some_and(|end| end <= self.0.memory.bytes());
        is_there.then_some(()).ok_or(Errno::EINVAL)?;
        self.0.part = Some((offset, len));
        Ok(())
    }

    /// The memory. Any context.
    pub fn memory(&self) -> &B {
        &self.0.memory
    }

    /// The memory. Any context.
    pub fn memory_mut(&mut self) -> &mut B {
        &mut self.0.memory
    }

    /// The context. Any context.
    pub fn context(&self) -> &C {
        &self.0.context
    }

    /// The context. Any context.
    pub fn context_mut(&mut self) -> &mut C {
        &mut self.0.context
    }

    /// Which request it is; the same as long as it is there, posted or not. Any context.
    pub fn id(&self) -> RequestId {
        RequestId(ptr::from_ref(&*self.0).addr())
    }

    /// Gives back what it was made of. Any context.
    pub fn into_inner(self) -> (B, C) {
        let inner = KBox::into_inner(self.0);
        (inner.memory, inner.context)
    }

    /// How many bytes are transferred.
    pub(super) fn bytes(&self) -> usize {
        self.part().1
    }

    /// Where they begin, and how many they are.
    fn part(&self) -> (usize, usize) {
        self.0.part.unwrap_or_else(|| (0, self.0.memory.bytes()))
    }

    /// Is its memory in one place?
    pub(super) fn is_one_run(&self) -> bool {
        self.0.memory.run().is_some()
    }

    /// What to post it with, if that is in one place, which is good until something else is done to it.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the memory hasn't the bytes (any more) that were asked for.
    pub(super) fn run(&self) -> Result<Option<Run>, Errno> {
        let Some(run) = self.0.memory.run() else {
            return Ok(None);
        };
        match self.0.part {
            Some((offset, len)) => run.part(offset, len).map(Some),
            None => Ok(Some(run)),
        }
    }

    /// The same, wherever it is.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: as for `run`, or it is in more than 16 places.
    pub(super) fn pieces(&self) -> Result<Pieces, Errno> {
        let (offset, len) = self.part();
        let mut pieces = Pieces::of_part(offset, len);
        self.0.memory.add_to(&mut pieces)?;
        pieces.is_whole().then_some(pieces).ok_or(Errno::EINVAL)
    }

    /// Gives it away, as the context of a transfer.
    pub(super) fn into_context(self) -> *mut c_void {
        let raw = KBox::into_raw(self.0);
        // It comes back as a number.
        raw.expose_provenance();
        raw.cast()
    }

    /// Takes back the request with this context; `None` if that is 0.
    ///
    /// # Safety
    ///
    /// It is 0, or came from [`into_context`](Self::into_context) of a request of this type, which nobody
    /// else takes back.
    pub(super) unsafe fn from_context(context: usize) -> Option<Self> {
        let raw: *mut Inner<B, C> = ptr::with_exposed_provenance_mut(context);
        // SAFETY: By the requirements of this function.
        (!raw.is_null()).then(|| Self(unsafe { KBox::from_raw(raw) }))
    }
}
