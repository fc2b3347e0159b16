// SPDX-License-Identifier: GPL-2.0

//! Registering many regions.

use super::{
    answers::{
        Answers,
        MAX_TOGETHER, //
    },
    group::{
        Done,
        Group, //
    }, //
};
use crate::{
    object::{
        domain::DomainObject,
        mr::{
            open::{
                self,
                NewMr, //
            },
            prealloc::{
                preallocate,
                PreallocatedMr, //
            }, //
        }, //
    },
    support::{
        cache::ListVec,
        errno::Errno,
        refusal::Refusal,
        vec::PushReserved, //
    }, //
};
use kernel::prelude::*;
use kfi_bindings::kfi_mr_attr;

/// Registers a region for each of `attrs`. `answers` gets the result of each. After an error nothing was registered.
/// Sleeps until the device is done with all of them.
///
/// # Safety
///
/// As the C API demands: what the attributes point to is valid.
pub(crate) unsafe fn register(
    domain: &DomainObject,
    attrs: &[kfi_mr_attr],
    flags: u64,
    all_or_none: bool,
    answers: &mut Answers<'_>,
) -> Result<(), Refusal> {
    let mut opened = ListVec::with_capacity(attrs.len(), GFP_KERNEL)?;
    for (group, some) in attrs.chunks(MAX_TOGETHER).enumerate() {
        let first = group * MAX_TOGETHER;
        // SAFETY: All pointers in `some` are valid for the call, as the caller promises for `attrs`.
        let group = unsafe { Group::new(domain, some, flags, first) };
        if let Err(refusal) = register_group(&group, answers, &mut opened) {
            let ret = refusal.report();
            (first..first + some.len()).for_each(|index| answers.refused(index, ret));
        }
        if all_or_none && answers.first_error() != 0 {
            undo(opened, answers);
            answers.cancel_others();
            return Ok(());
        }
    }
    // Before there can be an event that names it.
    for (index, opened) in &opened {
        answers.registered(*index, opened.as_ptr());
    }
    for (_, opened) in opened {
        opened.start();
    }
    Ok(())
}

/// A request of a group, after its first half.
enum Prepared<'a> {
    /// The provider has prepared it.
    Batched(PreallocatedMr<'a>),
    /// This call does not enable it.
    Created(NewMr),
}

/// Registers a group: those that are registered go to `done`, for which there is room. After an error nothing was
/// registered. Sleeps until the device is done.
fn register_group(
    group: &Group<'_>,
    answers: &mut Answers<'_>,
    done: &mut Done,
) -> Result<(), Refusal> {
    let domain = group.domain;
    let Some(mut batch) = domain.provider().batch(group.len()) else {
        group.each(
            answers,
            |request, context| open::open(domain, request, context),
            |index, opened| done.push_reserved((index, opened)),
        );
        return Ok(());
    };
    // Allocated first: nothing is left to fail once there are regions.
    let mut all = ListVec::with_capacity(group.len(), GFP_KERNEL)?;
    group.each(
        answers,
        |request, context| {
            if open::is_later(domain, request) {
                return NewMr::create(domain, request, context).map(Prepared::Created);
            }
            let prepare = || batch.prepare(request);
            let (preallocated, ()) = preallocate(domain, request, context, prepare)?;
            Ok(Prepared::Batched(preallocated))
        },
        |index, prepared| all.push_reserved((index, prepared)),
    );
    let mut all = all.into_iter();
    batch.register(&mut |registered| {
        for (index, prepared) in all.by_ref() {
            match prepared {
                Prepared::Created(opened) => done.push_reserved((index, opened)),
                Prepared::Batched(preallocated) => {
                    return match registered {
                        Ok((mr, keys)) => {
                            let opened = NewMr::registered(preallocated, mr, &keys);
                            done.push_reserved((index, opened));
                        }
                        Err(refusal) => refuse(answers, index, preallocated, refusal),
                    };
                }
            }
        }
    });
    for (index, prepared) in all {
        match prepared {
            Prepared::Created(opened) => done.push_reserved((index, opened)),
            Prepared::Batched(preallocated) => {
                let not_done = Refusal::new(Errno::EIO, c"the provider has not registered it");
                refuse(answers, index, preallocated, not_done);
            }
        }
    }
    Ok(())
}

/// Answers that a region could not be registered. May sleep.
#[cold]
fn refuse(
    answers: &mut Answers<'_>,
    index: usize,
    preallocated: PreallocatedMr<'_>,
    refusal: Refusal,
) {
    answers.refused(index, refusal.report());
    preallocated.undo();
}

/// Closes what C isn't to get. Sleeps.
fn undo(opened: Done, answers: &mut Answers<'_>) {
    for (index, one) in opened {
        if let Err(refusal) = one.undo() {
            // Nobody has a handle whose closing would tell.
            answers.refused(index, refusal.with_errno(Errno::ENOTRECOVERABLE).report());
        }
    }
}
