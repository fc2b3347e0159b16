// SPDX-License-Identifier: GPL-2.0

//! Memory of requests, whatever keeps it there, for requests that are to be of one type.

use crate::{
    buffer::Buffer,
    gather::{
        Copied,
        Gather, //
    },
    scrap::Scrap, //
};

/// What keeps memory there.
pub enum AnyMemory {
    /// It was lent.
    Lent(Buffer),
    /// It is a copy.
    Copied(Copied),
    /// Nobody wants it.
    Scrap(Scrap),
}

impl From<Gather<Buffer>> for Gather<AnyMemory> {
    fn from(memory: Gather<Buffer>) -> Self {
        memory.kept_by(AnyMemory::Lent)
    }
}

impl From<Gather<Copied>> for Gather<AnyMemory> {
    fn from(memory: Gather<Copied>) -> Self {
        memory.kept_by(AnyMemory::Copied)
    }
}

impl From<Gather<Scrap>> for Gather<AnyMemory> {
    fn from(memory: Gather<Scrap>) -> Self {
        memory.kept_by(AnyMemory::Scrap)
    }
}
