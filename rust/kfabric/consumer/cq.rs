// SPDX-License-Identifier: GPL-2.0

//! Completion queues.

use super::{
    call::{
        self,
        op, //
    },
    handle::{
        close_last,
        Handle, //
    },
    handler::{
        with_handler,
        Hooked,
        NoHandler, //
    },
    CloseError,
    Domain, //
};
use crate::support::{
    errno::Errno,
    module::{
        this_module,
        Owner, //
    },
    task::NoIo, //
};
use core::{
    marker::PhantomData,
    mem::offset_of,
    ptr::{
        self,
        NonNull, //
    }, //
};
use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*,
    sync::Arc, //
};
use kfi_bindings::{
    kfi_comp_handler,
    kfi_cq_attr,
    kfi_cq_data_entry,
    kfi_cq_err_entry,
    kfi_cq_format_KFI_CQ_FORMAT_DATA as FORMAT_DATA,
    kfi_cq_wait_cond_KFI_CQ_COND_THRESHOLD as COND_THRESHOLD,
    kfi_ops_cq,
    kfi_wait_obj_KFI_WAIT_NONE as WAIT_NONE,
    kfi_wait_obj_KFI_WAIT_UNSPEC as WAIT_UNSPEC,
    kfid_cq, //
};

/// An operation that has ended: a `struct kfi_cq_data_entry`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Completion {
    /// The context that was given with the operation.
    pub context: usize,
    /// Which kind of operation it was (`KFI_SEND`, …), and what else there is to know of it.
    pub flags: u64,
    /// How many bytes were received.
    pub len: usize,
    /// The address at which they are, for a buffer that receives several messages.
    pub buf: usize,
    data: u64,
}

// C writes the one where the other is.
const _: () = {
    assert!(size_of::<Completion>() == size_of::<kfi_cq_data_entry>());
    assert!(align_of::<Completion>() == align_of::<kfi_cq_data_entry>());
    assert!(offset_of!(Completion, context) == offset_of!(kfi_cq_data_entry, op_context));
    assert!(offset_of!(Completion, flags) == offset_of!(kfi_cq_data_entry, flags));
    assert!(offset_of!(Completion, len) == offset_of!(kfi_cq_data_entry, len));
    assert!(offset_of!(Completion, buf) == offset_of!(kfi_cq_data_entry, buf));
    assert!(offset_of!(Completion, data) == offset_of!(kfi_cq_data_entry, data));
};

impl Completion {
    /// Room for a completion.
    pub const ROOM: Self = Self {
        context: 0,
        flags: 0,
        len: 0,
        buf: 0,
        data: 0,
    };

    /// The peer's remote CQ data, if there are any.
    pub fn data(&self) -> Option<u64> {
        let there = self.flags & u64::from(kfi_bindings::KFI_REMOTE_CQ_DATA) != 0;
        there.then_some(self.data)
    }

    /// The key of this side that the peer had invalidated, if it had.
    pub fn invalidated(&self) -> Option<u64> {
        let there = self.flags & kfi_bindings::KFI_INVALIDATE != 0;
        there.then_some(self.data)
    }
}

/// An operation that has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferFailure {
    /// What there is to say of any operation.
    pub done: Completion,
    /// How many bytes of a message there was no room for.
    pub olen: usize,
    /// Why.
    pub errno: Errno,
    /// The provider's own number for that.
    pub prov_errno: i32,
}

/// What was read from a completion queue.
#[derive(Debug, PartialEq, Eq)]
pub enum Completed<'e> {
    /// These operations have ended well; there is at least one.
    Done(&'e [Completion]),
    /// This one has failed.
    Failed(TransferFailure),
    /// There is nothing.
    Nothing,
}

/// An open completion queue, to read from. Any context.
///
/// # Invariants
///
/// The queue is open for as long as `'a` lasts, and in the format of [`Completion`].
#[derive(Clone, Copy)]
pub struct Completions<'a>(
    pub(super) NonNull<kfid_cq>,
    pub(super) PhantomData<&'a kfid_cq>,
);

// SAFETY: The calls on a queue may be made by any thread.
unsafe impl Send for Completions<'_> {}
// SAFETY: The calls on a queue may be made by several threads at once.
unsafe impl Sync for Completions<'_> {}

