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
            enable::Pending,
            open::Opened, //
        }, //
    },
    support::{
        cache::ListVec,
        errno::Errno,
        push_reserved::PushReserved,
        refusal::Refusal, //
    }, //
};
use kernel::prelude::*;
use kfi_bindings::kfi_mr_attr;

/// Registers a region for each of `attrs`. What becomes of them is in `answers`; an error means that
/// nothing was registered. Sleeps until the device is done with all of them.
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
        // SAFETY: By the requirements of this function.
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

/// A region that is being registered with others.
struct Registering {
    index: usize,
    opened: Opened,
    /// `None` if this call does not enable it.
    pending: Option<Pending>,
}

/// Registers a group: those that are registered go to `done`, for which there is room. After an error nothing was
/// registered. Sleeps until the device is done.
fn register_group(
    group: &Group<'_>,
    answers: &mut Answers<'_>,
    done: &mut Done,
) -> Result<(), Refusal> {
    // Allocated first: nothing is left to fail once there are regions.
    let mut all = ListVec::with_capacity(group.len(), GFP_KERNEL)?;
    let mut enabling = ListVec::with_capacity(group.len(), GFP_KERNEL)?;
    group.each(
        answers,
        |request, context| Opened::create(group.domain, request, context),
        |index, mut opened| {
            let pending = opened.begin();
            all.push_reserved(Registering {
                index,
                opened,
                pending,
            });
        },
    );
    for one in &mut all {
        if let Some(one) = one.pending.as_mut().and_then(Pending::enabling) {
            enabling.push_reserved(one);
        }
    }
    group.domain.provider().enable_many(&mut enabling);
    drop(enabling);
    for one in all {
        let ended = match one.pending {
            Some(pending) => one.opened.end(pending.ended()),
            None => Ok(one.opened),
        };
        match ended {
            Ok(opened) => done.push_reserved((one.index, opened)),
            Err(refusal) => answers.refused(one.index, refusal.report()),
        }
    }
    Ok(())
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
