// SPDX-License-Identifier: GPL-2.0

//! The operations of an event queue, as C calls them.

use super::{
    event::Event,
    out::Out,
    queue::Queue,
    read::Reading,
    ring::First,
    EqObject, //
};
use crate::{
    object::queues::{
        self,
        answer,
        tell,
        Answer,
        CANT_WAIT, //
    },
    support::{
        errno::Errno,
        num::{
            widen,
            widen_u32, //
        },
        refusal::Refusal,
        strings,
        table::Table, //
    }, //
};
use kernel::ffi::{
    c_char,
    c_int,
    c_void, //
};
use kfi_bindings::{
    kfi_eq_err_entry,
    kfi_ops_eq,
    kfid_eq, //
};

/// The operations of an event queue.
pub(super) static OPS: Table<kfi_ops_eq> = Table(kfi_ops_eq {
    size: size_of::<kfi_ops_eq>(),
    read: Some(read),
    readerr: Some(readerr),
    write: Some(write),
    sread: Some(sread),
    strerror: Some(strerror),
});

/// The `strerror` slot of an event queue. Any context.
///
/// # Safety
///
/// As the C API demands: `eq` is an open queue, and `buf` is null or has room for `len` bytes.
unsafe extern "C" fn strerror(
    eq: *mut kfid_eq,
    prov_errno: c_int,
    _err_data: *const c_void,
    buf: *mut c_char,
    len: usize,
) -> *const c_char {
    // SAFETY: By the requirements of this function.
    let fabric = unsafe { object(eq) }.parent();
    let words = fabric.provider().words(prov_errno);
    // SAFETY: By the requirements of this function.
    unsafe { tell(strings::words(words, prov_errno), buf, len) }
}

/// The queue that C calls an operation on.
///
/// # Safety
///
/// `eq` is an open queue; the reference is not used after it was closed.
unsafe fn object<'a>(eq: *mut kfid_eq) -> &'a EqObject {
    // SAFETY: Our table is on our queues only, whose `kfid_eq` is the object's first field.
    unsafe { &*eq.cast::<EqObject>() }
}

impl Reading<usize> {
    /// Returns what C gets.
    fn answer(self) -> Answer {
        match self {
            Self::Event(len) => Ok(len),
            Self::Empty => Err(Errno::EAGAIN),
            Self::Failure => Err(Errno::EAVAIL),
            Self::Lost => Err(Errno::EOVERRUN),
            Self::Signal => Err(Errno::EINTR),
        }
    }
}

/// Whether the reader wants to leave things where they are.
fn peeks(flags: u64) -> Result<bool, Refusal> {
    const PEEK: u64 = widen_u32(kfi_bindings::KFI_PEEK);
    match flags {
        0 => Ok(false),
        PEEK => Ok(true),
        _ => Err(Refusal::new(Errno::EBADFLAGS, c"flags of reading events").value(flags)),
    }
}

/// The `read` slot of an event queue. Any context.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn read(
    eq: *mut kfid_eq,
    event: *mut u32,
    buf: *mut c_void,
    len: usize,
    flags: u64,
) -> isize {
    // SAFETY: `eq` is an open queue by the requirements of this function.
    let eq = unsafe { object(eq) };
    let read = || {
        let peek = peeks(flags)?;
        let out = Out::new(event, buf, len)?;
        // SAFETY: `event` and `buf` are valid by the requirements of this function, and not null.
        let read = eq.queue.read(peek, |event| unsafe { out.put(event) });
        read.map(Reading::answer)
    };
    answer(read())
}

/// Sleeps.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn sread(
    eq: *mut kfid_eq,
    event: *mut u32,
    buf: *mut c_void,
    len: usize,
    timeout: c_int,
    flags: u64,
) -> isize {
    kernel::task::might_sleep();
    // SAFETY: `eq` is an open queue by the requirements of this function.
    let eq = unsafe { object(eq) };
    let read = || {
        let peek = peeks(flags)?;
        let out = Out::new(event, buf, len)?;
        if !eq.waits {
            return Err(CANT_WAIT);
        }
        // SAFETY: `event` and `buf` are valid by the requirements of this function, and not null.
        let put = |event: &Event| unsafe { out.put(event) };
        // Counted, so that the queue can't be closed under who waits.
        let _waiting = eq.waiters.count()?;
        let read = eq.queue.wait_and_read(peek, queues::timeout(timeout), put);
        read.map(Reading::answer)
    };
    answer(read())
}

/// The `readerr` slot of an event queue. Any context.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn readerr(eq: *mut kfid_eq, buf: *mut kfi_eq_err_entry, flags: u64) -> isize {
    // SAFETY: `eq` is an open queue by the requirements of this function.
    let eq = unsafe { object(eq) };
    let read = || {
        let peek = peeks(flags)?;
        if buf.is_null() {
            return Err(Refusal::new(Errno::EINVAL, c"buffer is NULL"));
        }
        let failure = match eq.queue.read_failure(peek) {
            First::Entry(failure) => failure,
            First::Nothing => return Ok(Err(Errno::EAGAIN)),
            First::Lost => return Ok(Err(Errno::EOVERRUN)),
        };
        // SAFETY: `buf` is valid by the requirements of this function, and not null.
        unsafe { buf.write(failure.entry()) };
        Ok(Ok(size_of::<kfi_eq_err_entry>()))
    };
    answer(read())
}

/// Is it an event that a consumer may write?
fn is_event(event: u32) -> bool {
    event <= kfi_bindings::KFI_JOIN_COMPLETE || event & kfi_bindings::KFI_PROV_SPECIFIC != 0
}

/// The `write` slot of an event queue. Any context.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn write(
    eq: *mut kfid_eq,
    event: u32,
    buf: *const c_void,
    len: usize,
    flags: u64,
) -> isize {
    // SAFETY: `eq` is an open queue by the requirements of this function.
    let eq = unsafe { object(eq) };
    let written = || {
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
        // SAFETY: `len` bytes at `buf` are valid by the requirements of this function; not null.
        let event = unsafe { Event::written(event, buf.cast(), len) }
            .ok_or(Refusal::new(Errno::EINVAL, c"not the length of an event").value(widen(len)))?;
        if Queue::try_push(&eq.queue, event) {
            Ok(Ok(len))
        } else {
            Ok(Err(Errno::EAGAIN))
        }
    };
    answer(written())
}
