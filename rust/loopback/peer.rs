// SPDX-License-Identifier: GPL-2.0

//! What a peer may do, and what it can't.

use crate::{
    domain::Domain,
    keys::Part, //
};
use kernel::prelude::*;
use kfabric::{
    num::widen,
    transfer::Transfer,
    Errno,
    Refusal, //
};

/// Where a peer's access goes to.
pub(crate) struct Target<'a> {
    pub(crate) domain: &'a Domain,
}

/// Whose access it is. The default is somebody without any right of its own.
#[derive(Default)]
pub(crate) struct Initiator<'a> {
    pub(crate) auth_key: &'a [u8],
}

/// An access is refused in one way only: a peer that asks for what it may not have isn't told what
/// there is.
const fn denied(why: &'static CStr) -> Refusal {
    Refusal::new(Errno::EACCES, why)
}

impl Target<'_> {
    /// Copies between a peer's buffer and the bytes that key and address lead to. May sleep.
    pub(crate) fn access(
        &self,
        initiator: &Initiator<'_>,
        addr: u64,
        key: u64,
        transfer: Transfer<'_>,
    ) -> Result<(), Refusal> {
        let part = self.domain.keys().get(key);
        let part = part.ok_or(denied(c"no such key").value(key))?;
        let at = part.place(addr, transfer.len())?;
        if part.region.auth_key() != initiator.auth_key {
            return Err(denied(c"another authorization key"));
        }
        let inside = part.region.enter();
        let inside = inside.ok_or(denied(c"the region is not enabled").value(key))?;
        inside.get().extent.copy(at, transfer)
    }
}

impl Part {
    /// Where in the region `len` bytes from `addr` on are, if all of them are in this part.
    fn place(&self, addr: u64, len: usize) -> Result<u64, Refusal> {
        let beyond = denied(c"beyond the region").value(addr);
        let at = addr.checked_sub(self.base).ok_or(beyond)?;
        let end = at.checked_add(widen(len)).ok_or(beyond)?;
        match end <= self.len {
            true => Ok(self.at + at),
            false => Err(beyond),
        }
    }
}
