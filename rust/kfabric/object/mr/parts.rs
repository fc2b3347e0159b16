// SPDX-License-Identifier: GPL-2.0

//! The parts from which the object of a region is assembled.

use super::{
    mr_ext::MrExt,
    reference::{
        self,
        Memory,
        MrRef, //
    }, //
};
use crate::{
    object::domain::DomainObject,
    region::request::MrRequest,
    support::{
        cache::MrExtBox,
        refusal::Refusal, //
    }, //
};
use kernel::prelude::*;

/// The parts of a region's object, in its memory.
pub(crate) struct MrParts {
    /// `None` if it could not be recovered from a closed region. Then another one is allocated when it is needed.
    pub(super) memory: Option<Memory>,
    /// The part that most regions don't need.
    pub(super) rare: Option<Pin<MrExtBox<MrExt>>>,
    /// Whether the parts return to the domain's reserve when the region is closed.
    pub(super) reserved: bool,
}

impl MrParts {
    /// No parts yet: they are allocated when the region of a request is known.
    pub(super) const NONE: Self = Self {
        memory: None,
        rare: None,
        reserved: false,
    };

    /// Allocates the parts of one region after the other, each of up to `segments` segments. May sleep.
    pub(crate) fn reserved(segments: usize) -> Result<Self, Refusal> {
        Ok(Self {
            memory: Some(reference::memory()?),
            rare: Some(MrExt::with_capacity(segments)?),
            reserved: true,
        })
    }

    /// Takes the parts of a closed region that came from the reserve. Any context.
    pub(super) fn of_closed(object: MrRef) -> Self {
        let (memory, mut rare) = match object.take_apart() {
            Some((memory, rare)) => (Some(memory), rare),
            None => (None, None),
        };
        if let Some(rare) = &mut rare {
            rare.as_mut().clear();
        }
        Self {
            memory,
            rare,
            reserved: true,
        }
    }

    /// Completes the parts for the region of a request; `told` if an event queue tells of it. May sleep.
    #[inline(always)]
    pub(super) fn fit(
        &mut self,
        domain: &DomainObject,
        request: &MrRequest<'_>,
        told: bool,
    ) -> Result<(), Refusal> {
        if self.memory.is_none() {
            self.memory = Some(reference::memory()?);
        }
        MrExt::fit(&mut self.rare, domain, request, told)
    }
}
