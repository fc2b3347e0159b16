// SPDX-License-Identifier: GPL-2.0

//! Completion queues of domains whose provider is written in Rust.
//!
//! The core implements them for all providers. A provider writes completions by
//! [`Ticket`](crate::provider::ticket::Ticket)s.
//!
//! C header: [`include/kfi_eq.h`](srctree/include/kfi_eq.h)

use super::{
    counters,
    domain::{
        DomainBody,
        DomainObject, //
    },
    prelude::*,
    queues::{
        self,
        call,
        can_wait,
        strerror,
        timeout,
        Handler,
        CANT_WAIT, //
    }, //
};
use crate::provider::cq::{
    CqCore,
    CqErrEntry,
    Delivery,
    Notify, //
};

/// The class of completion queues.
static CQ: Class = Class::new(
    c::KFI_CLASS_CQ,
    c"not a completion queue",
    c"a completion queue is open in it",
);

/// An open completion queue.
pub(crate) type CqObject = Obj<CqBody>;

/// The core's part of a completion queue.
pub(crate) struct CqBody {
    /// The core of the queue. Endpoints that the queue is bound to have a reference, too. After the
    /// close the core discards completions.
    pub(crate) queue: Arc<CqCore>,
    /// The threads that wait.
    waiters: Children,
    format: Format,
    waits: Option<Waits>,
}

/// The condition that a consumer can wait for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    /// Any completion.
    Any,
    /// A number of completions that each call states.
    Threshold,
}

impl Object for CqBody {
    type C = kfid_cq;
    type Place = Place<Self>;
    const CLASS: &'static Class = &CQ;
    const OPS: kfi_ops = slots::<Self>();

    fn describe(object: &CqObject, about: &mut c::kfi_helper_object) {
        about.length = widen(object.queue.size());
        counters::show(object.queue.counters(), about);
    }
}

impl Child for CqBody {
    type Parent = DomainBody;
}

impl Bindable for CqBody {
    type Bound = Arc<CqCore>;

    fn bound(object: &CqObject) -> Result<Arc<CqCore>, Refusal> {
        // No transfer reports to the queue before it is bound.
        let label = &object.parent().label;
        object.queue.identify(label, Self::number(object));
        Ok(object.queue.clone())
    }
}

impl Close for CqBody {
    /// Closes the queue, and unbinds it from all objects that report to it. Waits for the handler.
    ///
    /// # Errors
    ///
    /// The errors of [`queues::close`].
    fn close(object: &Obj<Self>) -> Result<(), Refusal> {
        let why = c"somebody waits for the completion queue";
        queues::close(object.queue.in_handler(), &object.waiters, why)?;
        object.queue.close();
        Ok(())
    }
}

/// A binding of an endpoint to the completion queue of one direction. If the consumer closes the queue first,
/// the queue discards completions.
pub(super) struct CqBinding {
    pub(super) cq: Arc<CqCore>,
    /// The endpoint reports only requests with `KFI_COMPLETION`, and errors.
    pub(super) selective: bool,
}

/// The format of a completion for the consumer.
#[derive(Clone, Copy)]
pub(super) enum Format {
    /// A `struct kfi_cq_entry`.
    Context,
    /// A `struct kfi_cq_msg_entry`.
    Msg,
    /// A `struct kfi_cq_data_entry`.
    Data,
    /// A `struct kfi_cq_tagged_entry`.
    Tagged,
}

impl Format {
    /// Reads the format from attributes. `KFI_CQ_FORMAT_UNSPEC` is [`Data`](Self::Data).
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the format is unknown.
    pub(super) fn parse(format: c::kfi_cq_format) -> Result<Self, Refusal> {
        match format {
            c::kfi_cq_format_KFI_CQ_FORMAT_CONTEXT => Ok(Self::Context),
            c::kfi_cq_format_KFI_CQ_FORMAT_MSG => Ok(Self::Msg),
            c::kfi_cq_format_KFI_CQ_FORMAT_DATA | c::kfi_cq_format_KFI_CQ_FORMAT_UNSPEC => {
                Ok(Self::Data)
            }
            c::kfi_cq_format_KFI_CQ_FORMAT_TAGGED => Ok(Self::Tagged),
            other => {
                let refusal = Refusal::new(Errno::EINVAL, c"unknown format of completions");
                Err(refusal.value(u64::from(other)))
            }
        }
    }
}

/// A reader's array for completions.
struct CqBuffer {
    format: Format,
    buf: *mut c_void,
    addrs: *mut c::kfi_addr_t,
    count: usize,
}

