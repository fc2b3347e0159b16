// SPDX-License-Identifier: GPL-2.0

//! Tracepoints. One that is off costs one branch, which the kernel patches.
//!
//! All functions may be called in any context.
//!
//! C header: [`rust/helpers/trace.h`](srctree/rust/helpers/trace.h)

use kernel::str::{
    CStr,
    CStrExt,
    CString, //
};
use kfi_bindings::kfi_helper_object;

/// Checks whether a tracepoint is on.
macro_rules! is_on {
    ($tracepoint:ident) => {
        // SAFETY: The tracepoint is a static of this module.
        unsafe {
            kernel::jump_label::static_branch_unlikely!(
                kfi_bindings::$tracepoint,
                kernel::bindings::tracepoint,
                key
            )
        }
    };
}
pub(crate) use is_on;

/// The names and the number of a domain, for events. Completion queues and pools can outlive the domain, so they
/// hold a reference.
pub struct DomainLabel {
    pub(crate) provider: &'static CStr,
    /// The name, if the domain was opened by name.
    pub(crate) domain: Option<CString>,
    pub(crate) number: u64,
}

impl DomainLabel {
    /// Describes object `id` of the domain for an event. The result points to strings of `self`, and must not
    /// outlive it.
    fn describe(&self, id: u64) -> kfi_helper_object {
        kfi_helper_object {
            provider: self.provider.as_char_ptr(),
            domain: self.domain.as_deref().unwrap_or(c"").as_char_ptr(),
            parent: self.number,
            id,
            ..pin_init::zeroed()
        }
    }
}

/// An entry of a completion queue.
pub(crate) struct CompletionEvent<'a> {
    /// The domain.
    pub(crate) label: &'a DomainLabel,
    /// The number of the completion queue.
    pub(crate) number: u64,
    /// The context of the transfer.
    pub(crate) context: u64,
    /// The flags of the entry.
    pub(crate) flags: u64,
    /// The length of a message that was received.
    pub(crate) len: u64,
    /// 0, or the negative errno.
    pub(crate) err: i32,
}

/// Fires the event of an entry of a completion queue, if `entry` returns one.
#[inline(always)]
pub(crate) fn completed<'a>(entry: impl FnOnce() -> Option<CompletionEvent<'a>>) {
    if is_on!(__tracepoint_kfi_complete) {
        if let Some(entry) = entry() {
            let of = entry.label.describe(entry.number);
            let CompletionEvent {
                context,
                flags,
                len,
                err,
                ..
            } = entry;
            // SAFETY: `of` and its strings are valid for the call.
            unsafe { kfi_bindings::kfi_helper_trace_complete(&of, context, flags, len, err) };
        }
    }
}

/// Fires the event of a provider that takes a device region of `pages` pages from the pool of a domain. `hit` is true if
/// the pool had a region.
#[inline(never)]
pub fn pool(domain: &DomainLabel, pages: u32, hit: bool) {
    if is_on!(__tracepoint_kfi_pool) {
        // SAFETY: The description and its strings are valid for the call.
        unsafe { kfi_bindings::kfi_helper_trace_pool(&domain.describe(0), pages, hit) };
    }
}
