// SPDX-License-Identifier: GPL-2.0

//! Queues that give requests back.

use super::{
    call::leaked,
    Completed,
    Completion,
    CompletionHandler,
    CompletionQueue,
    CompletionQueueOptions,
    Completions,
    Domain,
    Local,
    Request,
    TransferFailure, //
};
use crate::support::{
    errno::Errno,
    noio::NoIo, //
};
use core::marker::PhantomData;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfi_bindings::{
    KFI_ATOMIC,
    KFI_READ,
    KFI_RECV,
    KFI_REMOTE_WRITE,
    KFI_SEND, //
};

/// What kind of transfer has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A message was sent.
    Send,
    /// A message was received.
    Recv,
    /// The peer's memory was read.
    Read,
    /// Something was done with eight bytes of the peer's; the memory has what they were before.
    Atomic,
    /// The peer's memory was written to.
    Write,
    /// The peer has written to memory of this side, and sent data with it, which took a receive; its
    /// memory is as it was.
    RemoteWrite,
}

/// How a transfer has ended, if it ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// What it was.
    pub kind: Kind,
    /// How many bytes were received.
    pub len: usize,
    /// What the peer has sent along.
    pub data: Option<u64>,
    /// The key of this side that the peer had invalidated by it: nobody reaches that region any more.
    pub invalidated: Option<u64>,
}

impl Transfer {
    fn new(done: &Completion) -> Self {
        let is = |flag: u32| done.flags & u64::from(flag) != 0;
        Self {
            kind: match () {
                () if is(KFI_SEND) => Kind::Send,
                () if is(KFI_RECV) => Kind::Recv,
                () if is(KFI_ATOMIC) => Kind::Atomic,
                () if is(KFI_READ) => Kind::Read,
                () if is(KFI_REMOTE_WRITE) => Kind::RemoteWrite,
                () => Kind::Write,
            },
            len: done.len,
            data: done.data(),
            invalidated: done.invalidated(),
        }
    }
}

/// A transfer that has ended.
pub enum Ended<B: Local, C: Send + 'static = ()> {
    /// Well; this is its request.
    Done(Request<B, C>, Transfer),
    /// Not so.
    Failed(Request<B, C>, TransferFailure),
    /// Not so, and its request never comes back: the device may use its memory at any time, and would
    /// not let go of it (`ENOTRECOVERABLE`).
    Lost(TransferFailure),
    /// One that had no request has failed, since its bytes were copied when it was posted.
    InjectFailed(TransferFailure),
}

impl<B: Local, C: Send + 'static> Ended<B, C> {
    /// What was read; `None` of nothing.
    ///
    /// # Safety
    ///
    /// It is from a queue of requests of this type.
    unsafe fn from_read(read: Completed<'_>) -> Option<Self> {
        match read {
            Completed::Done(done) => {
                let done = done.first()?;
                // SAFETY: The context is that of such a request, which was posted once and has ended once.
                let request = unsafe { Request::from_context(done.context) }?;
                Some(Self::Done(request, Transfer::new(done)))
            }
            Completed::Failed(failure) if failure.errno == Errno::ENOTRECOVERABLE => {
                leaked("memory of a transfer", failure.errno);
                Some(Self::Lost(failure))
            }
            Completed::Failed(failure) => {
                // SAFETY: The context is 0, or that of such a request, posted once and ended once.
                let request = unsafe { Request::from_context(failure.done.context) };
                Some(match request {
                    Some(request) => Self::Failed(request, failure),
                    None => Self::InjectFailed(failure),
                })
            }
            Completed::Nothing => None,
        }
    }
}

/// What the owner of a queue of requests wants to be told.
pub trait RequestHandler<B: Local, C: Send + 'static = ()>: Send + Sync + 'static {
    /// A transfer has ended.
    ///
    /// In any context, softirq mostly, and so it must not sleep, nor drop anything that is closed by
    /// being dropped. One call at a time. It may post.
    fn ended(&self, ended: Ended<B, C>);
}

/// Who reads a queue of requests, when there is something to read.
pub trait RequestReader<B: Local, C: Send + 'static = ()>: Send + Sync + 'static {
    /// Transfers have ended, and should be [read](RequestQueue::read), all of them: it is called again for
    /// the first that ends after somebody has found the queue empty. Those that it doesn't read are there for
    /// others, also for who [waits](RequestQueue::wait).
    ///
    /// In the context of [`RequestHandler::ended`].
    fn came(&self, requests: Requests<'_, B, C>);
}

/// What can be read from a queue of requests.
pub struct Requests<'a, B: Local, C: Send + 'static> {
    completions: Completions<'a>,
    requests: PhantomData<fn() -> (B, C)>,
}

impl<B: Local, C: Send + 'static> Requests<'_, B, C> {
    /// As [`RequestQueue::read`]. Any context.
    pub fn read(&self) -> Result<Option<Ended<B, C>>, Errno> {
        let mut room = [Completion::ROOM];
        let read = self.completions.read(&mut room)?;
        // SAFETY: Of a queue of such requests only, by `open_read_by`.
        Ok(unsafe { Ended::from_read(read) })
    }
}

/// What goes in and comes out, and so can't be a subtype of it.
type Both<T> = fn(T) -> T;

/// A completion queue whose endpoints transfer the memory of requests, and which gives these back: with
/// memory of type `B` and contexts of type `C`.
///
/// It is closed when the last reference is gone, by a thread that must not run its handler, and where
/// it may sleep. What nobody has read by then is dropped. A handler that is still there when the module
/// is unloaded that it is part of is taken off the queue as that of an
/// [`EventQueue`](super::EventQueue) is.
///
/// # Examples
///
/// ```
/// use kernel::{prelude::*, sync::Arc};
/// use kfabric::consumer::{Ended, Kind, RequestQueue};
///
/// /// Waits for a message.
/// fn message(queue: &RequestQueue<KVec<u8>>) -> Result<KVec<u8>> {
///     match queue.wait(Some(1000))? {
///         Some(Ended::Done(request, done)) if done.kind == Kind::Recv => {
///             let (mut bytes, ()) = request.into_inner();
///             bytes.truncate(done.len);
///             Ok(bytes)
///         }
///         Some(Ended::Failed(_, failure)) => Err(failure.errno.into()),
///         Some(_) | None => Err(ETIMEDOUT),
///     }
/// }
/// ```
///
/// # Invariants
///
/// The contexts of what is in the queue came from `Request::into_context` for these types, or are 0; and
/// each is read once, here or by the handler.
pub struct RequestQueue<B: Local, C: Send + 'static = ()> {
    queue: Arc<CompletionQueue>,
    requests: PhantomData<Both<(B, C)>>,
}

