// SPDX-License-Identifier: GPL-2.0

//! The slow model: memory is found page by page.

use crate::region::{
    access::Access,
    extents::*, //
};
use kernel::page::PAGE_SIZE;
use kfi_bindings::{
    bio_vec,
    kvec, //
};

pub(super) const PAGE: u64 = widen(PAGE_SIZE);

/// The mark of a scatterlist's last entry.
pub(super) const END: usize = 2;

/// Returns the page frame of a kernel address.
pub(super) fn frame_at(index: usize, addr: u64) -> Result<u64, Refusal> {
    let mut frame = 0;
    let at = core::ptr::without_provenance(usize::try_from(addr).unwrap_or(0));
    // SAFETY: The helper takes any address and reads page tables only.
    if unsafe { kfi_bindings::kfi_helper_virt_pfn(at, &mut frame) } {
        Ok(frame)
    } else {
        let refusal = Refusal::new(Errno::EFAULT, c"no memory that may be registered");
        Err(refusal.at(index).value(addr))
    }
}

/// The memory that a walk finds: the bytes that may be registered, joined, and the reason why the
/// walk ended.
#[derive(Default, PartialEq, Debug)]
pub(super) struct Found {
    pub(super) runs: KVVec<(u64, u64)>,
    pub(super) end: Option<Refusal>,
}

impl Found {
    pub(super) fn add(&mut self, phys: u64, len: u64) -> Result {
        match self.runs.last_mut() {
            Some((start, bytes)) if *start + *bytes == phys => *bytes += len,
            _ => self.runs.push((phys, len), GFP_KERNEL)?,
        }
        Ok(())
    }

    pub(super) fn refused(mut self, refusal: Refusal) -> Self {
        self.end = Some(refusal);
        self
    }
}

/// Returns a use of memory: peers read it.
pub(super) fn reads() -> Result<PageUse> {
    let access = Access::parse(Access::REMOTE_READ.bits())?;
    Ok(PageUse::new(access, false))
}

/// Finds memory one page at a time.
fn page_by_page(
    found: &mut Found,
    index: usize,
    (mut at, mut left): (u64, u64),
    frame: impl Fn(u64) -> Result<u64, Refusal>,
) -> Result<Result<(), Refusal>> {
    while left > 0 {
        let here = left.min(PAGE - at % PAGE);
        let checked = frame(at).and_then(|frame| {
            // SAFETY: Any page frame may be asked about.
            let refused = unsafe { kfi_bindings::kfi_helper_check_page(frame, false, false) };
            match refused {
                NONE => Ok(frame),
                _ => Err(refusal(refused).at(index).value(at)),
            }
        });
        match checked {
            Ok(frame) => found.add(frame * PAGE + at % PAGE, here)?,
            Err(refusal) => return Ok(Err(refusal)),
        }
        (at, left) = (at.wrapping_add(here), left - here);
    }
    Ok(Ok(()))
}

/// Finds the memory of a list of buffers.
pub(super) fn slow_kvecs(list: &[kvec]) -> Result<Found> {
    let mut found = Found::default();
    for (index, kvec) in list.iter().enumerate() {
        let refuse = |why, value| Refusal::new(Errno::EFAULT, why).at(index).value(value);
        let base = widen(kvec.iov_base.addr());
        if base == 0 {
            return Ok(found.refused(refuse(c"address is NULL", 0)));
        }
        // SAFETY: Any addresses may be asked about.
        if unsafe { kfi_bindings::kfi_helper_on_stack(kvec.iov_base, kvec.iov_len) } {
            return Ok(found.refused(refuse(c"memory of the caller's stack", base)));
        }
        let frame = |at| frame_at(index, at);
        let span = (base, widen(kvec.iov_len));
        if let Err(refusal) = page_by_page(&mut found, index, span, frame)? {
            return Ok(found.refused(refusal));
        }
    }
    Ok(found)
}

/// Finds the memory of pages.
pub(super) fn slow_bvecs(list: &[bio_vec]) -> Result<Found> {
    let mut found = Found::default();
    for (index, bvec) in list.iter().enumerate() {
        let mut frame = 0;
        // SAFETY: A bad page is found out without being read.
        if !unsafe { kfi_bindings::kfi_helper_bvec_pfn(bvec, &mut frame) } {
            let refusal = Refusal::new(Errno::EFAULT, c"no page of this machine").at(index);
            return Ok(found.refused(refusal.value(widen(bvec.bv_page.addr()))));
        }
        let start = frame * PAGE + u64::from(bvec.bv_offset) % PAGE;
        let span = (start, u64::from(bvec.bv_len));
        let checked = page_by_page(&mut found, index, span, |at| Ok(at / PAGE))?;
        if let Err(refusal) = checked {
            return Ok(found.refused(refusal));
        }
    }
    Ok(found)
}
