// SPDX-License-Identifier: GPL-2.0

//! Who uses a protection domain: this crate, or others.

use kernel::sync::atomic::{
    Acquire,
    Atomic,
    Full,
    Relaxed, //
};

/// Who but this crate has objects on a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// Nobody.
    None,
    /// So many of others' are there.
    Some(usize),
    /// It can't be told just now: objects of this crate's are being destroyed, and may count as others' until
    /// they are.
    Unsettled,
}

/// The objects that this crate has on a domain.
///
/// # Invariants
///
/// Of these objects `made` counts those that were made, after each was; `gone` those that are destroyed or
/// leaked, before each is; `done` the same, after each was; and `leaked` those that the device would not destroy,
/// after each was given up.
pub(super) struct Ours {
    made: Atomic<u64>,
    gone: Atomic<u64>,
    done: Atomic<u64>,
    leaked: Atomic<u64>,
}

impl Ours {
    pub(super) const fn new() -> Self {
        Self {
            made: Atomic::new(0),
            gone: Atomic::new(0),
            done: Atomic::new(0),
            leaked: Atomic::new(0),
        }
    }

    /// One was made. Any context.
    pub(super) fn made(&self) {
        self.made.fetch_add(1, Full);
    }

    /// One is going to be destroyed. Any context.
    pub(super) fn goes(&self) {
        self.gone.fetch_add(1, Full);
    }

    /// It was destroyed, or is leaked. Any context.
    pub(super) fn is_done(&self, leaked: bool) {
        if leaked {
            self.leaked.fetch_add(1, Full);
        }
        self.done.fetch_add(1, Full);
    }

    /// How many the device would not destroy. Any context.
    pub(super) fn leaked(&self) -> u64 {
        self.leaked.load(Acquire)
    }

    /// How many objects others have, of so many that there are. While some are being made and destroyed this may
    /// be too much, but never too little. Any context.
    pub(super) fn at_most(&self, users: impl Fn() -> u64) -> usize {
        loop {
            // Read first: what is leaked stays in `users`. The acquiring loads keep the order.
            let leaked = self.leaked();
            let (made, gone) = (self.made.load(Acquire), self.gone.load(Acquire));
            let users = users();
            // Neither has moved, so nothing of ours can have gone from `users` unseen.
            if made == self.made.load(Relaxed) && gone == self.gone.load(Relaxed) {
                let ours = made.saturating_sub(gone).saturating_add(leaked);
                return usize::try_from(users.saturating_sub(ours)).unwrap_or(usize::MAX);
            }
        }
    }

    /// Who else has objects, of so many that there are. None is being made. Any context.
    pub(super) fn others(&self, users: impl Fn() -> u64) -> Others {
        let gone = self.gone.load(Acquire);
        let done = self.done.load(Acquire);
        match self.at_most(users) {
            0 => Others::None,
            // None was on its way out when this began, and none is since.
            users if done == gone && gone == self.gone.load(Acquire) => Others::Some(users),
            _ => Others::Unsettled,
        }
    }
}

#[kernel::macros::kunit_tests(rdma_pd_users)]
mod tests {
    use super::*;

    #[test]
    fn only_others_are_others() {
        let ours = Ours::new();
        for _ in 0..3 {
            ours.made();
        }
        assert_eq!(ours.others(|| 3), Others::None);
        assert_eq!(ours.others(|| 5), Others::Some(2));
        ours.goes();
        ours.is_done(true);
        // It is still there.
        assert_eq!(ours.others(|| 3), Others::None);
        ours.goes();
        ours.is_done(false);
        assert_eq!(ours.others(|| 2), Others::None);
        assert_eq!(ours.others(|| 3), Others::Some(1));
    }

    #[test]
    fn what_is_on_its_way_out_is_nobodys() {
        let ours = Ours::new();
        ours.made();
        ours.made();
        ours.goes();
        // Still there, or not any more.
        assert_eq!(ours.others(|| 2), Others::Unsettled);
        assert_eq!(ours.others(|| 1), Others::None);
        ours.is_done(false);
        assert_eq!(ours.others(|| 1), Others::None);
        assert_eq!(ours.others(|| 2), Others::Some(1));
        // One begins while it is looked, after another has ended.
        let looked = Atomic::new(0u32);
        let users = || {
            if looked.fetch_add(1, Relaxed) == 0 {
                ours.goes();
            }
            1
        };
        assert_eq!(ours.others(users), Others::Unsettled);
    }
}