/// Takes all there is to read for a handler.
struct Takes<H>(KBox<H>);

impl<B, C, H> RequestReader<B, C> for Takes<H>
where
    H: RequestHandler<B, C>,
    B: Local,
    C: Send + 'static,
{
    fn came(&self, requests: Requests<'_, B, C>) {
        while let Ok(Some(ended)) = requests.read() {
            self.0.ended(ended);
        }
    }
}

/// A reader, as a completion queue has it.
struct Reads<H, B, C>(KBox<H>, PhantomData<fn() -> (B, C)>);

impl<H, B, C> CompletionHandler for Reads<H, B, C>
where
    H: RequestReader<B, C>,
    B: Local,
    C: Send + 'static,
{
    fn completions(&self, completions: Completions<'_>) {
        self.0.came(Requests {
            completions,
            requests: PhantomData,
        });
    }
}

impl<B: Local, C: Send + 'static> RequestQueue<B, C> {
    /// `kfi_cq_open()`: opens a queue. May sleep.
    ///
    /// # Errors
    ///
    /// As [`CompletionQueue::open`].
    pub fn open(domain: &Arc<Domain>, options: CompletionQueueOptions) -> Result<Arc<Self>, Errno> {
        Self::of(CompletionQueue::open(domain, options)?)
    }

    /// The same, for a queue with a handler. May sleep.
    ///
    /// # Errors
    ///
    /// As [`CompletionQueue::open`].
    pub fn open_with<H: RequestHandler<B, C>>(
        domain: &Arc<Domain>,
        options: CompletionQueueOptions,
        handler: KBox<H>,
    ) -> Result<Arc<Self>, Errno> {
        let _noio = NoIo::enter();
        let takes = KBox::new(Takes(handler), GFP_KERNEL)?;
        Self::open_read_by(domain, options, takes)
    }

    /// The same, for a queue with a reader. May sleep.
    ///
    /// # Errors
    ///
    /// As [`CompletionQueue::open`].
    pub fn open_read_by<H: RequestReader<B, C>>(
        domain: &Arc<Domain>,
        options: CompletionQueueOptions,
        reader: KBox<H>,
    ) -> Result<Arc<Self>, Errno> {
        let _noio = NoIo::enter();
        let reads = KBox::new(Reads(reader, PhantomData), GFP_KERNEL)?;
        Self::of(CompletionQueue::open(domain, options.handler(reads))?)
    }

    fn of(queue: Arc<CompletionQueue>) -> Result<Arc<Self>, Errno> {
        let _noio = NoIo::enter();
        // INVARIANT: It is empty. Only endpoints are bound to it that post such requests, and nobody else
        // has it.
        let queue = Self {
            queue,
            requests: PhantomData,
        };
        Ok(Arc::new(queue, GFP_KERNEL)?)
    }

    /// `kfi_cq_read()`: returns the next transfer that has ended, in the order in which they did; `None` if
    /// there is none. Any context.
    pub fn read(&self) -> Result<Option<Ended<B, C>>, Errno> {
        let mut room = [Completion::ROOM];
        let read = self.queue.completions().read(&mut room)?;
        // SAFETY: By the invariant of this type.
        Ok(unsafe { Ended::from_read(read) })
    }

    /// `kfi_cq_sread()`: as [`read`](Self::read), but waits for one, for so many milliseconds or for ever.
    /// Sleeps.
    ///
    /// # Errors
    ///
    /// - `EINTR`: a signal came.
    /// - `ENOSYS`: the queue was opened for no waiting.
    pub fn wait(&self, msecs: Option<u32>) -> Result<Option<Ended<B, C>>, Errno> {
        let mut room = [Completion::ROOM];
        let read = self.queue.wait(&mut room, 1, msecs)?;
        // SAFETY: By the invariant of this type.
        Ok(unsafe { Ended::from_read(read) })
    }

    /// `kfi_cq_signal()`: those who wait come back with what there is; if nobody waits, the next who
    /// would have to. Any context.
    ///
    /// # Errors
    ///
    /// - `ENOSYS`: the queue was opened for no waiting.
    pub fn signal(&self) -> Result<(), Errno> {
        self.queue.signal()
    }

    /// Returns the domain that it was opened in. Any context.
    pub fn domain(&self) -> &Arc<Domain> {
        self.queue.domain()
    }

    /// What endpoints that post such requests are bound to.
    pub(super) fn completion_queue(&self) -> &CompletionQueue {
        &self.queue
    }
}

impl<B: Local, C: Send + 'static> Drop for RequestQueue<B, C> {
    fn drop(&mut self) {
        // Endpoints have references, so none is left: all that was posted has ended.
        while let Ok(Some(ended)) = self.read() {
            drop(ended);
        }
    }
}
