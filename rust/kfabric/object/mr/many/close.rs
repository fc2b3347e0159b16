// SPDX-License-Identifier: GPL-2.0

//! Closing many regions.

use super::answers::MAX_TOGETHER;
use crate::{
    object::{
        closing::Claim,
        mr::close::MrClose, //
    },
    provider::{
        BatchEntry,
        Bindings, //
    },
    support::{
        cache::ListVec,
        errno::Errno,
        refusal::Refusal,
        vec::PushReserved, //
    }, //
};
use core::ptr::{
    self,
    NonNull, //
};
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
/// Each is null, an error pointer, or an open object, that nobody else uses. It may be there several times.
pub(crate) unsafe fn close(mrs: &[*mut kfid_mr], answer: impl FnMut(usize, c_int)) {
    let begin = |mr: *mut kfid_mr, gone: &[*mut kfid_mr]| {
        if mr.is_null() {
            return Ok(None);
        }
        // Before it is looked at.
        if gone.contains(&mr) {
            return Err(Refusal::new(Errno::EINVAL, c"the region is there twice"));
        }
        // SAFETY: `mr` is null, an error pointer, or an open object, as the caller promises. It is not in `gone`, so
        // this call has not freed it.
        let claim = unsafe { Claim::new(mr.cast()) }?;
        MrClose::begin(claim).map(Some)
    };
    close_all(mrs, begin, answer);
}

/// Closes regions that were claimed; otherwise as [`close`].
///
/// # Safety
///
/// The claim of each was [kept](Claim::keep), and nobody else takes it over.
pub(crate) unsafe fn close_claimed(mrs: &[*mut kfid_mr], answer: impl FnMut(usize, c_int)) {
    let begin = |mr: *mut kfid_mr, _: &[*mut kfid_mr]| match NonNull::new(mr.cast()) {
        Some(object) => {
            // SAFETY: The claim was kept, and nobody else takes it over, as the caller promises.
            let claim = unsafe { Claim::kept(object) };
            MrClose::begin(claim).map(Some)
        }
        None => Ok(None),
    };
    close_all(mrs, begin, answer);
}

/// Closes regions. `begin` gets each, and those before it that may be freed by now; `None` is none.
fn close_all(
    mrs: &[*mut kfid_mr],
    begin: impl Fn(*mut kfid_mr, &[*mut kfid_mr]) -> Result<Option<MrClose>, Refusal>,
    mut answer: impl FnMut(usize, c_int),
) {
    for (group, some) in mrs.chunks(MAX_TOGETHER).enumerate() {
        let first = group * MAX_TOGETHER;
        let before = |index| mrs.get(..index).unwrap_or_default();
        let room = ListVec::with_capacity(some.len(), GFP_KERNEL);
        let together = ListVec::with_capacity(some.len(), GFP_KERNEL);
        let (Ok(mut all), Ok(together)) = (room, together) else {
            // Closing doesn't fail for want of memory.
            for (index, mr) in (first..).zip(some) {
                let begun = begin(*mr, before(index));
                answer(index, begun.map_or_else(Refusal::report, close_alone));
            }
            continue;
        };
        for (index, mr) in (first..).zip(some) {
            match begin(*mr, before(first)) {
                Ok(Some(closing)) => all.push_reserved(ClosingOne {
                    index,
                    closing,
                    done: None,
                }),
                Ok(None) => answer(index, 0),
                Err(refusal) => answer(index, refusal.report()),
            }
        }
        close_together(&mut all, together);
        for one in all {
            let not_done = Refusal::new(Errno::EIO, c"the provider has not closed it");
            let done = one.done.unwrap_or(Err(not_done));
            answer(one.index, one.closing.end(done));
        }
    }
}

/// A region that is being closed with others.
struct ClosingOne {
    index: usize,
    closing: MrClose,
    done: Option<Result<(), Refusal>>,
}

/// Has the providers close regions, those of a domain together; `together` has room for them. Sleeps until no
/// peer can reach the memory.
fn close_together<'a>(all: &'a mut [ClosingOne], mut together: ListVec<BatchEntry<'a, ()>>) {
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
                    together.push_reserved(BatchEntry {
                        mr: &mut **mr,
                        bindings: &Bindings::NONE,
                        done: &mut one.done,
                    });
                }
                None => one.done = Some(Ok(())),
            }
        }
        if let Some(domain) = of {
            domain.provider().close_many(&mut together);
        }
        together.clear();
    }
}

fn close_alone(closing: Option<MrClose>) -> c_int {
    let Some(mut closing) = closing else {
        return 0;
    };
    let closed = closing.close_provided();
    closing.end(closed)
}
