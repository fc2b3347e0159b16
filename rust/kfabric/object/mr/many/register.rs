// SPDX-License-Identifier: GPL-2.0

//! Registering many regions.

use super::{
    answers::{
        Answers,
        MAX_TOGETHER, //
    },
    enabled,
    gathered,
    group::{
        Done,
        Group, //
    }, //
};
use crate::{
    object::domain::DomainObject,
    support::{
        cache::ListVec,
        errno::Errno,
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
        let made = match gathered::begin(&group) {
            Some(gathering) => gathered::register(&group, gathering, answers, &mut opened),
            None => enabled::register(&group, answers, &mut opened),
        };
        if let Err(refusal) = made {
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

/// Closes what C isn't to get. Sleeps.
fn undo(opened: Done, answers: &mut Answers<'_>) {
    for (index, one) in opened {
        if let Err(refusal) = one.undo() {
            // Nobody has a handle whose closing would tell.
            answers.refused(index, refusal.with_errno(Errno::ENOTRECOVERABLE).report());
        }
    }
}
