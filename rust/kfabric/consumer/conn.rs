// SPDX-License-Identifier: GPL-2.0

//! Events of connections, which an endpoint or a listener reads from its event queue.
//!
//! Each endpoint and each listener has its own event queue. Nobody else reads or writes it.

use super::{
    call::{
        self,
        op, //
    },
    EventHandler,
    EventQueue,
    EventQueueOptions,
    Events,
    Fabric,
    InfoList, //
};
use crate::support::{
    errno::Errno,
    task::NoIo, //
};
use core::{
    mem::offset_of,
    ptr::{
        self,
        NonNull, //
    },
    slice, //
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
    kfi_eq_cm_entry,
    kfi_eq_err_entry,
    kfi_info,
    kfi_ops_eq,
    kfid,
    kfid_eq,
    KFI_CONNECTED,
    KFI_CONNREQ,
    KFI_SHUTDOWN, //
};

/// CmEntry for what a peer may send with an answer or a request, in bytes.
const DATA: usize = 256;

/// A `struct kfi_eq_cm_entry` with room behind it.
#[repr(C)]
struct CmEntry {
    fid: *mut kfid,
    info: *mut kfi_info,
    data: [u8; DATA],
}

// C writes the one where the other is.
const _: () = {
    assert!(offset_of!(CmEntry, info) == offset_of!(kfi_eq_cm_entry, info));
    assert!(offset_of!(CmEntry, data) == size_of::<kfi_eq_cm_entry>());
};

/// What has become of a connection.
pub(super) enum ConnEvent {
    /// A peer asks for one.
    Request(InfoList, KVec<u8>),
    /// There is one.
    Connected(KVec<u8>),
    /// There is none any more.
    Shutdown,
    /// There won't be one; [`failure`] says why.
    Failed,
}

/// How long to wait for news.
#[derive(Clone, Copy)]
pub(super) enum Wait {
    /// Not at all; any queue can do that.
    No,
    /// For so many milliseconds, or for ever.
    For(Option<u32>),
}

/// A copy of what a peer has sent; without memory for it there is none.
fn copy(bytes: &[u8]) -> KVec<u8> {
    let mut copy = KVec::new();
    match copy.extend_from_slice(bytes, GFP_KERNEL) {
        Ok(()) => copy,
        Err(_) => KVec::new(),
    }
}

/// Reads the next news. May sleep.
///
/// # Errors
///
/// - `EINTR`: a signal came.
/// - `ENOSYS`: to wait, and the queue has a handler.
///
/// # Safety
///
/// The queue is open, and one of those that this file makes.
unsafe fn next(eq: NonNull<kfid_eq>, wait: Wait) -> Result<Option<ConnEvent>, Errno> {
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
        // SAFETY: `eq` is open by the requirements of this function, and the others are locals.
        let read = unsafe {
            match wait {
                Wait::No => op!((*eq).ops, kfi_ops_eq, read(eq, &mut number, buf, len, 0)),
                Wait::For(msecs) => {
                    let msecs = msecs.map_or(-1, |ms| c_int::try_from(ms).unwrap_or(c_int::MAX));
                    op!(
                        (*eq).ops,
                        kfi_ops_eq,
                        sread(eq, &mut number, buf, len, msecs, 0)
                    )
                }
            }
        }?;
        let len = match call::count(read) {
            Ok(len) => len.saturating_sub(offset_of!(CmEntry, data)),
            Err(Errno::EAGAIN) => return Ok(None),
            Err(Errno::EAVAIL) => return Ok(Some(ConnEvent::Failed)),
            // An endpoint has less to tell than the queue holds, and no request is ever lost.
            Err(Errno::EOVERRUN) => continue,
            Err(errno) => return Err(errno),
        };
        let data = room.data.get(..len).unwrap_or_default();
        return Ok(Some(match (number, NonNull::new(room.info)) {
            (KFI_CONNREQ, Some(info)) => {
                // SAFETY: The info of such an event is the reader's.
                let info = unsafe { InfoList::from_raw(info) };
                ConnEvent::Request(info, copy(data))
            }
            (KFI_CONNECTED, _) => ConnEvent::Connected(copy(data)),
            (KFI_SHUTDOWN, _) => ConnEvent::Shutdown,
            // Nobody writes others.
            _ => continue,
        }));
    }
}

/// Reads why there won't be a connection, and what the peer has sent with its rejection. May sleep.
///
/// # Safety
///
/// The queue is open, and nobody else reads from it meanwhile.
unsafe fn failure(eq: NonNull<kfid_eq>) -> (Errno, KVec<u8>) {
    let _noio = NoIo::enter();
    let eq = eq.as_ptr();
    let mut entry: kfi_eq_err_entry = pin_init::zeroed();
    // SAFETY: `eq` is open by the requirements of this function, and `entry` is a local.
    let read = unsafe { op!((*eq).ops, kfi_ops_eq, readerr(eq, &mut entry, 0)) };
    match read.and_then(call::count) {
        Ok(_) => {
            let data = match NonNull::new(entry.err_data) {
                None => KVec::new(),
                // SAFETY: So many bytes are there until the next failure is read, which nobody does
                // meanwhile by the requirements of this function.
                Some(data) => copy(unsafe {
                    slice::from_raw_parts(data.cast().as_ptr(), entry.err_data_size)
                }),
            };
            (Errno::from_c(entry.err.wrapping_neg()), data)
        }
        Err(errno) => (errno, KVec::new()),
    }
}

