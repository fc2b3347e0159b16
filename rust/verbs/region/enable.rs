// SPDX-License-Identifier: GPL-2.0

//! Letting peers in.

use super::{
    lost,
    Region,
    State, //
};
use crate::{
    refused,
    resources::Resources, //
};
use core::mem;
use kernel::prelude::*;
use kfabric::{
    num,
    provider::Keys,
    Refusal,
    RemotePiece, //
};
use rdma::{
    ValidMr,
    WrError, //
};

/// How often a registration is tried when others' failures take it down.
///
/// Only what was flushed is tried again, and the others' failures are their devices' or drivers':
/// so many in a row mean that something is wrong with all of them.
const ATTEMPTS: u32 = 8;

impl Region {
    /// Lets peers in, and says how they reach the memory: by all of its device regions or by none.
    /// Sleeps until the device is done.
    pub(crate) fn enable(&mut self, resources: &Resources) -> Result<Keys, Refusal> {
        // Allocated first: nothing is left to fail once a peer can reach the memory.
        let pieces = match self.runs.len() {
            0 | 1 => KVec::new(),
            several => KVec::with_capacity(several, GFP_KERNEL)?,
        };
        let State::Prepared(mut prepared) = mem::replace(&mut self.state, State::Failed) else {
            return Err(lost());
        };
        for _ in 0..ATTEMPTS {
            let queue = resources.queue().get().map_err(refused::no_queue)?;
            let failed = match queue.register_all(prepared) {
                Ok(valid) => {
                    let keys = keys(&valid, pieces);
                    self.state = State::Valid(valid);
                    return Ok(keys);
                }
                Err(failed) => failed,
            };
            let why = failed.error;
            let lists = failed.lists.map_err(|error| {
                if error == EIO {
                    self.state = State::Stuck;
                }
                refused::not_undone(error)
            })?;
            if !matches!(why, WrError::Flushed) {
                return Err(refused::not_registered(resources.device(), why));
            }
            // Others are to blame.
            prepared = self.prepare(resources, lists)?;
        }
        Err(refused::not_registered(
            resources.device(),
            WrError::Flushed,
        ))
    }
}

/// How peers reach regions. There is room in `pieces`, if they are several.
fn keys(valid: &[ValidMr], mut pieces: KVec<RemotePiece>) -> Keys {
    if let [_, _, ..] = valid {
        for mr in valid {
            let piece = RemotePiece {
                key: u64::from(mr.rkey()),
                base: mr.iova(),
                len: mr.length(),
            };
            let _ = pieces.push_within_capacity(piece);
        }
    }
    Keys {
        key: valid.first().map_or(0, |mr| u64::from(mr.rkey())),
        base: valid.first().map_or(0, ValidMr::iova),
        // A work request's segment lies in one device region: there is no key for several.
        desc: match valid {
            [one] => num::index(one.lkey()),
            _ => 0,
        },
        pieces,
    }
}
