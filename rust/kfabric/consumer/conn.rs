// SPDX-License-Identifier: GPL-2.0

//! Events of connections, which an endpoint or a listener reads from its event queue.
//!
//! Each endpoint and each listener has its own event queue. Nobody else reads or writes it.

use super::*;
use core::mem::offset_of;

/// Maximum size of a peer's data in an event, in bytes.
const DATA: usize = 256;

/// A `struct kfi_eq_cm_entry` with space for data.
#[repr(C)]
struct CmEntry {
    fid: *mut kfid,
    info: *mut kfi_info,
    data: [u8; DATA],
}

// C writes a `struct kfi_eq_cm_entry` to a `CmEntry`.
const _: () = {
    assert!(offset_of!(CmEntry, info) == offset_of!(c::kfi_eq_cm_entry, info));
    assert!(offset_of!(CmEntry, data) == size_of::<c::kfi_eq_cm_entry>());
};

/// An event of a connection.
pub(super) enum ConnEvent {
    /// A peer asks for a connection.
    Request(InfoList, KVec<u8>),
    /// The endpoint is connected. The peer sent this data.
    Connected(KVec<u8>),
    /// The connection has ended.
    Shutdown,
    /// Connecting failed. [`failure`] returns the cause.
    Failed,
}

/// Returns a copy of a peer's data, or an empty vector if there is no memory.
fn copy(bytes: &[u8]) -> KVec<u8> {
    let mut copy = KVec::new();
    match copy.extend_from_slice(bytes, GFP_KERNEL) {
        Ok(()) => copy,
        Err(_) => KVec::new(),
    }
}

/// Reads the next event. Waits for it if there is a `timeout`, which [`handle::timeout`] has
/// returned. A queue with a handler allows no wait. May sleep.
///
/// # Errors
///
/// - `EINTR`: a signal is pending.
/// - `ENOSYS`: the read should wait, but the queue has a handler.
///
/// # Safety
///
/// `eq` must be an open queue of a [`Conn`].
unsafe fn next(eq: NonNull<kfid_eq>, timeout: Option<c_int>) -> Result<Option<ConnEvent>, Errno> {
    let _noio = NoIo::enter();
    let eq = eq.as_ptr();
    loop {
        let mut number = 0;
        let mut room = CmEntry {
            fid: ptr::null_mut(),
            info: ptr::null_mut(),
            data: [0; DATA],
        };
        let buf: *mut c_void = ptr::from_mut(&mut room).cast();
        let len = size_of::<CmEntry>();
        // SAFETY: `eq` is open by this function's contract. The others are locals.
        let read = unsafe {
            match timeout {
                None => op!((*eq).ops, read(eq, &mut number, buf, len, 0)),
                Some(timeout) => op!((*eq).ops, sread(eq, &mut number, buf, len, timeout, 0)),
            }
        }?;
        let len = match handle::count(read) {
            Ok(len) => len.saturating_sub(offset_of!(CmEntry, data)),
            Err(Errno::EAGAIN) => return Ok(None),
            Err(Errno::EAVAIL) => return Ok(Some(ConnEvent::Failed)),
            // The queue has space for all events of an endpoint, and never loses requests.
            Err(Errno::EOVERRUN) => continue,
            Err(errno) => return Err(errno),
        };
        let data = room.data.get(..len).unwrap_or_default();
        return Ok(Some(match (number, NonNull::new(room.info)) {
            (c::KFI_CONNREQ, Some(info)) => {
                // SAFETY: The reader of the event owns its info.
                let info = unsafe { InfoList::from_raw(info) };
                ConnEvent::Request(info, copy(data))
            }
            (c::KFI_CONNECTED, _) => ConnEvent::Connected(copy(data)),
            (c::KFI_SHUTDOWN, _) => ConnEvent::Shutdown,
            // Nobody writes other events.
            _ => continue,
        }));
    }
}

/// Reads why connecting failed, and the data that the peer sent when it rejected. May sleep.
///
/// # Safety
///
/// `eq` is open, and nobody else reads it at the same time.
unsafe fn failure(eq: NonNull<kfid_eq>) -> (Errno, KVec<u8>) {
    let _noio = NoIo::enter();
    let eq = eq.as_ptr();
    let mut entry: c::kfi_eq_err_entry = pin_init::zeroed();
    // SAFETY: `eq` is open by this function's contract. `entry` is a local.
    let read = unsafe { op!((*eq).ops, readerr(eq, &mut entry, 0)) };
    match read.and_then(handle::count) {
        Ok(_) => {
            let data = match NonNull::new(entry.err_data) {
                None => KVec::new(),
                // SAFETY: `err_data` has `err_data_size` bytes until the next failure is read. By
                // this function's contract nobody reads one now.
                Some(data) => copy(unsafe {
                    slice::from_raw_parts(data.cast().as_ptr(), entry.err_data_size)
                }),
            };
            (Errno::from_c(entry.err.wrapping_neg()), data)
        }
        Err(errno) => (errno, KVec::new()),
    }
}

