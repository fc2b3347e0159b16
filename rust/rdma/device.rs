// SPDX-License-Identifier: GPL-2.0

//! RDMA devices.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use kernel::{
    bindings,
    fmt,
    prelude::*,
    sync::aref::AlwaysRefCounted,
    types::Opaque, //
};

use core::ptr::NonNull;

/// An RDMA device.
///
/// Wraps the C `struct ib_device`. An `ARef<Device>` holds the device's registration: as long as
/// one is left, `ib_unregister_device()` waits, after it has called the clients' `remove`. So it
/// has to be dropped in response to [`Client::remove`](crate::client::Client::remove), or the
/// removal of the device never ends.
///
/// # Invariants
///
/// The device's registration count is not zero as long as a reference to an instance exists.
#[repr(transparent)]
pub struct Device(Opaque<rdma_bindings::ib_device>);

// SAFETY: A `struct ib_device` is not tied to a task, and its count may be dropped by any.
unsafe impl Send for Device {}

// SAFETY: All methods taking `&Device` read what is constant while the device is registered, or
// call C functions that do their own locking.
unsafe impl Sync for Device {}

// SAFETY: The registration count keeps the device, and `ib_device_put()` undoes one
// `refcount_inc()`. By the type invariant the count is not zero in `inc_ref()`.
unsafe impl AlwaysRefCounted for Device {
    fn inc_ref(&self) {
        // SAFETY: By the type invariant the device is there and its count is not zero.
        unsafe { bindings::refcount_inc(&raw mut (*self.as_raw()).refcount) };
    }

    unsafe fn dec_ref(obj: NonNull<Self>) {
        // SAFETY: The caller gives up one count that it owns. `Device` is transparent over
        // `ib_device`.
        unsafe { rdma_bindings::ib_device_put(obj.as_ptr().cast()) };
    }
}

impl Device {
    /// Makes a reference from a raw pointer.
    ///
    /// # Safety
    ///
    /// `ptr` must be a device whose registration count stays above zero for `'a`, as it does in a
    /// client's `add` and `remove` callbacks.
    pub unsafe fn from_raw<'a>(ptr: *mut rdma_bindings::ib_device) -> &'a Self {
        // INVARIANT: The count is above zero by this function's safety requirement.
        // SAFETY: `Device` is transparent over `ib_device`, and the caller vouches for `ptr`.
        unsafe { &*ptr.cast() }
    }

    /// The raw pointer, for handing on to C. Valid as long as the device is held.
    pub fn as_raw(&self) -> *mut rdma_bindings::ib_device {
        self.0.get()
    }

    /// The device's attributes.
    pub(crate) fn attrs(&self) -> &rdma_bindings::ib_device_attr {
        // SAFETY: The device is there; its attributes don't change once it is registered.
        unsafe { &(*self.as_raw()).attrs }
    }

    /// Whether `other` is the same device.
    pub fn is_same(&self, other: &Device) -> bool {
        core::ptr::eq(self, other)
    }

    /// The name at this moment; a device can be renamed. Doesn't sleep.
    pub fn name(&self) -> DeviceName {
        let mut name = DeviceName {
            bytes: [0; DEVICE_NAME_MAX],
        };
        // SAFETY: The device is there, and the buffer has the size that the helper asks for.
        unsafe { rdma_bindings::rdma_helper_device_name(self.as_raw(), name.bytes.as_mut_ptr()) };
        name
    }

    /// Checks whether the driver uses kernel addresses as DMA addresses: rxe and siw, which are
    /// software, and hfi1, whose driver (rdmavt) copies or maps the memory itself.
    ///
    /// An invalidation fences no region on these devices, see [`Fence`](crate::mr::Fence).
    pub fn is_software(&self) -> bool {
        // SAFETY: The device is there, and `dma_device` is constant while it is registered.
        cfg!(CONFIG_INFINIBAND_VIRT_DMA) && unsafe { (*self.as_raw()).dma_device.is_null() }
    }

    /// Checks whether the driver takes `IB_WR_LOCAL_INV`. Any context.
    ///
    /// Where it does not, the request must not be posted, not even to find out: the driver warns.
    pub fn has_local_inv(&self) -> bool {
        // SAFETY: The device is there as long as `self`.
        unsafe { rdma_bindings::rdma_helper_has_local_inv(self.as_raw()) }
    }

    /// Returns whether the device tells when a queue pair in error takes no more shared receives
    /// (`IB_EVENT_QP_LAST_WQE_REACHED`, which iWARP does not have). Doesn't sleep.
    pub(crate) fn reports_last_wqe(&self) -> bool {
        // SAFETY: The device is there as long as `self`.
        let reports = unsafe { rdma_bindings::rdma_helper_reports_last_wqe(self.as_raw()) };
        reports && self.connects_freely()
    }

    /// The longest single DMA segment, in bytes.
    #[inline]
    pub fn max_segment_size(&self) -> u32 {
        // SAFETY: The device is there.
        unsafe { rdma_bindings::rdma_helper_max_seg_size(self.as_raw()) }
    }
}

/// The size of a [`DeviceName`]'s buffer.
// CAST: A small constant of the C side.
const DEVICE_NAME_MAX: usize = rdma_bindings::IB_DEVICE_NAME_MAX as usize;

/// A copy of a device's name.
///
/// # Invariants
///
/// `bytes` contains a NUL.
#[derive(Clone, Copy)]
pub struct DeviceName {
    bytes: [u8; DEVICE_NAME_MAX],
}

impl DeviceName {
    /// The name as a C string.
    pub fn as_c_str(&self) -> &CStr {
        // By the type invariant there is always a NUL.
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_c_str(), f)
    }
}
