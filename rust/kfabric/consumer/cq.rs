// SPDX-License-Identifier: GPL-2.0

//! Completion queues.

use super::{
    handler::{
        with_handler,
        Hooked,
        NoHandler, //
    },
    *, //
};
use crate::support::module::{
    this_module,
    Owner, //
};
use core::mem::offset_of;

/// A completion: a `struct kfi_cq_data_entry`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Completion {
    /// The context of the operation.
    pub context: usize,
    /// The kind of operation (`KFI_SEND`, …) and other flags.
    pub flags: u64,
    /// Number of received bytes.
    pub len: usize,
    /// The address of the received bytes, for a buffer of several messages.
    pub buf: usize,
    data: u64,
}

// C writes a `struct kfi_cq_data_entry` to a `Completion`.
const _: () = {
    assert!(size_of::<Completion>() == size_of::<c::kfi_cq_data_entry>());
    assert!(align_of::<Completion>() == align_of::<c::kfi_cq_data_entry>());
    assert!(offset_of!(Completion, context) == offset_of!(c::kfi_cq_data_entry, op_context));
    assert!(offset_of!(Completion, flags) == offset_of!(c::kfi_cq_data_entry, flags));
    assert!(offset_of!(Completion, len) == offset_of!(c::kfi_cq_data_entry, len));
    assert!(offset_of!(Completion, buf) == offset_of!(c::kfi_cq_data_entry, buf));
    assert!(offset_of!(Completion, data) == offset_of!(c::kfi_cq_data_entry, data));
};

impl Completion {
    /// An empty entry to read into.
    pub const ROOM: Self = Self {
        context: 0,
        flags: 0,
        len: 0,
        buf: 0,
        data: 0,
    };

    /// Returns the peer's remote CQ data, if it sent any.
    pub fn data(&self) -> Option<u64> {
        let there = self.flags & u64::from(kfi_bindings::KFI_REMOTE_CQ_DATA) != 0;
        there.then_some(self.data)
    }

    /// Returns the local key that the peer invalidated, if any.
    pub fn invalidated(&self) -> Option<u64> {
        let there = self.flags & kfi_bindings::KFI_INVALIDATE != 0;
        there.then_some(self.data)
    }
}

/// A failed operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferFailure {
    /// The fields that all completions have.
    pub done: Completion,
    /// Number of bytes of a message that didn't fit.
    pub olen: usize,
    /// The cause.
    pub errno: Errno,
    /// The provider's number for the cause.
    pub prov_errno: i32,
}

/// The next entries of a completion queue.
#[derive(Debug, PartialEq, Eq)]
pub enum Completed<'e> {
    /// Successful operations, at least one.
    Done(&'e [Completion]),
    /// A failed operation.
    Failed(TransferFailure),
    /// The queue is empty.
    Nothing,
}

/// An open completion queue, to read. Any context.
///
/// # Invariants
///
/// The queue is open for `'a`, and has the format of [`Completion`].
#[derive(Clone, Copy)]
pub struct Completions<'a>(
    pub(super) NonNull<kfid_cq>,
    pub(super) PhantomData<&'a kfid_cq>,
);

// SAFETY: Any thread may call the operations of a queue.
unsafe impl Send for Completions<'_> {}
// SAFETY: Several threads may call the operations of a queue at once.
unsafe impl Sync for Completions<'_> {}

