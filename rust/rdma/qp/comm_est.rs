// SPDX-License-Identifier: GPL-2.0

//! Who hears of a queue pair's events.
//!
//! C header: [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h), `rdma_notify()`
//!
//! A message can come before the packet that says that the connection is there, or that packet get
//! lost. A driver tells then that communication is established, and the connection manager wants to
//! know.

use kernel::{
    prelude::*,
    sync::Arc,
    types::Opaque, //
};

use core::ptr::null_mut;

use rdma_bindings as b;

use crate::leak::leak;

/// Tells an identifier of the connection manager's, if there is one.
///
/// # Invariants
///
/// `event` is initialized, and doesn't move: it is in an [`Arc`]. The identifier that it has, if
/// any, is there.
#[pin_data]
pub(crate) struct CommEstNotifier {
    #[pin]
    event: Opaque<b::rdma_helper_herald>,
}

// SAFETY: The C side does its own locking.
unsafe impl Send for CommEstNotifier {}

// SAFETY: The C side does its own locking.
unsafe impl Sync for CommEstNotifier {}

impl CommEstNotifier {
    /// One that nobody is told by.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            // INVARIANT: This initializes it, without an identifier.
            event <- Opaque::ffi_init(|slot| {
                // SAFETY: The slot is memory for a herald.
                unsafe { b::rdma_helper_init_herald(slot) }
            }),
        })
    }

    /// Has a queue pair that is made with these attributes tell this. It must go before.
    pub(super) fn install(&self, attr: &mut b::ib_qp_init_attr) {
        attr.event_handler = Some(b::rdma_helper_qp_event);
        attr.qp_context = self.event.get().cast();
    }

    /// The queue pair could not be destroyed: it tells nobody any more.
    pub(super) fn keep(self: &Arc<Self>, qp: *mut b::ib_qp) {
        // SAFETY: The queue pair is there for good.
        unsafe { b::rdma_helper_silence_qp(qp) };
        // Who is about to tell may do so.
        leak(self.clone());
    }

    /// Has an identifier told from now on.
    ///
    /// # Safety
    ///
    /// `id` must be there until [`CommEstNotifier::clear_id`] has been called.
    pub(crate) unsafe fn set_id(&self, id: *mut b::rdma_cm_id) {
        // SAFETY: By the type invariant; the identifier stays as this function demands.
        unsafe { b::rdma_helper_set_herald(self.event.get(), id) };
    }

    /// Has nobody told any more. Any context.
    pub(crate) fn clear_id(&self) {
        // SAFETY: By the type invariant.
        unsafe { b::rdma_helper_set_herald(self.event.get(), null_mut()) };
    }
}
