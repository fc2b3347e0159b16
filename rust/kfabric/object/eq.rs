// SPDX-License-Identifier: GPL-2.0

//! Event queues of fabrics whose provider is written in Rust.
//!
//! The core implements them for all providers. Except where a function says otherwise, the caller may be in any
//! context.

mod queue;
mod ring;

use self::ring::EqEvent;
use super::{
    fabric::FabricBody,
    pep::requests,
    prelude::*,
    queues::{
        self,
        call,
        can_wait,
        strerror,
        Handler,
        CANT_WAIT, //
    }, //
};

pub(crate) use self::queue::{
    EqCore,
    Unread,
    Writer, //
};

/// The class of event queues.
static EQ: Class = Class::new(
    c::KFI_CLASS_EQ,
    c"not an event queue",
    c"an event queue is open in it",
);

/// An open event queue.
pub(crate) type EqObject = Obj<EqBody>;

/// The core's part of an event queue.
pub(crate) struct EqBody {
    queue: Arc<EqCore>,
    /// The threads that wait.
    waiters: Children,
    waits: bool,
    writable: bool,
}

impl Object for EqBody {
    type C = kfid_eq;
    type Place = Place<Self>;
    const CLASS: &'static Class = &EQ;
    const OPS: kfi_ops = slots::<Self>();
}

impl Child for EqBody {
    type Parent = FabricBody;
}

impl Bindable for EqBody {
    type Bound = Arc<EqCore>;

    fn bound(object: &EqObject) -> Result<Arc<EqCore>, Refusal> {
        Ok(object.queue.clone())
    }
}

impl Close for EqBody {
    /// Closes the queue, unbinds it from all objects that report to it, and rejects unread connection requests.
    /// Waits for the handler.
    ///
    /// # Errors
    ///
    /// The errors of [`queues::close`].
    fn close(object: &Obj<Self>) -> Result<(), Refusal> {
        let why = c"somebody waits for the event queue";
        queues::close(object.queue.in_handler(), &object.waiters, why)?;
        let mut unread = object.queue.close();
        while !unread.is_empty() {
            // Dropping a connection request rejects it.
            drop(unread.advance().and_then(|mut event| {
                let handle = event.request()?;
                requests::forget(handle)
            }));
        }
        Ok(())
    }
}

/// A reader's buffer for an event.
struct EqBuffer {
    event: *mut u32,
    buf: *mut c_void,
    len: usize,
}

impl EqBuffer {
    /// Checks a reader's arguments. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: `event` or `buf` is NULL.
    fn new(event: *mut u32, buf: *mut c_void, len: usize) -> Result<Self, Refusal> {
        if event.is_null() || buf.is_null() {
            return Err(Refusal::new(Errno::EINVAL, c"event or buffer is NULL"));
        }
        Ok(Self { event, buf, len })
    }

    /// Writes an event, and returns its length in bytes. Truncates the peer's data to the buffer. Any context.
    ///
    /// # Errors
    ///
    /// - `ETOOSMALL`: the buffer is shorter than the structure of the event.
    ///
    /// # Safety
    ///
    /// - `event` is valid for writes.
    /// - `buf` is valid for writes of `len` bytes.
    unsafe fn put(&self, event: &EqEvent) -> Result<usize, Refusal> {
        let (bytes, len) = event.bytes();
        if self.len < len {
            let refusal = Refusal::new(Errno::ETOOSMALL, c"no room for the event");
            return Err(refusal.value(widen(len)));
        }
        // SAFETY: `event` is valid for writes, and `buf` for `self.len` bytes, which are at least `len`.
        unsafe {
            self.event.write(event.number);
            ptr::copy_nonoverlapping(bytes, self.buf.cast(), len);
        }
        let more = event.more();
        let fits = more.len().min(self.len - len);
        // SAFETY: `buf` is valid for `self.len` bytes, which are at least `len + fits`.
        unsafe { ptr::copy_nonoverlapping(more.as_ptr(), self.buf.cast::<u8>().add(len), fits) };
        Ok(len + fits)
    }
}

