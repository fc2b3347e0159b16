// SPDX-License-Identifier: GPL-2.0

//! Tracepoints. One that is off costs one branch, which the kernel patches.
//!
//! All functions may be called in any context.
//!
//! C header: [`rust/helpers/trace.h`](srctree/rust/helpers/trace.h)

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

/// An entry of a completion queue.
pub(crate) struct CompletionEvent {
    /// The number of the domain.
    pub(crate) domain: u64,
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

/// Fires the event of an entry of a completion queue.
#[inline(always)]
pub(crate) fn completed(entry: impl FnOnce() -> CompletionEvent) {
    if is_on!(__tracepoint_kfi_complete) {
        let CompletionEvent {
            domain,
            number,
            context,
            flags,
            len,
            err,
        } = entry();
        // SAFETY: The function has no requirements.
        unsafe {
            kfi_bindings::kfi_helper_trace_complete(domain, number, context, flags, len, err)
        };
    }
}

/// Fires the event of a provider that takes a device region of `pages` pages from the pool of a domain. `domain` is the
/// number of the domain. `hit` is true if the pool had a region.
#[inline(never)]
pub fn pool(domain: u64, pages: u32, hit: bool) {
    if is_on!(__tracepoint_kfi_pool) {
        // SAFETY: The function has no requirements.
        unsafe { kfi_bindings::kfi_helper_trace_pool(domain, pages, hit) };
    }
}