/// A function that returns the cause of a failure, and the data that the peer sent. May sleep.
pub(super) type Cause<'a> = &'a dyn Fn() -> (Errno, KVec<u8>);

/// The handler of the event queue, which calls a function with each connection event. If the event
/// is a failure, the function's second argument returns the cause.
struct QueueAdapter<F>(F);

impl<F: Fn(ConnEvent, Cause<'_>) + Send + Sync + 'static> EventHandler for QueueAdapter<F> {
    fn events(&self, events: Events<'_>) {
        // SAFETY: The queue is open by the invariant of `Events`. `Conn::open_with` opened it.
        while let Ok(Some(event)) = unsafe { next(events.0, None) } {
            // SAFETY: The queue is open by the invariant of `Events`. Only the handler reads it,
            // one call at a time.
            (self.0)(event, &|| unsafe { failure(events.0) });
        }
    }
}

/// The event queue of one endpoint or listener.
pub(super) struct Conn {
    queue: Arc<EventQueue>,
    handled: bool,
}

impl Conn {
    /// Opens a queue to wait for, with space for `size` events. May sleep.
    pub(super) fn open(fabric: &Arc<Fabric>, size: usize) -> Result<Self, Errno> {
        let options = EventQueueOptions::default().size(size).waits();
        Ok(Self {
            queue: EventQueue::open(fabric, options)?,
            handled: false,
        })
    }

    /// Opens a queue whose events are passed to `handler` in process context, with space for `size`
    /// events. May sleep.
    ///
    /// This is generic, so its code is part of the handler's module.
    pub(super) fn open_with(
        fabric: &Arc<Fabric>,
        size: usize,
        handler: impl Fn(ConnEvent, Cause<'_>) + Send + Sync + 'static,
    ) -> Result<Self, Errno> {
        let _noio = NoIo::enter();
        let adapter = KBox::new(QueueAdapter(handler), GFP_KERNEL)?;
        let options = EventQueueOptions::default().size(size).handler(adapter);
        Ok(Self {
            queue: EventQueue::open(fabric, options)?,
            handled: true,
        })
    }

    /// Returns the next event. Sleeps until there is one, for at most `msecs` milliseconds if
    /// given.
    ///
    /// # Errors
    ///
    /// - `EINTR`: a signal is pending.
    /// - `ENOSYS`: the queue has a handler.
    pub(super) fn wait(&self, msecs: Option<u32>) -> Result<Option<ConnEvent>, Errno> {
        if self.handled {
            return Err(Errno::ENOSYS);
        }
        // SAFETY: `self` keeps the queue open, and is its `Conn`.
        unsafe { next(self.raw(), Some(handle::timeout(msecs))) }
    }

    /// Returns why connecting failed, after [`ConnEvent::Failed`]. May sleep.
    pub(super) fn failure(&mut self) -> (Errno, KVec<u8>) {
        if self.handled {
            return (Errno::ENOSYS, KVec::new());
        }
        // SAFETY: `self` keeps the queue open. `self` is an exclusive reference, so nobody else
        // reads it.
        unsafe { failure(self.raw()) }
    }

    fn raw(&self) -> NonNull<kfid_eq> {
        self.queue.events().0
    }

    /// Returns the queue. The object that it is bound to must keep a reference.
    pub(super) fn queue(&self) -> &Arc<EventQueue> {
        &self.queue
    }
}

/// An event of an endpoint's connection.
#[derive(Debug)]
pub enum ConnectionEvent {
    /// The endpoint is connected, and [`established`](super::MsgEndpoint::established) returns it.
    /// The peer sent this data.
    Connected(KVec<u8>),
    /// Connecting failed. A peer that rejected sent this data.
    Failed(Errno, KVec<u8>),
    /// The connection has ended.
    Shutdown,
}

/// The handler of an endpoint's connection events.
pub trait ConnectionHandler: Send + Sync + 'static {
    /// Handles an event.
    ///
    /// # Context
    ///
    /// Process context. May sleep. Must not drop or close the endpoint. Allocations don't wait for
    /// I/O.
    fn connection(&self, event: ConnectionEvent);
}
