// SPDX-License-Identifier: GPL-2.0

//! Regions as their descriptors tell of them.

use crate::{
    region::access::Access,
    support::{
        errno::Errno,
        refusal::Refusal, //
    }, //
};

/// A region that has a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DescMr {
    /// Where its first byte is for the kernel, if it is one range of addresses there.
    pub(crate) start: Option<u64>,
    /// The address of that byte for the device.
    pub(crate) base: u64,
    /// How many bytes it has.
    pub(crate) len: u64,
    /// What may be done with it.
    pub(crate) access: Access,
    /// Is it one region of the device?
    pub(crate) whole: bool,
}

impl DescMr {
    /// Where in it a segment is for the device; `None` if that can't be told.
    pub(super) fn address(&self, start: Option<u64>, len: u64) -> Result<Option<u64>, Refusal> {
        let (Some(first), Some(start)) = (self.start, start) else {
            return Ok(None);
        };
        let at = start.checked_sub(first);
        match at.and_then(|at| at.checked_add(len)) {
            Some(end) if end <= self.len => Ok(at.map(|at| self.base.wrapping_add(at))),
            _ => {
                let refusal =
                    Refusal::new(Errno::EINVAL, c"not within the region of its descriptor");
                Err(refusal.value(start))
            }
        }
    }

    /// Checks that it was registered for such a transfer. What the device only reads needs nothing, as
    /// in ibv_reg_mr(3).
    pub(super) fn check_rights(&self, needs: Access) -> Result<(), Refusal> {
        if needs.device_writes() && !self.access.device_writes() {
            let refusal = Refusal::new(Errno::EACCES, c"the region may not be written to");
            return Err(refusal.value(needs.bits()));
        }
        Ok(())
    }
}
