// SPDX-License-Identifier: GPL-2.0

//! Tracepoints of calls that succeed. A refusal [reports](crate::Refusal::report) itself.
//!
//! A tracepoint that is off costs one branch, which the kernel patches. All functions may be called in any context,
//! but not under a lock of the object or of its parent's list of children.
//!
//! C header: [`rust/helpers/trace.h`](srctree/rust/helpers/trace.h)

use super::{
    closing,
    counters,
    domain::{
        DomainBody,
        DomainObject, //
    },
    prelude::*, //
};
use crate::support::trace::is_on;

/// Returns the errno that the consumer gets, or 0.
pub(super) fn errno(result: &Result<(), Refusal>) -> c_int {
    result.map_or_else(|refusal| refusal.errno().to_c(), |()| 0)
}

/// Defines functions that fire an event of an object in a domain, some with an errno.
macro_rules! object_events {
    ($($(#[$doc:meta])* $name:ident($($err:ident)?): $tracepoint:ident, $fire:ident;)*) => {
        $(
            $(#[$doc])*
            #[inline(always)]
            pub(super) fn $name<T: Child<Parent = DomainBody>>(object: &Obj<T> $(, $err: c_int)?) {
                if is_on!($tracepoint) {
                    with_object(object, |of| {
                        // SAFETY: `of` and its strings are valid for the call.
                        unsafe { c::$fire(of $(, $err)?) }
                    });
                }
            }
        )*
    };
}

object_events! {
    /// Fires the event of a region that the consumer gets, or of a reusable region that has its memory.
    registered(err): __tracepoint_kfi_mr_registered, kfi_helper_trace_mr_registered;
    /// Fires the event of a close that begins.
    closes(): __tracepoint_kfi_mr_close, kfi_helper_trace_mr_close;
    /// Fires the event of a close that has ended. The consumer gets `err`.
    closed(err): __tracepoint_kfi_mr_closed, kfi_helper_trace_mr_closed;
    /// Fires the event of a connection that was begun or accepted. The consumer gets `err`.
    connects(err): __tracepoint_kfi_connect, kfi_helper_trace_connect;
    /// Fires the event of an established connection.
    connected(): __tracepoint_kfi_connected, kfi_helper_trace_connected;
    /// Fires the event of a connection that has ended, or could not be established because of `err`.
    disconnected(err): __tracepoint_kfi_disconnected, kfi_helper_trace_disconnected;
}

/// Fires the event of a registration that begins.
#[inline(always)]
pub(super) fn registers(domain: &DomainObject, request: &MrRequest<'_>) {
    if is_on!(__tracepoint_kfi_mr_register) {
        with_request(domain, request);
    }
}

#[cold]
#[inline(never)]
fn with_request(domain: &DomainObject, request: &MrRequest<'_>) {
    let of = c::kfi_helper_object {
        length: request.shape().bytes(),
        access: request.access().bits(),
        ..in_domain(domain)
    };
    // SAFETY: `of` and its strings are valid for the call.
    unsafe { c::kfi_helper_trace_mr_register(&of) };
}

/// Fires the event of a registration that has failed. The consumer gets `errno`.
#[cold]
pub(super) fn not_registered(domain: &DomainObject, errno: Errno) {
    if is_on!(__tracepoint_kfi_mr_registered) {
        // SAFETY: The description and its strings are valid for the call.
        unsafe { c::kfi_helper_trace_mr_registered(&in_domain(domain), errno.to_c()) };
    }
}

/// Fires the event of a transfer that was posted on an object. The consumer gets `posted`.
#[inline(always)]
pub(super) fn posted<T: Child<Parent = DomainBody>>(
    on: &Obj<T>,
    op: &Op,
    bytes: u64,
    context: Context,
    posted: &Result<(), Refusal>,
) {
    if is_on!(__tracepoint_kfi_post) {
        let err = errno(posted);
        let op = counters::kind(op);
        with_object(on, |of| {
            let context = widen(context.as_ptr().addr());
            // SAFETY: `of` and its strings are valid for the call.
            unsafe { c::kfi_helper_trace_post(of, op, bytes, context, err) }
        });
    }
}

/// Returns the description of an unknown object in a domain. The strings are those of the domain.
fn in_domain(domain: &DomainObject) -> c::kfi_helper_object {
    let mut of = pin_init::zeroed();
    DomainBody::locate(domain, &mut of);
    of
}

/// Calls `f` with the description of an object.
#[cold]
#[inline(never)]
fn with_object<T: Child<Parent = DomainBody>>(
    object: &Obj<T>,
    f: impl FnOnce(&c::kfi_helper_object),
) {
    let mut of = c::kfi_helper_object {
        id: T::number(object),
        ..in_domain(object.parent())
    };
    closing::describe(object, &mut of);
    f(&of);
}
