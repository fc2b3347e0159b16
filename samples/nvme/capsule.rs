// SPDX-License-Identifier: GPL-2.0

//! Capsules, the memory of commands and responses.

use crate::region::RequestData;
use core::mem;
use kernel::{
    alloc::Flags,
    prelude::*, //
};
use kfabric::consumer::{
    Errno,
    Framed,
    Request, //
};
use nvme::{
    Command,
    Sending, //
};

/// The transport over kfabric.
pub(crate) struct Kfi;

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

/// A capsule, which can be posted: a command or a response, and the data behind a command.
pub(crate) type Capsule = Request<Message, Purpose>;

/// The memory of a capsule.
pub(crate) type Message = Framed<RequestData>;

/// Allocates a capsule with `len` bytes for a command or a response. Sleeps only if `flags` allow it.
pub(crate) fn new(len: usize, purpose: Purpose, flags: Flags) -> Result<Capsule> {
    let bytes = KVec::from_elem(0, len, flags)?;
    Ok(Request::with_flags(Framed::new(bytes), purpose, flags)?)
}

/// Writes a command to a capsule. Any context.
///
/// # Errors
///
/// - `EINVAL`: the capsule has less space.
pub(crate) fn set(capsule: &mut Capsule, command: &[u8; Command::SIZE]) -> Result<(), Errno> {
    let place = capsule.memory_mut().header_mut().first_chunk_mut();
    *place.ok_or(Errno::EINVAL)? = *command;
    Ok(())
}

/// Gives the data of a capsule that has come back to their request. Any context.
pub(crate) fn empty(capsule: &mut Capsule) {
    drop(capsule.memory_mut().set_data(None));
}

/// Takes the purpose of a capsule that has come back. Any context.
pub(crate) fn take_purpose(capsule: &mut Capsule) -> Purpose {
    mem::replace(capsule.context_mut(), Purpose::Idle)
}
