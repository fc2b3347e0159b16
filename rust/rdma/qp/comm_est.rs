// SPDX-License-Identifier: GPL-2.0

//! Notification of the connection manager about "communication established".
//!
//! C header: [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h), `rdma_notify()`
//!
//! A message can arrive before the packet that establishes the connection, or that packet can be
//! lost. The driver then reports that communication is established, and the connection manager
//! needs that report.

use crate::{
    leak::leak,
    prelude::*, //
};
use kernel::types::Opaque;
use rdma_bindings as b;

/// Notifies an identifier of the connection manager, if it is set.
///
/// # Invariants
///
/// - `event` is initialized and does not move: it is in an [`Arc`].
/// - Its identifier is null or valid.
#[pin_data]
pub(crate) struct CommEstNotifier {
    #[pin]
    event: Opaque<b::rdma_helper_herald>,
}

// SAFETY: The C functions lock `event`, so any task may use it.
unsafe impl Send for CommEstNotifier {}

// SAFETY: The C functions lock `event`.
unsafe impl Sync for CommEstNotifier {}

impl CommEstNotifier {
    /// Creates a notifier without an identifier.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            // INVARIANT: The call initializes `event` without an identifier.
            event <- Opaque::ffi_init(|slot| {
                // SAFETY: `slot` is valid memory for the structure.
                unsafe { b::rdma_helper_init_herald(slot) }
            }),
        })
    }

    /// Directs the events of a new queue pair with these attributes to this notifier. The queue
    /// pair must be destroyed first.
    pub(super) fn install(&self, attr: &mut b::ib_qp_init_attr) {
        attr.event_handler = Some(b::rdma_helper_qp_event);
        attr.qp_context = self.event.get().cast();
    }

    /// Stops the events of a queue pair that could not be destroyed.
    pub(super) fn keep(self: &Arc<Self>, qp: *mut b::ib_qp) {
        // SAFETY: `qp` stays valid: it is never destroyed.
        unsafe { b::rdma_helper_silence_qp(qp) };
        // A running handler may still use the notifier.
        leak(self.clone());
    }

    /// Sets the identifier to notify.
    ///
    /// # Safety
    ///
    /// `id` must be valid until [`CommEstNotifier::clear_id`] has returned.
    pub(crate) unsafe fn set_id(&self, id: *mut b::rdma_cm_id) {
        // SAFETY: `event` is initialized by the type invariant. `id` is valid until `clear_id()` by
        // the function's contract.
        unsafe { b::rdma_helper_set_herald(self.event.get(), id) };
    }

    /// Clears the identifier. Any context.
    pub(crate) fn clear_id(&self) {
        // SAFETY: `event` is initialized by the type invariant, and null is no identifier.
        unsafe { b::rdma_helper_set_herald(self.event.get(), null_mut()) };
    }
}
