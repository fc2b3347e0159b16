// SPDX-License-Identifier: GPL-2.0

//! Work requests that are waited for, and how they end.

use kernel::{
    container_of,
    error::to_result,
    fmt,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        Completion, //
    },
    types::Opaque, //
};

use crate::credits::Credits;

/// How a work request failed.
#[derive(Clone, Copy, Debug)]
pub enum WrError {
    /// It was refused by the driver, and never reached the device.
    Post(Error),
    /// The queue pair went into error before it was its turn, or while it was. It may have been
    /// carried out or not. rxe reports a request like that too whose own failure was the cause.
    Flushed,
    /// The device failed it, and the queue pair went into error. Of its effects nothing is known.
    Failed(WcStatus),
}

impl From<WrError> for Error {
    fn from(error: WrError) -> Self {
        match error {
            WrError::Post(error) => error,
            WrError::Flushed | WrError::Failed(_) => EIO,
        }
    }
}

impl fmt::Display for WrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Post(err) => write!(f, "not posted ({})", err.to_errno()),
            Self::Flushed => f.write_str("flushed"),
            Self::Failed(status) => fmt::Display::fmt(status, f),
        }
    }
}

/// The status of a completion that is neither success nor a flush.
///
/// Values are those of the C `enum ib_wc_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WcStatus(u32);

impl WcStatus {
    /// The C value.
    pub fn as_raw(self) -> u32 {
        self.0
    }
}

impl fmt::Display for WcStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: The function takes any value, and returns a string that is always there.
        let text = unsafe { CStr::from_char_ptr(rdma_bindings::ib_wc_status_msg(self.0)) };
        fmt::Display::fmt(text, f)
    }
}

/// A task that waits for the completion of its work requests.
///
/// It lives on the stack of that task, which doesn't leave before [`Waiter::wait`] has returned if
/// a request was posted.
///
/// # Invariants
///
/// `left` is one more than the number of completions to come, until [`Waiter::wait`] takes that
/// one; for each of them a credit of `credits` is kept.
#[pin_data]
pub(crate) struct Waiter<'a> {
    #[pin]
    cqe: Opaque<rdma_bindings::ib_cqe>,
    credits: &'a Credits,
    left: Atomic<u32>,
    status: Atomic<u32>,
    #[pin]
    done: Completion,
}

impl<'a> Waiter<'a> {
    /// Initializes a waiter, for requests that take a credit each.
    pub(crate) fn new(credits: &'a Credits) -> impl PinInit<Self> + 'a {
        // INVARIANT: Nothing has been posted.
        pin_init!(Self {
            cqe: Opaque::new(rdma_bindings::ib_cqe {
                done: Some(Self::complete),
            }),
            credits,
            left: Atomic::new(1),
            status: Atomic::new(rdma_bindings::ib_wc_status_IB_WC_SUCCESS),
            done <- Completion::new(),
        })
    }

    /// Posts a request by `post`, which gets a `cqe` to post it with. Sleeps, uninterruptibly,
    /// until there is a credit.
    ///
    /// Unless it fails, there must be exactly one completion; the waiter is to be
    /// [waited for](Waiter::wait) before it goes.
    pub(crate) fn post(
        self: Pin<&Self>,
        post: impl FnOnce(*mut rdma_bindings::ib_cqe) -> c_int,
    ) -> Result<(), WrError> {
        let credit = self.credits.take();
        // INVARIANT: Counted before it can complete, and not if it never will.
        self.left.fetch_add(1, Relaxed);
        match to_result(post(self.get_ref().cqe.get())) {
            Ok(()) => {
                credit.keep();
                Ok(())
            }
            Err(error) => {
                self.left.fetch_sub(1, Relaxed);
                Err(WrError::Post(error))
            }
        }
    }

    /// Whether a completion has come that is not a success. Doesn't sleep.
    pub(crate) fn has_failed(self: Pin<&Self>) -> bool {
        self.status.load(Relaxed) != rdma_bindings::ib_wc_status_IB_WC_SUCCESS
    }

    /// Waits for all completions, and says whether all were successes. To be called once. Sleeps,
    /// uninterruptibly.
    pub(crate) fn wait(self: Pin<&Self>) -> Result<(), WrError> {
        // Acquires what the callbacks have released.
        if self.left.fetch_sub(1, Full) != 1 {
            self.done.wait_for_completion();
        }
        match self.status.load(Relaxed) {
            rdma_bindings::ib_wc_status_IB_WC_SUCCESS => Ok(()),
            rdma_bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR => Err(WrError::Flushed),
            status => Err(WrError::Failed(WcStatus(status))),
        }
    }

    /// The completion callback, in softirq context.
    ///
    /// # Safety
    ///
    /// `wc` must be the completion of a request posted with a waiter's `cqe`, and the waiter still
    /// waiting.
    unsafe extern "C" fn complete(_cq: *mut rdma_bindings::ib_cq, wc: *mut rdma_bindings::ib_wc) {
        // SAFETY: The caller vouches for `wc`; the `cqe` is the member that kernel users set.
        let (cqe, status) = unsafe { (*(*wc).__bindgen_anon_1.wr_cqe.as_ref(), (*wc).status) };
        let cqe = cqe.cast::<Opaque<rdma_bindings::ib_cqe>>();
        // SAFETY: The `cqe` is the member of a waiter, which is there until `wait()` returns, and
        // that is not before the last callback's `fetch_sub()` or the end of its `complete_all()`.
        let waiter = unsafe { &*container_of!(cqe, Waiter<'_>, cqe) };

        // A failure, of which there can be one, counts more than the flushes that follow it.
        if status != rdma_bindings::ib_wc_status_IB_WC_SUCCESS
            && (status != rdma_bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR
                || waiter.status.load(Relaxed) == rdma_bindings::ib_wc_status_IB_WC_SUCCESS)
        {
            waiter.status.store(status, Relaxed);
        }
        // Before the waiter's task can leave, and the queue pair with it.
        waiter.credits.give_back();
        if waiter.left.fetch_sub(1, Full) == 1 {
            waiter.done.complete_all();
        }
    }
}