/// The number of events of a queue if the consumer requests 0.
const SIZE_DEFAULT: usize = 256;

/// Returns the number of events, and whether the consumer can wait for events and write them.
fn parse(attr: &c::kfi_eq_attr) -> Result<(usize, bool, bool), Refusal> {
    const WRITE: u64 = widen_u32(c::KFI_WRITE);
    if attr.flags & !WRITE != 0 {
        let refusal = Refusal::new(Errno::EBADFLAGS, c"flags of an event queue");
        return Err(refusal.value(attr.flags));
    }
    let why = c"an event queue can't hold that many";
    let size = queues::size(attr.size, SIZE_DEFAULT, why)?;
    Ok((size, can_wait(attr.wait_obj)?, attr.flags & WRITE != 0))
}

/// Opens an event queue: the `eq_open` slot of a fabric. May sleep.
///
/// # Safety
///
/// - `fabric` is null or an open object.
/// - `attr` is null, an error pointer, or valid for the call.
/// - `eq` is null or valid for writes.
/// - Any thread may call `handler` with the queue and `context` until the queue is closed.
pub(crate) unsafe extern "C" fn open(
    fabric: *mut kfid_fabric,
    attr: *mut c::kfi_eq_attr,
    eq: *mut *mut kfid_eq,
    handler: c::kfi_event_handler,
    context: *mut c_void,
) -> c_int {
    // SAFETY: `fabric` is null or open, and begins with its fid. `eq` is null or valid for writes. `attr` is null,
    // an error pointer, or valid for the call. Any thread may call the handler until the queue is closed.
    unsafe {
        opening::open(fabric.cast(), c"eq_open", eq, |_, eq| {
            let (size, waits, writable) = parse_attr(attr, parse)?;
            let called = handler.map(|call| Handler::new(call, eq, context));
            let c = kfid_eq {
                fid: EqObject::fid(context),
                ops: OPS.as_ptr(),
                event_handler: handler,
            };
            let body = EqBody {
                queue: EqCore::new(size, called)?,
                waiters: Children::new(),
                waits,
                writable,
            };
            Ok((c, body))
        })
    }
}

/// The slots of an event queue.
static OPS: Table<c::kfi_ops_eq> = Table(c::kfi_ops_eq {
    size: size_of::<c::kfi_ops_eq>(),
    read: Some(read),
    readerr: Some(readerr),
    write: Some(write),
    sread: Some(sread),
    strerror: Some(strerror::<EqBody>),
});

/// Returns whether the flags leave the event in the queue.
fn peeks(flags: u64) -> Result<bool, Refusal> {
    const PEEK: u64 = widen_u32(c::KFI_PEEK);
    match flags {
        0 => Ok(false),
        PEEK => Ok(true),
        _ => Err(Refusal::new(Errno::EBADFLAGS, c"flags of reading events").value(flags)),
    }
}

/// Reads an event: `kfi_eq_read()`. Any context.
///
/// # Safety
///
/// - `eq` is an open event queue of this core.
/// - `event` is null or valid for writes.
/// - `buf` is null or valid for writes of `len` bytes.
unsafe extern "C" fn read(
    eq: *mut kfid_eq,
    event: *mut u32,
    buf: *mut c_void,
    len: usize,
    flags: u64,
) -> isize {
    let read = |eq: &EqObject| {
        let peek = peeks(flags)?;
        let out = EqBuffer::new(event, buf, len)?;
        // SAFETY: Neither `event` nor `buf` is null, so both are valid for writes, `buf` of `len` bytes.
        eq.queue.read(peek, |event| unsafe { out.put(event) })
    };
    // SAFETY: `eq` is an open event queue of this core.
    unsafe { call(eq, c"read", read) }
}

