// SPDX-License-Identifier: GPL-2.0

//! Event queues.

use super::{
    call::{
        self,
        op, //
    },
    CloseError,
    Event,
    Fabric, //
};
use crate::errno::Errno;
use core::{
    marker::PhantomData,
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
    kfi_eq_attr,
    kfi_eq_err_entry,
    kfi_event_handler,
    kfi_ops_eq,
    kfid_eq, //
};

/// What a queue's owner wants to be told.
pub trait EventHandler: Send + Sync {
    /// There is something to read, and all of it should be: it is called again for the first event
    /// after someone has found the queue empty. Process context; may sleep, but not close event
    /// queues.
    fn events(&self, events: Events<'_>);
}

/// How to open an event queue.
#[derive(Default)]
pub struct EventQueueOptions {
    size: usize,
    waits: bool,
    writable: bool,
    handler: Option<KBox<dyn EventHandler>>,
}

impl EventQueueOptions {
    /// How many events it holds, and as many failures; 0 leaves it to the provider.
    pub fn size(self, size: usize) -> Self {
        Self { size, ..self }
    }

    /// [`Events::wait`] will be used.
    pub fn waits(self) -> Self {
        Self {
            waits: true,
            ..self
        }
    }

    /// [`Events::write`] will be used.
    pub fn writable(self) -> Self {
        Self {
            writable: true,
            ..self
        }
    }

    /// Whom to tell when something comes.
    pub fn handler(self, handler: KBox<dyn EventHandler>) -> Self {
        Self {
            handler: Some(handler),
            ..self
        }
    }
}

/// What was read from an event queue.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// An event.
    Event(Event),
    /// An operation failed.
    Failed(Failure),
    /// Events or failures were lost here, since the queue was full.
    Lost,
}

/// An operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The object that it is about, by the address of its `struct kfid`.
    pub object: usize,
    /// The context given with the operation.
    pub context: usize,
    /// Why.
    pub errno: Errno,
}

/// An open event queue.
///
/// It is closed when the last reference is gone, by a thread that must not run its handler.
///
/// # Invariants
///
/// `raw` is an open event queue, unless `closed`, and nobody else closes it. `handler` is null or
/// came from a box, and is not freed before it is closed.
pub struct EventQueue {
    raw: NonNull<kfid_eq>,
    handler: *mut KBox<dyn EventHandler>,
    closed: bool,
    _fabric: Arc<Fabric>,
}

// SAFETY: The calls on a queue may be made by any thread, and so may those of the handler.
unsafe impl Send for EventQueue {}
// SAFETY: As above, and by several at once.
unsafe impl Sync for EventQueue {}

/// Calls a Rust handler.
///
/// # Safety
///
/// `eq` is an open queue, and `context` the handler that it was opened with.
unsafe extern "C" fn call_handler(eq: *mut kfid_eq, context: *mut c_void) {
    let Some(raw) = NonNull::new(eq) else {
        return;
    };
    // SAFETY: By the requirements of this function, and the handler is kept until the queue is
    // closed, which waits for this call.
    let handler = unsafe { &*context.cast::<KBox<dyn EventHandler>>() };
    handler.events(Events(raw, PhantomData));
}

impl EventQueue {
    /// `kfi_eq_open()`: opens an event queue. May sleep.
    pub fn open(fabric: &Arc<Fabric>, options: EventQueueOptions) -> Result<Arc<Self>, Errno> {
        let handler = match options.handler {
            Some(handler) => KBox::into_raw(KBox::new(handler, GFP_KERNEL)?),
            None => ptr::null_mut(),
        };
        let mut attr = kfi_eq_attr {
            size: options.size,
            wait_obj: match options.waits {
                true => kfi_bindings::kfi_wait_obj_KFI_WAIT_UNSPEC,
                false => kfi_bindings::kfi_wait_obj_KFI_WAIT_NONE,
            },
            flags: match options.writable {
                true => u64::from(kfi_bindings::KFI_WRITE),
                false => 0,
            },
            ..pin_init::zeroed()
        };
        let call: kfi_event_handler = match handler.is_null() {
            true => None,
            false => Some(call_handler),
        };
        let mut eq = ptr::null_mut();
        let raw = fabric.as_raw();
        // SAFETY: The fabric is open, and the other pointers are valid for the call. The handler is
        // kept until the queue is closed.
        let opened = unsafe {
            op!(
                (*raw).ops,
                kfi_bindings::kfi_ops_fabric,
                eq_open(raw, &mut attr, &mut eq, call, handler.cast())
            )
        };
        match opened.and_then(|ret| call::opened(ret, eq)) {
            // INVARIANT: Just opened. Dropped, and so closed, where there is no memory for the Arc.
            Ok(raw) => {
                let queue = Self {
                    raw,
                    handler,
                    closed: false,
                    _fabric: fabric.clone(),
                };
                Ok(Arc::new(queue, GFP_KERNEL)?)
            }
            Err(errno) => {
                // SAFETY: It came from a box just now, and nobody has it.
                drop(unsafe { free_handler(handler) });
                Err(errno)
            }
        }
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
        // SAFETY: Open by the invariant; with nobody left to use it.
        unsafe { call::close(self.raw.cast()) }?;
        self.closed = true;
        // SAFETY: By the invariant; the handler doesn't run any more, nor will it.
        drop(unsafe { free_handler(core::mem::replace(&mut self.handler, ptr::null_mut())) });
        Ok(())
    }
}

