// SPDX-License-Identifier: GPL-2.0

//! Requests, and the queues that return completed requests.

use super::{
    error::leaked,
    *, //
};
use kernel::alloc::Flags;

/// A request: memory for a transfer, and a context of the consumer.
///
/// Posting the request to an endpoint moves it to the provider. When the transfer has completed,
/// the endpoint's [`RequestQueue`] returns it. The consumer can post it again to any endpoint of
/// that queue. Posting allocates nothing, so it is possible in any context.
///
/// # Soundness
///
/// During a transfer the device may read and write the memory. So nobody else may own it, have a
/// reference into it, or free it:
///
/// - Posting consumes the request. It is on the heap, and its address is the context of the
///   transfer. The queue creates the returned request from that context.
/// - A transfer completes once, so the queue returns the request once. Until then nobody owns it.
///   If the endpoint or the queue is forgotten, or the device may still access the memory, the
///   request is leaked.
/// - A queue and all endpoints that are bound to it have requests of one type.
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
    /// Offset and length of the transferred bytes, if not all.
    part: Option<(usize, usize)>,
}

/// The identity of a request, to [cancel](super::MsgEndpoint::cancel) it. Once a request is freed,
/// another one may have the same identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId(usize);

impl RequestId {
    /// Returns the context of the request's transfer.
    pub(super) fn context(self) -> *mut c_void {
        // It is only compared, never dereferenced.
        ptr::without_provenance_mut(self.0)
    }
}

impl<B: Local, C: Send + 'static> Request<B, C> {
    /// Creates a request for all of the memory. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`.
    pub fn new(memory: B, context: C) -> Result<Self, Errno> {
        Self::with_flags(memory, context, GFP_KERNEL)
    }

    /// Creates a request like [`new`](Self::new). Sleeps only if `flags` allow it.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`.
    pub fn with_flags(memory: B, context: C, flags: Flags) -> Result<Self, Errno> {
        let _noio = NoIo::enter();
        let inner = Inner {
            memory,
            context,
            part: None,
        };
        Ok(Self(KBox::new(inner, flags)?))
    }

    /// Selects the `len` bytes from `offset`, until the next call. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the memory is too short.
    pub fn set_part(&mut self, offset: usize, len: usize) -> Result<(), Errno> {
        let end = offset.checked_add(len);
        let is_there = end.is_some_and(|end| end <= self.0.memory.bytes());
        is_there.then_some(()).ok_or(Errno::EINVAL)?;
        self.0.part = Some((offset, len));
        Ok(())
    }

    /// Returns the memory. Any context.
    pub fn memory(&self) -> &B {
        &self.0.memory
    }

    /// Returns the memory. Any context.
    pub fn memory_mut(&mut self) -> &mut B {
        &mut self.0.memory
    }

    /// Returns the context. Any context.
    pub fn context(&self) -> &C {
        &self.0.context
    }

    /// Returns the context. Any context.
    pub fn context_mut(&mut self) -> &mut C {
        &mut self.0.context
    }

    /// Returns the identity, which never changes. Any context.
    pub fn id(&self) -> RequestId {
        RequestId(ptr::from_ref(&*self.0).addr())
    }

    /// Returns the memory and the context. Any context.
    pub fn into_inner(self) -> (B, C) {
        let inner = KBox::into_inner(self.0);
        (inner.memory, inner.context)
    }

    /// Returns the number of transferred bytes.
    pub(super) fn bytes(&self) -> usize {
        self.part().1
    }

    /// Returns the offset and the number of the transferred bytes.
    pub(super) fn part(&self) -> (usize, usize) {
        self.0.part.unwrap_or_else(|| (0, self.0.memory.bytes()))
    }

    /// Checks whether the memory is contiguous.
    pub(super) fn is_one_run(&self) -> bool {
        self.0.memory.run().is_some()
    }

    /// Returns the bytes to post if the memory is contiguous. They are valid until the request is
    /// changed.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the memory doesn't have the selected bytes any more.
    pub(super) fn run(&self) -> Result<Option<Run>, Errno> {
        let Some(run) = self.0.memory.run() else {
            return Ok(None);
        };
        match self.0.part {
            Some((offset, len)) => run.part(offset, len).map(Some),
            None => Ok(Some(run)),
        }
    }

    /// Adds the bytes to post to a list of the [part](Self::part).
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the memory doesn't have the selected bytes any more, or has more than 16 pieces.
    pub(super) fn add_to(&self, pieces: &mut Pieces) -> Result<(), Errno> {
        self.0.memory.add_to(pieces)?;
        pieces.is_whole().then_some(()).ok_or(Errno::EINVAL)
    }

    /// Converts the request to the context of a transfer.
    pub(super) fn into_context(self) -> *mut c_void {
        let raw = KBox::into_raw(self.0);
        // `from_context` gets the address as a number.
        raw.expose_provenance();
        raw.cast()
    }

    /// Returns the request with this context, or `None` for 0.
    ///
    /// # Safety
    ///
    /// `context` is 0, or came from [`into_context`](Self::into_context) of a request of this type.
    /// Nobody else converts it back.
    pub(super) unsafe fn from_context(context: usize) -> Option<Self> {
        let raw: *mut Inner<B, C> = ptr::with_exposed_provenance_mut(context);
        // SAFETY: `raw` came from `KBox::into_raw` in `into_context`, and nobody else owns it.
        (!raw.is_null()).then(|| Self(unsafe { KBox::from_raw(raw) }))
    }
}

