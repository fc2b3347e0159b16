// SPDX-License-Identifier: GPL-2.0

//! What a device can do, and how much of it.

use crate::device::Device;

/// The limits and abilities of a device that matter for memory registration.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most memory regions.
    pub max_mr: u32,
    /// The most bytes in one region.
    pub max_mr_size: u64,
    /// The most pages in one fast region; 0 where there are no fast regions.
    pub max_fast_reg_pages: u32,
    /// The most outstanding work requests on a queue.
    pub max_qp_wr: u32,
    /// The most entries of a completion queue.
    pub max_cqe: u32,
    /// The most entries of a scatter/gather list in a work request.
    pub max_sge: u32,
    /// A mask of the page sizes that regions may have.
    pub page_size_cap: u64,
    /// Fast registration and local invalidation are offered.
    pub fast_reg: bool,
    /// Regions may have holes, see [`Kind::Gaps`](crate::mr::Kind::Gaps).
    pub sg_gaps: bool,
    /// Atomic operations by peers are offered.
    pub atomics: bool,
}

impl Limits {
    /// Reads them from the device. Doesn't sleep.
    pub(crate) fn of(device: &Device) -> Self {
        let attrs = device.attrs();

        Self {
            max_mr: count(attrs.max_mr),
            max_mr_size: attrs.max_mr_size,
            max_fast_reg_pages: count(attrs.max_fast_reg_page_list_len),
            max_qp_wr: count(attrs.max_qp_wr),
            max_cqe: count(attrs.max_cqe),
            max_sge: count(attrs.max_send_sge),
            page_size_cap: attrs.page_size_cap,
            fast_reg: attrs.device_cap_flags & MEM_MGT_EXTENSIONS != 0,
            sg_gaps: attrs.kernel_cap_flags & SG_GAPS != 0,
            atomics: attrs.atomic_cap != rdma_bindings::ib_atomic_cap_IB_ATOMIC_NONE,
        }
    }
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
