// SPDX-License-Identifier: GPL-2.0

//! Who took a protection domain, for people.

use kernel::{
    prelude::*,
    str::BStr, //
};
use kfabric::num;

/// Who took a protection domain: the name of a function, as it was when it took it.
#[derive(Clone, Copy)]
pub(crate) struct Holder {
    name: [u8; ROOM],
    len: usize,
}

const ROOM: usize = num::index(kfi_bindings::KFI_VERBS_CALLER_MAX);

impl Holder {
    /// Who calls itself so.
    pub(crate) fn new(name: &CStr) -> Self {
        let name = name.to_bytes();
        let mut holder = Self {
            name: [0; ROOM],
            len: name.len().min(ROOM),
        };
        for (to, from) in holder.name.iter_mut().zip(name) {
            *to = *from;
        }
        holder
    }

    /// Says something in the log that ends with who it is. Any context.
    pub(crate) fn warn(&self, device: &rdma::Device, what: &str) {
        let holder = BStr::from_bytes(self.name.get(..self.len).unwrap_or(&[]));
        pr_warn!("{}: {what} {holder}\n", device.name());
    }
}
