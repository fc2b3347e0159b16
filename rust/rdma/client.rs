// SPDX-License-Identifier: GPL-2.0

//! Clients: handlers of added and removed devices.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_client`
//!
//! The C callback for a new device does not name the client, but needs it to store the client's
//! data with the device. So each implementation of [`Client`] has a [`ClientSlot`], a static that
//! names the only registration. [`impl_client!`](crate::impl_client) declares it.

use crate::prelude::*;
use kernel::types::ForeignOwnable;

/// A client of the RDMA core.
///
/// Implementing it takes an [`impl_client!`](crate::impl_client) too.
///
/// # Examples
///
/// ```ignore
/// struct Watcher;
///
/// rdma::impl_client!(Watcher);
///
/// impl Client for Watcher {
///     const NAME: &'static CStr = c"watcher";
///     type Data = KBox<DeviceName>;
///
///     fn add(device: &Device) -> Result<Self::Data> {
///         pr_info!("{} has come\n", device.name());
///         Ok(KBox::new(device.name(), GFP_KERNEL)?)
///     }
///
///     fn remove(_device: &Device, name: Self::Data) {
///         pr_info!("{name} goes\n");
///     }
/// }
///
/// // Until this is dropped, the client is told.
/// let watching = KBox::pin_init(Registration::<Watcher>::new(), GFP_KERNEL)?;
/// ```
pub trait Client: HasSlot + 'static {
    /// The client's name.
    const NAME: &'static CStr;

    /// The client's data for a device.
    type Data: ForeignOwnable + Send + 'static;

    /// Handles a new device. Returns an error if the client does not use the device.
    ///
    /// May sleep, but runs under the RDMA core's locks: it must not register or unregister a
    /// client or a device, nor wait for someone who does.
    fn add(device: &Device) -> Result<Self::Data>;

    /// Handles the removal of a device or of the client. The client must drop its objects on the
    /// device and its `ARef<Device>`s soon, because the removal waits for them.
    ///
    /// May sleep, and holds no lock, except where memory for keeping the data ran out: then it
    /// follows directly on [`Client::add`], under the same locks.
    fn remove(device: &Device, data: Self::Data);
}

/// The place of the one registration of a [`Client`].
pub struct ClientSlot(Atomic<*mut rdma_bindings::ib_client>);

impl ClientSlot {
    /// Creates an empty slot.
    #[doc(hidden)]
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self(Atomic::new(null_mut()))
    }
}

/// Types with a [`ClientSlot`] of their own. Use [`impl_client!`](crate::impl_client).
///
/// # Safety
///
/// [`HasSlot::slot`] must return the same slot each time, and no other type may return it.
pub unsafe trait HasSlot {
    /// Returns the slot of the type.
    fn slot() -> &'static ClientSlot;
}

/// Gives a type what it needs beside an implementation of [`Client`].
#[macro_export]
macro_rules! impl_client {
    ($ty:ty) => {
        // SAFETY: The static is this function's own, and the type takes no parameters, so the
        // slot is the same each time and no other type's.
        unsafe impl $crate::client::HasSlot for $ty {
            fn slot() -> &'static $crate::client::ClientSlot {
                static SLOT: $crate::client::ClientSlot = $crate::client::ClientSlot::new();
                &SLOT
            }
        }
    };
}

/// The registration of a [`Client`].
///
/// The registration calls [`Client::add`] for each present and each new device. It calls
/// [`Client::remove`] for each device that is removed, and for the remaining ones when it is
/// dropped. Registering and dropping may sleep. The drop waits for all removals, also for
/// concurrent ones.
///
/// # Invariants
///
/// `client` is registered, its callbacks are those of `T`, and it is in `T`'s slot.
#[pin_data(PinnedDrop)]
pub struct Registration<T: Client> {
    #[pin]
    client: Opaque<rdma_bindings::ib_client>,
    _type: PhantomData<T>,
}

// SAFETY: A registration can be undone by any task.
unsafe impl<T: Client> Send for Registration<T> {}

// SAFETY: There is nothing to do with a shared reference.
unsafe impl<T: Client> Sync for Registration<T> {}

impl<T: Client> Registration<T> {
    /// Registers the client. [`EBUSY`] if it is already registered.
    pub fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            // INVARIANT: On success the client is registered, with the callbacks of `T`, and has
            // been put in `T`'s slot before.
            client <- Opaque::try_ffi_init(Self::register),
            _type: PhantomData,
        })
    }

    /// Fills and registers the client at `slot`, which is pinned and uninitialized.
    fn register(client: *mut rdma_bindings::ib_client) -> Result {
        // The C side keeps the data in an `xarray`, which has other uses for the low bits.
        const { assert!(T::Data::FOREIGN_ALIGN >= 4) };
        let slot = &T::slot().0;
        slot.cmpxchg(null_mut(), client, Full).map_err(|_| EBUSY)?;

        // SAFETY: `client` points to memory for a client that is ours alone until registered.
        unsafe {
            client.write(rdma_bindings::ib_client {
                name: T::NAME.as_char_ptr(),
                add: Some(Self::add),
                remove: Some(Self::remove),
                ..Default::default()
            })
        };
        // SAFETY: The client is initialized, and stays in place until unregistered.
        to_result(unsafe { rdma_bindings::ib_register_client(client) })
            .inspect_err(|_| slot.store(null_mut(), Release))
    }

    /// Handles a new device for the C side.
    ///
    /// # Safety
    ///
    /// Only the RDMA core may call this, for the client in the slot of `T`.
    unsafe extern "C" fn add(dev: *mut rdma_bindings::ib_device) -> c_int {
        // SAFETY: The core holds a count of the device until the client has been removed from it.
        let device = unsafe { Device::from_raw(dev) };
        let client = T::slot().0.load(Acquire);

        let data = match T::add(device) {
            Ok(data) => data.into_foreign(),
            Err(err) => return err.to_errno(),
        };
        // SAFETY: Client and device are registered, and this is the client's `add`.
        unsafe { rdma_bindings::ib_set_client_data(dev, client, data) };

        // Setting the data allocates, and can't say that this failed.
        // SAFETY: Client and device are registered, so the array of data is there; it can be read
        // at any time.
        let stored = unsafe {
            // CAST: An index, which fits.
            let index = (*client).client_id as c_ulong;
            bindings::xa_load(&raw mut (*dev).client_data, index)
        };
        if stored != data {
            // SAFETY: `data` comes from `into_foreign()`, and nobody else has it.
            T::remove(device, unsafe { T::Data::from_foreign(data) });
            return ENOMEM.to_errno();
        }
        0
    }

    /// Handles the removal of a device for the C side.
    ///
    /// # Safety
    ///
    /// Only the RDMA core may call this, for the client in the slot of `T`.
    unsafe extern "C" fn remove(dev: *mut rdma_bindings::ib_device, data: *mut c_void) {
        // SAFETY: The core holds a count of the device until this has returned.
        let device = unsafe { Device::from_raw(dev) };
        // SAFETY: `add` succeeded, so this is what it stored, and the core hands it out once.
        let data = unsafe { T::Data::from_foreign(data) };

        T::remove(device, data);
    }
}

#[pinned_drop]
impl<T: Client> PinnedDrop for Registration<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariant the client is registered.
        unsafe { rdma_bindings::ib_unregister_client(self.client.get()) };
        // No callback runs any more.
        T::slot().0.store(null_mut(), Release);
    }
}
