// SPDX-License-Identifier: GPL-2.0

//! Event queues.

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
    ptr, //
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
/// # Examples
///
/// ```
/// use kernel::{prelude::*, sync::Arc};
/// use kfabric::consumer::{Access, Domain, Event, EventQueue, EventQueueOptions, Next};
///
/// /// Registers without waiting for the device.
/// fn lend(domain: &Arc<Domain>, bytes: KVec<u8>) -> Result {
///     let queue = EventQueue::open(domain.fabric(), EventQueueOptions::default().waits())?;
///     domain.bind(&queue)?;
///     let mr = domain.reg(bytes, Access::REMOTE_READ)?;
///     match queue.events().wait(None)? {
///         Some(Next::Event(Event::MrComplete(entry))) => {
///             assert_eq!(entry.object, mr.object());
///             pr_info!("the key is {:#x}\n", mr.key());
///         }
///         Some(Next::Failed(failure)) => return Err(failure.errno.into()),
///         Some(_) | None => (),
///     }
///     Ok(())
/// }
/// ```
pub struct EventQueue(Handle<kfid_eq, (), Uses>);

/// What a queue uses as long as it is open; dropped in this order.
struct Uses {
    _handler: Option<Hooked<dyn EventHandler>>,
    _fabric: Arc<Fabric>,
}

impl EventQueue {
    /// `kfi_eq_open()`: opens an event queue. May sleep.
    ///
    /// # Errors
    ///
    /// - `EOPBADSTATE`: it is to have a handler, and the handler's module is being unloaded.
    /// - `EINVAL`: it can't hold that many events.
    /// - `ENOMEM`.
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
            wait_obj: if wanted.waits {
                kfi_bindings::kfi_wait_obj_KFI_WAIT_UNSPEC
            } else {
                kfi_bindings::kfi_wait_obj_KFI_WAIT_NONE
            },
            flags: if wanted.writable {
                u64::from(kfi_bindings::KFI_WRITE)
            } else {
                0
            },
            ..pin_init::zeroed()
        };
        let (call, context): (kfi_event_handler, _) = match &handler {
            Some(handler) => (Some(handler::events), handler.as_context()),
            None => (None, ptr::null_mut()),
        };
        let mut eq = ptr::null_mut();
        let raw = fabric.as_raw();
        // SAFETY: `raw` is open as long as `fabric` is there; `attr` and `eq` are locals. What
        // `context` points to is kept with the handler until the queue is closed.
        let ret = unsafe {
            op!(
                (*raw).ops,
                kfi_bindings::kfi_ops_fabric,
                eq_open(raw, &mut attr, &mut eq, call, context)
            )
        }?;
        let uses = Uses {
            _handler: handler,
            _fabric: fabric.clone(),
        };
        // Dropped, and so closed, where there is no memory for the Arc.
        let queue = Self(Handle::new(call::opened(ret, eq)?, (), uses));
        Ok(Arc::new(queue, GFP_KERNEL)?)
    }

    /// Returns what can be done with the queue, closing excepted. Any context.
    pub fn events(&self) -> Events<'_> {
        Events(self.0.raw(), PhantomData)
    }

    /// Gives up this reference and, if it was the last, closes the queue and tells whether that
    /// worked. Sleeps until the handler has ended; not to be called by the handler.
    ///
    /// # Errors
    ///
    /// - `EBUSY`, with nothing given back: others have references, and the queue is closed with the
    ///   last of them.
    /// - `EBUSY`, with the queue: somebody waits for an event by [`as_raw`](Self::as_raw).
    /// - `EOPBADSTATE`, with the queue: called by the handler.
    pub fn close(queue: Arc<Self>) -> Result<(), CloseError<Arc<Self>>> {
        close_last(queue, |queue| &mut queue.0)
    }

    /// Returns the queue as C has it, for calls that Rust doesn't know. It's open as long as `self`
    /// is there, and must not be closed. Any context.
    pub fn as_raw(&self) -> *mut kfid_eq {
        self.0.as_ptr()
    }
}
