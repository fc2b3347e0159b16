// SPDX-License-Identifier: GPL-2.0

//! Those who share receives, and who of them waits for one.

use core::ptr;
use kernel::{
    alloc::AllocError,
    prelude::*,
    sync::Arc, //
};

struct Sharer<S> {
    side: Arc<S>,
    /// Since when it waits, if it does: the least is the one that has waited longest.
    since: Option<u64>,
}

/// Sides of type `S`, and the order in which they have begun to wait.
pub(crate) struct Sharers<S> {
    all: KVec<Sharer<S>>,
    /// How often one has begun to wait.
    begun: u64,
}

impl<S> Sharers<S> {
    /// Nobody. Any context.
    pub(crate) fn new() -> Self {
        Self {
            all: KVec::new(),
            begun: 0,
        }
    }

    /// One more, who doesn't wait. Any context.
    pub(crate) fn join(&mut self, side: Arc<S>) -> Result<(), AllocError> {
        let sharer = Sharer { side, since: None };
        self.all.push(sharer, GFP_ATOMIC).map_err(|_| AllocError)
    }

    /// One less, whom the caller has a reference to. Any context.
    pub(crate) fn leave(&mut self, side: &S) {
        self.all.retain(|sharer| !ptr::eq(&*sharer.side, side));
    }

    /// One has found none and waits from here on, or has found one and doesn't. Any context.
    pub(crate) fn set(&mut self, side: &S, waits: bool) {
        let mut all = self.all.iter_mut();
        if let Some(sharer) = all.find(|sharer| ptr::eq(&*sharer.side, side)) {
            sharer.since = waits.then_some(self.begun);
            self.begun += 1;
        }
    }

    /// Who has waited longest, and doesn't any more. Any context.
    pub(crate) fn longest(&mut self) -> Option<Arc<S>> {
        let waiting = self.all.iter_mut().filter(|sharer| sharer.since.is_some());
        let sharer = waiting.min_by_key(|sharer| sharer.since)?;
        sharer.since = None;
        Some(sharer.side.clone())
    }
}

#[kernel::macros::kunit_tests(kfi_loop_sharers)]
mod tests {
    use super::*;

    fn three() -> Result<(Sharers<u8>, [Arc<u8>; 3])> {
        let sides = [
            Arc::new(0, GFP_KERNEL)?,
            Arc::new(1, GFP_KERNEL)?,
            Arc::new(2, GFP_KERNEL)?,
        ];
        let mut sharers = Sharers::new();
        for side in &sides {
            sharers.join(side.clone())?;
        }
        Ok((sharers, sides))
    }

    fn longest(sharers: &mut Sharers<u8>) -> Option<u8> {
        sharers.longest().map(|side| *side)
    }

    #[test]
    fn who_waits_longest_is_first() -> Result {
        let (mut sharers, [a, b, c]) = three()?;
        assert_eq!(longest(&mut sharers), None);
        for side in [&b, &c, &a] {
            sharers.set(side, true);
        }
        assert_eq!(longest(&mut sharers), Some(1));
        // It has found none again: behind the others, so that these have their turn.
        sharers.set(&b, true);
        assert_eq!(longest(&mut sharers), Some(2));
        assert_eq!(longest(&mut sharers), Some(0));
        assert_eq!(longest(&mut sharers), Some(1));
        assert_eq!(longest(&mut sharers), None);
        Ok(())
    }

    #[test]
    fn who_found_one_does_not_wait() -> Result {
        let (mut sharers, [a, b, _]) = three()?;
        sharers.set(&a, true);
        sharers.set(&b, true);
        sharers.set(&a, false);
        assert_eq!(longest(&mut sharers), Some(1));
        assert_eq!(longest(&mut sharers), None);
        Ok(())
    }

    #[test]
    fn nobody_is_passed_over_when_one_leaves() -> Result {
        let (mut sharers, [a, b, c]) = three()?;
        for side in [&a, &b, &c] {
            sharers.set(side, true);
        }
        assert_eq!(longest(&mut sharers), Some(0));
        sharers.leave(&a);
        assert_eq!(longest(&mut sharers), Some(1));
        assert_eq!(longest(&mut sharers), Some(2));
        assert_eq!(longest(&mut sharers), None);
        Ok(())
    }
}
