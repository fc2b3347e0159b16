// SPDX-License-Identifier: GPL-2.0

//! Who may come by the keys of a domain: peers of one queue pair, or of several.

use kernel::sync::atomic::{
    Atomic,
    Full, //
};

/// How many queue pairs with peers there have been on a protection domain: none, one, or more than one.
pub(crate) struct Company(Atomic<u32>);

const NONE: u32 = 0;
const ONE: u32 = 1;
const SEVERAL: u32 = 2;

impl Company {
    pub(crate) const fn new() -> Self {
        Self(Atomic::new(NONE))
    }

    /// There is going to be a queue pair. To be called before. Any context.
    pub(crate) fn joins(&self) {
        if self.0.cmpxchg(NONE, ONE, Full).is_err() {
            self.opens();
        }
    }

    /// Others get the protection domain, and make there what they like. To be called before. Any context.
    pub(crate) fn opens(&self) {
        // In full order with what the device is told of those that come.
        self.0.xchg(SEVERAL, Full);
    }

    /// Whether there has been but one queue pair, so that the peer of no other can have used a key that was
    /// ended before this was called. Any context.
    pub(crate) fn is_two(&self) -> bool {
        // In full order with what the device has said of the key.
        self.0.cmpxchg(ONE, ONE, Full).is_ok()
    }
}

#[kernel::macros::kunit_tests(kfi_verbs_company)]
mod tests {
    use super::*;

    #[test]
    fn two_is_company() {
        let company = Company::new();
        assert!(!company.is_two());
        company.joins();
        assert!(company.is_two());
        company.joins();
        assert!(!company.is_two());
        company.joins();
        assert!(!company.is_two());
    }

    #[test]
    fn nobody_knows_who_else() {
        let company = Company::new();
        company.opens();
        company.joins();
        assert!(!company.is_two());
    }
}