/// The kind of a completed transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The request's memory was sent.
    Send,
    /// A message was received into the request's memory.
    Recv,
    /// The peer's memory was read into the request's.
    Read,
    /// An atomic operation on 8 bytes of the peer. The request's memory has their previous value.
    Atomic,
    /// The request's memory was written to the peer's.
    Write,
    /// The peer wrote to local memory, and sent data with it. That took a receive, whose memory is
    /// unchanged.
    RemoteWrite,
}

/// The result of a successful transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The kind of transfer.
    pub kind: Kind,
    /// Number of received bytes.
    pub len: usize,
    /// The data that the peer sent with the transfer.
    pub data: Option<u64>,
    /// The local key that the peer invalidated. Nobody can reach that region any more.
    pub invalidated: Option<u64>,
}

impl Transfer {
    fn new(done: &Completion) -> Self {
        let is = |flag: u32| done.flags & u64::from(flag) != 0;
        Self {
            kind: match () {
                () if is(c::KFI_SEND) => Kind::Send,
                () if is(c::KFI_RECV) => Kind::Recv,
                () if is(c::KFI_ATOMIC) => Kind::Atomic,
                () if is(c::KFI_READ) => Kind::Read,
                () if is(c::KFI_REMOTE_WRITE) => Kind::RemoteWrite,
                () => Kind::Write,
            },
            len: done.len,
            data: done.data(),
            invalidated: done.invalidated(),
        }
    }
}

/// A completed transfer.
pub enum Ended<B: Local, C: Send + 'static = ()> {
    /// The transfer succeeded.
    Done(Request<B, C>, Transfer),
    /// The transfer failed.
    Failed(Request<B, C>, TransferFailure),
    /// The transfer failed, and the request is leaked, because the device may still access its
    /// memory (`ENOTRECOVERABLE`).
    Lost(TransferFailure),
    /// A transfer without a request failed. Its bytes were copied when it was posted.
    InjectFailed(TransferFailure),
}

impl<B: Local, C: Send + 'static> Ended<B, C> {
    /// Converts a completion, or returns `None` if there is none.
    ///
    /// # Safety
    ///
    /// `read` is from a queue of requests of this type.
    unsafe fn from_read(read: Completed<'_>) -> Option<Self> {
        match read {
            // SAFETY: `read` is from a queue of requests of this type.
            Completed::Done(done) => unsafe { Self::from_done(done.first()?) },
            Completed::Failed(failure) if failure.errno == Errno::ENOTRECOVERABLE => {
                leaked("memory of a transfer", failure.errno);
                Some(Self::Lost(failure))
            }
            Completed::Failed(failure) => {
                // SAFETY: The context is 0, or came from a request of this type, posted once and
                // completed once.
                let request = unsafe { Request::from_context(failure.done.context) };
                Some(match request {
                    Some(request) => Self::Failed(request, failure),
                    None => Self::InjectFailed(failure),
                })
            }
            Completed::Nothing => None,
        }
    }

    /// Converts the completion of a successful transfer.
    ///
    /// # Safety
    ///
    /// `done` is from a queue of requests of this type. This is called once for it.
    unsafe fn from_done(done: &Completion) -> Option<Self> {
        // SAFETY: The context came from a request of this type, which was posted once and completed
        // once.
        let request = unsafe { Request::from_context(done.context) }?;
        Some(Self::Done(request, Transfer::new(done)))
    }
}

