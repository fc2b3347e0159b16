// SPDX-License-Identifier: GPL-2.0

//! Events, as they are read from an event queue and written to it.

use crate::support::errno::Errno;
use core::ops::Deref;
use kfi_bindings::{
    KFI_AV_COMPLETE,
    KFI_JOIN_COMPLETE,
    KFI_MR_COMPLETE,
    KFI_NOTIFY, //
};

const ROOM: usize = crate::support::num::index(kfi_bindings::KFI_EQ_ENTRY_MAX);

/// What an event is about: a `struct kfi_eq_entry`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The object, by the address of its `struct kfid`.
    pub object: usize,
    /// The context given with the operation that has ended; for a registration that of its
    /// [`Options`](super::Options::context).
    pub context: usize,
    /// Depends on the event.
    pub data: u64,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Something about an object.
    Notify(Entry),
    /// A registration is complete.
    MrComplete(Entry),
    /// An address vector operation is complete.
    AvComplete(Entry),
    /// A multicast group is joined.
    JoinComplete(Entry),
    /// Another, by its number.
    Other(u32, Bytes),
}

/// The bytes of an event's structure.
///
/// # Invariants
///
/// `len` is at most the length of `bytes`, and behind it all are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    bytes: [u8; ROOM],
    len: usize,
}

impl Bytes {
    /// A copy of these; `EINVAL` if they are more than an event can have.
    pub fn new(from: &[u8]) -> Result<Self, Errno> {
        let mut bytes = [0; ROOM];
        let to = bytes.get_mut(..from.len()).ok_or(Errno::EINVAL)?;
        to.copy_from_slice(from);
        // INVARIANT: There was room, and the others were not touched.
        Ok(Self {
            bytes,
            len: from.len(),
        })
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl Entry {
    const LEN: usize = size_of::<kfi_bindings::kfi_eq_entry>();

    fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let (object, context) = (self.object.to_ne_bytes(), self.context.to_ne_bytes());
        let fields = object.into_iter().chain(context);
        let fields = fields.chain(self.data.to_ne_bytes());
        for (to, from) in bytes.iter_mut().zip(fields) {
            *to = from;
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (object, rest) = bytes.split_first_chunk()?;
        let (context, rest) = rest.split_first_chunk()?;
        let data = rest.try_into().ok()?;
        Some(Self {
            object: usize::from_ne_bytes(*object),
            context: usize::from_ne_bytes(*context),
            data: u64::from_ne_bytes(data),
        })
    }
}

impl Event {
    /// Room for any event's structure.
    pub(super) fn room() -> [u8; ROOM] {
        [0; ROOM]
    }

    /// The event that was read.
    pub(super) fn from_c(number: u32, bytes: &[u8]) -> Result<Self, Errno> {
        // A consumer may have written a structure of its own under any number.
        match (number, Entry::from_bytes(bytes)) {
            (KFI_NOTIFY, Some(entry)) => Ok(Self::Notify(entry)),
            (KFI_MR_COMPLETE, Some(entry)) => Ok(Self::MrComplete(entry)),
            (KFI_AV_COMPLETE, Some(entry)) => Ok(Self::AvComplete(entry)),
            (KFI_JOIN_COMPLETE, Some(entry)) => Ok(Self::JoinComplete(entry)),
            _ => Ok(Self::Other(number, Bytes::new(bytes)?)),
        }
    }

    /// Calls `write` with the event's number and bytes.
    pub(super) fn with_c<R>(&self, write: impl FnOnce(u32, &[u8]) -> R) -> R {
        let (number, entry) = match self {
            Self::Notify(entry) => (KFI_NOTIFY, entry),
            Self::MrComplete(entry) => (KFI_MR_COMPLETE, entry),
            Self::AvComplete(entry) => (KFI_AV_COMPLETE, entry),
            Self::JoinComplete(entry) => (KFI_JOIN_COMPLETE, entry),
            Self::Other(number, bytes) => return write(*number, bytes),
        };
        write(number, &entry.to_bytes())
    }
}
