// SPDX-License-Identifier: GPL-2.0

//! The remains of regions that could not be registered.

use kernel::prelude::*;

use super::fast::PreparedMr;
use crate::{
    sg::DmaList,
    small_vec::SmallVec,
    wc::WrError, //
};

/// Why regions could not be registered, with what is left of them.
///
/// They have all been deregistered.
pub struct RegisterError<L> {
    /// Why.
    pub error: WrError,
    /// Their lists in the same order, to be tried again with other regions, after the queue pair
    /// has been replaced if it is [broken](crate::LocalQp::is_broken).
    ///
    /// [`ENOMEM`] if there was no memory for the answer; [`EIO`] if not even deregistering was
    /// possible, so that a list has been leaked: its memory must never be freed.
    pub lists: Result<SmallVec<L>>,
}

/// Deregisters `count` regions, and returns their lists. The device may have registered any of
/// them.
pub(crate) fn abandon_all<L: DmaList>(
    mrs: impl IntoIterator<Item = PreparedMr<L>>,
    count: usize,
) -> Result<SmallVec<L>> {
    let mut lists = SmallVec::with_capacity(count, GFP_KERNEL).map_err(Error::from);
    let mut leaked = false;
    for mr in mrs {
        match (mr.abandon(), &mut lists) {
            (Some(list), Ok(lists)) => {
                lists.push_reserved(list);
            }
            (Some(_), Err(_)) => (),
            (None, _) => leaked = true,
        }
    }
    // That memory is lost for good matters more than why there is no answer.
    if leaked {
        Err(EIO)
    } else {
        lists
    }
}

/// The state of regions that could not be given other memory.
#[derive(Clone, Copy, Debug)]
pub enum RefreshError {
    /// They are as they were.
    Untouched(Error),
    /// They have been deregistered: no peer can reach any memory.
    Gone,
    /// The device would not let go of all of them: what it kept has been leaked with its mapping,
    /// and its memory, old or new, must never be freed.
    Leaked,
}