impl CqBuffer {
    /// Checks a reader's arguments. `addrs` may be null. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: `buf` is NULL or `count` is 0.
    pub(super) fn new(
        format: Format,
        buf: *mut c_void,
        count: usize,
        addrs: *mut c::kfi_addr_t,
    ) -> Result<Self, Refusal> {
        if buf.is_null() || count == 0 {
            let refusal = Refusal::new(Errno::EINVAL, c"no room for completions");
            return Err(refusal.value(widen(count)));
        }
        Ok(Self {
            format,
            buf,
            addrs,
            count,
        })
    }

    /// Writes a completion to the entry with the index `at`. Any context.
    ///
    /// # Safety
    ///
    /// - `buf` is valid for writes of `at + 1` structures of the format.
    /// - `addrs` is null or valid for writes of `at + 1` addresses.
    pub(super) unsafe fn put(&self, at: usize, done: &CqEntry) {
        let (op_context, flags, len) = (done.context.as_ptr(), done.flags, done.len);
        let (buf, data) = (done.buf.as_ptr(), done.data);
        // SAFETY: `buf` is valid for writes of `at + 1` structures, and `addrs` is null or valid for as many
        // addresses.
        unsafe {
            match self.format {
                Format::Context => self.write(at, c::kfi_cq_entry { op_context }),
                Format::Msg => {
                    let entry = c::kfi_cq_msg_entry {
                        op_context,
                        flags,
                        len,
                    };
                    self.write(at, entry);
                }
                Format::Data => {
                    let entry = c::kfi_cq_data_entry {
                        op_context,
                        flags,
                        len,
                        buf,
                        data,
                    };
                    self.write(at, entry);
                }
                Format::Tagged => {
                    let entry = c::kfi_cq_tagged_entry {
                        op_context,
                        flags,
                        len,
                        buf,
                        data,
                        // There are no tagged messages.
                        tag: 0,
                    };
                    self.write(at, entry);
                }
            }
            if !self.addrs.is_null() {
                // A connected endpoint has one peer, which has no address in an address vector.
                self.addrs.add(at).write(widen(c::KFI_ADDR_NOTAVAIL));
            }
        }
    }

    /// Writes an entry.
    ///
    /// # Safety
    ///
    /// `buf` is valid for writes of `at + 1` structures of this type.
    unsafe fn write<E>(&self, at: usize, entry: E) {
        // SAFETY: `buf` is valid for writes of `at + 1` structures of this type.
        unsafe { self.buf.cast::<E>().add(at).write(entry) };
    }
}

/// The number of entries if the consumer requests 0.
const SIZE_DEFAULT: usize = 1 << 10;

/// The requested attributes of a completion queue.
struct CqAttr {
    size: usize,
    format: Format,
    cpu: Option<u32>,
    waits: Option<Waits>,
}

fn cpu(attr: &c::kfi_cq_attr) -> Result<Option<u32>, Refusal> {
    const AFFINITY: u64 = c::KFI_AFFINITY as u64;
    match attr.flags {
        0 => Ok(None),
        AFFINITY => match u32::try_from(attr.signaling_vector) {
            Ok(cpu) => Ok(Some(cpu)),
            Err(_) => Err(Refusal::new(Errno::EINVAL, c"negative signaling_vector")),
        },
        flags => Err(Refusal::new(Errno::EBADFLAGS, c"flags of a completion queue").value(flags)),
    }
}

fn waits(attr: &c::kfi_cq_attr) -> Result<Option<Waits>, Refusal> {
    if !can_wait(attr.wait_obj)? {
        return Ok(None);
    }
    match attr.wait_cond {
        c::kfi_cq_wait_cond_KFI_CQ_COND_NONE => Ok(Some(Waits::Any)),
        c::kfi_cq_wait_cond_KFI_CQ_COND_THRESHOLD => Ok(Some(Waits::Threshold)),
        other => {
            let refusal = Refusal::new(Errno::EINVAL, c"unknown condition of waiting");
            Err(refusal.value(u64::from(other)))
        }
    }
}

fn parse(attr: &c::kfi_cq_attr) -> Result<CqAttr, Refusal> {
    Ok(CqAttr {
        size: queues::size(
            attr.size,
            SIZE_DEFAULT,
            c"a completion queue can't hold that many",
        )?,
        cpu: cpu(attr)?,
        format: Format::parse(attr.format)?,
        waits: waits(attr)?,
    })
}