impl Completions<'_> {
    /// `kfi_cq_read()` and `kfi_cq_readerr()`: reads what is next, in the order in which it came:
    /// completions, as many as `room` has places for and up to the first failure; or a failure. Any
    /// context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there is no room.
    pub fn read<'e>(&self, room: &'e mut [Completion]) -> Result<Completed<'e>, Errno> {
        self.get(room, |cq, buf, count| {
            // SAFETY: `cq` is open by the invariant of this type; `buf` has room for `count` entries
            // of its format, by the same invariant.
            unsafe { op!((*cq).ops, kfi_ops_cq, read(cq, buf, count)) }
        })
    }

    /// `kfi_cq_sread()`: as [`read`](Self::read), but waits until there are `at_least` so many, or a
    /// failure. Sleeps, so it is not for who was only lent this, as a handler.
    pub(super) fn wait<'e>(
        &self,
        room: &'e mut [Completion],
        at_least: usize,
        msecs: Option<u32>,
    ) -> Result<Completed<'e>, Errno> {
        let timeout = msecs.map_or(-1, |msecs| c_int::try_from(msecs).unwrap_or(c_int::MAX));
        let cond = ptr::from_ref(&at_least).cast();
        self.get(room, |cq, buf, count| {
            // SAFETY: As in `read`; `cond` points to a local.
            unsafe { op!((*cq).ops, kfi_ops_cq, sread(cq, buf, count, cond, timeout)) }
        })
    }

    /// `kfi_cq_signal()`: brings those back who wait. Any context.
    pub(super) fn signal(&self) -> Result<(), Errno> {
        let cq = self.0.as_ptr();
        // SAFETY: `cq` is open by the invariant of this type.
        call::result(unsafe { op!((*cq).ops, kfi_ops_cq, signal(cq)) }?)
    }

    /// Calls an operation that reads.
    fn get<'e>(
        &self,
        room: &'e mut [Completion],
        call: impl Fn(*mut kfid_cq, *mut c_void, usize) -> Result<isize, Errno>,
    ) -> Result<Completed<'e>, Errno> {
        loop {
            let read = call(self.0.as_ptr(), room.as_mut_ptr().cast(), room.len())?;
            match call::count(read) {
                Ok(count) => {
                    let done = room.get(..count).ok_or(Errno::EIO)?;
                    return Ok(Completed::Done(done));
                }
                Err(Errno::EAGAIN) => return Ok(Completed::Nothing),
                Err(Errno::EAVAIL) => match self.failure()? {
                    // Someone else has read it meanwhile.
                    None => continue,
                    Some(failure) => return Ok(Completed::Failed(failure)),
                },
                Err(errno) => return Err(errno),
            }
        }
    }

    /// `kfi_cq_readerr()`.
    fn failure(&self) -> Result<Option<TransferFailure>, Errno> {
        let mut entry: kfi_cq_err_entry = pin_init::zeroed();
        let cq = self.0.as_ptr();
        // SAFETY: `cq` is open by the invariant of this type, and `entry` is a local.
        let read = unsafe { op!((*cq).ops, kfi_ops_cq, readerr(cq, &mut entry, 0)) }?;
        match call::count(read) {
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

/// What a completion queue's owner wants to be told.
pub trait CompletionHandler: Send + Sync + 'static {
    /// There is something to read, and all of it should be: it is called again for the first
    /// completion after someone has found the queue empty.
    ///
    /// In any context, softirq mostly, and so it must not sleep, nor drop anything that is closed by
    /// being dropped. One call at a time.
    fn completions(&self, completions: Completions<'_>);
}

impl CompletionHandler for NoHandler {
    fn completions(&self, _completions: Completions<'_>) {
        match *self {}
    }
}

/// How to open a completion queue, with a handler of type `H`.
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
    /// Nothing in particular, and no handler.
    fn default() -> Self {
        Self {
            wanted: Wanted::default(),
            handler: None,
        }
    }
}

impl<H> CompletionQueueOptions<H> {
    /// How many places it has, for operations that have not ended and completions that were not
    /// read; 0 leaves it to the provider.
    pub fn size(mut self, size: usize) -> Self {
        self.wanted.size = size;
        self
    }

    /// [`CompletionQueue::wait`] will be used.
    pub fn waits(mut self) -> Self {
        self.wanted.waits = true;
        self
    }

    /// Near which CPU completions should come in, if the provider can have a say in that.
    pub fn cpu(mut self, cpu: u32) -> Self {
        self.wanted.cpu = Some(cpu);
        self
    }

    /// Whom to tell when something comes.
    pub fn handler<N: CompletionHandler>(self, handler: KBox<N>) -> CompletionQueueOptions<N> {
        CompletionQueueOptions {
            wanted: self.wanted,
            handler: Some(handler),
        }
    }
}

/// An open completion queue.
///
/// It is closed when the last reference is gone, by a thread that must not run its handler, and
/// where it may sleep. A handler that is still there when the module is unloaded that it is part of
/// is taken off the queue as that of an [`EventQueue`](super::EventQueue) is.
///
/// # Examples
///
/// ```
/// use kernel::{prelude::*, sync::Arc};
/// use kfabric::consumer::{Completed, Completion, CompletionQueue, CompletionQueueOptions, Domain};
///
/// /// Waits until all that was posted has ended.
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

/// What a queue uses as long as it is open; dropped in this order.
struct Uses {
    _handler: Option<Hooked<dyn CompletionHandler>>,
    domain: Arc<Domain>,
}

/// Calls the handler of a completion queue, unless it was taken away. Any context.
///
/// # Safety
///
/// `cq` is an open queue. `context` came from [`Hooked::as_context`] of a completion handler, whose
/// `Hooked` isn't dropped before the queue is closed, which waits for this call.
unsafe extern "C" fn call_handler(cq: *mut kfid_cq, context: *mut c_void) {
    let Some(raw) = NonNull::new(cq) else {
        return;
    };
    // SAFETY: The caller promises that `context` is that of a completion handler, which is kept until
    // the queue is closed.
    unsafe {
        with_handler::<dyn CompletionHandler>(context, |handler| {
            handler.completions(Completions(raw, PhantomData));
        });
    }
}

impl CompletionQueue {
    /// `kfi_cq_open()`: opens a completion queue. May sleep.
    ///
    /// # Errors
    ///
    /// - `EOPBADSTATE`: it is to have a handler, and the handler's module is being unloaded.
    /// - `EINVAL`: it can't hold that many completions.
    /// - `ENOSYS`: the provider has none.
    /// - `ENOMEM`.
    pub fn open<H: CompletionHandler>(
        domain: &Arc<Domain>,
        options: CompletionQueueOptions<H>,
    ) -> Result<Arc<Self>, Errno> {
        // Here it becomes a handler of any type, and here it is known whose it is.
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
        let handler = match (handler, owner) {
            (Some(handler), Some(owner)) => Some(Hooked::new(handler, owner)?),
            (Some(_), None) => return Err(Errno::EINVAL),
            (None, _) => None,
        };
        let mut attr = kfi_cq_attr {
            size: wanted.size,
            format: FORMAT_DATA,
            wait_obj: if wanted.waits { WAIT_UNSPEC } else { WAIT_NONE },
            wait_cond: COND_THRESHOLD,
            ..pin_init::zeroed()
        };
        if let Some(cpu) = wanted.cpu {
            attr.flags = u64::from(kfi_bindings::KFI_AFFINITY);
            attr.signaling_vector = c_int::try_from(cpu).unwrap_or(c_int::MAX);
        }
        let (call, context): (kfi_comp_handler, _) = match &handler {
            Some(handler) => (Some(call_handler), handler.as_context()),
            None => (None, ptr::null_mut()),
        };
        let (raw, mut cq) = (domain.as_raw(), ptr::null_mut());
        // SAFETY: `raw` is open as long as `domain` is there; `attr` and `cq` are locals. What
        // `context` points to is kept with the handler until the queue is closed.
        let ret = unsafe {
            op!(
                (*raw).ops,
                kfi_bindings::kfi_ops_domain,
                cq_open(raw, &mut attr, &mut cq, call, context)
            )
        }?;
        let uses = Uses {
            _handler: handler,
            domain: domain.clone(),
        };
        // Dropped, and so closed, where there is no memory for the Arc.
        let queue = Self(Handle::new(call::opened(ret, cq)?, (), uses));
        Ok(Arc::new(queue, GFP_KERNEL)?)
    }

    /// Returns what can be read. Any context.
    pub fn completions(&self) -> Completions<'_> {
        // INVARIANT: It was opened with that format.
        Completions(self.0.raw(), PhantomData)
    }

    /// `kfi_cq_sread()`: as [`Completions::read`], but waits until there are `at_least` so many or a
    /// failure, for so many milliseconds or for ever; then it gives what there is. Sleeps.
    ///
    /// # Errors
    ///
    /// - `EINTR`: a signal came.
    /// - `ENOSYS`: the queue was opened for no waiting.
    /// - `EINVAL`: there is no room.
    pub fn wait<'e>(
        &self,
        room: &'e mut [Completion],
        at_least: usize,
        msecs: Option<u32>,
    ) -> Result<Completed<'e>, Errno> {
        self.completions().wait(room, at_least, msecs)
    }

    /// `kfi_cq_signal()`: those who wait come back with what there is; if nobody waits, the next who
    /// would have to. Any context.
    ///
    /// # Errors
    ///
    /// - `ENOSYS`: the queue was opened for no waiting.
    pub fn signal(&self) -> Result<(), Errno> {
        self.completions().signal()
    }

    /// Returns the domain that it was opened in. Any context.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.0.lent().domain
    }

    /// Gives up this reference and, if it was the last, closes the queue and tells whether that
    /// worked. Sleeps until the handler has ended; not to be called by the handler.
    ///
    /// # Errors
    ///
    /// - `EBUSY`, with nothing given back: others have references, and the queue is closed with the
    ///   last of them.
    /// - `EBUSY`, with the queue: somebody waits for it by [`as_raw`](Self::as_raw).
    pub fn close(queue: Arc<Self>) -> Result<(), CloseError<Arc<Self>>> {
        close_last(queue, |queue| &mut queue.0)
    }

    /// Returns the queue as C has it, for calls that Rust doesn't know. It's open as long as `self`
    /// is there, and must not be closed. Any context.
    pub fn as_raw(&self) -> *mut kfid_cq {
        self.0.as_ptr()
    }
}
