// SPDX-License-Identifier: GPL-2.0

//! Many regions in one go: the device is waited for once.

use super::{
    close::MrClose,
    open::{
        self,
        NewMr, //
    },
    parts::{
        preallocate,
        PreallocatedMr, //
    },
    prelude::*,
    reg::{
        attr_arguments,
        attr_source,
        requested, //
    }, //
};
use crate::object::trace;

/// The name of the call that registers many regions.
const MANY: &CStr = c"regattr_many";

/// The results that C gets: a region or an errno for each.
pub(crate) struct Answers<'a> {
    mrs: &'a mut [*mut kfid_mr],
    errs: Option<&'a mut [c_int]>,
    first: c_int,
}

impl Answers<'_> {
    /// Makes empty results.
    ///
    /// # Safety
    ///
    /// `mrs`, and `errs` unless it is null, are valid for writing `count` elements, as long as this
    /// lives.
    pub(crate) unsafe fn new(mrs: *mut *mut kfid_mr, errs: *mut c_int, count: usize) -> Self {
        // SAFETY: `mrs` is valid for writing `count` elements, and so is `errs` unless it is null,
        // as the caller promises. All zeroes are valid values of both.
        unsafe {
            mrs.write_bytes(0, count);
            let errs = if errs.is_null() {
                None
            } else {
                errs.write_bytes(0, count);
                Some(slice::from_raw_parts_mut(errs, count))
            };
            Self {
                mrs: slice::from_raw_parts_mut(mrs, count),
                errs,
                first: 0,
            }
        }
    }

    pub(super) fn refused(&mut self, index: usize, ret: c_int) {
        if let Some(err) = self.errs.as_mut().and_then(|errs| errs.get_mut(index)) {
            *err = ret;
        }
        if self.first == 0 {
            self.first = ret;
        }
    }

    pub(super) fn registered(&mut self, index: usize, mr: *mut kfid_mr) {
        if let Some(place) = self.mrs.get_mut(index) {
            *place = mr;
        }
    }

    /// Sets `ECANCELED` for the regions that were not refused themselves: there is none, since
    /// others were refused.
    pub(super) fn cancel_others(&mut self) {
        for err in self.errs.iter_mut().flat_map(|errs| errs.iter_mut()) {
            if *err == 0 {
                *err = Errno::ECANCELED.to_c();
            }
        }
    }

    /// Returns the first errno; 0 if all regions are registered.
    pub(crate) fn first_error(&self) -> c_int {
        self.first
    }
}

/// Registers a region for each of `attrs`. `answers` gets the result of each. After an error nothing was registered.
/// Sleeps until the device is done with all of them.
///
/// # Safety
///
/// As the C API demands: the memory that the attributes point to must be valid.
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
            let ret = domain.refuse(MANY, refusal);
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

/// Registers a group: those that are registered go to `done`, for which there is room. After an error nothing was
/// registered. Sleeps until the device is done.
fn register_group(
    group: &Group<'_>,
    answers: &mut Answers<'_>,
    done: &mut Done,
) -> Result<(), Refusal> {
    let domain = group.domain;
    let Some(mut batch) = domain.imp.batch(group.attrs.len()) else {
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
            if let Some(later) = EnableConditions::of(domain, request) {
                return NewMr::create(domain, request, context, later).map(Err);
            }
            let prepare = || batch.prepare(request);
            let (preallocated, ()) = preallocate(domain, request, context, None, prepare)?;
            Ok(Ok(preallocated))
        },
        |index, prepared| match prepared {
            Ok(preallocated) => all.push_reserved((index, preallocated)),
            // This call does not enable it.
            Err(created) => done.push_reserved((index, created)),
        },
    );
    let mut all = all.into_iter();
    let mut end = |registered| {
        let Some((index, preallocated)) = all.next() else {
            return false;
        };
        match registered {
            Ok((mr, keys)) => {
                let opened = NewMr::registered(preallocated, mr, &keys);
                done.push_reserved((index, opened));
            }
            Err(refusal) => refuse(answers, index, preallocated, refusal),
        }
        true
    };
    batch.register(&mut |registered| _ = end(registered));
    let not_done = Refusal::new(Errno::EIO, c"the provider has not registered it");
    while end(Err(not_done)) {}
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
    let domain = preallocated.domain();
    trace::not_registered(domain, refusal.errno());
    answers.refused(index, domain.refuse(MANY, refusal));
    preallocated.undo();
}

/// Closes the regions that C must not get. Sleeps.
fn undo(opened: Done, answers: &mut Answers<'_>) {
    for (index, one) in opened {
        match one.undo() {
            0 => (),
            // Nobody has a handle whose closing would tell.
            ret => answers.refused(index, ret),
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
                Err(refusal) => answers.refused(index, self.domain.refuse(MANY, refusal)),
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
        requested(source, arguments, self.domain, make)
    }
}

/// Closes regions, and passes the result of each to `answer`. Sleeps until no peer can reach the
/// memory of the closed ones.
///
/// # Safety
///
/// Each pointer must be null, an error pointer, or an open object that nobody else uses. A pointer
/// may occur several times.
pub(crate) unsafe fn close(mrs: &[*mut kfid_mr], answer: impl FnMut(usize, c_int)) {
    let begin = |mr: *mut kfid_mr, gone: &[*mut kfid_mr]| {
        if mr.is_null() {
            return Ok(None);
        }
        // Before it is looked at.
        if gone.contains(&mr) {
            let twice = Refusal::new(Errno::EINVAL, c"the region is there twice");
            return Err(twice.report(c"close_many"));
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
    begin: impl Fn(*mut kfid_mr, &[*mut kfid_mr]) -> Result<Option<MrClose>, c_int>,
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
                answer(index, begun.map_or_else(|ret| ret, close_alone));
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
                Err(ret) => answer(index, ret),
            }
        }
        close_together(&mut all, together);
        for one in all {
            let not_done = Refusal::new(Errno::EIO, c"the provider has not closed it");
            let done = one.done.unwrap_or(Err(not_done));
            answer(one.index, one.closing.end(done, Errno::EIO));
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
            domain.imp.close_many(&mut together);
        }
        together.clear();
    }
}

fn close_alone(closing: Option<MrClose>) -> c_int {
    let Some(mut closing) = closing else {
        return 0;
    };
    let closed = closing.close_provided();
    closing.end(closed, Errno::EIO)
}
