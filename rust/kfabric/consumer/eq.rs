// SPDX-License-Identifier: GPL-2.0

//! Event queues.

use super::{
    call::{
        self,
        op, //
    },
    handler::{
        self,
        EventHandler,
        Hooked,
        NoHandler, //
    },
    CloseError,
    Events,
    Fabric, //
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
    ptr::{
        self,
        NonNull, //
    }, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfi_bindings::{
    kfi_eq_attr,
    kfi_event_handler,
    kfid_eq, //
};

/// How to open an event queue, with a handler of type `H`.
pub struct EventQueueOptions<H = NoHandler> {
    wanted: Wanted,
    handler: Option<KBox<H>>,
}

#[derive(Clone, Copy, Default)]
struct Wanted {
    size: usize,
    waits: bool,
    writable: bool,
}

impl Default for EventQueueOptions {
    /// Nothing in particular, and no handler.
    fn default() -> Self {
        Self {
            wanted: Wanted::default(),
            handler: None,
        }
    }
}

impl<H> EventQueueOptions<H> {
    /// How many events it holds, and as many failures; 0 leaves it to the provider.
    pub fn size(mut self, size: usize) -> Self {
        self.wanted.size = size;
        self
    }

    /// [`Events::wait`] will be used.
    pub fn waits(mut self) -> Self {
        self.wanted.waits = true;
        self
    }

    /// [`Events::write`] will be used.
    pub fn writable(mut self) -> Self {
        self.wanted.writable = true;
        self
    }

    /// Whom to tell when something comes.
    pub fn handler<N: EventHandler>(self, handler: KBox<N>) -> EventQueueOptions<N> {
        EventQueueOptions {
            wanted: self.wanted,
            handler: Some(handler),
        }
    }
}

/// An open event queue.
///
/// It is closed when the last reference is gone, by a thread that must not run its handler. A handler
/// that is still there when the module is unloaded that it is part of, since the queue was forgotten
/// or is held by somebody else, is taken off the queue and dropped, when the module's own end has
/// been reached and before its code is freed; the log says so.
///
/// # Invariants
///
/// `raw` is an open event queue, unless `closed`, and nobody else closes it. `handler` is what it was
/// opened with, and is not dropped before it is closed.
pub struct EventQueue {
    raw: NonNull<kfid_eq>,
    handler: Option<Hooked>,
    closed: bool,
    _fabric: Arc<Fabric>,
}

// SAFETY: The calls on a queue may be made by any thread, and so may those of the handler.
unsafe impl Send for EventQueue {}
// SAFETY: As above, and by several at once.
unsafe impl Sync for EventQueue {}

impl EventQueue {
    /// `kfi_eq_open()`: opens an event queue. May sleep.
    ///
    /// Fails with `EOPBADSTATE` if it is to have a handler, and the handler's module is being
    /// unloaded.
    pub fn open<H: EventHandler>(
        fabric: &Arc<Fabric>,
        options: EventQueueOptions<H>,
    ) -> Result<Arc<Self>, Errno> {
        // Here it becomes a handler of any type, and here it is known whose it is.
        let handler: Option<KBox<dyn EventHandler>> = match options.handler {
            Some(handler) => Some(handler),
            None => None,
        };
        Self::open_for(this_module!(), fabric, options.wanted, handler)
    }

    fn open_for(
        owner: Option<Owner>,
        fabric: &Arc<Fabric>,
        wanted: Wanted,
        handler: Option<KBox<dyn EventHandler>>,
    ) -> Result<Arc<Self>, Errno> {
        let _noio = NoIo::enter();
        let handler = match (handler, owner) {
            (Some(handler), Some(owner)) => Some(Hooked::new(handler, owner)?),
            (Some(_), None) => return Err(Errno::EINVAL),
            (None, _) => None,
        };
        let mut attr = kfi_eq_attr {
            size: wanted.size,
            wait_obj: match wanted.waits {
                true => kfi_bindings::kfi_wait_obj_KFI_WAIT_UNSPEC,
                false => kfi_bindings::kfi_wait_obj_KFI_WAIT_NONE,
            },
            flags: match wanted.writable {
                true => u64::from(kfi_bindings::KFI_WRITE),
                false => 0,
            },
            ..pin_init::zeroed()
        };
        let (call, context): (kfi_event_handler, _) = match &handler {
            Some(handler) => (Some(handler::call), handler.as_context()),
            None => (None, ptr::null_mut()),
        };
        let mut eq = ptr::null_mut();
        let raw = fabric.as_raw();
        // SAFETY: The fabric is open, and the other pointers are valid for the call. The handler is
        // kept until the queue is closed.
        let ret = unsafe {
            op!(
                (*raw).ops,
                kfi_bindings::kfi_ops_fabric,
                eq_open(raw, &mut attr, &mut eq, call, context)
            )
        }?;
        // INVARIANT: Just opened. Dropped, and so closed, where there is no memory for the Arc.
        let queue = Self {
            raw: call::opened(ret, eq)?,
            handler,
            closed: false,
            _fabric: fabric.clone(),
        };
        Ok(Arc::new(queue, GFP_KERNEL)?)
    }

    /// What can be done with the queue, closing excepted.
    pub fn events(&self) -> Events<'_> {
        Events(self.raw, PhantomData)
    }

    /// Gives up this reference and, if it was the last, closes the queue and tells whether that
    /// worked. Sleeps until the handler has ended; not to be called by the handler.
    ///
    /// Fails with `EBUSY` if others have references: then the queue is closed with the last of them.
    /// It is also the error where a domain reports to the queue, and `EOPBADSTATE` that of the
    /// handler: then the queue comes back with the error.
    pub fn close(queue: Arc<Self>) -> Result<(), CloseError<Arc<Self>>> {
        let Some(mut queue) = Arc::into_unique_or_drop(queue) else {
            return Err(CloseError::new(Errno::EBUSY, None));
        };
        queue.shut().map_err(|errno| {
            let open = (!queue.closed).then(|| queue.into());
            CloseError::new(errno, open)
        })
    }

    /// The queue as C has it, for calls that Rust doesn't know. It's open as long as `self` is
    /// there, and must not be closed.
    pub fn as_raw(&self) -> *mut kfid_eq {
        self.raw.as_ptr()
    }

    /// To be called until it doesn't fail.
    fn shut(&mut self) -> Result<(), Errno> {
        let _noio = NoIo::enter();
        // SAFETY: Open by the invariant; with nobody left to use it.
        unsafe { call::close(self.raw.cast()) }?;
        self.closed = true;
        self.handler = None;
        Ok(())
    }
}

impl Drop for EventQueue {
    fn drop(&mut self) {
        if !self.closed {
            if let Err(errno) = self.shut() {
                call::leaked("event queue", errno);
                // It is still open, so its handler may be called, and its fabric has to be open, too.
                core::mem::forget(self.handler.take());
                core::mem::forget(self._fabric.clone());
            }
        }
    }
}