/// Waits for an event and reads it: `kfi_eq_sread()`. Sleeps.
///
/// # Safety
///
/// - `eq` is an open event queue of this core.
/// - `event` is null or valid for writes.
/// - `buf` is null or valid for writes of `len` bytes.
unsafe extern "C" fn sread(
    eq: *mut kfid_eq,
    event: *mut u32,
    buf: *mut c_void,
    len: usize,
    timeout: c_int,
    flags: u64,
) -> isize {
    kernel::task::might_sleep();
    let read = |eq: &EqObject| {
        let peek = peeks(flags)?;
        let out = EqBuffer::new(event, buf, len)?;
        if !eq.waits {
            return Err(CANT_WAIT);
        }
        // SAFETY: Neither `event` nor `buf` is null, so both are valid for writes, `buf` of `len` bytes.
        let put = |event: &EqEvent| unsafe { out.put(event) };
        // close() returns EBUSY while this counts the waiter.
        let _waiting = eq.waiters.count()?;
        eq.queue.wait_and_read(peek, queues::timeout(timeout), put)
    };
    // SAFETY: `eq` is an open event queue of this core.
    unsafe { call(eq, c"sread", read) }
}

/// Reads an error event: `kfi_eq_readerr()`. Any context.
///
/// # Safety
///
/// - `eq` is an open event queue of this core.
/// - `buf` is null or valid for writes.
unsafe extern "C" fn readerr(eq: *mut kfid_eq, buf: *mut c::kfi_eq_err_entry, flags: u64) -> isize {
    let read = |eq: &EqObject| {
        let peek = peeks(flags)?;
        if buf.is_null() {
            return Err(Refusal::new(Errno::EINVAL, c"buffer is NULL"));
        }
        let failure = match eq.queue.read_failure(peek) {
            Ok(failure) => failure,
            Err(errno) => return Ok(Err(errno)),
        };
        // SAFETY: `buf` isn't null, so it is valid for writes.
        unsafe { buf.write(failure.entry()) };
        Ok(Ok(size_of::<c::kfi_eq_err_entry>()))
    };
    // SAFETY: `eq` is an open event queue of this core.
    unsafe { call(eq, c"readerr", read) }
}

/// Returns whether a consumer may write this event.
fn is_event(event: u32) -> bool {
    event <= c::KFI_JOIN_COMPLETE || event & c::KFI_PROV_SPECIFIC != 0
}

/// Writes an event of the consumer: `kfi_eq_write()`. Any context.
///
/// # Safety
///
/// - `eq` is an open event queue of this core.
/// - `buf` is null or valid for reads of `len` bytes.
unsafe extern "C" fn write(
    eq: *mut kfid_eq,
    event: u32,
    buf: *const c_void,
    len: usize,
    flags: u64,
) -> isize {
    let write = |eq: &EqObject| {
        if !eq.writable {
            return Err(Refusal::new(Errno::ENOSYS, c"opened without KFI_WRITE"));
        }
        if flags != 0 {
            return Err(Refusal::new(Errno::EBADFLAGS, c"flags of writing an event").value(flags));
        }
        if !is_event(event) {
            let refusal = Refusal::new(Errno::EINVAL, c"no such event");
            return Err(refusal.value(u64::from(event)));
        }
        if buf.is_null() {
            return Err(Refusal::new(Errno::EINVAL, c"buffer is NULL"));
        }
        // SAFETY: `buf` isn't null, so it is valid for reads of `len` bytes.
        let event = unsafe { EqEvent::written(event, buf.cast(), len) }
            .ok_or(Refusal::new(Errno::EINVAL, c"not the length of an event").value(widen(len)))?;
        if EqCore::try_push(&eq.queue, event) {
            Ok(Ok(len))
        } else {
            Ok(Err(Errno::EAGAIN))
        }
    };
    // SAFETY: `eq` is an open event queue of this core.
    unsafe { call(eq, c"write", write) }
}
