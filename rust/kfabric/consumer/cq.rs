// SPDX-License-Identifier: GPL-2.0

//! Completion queues.

use super::{
    call::{
        self,
        op, //
    },
    completions::{
        Completed,
        Completion,
        Completions, //
    },
    handle::{
        close_last,
        Handle, //
    },
    handler::{
        self,
        CompletionHandler,
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
    noio::NoIo, //
};
use core::{
    marker::PhantomData,
    ptr, //
};
use kernel::{
    ffi::c_int,
    prelude::*,
    sync::Arc, //
};
use kfi_bindings::{
    kfi_comp_handler,
    kfi_cq_attr,
    kfi_cq_format_KFI_CQ_FORMAT_DATA as FORMAT_DATA,
    kfi_cq_wait_cond_KFI_CQ_COND_THRESHOLD as COND_THRESHOLD,
    kfi_wait_obj_KFI_WAIT_NONE as WAIT_NONE,
    kfi_wait_obj_KFI_WAIT_UNSPEC as WAIT_UNSPEC,
    kfid_cq, //
};

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
            Some(handler) => (Some(handler::completions), handler.as_context()),
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
