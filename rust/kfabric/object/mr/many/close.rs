// SPDX-License-Identifier: GPL-2.0

//! Closing many regions.

use super::answers::MAX_TOGETHER;
use crate::{
    object::mr::{
        close::Closing,
        MrObject, //
    },
    provider,
    support::{
        cache::ListVec,
        errno::Errno,
        push_reserved::PushReserved,
        refusal::Refusal, //
    }, //
};
use core::ptr;
use kernel::{
    ffi::c_int,
    prelude::*, //
};
use kfi_bindings::kfid_mr;

/// Closes regions; what becomes of each goes to `answer`. Sleeps until no peer can reach the memory of
/// those that were closed.
///
/// # Safety
///
/// Each is null or an open object, that nobody else uses.
pub(crate) unsafe fn close(mrs: &[*mut kfid_mr], mut answer: impl FnMut(usize, c_int)) {
    for (group, some) in mrs.chunks(MAX_TOGETHER).enumerate() {
        let first = group * MAX_TOGETHER;
        // SAFETY: By the requirements of this function.
        unsafe { close_some(some, |index, ret| answer(first + index, ret)) };
    }
}

/// A region that is being closed with others.
struct ClosingOne {
    index: usize,
    closing: Closing,
    done: Option<Result<(), Refusal>>,
}

/// Closes some, which wait for the device together.
///
/// # Safety
///
/// Each is null or an open object, that nobody else uses.
unsafe fn close_some(mrs: &[*mut kfid_mr], mut answer: impl FnMut(usize, c_int)) {
    let room = ListVec::with_capacity(mrs.len(), GFP_KERNEL);
    let together = ListVec::with_capacity(mrs.len(), GFP_KERNEL);
    let (Ok(mut all), Ok(mut together)) = (room, together) else {
        // Closing doesn't fail for want of memory.
        for (index, mr) in mrs.iter().enumerate() {
            // SAFETY: By the requirements of this function.
            let begun = unsafe { begin(*mr) };
            answer(index, begun.map_or_else(Refusal::report, close_alone));
        }
        return;
    };
    for (index, mr) in mrs.iter().enumerate() {
        // SAFETY: By the requirements of this function.
        match unsafe { begin(*mr) } {
            Ok(Some(closing)) => {
                let one = ClosingOne {
                    index,
                    closing,
                    done: None,
                };
                all.push_reserved(one);
            }
            Ok(None) => answer(index, 0),
            Err(refusal) => answer(index, refusal.report()),
        }
    }
    let same_domain = |a: &ClosingOne, b: &ClosingOne| {
        let (a, b) = (a.closing.domain(), b.closing.domain());
        ptr::eq(a, b)
    };
    for group in all.chunk_by_mut(same_domain) {
        let mut of = None;
        for one in group {
            let (domain, mr) = one.closing.parts();
            of = Some(domain);
            match mr {
                Some(mr) => {
                    let (mr, done) = (&mut **mr, &mut one.done);
                    together.push_reserved(provider::Closing { mr, done });
                }
                None => one.done = Some(Ok(())),
            }
        }
        if let Some(domain) = of {
            domain.provider().close_many(&mut together);
        }
        together.clear();
    }
    drop(together);
    for one in all {
        let not_done = Refusal::new(Errno::EIO, c"the provider has not closed it");
        let done = one.done.unwrap_or(Err(not_done));
        answer(one.index, one.closing.end(done));
    }
}

/// Begins to close a region; `None` for null.
///
/// # Safety
///
/// It is null or an open object, that nobody else uses.
unsafe fn begin(mr: *mut kfid_mr) -> Result<Option<Closing>, Refusal> {
    if mr.is_null() {
        return Ok(None);
    }
    // SAFETY: By the requirements of this function; it is a region, as is found out first.
    unsafe {
        MrObject::from_fid(mr.cast())?;
        Closing::begin(mr).map(Some)
    }
}

fn close_alone(closing: Option<Closing>) -> c_int {
    let Some(mut closing) = closing else {
        return 0;
    };
    let closed = closing.close_provided();
    closing.end(closed)
}
