// SPDX-License-Identifier: GPL-2.0

//! What a device tells of itself: its ports, their addresses.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h),
//! `struct ib_event_handler`

use kernel::{
    container_of,
    prelude::*,
    sync::aref::ARef,
    types::Opaque, //
};

use crate::device::Device;

/// Who wants to know when a way through a device may have changed.
pub trait PathEvents: Send + Sync + 'static {
    /// A port came up or went down, or an address of it came or went.
    ///
    /// May sleep, but not for long: other handlers wait. It must not wait for somebody who drops
    /// an [`EventHandler`].
    fn path_changed(&self);
}

/// Tells of the events of a device, from when it is made until it is dropped.
///
/// Holds the device, so it must be dropped when that is removed. Dropping it may sleep: it waits
/// for a handler that is running.
///
/// # Invariants
///
/// `handler` is registered with `device`, and its callback is that of `T`.
#[pin_data(PinnedDrop)]
pub struct EventHandler<T: PathEvents> {
    #[pin]
    handler: Opaque<rdma_bindings::ib_event_handler>,
    device: ARef<Device>,
    to: T,
}

// SAFETY: A handler can be unregistered by any task, and `T` can be dropped by any.
unsafe impl<T: PathEvents> Send for EventHandler<T> {}

// SAFETY: There is nothing to do with a shared reference, but for the callback, which shares `T`.
unsafe impl<T: PathEvents> Sync for EventHandler<T> {}

impl<T: PathEvents> EventHandler<T> {
    /// Tells `to` of the events of a device. May sleep.
    pub fn new(device: &ARef<Device>, to: T) -> Result<Pin<KBox<Self>>> {
        let this = KBox::pin_init(
            pin_init!(Self {
                handler: Opaque::uninit(),
                device: device.clone(),
                to,
            }),
            GFP_KERNEL,
        )?;
        // INVARIANT: Filled and registered here, once, after the rest has been initialized: the
        // callback may run at once.
        // SAFETY: The memory is there and pinned until `drop()`, which unregisters it; the device
        // is held for as long.
        unsafe {
            rdma_bindings::rdma_helper_register_events(
                this.handler.get(),
                this.device.as_raw(),
                Some(Self::callback),
            )
        };
        Ok(this)
    }

    /// The C callback, in process context.
    ///
    /// # Safety
    ///
    /// To be called by the RDMA core with the `handler` of a registered instance, and an event.
    unsafe extern "C" fn callback(
        handler: *mut rdma_bindings::ib_event_handler,
        event: *mut rdma_bindings::ib_event,
    ) {
        // SAFETY: The core passes an event that is there until this returns.
        let event = unsafe { (*event).event };
        if !is_of_path(event) {
            return;
        }
        let handler = handler.cast::<Opaque<rdma_bindings::ib_event_handler>>();
        // SAFETY: By this function's requirements it is the member of an instance, which is there:
        // unregistering waits for this.
        let this = unsafe { &*container_of!(handler, Self, handler) };
        this.to.path_changed();
    }
}

/// Whether an event is about a port or its addresses.
fn is_of_path(event: rdma_bindings::ib_event_type) -> bool {
    matches!(
        event,
        rdma_bindings::ib_event_type_IB_EVENT_PORT_ACTIVE
            | rdma_bindings::ib_event_type_IB_EVENT_PORT_ERR
            | rdma_bindings::ib_event_type_IB_EVENT_LID_CHANGE
            | rdma_bindings::ib_event_type_IB_EVENT_PKEY_CHANGE
            | rdma_bindings::ib_event_type_IB_EVENT_CLIENT_REREGISTER
            | rdma_bindings::ib_event_type_IB_EVENT_GID_CHANGE
    )
}

#[pinned_drop]
impl<T: PathEvents> PinnedDrop for EventHandler<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariant it is registered.
        unsafe { rdma_bindings::ib_unregister_event_handler(self.handler.get()) };
    }
}
