// SPDX-License-Identifier: GPL-2.0

//! The functions that nvme-core calls (`struct nvme_ctrl_ops`).

use crate::{
    command::Command,
    controller::{
        self,
        Controller, //
    },
    prelude::*,
    transport::{
        Transport,
        TransportQueue, //
    }, //
};

unsafe extern "C" {
    // A `struct module`. Only its address is used.
    static __this_module: Opaque<u8>;
}

/// Returns the module that this crate is part of.
pub(crate) const fn this_module() -> *mut kernel::bindings::module {
    (&raw const __this_module).cast_mut().cast()
}

/// The table of a transport.
pub(crate) struct CtrlOps<T>(PhantomData<T>);

impl<T: Transport> CtrlOps<T> {
    pub(crate) const TABLE: &'static b::nvme_ctrl_ops = &b::nvme_ctrl_ops {
        name: (&raw const b::nvme_helper_transport_name).cast(),
        module: this_module(),
        flags: b::NVME_F_FABRICS | if T::MAY_SLEEP { b::NVME_F_BLOCKING } else { 0 },
        reg_read32: Some(b::nvmf_reg_read32),
        reg_read64: Some(b::nvmf_reg_read64),
        reg_write32: Some(b::nvmf_reg_write32),
        subsystem_reset: Some(b::nvmf_subsystem_reset),
        free_ctrl: Some(Self::free_ctrl),
        submit_async_event: Some(Self::submit_async_event),
        delete_ctrl: Some(Self::delete_ctrl),
        stop_ctrl: Some(Self::stop_ctrl),
        get_address: Some(b::nvmf_get_address),
        get_virt_boundary: Some(Self::get_virt_boundary),
        ..pin_init::zeroed()
    };

    /// Frees a controller. May sleep.
    ///
    /// # Safety
    ///
    /// nvme-core calls this with a controller.
    unsafe extern "C" fn free_ctrl(ctrl: *mut b::nvme_ctrl) {
        // SAFETY: The controller exists until the end of this function.
        let controller = unsafe { Controller::<T>::of(ctrl) };
        if controller::forget(ctrl) {
            // SAFETY: The options are the controller's, which was created.
            unsafe { b::nvmf_free_options((*ctrl).opts) };
        }
        // SAFETY: The last reference is gone, and the queues were freed by deletion, or by setup
        // when it failed.
        unsafe { Controller::free(NonNull::from(controller)) };
    }

    /// Asks the target for an event. May sleep.
    ///
    /// # Safety
    ///
    /// nvme-core calls this with a controller.
    unsafe extern "C" fn submit_async_event(ctrl: *mut b::nvme_ctrl) {
        // SAFETY: nvme-core has a reference to the controller.
        let controller = unsafe { Controller::<T>::of(ctrl) };
        // A task that frees memory may wait for recovery, which waits for this.
        let _noio = NoIo::enter();
        let command = Command::async_event();
        let Some(inside) = controller.admin().ok().and_then(|admin| admin.gate.enter()) else {
            return;
        };
        if let Err(error) = inside.get().async_event(command.as_bytes()) {
            dev_warn!(controller.device(), "no asynchronous events: {error:?}\n");
        }
    }

    /// Shuts a controller down for good. Sleeps.
    ///
    /// # Safety
    ///
    /// nvme-core calls this with a controller.
    unsafe extern "C" fn delete_ctrl(ctrl: *mut b::nvme_ctrl) {
        // SAFETY: nvme-core has a reference to the controller.
        let controller = unsafe { Controller::<T>::of(ctrl) };
        controller.shut_down(true);
        // Recovery that began just before the deletion may have been queued after `stop_ctrl`, but not
        // after a queue was stopped. It does nothing.
        controller.end_recovery();
    }

    /// Waits for recovery to end, and keeps the controller from connecting again. Sleeps.
    ///
    /// # Safety
    ///
    /// nvme-core calls this with a controller.
    unsafe extern "C" fn stop_ctrl(ctrl: *mut b::nvme_ctrl) {
        // SAFETY: nvme-core has a reference to the controller.
        unsafe { Controller::<T>::of(ctrl) }.end_recovery();
    }

    /// Returns the bits of an address at which a request's memory may not be cut: regions have whole pages of the
    /// machine.
    ///
    /// # Safety
    ///
    /// nvme-core calls this with a controller.
    unsafe extern "C" fn get_virt_boundary(_ctrl: *mut b::nvme_ctrl, _is_admin: bool) -> usize {
        kernel::page::PAGE_SIZE - 1
    }
}
