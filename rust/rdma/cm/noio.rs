// SPDX-License-Identifier: GPL-2.0

//! Keeping the handlers of connections from waiting for I/O.
//!
//! C header: [`include/linux/sched/mm.h`](srctree/include/linux/sched/mm.h)
//!
//! Storage waits for these handlers when a connection is made, fails or is given up. Then a write that would free
//! memory can't finish before the handler has, so no allocation in the handler may wait for that write.

/// Calls `f`. Until `f` returns, no allocation of this task starts I/O, whatever its flags say. Process context.
pub(super) fn without_io<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: This changes flags of the current task only, and the flags are restored below on the same task.
    let flags = unsafe { rdma_bindings::rdma_helper_noio_save() };
    let done = f();
    // SAFETY: `flags` are those that the call above has returned on this task.
    unsafe { rdma_bindings::rdma_helper_noio_restore(flags) };
    done
}
