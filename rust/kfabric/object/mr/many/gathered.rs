// SPDX-License-Identifier: GPL-2.0

//! Regions that are registered together, before there are objects of them.

use super::{
    answers::Answers,
    group::{
        Done,
        Group, //
    }, //
};
use crate::{
    object::mr::{
        asked::{
            Asked,
            Expected, //
        },
        open::{
            self,
            Opened, //
        }, //
    },
    provider::Gathering,
    support::{
        cache::ListVec,
        errno::Errno,
        push_reserved::PushReserved,
        refusal::Refusal, //
    }, //
};
use kernel::prelude::*;

/// What has become of a request so far.
enum Made {
    /// It was gathered.
    Gathered(Expected, Asked),
    /// The region has to be bound first.
    Disabled(Opened),
}

/// Begins to register a group, if its provider gathers, and nothing stands against that. May sleep.
pub(super) fn begin<'a>(group: &Group<'a>) -> Option<KBox<dyn Gathering + 'a>> {
    match open::is_at_once(group.domain) {
        true => group.domain.provider().gather(group.len()),
        false => None,
    }
}

/// Registers a group: those that are registered go to `done`, for which there is room. An error means that
/// nothing was registered. Sleeps until the device is done.
pub(super) fn register(
    group: &Group<'_>,
    mut gathering: KBox<dyn Gathering + '_>,
    answers: &mut Answers<'_>,
    done: &mut Done,
) -> Result<(), Refusal> {
    let domain = group.domain;
    // Allocated first: nothing is left to fail once there are regions.
    let mut all = ListVec::with_capacity(group.len(), GFP_KERNEL)?;
    group.each(
        answers,
        |request, context| {
            if open::is_bound(domain, request) {
                return Opened::create(domain, request, context).map(Made::Disabled);
            }
            let expected = Expected::new(domain, request, context)?;
            gathering.add(request)?;
            Ok(Made::Gathered(expected, Asked::of(request)))
        },
        |index, made| all.push_reserved((index, made)),
    );
    let mut all = all.into_iter();
    let mut keep = |index, opened| {
        done.push_reserved((index, opened));
    };
    gathering.register(&mut |registered| {
        for (index, made) in all.by_ref() {
            match made {
                Made::Disabled(opened) => keep(index, opened),
                Made::Gathered(expected, asked) => {
                    return match registered {
                        Ok((mr, keys)) => {
                            let object = expected.registered(domain, asked, mr, keys);
                            keep(index, Opened::enabled(object))
                        }
                        Err(refusal) => answers.refused(index, refusal.report()),
                    };
                }
            }
        }
    });
    for (index, made) in all {
        match made {
            Made::Disabled(opened) => keep(index, opened),
            Made::Gathered(..) => {
                let not_done = Refusal::new(Errno::EIO, c"the provider has not registered it");
                answers.refused(index, not_done.report());
            }
        }
    }
    Ok(())
}
