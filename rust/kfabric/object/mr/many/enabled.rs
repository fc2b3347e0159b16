// SPDX-License-Identifier: GPL-2.0

//! Regions that are created, and then enabled together.

use super::{
    answers::Answers,
    group::{
        Done,
        Group, //
    }, //
};
use crate::{
    object::mr::{
        enable::Pending,
        open::Opened, //
    },
    support::{
        cache::ListVec,
        push_reserved::PushReserved,
        refusal::Refusal, //
    }, //
};
use kernel::prelude::*;

/// A region that is being registered with others.
struct Registering {
    index: usize,
    opened: Opened,
    /// `None` if it isn't enabled now.
    pending: Option<Pending>,
}

/// Registers a group: those that are registered go to `done`, for which there is room. An error means that
/// nothing was registered. Sleeps until the device is done.
pub(super) fn register(
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
            let one = Registering {
                index,
                opened,
                pending,
            };
            all.push_reserved(one);
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
