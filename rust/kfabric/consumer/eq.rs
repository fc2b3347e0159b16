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
        with_handler,
        Hooked,
        NoHandler, //
    },
    CloseError,
    Fabric, //
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
    ops::Deref,
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
    kfid_eq,
    KFI_AV_COMPLETE,
    KFI_JOIN_COMPLETE,
    KFI_MR_COMPLETE,
    KFI_NOTIFY, //
};

const ROOM: usize = crate::support::num::index(kfi_bindings::KFI_EQ_ENTRY_MAX);

/// What an event is about: a `struct kfi_eq_entry`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The object, by the address of its `struct kfid`.
    pub object: usize,
    /// The context given with the operation that has ended; for a registration that of its
    /// [`Options`](super::Options::context).
    pub context: usize,
    /// Depends on the event.
    pub data: u64,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Something about an object.
    Notify(Entry),
    /// A registration is complete.
    MrComplete(Entry),
    /// An address vector operation is complete.
    AvComplete(Entry),
    /// A multicast group is joined.
    JoinComplete(Entry),
    /// Another, by its number.
    Other(u32, Bytes),
}

/// The bytes of an event's structure.
///
/// # Invariants
///
/// `len` is at most the length of `bytes`, and behind it all are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    bytes: [u8; ROOM],
    len: usize,
}

impl Bytes {
    /// A copy of these; `EINVAL` if they are more than an event can have.
    pub fn new(from: &[u8]) -> Result<Self, Errno> {
        let mut bytes = [0; ROOM];
        let to = bytes.get_mut(..from.len()).ok_or(Errno::EINVAL)?;
        to.copy_from_slice(from);
        // INVARIANT: There was room, and the others were not touched.
        Ok(Self {
            bytes,
            len: from.len(),
        })
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl Entry {
    const LEN: usize = size_of::<kfi_bindings::kfi_eq_entry>();

    fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let (object, context) = (self.object.to_ne_bytes(), self.context.to_ne_bytes());
        let data = self.data.to_ne_bytes();
        let fields = [&object[..], &context, &data];
        for (to, from) in bytes.iter_mut().zip(fields.into_iter().flatten()) {
            *to = *from;
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (object, rest) = bytes.split_first_chunk()?;
        let (context, rest) = rest.split_first_chunk()?;
        let data = rest.try_into().ok()?;
        Some(Self {
            object: usize::from_ne_bytes(*object),
            context: usize::from_ne_bytes(*context),
            data: u64::from_ne_bytes(data),
        })
    }
}

impl Event {
    /// Room for any event's structure.
    pub(super) fn room() -> [u8; ROOM] {
        [0; ROOM]
    }

    /// The event that was read.
    pub(super) fn from_c(number: u32, bytes: &[u8]) -> Result<Self, Errno> {
        // A consumer may have written a structure of its own under any number.
        match (number, Entry::from_bytes(bytes)) {
            (KFI_NOTIFY, Some(entry)) => Ok(Self::Notify(entry)),
            (KFI_MR_COMPLETE, Some(entry)) => Ok(Self::MrComplete(entry)),
            (KFI_AV_COMPLETE, Some(entry)) => Ok(Self::AvComplete(entry)),
            (KFI_JOIN_COMPLETE, Some(entry)) => Ok(Self::JoinComplete(entry)),
            _ => Ok(Self::Other(number, Bytes::new(bytes)?)),
        }
    }

    /// Calls `write` with the event's number and bytes.
    pub(super) fn with_c<R>(&self, write: impl FnOnce(u32, &[u8]) -> R) -> R {
        let (number, entry) = match self {
            Self::Notify(entry) => (KFI_NOTIFY, entry),
            Self::MrComplete(entry) => (KFI_MR_COMPLETE, entry),
            Self::AvComplete(entry) => (KFI_AV_COMPLETE, entry),
            Self::JoinComplete(entry) => (KFI_JOIN_COMPLETE, entry),
            Self::Other(number, bytes) => return write(*number, bytes),
        };
        write(number, &entry.to_bytes())
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

/// An open event queue, to read from and write to. Any context, but for waiting.
///
/// # Invariants
///
/// The queue is open for as long as `'a` lasts.
#[derive(Clone, Copy)]
pub struct Events<'a>(
    pub(super) NonNull<kfid_eq>,
    pub(super) PhantomData<&'a kfid_eq>,
);

// SAFETY: The calls on a queue may be made by any thread.
unsafe impl Send for Events<'_> {}
// SAFETY: The calls on a queue may be made by several threads at once.
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
            match Read::from_c(read)? {
                Read::Entry(len) => {
                    let bytes = bytes.get(..len).ok_or(Errno::EIO)?;
                    return Ok(Some(Next::Event(Event::from_c(number, bytes)?)));
                }
                Read::Empty => return Ok(None),
                Read::Lost => return Ok(Some(Next::Lost)),
                Read::Failure => match self.failure()? {
                    // Someone else has read it meanwhile.
                    None => continue,
                    failed => return Ok(failed),
                },
            }
        }
    }

