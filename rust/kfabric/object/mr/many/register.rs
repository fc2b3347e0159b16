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
            open::{
                self,
                NewMr, //
            },
            parts::{
                preallocate,
                PreallocatedMr, //
            },
            reg::{
                attr_arguments,
                attr_source,
                requested, //
            }, //
        }, //
    },
    region::request::{
        Arguments,
        MrRequest, //
    },
    support::{
        cache::ListVec,
        errno::Errno,
        refusal::Refusal,
        vec::PushReserved, //
    }, //
};
use kernel::{
    ffi::c_void,
    prelude::*, //
};
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
        // INVARIANT: The targets of all pointers in `some` are valid for the call, as the caller promises for `attrs`.
        let group = Group {
            domain,
            attrs: some,
            flags,
            first,
        };
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
    let Some(mut batch) = domain.provider().batch(group.attrs.len()) else {
        group.each(
            answers,
            |request, context| open::open(domain, request, context),
            |index, opened| done.push_reserved((index, opened)),
        );
        return Ok(());
    };
    // Allocated first: nothing is left to fail once there are regions.
    let mut all = ListVec::with_capacity(group.attrs.len(), GFP_KERNEL)?;
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

/// The registered regions, each with its index.
type Done = ListVec<(usize, NewMr)>;

/// Some of the regions that are asked for in one call.
///
/// # Invariants
///
/// The targets of the pointers in `attrs` are valid for `'a`.
struct Group<'a> {
    domain: &'a DomainObject,
    attrs: &'a [kfi_mr_attr],
    flags: u64,
    /// The index of the first.
    first: usize,
}

impl Group<'_> {
    /// Calls `make` with each request and its context. `made` gets each result with the index of the request, and
    /// `answers` gets the errors.
    #[inline]
    fn each<T>(
        &self,
        answers: &mut Answers<'_>,
        mut make: impl FnMut(&MrRequest<'_>, *mut c_void) -> Result<T, Refusal>,
        mut made: impl FnMut(usize, T),
    ) {
        for (index, attr) in (self.first..).zip(self.attrs) {
            match self.make(attr, |request| make(request, attr.context)) {
                Ok(one) => made(index, one),
                Err(refusal) => answers.refused(index, refusal.report()),
            }
        }
    }

    #[inline]
    fn make<T>(
        &self,
        attr: &kfi_mr_attr,
        make: impl FnMut(&MrRequest<'_>) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        // SAFETY: The targets of the attributes' pointers are valid by the type invariant.
        let (source, arguments) = unsafe { (attr_source(attr)?, attr_arguments(attr, self.flags)) };
        let arguments = Arguments {
            together: true,
            ..arguments.or_auth_key(&self.domain.auth_key)
        };
        requested(source, arguments, &self.domain.mr_limits, make)
    }
}