/// Opens a completion queue: the `cq_open` slot of a domain. May sleep.
///
/// # Safety
///
/// - `domain` is null or an open object.
/// - `attr` is null, an error pointer, or valid for the call.
/// - `cq` is null or valid for writes.
/// - Any thread may call `comp_handler` with the queue and `context`, in any context, until the queue is closed.
pub(crate) unsafe extern "C" fn open(
    domain: *mut kfid_domain,
    attr: *mut c::kfi_cq_attr,
    cq: *mut *mut kfid_cq,
    comp_handler: c::kfi_comp_handler,
    context: *mut c_void,
) -> c_int {
    // SAFETY: `domain` is null or open, and begins with its fid. `cq` is null or valid for writes.
    // `attr` is null, an error pointer, or valid for the call. Any thread may call the handler
    // until the queue is closed. An open queue calls the handler, and closing the queue waits for
    // the call.
    unsafe {
        opening::open(
            domain.cast(),
            c"cq_open",
            cq,
            |domain: &DomainObject, cq| {
                let wanted = parse_attr(attr, parse)?;
                let handler: Option<KBox<Notify>> = match comp_handler {
                    Some(call) => {
                        let handler = Handler::new(call, cq, context);
                        Some(KBox::new(move || handler.call(), GFP_KERNEL)?)
                    }
                    None => None,
                };
                let c = kfid_cq {
                    fid: CqObject::fid(context),
                    ops: OPS.as_ptr(),
                    comp_handler,
                };
                let delivery = Delivery {
                    cpu: wanted.cpu,
                    polled: domain.is_manual() && wanted.waits.is_none(),
                };
                let body = CqBody {
                    queue: CqCore::new(wanted.size, delivery, handler)?,
                    waiters: Children::new(),
                    format: wanted.format,
                    waits: wanted.waits,
                };
                Ok((c, body))
            },
        )
    }
}

/// The slots of a completion queue.
static OPS: Table<c::kfi_ops_cq> = Table(c::kfi_ops_cq {
    size: size_of::<c::kfi_ops_cq>(),
    read: Some(read),
    readfrom: Some(readfrom),
    readerr: Some(readerr),
    sread: Some(sread),
    sreadfrom: Some(sreadfrom),
    signal: Some(signal),
    strerror: Some(strerror::<CqBody>),
});

/// Returns a function that writes a completion to the next entry of `out`.
///
/// # Safety
///
/// - `out` is valid for writes of `count` entries.
/// - The caller calls the function at most `count` times.
unsafe fn putting(out: &CqBuffer) -> impl FnMut(&CqEntry) + use<'_> {
    let mut at = 0;
    move |done| {
        // SAFETY: `out` is valid for writes of `count` entries, and `at` is less than `count`.
        unsafe { out.put(at, done) };
        at += 1;
    }
}

/// Reads completions: `kfi_cq_read()`. Any context.
///
/// # Safety
///
/// - `cq` is an open completion queue of this core.
/// - `buf` is null or valid for writes of `count` entries of the format of the queue.
unsafe extern "C" fn read(cq: *mut kfid_cq, buf: *mut c_void, count: usize) -> isize {
    // SAFETY: `cq` is open, `buf` is null or valid for `count` entries, and a null `src_addr` is permitted.
    unsafe { readfrom(cq, buf, count, ptr::null_mut()) }
}

/// Reads completions and addresses: `kfi_cq_readfrom()`. Any context.
///
/// # Safety
///
/// - `cq` is an open completion queue of this core.
/// - `buf` is null or valid for writes of `count` entries of the format of the queue.
/// - `src_addr` is null or valid for writes of `count` addresses.
unsafe extern "C" fn readfrom(
    cq: *mut kfid_cq,
    buf: *mut c_void,
    count: usize,
    src_addr: *mut c::kfi_addr_t,
) -> isize {
    let read = |cq: &CqObject| {
        let out = CqBuffer::new(cq.format, buf, count, src_addr)?;
        // SAFETY: `buf` and `src_addr` are valid for `count` entries, and `queue` passes at most `count`.
        let put = unsafe { putting(&out) };
        Ok(cq.queue.read(out.count, put))
    };
    // SAFETY: `cq` is an open completion queue of this core.
    unsafe { call(cq, c"read", read) }
}

