// SPDX-License-Identifier: GPL-2.0

//! Work requests that are waited for, and how they end.

use kernel::{
    container_of,
    fmt,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Completion, //
    },
    types::Opaque, //
};

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

/// A task that waits for the completion of one work request.
///
/// It lives on the stack of that task, which doesn't leave before [`Waiter::wait`] has returned if
/// the request was posted.
#[pin_data]
pub(crate) struct Waiter {
    #[pin]
    cqe: Opaque<rdma_bindings::ib_cqe>,
    status: Atomic<u32>,
    #[pin]
    done: Completion,
}

impl Waiter {
    /// Initializes a waiter.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            cqe: Opaque::new(rdma_bindings::ib_cqe {
                done: Some(Self::complete),
            }),
            status: Atomic::new(rdma_bindings::ib_wc_status_IB_WC_SUCCESS),
            done <- Completion::new(),
        })
    }

    /// What the work request is to be posted with.
    pub(crate) fn cqe(self: Pin<&Self>) -> *mut rdma_bindings::ib_cqe {
        self.get_ref().cqe.get()
    }

    /// Waits for the completion. Sleeps, uninterruptibly.
    pub(crate) fn wait(self: Pin<&Self>) -> Result<(), WrError> {
        self.done.wait_for_completion();
        // The completion orders this after the store.
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
        // that is not before the end of `complete_all()`.
        let waiter = unsafe { &*container_of!(cqe, Waiter, cqe) };

        waiter.status.store(status, Relaxed);
        waiter.done.complete_all();
    }
}
