// SPDX-License-Identifier: GPL-2.0

//! RDMA devices, their events and limits.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_device`,
//! `struct ib_event_handler`

use crate::prelude::*;
use kernel::{
    fmt,
    page::PAGE_SIZE,
    sync::aref::AlwaysRefCounted, //
};

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
        // INVARIANT: The count is above zero for `'a` by the function's contract.
        // SAFETY: `ptr` is a device that is valid for `'a` by the function's contract. `Device` is
        // transparent over `ib_device`.
        unsafe { &*ptr.cast() }
    }

    /// Returns the raw pointer, which is valid as long as the device is held.
    pub fn as_raw(&self) -> *mut rdma_bindings::ib_device {
        self.0.get()
    }

    /// Returns the attributes of the device.
    pub(crate) fn attrs(&self) -> &rdma_bindings::ib_device_attr {
        // SAFETY: The device is there; its attributes don't change once it is registered.
        unsafe { &(*self.as_raw()).attrs }
    }

    /// Checks whether `other` is the same device.
    pub fn is_same(&self, other: &Device) -> bool {
        core::ptr::eq(self, other)
    }

    /// Returns the current name. A device can be renamed. Does not sleep.
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
    /// An invalidation fences no region on these devices, see [`Fence`].
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

    /// Returns the maximum length of one DMA segment, in bytes.
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
    /// Returns the name as a C string.
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

/// A handler for changes of the paths through a device.
pub trait PathEvents: Send + Sync + 'static {
    /// Handles a change of a port's state or addresses.
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

    /// Handles an event for the C side, in process context.
    ///
    /// # Safety
    ///
    /// The RDMA core must call this with the `handler` of a registered instance and an event.
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

/// Checks whether an event concerns a port or its addresses.
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

/// The limits and abilities of a device that matter for memory registration.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most memory regions.
    pub max_mr: u32,
    /// The most bytes in one region.
    pub max_mr_size: u64,
    /// The most pages, of the machine's size, in one fast region; 0 where there are no fast
    /// regions.
    pub max_fast_reg_pages: u32,
    /// The size of the device's pages that regions are made of: the largest that is no larger than
    /// the machine's. [`None`] if there is none.
    pub page_size: Option<u32>,
    /// All sizes that the device's pages can have, as a mask.
    pub page_sizes: u64,
    /// The most queue pairs.
    pub max_qp: u32,
    /// The most outstanding work requests on a queue.
    pub max_qp_wr: u32,
    /// The most completion queues.
    pub max_cq: u32,
    /// The most entries of a completion queue.
    pub max_cqe: u32,
    /// The most segments of local memory in a work request.
    pub max_segments: u32,
    /// The most receives that queue pairs share; 0 where they share none.
    pub max_shared: u32,
    /// Maximum number of segments in a shared receive.
    pub max_shared_segments: u32,
    /// Fast registration and local invalidation are offered.
    pub fast_reg: bool,
    /// Regions may have gaps, see [`Kind::Gaps`](crate::mr::Kind::Gaps).
    pub sg_gaps: bool,
    /// Queue pairs have atomic operations.
    pub atomics: bool,
    /// Memory of other PCI devices may be within reach; mapping it tells.
    pub peer_to_peer: bool,
}

