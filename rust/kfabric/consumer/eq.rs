// SPDX-License-Identifier: GPL-2.0

//! Event queues.

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
use core::ops::Deref;

const ROOM: usize = crate::support::num::index(kfi_bindings::KFI_EQ_ENTRY_MAX);

/// A `struct kfi_eq_entry`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The address of the object's `struct kfid`.
    pub object: usize,
    /// The context of the completed operation, for example that of a registration's
    /// [`Options`](super::Options::context).
    pub context: usize,
    /// Data that depends on the event.
    pub data: u64,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An event of an object.
    Notify(Entry),
    /// A registration has completed.
    MrComplete(Entry),
    /// An address vector operation has completed.
    AvComplete(Entry),
    /// A multicast group was joined.
    JoinComplete(Entry),
    /// Another event, by its number.
    Other(u32, Bytes),
}

/// The bytes of an event's structure.
///
/// # Invariants
///
/// `len` is at most the length of `bytes`. All bytes behind it are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    bytes: [u8; ROOM],
    len: usize,
}

impl Bytes {
    /// Copies the bytes. Returns `EINVAL` if they are more than an event can have.
    pub fn new(from: &[u8]) -> Result<Self, Errno> {
        let mut bytes = [0; ROOM];
        let to = bytes.get_mut(..from.len()).ok_or(Errno::EINVAL)?;
        to.copy_from_slice(from);
        // INVARIANT: The bytes fit, and the others are still 0.
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
    /// Converts an event from C.
    pub(super) fn from_c(number: u32, bytes: &[u8]) -> Result<Self, Errno> {
        // A consumer may have written other data under any number.
        match (number, Entry::from_bytes(bytes)) {
            (c::KFI_NOTIFY, Some(entry)) => Ok(Self::Notify(entry)),
            (c::KFI_MR_COMPLETE, Some(entry)) => Ok(Self::MrComplete(entry)),
            (c::KFI_AV_COMPLETE, Some(entry)) => Ok(Self::AvComplete(entry)),
            (c::KFI_JOIN_COMPLETE, Some(entry)) => Ok(Self::JoinComplete(entry)),
            _ => Ok(Self::Other(number, Bytes::new(bytes)?)),
        }
    }

    /// Calls `write` with the event's number and bytes.
    pub(super) fn with_c<R>(&self, write: impl FnOnce(u32, &[u8]) -> R) -> R {
        let (number, entry) = match self {
            Self::Notify(entry) => (c::KFI_NOTIFY, entry),
            Self::MrComplete(entry) => (c::KFI_MR_COMPLETE, entry),
            Self::AvComplete(entry) => (c::KFI_AV_COMPLETE, entry),
            Self::JoinComplete(entry) => (c::KFI_JOIN_COMPLETE, entry),
            Self::Other(number, bytes) => return write(*number, bytes),
        };
        write(number, &entry.to_bytes())
    }
}

/// The next entry of an event queue.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// An event.
    Event(Event),
    /// An operation failed.
    Failed(Failure),
    /// The queue was full, so events or failures before the next one are lost.
    Lost,
}

/// A failed operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The address of the object's `struct kfid`.
    pub object: usize,
    /// The context of the operation.
    pub context: usize,
    /// The cause.
    pub errno: Errno,
}

/// An open event queue, to read and write. Any context, except for [`wait`](Self::wait).
///
/// # Invariants
///
/// The queue is open for `'a`.
#[derive(Clone, Copy)]
pub struct Events<'a>(
    pub(super) NonNull<kfid_eq>,
    pub(super) PhantomData<&'a kfid_eq>,
);

// SAFETY: Any thread may call the operations of a queue.
unsafe impl Send for Events<'_> {}
// SAFETY: Several threads may call the operations of a queue at once.
unsafe impl Sync for Events<'_> {}