impl Completions<'_> {
    /// Reads the next completions, in their order: `kfi_cq_read()`, `kfi_cq_readerr()`. Any
    /// context.
    ///
    /// Returns either completions of successful operations, up to the size of `room` and to the
    /// first failure, or one failure.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: `room` is empty.
    pub fn read<'e>(&self, room: &'e mut [Completion]) -> Result<Completed<'e>, Errno> {
        self.get(room, |cq, buf, count| {
            // SAFETY: `cq` is open by the invariant. `buf` has `count` entries of the queue's
            // format, by the same invariant.
            unsafe { op!((*cq).ops, read(cq, buf, count)) }
        })
    }

    /// Reads like [`read`](Self::read): `kfi_cq_sread()`. Sleeps until there are `at_least`
    /// completions or a failure. So a handler must not call it.
    pub(super) fn wait<'e>(
        &self,
        room: &'e mut [Completion],
        at_least: usize,
        msecs: Option<u32>,
    ) -> Result<Completed<'e>, Errno> {
        let timeout = handle::timeout(msecs);
        let cond = ptr::from_ref(&at_least).cast();
        self.get(room, |cq, buf, count| {
            // SAFETY: `cq` is open by the invariant. `buf` has `count` entries of its format.
            // `cond` points to an argument.
            unsafe { op!((*cq).ops, sread(cq, buf, count, cond, timeout)) }
        })
    }

    /// Wakes all waiters: `kfi_cq_signal()`. Any context.
    pub(super) fn signal(&self) -> Result<(), Errno> {
        let cq = self.0.as_ptr();
        // SAFETY: `cq` is open by the invariant.
        handle::result(unsafe { op!((*cq).ops, signal(cq)) }?)
    }

    /// Calls an operation that reads.
    fn get<'e>(
        &self,
        room: &'e mut [Completion],
        call: impl Fn(*mut kfid_cq, *mut c_void, usize) -> Result<isize, Errno>,
    ) -> Result<Completed<'e>, Errno> {
        loop {
            let read = call(self.0.as_ptr(), room.as_mut_ptr().cast(), room.len())?;
            match handle::count(read) {
                Ok(count) => {
                    let done = room.get(..count).ok_or(Errno::EIO)?;
                    return Ok(Completed::Done(done));
                }
                Err(Errno::EAGAIN) => return Ok(Completed::Nothing),
                Err(Errno::EAVAIL) => match self.failure()? {
                    // Another reader was faster.
                    None => continue,
                    Some(failure) => return Ok(Completed::Failed(failure)),
                },
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Reads a failure: `kfi_cq_readerr()`.
    fn failure(&self) -> Result<Option<TransferFailure>, Errno> {
        let mut entry: c::kfi_cq_err_entry = pin_init::zeroed();
        let cq = self.0.as_ptr();
        // SAFETY: `cq` is open by the invariant, and `entry` is a local.
        let read = unsafe { op!((*cq).ops, readerr(cq, &mut entry, 0)) }?;
        match handle::count(read) {
            Ok(_) => Ok(Some(TransferFailure {
                done: Completion {
                    context: entry.op_context.addr(),
                    flags: entry.flags,
                    len: entry.len,
                    buf: entry.buf.addr(),
                    data: entry.data,
                },
                olen: entry.olen,
                errno: Errno::from_c(entry.err.wrapping_neg()),
                prov_errno: entry.prov_errno,
            })),
            Err(Errno::EAGAIN) => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}

/// The handler of a completion queue.
pub trait CompletionHandler: Send + Sync + 'static {
    /// Reads completions. It should read all of them.
    ///
    /// It is called again for the first completion after a read has found the queue empty. Within the
    /// handler, a read that gets fewer completions than it had room for is enough.
    ///
    /// # Context
    ///
    /// Any context, mostly softirq. Must not sleep, nor drop a value that drop closes. One call at
    /// a time.
    fn completions(&self, completions: Completions<'_>);
}

impl CompletionHandler for NoHandler {
    fn completions(&self, _completions: Completions<'_>) {
        match *self {}
    }
}

/// Options of a completion queue, with a handler of type `H`.
pub struct CompletionQueueOptions<H = NoHandler> {
    wanted: Wanted,
    handler: Option<KBox<H>>,
}

#[derive(Clone, Copy, Default)]
struct Wanted {
    size: usize,
    waits: bool,
    cpu: Option<u32>,
}

impl Default for CompletionQueueOptions {
    /// Creates options with the defaults, and no handler.
    fn default() -> Self {
        Self {
            wanted: Wanted::default(),
            handler: None,
        }
    }
}

impl<H> CompletionQueueOptions<H> {
    /// Sets the number of entries, for pending operations and unread completions. 0 lets the
    /// provider choose.
    pub fn size(mut self, size: usize) -> Self {
        self.wanted.size = size;
        self
    }

    /// Enables [`CompletionQueue::wait`].
    pub fn waits(mut self) -> Self {
        self.wanted.waits = true;
        self
    }

    /// Prefers a CPU near to this one for completions, if the provider supports that.
    pub fn cpu(mut self, cpu: u32) -> Self {
        self.wanted.cpu = Some(cpu);
        self
    }

    /// Sets the handler.
    pub fn handler<N: CompletionHandler>(self, handler: KBox<N>) -> CompletionQueueOptions<N> {
        CompletionQueueOptions {
            wanted: self.wanted,
            handler: Some(handler),
        }
    }
}

/// An open completion queue.
///
/// Dropping the last reference closes the queue, and may sleep. The queue's handler must not do
/// that. If the handler's module is unloaded first, the handler is removed like that of an
/// [`EventQueue`].
///
/// # Examples
///
/// ```
/// use kernel::{prelude::*, sync::Arc};
/// use kfabric::consumer::{Completed, Completion, CompletionQueue, CompletionQueueOptions, Domain};
///
/// /// Waits until all posted operations have completed.
/// fn finish(queue: &CompletionQueue, mut posted: usize) -> Result {
///     let mut room = [Completion::ROOM; 16];
///     while posted > 0 {
///         match queue.wait(&mut room, posted, Some(1000))? {
///             Completed::Done(done) => posted -= done.len(),
///             Completed::Failed(failure) => return Err(failure.errno.into()),
///             Completed::Nothing => return Err(ETIMEDOUT),
///         }
///     }
///     Ok(())
/// }
///
/// fn open(domain: &Arc<Domain>) -> Result<Arc<CompletionQueue>> {
///     let options = CompletionQueueOptions::default().size(64).waits();
///     Ok(CompletionQueue::open(domain, options)?)
/// }
/// ```
pub struct CompletionQueue(Handle<kfid_cq, (), Uses>);

/// The objects that a queue keeps, dropped in this order.
struct Uses {
    handler: Option<Hooked<dyn CompletionHandler>>,
    domain: Arc<Domain>,
}

/// Calls the handler of a completion queue, unless it was removed. Any context.
///
/// # Safety
///
/// `cq` is an open queue. `context` came from [`Hooked::as_context`] of a completion handler. Its
/// `Hooked` is dropped after the queue is closed, which waits for this call.
unsafe extern "C" fn call_handler(cq: *mut kfid_cq, context: *mut c_void) {
    let Some(raw) = NonNull::new(cq) else {
        return;
    };
    // SAFETY: `context` is that of a completion handler, which is kept until this returns, by this
    // function's contract.
    unsafe {
        with_handler::<dyn CompletionHandler>(context, |handler| {
            handler.completions(Completions(raw, PhantomData));
        });
    }
}

as_raw!(CompletionQueue: kfid_cq);

impl CompletionQueue {
    /// Opens a completion queue: `kfi_cq_open()`. May sleep.
    ///
    /// # Errors
    ///
    /// - `EOPBADSTATE`: the handler's module is being unloaded.
    /// - `EINVAL`: the queue can't hold that many completions.
    /// - `ENOSYS`: the provider has no completion queues.
    /// - `ENOMEM`.
    pub fn open<H: CompletionHandler>(
        domain: &Arc<Domain>,
        options: CompletionQueueOptions<H>,
    ) -> Result<Arc<Self>, Errno> {
        // This function is generic, so `this_module!()` is the handler's module.
        let handler: Option<KBox<dyn CompletionHandler>> = match options.handler {
            Some(handler) => Some(handler),
            None => None,
        };
        Self::open_for(this_module!(), domain, options.wanted, handler)
    }

    fn open_for(
        owner: Option<Owner>,
        domain: &Arc<Domain>,
        wanted: Wanted,
        handler: Option<KBox<dyn CompletionHandler>>,
    ) -> Result<Arc<Self>, Errno> {
        let _noio = NoIo::enter();
        let handler = handler.map(|handler| Hooked::new(handler, owner, c"cq_open"));
        let handler = handler.transpose()?;
        let mut attr = c::kfi_cq_attr {
            size: wanted.size,
            format: c::kfi_cq_format_KFI_CQ_FORMAT_DATA,
            wait_obj: if wanted.waits {
                c::kfi_wait_obj_KFI_WAIT_UNSPEC
            } else {
                c::kfi_wait_obj_KFI_WAIT_NONE
            },
            wait_cond: c::kfi_cq_wait_cond_KFI_CQ_COND_THRESHOLD,
            ..pin_init::zeroed()
        };
        if let Some(cpu) = wanted.cpu {
            attr.flags = u64::from(kfi_bindings::KFI_AFFINITY);
            attr.signaling_vector = c_int::try_from(cpu).unwrap_or(c_int::MAX);
        }
        let (call, context): (c::kfi_comp_handler, _) = match &handler {
            Some(handler) => (Some(call_handler), handler.as_context()),
            None => (None, ptr::null_mut()),
        };
        // SAFETY: The domain is open as long as `domain`. `attr` is a local. `uses` keeps the
        // handler, to which `context` points, until the queue is closed.
        let cq = unsafe { open_by!(domain.as_raw(), cq_open(&mut attr; call, context)) }?;
        let uses = Uses {
            handler,
            domain: domain.clone(),
        };
        // If there is no memory for the Arc, this drops the handle, which closes the queue.
        let queue = Self(Handle::new(cq, (), uses));
        Ok(Arc::new(queue, GFP_KERNEL)?)
    }

    /// Returns the queue to read. Any context.
    pub fn completions(&self) -> Completions<'_> {
        // INVARIANT: The queue is open as long as `self`, and was opened with `FORMAT_DATA`.
        Completions(self.0.raw(), PhantomData)
    }

    /// Reads like [`Completions::read`]: `kfi_cq_sread()`. Sleeps until there are `at_least`
    /// completions or a failure, for at most `msecs` milliseconds if given. Returns the available
    /// completions then.
    ///
    /// # Errors
    ///
    /// - `EINTR`: a signal is pending.
    /// - `ENOSYS`: the queue was opened without [`waits`](CompletionQueueOptions::waits).
    /// - `EINVAL`: `room` is empty.
    pub fn wait<'e>(
        &self,
        room: &'e mut [Completion],
        at_least: usize,
        msecs: Option<u32>,
    ) -> Result<Completed<'e>, Errno> {
        self.completions().wait(room, at_least, msecs)
    }

    /// Wakes all waiters, or else makes the next [`wait`](Self::wait) return at once:
    /// `kfi_cq_signal()`. Any context.
    ///
    /// # Errors
    ///
    /// - `ENOSYS`: the queue was opened without [`waits`](CompletionQueueOptions::waits).
    pub fn signal(&self) -> Result<(), Errno> {
        self.completions().signal()
    }

    /// Checks whether the queue was opened with a handler. Any context.
    pub(super) fn has_handler(&self) -> bool {
        self.0.lent().handler.is_some()
    }

    /// Returns the domain of the queue. Any context.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.0.lent().domain
    }

    /// Drops this reference. Closes the queue if it was the last one. Sleeps until the handler has
    /// returned, so the handler must not call it.
    ///
    /// # Errors
    ///
    /// - `EBUSY`, without the queue: others have references. The last of them closes the queue.
    /// - `EBUSY`, with the queue: a caller waits on the C object.
    pub fn close(queue: Arc<Self>) -> Result<(), CloseError<Arc<Self>>> {
        close_last(queue, |queue| &mut queue.0)
    }
}
