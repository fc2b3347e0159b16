// SPDX-License-Identifier: GPL-2.0

//! What a region of a domain's reserve is made of, besides its device region.

use crate::{
    region::Region,
    roster::Place, //
};
use kernel::prelude::*;
use kfabric::Errno;
use rdma::sg::SpareTable;

/// Memory for one region after the other.
pub(crate) struct Kit {
    /// `None` while a region has it.
    place: Option<Place<Region>>,
    table: SpareTable,
}

impl Kit {
    /// For regions of up to so many pages. May sleep.
    pub(crate) fn new(pages: u32) -> Result<Self> {
        Ok(Self {
            place: Some(Place::new()?),
            table: SpareTable::alloc(pages)?,
        })
    }

    /// Takes the place; a new one if that is gone. May sleep.
    pub(crate) fn take_place(&mut self) -> Result<Place<Region>, Errno> {
        match self.place.take() {
            Some(place) => Ok(place),
            None => Place::new().map_err(|_| Errno::ENOMEM),
        }
    }

    /// Where the place goes back to.
    pub(crate) fn place(&mut self) -> &mut Option<Place<Region>> {
        &mut self.place
    }

    /// The entries of its list.
    pub(crate) fn table(&self) -> &SpareTable {
        &self.table
    }
}
