// SPDX-License-Identifier: GPL-2.0

//! Putting an extent together.

use crate::{
    region::{
        judge::{
            Judge,
            Use, //
        },
        list::List, //
    },
    support::{
        errno::Errno,
        refusal::Refusal, //
    }, //
};
use kernel::prelude::*;
use kfi_bindings::scatterlist;

/// Where a run of memory begins: its offset in the region, and its physical address.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub(super) at: u64,
    pub(super) phys: u64,
}

/// An extent that is being put together.
#[derive(Default)]
pub(super) struct Building {
    first: Option<Run>,
    rest: KVVec<Run>,
    len: u64,
    /// Physical address behind the last byte.
    end: u64,
}

impl Building {
    /// Adds memory, which the caller has checked.
    pub(super) fn add(&mut self, phys: u64, len: u64) -> Result<(), Refusal> {
        let run = Run { at: self.len, phys };
        if self.first.is_none() {
            self.first = Some(run);
        } else if self.end != phys {
            self.rest.push(run, GFP_KERNEL)?;
        }
        self.end = phys + len;
        self.len += len;
        Ok(())
    }

    /// Adds a list whose addresses must be physical ones, as `provider::Direct` makes them.
    pub(super) fn add_list(
        &mut self,
        list: &List<'_, scatterlist>,
        memory: Use,
    ) -> Result<(), Refusal> {
        let mut judge = Judge::new(memory);
        for (index, span) in list.device_spans().enumerate() {
            let span = span.map_err(|e| e.at(index))?;
            let judged = judge.addresses(span.start(), span.bytes());
            judged.map_err(|no| {
                let errno = match no.missing {
                    true => Errno::EINVAL,
                    false => Errno::EFAULT,
                };
                Refusal::new(errno, no.why).at(index).value(span.start())
            })?;
            self.add(span.start(), span.bytes())?;
        }
        Ok(())
    }

    /// The first run, those that follow, and the length of all, if there is anything. Any context.
    pub(super) fn done(self) -> Result<(Run, KVVec<Run>, u64), Refusal> {
        Ok((self.first.ok_or(Errno::EINVAL)?, self.rest, self.len))
    }
}
