// SPDX-License-Identifier: GPL-2.0

//! Work requests of their own: on the heap, each with its own completion.
//!
//! Beside waiting for requests on the stack this is the other way to have one
//! posted: nobody waits, and what was given with it is called when it has ended.

#[cfg(CONFIG_KUNIT = "y")]
mod kunit;
mod post;

pub(crate) use self::post::stage;
pub use self::post::Receives;

use kernel::{
    container_of,
    prelude::*,
    types::Opaque, //
};

use core::{
    mem,
    ptr::NonNull, //
};

use crate::{
    outstanding::{
        End,
        Owner, //
    },
    raw_wr::RawWr,
    wc::{
        Arrival,
        CqId,
        Invalidated,
        WrError, //
    },
    wr::{
        Receive,
        WorkRequest, //
    }, //
};

/// A request on the heap, with what is to be called when it has ended.
///
/// Each request that has been posted ends exactly once: it completes, or its queue pair is
/// destroyed before, or could not even be destroyed.
///
/// # Examples
///
/// ```ignore
/// let request = Request::new(
///     write,
///     |ended: Ended<'_, _>| match ended.result {
///         Ok(_) => pr_info!("written\n"),
///         Err(error) => pr_warn!("not written: {error}\n"),
///     },
///     GFP_ATOMIC,
/// )?;
/// if let Err(refused) = qp.post(request) {
///     // It was not posted, and comes back with all that it refers to.
///     return Err(refused.error);
/// }
/// ```
pub struct Request<W, F> {
    owner: Owner,
    /// For when several are posted in one go.
    room: Opaque<rdma_bindings::rdma_helper_room>,
    request: W,
    then: F,
}

/// What is done when a request has ended; any function of one argument, for one.
pub trait Then<W>: Send + 'static {
    /// It has ended. In softirq context, in a task that looks for completions or where a queue pair
    /// is destroyed: this must not sleep, also not by what it drops.
    fn ended(self, ended: Ended<'_, W>);
}

impl<W, F: FnOnce(Ended<'_, W>) + Send + 'static> Then<W> for F {
    fn ended(self, ended: Ended<'_, W>) {
        self(ended)
    }
}

/// A request that has ended. Made by this crate only: it is believed.
#[non_exhaustive]
pub struct Ended<'a, W> {
    /// How; with what has come, if it was a receive.
    pub result: Result<Arrival, WrError>,
    /// What the device's vendor has to say of an error.
    pub vendor_error: u32,
    /// The key of this side that the peer had the device invalidate, as proof of that.
    pub invalidated: Option<Invalidated<'a>>,
    /// The completion queue that told of it, if one has.
    pub at: Option<CqId>,
    /// The request, with what it refers to; [`None`] if that was leaked, since the device may use
    /// it at any time.
    pub request: Option<W>,
}

/// A request that was not posted.
pub struct NotPosted<W, F> {
    /// `EAGAIN` if as many as the queue is deep are under way; `ENOTCONN` if the queue pair is broken;
    /// what the driver said.
    pub error: Error,
    /// The request.
    pub request: KBox<Request<W, F>>,
}

impl<W, F> NotPosted<W, F> {
    /// Why, and what was to be done when it had ended. What the request refers to is let go of.
    pub fn into_then(self) -> (Error, F) {
        (self.error, KBox::into_inner(self.request).then)
    }
}

/// What the queue needs to know of a request.
pub(crate) trait Posted {
    /// What is posted.
    fn raw(&self) -> RawWr;
}

impl<K> Posted for WorkRequest<K> {
    fn raw(&self) -> RawWr {
        WorkRequest::raw(self)
    }
}

impl<K> Posted for Receive<K> {
    fn raw(&self) -> RawWr {
        Receive::raw(self)
    }
}

impl<W: Send + 'static, F: Then<W>> Request<W, F> {
    /// A request that has not been posted. Doesn't sleep if `flags` don't allow it.
    ///
    /// When it has ended, `then` is told.
    pub fn new(request: W, then: F, flags: kernel::alloc::Flags) -> Result<KBox<Self>> {
        Self::try_new(request, then, flags).map_err(|_| ENOMEM)
    }

    /// As [`Request::new`]; gives `then` back, and lets go of what the request refers to, if there
    /// is no memory.
    pub fn try_new(request: W, then: F, flags: kernel::alloc::Flags) -> Result<KBox<Self>, F> {
        let Ok(room) = KBox::new_uninit(flags) else {
            return Err(then);
        };
        let this = Self {
            // SAFETY: `ended` is called with a pointer to the member of a box that `post` has given
            // away, once.
            owner: unsafe { Owner::new(Self::ended) },
            room: Opaque::uninit(),
            request,
            then,
        };
        Ok(KBox::write(room, this))
    }

    /// The request has ended.
    ///
    /// # Safety
    ///
    /// `owner` must be the member of a box that was given away for this.
    unsafe fn ended(owner: NonNull<Owner>, end: &End<'_>) {
        // SAFETY: By this function's requirements `owner` is the member of a box that was given
        // away for this.
        let this = unsafe { KBox::from_raw(container_of!(owner.as_ptr(), Self, owner)) };
        let this = KBox::into_inner(this);
        let completion;
        let (mut vendor_error, mut invalidated, mut at) = (0, None, None);
        let (result, request) = match end {
            End::Completed(told) => {
                completion = told.read();
                (vendor_error, invalidated) = (completion.vendor_error, completion.invalidated());
                at = Some(completion.at);
                let result = completion.status.to_result();
                (result.map(|()| completion.arrival), Some(this.request))
            }
            End::Refused(error) => (Err(WrError::Post(*error)), Some(this.request)),
            End::Gone => (Err(WrError::TimedOut), Some(this.request)),
            End::Lost => {
                // The device may use at any time what it refers to.
                mem::forget(this.request);
                (Err(WrError::Lost), None)
            }
        };
        this.then.ended(Ended {
            result,
            vendor_error,
            invalidated,
            at,
            request,
        });
    }
}
