// SPDX-License-Identifier: GPL-2.0

//! What an offer lacks of what a consumer wants.
//!
//! Of several offers the one that comes closest says most.

use crate::support::{
    errno::Errno,
    num::widen,
    refusal::Refusal, //
};
use kernel::str::CStr;

/// How far an offer was looked at, from what it is of to what its endpoints can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Names,
    Kind,
    Numbers,
    Endpoints,
}

/// What an offer lacks: the first thing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mismatch {
    at: (Stage, usize),
    what: &'static CStr,
    value: u64,
}

impl Mismatch {
    /// Whether its offer came closer than another.
    pub(super) fn is_closer(&self, than: &Self) -> bool {
        self.at > than.at
    }

    /// Why there is nothing for the consumer.
    pub(super) fn refusal(&self) -> Refusal {
        Refusal::new(Errno::ENODATA, self.what).value(self.value)
    }
}

/// Whether something is lacking, what, and a value.
pub(super) type Check = (bool, &'static CStr, u64);

/// There are less than is wanted; the value is how many there are.
pub(super) fn less(has: usize, wanted: usize, what: &'static CStr) -> Check {
    (wanted > has, what, widen(has))
}

/// The first thing that is lacking.
pub(super) fn first<const N: usize>(stage: Stage, checks: [Check; N]) -> Result<(), Mismatch> {
    let lacking = checks.iter().enumerate().find(|(_, (lacks, ..))| *lacks);
    match lacking {
        Some((index, &(_, what, value))) => Err(Mismatch {
            at: (stage, index),
            what,
            value,
        }),
        None => Ok(()),
    }
}

#[kernel::macros::kunit_tests(kfabric_lack)]
mod tests {
    use super::*;

    #[test]
    fn the_first_counts_and_the_last_is_closest() -> Result<(), Errno> {
        let lacks = |stage, checks| first::<2>(stage, checks).err().ok_or(Errno::EINVAL);
        let (yes, no) = ((true, c"this", 1), (false, c"that", 2));
        assert!(first(Stage::Kind, [no, no]).is_ok());
        let early = lacks(Stage::Names, [no, yes])?;
        let late = lacks(Stage::Numbers, [yes, yes])?;
        let later = lacks(Stage::Numbers, [no, yes])?;
        assert!(late.is_closer(&early) && !early.is_closer(&late));
        assert!(later.is_closer(&late) && !late.is_closer(&late));
        let why = Refusal::new(Errno::ENODATA, c"this").value(1);
        assert_eq!(late.refusal(), why);
        Ok(())
    }
}