/// Who is told of news by a queue; in process context.
pub(super) trait ConnEventHandler: Send + Sync + 'static {
    /// It has news, which may be a failure, with these.
    fn hear(&self, news: ConnEvent, failure: impl FnOnce() -> (Errno, KVec<u8>));
}

/// One who hears, as an event queue has it.
struct QueueAdapter<H>(H);

impl<H: ConnEventHandler> EventHandler for QueueAdapter<H> {
    fn events(&self, events: Events<'_>) {
        // SAFETY: The queue is open by the invariant of `Events`, and made by `Conn::open_with`.
        while let Ok(Some(news)) = unsafe { next(events.0, Wait::No) } {
            // SAFETY: The queue is open by the invariant of `Events`; only the handler reads from it,
            // which runs once at a time.
            self.0.hear(news, || unsafe { failure(events.0) });
        }
    }
}

/// An event queue for the connections of one object.
pub(super) struct Conn {
    queue: Arc<EventQueue>,
    handled: bool,
}

impl Conn {
    /// Opens a queue that can be waited for, with room for so many events. May sleep.
    pub(super) fn open(fabric: &Arc<Fabric>, size: usize) -> Result<Self, Errno> {
        let options = EventQueueOptions::default().size(size).waits();
        Ok(Self {
            queue: EventQueue::open(fabric, options)?,
            handled: false,
        })
    }

    /// Opens a queue that tells somebody, with room for so many events. May sleep.
    ///
    /// Generic, so that it is part of the module that `hears` is part of.
    pub(super) fn open_with<H: ConnEventHandler>(
        fabric: &Arc<Fabric>,
        size: usize,
        hears: H,
    ) -> Result<Self, Errno> {
        let _noio = NoIo::enter();
        let ear = KBox::new(QueueAdapter(hears), GFP_KERNEL)?;
        let options = EventQueueOptions::default().size(size).handler(ear);
        Ok(Self {
            queue: EventQueue::open(fabric, options)?,
            handled: true,
        })
    }

    /// Waits for news; `None` if there is none in that time. Sleeps.
    ///
    /// # Errors
    ///
    /// - `EINTR`: a signal came.
    /// - `ENOSYS`: it tells somebody else.
    pub(super) fn wait(&self, msecs: Option<u32>) -> Result<Option<ConnEvent>, Errno> {
        if self.handled {
            return Err(Errno::ENOSYS);
        }
        // SAFETY: The queue is open as long as there is a reference to it, and made above.
        unsafe { next(self.raw(), Wait::For(msecs)) }
    }

    /// Returns why there won't be a connection, after [`ConnEvent::Failed`]. May sleep.
    pub(super) fn failure(&mut self) -> (Errno, KVec<u8>) {
        if self.handled {
            return (Errno::ENOSYS, KVec::new());
        }
        // SAFETY: The queue is open as long as there is a reference to it, and nobody else has one.
        unsafe { failure(self.raw()) }
    }

    fn raw(&self) -> NonNull<kfid_eq> {
        self.queue.events().0
    }

    /// Returns the queue, to be bound to an object and kept by that.
    pub(super) fn queue(&self) -> &Arc<EventQueue> {
        &self.queue
    }
}

/// What becomes of an endpoint's connection.
#[derive(Debug)]
pub enum ConnectionEvent {
    /// There is one, so that [`established`](super::MsgEndpoint::established) is good now. The peer has
    /// sent this with its answer.
    Connected(KVec<u8>),
    /// There won't be one. A peer that has rejected has sent this with it.
    Failed(Errno, KVec<u8>),
    /// It has ended.
    Shutdown,
}

/// What an endpoint's owner wants to be told.
pub trait ConnectionHandler: Send + Sync + 'static {
    /// Something has become of the connection. Process context; may sleep, but not drop or close the
    /// endpoint. Allocations in it don't wait for I/O.
    fn connection(&self, event: ConnectionEvent);
}

/// A handler, as one who hears of a connection.
pub(super) struct HandlerAdapter<H>(pub(super) KBox<H>);

impl<H: ConnectionHandler> ConnEventHandler for HandlerAdapter<H> {
    fn hear(&self, news: ConnEvent, failure: impl FnOnce() -> (Errno, KVec<u8>)) {
        self.0.connection(match news {
            ConnEvent::Connected(data) => ConnectionEvent::Connected(data),
            ConnEvent::Shutdown => ConnectionEvent::Shutdown,
            ConnEvent::Failed => {
                let (errno, data) = failure();
                ConnectionEvent::Failed(errno, data)
            }
            // No endpoint has those.
            ConnEvent::Request(..) => return,
        });
    }
}
