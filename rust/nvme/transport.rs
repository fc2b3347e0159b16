// SPDX-License-Identifier: GPL-2.0

//! The interface of a transport.

use crate::{
    events::Events,
    pdu::TagParts,
    prelude::*,
    request::Request, //
};
use kernel::{
    str::CStrExt,
    time::Delta, //
};

/// An NVMe over Fabrics transport.
///
/// nvme-core has the controllers and namespaces, this crate the order of setup and teardown. A
/// transport finds the target and connects queues.
pub trait Transport: TagParts<Queue: TransportQueue<Self>> {
    /// Whether [`queue_rq`](TransportQueue::queue_rq) may sleep.
    const MAY_SLEEP: bool;

    /// How long a stopped queue waits for its capsules.
    const STOP_LIMIT: Delta = Delta::from_secs(10);

    /// The place of a target. It exists as long as the controller, so over several connections.
    type Controller: Send + Sync;

    /// Finds a target. May sleep.
    ///
    /// # Errors
    ///
    /// They become the error of the write to `/dev/nvme-fabrics`.
    fn controller(options: &Options<'_>) -> Result<Self::Controller>;

    /// Makes the parts of a tag of a queue, where queue 0 is the admin queue. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`.
    fn slot(controller: &Self::Controller, qid: u16) -> Result<(Self::Capsule, Self::Slot)>;

    /// Connects a queue. Sleeps until the target has answered, or `is_cancelled` returns true, which
    /// the transport must call several times a second.
    ///
    /// The queue reports to `events` from the moment when this is called.
    ///
    /// # Errors
    ///
    /// - `ECONNREFUSED`, `ETIMEDOUT`, `EINTR` and others, which nvme-cli prints.
    fn connect(
        controller: &Self::Controller,
        config: QueueConfig,
        events: Events<Self>,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Self::Queue>;
}

/// A connected queue of the transport `T`: sends commands, and gives the target access to the data of
/// requests.
///
/// # Rules
///
/// - A request must not end while the target can reach its data. So the transport ends the key
///   before it calls [`Request::complete`], and in [`abandon`](Self::abandon).
/// - Each [`Request`] must be given back in bounded time after [`stop`](Self::stop) was called: the
///   crate waits for it.
pub trait TransportQueue<T: TagParts> {
    /// Sends a request: gives the target access to its data, completes the command and posts it.
    /// `last` is false if another request follows at once, or [`commit_rqs`](Self::commit_rqs).
    ///
    /// # Context
    ///
    /// Any, or process context if [`MAY_SLEEP`](Transport::MAY_SLEEP). Allocations must not wait for
    /// I/O.
    ///
    /// # Errors
    ///
    /// Must return the same request, with its key ended.
    fn queue_rq(&self, request: Request<T>, last: bool) -> Result<(), (Refusal, Request<T>)>;

    /// Returns the maximum number of pages of 4096 bytes in one request. Any context.
    fn max_segments(&self) -> u32;

    /// Posts the requests that wait for the last one of a chain. The context is that of
    /// [`queue_rq`](Self::queue_rq).
    fn commit_rqs(&self);

    /// Sends the command that asks for asynchronous events. May sleep.
    fn async_event(&self, command: &[u8; 64]) -> Result;

    /// Looks for what has completed. Returns whether there was anything. Any context.
    fn poll(&self) -> bool;

    /// Ends the key of a request that nvme-core will cancel, after [`stop`](Self::stop). The request is
    /// that of `slot`. May sleep.
    ///
    /// If the device does not release the data, the transport must raise the reference counts of
    /// the pages. If the device has not returned the capsule, the transport should put another one into
    /// `capsule`: without one, the tag can't be used again.
    fn abandon(&self, capsule: &mut Option<T::Capsule>, slot: &mut T::Slot);

    /// Ends the connection of a queue, so that each [`Sending`](crate::Sending) comes back. The crate
    /// [polls](Self::poll) until that has happened, and gives up after
    /// [`STOP_LIMIT`](Transport::STOP_LIMIT). The queue stays for [`abandon`](Self::abandon). May sleep.
    fn stop(&self);
}

/// The parameters of a queue that is connected.
#[derive(Clone, Copy, Default)]
pub struct QueueConfig {
    /// The number of the queue. The admin queue has number 0.
    pub qid: u16,
    /// Number of entries of the queue. The target gets it as the size of the host's receive queue
    /// (HRQSIZE).
    pub entries: u16,
    /// Number of entries less 1, the maximum number of commands under way. The target gets it as
    /// the size of the submission queue (HSQSIZE).
    pub sqsize: u16,
    /// The controller that an I/O queue belongs to. 0 for the admin queue.
    pub cntlid: u16,
    /// Number of bytes of data that the target accepts in a capsule behind the command.
    pub in_capsule: u32,
    /// A CPU whose requests use the queue.
    pub cpu: Option<u32>,
    /// Completions are found by [`TransportQueue::poll`] alone.
    pub is_polled: bool,
}

/// The reason why a transport does not accept a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A resource is short. The block layer queues the request again.
    Busy,
    /// The connection is broken. The request fails over or waits for the next connection.
    Broken,
    /// The request can't be sent at all. It ends with this error.
    Failed(Error),
}

/// The options of a controller.
///
/// # Invariants
///
/// `raw` is valid while `'a` lasts, and nobody changes it.
pub struct Options<'a> {
    raw: NonNull<b::nvmf_ctrl_options>,
    lifetime: PhantomData<&'a b::nvmf_ctrl_options>,
}

impl<'a> Options<'a> {
    /// Borrows options.
    ///
    /// # Safety
    ///
    /// `raw` is valid while `'a` lasts, and nobody changes it.
    pub(crate) unsafe fn new(raw: NonNull<b::nvmf_ctrl_options>) -> Self {
        // INVARIANT: The caller promises both.
        Self {
            raw,
            lifetime: PhantomData,
        }
    }

    fn get(&self) -> &'a b::nvmf_ctrl_options {
        // SAFETY: `raw` is valid while `'a` lasts by the invariant.
        unsafe { self.raw.as_ref() }
    }

    /// Returns a string of the options.
    fn text(&self, text: *const c_char) -> Option<&'a CStr> {
        // SAFETY: Strings of the options are null or end with a zero byte, and exist as long.
        (!text.is_null()).then(|| unsafe { CStr::from_char_ptr(text) })
    }

    /// Returns the address of the target. Any context.
    pub fn traddr(&self) -> &'a CStr {
        self.text(self.get().traddr).unwrap_or(c"")
    }

    /// Returns the port of the target. Any context.
    pub fn trsvcid(&self) -> &'a CStr {
        self.text(self.get().trsvcid).unwrap_or(c"")
    }

    /// Returns the address of this host. Any context.
    pub fn host_traddr(&self) -> Option<&'a CStr> {
        self.text(self.get().host_traddr)
    }

    /// Returns the type of service. Any context.
    pub fn tos(&self) -> Option<u8> {
        u8::try_from(self.get().tos).ok()
    }
}