/// The handler of completed transfers of a queue of requests.
pub trait RequestHandler<B: Local, C: Send + 'static = ()>: Send + Sync + 'static {
    /// Handles a completed transfer.
    ///
    /// # Context
    ///
    /// Any context, mostly softirq. Must not sleep, nor drop a value that drop closes. May post
    /// requests. One call at a time.
    fn ended(&self, ended: Ended<B, C>);
}

/// The reader of a queue of requests, which is called when the queue has completed transfers.
pub trait RequestReader<B: Local, C: Send + 'static = ()>: Send + Sync + 'static {
    /// Reads completed transfers. It should read all of them, best by [`Requests::each`].
    ///
    /// It is called again for the first completion after a read has found the queue empty.
    /// Completions that it doesn't read are left for other readers, for example
    /// [`wait`](RequestQueue::wait).
    ///
    /// # Context
    ///
    /// The context of [`RequestHandler::ended`].
    fn came(&self, requests: Requests<'_, B, C>);
}

/// A queue of requests, to read from.
pub struct Requests<'a, B: Local, C: Send + 'static> {
    completions: Completions<'a>,
    requests: PhantomData<fn() -> (B, C)>,
}

impl<B: Local, C: Send + 'static> Requests<'_, B, C> {
    /// Reads like [`RequestQueue::read`]. Any context.
    pub fn read(&self) -> Result<Option<Ended<B, C>>, Errno> {
        let mut room = [Completion::ROOM];
        let read = self.completions.read(&mut room)?;
        // SAFETY: `open_read_by` opened the queue, for requests of this type only.
        Ok(unsafe { Ended::from_read(read) })
    }

    /// Reads all completed transfers, several at a time, and calls `f` with each of them. Any context.
    ///
    /// # Errors
    ///
    /// The errors of [`read`](Self::read).
    pub fn each(&self, mut f: impl FnMut(Ended<B, C>)) -> Result<(), Errno> {
        let mut room = [Completion::ROOM; 2];
        let space = room.len();
        loop {
            match self.completions.read(&mut room)? {
                Completed::Done(all) => {
                    for done in all {
                        // SAFETY: `open_read_by` opened the queue, for requests of this type only. Each
                        // completion was read once.
                        if let Some(ended) = unsafe { Ended::from_done(done) } {
                            f(ended);
                        }
                    }
                    // The read has found the end, so this is called again for what follows.
                    if all.len() < space {
                        return Ok(());
                    }
                }
                // SAFETY: `open_read_by` opened the queue, for requests of this type only.
                other => match unsafe { Ended::from_read(other) } {
                    Some(ended) => f(ended),
                    None => return Ok(()),
                },
            }
        }
    }
}

/// A type that is invariant in `T`.
type Invariant<T> = fn(T) -> T;

/// A completion queue that returns completed requests, with memory of type `B` and contexts of type
/// `C`.
///
/// Dropping the last reference closes the queue and drops its unread requests. That may sleep, and
/// the handler must not do it. If the handler's module is unloaded first, the handler is removed
/// like that of an [`EventQueue`].
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
/// All contexts in the queue are 0 or came from `Request::into_context` for these types. Each is
/// read once, by this type or by the handler.
pub struct RequestQueue<B: Local, C: Send + 'static = ()> {
    queue: Arc<CompletionQueue>,
    requests: PhantomData<Invariant<(B, C)>>,
}

/// A reader that passes all completed transfers to a handler.
struct ReadAll<H>(KBox<H>);

impl<B, C, H> RequestReader<B, C> for ReadAll<H>
where
    H: RequestHandler<B, C>,
    B: Local,
    C: Send + 'static,
{
    fn came(&self, requests: Requests<'_, B, C>) {
        // If it fails, there is nothing to read.
        let _ = requests.each(|ended| self.0.ended(ended));
    }
}

/// The handler of the completion queue that calls a reader.
struct ReaderAdapter<H, B, C>(KBox<H>, PhantomData<fn() -> (B, C)>);

