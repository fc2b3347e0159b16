// SPDX-License-Identifier: GPL-2.0

//! Requests, and the queues that return completed requests.

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
    Pieces,
    Run,
    TransferFailure, //
};
use crate::support::{
    errno::Errno,
    task::NoIo, //
};
use core::{
    marker::PhantomData,
    ptr, //
};
use kernel::{
    ffi::c_void,
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

    /// ReadAll only `len` bytes from `offset` on, until the next such call. Any context.
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

    /// ReadAll back the request with this context; `None` if that is 0.
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
type Invariant<T> = fn(T) -> T;

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
    requests: PhantomData<Invariant<(B, C)>>,
}

/// ReadAll all there is to read for a handler.
struct ReadAll<H>(KBox<H>);

impl<B, C, H> RequestReader<B, C> for ReadAll<H>
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
        let takes = KBox::new(ReadAll(handler), GFP_KERNEL)?;
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
        let reads = KBox::new(ReaderAdapter(reader, PhantomData), GFP_KERNEL)?;
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
