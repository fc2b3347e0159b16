// SPDX-License-Identifier: GPL-2.0

//! Registering many regions.

use super::answers::{
    Answers,
    MAX_TOGETHER, //
};
use crate::{
    object::{
        domain::DomainObject,
        mr::{
            enable::Pending,
            open::Opened,
            reg::{
                attr_arguments,
                attr_source,
                requested, //
            }, //
        }, //
    },
    region::{
        around::Around,
        request::{
            Arguments,
            MrRequest, //
        }, //
    },
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
        let made = unsafe { register_some(domain, some, flags, first, answers, &mut opened) };
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

/// A region that is being registered with others.
struct Registering {
    index: usize,
    opened: Opened,
    /// `None` if it isn't enabled now.
    pending: Option<Pending>,
}

/// Registers some, which wait for the device together: those that are registered go to `opened`, for
/// which there is room. An error means that nothing was registered.
///
/// # Safety
///
/// As the C API demands: what the attributes point to is valid.
unsafe fn register_some(
    domain: &DomainObject,
    attrs: &[kfi_mr_attr],
    flags: u64,
    first: usize,
    answers: &mut Answers<'_>,
    opened: &mut ListVec<(usize, Opened)>,
) -> Result<(), Refusal> {
    // Allocated first: nothing is left to fail once there are regions.
    let mut all = ListVec::with_capacity(attrs.len(), GFP_KERNEL)?;
    let mut enabling = ListVec::with_capacity(attrs.len(), GFP_KERNEL)?;
    let around = Around::new();
    for (index, attr) in (first..).zip(attrs) {
        // SAFETY: By the requirements of this function.
        match unsafe { make(domain, attr, flags, &around) } {
            Ok(mut opened) => {
                let pending = opened.begin();
                let one = Registering {
                    index,
                    opened,
                    pending,
                };
                // There is room.
                let _ = all.push_within_capacity(one);
            }
            Err(refusal) => answers.refused(index, refusal.report()),
        }
    }
    for one in &mut all {
        if let Some(one) = one.pending.as_mut().and_then(Pending::enabling) {
            // There is room.
            let _ = enabling.push_within_capacity(one);
        }
    }
    domain.provider().enable_many(&mut enabling);
    drop(enabling);
    for one in all {
        let ended = match one.pending {
            Some(pending) => one.opened.end(pending.ended()),
            None => Ok(one.opened),
        };
        match ended {
            // There is room.
            Ok(one_more) => drop(opened.push_within_capacity((one.index, one_more))),
            Err(refusal) => answers.refused(one.index, refusal.report()),
        }
    }
    Ok(())
}

/// Creates the region that attributes describe.
///
/// # Safety
///
/// As the C API demands: what the attributes point to is valid.
unsafe fn make(
    domain: &DomainObject,
    attr: &kfi_mr_attr,
    flags: u64,
    around: &Around,
) -> Result<Opened, Refusal> {
    // SAFETY: By the requirements of this function.
    let (source, arguments) = unsafe { (attr_source(attr)?, attr_arguments(attr, flags)) };
    let arguments = Arguments {
        together: Some(around),
        ..arguments.or_auth_key(domain.auth_key())
    };
    let create = |request: &MrRequest<'_>| Opened::create(domain, request, attr.context);
    requested(source, arguments, domain.mr_limits(), create)
}

/// Closes what C isn't to get. Sleeps.
fn undo(opened: ListVec<(usize, Opened)>, answers: &mut Answers<'_>) {
    for (index, one) in opened {
        if let Err(refusal) = one.undo() {
            // Nobody has a handle whose closing would tell.
            answers.refused(index, refusal.with_errno(Errno::ENOTRECOVERABLE).report());
        }
    }
}
