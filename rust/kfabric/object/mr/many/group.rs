// SPDX-License-Identifier: GPL-2.0

//! Regions that wait for the device together, as they were asked for.

use super::answers::Answers;
use crate::{
    object::{
        domain::DomainObject,
        mr::{
            open::NewMr,
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
        refusal::Refusal, //
    }, //
};
use kernel::ffi::c_void;
use kfi_bindings::kfi_mr_attr;

/// The registered regions, each with its index.
pub(super) type Done = ListVec<(usize, NewMr)>;

/// Some of the regions that are asked for in one call.
///
/// # Invariants
///
/// The targets of the pointers in `attrs` are valid for `'a`.
pub(super) struct Group<'a> {
    pub(super) domain: &'a DomainObject,
    attrs: &'a [kfi_mr_attr],
    flags: u64,
    /// The index of the first.
    first: usize,
}

impl<'a> Group<'a> {
    /// Makes a group of these attributes. The first of them has the index `first`.
    ///
    /// # Safety
    ///
    /// As the C API demands: what the attributes point to is valid, for `'a`.
    pub(super) unsafe fn new(
        domain: &'a DomainObject,
        attrs: &'a [kfi_mr_attr],
        flags: u64,
        first: usize,
    ) -> Self {
        // INVARIANT: The targets of the attributes' pointers are valid for `'a`, as the caller
        // promises.
        Self {
            domain,
            attrs,
            flags,
            first,
        }
    }

    /// Returns the number of regions.
    pub(super) fn len(&self) -> usize {
        self.attrs.len()
    }

    /// Makes something of each request and its context, and hands it on with its index; or `answers` has why
    /// that could not be.
    #[inline]
    pub(super) fn each<T>(
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
        // SAFETY: Valid by the invariant.
        let (source, arguments) = unsafe { (attr_source(attr)?, attr_arguments(attr, self.flags)) };
        let arguments = Arguments {
            together: true,
            ..arguments.or_auth_key(self.domain.auth_key())
        };
        requested(source, arguments, self.domain.mr_limits(), make)
    }
}
