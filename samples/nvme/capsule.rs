// SPDX-License-Identifier: GPL-2.0

//! Capsules, the memory of commands and responses; and the transport's part of each tag.

use crate::region::Region;
use core::mem;
use kernel::prelude::*;
use kfabric::consumer::{
    Errno,
    Request, //
};
use nvme::{
    Command,
    Sending,
    TagParts, //
};

/// The transport over kfabric.
pub(crate) struct Kfi;

/// The part of a tag besides its capsule: the region with the data of the request.
pub(crate) struct Slot(pub(crate) Option<Region>);

impl TagParts for Kfi {
    type Capsule = Capsule;
    type Slot = Slot;
}

/// Size of a response, in bytes.
pub(crate) const RESPONSE: usize = 16;

/// The purpose of a capsule that is posted.
pub(crate) enum Purpose {
    /// The capsule isn't posted.
    Idle,
    /// To send the command of a request.
    Command(Sending<Kfi>),
    /// To send the command that asks for an asynchronous event.
    AsyncEvent,
    /// To receive a response.
    Response,
}

/// A capsule, which can be posted.
pub(crate) type Capsule = Request<KVec<u8>, Purpose>;

/// Allocates a capsule for commands with up to `data` bytes behind them. May sleep.
pub(crate) fn for_commands(data: usize) -> Result<Capsule> {
    let bytes = KVec::from_elem(0, Command::SIZE + data, GFP_KERNEL)?;
    Ok(Request::new(bytes, Purpose::Idle)?)
}

/// Allocates a capsule for a response. May sleep.
pub(crate) fn for_response() -> Result<Capsule> {
    let bytes = KVec::from_elem(0, RESPONSE, GFP_KERNEL)?;
    Ok(Request::new(bytes, Purpose::Response)?)
}

/// Writes a command to a capsule that has `data` bytes behind it. Any context.
///
/// # Errors
///
/// - `EINVAL`: the capsule has less space.
pub(crate) fn set(
    capsule: &mut Capsule,
    command: &[u8; Command::SIZE],
    data: usize,
) -> Result<(), Errno> {
    let place = capsule.memory_mut().first_chunk_mut();
    *place.ok_or(Errno::EINVAL)? = *command;
    capsule.set_part(0, Command::SIZE + data)
}

/// Returns the space for `len` bytes of data behind the command, if the capsule has as much. Any context.
pub(crate) fn data(capsule: &mut Capsule, len: usize) -> Option<&mut [u8]> {
    capsule
        .memory_mut()
        .get_mut(Command::SIZE..Command::SIZE + len)
}

/// Takes the purpose of a capsule that has come back. Any context.
pub(crate) fn take_purpose(capsule: &mut Capsule) -> Purpose {
    mem::replace(capsule.context_mut(), Purpose::Idle)
}