impl<H, B, C> CompletionHandler for ReaderAdapter<H, B, C>
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
    /// Opens a queue: `kfi_cq_open()`. May sleep.
    ///
    /// # Errors
    ///
    /// The errors of [`CompletionQueue::open`].
    pub fn open(domain: &Arc<Domain>, options: CompletionQueueOptions) -> Result<Arc<Self>, Errno> {
        Self::of(CompletionQueue::open(domain, options)?)
    }

    /// Opens a queue with a handler. May sleep.
    ///
    /// # Errors
    ///
    /// The errors of [`CompletionQueue::open`].
    pub fn open_with<H: RequestHandler<B, C>>(
        domain: &Arc<Domain>,
        options: CompletionQueueOptions,
        handler: KBox<H>,
    ) -> Result<Arc<Self>, Errno> {
        let _noio = NoIo::enter();
        let takes = KBox::new(ReadAll(handler), GFP_KERNEL)?;
        Self::open_read_by(domain, options, takes)
    }

    /// Opens a queue with a reader. May sleep.
    ///
    /// # Errors
    ///
    /// The errors of [`CompletionQueue::open`].
    pub fn open_read_by<H: RequestReader<B, C>>(
        domain: &Arc<Domain>,
        options: CompletionQueueOptions,
        reader: KBox<H>,
    ) -> Result<Arc<Self>, Errno> {
        let _noio = NoIo::enter();
        let reads = KBox::new(ReaderAdapter(reader, PhantomData), GFP_KERNEL)?;
        Self::of(CompletionQueue::open(domain, options.handler(reads))?)
    }

    fn of(queue: Arc<CompletionQueue>) -> Result<Arc<Self>, Errno> {
        let _noio = NoIo::enter();
        // INVARIANT: The queue is empty. Only endpoints that post requests of this type are bound
        // to it, and nobody else reads it.
        let queue = Self {
            queue,
            requests: PhantomData,
        };
        Ok(Arc::new(queue, GFP_KERNEL)?)
    }

    /// Returns the next completed transfer, in the order of completion, or `None`: `kfi_cq_read()`.
    /// Any context.
    pub fn read(&self) -> Result<Option<Ended<B, C>>, Errno> {
        let mut room = [Completion::ROOM];
        let read = self.queue.completions().read(&mut room)?;
        // SAFETY: The queue has only requests of this type by the invariant.
        Ok(unsafe { Ended::from_read(read) })
    }

    /// Reads all completed transfers like [`Requests::each`]. Without a handler, a failure behind
    /// others may be left for the next call. Any context.
    ///
    /// # Errors
    ///
    /// The errors of [`read`](Self::read).
    pub fn each(&self, mut f: impl FnMut(Ended<B, C>)) -> Result<(), Errno> {
        let requests = Requests {
            completions: self.queue.completions(),
            requests: PhantomData,
        };
        // A handler must read until it finds nothing, or it is not called again. Others may stop at a short read.
        if !self.queue.has_handler() {
            return requests.each(f);
        }
        loop {
            let mut found = false;
            requests.each(|ended| {
                found = true;
                f(ended);
            })?;
            if !found {
                return Ok(());
            }
        }
    }

    /// Returns the next completed transfer: `kfi_cq_sread()`. Sleeps until there is one, for at
    /// most `msecs` milliseconds if given.
    ///
    /// # Errors
    ///
    /// - `EINTR`: a signal is pending.
    /// - `ENOSYS`: the queue was opened without [`waits`](CompletionQueueOptions::waits).
    pub fn wait(&self, msecs: Option<u32>) -> Result<Option<Ended<B, C>>, Errno> {
        let mut room = [Completion::ROOM];
        let read = self.queue.wait(&mut room, 1, msecs)?;
        // SAFETY: The queue has only requests of this type by the invariant.
        Ok(unsafe { Ended::from_read(read) })
    }

    /// Wakes all waiters, or else makes the next [`wait`](Self::wait) return at once:
    /// `kfi_cq_signal()`. Any context.
    ///
    /// # Errors
    ///
    /// - `ENOSYS`: the queue was opened without [`waits`](CompletionQueueOptions::waits).
    pub fn signal(&self) -> Result<(), Errno> {
        self.queue.signal()
    }

    /// Returns the domain of the queue. Any context.
    pub fn domain(&self) -> &Arc<Domain> {
        self.queue.domain()
    }

    /// Returns the queue to bind endpoints to.
    pub(super) fn completion_queue(&self) -> &CompletionQueue {
        &self.queue
    }
}

impl<B: Local, C: Send + 'static> Drop for RequestQueue<B, C> {
    fn drop(&mut self) {
        // Endpoints have references, so none is open: all posted transfers have completed.
        while let Ok(Some(ended)) = self.read() {
            drop(ended);
        }
    }
}
