// SPDX-License-Identifier: GPL-2.0

//! The check whether a page may be registered.
//!
//! The memory walk (`rust/helpers/memory_walk.c`) checks each page from its `struct page` alone. Here is the
//! use that a region makes of its pages, and the words for each refusal.

mod kunit;

use crate::{
    region::access::Access,
    support::{
        errno::Errno,
        refusal::Refusal, //
    }, //
};
use kfi_bindings::{
    kfi_helper_refused,
    kfi_helper_refused_KFI_REFUSED_ADDRESS as ADDRESS,
    kfi_helper_refused_KFI_REFUSED_DEVICE_ADDRESS as DEVICE_ADDRESS,
    kfi_helper_refused_KFI_REFUSED_DEVICE_PRIVATE as DEVICE_PRIVATE,
    kfi_helper_refused_KFI_REFUSED_FREE as FREE,
    kfi_helper_refused_KFI_REFUSED_NO_PAGE as NO_PAGE,
    kfi_helper_refused_KFI_REFUSED_NULL as NULL,
    kfi_helper_refused_KFI_REFUSED_OFFLINE as OFFLINE,
    kfi_helper_refused_KFI_REFUSED_PAGE_POINTER as PAGE_POINTER,
    kfi_helper_refused_KFI_REFUSED_PEER_TO_PEER as PEER_TO_PEER,
    kfi_helper_refused_KFI_REFUSED_POISONED as POISONED,
    kfi_helper_refused_KFI_REFUSED_RESERVED as RESERVED,
    kfi_helper_refused_KFI_REFUSED_STACK as STACK,
    kfi_helper_refused_KFI_REFUSED_ZERO as ZERO, //
};

/// The use that a region makes of its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageUse {
    /// The device writes to them.
    pub(super) writes: bool,
    /// The device may be able to reach memory of other PCI devices; its DMA mapping tells.
    pub(super) peer_to_peer: bool,
}

impl PageUse {
    /// Returns the use that rights imply, on a device that can or can't reach memory of other PCI devices.
    pub(crate) fn new(access: Access, peer_to_peer: bool) -> Self {
        Self {
            writes: access.device_writes(),
            peer_to_peer,
        }
    }
}

/// Returns the error for memory that the walk has refused.
pub(super) fn refusal(refused: kfi_helper_refused) -> Refusal {
    let why = match refused {
        DEVICE_ADDRESS => return Refusal::new(Errno::EINVAL, c"no address of this device"),
        NULL => c"address is NULL",
        STACK => c"memory of the caller's stack",
        ADDRESS => c"no memory that may be registered",
        PAGE_POINTER => c"no page of this machine",
        NO_PAGE => c"no memory of this machine",
        OFFLINE => c"memory that is offline",
        DEVICE_PRIVATE => c"memory that a device keeps for itself",
        PEER_TO_PEER => c"memory of a PCI device, which this one can't reach",
        RESERVED => c"reserved memory, as the kernel image is",
        ZERO => c"the zero page, to be written to",
        POISONED => c"memory with a hardware error",
        FREE => c"a free page or a page table",
        _ => c"memory that may not be registered",
    };
    Refusal::new(Errno::EFAULT, why)
}