impl Events<'_> {
    /// Calls an operation that reads an event.
    fn get(
        &self,
        call: impl Fn(*mut kfid_eq, *mut u32, *mut c_void, usize) -> Result<isize, Errno>,
    ) -> Result<Option<Next>, Errno> {
        loop {
            let mut number = 0;
            let mut bytes = [0; ROOM];
            let read = call(
                self.0.as_ptr(),
                &mut number,
                bytes.as_mut_ptr().cast(),
                bytes.len(),
            )?;
            match handle::count(read) {
                Ok(len) => {
                    let bytes = bytes.get(..len).ok_or(Errno::EIO)?;
                    return Ok(Some(Next::Event(Event::from_c(number, bytes)?)));
                }
                Err(Errno::EAGAIN) => return Ok(None),
                Err(Errno::EOVERRUN) => return Ok(Some(Next::Lost)),
                Err(Errno::EAVAIL) => match self.failure()? {
                    // Another reader was faster.
                    None => continue,
                    failed => return Ok(failed),
                },
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Reads a failure: `kfi_eq_readerr()`.
    fn failure(&self) -> Result<Option<Next>, Errno> {
        let mut entry: c::kfi_eq_err_entry = pin_init::zeroed();
        let eq = self.0.as_ptr();
        // SAFETY: `eq` is open by the invariant, and `entry` is a local.
        let read = unsafe { op!((*eq).ops, readerr(eq, &mut entry, 0)) }?;
        match handle::count(read) {
            Ok(_) => Ok(Some(Next::Failed(Failure {
                object: entry.fid.addr(),
                context: entry.context.addr(),
                errno: Errno::from_c(entry.err.wrapping_neg()),
            }))),
            Err(Errno::EAGAIN) => Ok(None),
            Err(Errno::EOVERRUN) => Ok(Some(Next::Lost)),
            // A failure doesn't precede a failure.
            Err(Errno::EAVAIL) => Err(Errno::EIO),
            Err(errno) => Err(errno),
        }
    }

    /// Reads the next entry, or returns `None`: `kfi_eq_read()`, `kfi_eq_readerr()`. Failures
    /// precede events. Any context.
    pub fn read(&self) -> Result<Option<Next>, Errno> {
        self.get(|eq, number, buf, len| {
            // SAFETY: `eq` is open by the invariant, and the others are locals.
            unsafe { op!((*eq).ops, read(eq, number, buf, len, 0)) }
        })
    }

    /// Reads the next entry: `kfi_eq_sread()`. Sleeps until there is one, for at most `msecs`
    /// milliseconds if given.
    ///
    /// # Errors
    ///
    /// - `EINTR`: a signal is pending.
    /// - `ENOSYS`: the queue was opened without [`waits`](EventQueueOptions::waits).
    pub fn wait(&self, msecs: Option<u32>) -> Result<Option<Next>, Errno> {
        let timeout = handle::timeout(msecs);
        self.get(|eq, number, buf, len| {
            // SAFETY: `eq` is open by the invariant, and the others are locals.
            unsafe { op!((*eq).ops, sread(eq, number, buf, len, timeout, 0)) }
        })
    }

    /// Writes an event: `kfi_eq_write()`. Any context.
    ///
    /// # Errors
    ///
    /// - `EAGAIN`: the queue is full.
    /// - `ENOSYS`: the queue was opened without [`writable`](EventQueueOptions::writable).
    /// - `EINVAL`: the event's number is unknown, or it has no data.
    pub fn write(&self, event: &Event) -> Result<(), Errno> {
        let eq = self.0.as_ptr();
        event.with_c(|number, bytes| {
            let (buf, len) = (bytes.as_ptr().cast(), bytes.len());
            // SAFETY: `eq` is open by the invariant, and `buf` has `len` bytes.
            let written = unsafe { op!((*eq).ops, write(eq, number, buf, len, 0)) }?;
            handle::count(written).map(|_| ())
        })
    }
}

/// The handler of an event queue.
pub trait EventHandler: Send + Sync + 'static {
    /// Reads events. It should read all of them.
    ///
    /// It is called again for the first event after a read has found the queue empty.
    ///
    /// # Context
    ///
    /// Process context. May sleep. Must not close event queues. Allocations don't wait for I/O.
    fn events(&self, events: Events<'_>);
}

impl EventHandler for NoHandler {
    fn events(&self, _events: Events<'_>) {
        match *self {}
    }
}

/// Options of an event queue, with a handler of type `H`.
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
    /// Creates options with the defaults, and no handler.
    fn default() -> Self {
        Self {
            wanted: Wanted::default(),
            handler: None,
        }
    }
}

impl<H> EventQueueOptions<H> {
    /// Sets the number of events that the queue holds, and the number of failures. 0 lets the
    /// provider choose.
    pub fn size(mut self, size: usize) -> Self {
        self.wanted.size = size;
        self
    }

    /// Enables [`Events::wait`].
    pub fn waits(mut self) -> Self {
        self.wanted.waits = true;
        self
    }

    /// Enables [`Events::write`].
    pub fn writable(mut self) -> Self {
        self.wanted.writable = true;
        self
    }

    /// Sets the handler.
    pub fn handler<N: EventHandler>(self, handler: KBox<N>) -> EventQueueOptions<N> {
        EventQueueOptions {
            wanted: self.wanted,
            handler: Some(handler),
        }
    }
}

/// An open event queue.
///
/// Dropping the last reference closes the queue. The queue's handler must not do that.
///
/// If the handler's module is unloaded while the queue is open, the core removes and drops the
/// handler. It does that after the module's exit function, before its code is freed. The log says
/// so.
///
/// # Examples
///
/// ```
/// use kernel::{prelude::*, sync::Arc};
/// use kfabric::consumer::{Access, Domain, Event, EventQueue, EventQueueOptions, Next};
///
/// /// Registers without a wait for the device.
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

/// The objects that a queue keeps, dropped in this order.
struct Uses {
    _handler: Option<Hooked<dyn EventHandler>>,
    _fabric: Arc<Fabric>,
}

/// Calls the handler of an event queue, unless it was removed. Sleeps if the handler does.
///
/// # Safety
///
/// `eq` is an open queue. `context` came from [`Hooked::as_context`] of an event handler. Its
/// `Hooked` is dropped after the queue is closed, which waits for this call.
unsafe extern "C" fn call_handler(eq: *mut kfid_eq, context: *mut c_void) {
    let Some(raw) = NonNull::new(eq) else {
        return;
    };
    // SAFETY: `context` is that of an event handler, which is kept until this returns, by this
    // function's contract.
    unsafe {
        with_handler::<dyn EventHandler>(context, |handler| {
            handler.events(Events(raw, PhantomData));
        });
    }
}

as_raw!(EventQueue: kfid_eq);

impl EventQueue {
    /// Opens an event queue: `kfi_eq_open()`. May sleep.
    ///
    /// # Errors
    ///
    /// - `EOPBADSTATE`: the handler's module is being unloaded.
    /// - `EINVAL`: the queue can't hold that many events.
    /// - `ENOMEM`.
    pub fn open<H: EventHandler>(
        fabric: &Arc<Fabric>,
        options: EventQueueOptions<H>,
    ) -> Result<Arc<Self>, Errno> {
        // This function is generic, so `this_module!()` is the handler's module.
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
        let handler = handler.map(|handler| Hooked::new(handler, owner, c"eq_open"));
        let handler = handler.transpose()?;
        let mut attr = c::kfi_eq_attr {
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
        let (call, context): (c::kfi_event_handler, _) = match &handler {
            Some(handler) => (Some(call_handler), handler.as_context()),
            None => (None, ptr::null_mut()),
        };
        // SAFETY: The fabric is open as long as `fabric`. `attr` is a local. `uses` keeps the
        // handler, to which `context` points, until the queue is closed.
        let eq = unsafe { open_by!(fabric.as_raw(), eq_open(&mut attr; call, context)) }?;
        let uses = Uses {
            _handler: handler,
            _fabric: fabric.clone(),
        };
        // If there is no memory for the Arc, this drops the handle, which closes the queue.
        let queue = Self(Handle::new(eq, (), uses));
        Ok(Arc::new(queue, GFP_KERNEL)?)
    }

    /// Returns the queue to read and write. Any context.
    pub fn events(&self) -> Events<'_> {
        Events(self.0.raw(), PhantomData)
    }

    /// Drops this reference. Closes the queue if it was the last one. Sleeps until the handler has
    /// returned.
    ///
    /// # Errors
    ///
    /// - `EBUSY`, without the queue: others have references. The last of them closes the queue.
    /// - `EBUSY`, with the queue: a caller waits for an event on the C object.
    /// - `EOPBADSTATE`, with the queue: the caller is the handler.
    pub fn close(queue: Arc<Self>) -> Result<(), CloseError<Arc<Self>>> {
        close_last(queue, |queue| &mut queue.0)
    }
}