    /// `kfi_eq_readerr()`.
    fn failure(&self) -> Result<Option<Next>, Errno> {
        let mut entry: kfi_eq_err_entry = pin_init::zeroed();
        let eq = self.0.as_ptr();
        // SAFETY: `eq` is open by the invariant of this type, and `entry` is a local.
        let read = unsafe { op!((*eq).ops, kfi_ops_eq, readerr(eq, &mut entry, 0)) }?;
        match Read::from_c(read)? {
            Read::Entry(_) => Ok(Some(Next::Failed(Failure {
                object: entry.fid.addr(),
                context: entry.context.addr(),
                errno: Errno::from_c(entry.err.wrapping_neg()),
            }))),
            Read::Empty => Ok(None),
            Read::Lost => Ok(Some(Next::Lost)),
            // No failure comes before a failure.
            Read::Failure => Err(Errno::EIO),
        }
    }

    /// `kfi_eq_read()` and `kfi_eq_readerr()`: reads what is next, a failure before any event. Any
    /// context.
    ///
    /// Returns `None` if there is nothing.
    pub fn read(&self) -> Result<Option<Next>, Errno> {
        self.get(|eq, number, buf, len| {
            // SAFETY: `eq` is open by the invariant of this type, and the others are locals.
            unsafe { op!((*eq).ops, kfi_ops_eq, read(eq, number, buf, len, 0)) }
        })
    }

    /// `kfi_eq_sread()`: as [`read`](Self::read), but waits for so many milliseconds, or for ever.
    /// Sleeps.
    ///
    /// # Errors
    ///
    /// - `EINTR`: a signal came.
    /// - `ENOSYS`: the queue was opened for no waiting.
    pub fn wait(&self, msecs: Option<u32>) -> Result<Option<Next>, Errno> {
        let timeout = msecs.map_or(-1, |msecs| c_int::try_from(msecs).unwrap_or(c_int::MAX));
        self.get(|eq, number, buf, len| {
            // SAFETY: `eq` is open by the invariant of this type, and the others are locals.
            unsafe {
                op!(
                    (*eq).ops,
                    kfi_ops_eq,
                    sread(eq, number, buf, len, timeout, 0)
                )
            }
        })
    }

    /// `kfi_eq_write()`: puts in an event of one's own. Any context.
    ///
    /// # Errors
    ///
    /// - `EAGAIN`: the queue is full.
    /// - `ENOSYS`: it was opened for no writing.
    /// - `EINVAL`: there is no such event, or none without a structure.
    pub fn write(&self, event: &Event) -> Result<(), Errno> {
        let eq = self.0.as_ptr();
        event.with_c(|number, bytes| {
            let (buf, len) = (bytes.as_ptr().cast(), bytes.len());
            // SAFETY: `eq` is open by the invariant of this type, and `buf` is valid for the call.
            let written = unsafe { op!((*eq).ops, kfi_ops_eq, write(eq, number, buf, len, 0)) }?;
            call::count(written).map(|_| ())
        })
    }
}

/// What a call that reads has found.
enum Read {
    /// Nothing.
    Empty,
    /// An entry of so many bytes.
    Entry(usize),
    /// There is a failure to read about first.
    Failure,
    /// Entries were lost here.
    Lost,
}

impl Read {
    /// Takes what C returned; errors are those that say nothing of the kind.
    fn from_c(ret: isize) -> Result<Self, Errno> {
        match call::count(ret) {
            Ok(len) => Ok(Self::Entry(len)),
            Err(Errno::EAGAIN) => Ok(Self::Empty),
            Err(Errno::EAVAIL) => Ok(Self::Failure),
            Err(Errno::EOVERRUN) => Ok(Self::Lost),
            Err(errno) => Err(errno),
        }
    }
}

/// What a queue's owner wants to be told.
pub trait EventHandler: Send + Sync + 'static {
    /// There is something to read, and all of it should be: it is called again for the first event
    /// after someone has found the queue empty. Process context; may sleep, but not close event
    /// queues. Allocations in it don't wait for I/O.
    fn events(&self, events: Events<'_>);
}

impl EventHandler for NoHandler {
    fn events(&self, _events: Events<'_>) {
        match *self {}
    }
}

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

/// Calls the handler of an event queue, unless it was taken away. Sleeps if the handler does.
///
/// # Safety
///
/// `eq` is an open queue. `context` came from [`Hooked::as_context`] of an event handler, whose
/// `Hooked` isn't dropped before the queue is closed, which waits for this call.
unsafe extern "C" fn call_handler(eq: *mut kfid_eq, context: *mut c_void) {
    let Some(raw) = NonNull::new(eq) else {
        return;
    };
    // SAFETY: The caller promises that `context` is that of an event handler, which is kept until
    // the queue is closed.
    unsafe {
        with_handler::<dyn EventHandler>(context, |handler| {
            handler.events(Events(raw, PhantomData));
        });
    }
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
            Some(handler) => (Some(call_handler), handler.as_context()),
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
