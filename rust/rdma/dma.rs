// SPDX-License-Identifier: GPL-2.0

//! DMA mapping for RDMA devices.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `ib_dma_map_sg_attrs()`
//!
//! Every mapping made here is coherent, or isn't made: a peer writes when it likes, so there is no
//! moment at which bounced or cached data could be copied. `DMA_ATTR_REQUIRE_COHERENT` sees to
//! that where the DMA API itself makes the mapping; [`check`] tells where that isn't so.
//!
//! The functions are for scatterlists of C callers. [`SgBuilder::map`](crate::sg::SgBuilder::map)
//! maps the lists that this crate builds. No function sleeps.

use crate::prelude::*;
use kernel::dma::DataDirection;
use rdma_bindings::{
    rdma_helper_dma_fact_RDMA_HELPER_DMA_BOUNCES as BOUNCES,
    rdma_helper_dma_fact_RDMA_HELPER_DMA_INCOHERENT as INCOHERENT,
    rdma_helper_dma_fact_RDMA_HELPER_DMA_IOMMU as IOMMU,
    rdma_helper_dma_fact_RDMA_HELPER_DMA_OWN_OPS as OWN_OPS,
    rdma_helper_dma_fact_RDMA_HELPER_DMA_VIRTUAL as VIRTUAL, //
};

/// Checks whether mappings for this device are always coherent. Returns the reason if not.
pub fn check(device: &Device) -> Result<(), &'static CStr> {
    // SAFETY: The device is there.
    judge(unsafe { rdma_bindings::rdma_helper_dma_facts(device.as_raw()) })
}

/// Checks the facts about a device for [`check`].
fn judge(facts: u32) -> Result<(), &'static CStr> {
    let has = |fact: rdma_bindings::rdma_helper_dma_fact| facts & fact != 0;
    if has(VIRTUAL) {
        Ok(())
    } else if has(INCOHERENT) {
        Err(c"its DMA is not coherent")
    } else if has(IOMMU) {
        Ok(())
    } else if has(OWN_OPS) {
        // Xen's bounce what they like, whatever the attribute says.
        Err(c"its DMA mappings are the platform's own, and may be bounced")
    } else if has(BOUNCES) {
        Err(c"its DMA mappings are bounced")
    } else {
        Ok(())
    }
}

/// Maps the first `nents` entries of a scatterlist, and returns how many mapped entries came out.
///
/// [`EIO`] if that is not possible, or not coherently; [`EINVAL`] if `nents` is 0 or too large.
///
/// # Safety
///
/// - `sgl` must be a list of at least `nents` entries with valid pages, and not used by anybody
///   else meanwhile.
/// - It must be unmapped with the same arguments before the list or the pages are freed, and
///   while `device` is still held.
pub unsafe fn map_sg(
    device: &Device,
    sgl: *mut bindings::scatterlist,
    nents: usize,
    dir: DataDirection,
) -> Result<usize> {
    let nents = c_int::try_from(nents)?;
    if nents == 0 {
        return Err(EINVAL);
    }
    // SAFETY: `device` is valid as a reference. `sgl` has `nents` entries with pages that nobody
    // else uses, by the function's contract.
    let mapped = unsafe {
        rdma_bindings::rdma_helper_dma_map_sg(device.as_raw(), sgl.cast(), nents, raw(dir))
    };
    match usize::try_from(mapped) {
        Ok(mapped) if mapped > 0 => Ok(mapped),
        _ => Err(EIO),
    }
}

/// Unmaps a list that [`map_sg`] mapped.
///
/// # Safety
///
/// The arguments must be those of a successful [`map_sg`], where `nents` is its argument, not its
/// result. No device may use the mapping any more. It may be unmapped only once.
pub unsafe fn unmap_sg(
    device: &Device,
    sgl: *mut bindings::scatterlist,
    nents: usize,
    dir: DataDirection,
) {
    // SAFETY: `device` is valid as a reference. `sgl`, `nents` and `dir` are those of a successful
    // `map_sg` by the function's contract.
    unsafe {
        rdma_bindings::rdma_helper_dma_unmap_sg(device.as_raw(), sgl, count(nents), raw(dir))
    };
}

/// Makes what the device has written visible to the CPU.
///
/// # Safety
///
/// The arguments must be those of a [`map_sg`] that succeeded and has not been undone.
pub unsafe fn sync_for_cpu(
    device: &Device,
    sgl: *mut bindings::scatterlist,
    nents: usize,
    dir: DataDirection,
) {
    // SAFETY: `device` is valid as a reference. `sgl`, `nents` and `dir` are those of a successful
    // `map_sg` by the function's contract.
    unsafe {
        rdma_bindings::rdma_helper_dma_sync_for_cpu(device.as_raw(), sgl, count(nents), raw(dir))
    };
}

/// Makes what the CPU has written visible to the device.
///
/// # Safety
///
/// The arguments must be those of a [`map_sg`] that succeeded and has not been undone.
pub unsafe fn sync_for_device(
    device: &Device,
    sgl: *mut bindings::scatterlist,
    nents: usize,
    dir: DataDirection,
) {
    // SAFETY: `device` is valid as a reference. `sgl`, `nents` and `dir` are those of a successful
    // `map_sg` by the function's contract.
    unsafe {
        rdma_bindings::rdma_helper_dma_sync_for_device(device.as_raw(), sgl, count(nents), raw(dir))
    };
}

/// Returns the C value of the direction.
pub(crate) fn raw(dir: DataDirection) -> u32 {
    // CAST: The enum is `repr(u32)`, and its values are those of the C enum.
    dir as u32
}

/// Converts a count that [`map_sg`] accepted, so it fits.
fn count(nents: usize) -> c_int {
    c_int::try_from(nents).unwrap_or(c_int::MAX)
}

#[kernel::macros::kunit_tests(rdma_dma)]
mod tests {
    use super::*;

    #[test]
    fn what_bounces_is_refused() {
        // Directly, and by an IOMMU, whose code has operations of its own on some kernels.
        assert!(judge(0).is_ok());
        assert!(judge(IOMMU).is_ok());
        assert!(judge(IOMMU | OWN_OPS).is_ok());
        assert!(judge(IOMMU | BOUNCES).is_ok());
        assert!(judge(VIRTUAL).is_ok());
        // Xen, `swiotlb=force`, encrypted guests.
        assert!(judge(OWN_OPS).is_err());
        assert!(judge(BOUNCES).is_err());
        assert!(judge(OWN_OPS | BOUNCES).is_err());
    }

    #[test]
    fn caches_are_not_flushed() {
        assert!(judge(INCOHERENT).is_err());
        assert!(judge(INCOHERENT | IOMMU).is_err());
    }
}
