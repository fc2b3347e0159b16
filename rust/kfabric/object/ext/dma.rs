// SPDX-License-Identifier: GPL-2.0

//! The extension `kfi_dma_ops_v1`: mapping scatterlists for a domain's device.
//!
//! C header: [`include/kfi_dma_ext.h`](srctree/include/kfi_dma_ext.h)

use crate::{
    object::domain::DomainObject,
    prelude::*,
    provider::{
        Dma,
        RawSgl, //
    },
    support::table::Table, //
};
use kernel::dma::DataDirection;
use kfi_bindings::{
    dma_data_direction,
    kfi_dma_ops, //
};

/// The name of the extension.
pub(crate) const NAME: &CStr = crate::support::num::c_str(kfi_bindings::KFI_DMA_OPS_1);

pub(crate) static OPS: Table<kfi_dma_ops> = Table(kfi_dma_ops {
    size: size_of::<kfi_dma_ops>(),
    map_sg: Some(map_sg),
    unmap_sg: Some(unmap_sg),
    sync_sg_for_cpu: Some(sync_sg_for_cpu),
    sync_sg_for_device: Some(sync_sg_for_device),
});

/// Checks the arguments of a call.
///
/// # Safety
///
/// - `fid` is null or an object that stays open for `'a`.
/// - `list` is null or has `entries` entries for `'a`.
unsafe fn arguments<'a>(
    fid: *mut kfid,
    list: *mut scatterlist,
    entries: c_int,
    direction: dma_data_direction,
) -> Result<(&'a dyn Dma, RawSgl<'a>, DataDirection), Refusal> {
    // SAFETY: `fid` is null or an object that stays open for `'a`. `list` is null or has `entries` entries.
    let (domain, list) = unsafe {
        (
            DomainObject::from_fid(fid)?,
            RawSgl::from_raw(list, entries),
        )
    };
    let dma = domain.provider().dma().ok_or(Errno::ENOSYS)?;
    let list = list.ok_or(Refusal::new(Errno::EINVAL, c"list is NULL or empty"))?;
    // The enum's Rust type differs between kernels. Its conversion from the kernel crate's type does not.
    let direction = [
        DataDirection::Bidirectional,
        DataDirection::ToDevice,
        DataDirection::FromDevice,
    ]
    .into_iter()
    .find(|&known| dma_data_direction::from(known) == direction)
    .ok_or(Refusal::new(Errno::EINVAL, c"no direction for DMA"))?;
    Ok((dma, list, direction))
}

/// Maps a list for the device. Returns the number of mapped entries. May sleep.
///
/// # Safety
///
/// - `fid` is null or an open object.
/// - `list` is null or has `entries` entries.
unsafe extern "C" fn map_sg(
    fid: *mut kfid,
    list: *mut scatterlist,
    entries: c_int,
    direction: dma_data_direction,
) -> c_int {
    let _noio = NoIo::enter();
    // SAFETY: `fid` is null or an open object. `list` is null or has `entries` entries.
    let mapped = unsafe { arguments(fid, list, entries, direction) }
        .and_then(|(dma, list, direction)| dma.map(list, direction))
        .and_then(|mapped| match c_int::try_from(mapped) {
            Ok(mapped) if mapped <= entries => Ok(mapped),
            _ => Err(Refusal::new(
                Errno::EIO,
                c"the provider has mapped more than there is",
            )),
        });
    mapped.unwrap_or_else(Refusal::report)
}

/// Defines the slots without a return value. They only report bad arguments.
macro_rules! quiet_call {
    ($name:ident, $method:ident) => {
        /// Unmaps or syncs a list. May sleep.
        ///
        /// # Safety
        ///
        /// - `fid` is null or an open object.
        /// - `list` is null or has `entries` entries.
        unsafe extern "C" fn $name(
            fid: *mut kfid,
            list: *mut scatterlist,
            entries: c_int,
            direction: dma_data_direction,
        ) {
            let _noio = NoIo::enter();
            // SAFETY: `fid` is null or an open object. `list` is null or has `entries` entries.
            match unsafe { arguments(fid, list, entries, direction) } {
                Ok((dma, list, direction)) => dma.$method(list, direction),
                Err(refusal) => {
                    refusal.report();
                }
            }
        }
    };
}

quiet_call!(unmap_sg, unmap);
quiet_call!(sync_sg_for_cpu, sync_for_cpu);
quiet_call!(sync_sg_for_device, sync_for_device);
