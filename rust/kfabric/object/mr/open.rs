// SPDX-License-Identifier: GPL-2.0

//! Making the region that C gets.

use super::{
    close::MrClose,
    enable::enable_later,
    parts::{
        preallocate,
        PreallocatedMr, //
    },
    prelude::*, //
};
use crate::object::trace;

/// A region that C hasn't been given yet.
///
/// To be [started](Self::start), or else [undone](Self::undo).
pub(super) struct NewMr {
    object: MrRef,
    /// The device's part is left to [`start`](Self::start).
    pending: bool,
}

/// Registers a valid request and makes the object that C gets.
///
/// Sleeps until the device is done; but where an event queue is bound to the domain, that is left
/// to [`NewMr::start`]. A region that has to be bound first stays disabled.
pub(super) fn open(
    domain: &DomainObject,
    request: &MrRequest<'_>,
    context: *mut c_void,
) -> Result<NewMr, Refusal> {
    if let Some(later) = EnableConditions::of(domain, request) {
        return NewMr::create(domain, request, context, later);
    }
    // A task that ends all open objects waits for the place of the region.
    let register = || domain.imp.register_mr(request);
    let (preallocated, (mr, keys)) = preallocate(domain, request, context, None, register)?;
    Ok(NewMr::registered(preallocated, mr, &keys))
}

impl NewMr {
    /// Makes the object of a region that is registered. Any context.
    #[inline]
    pub(super) fn registered(
        preallocated: PreallocatedMr<'_>,
        mr: ProviderMr,
        keys: &Keys,
    ) -> Self {
        Self {
            object: preallocated.object(mr, Some(keys)),
            pending: false,
        }
    }

    /// Creates a region at its provider, disabled. If an event queue tells of it, [`start`](Self::start) enables it. May
    /// sleep.
    #[inline(never)]
    pub(super) fn create(
        domain: &DomainObject,
        request: &MrRequest<'_>,
        context: *mut c_void,
        later: EnableConditions,
    ) -> Result<Self, Refusal> {
        let create = || domain.imp.create_mr(request);
        let (preallocated, mr) = preallocate(domain, request, context, Some(later), create)?;
        let object = preallocated.object(mr, None);
        let pending = object.inner.with(|inner| {
            object.wait_while(inner, |inner| inner.held);
            inner.told && inner.begin().is_ok()
        });
        Ok(Self { object, pending })
    }

    /// Closes the region, which C does not get. Returns 0, or an errno that has been reported. Sleeps.
    ///
    /// # Errors
    ///
    /// - `ENOTRECOVERABLE`: the device can't deregister the memory.
    pub(super) fn undo(self) -> c_int {
        let mut closing = MrClose::of_new(self.object);
        let closed = closing.close_provided();
        closing.end(closed, Errno::ENOTRECOVERABLE)
    }

    /// Returns the pointer that C gets.
    pub(super) fn as_ptr(&self) -> *mut kfid_mr {
        self.object.as_ptr()
    }

    /// Gives the object to C, which must know of it already: from here on there may be an event.
    /// May sleep.
    pub(super) fn start(self) {
        trace::registered(&*self.object, 0);
        self.object.parent().counters.count_opened();
        let left = self.pending.then(|| self.object.clone());
        // C's reference, which `close` takes back; perhaps before this returns.
        let _ = self.object.into_raw();
        if let Some(left) = left {
            enable_later(left);
        }
    }
}
