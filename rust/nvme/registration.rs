// SPDX-License-Identifier: GPL-2.0

//! The registration of a transport, and the creation of controllers.

use crate::{
    controller::{
        Controller,
        Created,
        CREATED, //
    },
    ctrl_ops::{
        this_module,
        CtrlOps, //
    },
    failure::check,
    prelude::*,
    transport::{
        Options,
        Transport, //
    },
    work, //
};
use kfabric::PushReserved;

/// The options that a transport accepts besides nvme-core's own.
const ALLOWED: u32 = b::NVMF_OPT_TRSVCID
    | b::NVMF_OPT_RECONNECT_DELAY
    | b::NVMF_OPT_HOST_TRADDR
    | b::NVMF_OPT_CTRL_LOSS_TMO
    | b::NVMF_OPT_NR_WRITE_QUEUES
    | b::NVMF_OPT_NR_POLL_QUEUES
    | b::NVMF_OPT_TOS;

/// Whether the transport was registered.
static IS_REGISTERED: Atomic<bool> = Atomic::new(false);

/// A registered transport. Dropping it deletes all controllers, and sleeps until they are freed.
///
/// # Invariants
///
/// `ops` is registered, and does not move.
pub struct Registration<T: Transport> {
    ops: KBox<Opaque<b::nvmf_transport_ops>>,
    transport: PhantomData<fn() -> T>,
}

// SAFETY: nvme-core has locks for its list of transports.
unsafe impl<T: Transport> Send for Registration<T> {}
// SAFETY: A shared reference has no methods.
unsafe impl<T: Transport> Sync for Registration<T> {}

impl<T: Transport> Registration<T> {
    /// Registers the transport of this module, by the name in the module parameter `name`. May
    /// sleep.
    ///
    /// # Errors
    ///
    /// - `EBUSY`: a transport of this module was registered before.
    /// - `ENOMEM`.
    pub fn new() -> Result<Self> {
        if IS_REGISTERED.xchg(true, Full) {
            return Err(EBUSY);
        }
        // SAFETY: Only the first caller comes here, and nothing has used the lock yet.
        unsafe { CREATED.init() };
        let ops = KBox::new(
            Opaque::new(b::nvmf_transport_ops {
                module: this_module(),
                name: (&raw const b::nvme_helper_transport_name).cast(),
                required_opts: c_int::try_from(b::NVMF_OPT_TRADDR)?,
                allowed_opts: c_int::try_from(ALLOWED)?,
                create_ctrl: Some(create_ctrl::<T>),
                ..Default::default()
            }),
            GFP_KERNEL,
        )?;
        // SAFETY: `ops` stays where it is until it is unregistered.
        check(unsafe { b::nvmf_register_transport(ops.get()) })?;
        // INVARIANT: Just registered.
        Ok(Self {
            ops,
            transport: PhantomData,
        })
    }
}

impl<T: Transport> Drop for Registration<T> {
    fn drop(&mut self) {
        // SAFETY: `ops` is registered by the invariant. No controller is being created, since that
        // has a reference to the module.
        unsafe { b::nvmf_unregister_transport(self.ops.get()) };
        for created in CREATED.lock().iter() {
            // SAFETY: A controller stays in the list until it is freed. This only queues work.
            unsafe { b::nvme_delete_ctrl(created.0) };
        }
        // SAFETY: nvme-core's queue exists. The controllers that exist are being deleted.
        unsafe {
            bindings::__flush_workqueue(b::nvme_delete_wq);
            // Somebody may still have a reference to a controller.
            b::nvme_helper_wait_uncounted();
        }
        *CREATED.lock() = KVec::new();
    }
}

/// Creates a controller. Sleeps.
///
/// # Safety
///
/// For nvme-core, with valid options, which it frees if this fails.
pub(crate) unsafe extern "C" fn create_ctrl<T: Transport>(
    device: *mut bindings::device,
    options: *mut b::nvmf_ctrl_options,
) -> *mut b::nvme_ctrl {
    let created = NonNull::new(options)
        .ok_or(EINVAL)
        // SAFETY: nvme-core promises that device and options are valid.
        .and_then(|options| unsafe { create::<T>(device, options) });
    match created {
        Ok(ctrl) => ctrl,
        Err(error) => error.to_ptr(),
    }
}

/// Creates a controller.
///
/// # Safety
///
/// `device` is that of nvme-core. The options are valid, and the caller frees them on failure.
unsafe fn create<T: Transport>(
    device: *mut bindings::device,
    options: NonNull<b::nvmf_ctrl_options>,
) -> Result<*mut b::nvme_ctrl> {
    let raw = options.as_ptr();
    // SAFETY: The options are valid, and nobody else has them.
    check(unsafe { b::nvme_helper_default_port(raw) })?;
    // SAFETY: The options are valid during the call.
    let target = T::controller(&unsafe { Options::new(options) })?;
    // SAFETY: A controller has options until it is freed, and leaves the list before. `raw` are valid options.
    let same = |created: &Created| unsafe { b::nvmf_ip_options_match(created.0, raw) };
    // SAFETY: The options are valid.
    if !unsafe { (*raw).duplicate_connect } && CREATED.lock().iter().any(same) {
        return Err(Errno::EALREADY.into());
    }
    CREATED.lock().reserve(1, GFP_KERNEL)?;
    // SAFETY: The options are valid, and freed by the caller on failure.
    let this = unsafe { Controller::<T>::new(raw, target) }?;
    let ctrl = this.as_ptr().cast();
    // SAFETY: The controller is new.
    work::init(unsafe { Controller::<T>::of(ctrl) });
    // SAFETY: The controller is new.
    check(unsafe { b::nvme_init_ctrl(ctrl, device, CtrlOps::<T>::TABLE, 0) }).inspect_err(
        |_| {
            // SAFETY: nvme-core does not know the controller.
            unsafe { Controller::free(this) };
        },
    )?;
    // SAFETY: nvme-core has initialised the controller. The reference that this task has is given
    // up in the end, or by the caller.
    let controller = unsafe { Controller::<T>::of(ctrl) };
    // SAFETY: The controller is initialised.
    let result = check(unsafe { b::nvme_add_ctrl(ctrl) }).and_then(|()| {
        controller.change_state(b::nvme_ctrl_state_NVME_CTRL_CONNECTING);
        controller.setup(true).inspect_err(|_| {
            // SAFETY: The controller was added, and setup has disconnected it.
            unsafe { b::nvme_uninit_ctrl(ctrl) };
        })
    });
    if let Err(failure) = result {
        // SAFETY: This task has a reference, and does not use the controller any more.
        unsafe { bindings::put_device((*ctrl).device) };
        // nvme-core returns `EINTR` for a cancelled command, too. The caller would write again.
        return Err(match failure.into() {
            EINTR if !kernel::current!().signal_pending() => EIO,
            error => error,
        });
    }
    // nvme-core creates one controller at a time, so there is space.
    CREATED.lock().push_reserved(Created(ctrl));
    dev_info!(controller.device(), "connected\n");
    Ok(ctrl)
}