/// Waits for completions and reads them: `kfi_cq_sread()`. Sleeps.
///
/// # Safety
///
/// - `cq` is an open completion queue of this core.
/// - `buf` is null or valid for writes of `count` entries of the format of the queue.
/// - `cond` is null, or points to a threshold if the queue was opened with `KFI_CQ_COND_THRESHOLD`.
unsafe extern "C" fn sread(
    cq: *mut kfid_cq,
    buf: *mut c_void,
    count: usize,
    cond: *const c_void,
    msecs: c_int,
) -> isize {
    // SAFETY: `cq` is open, `buf` is null or valid for `count` entries, and a null `src_addr` is permitted.
    unsafe { sreadfrom(cq, buf, count, ptr::null_mut(), cond, msecs) }
}

/// Waits for completions and reads them and addresses: `kfi_cq_sreadfrom()`. Sleeps.
///
/// # Safety
///
/// - `cq` is an open completion queue of this core.
/// - `buf` is null or valid for writes of `count` entries of the format of the queue.
/// - `src_addr` is null or valid for writes of `count` addresses.
/// - `cond` is null, or points to a threshold if the queue was opened with `KFI_CQ_COND_THRESHOLD`.
unsafe extern "C" fn sreadfrom(
    cq: *mut kfid_cq,
    buf: *mut c_void,
    count: usize,
    src_addr: *mut c::kfi_addr_t,
    cond: *const c_void,
    msecs: c_int,
) -> isize {
    kernel::task::might_sleep();
    let read = |cq: &CqObject| {
        let out = CqBuffer::new(cq.format, buf, count, src_addr)?;
        let threshold = match cq.waits.ok_or(CANT_WAIT)? {
            Waits::Any => 1,
            // SAFETY: The queue was opened for thresholds, so `cond` is null or points to one.
            Waits::Threshold => unsafe { cond.cast::<usize>().as_ref() }.map_or(1, |at| *at),
        };
        // SAFETY: `buf` and `src_addr` are valid for `count` entries, and `queue` passes at most `count`.
        let put = unsafe { putting(&out) };
        // close() returns EBUSY while this counts the waiter.
        let _waiting = cq.waiters.count()?;
        let left = timeout(msecs);
        Ok(cq.queue.wait_and_read(out.count, threshold, left, put))
    };
    // SAFETY: `cq` is an open completion queue of this core.
    unsafe { call(cq, c"sread", read) }
}

/// Writes a failed request for C.
///
/// # Safety
///
/// `entry` is valid for reads and writes.
unsafe fn put_failure(entry: *mut c::kfi_cq_err_entry, failure: &CqErrEntry) {
    // SAFETY: `entry` is valid for reads.
    let (room, err_data) = unsafe { ((*entry).err_data_size, (*entry).err_data) };
    let done = &failure.done;
    let told = c::kfi_cq_err_entry {
        op_context: done.context.as_ptr(),
        flags: done.flags,
        len: done.len,
        buf: done.buf.as_ptr(),
        data: done.data,
        tag: 0,
        olen: failure.olen,
        err: -failure.errno.to_c(),
        prov_errno: failure.prov_errno,
        // There is no error data. A reader's own buffer stays in the entry.
        err_data: match room {
            0 => ptr::null_mut(),
            _ => err_data,
        },
        err_data_size: 0,
    };
    // SAFETY: `entry` is valid for writes.
    unsafe { entry.write(told) };
}

/// Reads an error completion: `kfi_cq_readerr()`. Any context.
///
/// # Safety
///
/// - `cq` is an open completion queue of this core.
/// - `buf` is null or valid for reads and writes. Its `err_data` and `err_data_size` are initialized.
unsafe extern "C" fn readerr(cq: *mut kfid_cq, buf: *mut c::kfi_cq_err_entry, flags: u64) -> isize {
    let read = |cq: &CqObject| {
        no_flags(flags)?;
        if buf.is_null() {
            return Err(Refusal::new(Errno::EINVAL, c"buffer is NULL"));
        }
        let Some(failure) = cq.queue.read_failure() else {
            return Ok(Err(Errno::EAGAIN));
        };
        // SAFETY: `buf` isn't null, so it is valid for reads and writes.
        unsafe { put_failure(buf, &failure) };
        Ok(Ok(1))
    };
    // SAFETY: `cq` is an open completion queue of this core.
    unsafe { call(cq, c"readerr", read) }
}

/// Wakes a waiter: `kfi_cq_signal()`. Any context.
///
/// # Safety
///
/// `cq` is an open completion queue of this core.
unsafe extern "C" fn signal(cq: *mut kfid_cq) -> c_int {
    // SAFETY: `cq` is an open completion queue of this core.
    let cq = unsafe { CqObject::from_c(cq) };
    if cq.waits.is_none() {
        return cq.refuse(c"signal", CANT_WAIT);
    }
    cq.queue.signal();
    0
}
