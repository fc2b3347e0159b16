// SPDX-License-Identifier: GPL-2.0

//! What a region is made of, before it is one and, if it was reserved, after it was.

use super::{
    rare::Rare,
    reference::{
        self,
        Memory,
        MrRef, //
    }, //
};
use crate::{
    object::domain::DomainObject,
    provider::MrPart,
    region::request::MrRequest,
    support::{
        cache::MrExtBox,
        refusal::Refusal, //
    }, //
};
use kernel::prelude::*;

/// What a region is made of.
pub(crate) struct Kit {
    /// `None` if it could not be had back; then another is made when it is needed.
    pub(super) object: Option<Memory>,
    /// The provider's part; before a region is created, only of one that was reserved.
    pub(super) mr: Option<MrPart>,
    /// What most regions haven't.
    pub(super) rare: Option<Pin<MrExtBox<Rare>>>,
    /// It goes back to the domain's reserve.
    pub(super) reserved: bool,
}

impl Kit {
    /// Nothing yet, for one region.
    pub(super) fn new() -> Self {
        Self {
            object: None,
            mr: None,
            rare: None,
            reserved: false,
        }
    }

    /// What a region was made of that was reserved, and is closed.
    pub(super) fn of_closed(object: MrRef, mr: Option<MrPart>) -> Self {
        let (object, mut rare) = match object.take_apart() {
            Some((object, rare)) => (Some(object), rare),
            None => (None, None),
        };
        if let Some(rare) = &mut rare {
            rare.as_mut().clear();
        }
        Self {
            object,
            mr,
            rare,
            reserved: true,
        }
    }

    /// For one region after the other, of so many segments. May sleep.
    pub(crate) fn reserved(segments: usize) -> Result<Self, Refusal> {
        Ok(Self {
            object: Some(reference::memory()?),
            mr: None,
            rare: Some(Rare::with_capacity(segments)?),
            reserved: true,
        })
    }

    /// Takes the provider's part, to be [created again](crate::provider::Mr::create_again) each time.
    pub(crate) fn lend(&mut self, mr: MrPart) {
        self.mr = Some(mr);
    }

    /// Sees to it that the object's memory is there. May sleep.
    fn complete(&mut self) -> Result<(), Refusal> {
        if self.object.is_none() {
            self.object = Some(reference::memory()?);
        }
        Ok(())
    }

    /// Creates the region at its provider, disabled: [`mr`](Self::mr); `told` if an event queue tells of it. May
    /// sleep.
    pub(super) fn create(
        &mut self,
        domain: &DomainObject,
        request: &MrRequest<'_>,
        told: bool,
    ) -> Result<(), Refusal> {
        // Allocated first: nothing is left to fail when there is a region.
        self.complete()?;
        Rare::fit(&mut self.rare, domain, request, told)?;
        match &mut self.mr {
            Some(mr) => mr.create_again(request),
            none => {
                *none = Some(domain.provider().create_mr(request)?);
                Ok(())
            }
        }
    }
}
