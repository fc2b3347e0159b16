// SPDX-License-Identifier: GPL-2.0

//! Which pages may be registered.
//!
//! What there is to know about a page is found out in C (`rust/helpers/pages.c`); what follows from
//! that is decided here.

mod kunit;

use crate::{
    region::access::Access,
    support::num::widen, //
};
use kernel::str::CStr;
use kfi_bindings::{
    kfi_helper_fact,
    kfi_helper_fact_KFI_FACT_DEVICE_PRIVATE as DEVICE_PRIVATE,
    kfi_helper_fact_KFI_FACT_NOBODYS as NOBODYS,
    kfi_helper_fact_KFI_FACT_NO_PAGE as NO_PAGE,
    kfi_helper_fact_KFI_FACT_OFFLINE as OFFLINE,
    kfi_helper_fact_KFI_FACT_PEER_TO_PEER as PEER_TO_PEER,
    kfi_helper_fact_KFI_FACT_POISONED as POISONED,
    kfi_helper_fact_KFI_FACT_READ_ONLY as READ_ONLY,
    kfi_helper_fact_KFI_FACT_RESERVED as RESERVED,
    kfi_helper_fact_KFI_FACT_UNMAPPED as UNMAPPED,
    kfi_helper_fact_KFI_FACT_ZERO as ZERO,
    kfi_helper_seen, //
};

/// What is going to be done with the pages of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    /// The device writes to them.
    writes: bool,
    /// The device may be able to reach memory of other PCI devices; its DMA mapping tells.
    peer_to_peer: bool,
}

impl Use {
    /// The use that rights imply, on a device that can or can't reach memory of other PCI devices.
    pub(crate) fn new(access: Access, peer_to_peer: bool) -> Self {
        Self {
            writes: access.device_writes(),
            peer_to_peer,
        }
    }

    /// Are they going to be written to?
    pub(crate) fn writes(self) -> bool {
        self.writes
    }

    /// May a page about which this is remarkable be used so? Says why not.
    pub(crate) fn allows(self, facts: kfi_helper_fact) -> Result<(), &'static CStr> {
        let has = |fact| facts & fact != 0;
        let reasons = [
            (has(NO_PAGE), c"no memory of this machine"),
            (has(OFFLINE), c"memory that is offline"),
            (
                has(DEVICE_PRIVATE),
                c"memory that a device keeps for itself",
            ),
            (
                has(PEER_TO_PEER) && !self.peer_to_peer,
                c"memory of a PCI device, which this one can't reach",
            ),
            (has(RESERVED), c"reserved memory, as the kernel image is"),
            (has(ZERO) && self.writes, c"the zero page, to be written to"),
            (has(POISONED), c"memory with a hardware error"),
            (has(NOBODYS), c"a free page or a page table"),
            (has(UNMAPPED), c"taken out of the linear map"),
            (
                // A zero page is read-only where it is part of the kernel image.
                has(READ_ONLY) && !has(ZERO),
                c"read-only in the linear map, as code is",
            ),
        ];
        match reasons.into_iter().find(|(applies, _)| *applies) {
            Some((_, why)) => Err(why),
            None => Ok(()),
        }
    }
}

/// A page that may not be registered.
pub(crate) struct Refused {
    /// There is no such page.
    pub(crate) missing: bool,
    /// Why not.
    pub(crate) why: &'static CStr,
}

/// Judges the pages of one region, one after the other.
pub(crate) struct Judge {
    region: Use,
    seen: kfi_helper_seen,
}

impl Judge {
    pub(crate) fn new(region: Use) -> Self {
        Self {
            region,
            seen: kfi_helper_seen::default(),
        }
    }

    /// May these pages be registered, `count` from the page frame `pfn` on? Any context for one;
    /// for more: may sleep.
    pub(crate) fn pages(&mut self, pfn: u64, count: u64) -> Result<(), Refused> {
        let mut good = 0;
        while good < count {
            let mut facts = 0;
            // SAFETY: Any page frames may be asked about; the pointers are valid for the call.
            let plain = unsafe {
                kfi_bindings::kfi_helper_plain_pages(
                    pfn.saturating_add(good),
                    count - good,
                    self.region.writes,
                    &mut self.seen,
                    &mut facts,
                )
            };
            good += plain;
            if good < count {
                self.region.allows(facts).map_err(|why| Refused {
                    missing: facts & NO_PAGE != 0,
                    why,
                })?;
                good += 1;
            }
        }
        Ok(())
    }

    /// May these physical addresses be registered? They are not empty and don't wrap. May sleep.
    pub(crate) fn addresses(&mut self, start: u64, bytes: u64) -> Result<(), Refused> {
        let page = widen(kernel::page::PAGE_SIZE);
        let first = start / page;
        self.pages(first, (start + (bytes - 1)) / page - first + 1)
    }
}
