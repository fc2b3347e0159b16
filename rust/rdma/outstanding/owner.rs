// SPDX-License-Identifier: GPL-2.0

//! Who is told how a request ended.

use core::ptr::NonNull;
use kernel::prelude::*;

use crate::wc::Told;

/// How a request ended.
#[derive(Clone, Copy)]
pub(crate) enum End<'a> {
    /// It has completed.
    Completed(Told<'a>),
    /// It has not been posted after all.
    Refused(Error),
    /// It did not complete, and its queue pair has been destroyed.
    Gone,
    /// It did not complete, and its queue pair could not be destroyed.
    Lost,
}

/// The part of who is told how a request ended that slots know.
pub(crate) struct Owner {
    pub(super) ended: unsafe fn(NonNull<Owner>, &End<'_>),
}

impl Owner {
    /// `ended` is called once for each request, in any context.
    ///
    /// # Safety
    ///
    /// `ended` must be sound to call with a pointer to this, as long as that was to be there by the
    /// requirements of [`Outstanding::post`](super::Outstanding::post).
    pub(crate) const unsafe fn new(ended: unsafe fn(NonNull<Owner>, &End<'_>)) -> Self {
        Self { ended }
    }
}
