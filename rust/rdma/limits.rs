// SPDX-License-Identifier: GPL-2.0

//! Capabilities and limits of a device.

use kernel::page::PAGE_SIZE;

use crate::{
    device::Device,
    dma, //
};

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
        Limits::of(self)
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

impl Limits {
    /// Reads them from the device. Doesn't sleep.
    fn of(device: &Device) -> Self {
        let attrs = device.attrs();

        Self {
            max_mr: count(attrs.max_mr),
            max_mr_size: attrs.max_mr_size,
            max_fast_reg_pages: count(attrs.max_fast_reg_page_list_len)
                .checked_div(device.per_page())
                .unwrap_or(0),
            page_size: device.page_size(),
            page_sizes: device.page_sizes(),
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
            peer_to_peer: dma::peer_to_peer(device),
        }
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