impl Drop for EventQueue {
    fn drop(&mut self) {
        if !self.closed {
            if let Err(errno) = self.shut() {
                call::leaked("event queue", errno);
                // It is still open, so its fabric has to be, too.
                core::mem::forget(self._fabric.clone());
            }
        }
    }
}

/// # Safety
///
/// `handler` is null or came from a box that nobody else frees.
unsafe fn free_handler(
    handler: *mut KBox<dyn EventHandler>,
) -> Option<KBox<KBox<dyn EventHandler>>> {
    // SAFETY: By the requirements of this function, and not null.
    (!handler.is_null()).then(|| unsafe { KBox::from_raw(handler) })
}

/// An open event queue, to read from and write to. Any context, but for waiting.
///
/// # Invariants
///
/// The queue is open for as long as `'a` lasts.
#[derive(Clone, Copy)]
pub struct Events<'a>(NonNull<kfid_eq>, PhantomData<&'a EventQueue>);

// SAFETY: The calls on a queue may be made by any thread.
unsafe impl Send for Events<'_> {}
// SAFETY: As above, and by several at once.
unsafe impl Sync for Events<'_> {}

impl Events<'_> {
    /// Calls one of the queue's operations on room for an event.
    fn get(
        &self,
        call: impl Fn(*mut kfid_eq, *mut u32, *mut c_void, usize) -> Result<isize, Errno>,
    ) -> Result<Option<Next>, Errno> {
        loop {
            let mut number = 0;
            let mut bytes = Event::room();
            let read = call(
                self.0.as_ptr(),
                &mut number,
                bytes.as_mut_ptr().cast(),
                bytes.len(),
            )?;
            match length(read) {
                Ok(len) => {
                    let bytes = bytes.get(..len).ok_or(Errno::EIO)?;
                    return Ok(Some(Next::Event(Event::from_c(number, bytes)?)));
                }
                Err(Errno::EAGAIN) => return Ok(None),
                Err(Errno::EOVERRUN) => return Ok(Some(Next::Lost)),
                Err(Errno::EAVAIL) => match self.failure()? {
                    // Someone else has read it meanwhile.
                    None => continue,
                    failed => return Ok(failed),
                },
                Err(errno) => return Err(errno),
            }
        }
    }

    /// `kfi_eq_readerr()`.
    fn failure(&self) -> Result<Option<Next>, Errno> {
        let mut entry: kfi_eq_err_entry = pin_init::zeroed();
        let eq = self.0.as_ptr();
        // SAFETY: Open by the invariant, and `entry` is valid for the call.
        let read = unsafe { op!((*eq).ops, kfi_ops_eq, readerr(eq, &mut entry, 0)) }?;
        match length(read) {
            Ok(_) => Ok(Some(Next::Failed(Failure {
                object: entry.fid.addr(),
                context: entry.context.addr(),
                errno: Errno::from_c(entry.err.wrapping_neg()),
            }))),
            Err(Errno::EAGAIN) => Ok(None),
            Err(Errno::EOVERRUN) => Ok(Some(Next::Lost)),
            Err(errno) => Err(errno),
        }
    }

    /// `kfi_eq_read()` and `kfi_eq_readerr()`: reads what is next, a failure before any event;
    /// `None` if there is nothing.
    pub fn read(&self) -> Result<Option<Next>, Errno> {
        self.get(|eq, number, buf, len| {
            // SAFETY: Open by the invariant, and the pointers are valid for the call.
            unsafe { op!((*eq).ops, kfi_ops_eq, read(eq, number, buf, len, 0)) }
        })
    }

    /// `kfi_eq_sread()`: as [`read`](Self::read), but waits for so many milliseconds, or for ever.
    /// `EINTR` when a signal came; `ENOSYS` if the queue was opened for no waiting. Sleeps.
    pub fn wait(&self, msecs: Option<u32>) -> Result<Option<Next>, Errno> {
        let timeout = msecs.map_or(-1, |msecs| c_int::try_from(msecs).unwrap_or(c_int::MAX));
        self.get(|eq, number, buf, len| {
            // SAFETY: As for `read`.
            unsafe {
                op!(
                    (*eq).ops,
                    kfi_ops_eq,
                    sread(eq, number, buf, len, timeout, 0)
                )
            }
        })
    }

    /// `kfi_eq_write()`: puts in an event of one's own. `EAGAIN` if the queue is full; `ENOSYS` if
    /// it was opened for no writing.
    pub fn write(&self, event: &Event) -> Result<(), Errno> {
        let eq = self.0.as_ptr();
        event.with_c(|number, bytes| {
            let (buf, len) = (bytes.as_ptr().cast(), bytes.len());
            // SAFETY: Open by the invariant, and the bytes are valid for the call.
            let written = unsafe { op!((*eq).ops, kfi_ops_eq, write(eq, number, buf, len, 0)) }?;
            length(written).map(|_| ())
        })
    }
}

/// A number of bytes, or the error that C returned instead.
fn length(ret: isize) -> Result<usize, Errno> {
    usize::try_from(ret).map_err(|_| Errno::from_c(c_int::try_from(ret).unwrap_or(0)))
}
