// SPDX-License-Identifier: GPL-2.0

//! What a region is made of, before it is one and, if it was reserved, after it was.

use super::{
    ranges::Ranges,
    MrObject, //
};
use crate::{
    object::domain::DomainObject,
    provider::Mr,
    region::request::MrRequest,
    support::refusal::Refusal, //
};
use core::{
    mem::{
        self,
        MaybeUninit, //
    },
    ptr, //
};
use kernel::{
    prelude::*,
    sync::{
        Arc,
        UniqueArc, //
    }, //
};

/// What a region is made of.
pub(crate) struct Kit {
    /// `None` if it could not be had back; then another is made when it is needed.
    pub(super) object: Option<UniqueArc<MaybeUninit<MrObject>>>,
    /// The provider's part; before a region is created, only of one that was reserved.
    pub(super) mr: Option<KBox<dyn Mr>>,
    /// The list of its addresses, or room for it.
    pub(super) ranges: Ranges,
    /// It goes back to the domain's reserve.
    pub(super) reserved: bool,
}

impl Kit {
    /// Nothing yet, for one region.
    pub(super) fn new() -> Self {
        Self {
            object: None,
            mr: None,
            ranges: Ranges::Unknown,
            reserved: false,
        }
    }

    /// What a region was made of that was reserved, and is closed.
    pub(super) fn of_closed(object: Arc<MrObject>, mr: Option<KBox<dyn Mr>>) -> Self {
        let (object, ranges) = match take_apart(object) {
            Some((object, ranges)) => (Some(object), ranges),
            None => (None, Ranges::Unknown),
        };
        Self {
            object,
            mr,
            ranges,
            reserved: true,
        }
    }

    /// For one region after the other, of so many segments. May sleep.
    pub(crate) fn reserved(segments: usize) -> Result<Self, Refusal> {
        Ok(Self {
            object: Some(UniqueArc::new_uninit(GFP_KERNEL)?),
            mr: None,
            ranges: Ranges::with_capacity(segments)?,
            reserved: true,
        })
    }

    /// Takes the provider's part, to be [created again](Mr::create_again) each time.
    pub(crate) fn lend(&mut self, mr: KBox<dyn Mr>) {
        self.mr = Some(mr);
    }

    /// Sees to it that the object's memory is there. May sleep.
    fn complete(&mut self) -> Result<(), Refusal> {
        if self.object.is_none() {
            self.object = Some(UniqueArc::new_uninit(GFP_KERNEL)?);
        }
        Ok(())
    }

    /// Creates the region at its provider, disabled: [`mr`](Self::mr). May sleep.
    pub(super) fn create(
        &mut self,
        domain: &DomainObject,
        request: &MrRequest<'_>,
    ) -> Result<(), Refusal> {
        // Allocated first: nothing is left to fail when there is a region.
        self.complete()?;
        if domain.mr_limits().refresh.is_ok() {
            self.ranges.set(request.source())?;
        }
        match &mut self.mr {
            Some(mr) => mr.create_again(request),
            none => {
                *none = Some(domain.provider().create_mr(request)?);
                Ok(())
            }
        }
    }
}

/// What a closed region was made of: the object's memory, unless someone else has a reference to it
/// with whom it goes, and its ranges.
fn take_apart(object: Arc<MrObject>) -> Option<(UniqueArc<MaybeUninit<MrObject>>, Ranges)> {
    let object = Arc::into_unique_or_drop(object)?;
    // SAFETY: The object isn't moved; it is dropped where it is.
    let mut object = unsafe { Pin::into_inner_unchecked(object) };
    let ranges = mem::replace(&mut object.ranges, Ranges::Unknown);
    let shared: Arc<MrObject> = object.into();
    let raw = Arc::into_raw(shared);
    // SAFETY: This was the only reference to the object, which is dropped once, here: from now on
    // its memory is taken to hold nothing.
    unsafe { ptr::drop_in_place(raw.cast_mut()) };
    // SAFETY: The pointer is that of an `Arc` to which there is no other reference, and has the same
    // layout with nothing in it.
    let memory = unsafe { Arc::from_raw(raw.cast::<MaybeUninit<MrObject>>()) };
    let memory = Arc::into_unique_or_drop(memory)?;
    // SAFETY: There is nothing in it that could be moved.
    let memory = unsafe { Pin::into_inner_unchecked(memory) };
    Some((memory, ranges))
}