impl Device {
    /// Returns the capabilities and limits of the device. Does not sleep.
    pub fn limits(&self) -> Limits {
        let attrs = self.attrs();
        Limits {
            max_mr: count(attrs.max_mr),
            max_mr_size: attrs.max_mr_size,
            max_fast_reg_pages: count(attrs.max_fast_reg_page_list_len)
                .checked_div(self.per_page())
                .unwrap_or(0),
            page_size: self.page_size(),
            page_sizes: self.page_sizes(),
            max_qp: count(attrs.max_qp),
            max_qp_wr: count(attrs.max_qp_wr),
            max_cq: count(attrs.max_cq),
            max_cqe: count(attrs.max_cqe),
            max_segments: max_segments(attrs),
            max_shared: match attrs.max_srq {
                1.. => count(attrs.max_srq_wr),
                _ => 0,
            },
            max_shared_segments: count(attrs.max_srq_sge),
            fast_reg: attrs.device_cap_flags & MEM_MGT_EXTENSIONS != 0,
            sg_gaps: attrs.kernel_cap_flags & SG_GAPS != 0,
            atomics: attrs.atomic_cap != rdma_bindings::ib_atomic_cap_IB_ATOMIC_NONE,
            // SAFETY: The device is valid as long as `self`.
            peer_to_peer: unsafe { rdma_bindings::rdma_helper_peer_to_peer(self.as_raw()) },
        }
    }

    /// Returns [`Limits::page_size`]. Any context.
    #[inline]
    pub(crate) fn page_size(&self) -> Option<u32> {
        page_size(self.page_sizes(), PAGE_SIZE)
    }

    /// Returns [`Limits::page_sizes`]. Any context.
    #[inline]
    pub(crate) fn page_sizes(&self) -> u64 {
        self.attrs().page_size_cap
    }

    /// Returns the number of device pages in a page of the machine, or 0 if the device has no
    /// fitting page. Any context.
    pub(crate) fn per_page(&self) -> u32 {
        per_page(self.page_size(), PAGE_SIZE)
    }
}

/// Returns the maximum number of segments in a work request of any kind.
fn max_segments(attrs: &rdma_bindings::ib_device_attr) -> u32 {
    let both = count(attrs.max_send_sge).min(count(attrs.max_recv_sge));
    // Not every device says it.
    match count(attrs.max_sge_rd) {
        0 => both,
        reads => both.min(reads),
    }
}

/// Returns the largest page size in a mask that does not exceed the machine's.
#[inline]
fn page_size(mask: u64, machine: usize) -> Option<u32> {
    let machine = u32::try_from(machine).ok()?;
    let fitting = mask & (u64::from(machine) | u64::from(machine - 1));
    let shift = fitting.checked_ilog2()?;
    1u32.checked_shl(shift)
}

/// Returns the number of device pages in a page of the machine, or 0 without a page size.
fn per_page(page_size: Option<u32>, machine: usize) -> u32 {
    let machine = u32::try_from(machine).unwrap_or(0);
    page_size.map_or(0, |size| machine / size)
}

/// Turns a count of the C side, signed or not by kernel version, into an unsigned one.
///
/// A negative count, which no device has, allows nothing.
fn count<T: TryInto<u32>>(value: T) -> u32 {
    value.try_into().unwrap_or(0)
}

// CAST: Flags of the C side, whose enums get the smallest type that will do.
const MEM_MGT_EXTENSIONS: u64 =
    rdma_bindings::ib_device_cap_flags_IB_DEVICE_MEM_MGT_EXTENSIONS as u64;
const SG_GAPS: u64 = rdma_bindings::ib_kernel_cap_flags_IBK_SG_GAPS_REG as u64;

#[kernel::macros::kunit_tests(rdma_limits)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_page_that_fits() {
        assert_eq!(page_size(0xffff_f000, 4096), Some(4096));
        assert_eq!(page_size(0xffff_f000, 65536), Some(65536));
        // No page of the machine's size: a smaller one does.
        assert_eq!(page_size(4096 | 1 << 21, 65536), Some(4096));
        assert_eq!(page_size(4096 | 8192, 65536), Some(8192));
        // None but larger ones.
        assert_eq!(page_size(1 << 21, 4096), None);
        assert_eq!(page_size(0, 4096), None);
    }

    #[test]
    fn several_make_up_a_page() {
        assert_eq!(per_page(Some(4096), 4096), 1);
        assert_eq!(per_page(Some(4096), 65536), 16);
        assert_eq!(per_page(None, 4096), 0);
    }
}
